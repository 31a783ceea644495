/** What a verdict, a start or a result relies on, held against the ledger: the tables are a cache that whoever writes to the database can change. */
import { Refusal } from "../../src/contract/errors.ts";
import type { Host } from "../../src/contract/host.ts";
import type { ActionRow, ApprovalRow, EntryRow, StorageReader } from "../../src/contract/storage.ts";
import { differences, historyOf, type ActionEntry } from "../../src/domain/action-history.ts";
import type { ActionRequest } from "../../src/domain/actions.ts";
import { openEntry } from "../../src/domain/entries.ts";
import { equalBytes, toHex } from "../../src/domain/hash.ts";
import { hashLeaf } from "../../src/domain/merkle.ts";
import { commit, sealRequest } from "../../src/domain/request.ts";

type Reader = Pick<StorageReader, "entriesOfAction">;

/**
 * One read, of the action's own entries. Throws RECORD_ALTERED unless the action, what is asked of whoever decides on
 * it, and the votes are what these say. To be called under the ledger's lock.
 */
export async function assertRecorded(
  host: Pick<Host, "log">,
  tx: Reader,
  row: ActionRow,
  votes?: readonly ApprovalRow[],
): Promise<void> {
  const altered = await alteredIn(tx, row, votes);
  if (altered.length === 0) return;
  tell(host, row, altered);
  throw new Refusal(
    "RECORD_ALTERED",
    `the action ${row.id} in the store is not the one in the ledger (${altered.join(", ")}); nothing was decided, and the operator has to look at the store with assent audit`,
  );
}

/** The same for a look without the lock: false, too, for an action that moves on meanwhile. */
export async function isRecorded(host: Pick<Host, "log" | "storage">, row: ActionRow): Promise<boolean> {
  const altered = await alteredIn(host.storage, row);
  if (altered.length === 0) return true;
  const now = await host.storage.action(row.id);
  if (now?.status === row.status && now.updated_at === row.updated_at) tell(host, row, altered);
  return false;
}

function tell(host: Pick<Host, "log">, row: ActionRow, altered: readonly string[]): void {
  host.log.error("an action in the store is not the one in the ledger; run assent audit", {
    action: row.id,
    altered: altered.join(", "),
  });
}

/** Names of what differs. */
async function alteredIn(tx: Reader, row: ActionRow, votes?: readonly ApprovalRow[]): Promise<string[]> {
  const entries = await tx.entriesOfAction(row.id);
  try {
    return compared(entries, row, votes);
  } catch {
    // What cannot be read any more was not written by the service.
    return ["entries"];
  }
}

function compared(entries: readonly EntryRow[], row: ActionRow, votes?: readonly ApprovalRow[]): string[] {
  const [first] = entries;
  const whole = entries.every(({ bytes, leaf_hash }) => equalBytes(hashLeaf(bytes), leaf_hash));
  const opened = entries.map(({ bytes }) => openEntry<ActionEntry>(bytes));
  const history = first === undefined || !whole ? null : historyOf(opened, toHex(first.leaf_hash));
  if (history === null || history.faults.length > 0) return ["entries"];
  const altered = differences(history.action, row);
  if (commit(row.salt, row.request_hash) !== history.commitment) altered.push("request_hash");
  if (votes === undefined) return altered;
  // People decide on what they are shown.
  if (sealRequest(JSON.parse(row.request) as ActionRequest).hash !== row.request_hash) altered.push("request");
  const same =
    votes.length === history.votes.length &&
    history.votes.every((vote) => votes.some((stored) => differences(vote, stored).length === 0));
  return same ? altered : [...altered, "approvals"];
}
