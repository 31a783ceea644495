/**
 * Whether the store still is the one that this process has seen. A database behind a network can become another one:
 * after a failover to a standby that lacks the tail, what was answered and signed is gone, and to go on would fork the
 * log. Every head that is read must go on from those read before, and every new connection shows that it does.
 */
import { StorageError, type LedgerHead, type StorageReader } from "../contract/storage.ts";
import { equalBytes } from "../domain/hash.ts";
import { createProofReader } from "./reader.ts";

export interface Continuity {
  /** The newest head that this process has read, committed or signed. */
  seen(): LedgerHead;
  /** Takes a head that this process has committed, or has found to go on. */
  took(head: LedgerHead): void;
  /** The head that `read` gives. Rejects with StorageError "corrupt" when it lies before or beside what was seen when the read began. */
  observe(read: () => Promise<LedgerHead>): Promise<LedgerHead>;
  /** Resolves when the tree behind a new connection contains what was seen. Rejects with StorageError "corrupt". */
  check(reader: StorageReader): Promise<void>;
}

/** False when the head lies before the earlier one or beside it. A larger one may, for all that this tells, be another history. */
export function mayFollow(earlier: LedgerHead, head: LedgerHead): boolean {
  return head.size > earlier.size || (head.size === earlier.size && equalBytes(head.root, earlier.root));
}

export function createContinuity(start: LedgerHead): Continuity {
  let seen = start;

  function took(head: LedgerHead): void {
    if (head.size > seen.size) seen = head;
  }

  async function observe(read: () => Promise<LedgerHead>): Promise<LedgerHead> {
    // Two reads may end in another order than they began in: only what was seen before this one must be in it.
    const before = seen;
    const head = await read();
    if (!mayFollow(before, head)) throw lostHistory(before, head);
    took(head);
    return head;
  }

  return {
    seen: () => seen,
    took,
    observe,
    async check(reader) {
      const before = seen;
      const head = await reader.head();
      const holds =
        mayFollow(before, head) &&
        (head.size === before.size || equalBytes(await createProofReader(reader).rootAt(before.size), before.root));
      if (!holds) throw lostHistory(before, head);
    },
  };
}

function lostHistory(seen: LedgerHead, head: LedgerHead): StorageError {
  return new StorageError(
    "corrupt",
    `the store holds ${head.size} entries and does not go on from the ${seen.size} that this process has seen: an older copy or another history has taken its place, such as a standby that lacks the tail; nothing is read from it or written to it. Bring the right one back, or restart to go on from this one after an audit`,
  );
}
