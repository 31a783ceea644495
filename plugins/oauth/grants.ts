/** Issues, refreshes, ends and checks grants. */
import {
  type Actor,
  type CoreHost,
  type JsonObject,
  type LedgerTransaction,
  principalOfUser,
  sha256Hex,
  toActor,
  userOfPrincipal,
  userState,
  utf8,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { clientDigest, type PublicClient } from "./clients.ts";
import type { VerifiedGrant } from "./id-jag.ts";
import { ERRORS, GRANT_ENTRY, type GrantChange, OAuthError, type OAuthOptions, SCOPES } from "./schemas.ts";
import { type Grant, grantState } from "./state.ts";
import { type CodeContent, readCode, readToken, writeToken } from "./tokens.ts";

/** A refresh token works again for this long, and yields the same tokens, because an answer can be lost. Milliseconds. */
const REPEAT_MS = 30_000;
const DAY_MS = 86_400_000;

export interface IssuedTokens {
  access_token: string;
  /** Null for an ID-JAG, which the client exchanges again instead. */
  refresh_token: string | null;
  expires_at: number;
}

export class GrantService {
  private readonly host: CoreHost;
  private readonly options: OAuthOptions;

  constructor(host: CoreHost, options: OAuthOptions) {
    this.host = host;
    this.options = options;
  }

  /** Exchanges an ID-JAG, once. Throws OAuthError. */
  exchangeGrant(grant: VerifiedGrant, client: { id: string; agent: string }): Promise<IssuedTokens> {
    this.assertResource(grant.resource);
    return this.grant(grant.used, (now) => ({
      user_id: grant.user_id,
      agent_id: client.agent,
      client: { id: client.id, name: client.id },
      resource: grant.resource,
      issuer: grant.issuer,
      claims: grant.claims,
      // What was used is remembered as long as the grant, so the grant lasts as long as the ID-JAG.
      expires_at: Math.max(now + this.accessMs, grant.expires_at + this.host.ledger.clockAhead()),
    }));
  }

  /** Exchanges an authorization code, once. A second use ends what the first use started. Throws OAuthError. */
  async exchangeCode(
    code: string,
    client: PublicClient,
    proof: { redirect_uri: string; code_verifier: string; resource: string | undefined },
  ): Promise<IssuedTokens> {
    const content = readCode(this.host.vault, code);
    if (content === null || content.client_id !== client.id || content.redirect_uri !== proof.redirect_uri)
      throw invalid("the code was not issued to this client and redirect URI");
    if (!matchesChallenge(proof.code_verifier, content)) throw invalid("the code_verifier is not the one of the code");
    if (proof.resource !== undefined && proof.resource !== content.resource)
      throw new OAuthError("invalid_target", "the code was issued for another resource");
    this.assertResource(content.resource);
    const used = sha256Hex(utf8(JSON.stringify(["code", content.id])));
    const stolen = (await this.host.state(grantState)).byUsed.get(used);
    if (stolen !== undefined) await this.endById(stolen, "its authorization code was used twice");
    return this.grant(used, (now) => {
      if (content.expires_at <= this.host.timeOfDay()) throw invalid("the code has expired; start again");
      return {
        user_id: content.user_id,
        agent_id: content.agent_id,
        client: { id: clientDigest(client.id), name: client.name },
        resource: content.resource,
        issuer: null,
        claims: { issuer: "oauth", resource: content.resource },
        expires_at: now + this.options.refresh_days * DAY_MS,
      };
    });
  }

  /** Issues the next tokens of a grant. A refresh token that was used before ends the grant. Throws OAuthError. */
  async refresh(token: string, clientId: string): Promise<IssuedTokens> {
    const read = readToken(this.host.vault, "refresh", token);
    if (read === null) throw invalid("the refresh token is not valid");
    const outcome = await this.host.ledger.transact(async (tx) => {
      const grant = tx.state(grantState).byId.get(read.grant_id);
      const isLive = grant?.ended_at === null && grant.expires_at > tx.now && isActive(tx, grant);
      if (grant === undefined || !isLive || grant.client.id !== clientDigest(clientId))
        throw invalid("the sign-in has ended; sign in again");
      this.assertResource(grant.resource);
      if (read.generation === grant.generation) {
        const access_expires_at = Math.min(tx.now + this.accessMs, grant.expires_at);
        this.record(tx, grant, { change: "refreshed", access_expires_at: toRfc3339(access_expires_at) }, null);
        return this.tokensOf(tx.state(grantState).byId.get(grant.id) as Grant);
      }
      if (read.generation === grant.generation - 1 && tx.now - grant.refreshed_at <= REPEAT_MS)
        return this.tokensOf(grant);
      this.record(tx, grant, { change: "ended", reason: "a refresh token was used twice" }, null);
      return null;
    });
    if (outcome === null) throw invalid("the refresh token was used before, so the sign-in has ended; sign in again");
    return outcome;
  }

  /** Ends the grant of a token of either kind (RFC 7009). Does nothing for another value. */
  async revoke(token: string): Promise<void> {
    const { vault } = this.host;
    const read = readToken(vault, "access", token) ?? readToken(vault, "refresh", token);
    if (read !== null) await this.endById(read.grant_id, "the client ended it");
  }

  /** Ends a grant. Its user can do that, and everyone who manages users. */
  async end(credential: Credential, id: string): Promise<Grant> {
    return this.host.ledger.transact(async (tx) => {
      const caller = await tx.confirm(credential);
      const grant = tx.state(grantState).byId.get(id);
      if (grant === undefined || grant.ended_at !== null || !mayEnd(caller, grant))
        throw new Refusal(ERRORS.notFound, `there is no connected app "${id}" that you may end`);
      this.record(tx, grant, { change: "ended", reason: null }, toActor(caller.key, caller.principal));
      return tx.state(grantState).byId.get(id) as Grant;
    });
  }

  /**
   * Returns the credential of the user and agent of an access token that a proxy presents, together with its own key.
   * The token alone is no credential: its client could then start actions itself. Null if the value has another form.
   * Throws INVALID_CREDENTIAL.
   */
  async authenticate(value: string): Promise<Credential | null> {
    const [key = "", token = "", rest] = value.split(".");
    if (rest !== "" || !token.startsWith("oat_")) return null;
    const proxy = await this.host.keys.authenticate(key);
    if (proxy === null) throw refused("the key of the proxy is not valid");
    if (!proxy.hasScope(SCOPES.present)) throw refused("the key of the proxy lacks the scope oauth:present");
    const found = await this.findByToken(token, proxy.key.id);
    if (typeof found === "string") throw refused(found);
    const { grant, expires_at } = found;
    const bearer = { user_id: userOfPrincipal(grant.user) ?? "", agent_id: grant.agent_id };
    const credential = await this.host.keys.workload(bearer, { claims: grant.claims as JsonObject, expires_at });
    if (credential === null) throw refused("the user of the access token was deactivated");
    return credential;
  }

  /** Returns the grant of an access token that the proxy with this key may present, or why it is not valid. */
  async findByToken(token: string, keyId: string): Promise<{ grant: Grant; expires_at: number } | string> {
    const { host } = this;
    const read = readToken(host.vault, "access", token);
    const grant = read === null ? undefined : (await host.state(grantState)).byId.get(read.grant_id);
    if (read === null || grant === undefined || grant.ended_at !== null)
      return "the access token is not valid: it was revoked, or this service did not issue it";
    const expires_at = grant.access[grant.generation - read.generation] ?? 0;
    if (expires_at <= host.clock()) return "the access token has expired";
    if (!this.mayPresent(keyId, grant.resource)) return "the access token is for another proxy";
    return isActive(await host.snapshot(), grant) ? { grant, expires_at } : "the user was deactivated";
  }

  private mayPresent(keyId: string, resource: string): boolean {
    const { resources } = this.options;
    const found = resources.find(({ url }) => url === resource);
    return found !== undefined && (found.keys?.includes(keyId) ?? resources.length === 1);
  }

  private get accessMs(): number {
    return this.options.access_minutes * 60_000;
  }

  private assertResource(resource: string): void {
    if (!this.options.resources.some(({ url }) => url === resource))
      throw new OAuthError("invalid_target", `the configuration has no resource ${resource}`);
  }

  private grant(
    used: string,
    describe: (now: number) => Pick<Grant, "agent_id" | "client" | "resource" | "issuer" | "claims" | "expires_at"> & {
      user_id: string;
    },
  ): Promise<IssuedTokens> {
    return this.host.ledger.transact(async (tx) => {
      if (tx.state(grantState).byUsed.has(used)) throw invalid("it was exchanged before; each works once");
      const { user_id, ...about } = describe(tx.now);
      const grant = { ...about, id: this.host.newId(), user: principalOfUser(user_id) };
      if (!isActive(tx, grant)) throw invalid("its user is deactivated");
      const access_expires_at = toRfc3339(tx.now + this.accessMs);
      this.record(tx, grant, { change: "granted", used, access_expires_at }, null);
      return this.tokensOf(tx.state(grantState).byId.get(grant.id) as Grant);
    });
  }

  private endById(id: string, reason: string): Promise<void> {
    return this.host.ledger.transact(async (tx) => {
      const grant = tx.state(grantState).byId.get(id);
      if (grant?.ended_at === null) this.record(tx, grant, { change: "ended", reason }, null);
    });
  }

  private record(
    tx: LedgerTransaction,
    grant: Pick<Grant, "id" | "agent_id" | "user" | "client" | "resource" | "issuer" | "claims" | "expires_at">,
    change: Pick<GrantChange, "change"> & Partial<GrantChange>,
    by: Actor | null,
  ): void {
    const { id, agent_id, user, client, resource, issuer, claims, expires_at } = grant;
    const data: GrantChange = {
      grant_id: id,
      user,
      client,
      resource,
      issuer,
      claims,
      expires_at: toRfc3339(expires_at),
      used: null,
      access_expires_at: null,
      reason: null,
      ...change,
    };
    const entry = { type: GRANT_ENTRY, v: 1, at: toRfc3339(tx.now), action_id: null, agent_id, by } as const;
    tx.record({ ...entry, data: data as unknown as JsonObject });
  }

  private tokensOf({ id, generation, issuer, access }: Grant): IssuedTokens {
    const write = (kind: "access" | "refresh"): string => writeToken(this.host.vault, kind, id, generation);
    return {
      access_token: write("access"),
      refresh_token: issuer === null ? write("refresh") : null,
      expires_at: access[0],
    };
  }
}

/** Whether the caller may end the grant. */
export const mayEnd = (caller: Credential, { user }: Pick<Grant, "user">): boolean =>
  (caller.session !== undefined && !caller.session.terminal && caller.principal === user) ||
  caller.hasScope("users:manage");

function isActive({ state }: Pick<LedgerTransaction, "state">, { user }: Pick<Grant, "user">): boolean {
  return state(userState).get(userOfPrincipal(user) ?? "")?.ended_at === null;
}

function matchesChallenge(verifier: string, { code_challenge }: CodeContent): boolean {
  return (
    /^[A-Za-z0-9._~-]{43,128}$/.test(verifier) &&
    Buffer.from(sha256Hex(utf8(verifier)), "hex").toString("base64url") === code_challenge
  );
}

const invalid = (why: string): OAuthError => new OAuthError("invalid_grant", why);

const refused = (why: string): Refusal =>
  new Refusal("INVALID_CREDENTIAL", why, { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } });
