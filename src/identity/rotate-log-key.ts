/** Changes the key of the log with one entry, which contains a handover signed by both keys. */
import type { Ledger } from "../contract/ledger.ts";
import { formatVkey, parseVkey } from "../domain/checkpoint.ts";
import { toHex } from "../domain/hash.ts";
import { currentVkey, signHandover, listVkeys, type LogKeyChange } from "../domain/log-keys.ts";
import { toRfc3339 } from "../domain/time.ts";
import type { LogKeyBook } from "../ledger/sign/log-key-book.ts";
import { VaultError } from "./key-files.ts";
import type { LogKeyring } from "./log-keyring.ts";

export interface LogKeyRotation {
  /** Overlap, from now, in which the current key still cosigns. Milliseconds. */
  overlap: number;
  /** Whether to allow the change even if the predecessor of the current key still cosigns. */
  again: boolean;
}

export interface RotatedLogKey extends LogKeyChange {
  /**
   * False if nothing was recorded, because the log already has this key or the overlap of its latest change has not
   * ended.
   */
  recorded: boolean;
}

interface RotatedLog {
  ledger: Pick<Ledger, "checkpoint" | "transact" | "origin">;
  book: LogKeyBook;
  ring: LogKeyring;
  /** Returns true if this public key, in hex, has signed permits. */
  signsPermits(publicKey: string): boolean;
  clock(): number;
}

/**
 * Changes the key of the log. Resolves to the latest change of key. Safe to repeat after an interruption, because a
 * change that is already recorded is not recorded twice. Rejects with VaultError, and records nothing, if the key is
 * unsuitable.
 */
export async function rotateLogKey(
  { ledger, book, ring, signsPermits, clock }: RotatedLog,
  { overlap, again }: LogKeyRotation,
): Promise<RotatedLogKey> {
  const { origin } = ledger;
  // Sign a committed head, because it can no longer change. This adds no risk, because the current key signs committed
  // heads in any case.
  const signed = await ledger.checkpoint();
  const previous = currentVkey(book.keys());
  const last = book.keys().changes.at(-1);
  if (last !== undefined && !again && last.previous_until > clock()) return { ...last, recorded: false };
  const publicKey = ring.next();
  const vkey = formatVkey(origin, publicKey);
  if (last !== undefined && vkey === previous && !again) return { ...last, recorded: false };
  if (listVkeys(book.keys()).includes(vkey))
    throw new VaultError("the log was signed with this key before: name another one with ledger.next_key");
  if (signsPermits(toHex(publicKey))) throw new VaultError("this key signs permits: the log has one of its own");
  const ends = { vkey: previous, signer: signerOf(ring, previous) };
  const follows = { vkey, signer: signerOf(ring, vkey) };
  const handover = signHandover({ origin, size: signed.size, root: signed.root }, ends, follows);
  const change = await ledger.transact((tx) => {
    if (currentVkey(book.keys()) !== previous)
      throw new VaultError("someone else has just changed the log's key; check the change, then run the command again");
    const previous_until = tx.now + overlap;
    const { seq } = tx.record({
      type: "log_key",
      v: 1,
      at: toRfc3339(tx.now),
      vkey,
      previous,
      previous_until: toRfc3339(previous_until),
      handover,
      by: null,
    });
    return Promise.resolve({ seq, vkey, previous, previous_until });
  });
  ring.settle(origin, publicKey);
  return { ...change, recorded: true };
}

function signerOf(ring: LogKeyring, vkey: string): NonNullable<ReturnType<LogKeyring["signer"]>> {
  const { name, publicKey } = parseVkey(vkey);
  const signer = ring.signer(name, publicKey);
  if (signer === null) throw new VaultError(`this process does not have the private key of ${vkey}`);
  return signer;
}
