/** Encrypts texts in the store, so that a copy of the database does not give them away. AES-256-GCM. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { type CoreHost, utf8 } from "../../src/core.ts";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Returns the encrypted text, base64url. @param subject what the text belongs to; it opens for nothing else */
export function sealText(host: CoreHost, subject: string, text: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyFor(host, subject), nonce);
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
}

/** Returns the text; null if it was altered, belongs to another subject or the service's secret has changed. */
export function openText(host: CoreHost, subject: string, sealed: string): string | null {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv("aes-256-gcm", keyFor(host, subject), bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch {
    return null;
  }
}

function keyFor(host: CoreHost, subject: string): Uint8Array {
  return host.vault.mac("users/sealed-text", utf8(subject));
}
