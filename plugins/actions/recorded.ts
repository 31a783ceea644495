/** What a verdict, a start or a result relies on, held against the ledger: the tables are a cache that whoever writes to the database can change. */
import { Refusal } from "../../src/contract/errors.ts";
import type { Host } from "../../src/contract/host.ts";
import type { ActionRow, ApprovalRow, EntryRow, StorageReader } from "../../src/contract/storage.ts";
import { differences, historyOf, type ActionEntry } from "../../src/domain/action-history.ts";
import type { ActionRequest } from "../../src/domain/actions.ts";
import { openEntry, type DecisionEntry } from "../../src/domain/entries.ts";
import { opensKept } from "../../src/domain/kept.ts";
import { equalBytes, toHex } from "../../src/domain/hash.ts";
import { hashLeaf } from "../../src/domain/merkle.ts";
import { commit, sealRequest } from "../../src/domain/request.ts";

type Reader = Pick<StorageReader, "entriesOfAction">;

/**
 * One read, of the action's own entries. Throws RECORD_ALTERED unless the action, what is asked of whoever decides on
 * it, and the votes are what these say. Answers the entry of its decision. To be called under the ledger's lock.
 * @param votes absent: neither the votes nor the text of the request are looked at
 */
export async function assertRecorded(
  host: Pick<Host, "log">,
  tx: Reader,
  row: ActionRow,
  votes?: readonly ApprovalRow[],
): Promise<DecisionEntry> {
  const { first, altered } = await alteredIn(tx, row, votes);
  if (altered.length === 0 && first !== null) return first;
  tell(host, row, altered);
  throw new Refusal(
    "RECORD_ALTERED",
    `the action ${row.id} in the store is not the one in the ledger (${altered.join(", ")}); nothing was decided, and the operator has to look at the store with assent audit`,
  );
}

/** The same for a look without the lock: false, too, for an action that moves on meanwhile. */
export async function isRecorded(host: Pick<Host, "log" | "storage">, row: ActionRow): Promise<boolean> {
  const { altered } = await alteredIn(host.storage, row);
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

interface Compared {
  /** Null where the first entry is no decision, or cannot be read. */
  first: DecisionEntry | null;
  /** Names of what differs. */
  altered: string[];
}

async function alteredIn(tx: Reader, row: ActionRow, votes?: readonly ApprovalRow[]): Promise<Compared> {
  const entries = await tx.entriesOfAction(row.id);
  try {
    return compared(entries, row, votes);
  } catch {
    // What cannot be read was not written by the service.
    return { first: null, altered: ["entries"] };
  }
}

function compared(entries: readonly EntryRow[], row: ActionRow, votes?: readonly ApprovalRow[]): Compared {
  const [head] = entries;
  const whole = entries.every(({ bytes, leaf_hash }) => equalBytes(hashLeaf(bytes), leaf_hash));
  // What plugins record about an action changes nothing of it.
  const opened = entries.filter(({ type }) => !type.includes(":")).map(({ bytes }) => openEntry<ActionEntry>(bytes));
  const [first] = opened;
  const history = head === undefined || !whole ? null : historyOf(opened, toHex(head.leaf_hash));
  if (history === null || history.faults.length > 0 || first?.type !== "decision")
    return { first: null, altered: ["entries"] };
  const altered = differences(history.action, row);
  if (commit(row.salt, row.request_hash) !== history.commitment) altered.push("request_hash");
  if (votes === undefined) return { first, altered };
  // People decide on what they are shown, and so do policies.
  if (sealRequest(JSON.parse(row.request) as ActionRequest).hash !== row.request_hash) altered.push("request");
  if (!opensKept(first.meta, row.meta)) altered.push("meta");
  const same =
    votes.length === history.votes.length &&
    history.votes.every((vote) => votes.some((stored) => differences(vote, stored).length === 0));
  if (!same) altered.push("approvals");
  return { first, altered };
}
