/**
 * Verifies an action's row and votes against its ledger entries, before votes, starts and results. The tables are only
 * a cache: anyone with write access to the database can change them.
 */
import {
  type ActionEntry,
  type ActionHistory,
  type Decision,
  type CoreHost,
  type DecisionEntry,
  equalBytes,
  type ExecutionEntry,
  findAlteredContent,
  findApprovalTerms,
  findDifferingColumns,
  hashLeaf,
  isRequestForApproval,
  readActionHistory,
  type RedecisionEntry,
  type ReviewEntry,
  toHex,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import {
  type ActionRow,
  type ApprovalRow,
  type EntryRow,
  type StorageReader,
  nullIfCorrupt,
} from "../../src/storage/index.ts";

/** Returns the principal that represents a machine reviewer instead of a person, for example in an earlier rejection. */
export function principalOfReviewer(name: string): string {
  return `reviewer:${name}`;
}

/** The person or machine reviewer who rejected an action, with the comment. */
interface RecordedRejection {
  /** Principal of the voter, or of the machine reviewer. */
  approver: string;
  comment: string | null;
  at: string;
}

/** An action according to its ledger entries. The leaf hash of each entry has been verified. */
export interface VerifiedHistory extends ActionHistory {
  /**
   * The decision that counts against limits: the first decision, or the decision on a request that an approver changed.
   */
  basis: DecisionEntry | RedecisionEntry;
  /** The latest decision or redecision. */
  newest: DecisionEntry | RedecisionEntry;
  /**
   * Hash of the newest entry that made the action pending, which approvers sign. Lowercase hex; null if there is none.
   */
  askedHash: string | null;
  /**
   * Times of the entries that permit the start, by their hashes. A valid permit contains the hash of one of these
   * entries.
   */
  grounds: ReadonlyMap<string, number>;
  /** Number of redecisions for a permit. */
  permits: number;
  /** Whether a permit may exist. The response to an allowed submission can contain one, which no entry records. */
  mayHavePermit: boolean;
  start: ExecutionEntry | null;
  /** The vote, or the answer of a machine reviewer, that rejected the action. */
  rejection: RecordedRejection | null;
  /** The answers of machine reviewers to all requests for approval of the action. */
  reviews: readonly ReviewEntry[];
  /** The decision and redecisions that made the action pending, in order. */
  requests: readonly (DecisionEntry | RedecisionEntry)[];
  /** See `findApprovalTerms`. */
  terms: Decision["approval"];
}

type Reader = Pick<StorageReader, "entriesOfAction">;

/**
 * Reads the action's entries once and compares them with the row and the votes. Throws RECORD_ALTERED if they differ.
 * Call it under the ledger's lock.
 * @param votes votes to compare; if absent, the votes and the texts of the request, `meta` and the questions are not
 * compared
 */
export async function verifyAgainstLedger(
  host: Pick<CoreHost, "log">,
  tx: Reader,
  row: ActionRow,
  votes?: readonly ApprovalRow[],
): Promise<VerifiedHistory> {
  const { recorded, altered } = await compareWithLedger(tx, row, votes);
  if (altered.length === 0 && recorded !== null) return recorded;
  host.log.error("an action in the store differs from the ledger; run assent audit", {
    action: row.id,
    altered: altered.join(", "),
  });
  throw recordAlteredError(row, altered);
}

/**
 * Throws RECORD_ALTERED unless the request, the metadata, the result, the questions and the past data match the
 * commitments in the entries. Without this check, altered content could be erased although the original mentions a
 * person under a legal hold.
 */
export function verifyStoredContent(row: ActionRow, history: VerifiedHistory): void {
  const altered = findAlteredContent(row, history, ["request", "meta", "result", "questions", "past"]);
  if (altered.length > 0) throw recordAlteredError(row, altered);
}

/**
 * Returns the state of the action according to its entries; null if a column of the row differs from them. Background
 * tasks skip such a row, because an altered row is evidence.
 */
export async function findMatchingHistory(
  host: Pick<CoreHost, "log">,
  tx: Reader,
  row: ActionRow,
): Promise<VerifiedHistory | null> {
  try {
    return await verifyAgainstLedger(host, tx, row);
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/**
 * Returns the state of the action according to its entries, without comparing it with the row. Null if the entries are
 * missing, damaged or contradict each other.
 */
export async function readVerifiedHistory(reader: Reader, row: ActionRow): Promise<VerifiedHistory | null> {
  return (await compareWithLedger(reader, row)).recorded;
}

/** @param altered the parts that differ */
export function recordAlteredError({ id }: Pick<ActionRow, "id">, altered: readonly string[]): Refusal {
  return new Refusal(
    "RECORD_ALTERED",
    `the action ${id} in the store differs from the ledger (${altered.join(", ")}), so nothing was changed; the operator has to run assent audit`,
  );
}

interface RecordComparison {
  /** Null if the first entry is not a decision, or cannot be parsed. */
  recorded: VerifiedHistory | null;
  /** Names of the parts that differ. */
  altered: string[];
}

async function compareWithLedger(
  tx: Reader,
  row: ActionRow,
  votes?: readonly ApprovalRow[],
): Promise<RecordComparison> {
  // Damaged entries affect this action only, not the others of the batch.
  const entries = await nullIfCorrupt(tx.entriesOfAction(row.id));
  if (entries === null) return { recorded: null, altered: ["entries"] };
  try {
    return compareEntries(entries, row, votes);
  } catch {
    // The service's own entries can always be parsed, so someone altered these.
    return { recorded: null, altered: ["entries"] };
  }
}

function compareEntries(
  entries: readonly EntryRow[],
  row: ActionRow,
  votes?: readonly ApprovalRow[],
): RecordComparison {
  const hashesMatch = entries.every(({ bytes, leaf_hash }) => equalBytes(hashLeaf(bytes), leaf_hash));
  const history = hashesMatch ? readActionHistory(entries) : null;
  if (history === null || history.faults.length > 0) return { recorded: null, altered: ["entries"] };
  const { first, entries: opened } = history;
  // Entries of plugins do not change the action.
  const hashes = entries.filter(({ type }) => !type.includes(":")).map(({ leaf_hash }) => toHex(leaf_hash));
  const recorded: VerifiedHistory = {
    ...history,
    basis: history.edit?.entry ?? first,
    askedHash: hashes[opened.findLastIndex(isRequestForApproval)] ?? null,
    requests: opened.filter(isRequestForApproval),
    terms: findApprovalTerms(opened),
    reviews: opened.filter((entry) => entry.type === "review"),
    ...findPermitGrounds(opened, hashes),
    newest: opened.findLast((entry) => entry.type === "redecision") ?? first,
    start: findStart(opened),
    rejection: findRejection(opened),
  };
  const altered = [
    ...findDifferingColumns(history.action, row),
    ...findAlteredContent(row, history, votes === undefined ? ALWAYS_COMPARED : COMPARED_WITH_VOTES),
  ];
  if (votes === undefined) return { recorded, altered };
  const votesMatch =
    votes.length === history.votes.length &&
    history.votes.every((vote) => votes.some((stored) => findDifferingColumns(vote, stored).length === 0));
  if (!votesMatch) altered.push("approvals");
  return { recorded, altered };
}

const ALWAYS_COMPARED = ["request_hash", "effective"] as const;
/** Adds the columns whose texts approvers and policies read. */
const COMPARED_WITH_VOTES = [...ALWAYS_COMPARED, "request", "meta", "questions"] as const;

function findRejection(entries: readonly ActionEntry[]): RecordedRejection | null {
  for (const entry of entries) {
    if ((entry.type !== "approval" && entry.type !== "review") || entry.status !== "denied") continue;
    const { comment, at } = entry;
    if (entry.type === "review") return { approver: principalOfReviewer(entry.reviewer), comment, at };
    if (entry.verdict === "deny" && entry.by !== null) return { approver: entry.by.principal, comment, at };
  }
  return null;
}

function findStart(entries: readonly ActionEntry[]): ExecutionEntry | null {
  const isStart = (entry: ActionEntry): entry is ExecutionEntry & { seq: number } =>
    entry.type === "execution" && entry.phase === "start";
  return entries.find(isStart) ?? null;
}

function findPermitGrounds(
  entries: readonly ActionEntry[],
  hashes: readonly string[],
): Pick<VerifiedHistory, "grounds" | "permits" | "mayHavePermit"> {
  const grounds = new Map<string, number>();
  let permits = 0;
  let mayHavePermit = false;
  for (const [i, entry] of entries.entries()) {
    if (entry.type === "redecision" && entry.occasion === "permit") permits++;
    if (entry.type !== "decision" && entry.type !== "redecision" && entry.type !== "approval") continue;
    // When an action returns to pending, its earlier permits become invalid.
    if (entry.status === "pending_approval") grounds.clear();
    else if (entry.type !== "approval" && (entry.status === "allowed" || entry.status === "approved")) {
      grounds.set(hashes[i] as string, Date.parse(entry.at));
      mayHavePermit = true;
    }
  }
  return { grounds, permits, mayHavePermit };
}
