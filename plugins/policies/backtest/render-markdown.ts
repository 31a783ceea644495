/** Renders the report of a backtest as Markdown. */
import { markdownCell } from "../../../src/core.ts";
import type { BacktestReport, DecisionOutcome } from "./report.ts";

/** A report with its range as RFC 3339 times. */
export type DatedReport = BacktestReport & { since: string; until: string };

/** Returns a sentence about a limit whose usage was not recorded. */
export function unrecordedLimitText(
  { policy, limit, decisions }: BacktestReport["counted"][number],
  format: (name: string) => string,
): string {
  return `The limit ${format(limit)} of ${format(policy)} has no recorded usage: usage was counted from the ${decisions} of these decisions that it applies to, starting from zero`;
}

/** Renders the report for a pull request. Text of actions is in code spans, so that it cannot become markup. */
export function renderBacktestMarkdown({
  evaluated,
  flipped,
  otherwise,
  erased,
  unrecorded,
  altered,
  flips,
  unlisted,
  counted,
  next,
  since,
  until,
}: DatedReport): string {
  const outcome = ({ effect, policy, rule }: DecisionOutcome): string =>
    `**${effect}** ${policy === null ? "no rule" : `${markdownCell(policy)} ${markdownCell(rule ?? "-")}`}`;
  return [
    `### ${flipped === 0 ? "No past decision would flip" : `${flipped} of ${evaluated} past decisions would flip`}`,
    "",
    `${evaluated} decisions from ${since} to ${until}; ${otherwise} more would have the same effect by another rule or with other terms.`,
    ...(erased > 0 ? ["", `${erased} more cannot be replayed: their requests were erased.`] : []),
    ...(unrecorded > 0
      ? [
          "",
          `${unrecorded} more cannot be replayed: the policies read past actions or facts that the decisions did not record.`,
        ]
      : []),
    ...(altered > 0 ? ["", `${altered} more cannot be read: their rows were altered; run assent audit.`] : []),
    ...(flips.length === 0 ? [] : ["", "| decisions | from | to | examples |", "|---:|---|---|---|"]),
    ...flips.map(
      ({ from, to, count, examples }) =>
        `| ${count} | ${outcome(from)} | ${outcome(to)} | ${examples.map(({ action_id, tool, operation, agent_id }) => `${markdownCell(action_id)} ${markdownCell(agent_id)}: ${markdownCell(`${tool} ${operation}`)}`).join("<br>")} |`,
    ),
    ...(unlisted > 0 ? ["", `${unlisted} more flips of other kinds.`] : []),
    ...counted.flatMap((limit) => ["", `${unrecordedLimitText(limit, markdownCell)}.`]),
    ...(next === null
      ? []
      : ["", "The limit or the time limit was reached: older decisions in the range were not evaluated."]),
  ].join("\n");
}
