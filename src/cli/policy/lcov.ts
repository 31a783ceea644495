/** Renders rule coverage as an LCOV trace file, which coverage viewers of CI systems and editors read (geninfo(1)). */
import { join } from "node:path";
import type { Coverage } from "../../domain/policy/test/coverage.ts";
import type { PolicyFolder } from "../../policies/folder.ts";

/** Returns one record for each policy file. Each rule counts as the line of its name. */
export function renderLcov(
  folder: string,
  { documents }: Pick<PolicyFolder, "documents">,
  { rules }: Coverage,
): string {
  const hits = new Map<string, Map<number, number>>();
  for (const { document, file, rulePlaces } of documents) {
    const lines = hits.get(file) ?? new Map<number, number>();
    hits.set(file, lines);
    for (const { policy, rule, reached } of rules) {
      const line = rulePlaces.get(rule)?.line;
      if (policy === document.policy && line !== undefined) lines.set(line, (lines.get(line) ?? 0) + reached);
    }
  }
  const records = [...hits].map(([file, lines]) => [
    "TN:",
    `SF:${join(folder, file)}`,
    ...[...lines].sort(([a], [b]) => a - b).map(([line, count]) => `DA:${line},${count}`),
    `LF:${lines.size}`,
    `LH:${[...lines.values()].filter((count) => count > 0).length}`,
    "end_of_record",
  ]);
  return records.flat().join("\n");
}
