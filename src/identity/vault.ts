/**
 * Keeps the secret from which the service derives the keys of tokens and of encrypted text. The secret is configured,
 * or created in the data folder at the first start. Signing keys are separate (log-keyring.ts, permit-keys.ts).
 */
import { createHmac, randomBytes, verify, type KeyObject } from "node:crypto";
import { join } from "node:path";
import type { Config } from "../config/index.ts";
import type { Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import "./native-sha256.ts";
import { importPublicKey, readOrCreateSecret, readSecret, VaultError } from "./key-files.ts";
import { describeSecretWeakness } from "./secret-strength.ts";

const secretPath = ({ data }: Config): string => join(data, "secret");

/** Opens the vault. Creates the secret if there is none. Throws VaultError for an unsuitable secret. */
export function openVault(config: Config, log: Logger): Vault {
  return createVault(
    config.secret ?? readOrCreateSecret(secretPath(config), log, () => randomBytes(32).toString("base64url")),
  );
}

/** Opens the vault with the existing secret. Returns null if there is none. Throws VaultError. */
export function openExistingVault(config: Config, log: Logger): Vault | null {
  const secret = config.secret ?? readSecret(secretPath(config), log);
  return secret === null ? null : createVault(secret);
}

function createVault(secret: string): Vault {
  if (secret.length < 32)
    throw new VaultError(
      "the token secret is shorter than 32 characters; set ASSENT_SECRET or delete the file in the data folder",
    );
  const weakness = describeSecretWeakness(secret);
  if (weakness !== null)
    throw new VaultError(
      `the token secret can be guessed: it ${weakness}. Make one with \`openssl rand -base64 32\`; approval tokens that were issued earlier then become invalid`,
    );
  const derived = new Map<string, Buffer>();
  const imported = new WeakMap<Uint8Array, KeyObject>();

  return {
    mac(purpose, message) {
      let key = derived.get(purpose);
      if (key === undefined) {
        // Derive a separate key for each purpose, so that a MAC is never valid for another purpose.
        key = createHmac("sha256", secret).update(`assent/${purpose}`).digest();
        derived.set(purpose, key);
      }
      return new Uint8Array(createHmac("sha256", key).update(message).digest());
    },
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

/** Verifies Ed25519 signatures without a vault, for the command line. */
export function verifyEd25519(raw: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return verify(null, message, importPublicKey(raw), signature);
}
