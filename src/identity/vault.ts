/**
 * The service's two secrets: the one that approval tokens are derived from, and the Ed25519 key
 * that signs checkpoints and permits. Given by configuration, or made on first start in the data
 * folder with mode 0600.
 */
import * as crypto from "node:crypto";
import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  verify,
  type KeyObject,
} from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/index.ts";
import type { Logger, Vault } from "../contract/host.ts";
import { useSha256 } from "../domain/hash.ts";
import { weaknessOf } from "./secret-strength.ts";
import { createSigner } from "./signer.ts";

// All three runtimes have node:crypto. The one-shot form came with Node 20.12 and takes half the time.
const oneShot = (crypto as { hash?: (algorithm: "sha256", bytes: Uint8Array, encoding: "hex") => string }).hash;
useSha256(
  oneShot === undefined
    ? (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest())
    : (bytes) => new Uint8Array(Buffer.from(oneShot("sha256", bytes, "hex"), "hex")),
);

/** Says which secret cannot be used and why; never holds it. */
export class VaultError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "VaultError";
  }
}

export interface OpenVault extends Vault {
  close(): Promise<void>;
}

export function openVault(config: Config, log: Logger): OpenVault {
  const secret =
    config.secret ?? readOrCreate(join(config.data, "secret"), log, () => randomBytes(32).toString("base64url"));
  if (secret.length < 32)
    throw new VaultError(
      "the token secret is shorter than 32 characters; set ASSENT_SECRET or delete the file in the data folder",
    );
  const weakness = weaknessOf(secret);
  if (weakness !== null)
    throw new VaultError(
      `the token secret can be guessed: it ${weakness}. Make one with \`openssl rand -base64 32\`; approval tokens that were given out before are then no longer good`,
    );
  const pem =
    config.ledger.key ??
    readOrCreate(join(config.data, "log-key.pem"), log, () =>
      generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    );
  const privateKey = readPrivateKey(pem.includes("-----BEGIN") ? pem : readGiven(pem));
  const publicKey = rawPublicKey(createPublicKey(privateKey));
  const derived = new Map<string, Buffer>();
  const signer = createSigner(privateKey);
  const imported = new WeakMap<Uint8Array, KeyObject>();

  return {
    publicKey,
    mac(purpose, message) {
      let key = derived.get(purpose);
      if (key === undefined) {
        // One key a purpose, so that a MAC made for one thing is never good for another.
        key = createHmac("sha256", secret).update(`assent/${purpose}`).digest();
        derived.set(purpose, key);
      }
      return new Uint8Array(createHmac("sha256", key).update(message).digest());
    },
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
    signAsync: (message) => signer.sign(message),
    close: () => signer.close(),
    verify(raw, message, signature) {
      let key = imported.get(raw);
      if (key === undefined) {
        key = importPublicKey(raw);
        imported.set(raw, key);
      }
      return verify(null, message, key, signature);
    },
  };
}

/** Ed25519 verification for those who hold no vault: the command line, offline. */
export function verifyEd25519(raw: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return verify(null, message, importPublicKey(raw), signature);
}

/** RFC 8410: an Ed25519 SubjectPublicKeyInfo is 12 fixed bytes and the key. */
function importPublicKey(raw: Uint8Array): KeyObject {
  const prefix = Buffer.from("302a300506032b6570032100", "hex");
  return createPublicKey({ key: Buffer.concat([prefix, raw]), format: "der", type: "spki" });
}

function rawPublicKey(key: KeyObject): Uint8Array {
  return new Uint8Array(key.export({ type: "spki", format: "der" }).subarray(12));
}

function readPrivateKey(pem: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (error) {
    throw new VaultError(
      "the ledger key is not a PKCS#8 PEM private key; make one with `openssl genpkey -algorithm ed25519`",
      { cause: error },
    );
  }
  if (key.asymmetricKeyType !== "ed25519")
    throw new VaultError(`the ledger key is of type ${key.asymmetricKeyType}; it must be ed25519`);
  return key;
}

function readGiven(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new VaultError(`the ledger key file "${path}" cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

function readOrCreate(path: string, log: Logger, create: () => string): string {
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
    if (!isCode(error, "ENOENT"))
      throw error instanceof VaultError
        ? error
        : new VaultError(`"${path}" cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const value = create();
  try {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    const file = openSync(path, "wx", 0o600);
    try {
      writeSync(file, value.endsWith("\n") ? value : `${value}\n`);
      // A key that signed something must not vanish with the page cache.
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new VaultError(`"${path}" cannot be written: ${messageOf(error)}`, { cause: error });
  }
  return value.trim();
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
