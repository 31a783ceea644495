/** The numbers that sum up a range. */
import { formatDuration, SummaryFigure } from "../../console/app/kit.ts";
import { actionsAddress, type RangeSums } from "./range.ts";
import { DECISION_LINES, TEXTS } from "./strings.ts";

export function SummaryFigures({ sums, agent_id }: { sums: RangeSums; agent_id?: string }) {
  const { total, by_decision, approvals, since } = sums;
  const { decided, approved, rejected, p50_ms, p95_ms } = approvals;
  const address = (filters: Parameters<typeof actionsAddress>[1]): string =>
    actionsAddress(since, { agent_id: agent_id ?? null, ...filters });
  const counts = [
    ...DECISION_LINES.map(({ key, name }) => ({ name, count: by_decision[key], filters: { decision: key } })),
    { name: TEXTS.approved, count: approved, filters: { answer: "approved" } },
    { name: TEXTS.rejected, count: rejected, filters: { answer: "rejected" } },
  ];
  const answeredHref = decided === 0 ? undefined : address({ answer: "any" });
  const wait = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));
  return (
    <div class="figures">
      <SummaryFigure name={TEXTS.actions} value={total.toLocaleString()} href={address({})} />
      {counts.map(({ name, count, filters }) => (
        <SummaryFigure
          key={name}
          name={name}
          value={count.toLocaleString()}
          href={count === 0 ? undefined : address(filters)}
        />
      ))}
      <SummaryFigure
        name={TEXTS.rate}
        value={decided === 0 ? "–" : `${Math.round((approved / decided) * 100)} %`}
        href={answeredHref}
      />
      <SummaryFigure name={TEXTS.median} value={wait(p50_ms)} href={answeredHref} />
      <SummaryFigure name={TEXTS.p95} value={wait(p95_ms)} href={answeredHref} />
    </div>
  );
}
