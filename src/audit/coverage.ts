/**
 * Checks coverage statements: each statement must be consistent and account for every action that, according to the
 * ledger, succeeded in its window.
 */
import type { StorageReader } from "../contract/storage.ts";
import { decodeEntry, type ExecutionEntry } from "../domain/entries.ts";
import { COVERAGE_ENTRY, type CoverageStatement, findStatementFault } from "../domain/effects/coverage-statement.ts";
import { foldName } from "../domain/names.ts";
import { parseRfc3339 } from "../domain/time.ts";
import type { EntryBody, ReportFault } from "./report.ts";

const PAGE = 256;
/** Plugin that stores the list of statements, in documents whose keys begin with `statement/`. */
const PLUGIN = "coverage";

type Reader = Pick<StorageReader, "entries" | "actionsById">;

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
  for (let seq = await findFirstEntry(reader, start, size); seq < size; seq += PAGE) {
    const rows = await reader.entries(seq, Math.min(seq + PAGE, size));
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

/** Returns the sequence number of the first entry at or after a time. Entries are ordered by time. */
export async function findFirstEntry(reader: Pick<Reader, "entries">, at: number, size: number): Promise<number> {
  let [low, high] = [0, size];
  while (low < high) {
    const middle = (low + high) >> 1;
    const [row] = await reader.entries(middle, middle + 1);
    if (row === undefined || row.created_at >= at) high = middle;
    else low = middle + 1;
  }
  return low;
}

function operationKey({ tool, operation }: { tool: string; operation: string }): string {
  return JSON.stringify([foldName(tool), foldName(operation)]);
}

export interface CoverageAuditor {
  fold(body: EntryBody): void;
  /** Recounts the successes of each statement, and compares the stored list of statements with the ledger. */
  check(reader: Reader & Pick<StorageReader, "documents">, fault: ReportFault): Promise<void>;
}

export function createCoverageAuditor(): CoverageAuditor {
  const statements: { seq: number; total: number; window: Pick<CoverageStatement, "from" | "to" | "operations"> }[] =
    [];
  return {
    fold(body) {
      if (body["type"] !== COVERAGE_ENTRY) return;
      const statement = body["data"] as CoverageStatement;
      const contradiction = findStatementFault(statement);
      if (contradiction !== null) throw new RangeError(`a coverage statement contradicts itself: ${contradiction}`);
      const { from, to, operations, actions } = statement;
      statements.push({ seq: body["seq"] as number, total: actions.total, window: { from, to, operations } });
    },
    async check(reader, fault) {
      for (const { seq, total, window } of statements) {
        const counted = await countSuccesses(reader, window, seq);
        if (counted !== total)
          fault(
            `the coverage statement in entry ${seq} accounts for ${total} successes, and the ledger has ${counted} in its window`,
          );
      }
      const listed = new Set<number>();
      for (let after = ""; ;) {
        const page = await reader.documents({
          plugin: PLUGIN,
          prefix: "statement/",
          limit: 100,
          ...(after === "" ? {} : { after }),
        });
        for (const { value } of page) listed.add((JSON.parse(value) as { seq: number }).seq);
        if (page.length < 100) break;
        after = page.at(-1)?.key ?? "";
      }
      for (const { seq } of statements)
        if (!listed.has(seq)) fault(`the store does not list the coverage statement in entry ${seq}`);
      const recorded = new Set(statements.map(({ seq }) => seq));
      for (const seq of listed)
        if (!recorded.has(seq))
          fault(`the store lists a coverage statement in entry ${seq}, which is not a coverage statement`);
    },
  };
}
