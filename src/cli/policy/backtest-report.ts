/** What a backtest found, for people and for pull requests. */
import type { BacktestReport, DecisionOutcome } from "../../contract/backtest.ts";
import { safe } from "../command.ts";
import { cell } from "./markdown.ts";

export type Result = BacktestReport & { since: string; until: string };

function words({ effect, policy, rule }: DecisionOutcome): string {
  return `${effect}${policy === null ? " (no rule)" : ` (${safe(policy)}: ${safe(rule ?? "-")})`}`;
}

function countedWords(
  { policy, limit, decisions }: BacktestReport["counted"][number],
  shown: (text: string) => string,
): string {
  return `The limit ${shown(limit)} of ${shown(policy)} has no recorded use: it was counted from the ${decisions} of these decisions that it concerns, as if nothing was used before`;
}

/** For people. */
export function text({
  evaluated,
  flipped,
  otherwise,
  erased,
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
      `${String(count).padStart(7)}  ${words(from)} -> ${words(to)}`,
      ...examples.map(
        ({ action_id, tool, operation, agent_id }) =>
          `         e.g. ${action_id}  ${safe(agent_id)}: ${safe(tool)} ${safe(operation)}`,
      ),
    ].join("\n"),
  );
  return [
    `${evaluated} decisions from ${since} to ${until}: ${flipped} would flip, ${otherwise} would come out the same by another rule or on other terms`,
    ...(erased > 0 ? [`${String(erased).padStart(7)}  more cannot be made again: what was asked was erased`] : []),
    ...(altered > 0
      ? [`${String(altered).padStart(7)}  more cannot be read: their rows were altered; run assent audit`]
      : []),
    ...lines,
    ...(unlisted > 0 ? [`${String(unlisted).padStart(7)}  more, of other kinds`] : []),
    ...counted.map((one) => countedWords(one, safe)),
    ...(next === null ? [] : ["the limit ended it: older decisions of the range were not looked at"]),
  ].join("\n");
}

/** For a pull request: nothing of an action's own text may become markup. */
export function markdown({
  evaluated,
  flipped,
  otherwise,
  erased,
  altered,
  flips,
  unlisted,
  counted,
  next,
  since,
  until,
}: Result): string {
  const outcome = ({ effect, policy, rule }: DecisionOutcome): string =>
    `**${effect}** ${policy === null ? "no rule" : `${cell(policy)} ${cell(rule ?? "-")}`}`;
  return [
    `### ${flipped === 0 ? "No past decision would flip" : `${flipped} of ${evaluated} past decisions would flip`}`,
    "",
    `${evaluated} decisions from ${since} to ${until}; ${otherwise} more would come out the same by another rule or on other terms.`,
    ...(erased > 0 ? ["", `${erased} more cannot be made again: what was asked was erased.`] : []),
    ...(altered > 0 ? ["", `${altered} more cannot be read: their rows were altered; run assent audit.`] : []),
    ...(flips.length === 0 ? [] : ["", "| decisions | from | to | examples |", "|---:|---|---|---|"]),
    ...flips.map(
      ({ from, to, count, examples }) =>
        `| ${count} | ${outcome(from)} | ${outcome(to)} | ${examples.map(({ action_id, tool, operation, agent_id }) => `${cell(action_id)} ${cell(agent_id)}: ${cell(`${tool} ${operation}`)}`).join("<br>")} |`,
    ),
    ...(unlisted > 0 ? ["", `${unlisted} more flips of other kinds.`] : []),
    ...counted.flatMap((one) => ["", `${countedWords(one, cell)}.`]),
    ...(next === null ? [] : ["", "The limit ended it: older decisions of the range were not looked at."]),
  ].join("\n");
}
