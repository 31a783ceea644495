/**
 * Access tokens that agents get for an ID-JAG. A token contains its ID-JAG, which each use verifies again. So a token
 * ends with whatever ends the ID-JAG: its expiry, the issuer's key, the user, or the configuration of the client.
 */
import {
  canonicalText,
  type CoreHost,
  equalBytes,
  fromBase64Url,
  type JsonObject,
  readJsonObject,
  sha256Hex,
  toBase64Url,
  utf8,
} from "../../src/core.ts";
import type { Scope } from "../../src/plugin.ts";
import type { Issuer, VerifiedToken } from "./verify-token.ts";

/** Maximum lifetime of an access token. Milliseconds. */
const LIFETIME_MS = 3_600_000;
/**
 * An exchange is remembered for this long after its ID-JAG has expired, because clocks of issuers differ. Milliseconds.
 */
const REMEMBERED_MS = 3_600_000;
/**
 * Key of the document with the latest expiry of all removed exchanges. It sorts before the hashes, so that no list of
 * exchanges includes it.
 */
const REMOVED = "-";
/** Each exchange adds one document and removes up to this many expired ones, so at most a third more remain. */
const SWEPT = 4;
const HEADER = toBase64Url(utf8('{"alg":"HS256","typ":"assent-access+jwt"}'));

export interface AccessToken {
  assertion: string;
  scopes: readonly Scope[];
  /** Fingerprint of the client and its secret. */
  client: string;
  /** Milliseconds of the time of day. */
  expires_at: number;
}

export class AccessTokens {
  private readonly host: CoreHost;

  constructor(host: CoreHost) {
    this.host = host;
  }

  /** Returns a token of a verified ID-JAG, and the number of seconds for which it is valid. */
  issue(assertion: string, { issuer, payload, expires_at: end }: VerifiedToken, scopes: readonly Scope[]) {
    const now = this.host.timeOfDay();
    const expires_at = Math.min(end, now + LIFETIME_MS);
    const content: AccessToken = { assertion, scopes, expires_at, client: this.fingerprint(issuer, payload) };
    const signed = `${HEADER}.${toBase64Url(utf8(canonicalText(content as unknown as JsonObject)))}`;
    return { token: `${signed}.${this.sign(signed)}`, seconds: Math.max(1, Math.floor((expires_at - now) / 1000)) };
  }

  /** Returns the content of a token that this service issued; null for another value. It can have expired. */
  read(value: string): AccessToken | null {
    const [head = "", body = "", mac = ""] = value.split(".");
    if (head !== HEADER || !equalBytes(utf8(mac), utf8(this.sign(`${head}.${body}`)))) return null;
    return readJsonObject(fromBase64Url(body)) as unknown as AccessToken;
  }

  /** Returns the fingerprint of the client that the ID-JAG names. It changes with the configured secret. */
  fingerprint({ options: { id, clients } }: Issuer, { client_id }: JsonObject): string {
    const client = client_id as string;
    const secret = Object.hasOwn(clients, client) ? (clients[client] ?? null) : null;
    const text = canonicalText([id, client, secret]);
    return toBase64Url(this.host.vault.mac("workload-identity/client", utf8(text)));
  }

  /**
   * Records that the ID-JAG was exchanged. Resolves to false if it was exchanged before, in any process, or if its
   * exchange could have been removed.
   */
  use({ issuer, payload, expires_at }: VerifiedToken): Promise<boolean> {
    const key = sha256Hex(utf8(canonicalText([issuer.options.issuer, payload["jti"] as string])));
    // The clock of this process can be wrong. The issuer's time is at most five minutes after it, and cannot be forged.
    const now = Math.min(this.host.timeOfDay(), (payload["iat"] as number) * 1000);
    return this.host.ledger.transact(async (tx) => {
      const documents = this.host.documents.within(tx);
      const removed = await documents.get(REMOVED);
      const latest = (removed?.value as number | undefined) ?? -Infinity;
      if (expires_at <= latest || (await documents.put(key, expires_at, null)) === null) return false;
      // Keys are hashes, so the documents after a key are a random sample of all.
      const sample = await documents.list({ after: key, limit: SWEPT });
      const old = sample.filter(({ value }) => (value as number) + REMEMBERED_MS < now);
      if (old.length === 0) return true;
      for (const each of old) await documents.delete(each.key, each.version);
      const ends = old.map(({ value }) => value as number);
      await documents.put(REMOVED, Math.max(latest, ...ends), removed?.version ?? null);
      return true;
    });
  }

  private sign(text: string): string {
    return toBase64Url(this.host.vault.mac("workload-identity/access-token", utf8(text)));
  }
}
