/**
 * Shows what a version would have changed: past decisions evaluated again with it, or the recorded results of a policy
 * in shadow mode.
 */
import { useEffect } from "preact/hooks";
import { request } from "../core/api.ts";
import { Notice, Problem, Time } from "../ui/elements.tsx";
import { type Progress, runBacktest } from "./backtest-stream.ts";
import { Flips, type CurrentFlips } from "./flip-list.tsx";
import { flipKey, type FlipReport } from "./flips.ts";
import { RANGES, type ReportState, useReport } from "./report-parts.ts";
import { BACKTEST } from "./strings.ts";

/** Maximum number of decisions in one part of the report. The user can continue with older ones. */
const PART = 10_000;

interface BacktestProps {
  /** Unique on the page. */
  name: string;
  candidate: { yaml: string } | { policy: Record<string, unknown> };
  /** Whether the backtest starts without a click. */
  startsItself?: boolean;
  /**
   * Called with the error of a request. Returns true if the editor displays the error, so that this component does not.
   */
  onRefused?: (error: unknown) => boolean;
}

export function Backtest({ name, candidate, startsItself = false, onRefused }: BacktestProps) {
  const report = useReport<CurrentFlips>({
    fetchPart: ({ since, until, before, signal, onProgress }) =>
      runBacktest(
        {
          ...candidate,
          since,
          limit: PART,
          ...(until === undefined ? {} : { until }),
          ...(before === null ? {} : { before }),
        },
        { signal, onProgress },
      ),
    compare: compareWithCurrent,
    subject: JSON.stringify(candidate),
    ...(onRefused === undefined ? {} : { onRefused }),
  });
  useEffect(() => {
    if (startsItself) report.start();
  }, []);
  return (
    <div class="backtest">
      <div class="filters">
        <Range name={name} report={report} />
        {report.isBusy ? (
          <button type="button" onClick={report.cancel}>
            {BACKTEST.cancel}
          </button>
        ) : (
          <button type="button" onClick={report.start}>
            {BACKTEST.run}
          </button>
        )}
      </div>
      {report.isBusy ? <ProgressLine name={name} counts={report.counts} /> : null}
      {report.isCancelled ? (
        <Notice kind="busy">{BACKTEST.cancelled(report.counts?.evaluated ?? 0, report.counts?.flipped ?? 0)}</Notice>
      ) : null}
      {report.error === null ? null : (
        <>
          <p>
            <strong>{BACKTEST.notTested}</strong>
          </p>
          <Problem error={report.error} />
        </>
      )}
      {report.isStale && report.data !== null ? <Notice kind="busy">{BACKTEST.stale}</Notice> : null}
      <Results report={report} nothing={BACKTEST.nothing} current={report.comparison} />
    </div>
  );
}

/**
 * Evaluates the range with the active policies. A flip that they also produce is not caused by the candidate.
 */
async function compareWithCurrent(data: FlipReport, signal: AbortSignal): Promise<CurrentFlips | null> {
  if (data.flipped === 0) return null;
  try {
    const current = await runBacktest(
      { policy_set: "current", since: data.since, until: data.until, limit: data.evaluated },
      { signal, onProgress: () => undefined },
    );
    return { counts: new Map(current.flips.map((flip) => [flipKey(flip), flip.count])), error: null };
  } catch (error) {
    return { counts: new Map(), error };
  }
}

/**
 * Renders what a policy in shadow mode would have changed.
 * @param props.id id of the policy
 */
export function Shadow({ id }: { id: string }) {
  const report = useReport<null>({
    fetchPart: ({ since, until, before, signal }) =>
      request("GET /v1/policies/{id}/shadow", {
        path: [id],
        query: { since, until, limit: PART, before: before ?? undefined },
        signal,
      }),
    subject: id,
  });
  useEffect(() => report.start(), [report.range]);
  return (
    <section class="card" aria-labelledby="shadow">
      <h2 id="shadow">{BACKTEST.shadowTitle}</h2>
      <p class="quiet">{BACKTEST.shadowHelp}</p>
      <div class="filters">
        <Range name="shadow" report={report} />
      </div>
      {report.isBusy ? <p class="quiet">{BACKTEST.shadowLoading}</p> : null}
      <Problem error={report.error} again={report.start} />
      <Results report={report} nothing={BACKTEST.shadowNothing} current={null} />
    </section>
  );
}

interface ResultsProps {
  report: ReportState<unknown>;
  /** Text to show if the range has no decisions. */
  nothing: string;
  current: CurrentFlips | null;
}

function Results({ report: { data, isBusy, goOn }, nothing, current }: ResultsProps) {
  if (data === null) return null;
  return (
    <>
      <Summary data={data} nothing={nothing} />
      <Flips data={data} current={current} />
      {isBusy || data.next === null ? null : (
        <p class="row">
          <span>{BACKTEST.partial(data.evaluated)}</span>
          <button type="button" class="small" onClick={goOn}>
            {BACKTEST.goOn}
          </button>
        </p>
      )}
    </>
  );
}

function Range({ name, report }: { name: string; report: ReportState<unknown> }) {
  return (
    <div class="field">
      <label for={`${name}-range`}>{BACKTEST.range}</label>
      <select
        id={`${name}-range`}
        value={report.range}
        disabled={report.isBusy}
        onChange={(event) => report.setRange(event.currentTarget.value)}
      >
        {Object.keys(RANGES).map((range) => (
          <option key={range} value={range}>
            {BACKTEST.last(range)}
          </option>
        ))}
      </select>
    </div>
  );
}

function ProgressLine({ name, counts }: { name: string; counts: Progress | null }) {
  return (
    <p class="row">
      <progress aria-labelledby={`${name}-progress`} />
      <span id={`${name}-progress`} class="quiet">
        {counts === null ? BACKTEST.starting : BACKTEST.progress(counts.evaluated, counts.flipped)}
      </span>
    </p>
  );
}

function Summary({ data, nothing }: { data: FlipReport; nothing: string }) {
  const { evaluated, flipped, otherwise, erased, unrecorded, altered, since, until } = data;
  const counts = flipped === 0 ? BACKTEST.noFlips(evaluated) : BACKTEST.flips(flipped, evaluated);
  return (
    <>
      <Notice kind={evaluated > 0 && flipped === 0 ? "good" : "busy"}>
        <strong>{evaluated === 0 ? nothing : `${counts}${BACKTEST.otherwise(otherwise)}`}</strong>
      </Notice>
      <p class="quiet">
        Decisions that this key may see, <Time at={since} /> to <Time at={until} />, compared with the record.
        {BACKTEST.erased(erased)}
        {BACKTEST.unrecorded(unrecorded)}
        {BACKTEST.altered(altered)}
      </p>
    </>
  );
}
