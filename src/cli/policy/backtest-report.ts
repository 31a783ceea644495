/** Renders the report of a backtest as text and as Markdown. */
import type { BacktestReport, DecisionOutcome } from "../../contract/backtest.ts";
import { safe } from "../command.ts";
import { markdownCell } from "./markdown.ts";

export type Result = BacktestReport & { since: string; until: string };

function outcomeText({ effect, policy, rule }: DecisionOutcome): string {
  return `${effect}${policy === null ? " (no rule)" : ` (${safe(policy)}: ${safe(rule ?? "-")})`}`;
}

function countedLimitText(
  { policy, limit, decisions }: BacktestReport["counted"][number],
  format: (name: string) => string,
): string {
  return `The limit ${format(limit)} of ${format(policy)} has no recorded usage: usage was counted from the ${decisions} of these decisions that it applies to, starting from zero`;
}

/** Renders the report for a terminal. */
export function renderBacktestText({
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
}: Result): string {
  const lines = flips.map(({ from, to, count, examples }) =>
    [
      `${String(count).padStart(7)}  ${outcomeText(from)} -> ${outcomeText(to)}`,
      ...examples.map(
        ({ action_id, tool, operation, agent_id }) =>
          `         e.g. ${action_id}  ${safe(agent_id)}: ${safe(tool)} ${safe(operation)}`,
      ),
    ].join("\n"),
  );
  return [
    `${evaluated} decisions from ${since} to ${until}: ${flipped} would flip, ${otherwise} would have the same effect by another rule or with other terms`,
    ...(erased > 0 ? [`${String(erased).padStart(7)}  more cannot be replayed: their requests were erased`] : []),
    ...(unrecorded > 0
      ? [
          `${String(unrecorded).padStart(7)}  more cannot be replayed: they read no past actions, or other ones (history)`,
        ]
      : []),
    ...(altered > 0
      ? [`${String(altered).padStart(7)}  more cannot be read: their rows were altered; run assent audit`]
      : []),
    ...lines,
    ...(unlisted > 0 ? [`${String(unlisted).padStart(7)}  more, of other kinds`] : []),
    ...counted.map((limit) => countedLimitText(limit, safe)),
    ...(next === null ? [] : ["the limit was reached: older decisions in the range were not evaluated"]),
  ].join("\n");
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
}: Result): string {
  const outcome = ({ effect, policy, rule }: DecisionOutcome): string =>
    `**${effect}** ${policy === null ? "no rule" : `${markdownCell(policy)} ${markdownCell(rule ?? "-")}`}`;
  return [
    `### ${flipped === 0 ? "No past decision would flip" : `${flipped} of ${evaluated} past decisions would flip`}`,
    "",
    `${evaluated} decisions from ${since} to ${until}; ${otherwise} more would have the same effect by another rule or with other terms.`,
    ...(erased > 0 ? ["", `${erased} more cannot be replayed: their requests were erased.`] : []),
    ...(unrecorded > 0
      ? ["", `${unrecorded} more cannot be replayed: they read no past actions, or other ones (history).`]
      : []),
    ...(altered > 0 ? ["", `${altered} more cannot be read: their rows were altered; run assent audit.`] : []),
    ...(flips.length === 0 ? [] : ["", "| decisions | from | to | examples |", "|---:|---|---|---|"]),
    ...flips.map(
      ({ from, to, count, examples }) =>
        `| ${count} | ${outcome(from)} | ${outcome(to)} | ${examples.map(({ action_id, tool, operation, agent_id }) => `${markdownCell(action_id)} ${markdownCell(agent_id)}: ${markdownCell(`${tool} ${operation}`)}`).join("<br>")} |`,
    ),
    ...(unlisted > 0 ? ["", `${unlisted} more flips of other kinds.`] : []),
    ...counted.flatMap((limit) => ["", `${countedLimitText(limit, markdownCell)}.`]),
    ...(next === null ? [] : ["", "The limit was reached: older decisions in the range were not evaluated."]),
  ].join("\n");
}
