/** Encrypts strings in the store with AES-256-GCM, so that a copy of the database does not reveal them. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Vault } from "../contract/core-host.ts";
import { utf8 } from "../domain/hash.ts";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The owner of an encrypted string. It is authenticated together with the string. */
interface TextOwner {
  /** Kind of the string, `<plugin>/<kind>`. */
  purpose: string;
  /** Id of the object that the string belongs to. */
  subject: string;
}

/**
 * Returns the encrypted string in base64url.
 * @example
 * const sealed = sealText(host.vault, { purpose: "notes/text", subject: note.id }, "call Ada");
 */
export function sealText(vault: Pick<Vault, "mac">, owner: TextOwner, text: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", deriveKey(vault, owner), nonce);
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
}

/**
 * Returns the decrypted string. Returns null if it was altered, if it belongs to another owner, or if the service's
 * secret has changed.
 */
export function openText(vault: Pick<Vault, "mac">, owner: TextOwner, sealed: string): string | null {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv("aes-256-gcm", deriveKey(vault, owner), bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch {
    return null;
  }
}

function deriveKey(vault: Pick<Vault, "mac">, { purpose, subject }: TextOwner): Uint8Array {
  return vault.mac(purpose, utf8(subject));
}
