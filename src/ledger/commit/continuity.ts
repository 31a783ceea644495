/**
 * Detects that the database was replaced by a database with a different history. After a failover to a standby that
 * lacks the newest entries, decisions and signatures are lost, and new entries would fork the log. Therefore every head
 * must extend the heads that were read earlier, which is verified on every new connection. The service must also have
 * written each head, which its seal proves: anyone who can write to the database can append consistent entries.
 */
import type { RowSeals } from "../../contract/row-seals.ts";
import { StorageError, type LedgerHead, type StorageReader, type StoredHead } from "../../contract/storage.ts";
import { equalBytes } from "../../domain/hash.ts";
import { appendToEdge, rootFromEdge } from "../../domain/merkle.ts";
import type { SignedCheckpoint } from "../../contract/ledger.ts";
import { createProofReader } from "../reader.ts";

export interface Continuity {
  /** Returns the newest head that this process has read, committed or signed. */
  seen(): LedgerHead;
  /** Records a head that this process has committed or verified. */
  advance(head: LedgerHead): void;
  /**
   * Calls `read` and returns its head. Rejects with StorageError "corrupt" if the head is smaller than a head that was
   * known before the read, contradicts it, or was not written by the service.
   */
  observe(read: () => Promise<StoredHead>): Promise<StoredHead>;
  /**
   * Verifies that the tree on a new connection contains every head that was read so far. Rejects with StorageError
   * "corrupt".
   */
  check(reader: StorageReader): Promise<void>;
}

/**
 * Returns false if `head` is smaller than `earlier` or contradicts it. True does not prove that a larger head has the same
 * history.
 */
export function canExtend(earlier: LedgerHead, head: LedgerHead): boolean {
  return head.size > earlier.size || (head.size === earlier.size && equalBytes(head.root, earlier.root));
}

export function isSameHead(a: LedgerHead, b: LedgerHead): boolean {
  return (
    a.size === b.size &&
    equalBytes(a.root, b.root) &&
    a.policy_set === b.policy_set &&
    a.epoch === b.epoch &&
    equalBytes(a.followed_digest, b.followed_digest)
  );
}

/** The history that this process has signed or read. Every later head must extend it. */
export interface TrustedHistory {
  /**
   * Returns true if `head` extends the newest checkpoint that this process has signed. Compares the checkpoint's root
   * with the root that the stored tree had at that size.
   */
  extendsHistory(head: LedgerHead): Promise<boolean>;
  /** Returns the root that the stored tree had at this size. */
  rootAt(size: number): Promise<Uint8Array>;
  /** Returns the newest checkpoint that this process has signed; null if there is none. */
  signed(): SignedCheckpoint | null;
  /** Returns the newest head that this process has read. */
  seen(): LedgerHead;
}

/**
 * Maximum number of entries of other processes for which leaf hashes are read to verify a head. For more entries, roots
 * of the stored tree are compared instead.
 */
const MAX_HASHES_READ = 4096;

/**
 * Returns true if the head extends the trusted head, and the newest heads that this process has signed and read.
 * Usually reads only the leaf hashes that other processes appended. Appending these hashes to the trusted tree must
 * produce the signed tree, the newest tree that was read, and the head.
 */
export async function extendsTrustedHead(
  reader: Pick<StorageReader, "leafHashes">,
  trusted: LedgerHead,
  head: LedgerHead,
  history: TrustedHistory,
): Promise<boolean> {
  const missing = head.size - trusted.size;
  // Every change of policies, keys and agents adds an entry, so heads of the same size must be equal.
  if (missing < 0 || (missing === 0 && !isSameHead(head, trusted))) return false;
  const seen = history.seen();
  const signed = history.signed();
  if (missing > MAX_HASHES_READ)
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
  // Trees that are smaller than the trusted tree do not have to be verified again.
  for (const [i, hash] of hashes.entries()) {
    edge = appendToEdge(edge, trusted.size + i, hash);
    const size = trusted.size + i + 1;
    if (passed.some((tree) => tree.size === size && !equalBytes(rootFromEdge(edge), tree.root))) return false;
  }
  return edge.length === head.edge.length && edge.every((hash, i) => equalBytes(hash, head.edge[i] as Uint8Array));
}

/**
 * @param start a head whose seal the caller verifies
 * @param reader a reader of the store outside transactions
 * @param epochChanged called after the first head of each new epoch was recorded; must not throw
 */
export function createContinuity(
  start: StoredHead,
  reader: StorageReader,
  seals: Pick<RowSeals, "isOwnHead">,
  epochChanged: () => void,
): Continuity {
  let seen: LedgerHead = start;
  /** Incarnation of the running database, which was verified to contain every head that this process has read. */
  let incarnation = start.server?.incarnation;

  function advance(head: LedgerHead): void {
    if (head.size <= seen.size) return;
    const { epoch } = seen;
    seen = head;
    if (head.epoch !== epoch) epochChanged();
  }

  async function observe(read: () => Promise<StoredHead>): Promise<StoredHead> {
    // Concurrent reads can end in a different order, so the head must extend only the heads that were known before this
    // read.
    const before = seen;
    const head = await read();
    if (!canExtend(before, head)) throw lostHistoryError(before, head);
    if (!isSameHead(head, before) && !seals.isOwnHead(head))
      throw new StorageError("corrupt", describeForeignHead(head));
    // The incarnation can also change without a new connection, when a backup is restored into the running server.
    if (head.server !== undefined && head.server.incarnation !== incarnation) {
      if (!(await containsHead(reader, head, before))) throw lostHistoryError(before, head);
      incarnation = head.server.incarnation;
    }
    advance(head);
    return head;
  }

  return {
    seen: () => seen,
    advance,
    observe,
    async check(connection) {
      const before = seen;
      const head = await connection.head();
      if (!(await containsHead(connection, head, before))) throw lostHistoryError(before, head);
    },
  };
}

async function containsHead(reader: StorageReader, head: LedgerHead, before: LedgerHead): Promise<boolean> {
  if (!canExtend(before, head)) return false;
  return head.size === before.size || equalBytes(await createProofReader(reader).rootAt(before.size), before.root);
}

/** Returns the fault of a head that the service did not write. */
export function describeForeignHead({ size }: Pick<LedgerHead, "size">): string {
  return `the ledger's head (size ${size}) was not written by this service: its seal does not match. Someone changed the database, or the head, the active policies or entries in it, outside the service. Restore a backup, or run assent audit`;
}

function lostHistoryError(seen: LedgerHead, head: LedgerHead): StorageError {
  return new StorageError(
    "corrupt",
    `the store has ${head.size} entries and does not continue the ${seen.size} entries that this process has seen: it was replaced by an older copy or another history, such as a standby that lacks the newest entries. The process neither reads nor writes it. Restore the right database, or audit this one and restart to continue with it`,
  );
}
