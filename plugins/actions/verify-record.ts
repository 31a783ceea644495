/** What a verdict, a start or a result relies on, held against the ledger: the tables are a cache that whoever writes to the database can change. */
import { type DecisionEntry, type Host, decodeEntry, Refusal } from "../../src/plugin.ts";
import {
  type ActionRow,
  type ApprovalRow,
  type EntryRow,
  type StorageReader,
  nullIfCorrupt,
} from "../../src/storage/index.ts";
import {
  type ActionEntry,
  type ActionRequest,
  type Actor,
  type ApprovalEntry,
  commitDigest,
  differingColumns,
  equalBytes,
  type ExecutionEntry,
  hashLeaf,
  buildActionHistory,
  matchesCommitment,
  type RedecisionEntry,
  encodeRequest,
  toHex,
} from "../../src/core.ts";

/** A vote that rejects. */
export type RejectionEntry = ApprovalEntry & { by: Actor };

/** What an action's entries say of it besides its columns. */
export interface VerifiedHistory {
  /** The decision that it was submitted to. */
  first: DecisionEntry;
  /** The newest decision on it. */
  newest: DecisionEntry | RedecisionEntry;
  /** Hashes of the entries by which it may start as it stands: a permit names one of them. */
  grounds: ReadonlySet<string>;
  /** How often it was decided again for a permit. */
  permits: number;
  /** By which it was started. */
  start: ExecutionEntry | null;
  /** The vote that rejected it. */
  rejection: RejectionEntry | null;
  /** Commitment to the result that was reported. */
  result: string | null;
}

type Reader = Pick<StorageReader, "entriesOfAction">;

/**
 * One read, of the action's own entries. Throws RECORD_ALTERED unless the action, what is asked of whoever decides on
 * it, and the votes are what these say. To be called under the ledger's lock.
 * @param votes absent: neither the votes nor the text of the request are looked at
 */
export async function verifyAgainstLedger(
  host: Pick<Host, "log">,
  tx: Reader,
  row: ActionRow,
  votes?: readonly ApprovalRow[],
): Promise<VerifiedHistory> {
  const { recorded, altered } = await alteredIn(tx, row, votes);
  if (altered.length === 0 && recorded !== null) return recorded;
  host.log.error("an action in the store is not the one in the ledger; run assent audit", {
    action: row.id,
    altered: altered.join(", "),
  });
  throw recordAlteredError(row, altered);
}

export function recordAlteredError({ id }: Pick<ActionRow, "id">, altered: readonly string[]): Refusal {
  return new Refusal(
    "RECORD_ALTERED",
    `the action ${id} in the store is not the one in the ledger (${altered.join(", ")}); nothing was decided, and the operator has to look at the store with assent audit`,
  );
}

interface Compared {
  /** Null where the first entry is no decision, or cannot be read. */
  recorded: VerifiedHistory | null;
  /** Names of what differs. */
  altered: string[];
}

async function alteredIn(tx: Reader, row: ActionRow, votes?: readonly ApprovalRow[]): Promise<Compared> {
  // Damaged bytes are this action's fault alone: others are decided in the same batch.
  const entries = await nullIfCorrupt(tx.entriesOfAction(row.id));
  if (entries === null) return { recorded: null, altered: ["entries"] };
  try {
    return compared(entries, row, votes);
  } catch {
    // What cannot be read was not written by the service.
    return { recorded: null, altered: ["entries"] };
  }
}

function compared(entries: readonly EntryRow[], row: ActionRow, votes?: readonly ApprovalRow[]): Compared {
  const [head] = entries;
  const whole = entries.every(({ bytes, leaf_hash }) => equalBytes(hashLeaf(bytes), leaf_hash));
  // What plugins record about an action changes nothing of it.
  const own = entries.filter(({ type }) => !type.includes(":"));
  const opened = own.map(({ bytes }) => decodeEntry<ActionEntry>(bytes));
  const [first] = opened;
  const history = head === undefined || !whole ? null : buildActionHistory(opened, toHex(head.leaf_hash));
  if (history === null || history.faults.length > 0 || first?.type !== "decision")
    return { recorded: null, altered: ["entries"] };
  const hashes = own.map(({ leaf_hash }) => toHex(leaf_hash));
  const recorded: VerifiedHistory = {
    first,
    ...sinceThen(opened, hashes),
    newest: newestOf(opened) ?? first,
    start: startOf(opened),
    rejection: rejectionIn(opened),
    result: history.result,
  };
  const altered = differingColumns(history.action, row);
  if (commitDigest(row.salt, row.request_hash) !== history.commitment) altered.push("request_hash");
  if (votes === undefined) return { recorded, altered };
  // People decide on what they are shown, and so do policies.
  if (encodeRequest(JSON.parse(row.request) as ActionRequest).hash !== row.request_hash) altered.push("request");
  if (!matchesCommitment(first.meta, row.meta)) altered.push("meta");
  const same =
    votes.length === history.votes.length &&
    history.votes.every((vote) => votes.some((stored) => differingColumns(vote, stored).length === 0));
  if (!same) altered.push("approvals");
  return { recorded, altered };
}

function newestOf(entries: readonly ActionEntry[]): RedecisionEntry | null {
  return entries.findLast((entry) => entry.type === "redecision") ?? null;
}

function rejectionIn(entries: readonly ActionEntry[]): RejectionEntry | null {
  const isRejection = (entry: ActionEntry): entry is RejectionEntry & { seq: number } =>
    entry.type === "approval" && entry.verdict === "deny" && entry.status === "denied" && entry.by !== null;
  return entries.find(isRejection) ?? null;
}

function startOf(entries: readonly ActionEntry[]): ExecutionEntry | null {
  const isStart = (entry: ActionEntry): entry is ExecutionEntry & { seq: number } =>
    entry.type === "execution" && entry.phase === "start";
  return entries.find(isStart) ?? null;
}

function sinceThen(
  entries: readonly ActionEntry[],
  hashes: readonly string[],
): Pick<VerifiedHistory, "grounds" | "permits"> {
  const grounds = new Set<string>();
  let permits = 0;
  for (const [i, entry] of entries.entries()) {
    if (entry.type === "redecision" && entry.occasion === "permit") permits++;
    if (entry.type === "execution" || entry.type === "erasure") continue;
    // Whoever waits for approval again is given nothing by what was said before.
    if (entry.status === "pending_approval") grounds.clear();
    else if (entry.type !== "approval" && (entry.status === "allowed" || entry.status === "approved"))
      grounds.add(hashes[i] as string);
  }
  return { grounds, permits };
}
