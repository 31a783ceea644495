/** Shows what a version of a policy would have changed: evaluates past decisions again with it. */
import { useEffect } from "preact/hooks";
import {
  type CurrentFlips,
  ErrorNotice,
  formatCounted,
  Fragment,
  flipKey,
  type FlipReport,
  MarkedValue,
  Notice,
  type Places,
  ReportRange,
  type ReportProgress,
  ReportResults,
  useReport,
} from "../../console/app/kit.ts";
import { runBacktest } from "./backtest-stream.ts";

/** Maximum number of decisions in one part of the report. The user can continue with older decisions. */
const PART_SIZE = 10_000;

const number = (count: number): string => count.toLocaleString("en");

const BACKTEST_TEXTS = {
  run: "Run the backtest",
  cancel: "Cancel",
  starting: "Evaluating past requests again…",
  progress: (evaluated: number, flipped: number) =>
    `${number(evaluated)} decisions evaluated again, ${number(flipped)} would flip so far…`,
  cancelled: (evaluated: number, flipped: number) =>
    evaluated === 0
      ? "Cancelled. No decision was tested."
      : `Cancelled. Of the ${number(evaluated)} newest decisions, ${number(flipped)} would flip; the others were not tested.`,
  notTested: "Not tested:",
  stale: "The text has changed since this backtest: run it again.",
  overruled: (count: number) =>
    `This text would allow ${formatCounted(count, "decision")} more, but a stricter rule of another policy decides:`,
  nothing: "This range has no decision that you may see, so the backtest says nothing about this version.",
};

export function Backtest({ name, candidate, startsItself = false, onRefused }: Places["policy-candidate"]) {
  const report = useReport<Comparison>({
    fetchPart: ({ since, until, before, signal, onProgress }) =>
      runBacktest(
        {
          ...candidate,
          enforce: true,
          since,
          limit: PART_SIZE,
          ...(until === undefined ? {} : { until }),
          ...(before === null ? {} : { before }),
        },
        { signal, onProgress },
      ),
    compare: async (data, signal) => ({
      current: await compareWithCurrent(data, signal),
      overruled: await findOverruled(candidate, data, signal),
    }),
    subject: JSON.stringify(candidate),
    ...(onRefused === undefined ? {} : { onRefused }),
  });
  useEffect(() => {
    if (startsItself) report.start();
  }, []);
  return (
    <div class="backtest">
      <div class="filters">
        <ReportRange name={name} report={report} />
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
      <Overruled flips={report.comparison?.overruled ?? []} />
      <ReportResults report={report} nothing={BACKTEST_TEXTS.nothing} current={report.comparison?.current ?? null} />
    </div>
  );
}

interface Comparison {
  current: CurrentFlips | null;
  overruled: FlipReport["flips"];
}

/**
 * Returns the past decisions that only a stricter policy still prevents, although the candidate alone would allow them.
 */
async function findOverruled(
  candidate: Places["policy-candidate"]["candidate"],
  { since, until, evaluated, flips }: FlipReport,
  signal: AbortSignal,
): Promise<FlipReport["flips"]> {
  if (evaluated === 0 || !/\ballow\b/.test(JSON.stringify(candidate))) return [];
  const range = { since, until, limit: evaluated };
  const alone = await runBacktest(
    { ...candidate, ...range, enforce: true, alone: true },
    { signal, onProgress: () => undefined },
  ).catch(() => ({ flips: [] }));
  return alone.flips.flatMap((flip) => {
    if (flip.to.effect !== "allow") return [];
    const allowed = flips.find((each) => flipKey(each) === flipKey(flip))?.count ?? 0;
    return flip.count > allowed ? [{ ...flip, count: flip.count - allowed }] : [];
  });
}

/** Displays the rules that prevent what the candidate would allow. */
function Overruled({ flips }: { flips: FlipReport["flips"] }) {
  if (flips.length === 0) return null;
  return (
    <Notice kind="busy">
      {BACKTEST_TEXTS.overruled(flips.reduce((sum, { count }) => sum + count, 0))}{" "}
      {flips.map(({ from, to, count }, i) => (
        <Fragment key={i}>
          {i === 0 ? "" : "; "}
          <MarkedValue value={`${from.rule ?? from.effect} of ${from.policy ?? "no policy"}`} /> overrules{" "}
          <MarkedValue value={to.rule} /> in {formatCounted(count, "decision")}
        </Fragment>
      ))}
      .
    </Notice>
  );
}

/**
 * Evaluates the same range with the active policies. A flip that they produce as well is not caused by the candidate.
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

function ProgressLine({ name, counts }: { name: string; counts: ReportProgress | null }) {
  return (
    <p class="row">
      <progress aria-labelledby={`${name}-progress`} />
      <span id={`${name}-progress`} class="quiet">
        {counts === null ? BACKTEST_TEXTS.starting : BACKTEST_TEXTS.progress(counts.evaluated, counts.flipped)}
      </span>
    </p>
  );
}
