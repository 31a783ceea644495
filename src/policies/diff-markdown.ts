/** Renders the difference of two policy sets as Markdown. */
import type { PolicyDifference } from "../domain/policy/diff/diff.ts";
import type { SetChange, SetDiff } from "../domain/policy/diff/set-diff.ts";
import { markdownCell } from "./markdown.ts";

/** Returns the numbers of changes in words, such as `1 policy added, 2 rules changed`. */
export function renderDiffTotals({ policies, rules }: SetDiff): string {
  const count = (kind: SetChange["kind"]): number => policies.filter((change) => change.kind === kind).length;
  const parts = [
    [count("policy_added"), "policies added"],
    [count("policy_removed"), "policies removed"],
    [count("policy_changed"), "policies changed"],
    [rules.added, "rules added"],
    [rules.removed, "rules removed"],
    [rules.changed, "rules changed"],
    [rules.moved, "rules moved"],
  ] as const;
  return parts
    .filter(([number]) => number > 0)
    .map(
      ([number, what]) =>
        `${number} ${number === 1 ? what.replace("policies", "policy").replace("rules", "rule") : what}`,
    )
    .join(", ");
}

const WORDS: Readonly<Record<PolicyDifference["kind"], string>> = {
  policy_changed: "policy changed",
  limit_added: "limit added",
  limit_removed: "limit removed",
  limit_changed: "limit changed",
  rule_added: "rule added",
  rule_removed: "rule removed",
  rule_changed: "rule changed",
  rule_moved: "rule moved",
};

/** Renders the difference for a pull request or a commit. Text of policies is in code spans, so that it cannot become markup. */
export function renderDiffMarkdown(difference: SetDiff): string {
  if (difference.policies.length === 0) return "### No rule changes\n\nThe policies are the same.";
  const sections = difference.policies.flatMap(({ policy, summary, changes }) => [
    "",
    `#### ${markdownCell(policy)}`,
    "",
    markdownCell(summary),
    "",
    "| change | rule | what |",
    "|---|---|---|",
    ...changes.map(
      (change) =>
        `| ${WORDS[change.kind]} | ${change.rule === null ? "" : markdownCell(change.rule)} | ${markdownCell(change.summary)} |`,
    ),
  ]);
  return [`### Policies: ${renderDiffTotals(difference)}`, ...sections].join("\n");
}
