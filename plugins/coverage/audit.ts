/**
 * Checks coverage statements: each statement must be consistent and account for every action that, according to the
 * ledger, succeeded in its window.
 */
import { decodeEntry, type ExecutionEntry, findFirstEntry, foldName } from "../../src/core.ts";
import { type FeatureAuditor, type FeatureStore, parseRfc3339 } from "../../src/plugin.ts";
import { COVERAGE_ENTRY, type CoverageStatement, findStatementFault } from "./coverage-statement.ts";

const PAGE_SIZE = 256;
/** Prefix of the keys of the documents that list the statements. */
export const STATEMENT_PREFIX = "statement/";

type Reader = Pick<FeatureStore, "entries" | "actionsById">;

/**
 * Counts the actions of these operations whose success was recorded in the window. Reads the first `size` entries of
 * the ledger.
 */
export async function countSuccesses(
  reader: Reader,
  { from, to, operations }: Pick<CoverageStatement, "from" | "to" | "operations">,
  size: number,
): Promise<number> {
  const names = new Set(operations.map(operationKey));
  const [start, end] = [parseRfc3339(from) ?? 0, parseRfc3339(to) ?? 0];
  let count = 0;
  for (let seq = await findFirstEntry(reader, start, size); seq < size; seq += PAGE_SIZE) {
    const rows = await reader.entries(seq, Math.min(seq + PAGE_SIZE, size));
    const ids = rows
      .filter((row) => row.type === "execution" && row.created_at >= start && row.created_at < end)
      .map(({ bytes }) => decodeEntry<ExecutionEntry>(bytes))
      .filter(({ phase, success }) => phase === "result" && success === true)
      .map(({ action_id }) => action_id);
    const actions = ids.length === 0 ? [] : await reader.actionsById(ids);
    count += actions.filter((action) => names.has(operationKey(action))).length;
    if ((rows.at(-1)?.created_at ?? Infinity) >= end) break;
  }
  return count;
}

function operationKey({ tool, operation }: { tool: string; operation: string }): string {
  return JSON.stringify([foldName(tool), foldName(operation)]);
}

/** Recounts the successes of each statement, and compares the stored list of statements with the ledger. */
export function coverageAuditor(): FeatureAuditor {
  const statements: { seq: number; total: number; window: Pick<CoverageStatement, "from" | "to" | "operations"> }[] =
    [];
  return {
    check(entry) {
      const { type, data: statement, seq } = entry as typeof entry & { data: CoverageStatement };
      if (type !== COVERAGE_ENTRY) return;
      const contradiction = findStatementFault(statement);
      if (contradiction !== null) throw new RangeError(`a coverage statement contradicts itself: ${contradiction}`);
      const { from, to, operations, actions } = statement;
      statements.push({ seq, total: actions.total, window: { from, to, operations } });
    },
    async compare(reader, fault) {
      for (const { seq, total, window } of statements) {
        const counted = await countSuccesses(reader, window, seq);
        if (counted !== total)
          fault(
            `the coverage statement in entry ${seq} accounts for ${total} successes, and the ledger has ${counted} in its window`,
          );
      }
      const listed = await readList(reader);
      for (const { seq } of statements)
        if (!listed.has(seq)) fault(`the store does not list the coverage statement in entry ${seq}`);
      const recorded = new Set(statements.map(({ seq }) => seq));
      for (const seq of listed)
        if (!recorded.has(seq))
          fault(`the store lists a coverage statement in entry ${seq}, which is not a coverage statement`);
    },
  };
}

/** Returns the sequence numbers in the stored list of statements. */
async function readList(reader: Pick<FeatureStore, "documents">): Promise<ReadonlySet<number>> {
  const listed = new Set<number>();
  for (let after = ""; ;) {
    const page = await reader.documents({
      plugin: "coverage",
      prefix: STATEMENT_PREFIX,
      limit: 100,
      ...(after === "" ? {} : { after }),
    });
    for (const { value } of page) listed.add((JSON.parse(value) as { seq: number }).seq);
    if (page.length < 100) return listed;
    after = page.at(-1)?.key ?? "";
  }
}
