/** Reads which actions were started, and their results, from the ledger. */
import {
  type CoreHost,
  decodeEntry,
  decodeSeqCursor,
  effectiveRequest,
  redactRow,
  type ExecutionEntry,
  findFirstEntry,
} from "../../src/core.ts";
import { parseRfc3339, Refusal } from "../../src/plugin.ts";

const PAGE_SIZE = 250;
/** Maximum number of entries that one request reads. */
const MAX_READ = 20_000;

interface ExecutionPage {
  since: string;
  until: string;
  limit: number;
  cursor?: string;
}

/**
 * Returns a page of executions in the order of the ledger, and the sequence number to continue from; null at the end.
 */
export async function listExecutions(
  host: CoreHost,
  query: ExecutionPage,
): Promise<{ executions: object[]; next: number | null }> {
  const [since, until] = [parseRfc3339(query.since) ?? 0, parseRfc3339(query.until) ?? 0];
  if (since >= until)
    throw new Refusal("VALIDATION_FAILED", `since must be earlier than until; got ${query.since} and ${query.until}`, {
      errors: [{ parameter: "since", detail: "a time before until" }],
    });
  const { size } = await host.ledger.head();
  const first =
    query.cursor === undefined
      ? await findFirstEntry(host.storage, since, size)
      : decodeSeqCursor("executions", query.cursor);
  const executions: object[] = [];
  for (let seq = first; seq < size;) {
    if (executions.length >= query.limit || seq - first >= MAX_READ) return { executions, next: seq };
    await host.waitForReadSlot();
    // Read at most as many entries as fit on the page, so that it cannot become full in the middle of a read.
    const rows = await host.storage.entries(
      seq,
      Math.min(seq + Math.min(PAGE_SIZE, query.limit - executions.length), size),
    );
    if (rows.length === 0) break;
    const entries = rows
      .filter(({ type, created_at }) => type === "execution" && created_at >= since && created_at < until)
      .map((row) => decodeEntry<ExecutionEntry>(row.bytes));
    const actions = new Map(
      entries.length === 0
        ? []
        : (await host.storage.actionsById(entries.map(({ action_id }) => action_id))).map(
            (row) => [row.id, row] as const,
          ),
    );
    const { compiled } = await host.policies.current();
    for (const { seq: index, phase, at, action_id, success } of entries) {
      const action = actions.get(action_id);
      if (action === undefined)
        throw new Refusal("RECORD_ALTERED", `the store lacks the action of entry ${index}; run assent audit`);
      const displayed = redactRow(compiled, action);
      const request = action.erased_at === null ? effectiveRequest(displayed) : null;
      const { tool, operation } = action;
      executions.push({ seq: index, action_id, phase, at, success, tool, operation, params: request?.params ?? null });
    }
    if ((rows.at(-1)?.created_at ?? 0) >= until) return { executions, next: null };
    seq += rows.length;
  }
  return { executions, next: null };
}
