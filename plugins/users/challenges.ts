/**
 * Challenges of WebAuthn ceremonies and sign-ins at a provider. A challenge consists of random bytes, an expiry, and a
 * MAC over both and a purpose. Therefore issuing a challenge does not write to the store, and a challenge is valid only
 * for its purpose. A successful ceremony records that its challenge was used.
 */
import { randomBytes } from "node:crypto";
import { Refusal } from "../../src/plugin.ts";
import {
  type CoreHost,
  type LedgerTransaction,
  utf8,
  concatBytes,
  equalBytes,
  fromBase64Url,
  toHex,
} from "../../src/core.ts";
import { ERRORS } from "./user-errors.ts";

const RANDOM_BYTES = 16;
const EXPIRY_BYTES = 6;
const MAC_BYTES = 32;
/** Lifetime of a challenge. Longer than clock differences of minutes between processes. Milliseconds. */
const VALID_MS = 10 * 60_000;
/** Maximum number of expired records that one use of a challenge removes. */
const MAX_PRUNED = 20;

/** Returns a new challenge for this purpose. */
export function createChallenge(host: CoreHost, purpose: string): Uint8Array<ArrayBuffer> {
  const expiry = new DataView(new ArrayBuffer(8));
  expiry.setBigUint64(0, BigInt(host.clock() + VALID_MS));
  const head = concatBytes(randomBytes(RANDOM_BYTES), new Uint8Array(expiry.buffer, 2));
  return new Uint8Array(concatBytes(head, macOf(host, purpose, head)));
}

/** Returns the expiry of the challenge. Milliseconds. */
export function challengeExpiry(challenge: Uint8Array): number {
  return expiryOf(challenge.subarray(0, -MAC_BYTES));
}

/** Throws USERS_CHALLENGE_INVALID unless this service issued the challenge for this purpose and it has not expired. */
export function assertChallenge(host: CoreHost, purpose: string, challenge: string): void {
  const { head, mac } = split(challenge);
  if (!equalBytes(mac, macOf(host, purpose, head)))
    throw new Refusal(
      ERRORS.CHALLENGE_INVALID,
      "this service did not issue the challenge for this purpose; start again",
    );
  if (expiryOf(head) <= host.clock())
    throw new Refusal(ERRORS.CHALLENGE_INVALID, "the challenge has expired; start again");
}

/** Records that a challenge was used. Throws USERS_CHALLENGE_INVALID if it was used before, in any process. */
export async function useChallenge(host: CoreHost, tx: LedgerTransaction, challenge: string): Promise<void> {
  const { head } = split(challenge);
  await useOnce(host, tx, toHex(head.subarray(0, RANDOM_BYTES)), expiryOf(head));
}

/** Records that a random value was used, until it expires. Throws USERS_CHALLENGE_INVALID if it was used before. */
async function useOnce(host: CoreHost, tx: LedgerTransaction, value: string, expiresAt: number): Promise<void> {
  if (!(await markValueUsed(host, tx, value, expiresAt)))
    throw new Refusal(ERRORS.CHALLENGE_INVALID, "this response was used before; start again");
}

/** Records that a value was used, until it expires. Returns false if it was used before, in any process. */
export async function markValueUsed(
  host: CoreHost,
  tx: LedgerTransaction,
  value: string,
  expiresAt: number,
): Promise<boolean> {
  const documents = host.documents.within(tx);
  // Keys sort by expiry, so the first keys of the list below are the oldest.
  const key = `used/${String(expiresAt).padStart(15, "0")}/${value}`;
  if ((await documents.get(key)) !== null) return false;
  await documents.put(key, null, null);
  for (const { key: old, version } of await documents.list({ prefix: "used/", limit: MAX_PRUNED }))
    if (Number(old.split("/")[1]) < tx.now - VALID_MS) await documents.delete(old, version);
  return true;
}

function split(challenge: string): { head: Uint8Array; mac: Uint8Array } {
  const bytes = decodeBase64UrlOrNull(challenge);
  if (bytes?.length !== RANDOM_BYTES + EXPIRY_BYTES + MAC_BYTES)
    throw new Refusal(ERRORS.CHALLENGE_INVALID, "this service did not issue the challenge; start again");
  return { head: bytes.subarray(0, -MAC_BYTES), mac: bytes.subarray(-MAC_BYTES) };
}

/** Decodes base64url. Returns null if the string is not base64url. */
export function decodeBase64UrlOrNull(text: string): Uint8Array | null {
  try {
    return fromBase64Url(text);
  } catch {
    return null;
  }
}

function expiryOf(head: Uint8Array): number {
  return Number(BigInt(`0x${toHex(head.subarray(RANDOM_BYTES))}`));
}

function macOf(host: CoreHost, purpose: string, head: Uint8Array): Uint8Array {
  return host.vault.mac("users/challenge", concatBytes(head, utf8(purpose)));
}
