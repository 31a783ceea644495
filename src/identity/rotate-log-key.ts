/** Makes another key the log's: one entry, which the key before signs. */
import type { Ledger } from "../contract/ledger.ts";
import { formatVkey, parseVkey } from "../domain/checkpoint.ts";
import { toHex } from "../domain/hash.ts";
import { currentVkey, signHandover, listVkeys, type LogKeyChange } from "../domain/log-keys.ts";
import { toRfc3339 } from "../domain/time.ts";
import type { LogKeyBook } from "../ledger/sign/log-key-book.ts";
import { VaultError } from "./key-files.ts";
import type { LogKeyring } from "./log-keyring.ts";

export interface LogKeyRotation {
  /** Milliseconds from now for which the present key signs along. */
  overlap: number;
  /** Also while the key before the present one still signs along. */
  again: boolean;
}

export interface RotatedLogKey extends LogKeyChange {
  /** False where the log has that key already, and nothing was recorded. */
  recorded: boolean;
}

export interface RotatedLog {
  ledger: Pick<Ledger, "checkpoint" | "transact" | "origin">;
  book: LogKeyBook;
  ring: LogKeyring;
  /** Whether permits were signed with this key, in hex. */
  signsPermits(publicKey: string): boolean;
  clock(): number;
}

/**
 * Resolves to the last change. It may be run again after whatever ended it: what the ledger has is not recorded twice.
 * Rejects with VaultError, having recorded nothing, for a key that cannot follow.
 */
export async function rotateLogKey(
  { ledger, book, ring, signsPermits, clock }: RotatedLog,
  { overlap, again }: LogKeyRotation,
): Promise<RotatedLogKey> {
  const { origin } = ledger;
  // Of what is committed, and no other entry can undo: the present key signs nothing that it would not sign anyway.
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
      throw new VaultError("the log's key was changed by somebody else just now: look at it, and run this again");
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
    tx.bumpEpoch();
    return Promise.resolve({ seq, vkey, previous, previous_until });
  });
  ring.settle(origin, publicKey);
  return { ...change, recorded: true };
}

function signerOf(ring: LogKeyring, vkey: string): NonNullable<ReturnType<LogKeyring["signer"]>> {
  const { name, publicKey } = parseVkey(vkey);
  const signer = ring.signer(name, publicKey);
  if (signer === null) throw new VaultError(`the private key of ${vkey} is not here`);
  return signer;
}
