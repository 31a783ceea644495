/** Renders rule coverage as an LCOV trace file (geninfo(1)), which coverage viewers in CI systems and editors read. */
import { join } from "node:path";
import type { Coverage, RuleCoverage } from "../../domain/policy/test/coverage.ts";
import type { RulePosition } from "../../domain/policy/parse/parse.ts";
import type { PolicyFolder } from "../../policies/folder.ts";

/** The coverage of the lines of one file. */
interface FileHits {
  lines: Map<number, number>;
  /** `BRDA` lines, which contain how often each condition was true and how often it was false. */
  branches: string[];
  branchesHit: number;
}

/**
 * Returns one record per policy file. The line of a rule's name counts how often a test reached the rule. The lines of
 * the rule's condition count how often it was evaluated. Its two branches count how often it was true and false.
 */
export function renderLcov(
  folder: string,
  { documents }: Pick<PolicyFolder, "documents">,
  { rules }: Coverage,
): string {
  const files = new Map<string, FileHits>();
  for (const { document, file, rulePlaces } of documents) {
    const hits = files.get(file) ?? { lines: new Map(), branches: [], branchesHit: 0 };
    files.set(file, hits);
    for (const rule of rules) {
      const position = rulePlaces.get(rule.rule);
      if (rule.policy === document.policy && position !== undefined) addRule(hits, rule, position);
    }
  }
  const records = [...files].map(([file, { lines, branches, branchesHit }]) => [
    "TN:",
    `SF:${join(folder, file)}`,
    ...branches,
    ...(branches.length === 0 ? [] : [`BRF:${branches.length}`, `BRH:${branchesHit}`]),
    ...[...lines].sort(([a], [b]) => a - b).map(([line, count]) => `DA:${line},${count}`),
    `LF:${lines.size}`,
    `LH:${[...lines.values()].filter((count) => count > 0).length}`,
    "end_of_record",
  ]);
  return records.flat().join("\n");
}

function addRule(hits: FileHits, { reached, failed, condition }: RuleCoverage, position: RulePosition): void {
  hits.lines.set(position.line, (hits.lines.get(position.line) ?? 0) + reached);
  const span = position.conditionLines();
  if (condition === null || span === null) return;
  const [first, last] = span;
  const evaluated = condition.true + condition.false + failed;
  // In flow style, the condition can be on the line of the name. That line counts how often the rule was reached.
  for (let line = first; line <= last; line++) if (line !== position.line) hits.lines.set(line, evaluated);
  for (const [branch, count] of [condition.true, condition.false].entries()) {
    hits.branches.push(`BRDA:${first},0,${branch},${evaluated === 0 ? "-" : count}`);
    if (count > 0) hits.branchesHit += 1;
  }
}
