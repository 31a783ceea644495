/**
 * Stores the sign-ins of a person at MCP servers. Each file is encrypted with a key that is derived from the API key of the
 * proxy, so a proxy with another key, for example of another person, has no sign-in there.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, randomUUID } from "node:crypto";
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type {
  AuthorizationServerMetadata,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";

export interface SignIn {
  /** Address of the MCP server. */
  url: string;
  /** The authorization server to which the person consented, as it was then. Later metadata cannot redirect the tokens. */
  metadata: AuthorizationServerMetadata;
  /** Resource indicator of the tokens (RFC 8707); null if the server has no metadata. */
  resource: string | null;
  client: StoredOAuthClientInformation;
  /**
   * Null after the sign-in has ended. A server that requires no sign-in would run a call without a token for an unknown
   * caller.
   */
  tokens: StoredOAuthTokens | null;
}

export interface SignInStore {
  /** Returns null if there is no sign-in with this key. Throws if it cannot be read, for example because it was altered. */
  read(): SignIn | null;
  write(signIn: SignIn): void;
  remove(): void;
  /** Runs `work` while no other process does. */
  withLock<T>(work: () => Promise<T>): Promise<T>;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const LOCK_POLL_MS = 50;
/** A lock of a process that was killed expires after this time, which is longer than any request under the lock. */
const LOCK_EXPIRY_MS = 60_000;

/**
 * @param service address and API key of the Assent service that the proxy uses
 * @param url address of the MCP server
 */
export function createSignInStore(folder: string, service: { url: string; apiKey: string }, url: string): SignInStore {
  const derive = (purpose: string): Buffer =>
    createHmac("sha256", service.apiKey)
      .update(JSON.stringify([`assent-mcp-sign-in/1/${purpose}`, service.url, url]))
      .digest();
  const parent = join(folder, "sign-ins");
  const path = join(parent, derive("name").toString("hex").slice(0, 32));
  const key = derive("key");

  /** Throws if another user can put files in the folder, such as a symbolic link or a lock. */
  function assertPrivateFolder(): void {
    const folderStat = lstatSync(parent, { throwIfNoEntry: false });
    const own = process.getuid?.();
    if (folderStat === undefined || own === undefined) return;
    if (![own, 0].includes(folderStat.uid) || (folderStat.mode & 0o022) !== 0)
      throw new Error(`other users can write to the folder ${parent}; remove it and sign in again`);
  }

  function read(): SignIn | null {
    let bytes: Buffer;
    assertPrivateFolder();
    try {
      bytes = readFileSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
    try {
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      return JSON.parse(text.toString()) as SignIn;
    } catch (error) {
      throw new Error(`the file ${path} is damaged; remove it and sign in again`, { cause: error });
    }
  }

  return {
    read,
    write(signIn) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce);
      const sealed = Buffer.concat([cipher.update(JSON.stringify(signIn)), cipher.final()]);
      mkdirSync(parent, { recursive: true, mode: 0o700 });
      assertPrivateFolder();
      const temporary = `${path}.${randomUUID()}`;
      const bytes = Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
      writeFileSync(temporary, bytes, { mode: 0o600, flag: "wx", flush: true });
      renameSync(temporary, path);
    },
    remove: () => rmSync(path, { force: true }),
    async withLock(work) {
      const lock = `${path}.lock`;
      const holder = randomUUID();
      mkdirSync(parent, { recursive: true, mode: 0o700 });
      assertPrivateFolder();
      for (;;)
        try {
          writeFileSync(lock, holder, { mode: 0o600, flag: "wx" });
          break;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
          const age = Date.now() - (lstatSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
          // A time in the future is not the time of a running process.
          if (Math.abs(age) > LOCK_EXPIRY_MS) rmSync(lock, { force: true });
          else await delay(LOCK_POLL_MS);
        }
      try {
        return await work();
      } finally {
        // If this machine was suspended, another process may hold the lock now.
        if (isHeldBy(lock, holder)) rmSync(lock, { force: true });
      }
    },
  };
}

function isHeldBy(lock: string, holder: string): boolean {
  try {
    return readFileSync(lock, "utf8") === holder;
  } catch {
    return false;
  }
}
