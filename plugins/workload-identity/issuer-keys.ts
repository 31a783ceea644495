/**
 * The keys of one issuer, which are read only from the configured URL or file. The keys are cached, and read again
 * when they are old or when a token contains an unknown key id. Reads are limited in size, time and frequency, because
 * unauthenticated callers can trigger them.
 */
import { readFile } from "node:fs/promises";
import { isJsonObject, type JsonObject, readJsonObject } from "../../src/core.ts";
import type { Logger } from "../../src/plugin.ts";
import { Refusal } from "../../src/plugin.ts";
import { ERRORS } from "./token-errors.ts";
import type { JSONWebKeySet, JWTVerifyGetKey } from "./jose.ts";

/** Age after which keys are read again. Milliseconds. */
const FRESH_MS = 600_000;
/** Age up to which keys are used if they cannot be read again. Milliseconds. */
const USABLE_MS = 3_600_000;
/** Minimum time between two reads. Milliseconds. */
const COOLDOWN_MS = 30_000;
const TIMEOUT_MS = 5_000;
const MAX_BYTES = 262_144;
const MAX_KEYS = 100;

interface IssuerKeysOptions {
  /** `id` of the issuer. */
  id: string;
  /** URL or absolute path of the keys. */
  source: string;
  /** Whether the source is a SPIFFE bundle, whose JWT keys have the use `jwt-svid`. */
  isBundle: boolean;
  clock(): number;
  log: Logger;
}

export class IssuerKeys {
  private readonly options: IssuerKeysOptions;
  private known: { find: JWTVerifyGetKey; at: number } | null = null;
  private attemptedAt = -Infinity;
  private reading: Promise<void> | null = null;
  /** Why the newest read failed; null if it succeeded. */
  private fault: string | null = null;

  constructor(options: IssuerKeysOptions) {
    this.options = options;
  }

  /** Returns the keys. Throws WORKLOAD_IDENTITY_KEYS_UNAVAILABLE if they could not be read, or are too old. */
  async current(): Promise<JWTVerifyGetKey> {
    const age = (): number => Math.abs(this.options.clock() - (this.known?.at ?? -Infinity));
    if (age() > FRESH_MS) await this.refresh();
    if (this.known !== null && age() <= USABLE_MS) return this.known.find;
    const { id } = this.options;
    throw new Refusal(
      ERRORS.KEYS_UNAVAILABLE,
      `the keys of the issuer "${id}" cannot be read now, so its tokens cannot be verified and nothing was done; try again later`,
      { headers: { "Retry-After": String(COOLDOWN_MS / 1000) } },
    );
  }

  /**
   * Returns whether the newest read of the keys succeeded, for `/readyz`. Starts a read if the keys are old and does not
   * wait for it, because a slow issuer must not delay the route.
   */
  health(): { id: string; fault: string | null } {
    void this.current().catch(() => undefined);
    return { id: this.options.id, fault: this.fault };
  }

  /**
   * Reads the keys again, unless a read was attempted recently. Resolves to true if the keys were replaced. Never
   * rejects.
   */
  async refresh(): Promise<boolean> {
    const before = this.known;
    if (this.reading === null && Math.abs(this.options.clock() - this.attemptedAt) < COOLDOWN_MS) return false;
    this.reading ??= this.read().finally(() => (this.reading = null));
    await this.reading;
    return this.known !== before;
  }

  private async read(): Promise<void> {
    const { id, source, clock, log } = this.options;
    this.attemptedAt = clock();
    try {
      const bytes = source.startsWith("/") ? await readFile(source) : await download(source);
      if (bytes.length > MAX_BYTES) throw tooLarge();
      const { createLocalJWKSet } = await import("./jose.ts");
      this.known = { find: createLocalJWKSet(this.keySet(readJsonObject(bytes))), at: this.attemptedAt };
      this.fault = null;
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
      this.fault = `${String(error)}${cause}`;
      log.warn("the keys of an issuer could not be read", { issuer: id, source, error: this.fault });
    }
  }

  /** Returns the public keys for signatures in the document. */
  private keySet({ keys }: JsonObject): JSONWebKeySet {
    if (!Array.isArray(keys) || keys.length > MAX_KEYS)
      throw new Error(`the document must have \`keys\`, a list of at most ${MAX_KEYS} keys`);
    const usable = keys.filter(isJsonObject).filter((key) => key["kty"] !== "oct" && key["d"] === undefined);
    if (!this.options.isBundle) return { keys: usable } as unknown as JSONWebKeySet;
    const signing = usable.map((key) => (key["use"] === "jwt-svid" ? { ...key, use: "sig" } : key));
    return { keys: signing } as unknown as JSONWebKeySet;
  }
}

/** Downloads the keys. A redirect is an error, because only the configured URL is trusted. */
async function download(url: string): Promise<Uint8Array> {
  const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (response.status !== 200 || response.body === null) throw new Error(`the status is ${response.status}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const tooLarge = (): Error => new Error(`the document has more than ${MAX_BYTES} bytes`);
