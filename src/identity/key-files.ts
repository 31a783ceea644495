/** Secrets and Ed25519 keys in files: configured by the operator, or created at the first start with mode 0600. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Logger } from "../contract/host.ts";

/** Used in error messages. Explains how to create a suitable key. */
export const CREATE_KEY_HINT = "make one with `openssl genpkey -algorithm ed25519`";

/**
 * Thrown for a secret that cannot be used. The message contains the name of the secret and the reason, and never
 * contains its value.
 */
export class VaultError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "VaultError";
  }
}

/** Imports an Ed25519 public key, by adding the 12 fixed bytes of a SubjectPublicKeyInfo (RFC 8410). */
export function importPublicKey(raw: Uint8Array): KeyObject {
  const prefix = Buffer.from("302a300506032b6570032100", "hex");
  return createPublicKey({ key: Buffer.concat([prefix, raw]), format: "der", type: "spki" });
}

/** Returns the public key as 32 raw bytes. */
export function rawPublicKey(privateKey: KeyObject): Uint8Array {
  return new Uint8Array(createPublicKey(privateKey).export({ type: "spki", format: "der" }).subarray(12));
}

export function generatePrivateKey(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/**
 * Reads an Ed25519 private key. Throws VaultError.
 * @param encodedKey PEM, or the path of a file
 * @param name the name of the key in error messages, for example "ledger key"
 */
export function readPrivateKey(encodedKey: string, name: string): KeyObject {
  const pem = encodedKey.includes("-----BEGIN") ? encodedKey : readGiven(encodedKey, name);
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (error) {
    throw new VaultError(`the ${name} is not a PKCS#8 PEM private key; ${CREATE_KEY_HINT}`, { cause: error });
  }
  if (key.asymmetricKeyType !== "ed25519")
    throw new VaultError(`the ${name} is of type ${key.asymmetricKeyType}; it must be ed25519`);
  return key;
}

function readGiven(path: string, name: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new VaultError(`the ${name} file "${path}" cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Reads a secret from a file. Returns null if the file does not exist. Throws VaultError if it is empty or unreadable.
 */
export function readSecret(path: string, log: Logger): string | null {
  try {
    if ((statSync(path).mode & 0o077) !== 0)
      log.warn("a secret can be read by other users of this machine; run chmod 600 on it", { path });
    const text = readFileSync(path, "utf8").trim();
    if (text === "")
      throw new VaultError(
        `the secret file "${path}" is empty; put its content back from a backup, or delete it to have a new one made`,
      );
    return text;
  } catch (error) {
    if (isCode(error, "ENOENT")) return null;
    throw error instanceof VaultError
      ? error
      : new VaultError(`"${path}" cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

export function readOrCreateSecret(path: string, log: Logger, create: () => string): string {
  const text = readSecret(path, log);
  if (text !== null) return text;
  const value = create();
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeSecret(path, value, "wx");
  } catch (error) {
    throw new VaultError(`"${path}" cannot be written: ${messageOf(error)}`, { cause: error });
  }
  return value.trim();
}

/** Writes a secret durably. Replaces an existing file. Throws VaultError. */
export function storeSecret(path: string, value: string): void {
  try {
    writeSecret(path, value, "w");
  } catch (error) {
    throw new VaultError(`"${path}" cannot be written: ${messageOf(error)}`, { cause: error });
  }
}

function writeSecret(path: string, value: string, flag: "w" | "wx"): void {
  const file = openSync(path, flag, 0o600);
  try {
    writeSync(file, value.endsWith("\n") ? value : `${value}\n`);
    // Sync the file, because a key that has signed something must survive a power failure.
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Renames the file. Does nothing if another process has already renamed it. */
export function moveIntoPlace(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    throw new VaultError(`"${from}" cannot be renamed to "${to}": ${messageOf(error)}`, { cause: error });
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
