/** What a policy in shadow mode would have changed. */
import { useEffect } from "preact/hooks";
import { ErrorNotice, ReportRange, ReportResults, request, useReport } from "../../console/app/kit.ts";
import { SHADOW_TEXTS } from "./strings.ts";

/** Maximum number of decisions in one part of the report. The user can continue with older decisions. */
const PART_SIZE = 10_000;

/**
 * Renders what a policy in shadow mode would have changed.
 * @param props.id id of the policy
 */
export function ShadowReport({ id }: { id: string }) {
  const report = useReport<null>({
    fetchPart: ({ since, until, before, signal }) =>
      request("GET /v1/policies/{id}/shadow", {
        path: [id],
        query: { since, until, limit: PART_SIZE, before: before ?? undefined },
        signal,
      }),
    subject: id,
  });
  useEffect(() => report.start(), [report.range]);
  return (
    <section class="card" aria-labelledby="shadow">
      <h2 id="shadow">{SHADOW_TEXTS.shadowTitle}</h2>
      <p class="quiet">{SHADOW_TEXTS.shadowHelp}</p>
      <div class="filters">
        <ReportRange name="shadow" report={report} />
      </div>
      {report.isBusy ? <p class="quiet">{SHADOW_TEXTS.shadowLoading}</p> : null}
      <ErrorNotice error={report.error} onRetry={report.start} />
      <ReportResults report={report} nothing={SHADOW_TEXTS.shadowNothing} current={null} />
    </section>
  );
}
