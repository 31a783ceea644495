/**
 * Shows what a version would have changed: past decisions evaluated again with it, or the recorded results of a policy
 * in shadow mode.
 */
import { useEffect } from "preact/hooks";
import { ErrorNotice, Notice, request, Time } from "../../console/app/kit.ts";
import { type BacktestProgress, runBacktest } from "./backtest-stream.ts";
import { FlipList, type CurrentFlips } from "./flip-list.tsx";
import { flipKey, type FlipReport } from "./flips.ts";
import { RANGES, type ReportState, useReport } from "./report-parts.ts";
import { BACKTEST_TEXTS } from "./strings.ts";

/** Maximum number of decisions in one part of the report. The user can continue with older decisions. */
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
            {BACKTEST_TEXTS.cancel}
          </button>
        ) : (
          <button type="button" onClick={report.start}>
            {BACKTEST_TEXTS.run}
          </button>
        )}
      </div>
      {report.isBusy ? <ProgressLine name={name} counts={report.counts} /> : null}
      {report.isCancelled ? (
        <Notice kind="busy">
          {BACKTEST_TEXTS.cancelled(report.counts?.evaluated ?? 0, report.counts?.flipped ?? 0)}
        </Notice>
      ) : null}
      {report.error === null ? null : (
        <>
          <p>
            <strong>{BACKTEST_TEXTS.notTested}</strong>
          </p>
          <ErrorNotice error={report.error} />
        </>
      )}
      {report.isStale && report.data !== null ? <Notice kind="busy">{BACKTEST_TEXTS.stale}</Notice> : null}
      <Results report={report} nothing={BACKTEST_TEXTS.nothing} current={report.comparison} />
    </div>
  );
}

/**
 * Evaluates the same range with the active policies. If they produce a flip as well, the candidate is not its cause.
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
export function ShadowReport({ id }: { id: string }) {
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
      <h2 id="shadow">{BACKTEST_TEXTS.shadowTitle}</h2>
      <p class="quiet">{BACKTEST_TEXTS.shadowHelp}</p>
      <div class="filters">
        <Range name="shadow" report={report} />
      </div>
      {report.isBusy ? <p class="quiet">{BACKTEST_TEXTS.shadowLoading}</p> : null}
      <ErrorNotice error={report.error} onRetry={report.start} />
      <Results report={report} nothing={BACKTEST_TEXTS.shadowNothing} current={null} />
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
      <FlipList data={data} current={current} />
      {isBusy || data.next === null ? null : (
        <p class="row">
          <span>{BACKTEST_TEXTS.partial(data.evaluated)}</span>
          <button type="button" class="small" onClick={goOn}>
            {BACKTEST_TEXTS.goOn}
          </button>
        </p>
      )}
    </>
  );
}

function Range({ name, report }: { name: string; report: ReportState<unknown> }) {
  return (
    <div class="field">
      <label for={`${name}-range`}>{BACKTEST_TEXTS.range}</label>
      <select
        id={`${name}-range`}
        value={report.range}
        disabled={report.isBusy}
        onChange={(event) => report.setRange(event.currentTarget.value)}
      >
        {Object.keys(RANGES).map((range) => (
          <option key={range} value={range}>
            {BACKTEST_TEXTS.last(range)}
          </option>
        ))}
      </select>
    </div>
  );
}

function ProgressLine({ name, counts }: { name: string; counts: BacktestProgress | null }) {
  return (
    <p class="row">
      <progress aria-labelledby={`${name}-progress`} />
      <span id={`${name}-progress`} class="quiet">
        {counts === null ? BACKTEST_TEXTS.starting : BACKTEST_TEXTS.progress(counts.evaluated, counts.flipped)}
      </span>
    </p>
  );
}

function Summary({ data, nothing }: { data: FlipReport; nothing: string }) {
  const { evaluated, flipped, otherwise, erased, unrecorded, altered, since, until } = data;
  const counts = flipped === 0 ? BACKTEST_TEXTS.noFlips(evaluated) : BACKTEST_TEXTS.flips(flipped, evaluated);
  return (
    <>
      <Notice kind={evaluated > 0 && flipped === 0 ? "good" : "busy"}>
        <strong>{evaluated === 0 ? nothing : `${counts}${BACKTEST_TEXTS.otherwise(otherwise)}`}</strong>
      </Notice>
      <p class="quiet">
        Decisions that you may see, from <Time at={since} /> to <Time at={until} />, compared with the record.
        {BACKTEST_TEXTS.erased(erased)}
        {BACKTEST_TEXTS.unrecorded(unrecorded)}
        {BACKTEST_TEXTS.altered(altered)}
      </p>
    </>
  );
}
