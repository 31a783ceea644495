/** Renders the report of a backtest as text. */
import { toPrintable } from "../../../src/command.ts";
import { type DatedReport, type DecisionOutcome, unrecordedLimitText } from "../../policies/api.ts";

function outcomeText({ effect, policy, rule }: DecisionOutcome): string {
  return `${effect}${policy === null ? " (no rule)" : ` (${toPrintable(policy)}: ${toPrintable(rule ?? "-")})`}`;
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
}: DatedReport): string {
  const lines = flips.map(({ from, to, count, examples }) =>
    [
      `${String(count).padStart(7)}  ${outcomeText(from)} -> ${outcomeText(to)}`,
      ...examples.map(
        ({ action_id, tool, operation, agent_id }) =>
          `         e.g. ${action_id}  ${toPrintable(agent_id)}: ${toPrintable(tool)} ${toPrintable(operation)}`,
      ),
    ].join("\n"),
  );
  return [
    `${evaluated} decisions from ${since} to ${until}: ${flipped} would flip, ${otherwise} would have the same effect by another rule or with other terms`,
    ...(erased > 0 ? [`${String(erased).padStart(7)}  more cannot be replayed: their requests were erased`] : []),
    ...(unrecorded > 0
      ? [
          `${String(unrecorded).padStart(7)}  more cannot be replayed: the policies read past actions or facts that the decisions did not record`,
        ]
      : []),
    ...(altered > 0
      ? [`${String(altered).padStart(7)}  more cannot be read: their rows were altered; run assent audit`]
      : []),
    ...lines,
    ...(unlisted > 0 ? [`${String(unlisted).padStart(7)}  more, of other kinds`] : []),
    ...counted.map((limit) => unrecordedLimitText(limit, toPrintable)),
    ...(next === null ? [] : ["the limit was reached: older decisions in the range were not evaluated"]),
  ].join("\n");
}
