/**
 * Whether the store still is the one that this process has seen. A database behind a network can become another one:
 * after a failover to a standby that lacks the tail, what was answered and signed is gone, and to go on would fork the
 * log. Every head that is read must go on from those read before, and every new connection shows that it does.
 */
import { StorageError, type LedgerHead, type StorageReader, type StoredHead } from "../../contract/storage.ts";
import { equalBytes } from "../../domain/hash.ts";
import { appendToEdge, rootFromEdge } from "../../domain/merkle.ts";
import type { SignedCheckpoint } from "../../contract/ledger.ts";
import { createProofReader } from "../reader.ts";

export interface Continuity {
  /** The newest head that this process has read, committed or signed. */
  seen(): LedgerHead;
  /** Takes a head that this process has committed, or has found to go on. */
  took(head: LedgerHead): void;
  /** The head that `read` gives. Rejects with StorageError "corrupt" when it lies before or beside what was seen when the read began. */
  observe(read: () => Promise<StoredHead>): Promise<StoredHead>;
  /** Resolves when the tree behind a new connection contains what was seen. Rejects with StorageError "corrupt". */
  check(reader: StorageReader): Promise<void>;
}

/** False when the head lies before the earlier one or beside it. A larger one may, for all that this tells, be another history. */
export function mayFollow(earlier: LedgerHead, head: LedgerHead): boolean {
  return head.size > earlier.size || (head.size === earlier.size && equalBytes(head.root, earlier.root));
}

export function sameHead(a: LedgerHead, b: LedgerHead): boolean {
  return a.size === b.size && equalBytes(a.root, b.root) && a.policy_set === b.policy_set && a.epoch === b.epoch;
}

/** What a process holds itself to. */
export interface TrustedHistory {
  /** True when `head` extends what this process has signed. Reads its way through the tree. */
  extendsHistory(head: LedgerHead): Promise<boolean>;
  /** Root of the stored tree when it had this size. */
  rootAt(size: number): Promise<Uint8Array>;
  /** The newest checkpoint that this process has signed. */
  signed(): SignedCheckpoint | null;
  /** The newest head that this process has read. */
  seen(): LedgerHead;
}

/** Others' entries that are hashed one by one to see that a head goes on from the last known one. */
const NEAR = 4096;

/**
 * True when the head extends the trusted one, and everything that this process has signed or seen. Mostly by one read of
 * the leaves that others appended: the trusted tree with these leaves must become the head's tree, and pass through the
 * signed and the seen one.
 */
export async function goesOn(
  reader: Pick<StorageReader, "leafHashes">,
  trusted: LedgerHead,
  head: LedgerHead,
  history: TrustedHistory,
): Promise<boolean> {
  const missing = head.size - trusted.size;
  // Policies, keys and agents change with an entry: a head of the same size is the same head.
  if (missing < 0 || (missing === 0 && !sameHead(head, trusted))) return false;
  const seen = history.seen();
  const signed = history.signed();
  if (missing > NEAR)
    return (
      (await history.extendsHistory(head)) &&
      equalBytes(await history.rootAt(trusted.size), trusted.root) &&
      equalBytes(await history.rootAt(seen.size), seen.root)
    );
  const passed = [seen, ...(signed === null ? [] : [signed])];
  if (passed.some(({ size }) => size > head.size)) return false;
  const hashes = missing === 0 ? [] : await reader.leafHashes(trusted.size, head.size);
  if (hashes.length !== missing) return false;
  let edge = trusted.edge;
  // The trusted tree contains whatever is not larger than it.
  for (const [i, hash] of hashes.entries()) {
    edge = appendToEdge(edge, trusted.size + i, hash);
    const size = trusted.size + i + 1;
    if (passed.some((one) => one.size === size && !equalBytes(rootFromEdge(edge), one.root))) return false;
  }
  return edge.length === head.edge.length && edge.every((hash, i) => equalBytes(hash, head.edge[i] as Uint8Array));
}

/** @param reader reads the store outside of transactions */
export function createContinuity(start: StoredHead, reader: StorageReader): Continuity {
  let seen: LedgerHead = start;
  /** The database that was found to contain what was seen. */
  let incarnation = start.server?.incarnation;

  function took(head: LedgerHead): void {
    if (head.size > seen.size) seen = head;
  }

  async function observe(read: () => Promise<StoredHead>): Promise<StoredHead> {
    // Two reads may end in another order than they began in: only what was seen before this one must be in it.
    const before = seen;
    const head = await read();
    if (!mayFollow(before, head)) throw lostHistory(before, head);
    // A connection can outlive a restore into the running server.
    if (head.server !== undefined && head.server.incarnation !== incarnation) {
      if (!(await contains(reader, head, before))) throw lostHistory(before, head);
      incarnation = head.server.incarnation;
    }
    took(head);
    return head;
  }

  return {
    seen: () => seen,
    took,
    observe,
    async check(connection) {
      const before = seen;
      const head = await connection.head();
      if (!(await contains(connection, head, before))) throw lostHistory(before, head);
    },
  };
}

async function contains(reader: StorageReader, head: LedgerHead, before: LedgerHead): Promise<boolean> {
  if (!mayFollow(before, head)) return false;
  return head.size === before.size || equalBytes(await createProofReader(reader).rootAt(before.size), before.root);
}

function lostHistory(seen: LedgerHead, head: LedgerHead): StorageError {
  return new StorageError(
    "corrupt",
    `the store holds ${head.size} entries and does not go on from the ${seen.size} that this process has seen: an older copy or another history has taken its place, such as a standby that lacks the tail; nothing is read from it or written to it. Bring the right one back, or restart to go on from this one after an audit`,
  );
}
