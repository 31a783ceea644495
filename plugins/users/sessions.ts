/**
 * Sessions are documents of this plugin. They are read with each request, so that an ended session is immediately
 * rejected in every process.
 */
import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { type AuthenticationResult, type Document, type DocumentReader, Refusal, toRfc3339 } from "../../src/plugin.ts";
import {
  type CoreHost,
  type LedgerTransaction,
  openText,
  sealText,
  sha256Hex,
  utf8,
  canonicalText,
  equalBytes,
  fromHex,
  toBase64Url,
  toHex,
  type Actor,
  type User,
} from "../../src/core.ts";
import {
  clearSessionCookie,
  hasSessionCookie,
  readSessionCookies,
  sessionCookie,
  type SessionCookie,
} from "./cookies.ts";
import { ERRORS } from "./user-errors.ts";
import type { Options } from "./user-options.ts";
import type { Provider } from "./provider.ts";
import { removeDevicesOf } from "./push/device-documents.ts";
import { findSite, type Site } from "./site.ts";
import { createSessionPasskeys } from "./vote-signing.ts";

const SAFE_METHODS = ["GET", "HEAD"];
/**
 * Header that pages send with every request: the page token of the session, or any value before the sign-in. A form on
 * another site cannot send it.
 */
const PAGE_HEADER = "assent-session";
/** Age at which the session's secret is replaced. Milliseconds. */
const ROTATE_AFTER = 15 * 60_000;
/**
 * Grace period of the previous secret, from the first use of the new secret. Requests of other tabs may be in flight,
 * to processes whose clocks differ by minutes. Milliseconds.
 */
const GRACE_MS = 5 * 60_000;
/** Delay before the next check of a session whose provider did not respond. Milliseconds. */
const RETRY_AFTER = 60_000;
/** Maximum duration of a check, if its process does not fail: two attempts at the provider. Milliseconds. */
const MAX_CHECK = 45_000;
/** Time between two reads of a session that another request checks. Milliseconds. */
const POLL_MS = 50;
/** `seen_at` is updated only if it is older than this. Milliseconds. */
const TOUCH_AFTER = 60_000;
/** Maximum number of sessions of one user, including expired ones. A new session above it ends the oldest session. */
const MAX_SESSIONS = 50;

/** A session in its stored form. Times are milliseconds. */
export interface StoredSession {
  id: string;
  user_id: string;
  /** MAC of the secret, hex. */
  mac: string;
  /** MAC of the previous secret, and its expiry. `until` is null before the first use of the new secret. */
  previous: { mac: string; until: number | null } | null;
  rotated_at: number;
  started_at: number;
  seen_at: number;
  /** `passkey`, `link`, `recovery_code`, `terminal` or `oidc:<provider>`. */
  method: string;
  /**
   * Id of the browser session that confirmed a terminal's sign-in. The terminal's session ends with it. Null for a
   * browser.
   */
  parent: string | null;
  /** The browser's `User-Agent`, truncated. */
  browser: string;
  /** Login at a provider, with an encrypted refresh token. Null for a sign-in by passkey or link. */
  provider: (Omit<ProviderLogin, "refresh_token"> & { refresh: SealedRefresh | null }) | null;
}

interface StoredVersion {
  session: StoredSession;
  document: Document;
}

/** Login at a provider with which a session was started. */
type ProviderLogin = {
  /** `id` of the provider in the configuration. */
  id: string;
  sub: string;
  /** Session id at the provider; null if the provider does not send one. */
  sid: string | null;
  refresh_token: string | null;
};

/** The sign-in that starts a session. */
type SignIn = Pick<StoredSession, "method" | "browser"> & { parent?: string };

/** A new session, with the two credentials that every request of its pages needs. */
export interface StartedSession {
  session_id: string;
  /** Value of the `Set-Cookie` header. */
  cookie: string;
  /** Value of the header `Assent-Session`. */
  page_token: string;
}

/** A request's session: the credential, and the session as it is stored. */
export interface IdentifiedSession extends AuthenticationResult {
  session: StoredSession;
  site: Site;
}

/** The encrypted refresh token of a session. */
type SealedRefresh = {
  token: string;
  /** Time of the next check at the provider. Milliseconds. */
  due_at: number;
  /** While a request checks the session: the time until which others wait for its result. Milliseconds. */
  checked_by?: number;
};

/** Returns the key prefix of the documents that map a login at a provider to its sessions. */
const loginKey = (provider: string, kind: "sub" | "sid", value: string): string =>
  `login/${sha256Hex(utf8(JSON.stringify([provider, kind, value])))}/`;

/** Returns the key of the document with the time of a user's last sign-in. The document outlasts the session. */
const lastSignInKey = (user: string): string => `signed-in/${user}`;

const keyOf = (user: string, id = ""): string => `session/${user}/${id}`;

export class Sessions {
  private readonly host: CoreHost;
  private readonly options: Options;
  private readonly providers: readonly Provider[];

  /** @param providers the configured providers */
  constructor(host: CoreHost, options: Options, providers: readonly Provider[]) {
    this.host = host;
    this.options = options;
    this.providers = providers;
  }

  /**
   * Returns the caller's credential; null if the request has no session cookie. Throws MISSING_CREDENTIAL if the cookie
   * is not valid or the session has ended, and USERS_CROSS_SITE if a request that changes something did not come from a
   * page of this service. Throws INSUFFICIENT_SCOPE for a request that a terminal's session may not send.
   */
  async identify(request: Request): Promise<IdentifiedSession | null> {
    const site = findSite(this.host);
    if (site === null || !hasSessionCookie(request, site)) return null;
    // Read the epoch before the session, so that an end of the session in between has a later epoch.
    const { epoch } = this.host.ledger.seenHead();
    if (!SAFE_METHODS.includes(request.method)) assertSameSite(request, site);
    const cookies = this.cookiesOfPage(request, site);
    let stored = await this.read(this.host.documents, cookies[0].user_id, cookies[0].session_id);
    if (stored === null) throw endedSessionRefusal(site);
    const { cookie, status: cookieStatus } = this.selectCookie(stored.session, cookies);
    if (cookieStatus === "replayed") await this.endReplayed(stored.session);
    if (cookieStatus === "wrong" || cookieStatus === "replayed") throw endedSessionRefusal(site);
    stored = await this.checkAtProvider(stored);
    const valid_until = stored === null ? null : await this.validUntil(stored.session);
    if (stored === null || valid_until === null) throw endedSessionRefusal(site);
    const { session } = stored;
    if (session.parent !== null) assertTerminalMay(request);
    const credential = await this.host.users.credential({
      id: session.id,
      user_id: session.user_id,
      terminal: session.parent !== null,
      epoch,
      valid_until,
      recheck: (tx) => this.recheck(session, tx),
      passkeys: createSessionPasskeys(this.host, site, session),
    });
    if (credential === null) throw endedSessionRefusal(site);
    const renewed = await this.renew(stored, cookie, cookieStatus);
    return {
      credential,
      session,
      site,
      ...(renewed === null ? {} : { headers: { "Set-Cookie": this.cookieFor(session, renewed, site) } }),
    };
  }

  /** Starts a session within a ledger transaction, and returns its credentials. */
  async start(
    tx: LedgerTransaction,
    user: User,
    how: SignIn,
    site: Site,
    login: ProviderLogin | null = null,
  ): Promise<StartedSession> {
    const documents = this.host.documents.within(tx);
    const secret = newSecret();
    const session: StoredSession = {
      id: this.host.newId(),
      user_id: user.id,
      mac: "",
      previous: null,
      rotated_at: tx.now,
      started_at: tx.now,
      seen_at: tx.now,
      parent: null,
      ...how,
      provider: null,
    };
    if (login !== null) session.provider = this.storedLogin(session.id, login, tx.now);
    for (const prefix of loginPrefixes(session)) await documents.put(prefix + keyOf(user.id, session.id), null, null);
    session.mac = this.macOf(session, secret);
    const open = await this.list(user.id, documents);
    for (const old of open.slice(MAX_SESSIONS - 1)) await this.end(tx, old, null, "too many sessions");
    await documents.put(keyOf(user.id, session.id), { ...session }, null);
    const last = await documents.get(lastSignInKey(user.id));
    await documents.put(lastSignInKey(user.id), { at: tx.now }, last?.version ?? null);
    recordSession(tx, "started", session, null, null);
    return {
      session_id: session.id,
      cookie: this.cookieFor(session, secret, site),
      page_token: this.pageTokenOf({ user_id: user.id, session_id: session.id }),
    };
  }

  /** Ends a session within a ledger transaction. Does nothing if it has already ended. */
  async end(tx: LedgerTransaction, session: StoredSession, by: Actor | null, reason: string | null): Promise<void> {
    const documents = this.host.documents.within(tx);
    const document = await documents.get(keyOf(session.user_id, session.id));
    if (document === null) return;
    // Every process then reads the sessions of its open streams and waits again.
    tx.increaseEpoch();
    await documents.delete(document.key, document.version);
    for (const prefix of loginPrefixes(session)) {
      const mark = await documents.get(prefix + document.key);
      if (mark !== null) await documents.delete(mark.key, mark.version);
    }
    await removeDevicesOf(documents, session.user_id, session.id);
    recordSession(tx, "ended", session, by, reason);
  }

  /**
   * Ends the sessions of a login at a provider, within a ledger transaction. With `sid`, ends the sessions with this
   * `sid`, and sessions of this `sub` that have no `sid`. Without `sid`, ends all sessions of this `sub`.
   */
  async endLogin(
    tx: LedgerTransaction,
    provider: string,
    { sub, sid }: { sub: string | null; sid: string | null },
  ): Promise<void> {
    const documents = this.host.documents.within(tx);
    const prefix = sub === null ? loginKey(provider, "sid", sid ?? "") : loginKey(provider, "sub", sub);
    for (const { key } of await documents.list({ prefix, limit: 1000 })) {
      const document = await documents.get(key.slice(prefix.length));
      const session = document === null ? null : readSession(document);
      if (session === null || (sid !== null && (session.provider?.sid ?? sid) !== sid)) continue;
      await this.end(tx, session, null, "the provider ended the login");
    }
  }

  private storedLogin(sessionId: string, login: ProviderLogin, now: number): StoredSession["provider"] {
    const { refresh_token, ...about } = login;
    if (refresh_token === null) return { ...about, refresh: null };
    return { ...about, refresh: this.sealedRefresh(sessionId, login.id, refresh_token, now) };
  }

  private sealedRefresh(sessionId: string, provider: string, token: string, now: number): SealedRefresh {
    const minutes = this.find(provider)?.options.refresh_minutes ?? 0;
    return { token: sealText(this.host.vault, refreshTokenOwner(sessionId), token), due_at: now + minutes * 60_000 };
  }

  private find(id: string): Provider | null {
    return this.providers.find(({ options }) => options.id === id) ?? null;
  }

  /**
   * If a check is due, asks the session's provider whether the login is still valid. If another request is asking, waits
   * for its result, because the provider could refuse. Returns the stored session after the check. Ends the session and returns null if the provider refuses, or is no longer in the configuration. If the
   * provider does not respond, the session continues.
   */
  private async checkAtProvider(stored: StoredVersion): Promise<StoredVersion | null> {
    const { session } = stored;
    const now = this.host.clock();
    const login = session.provider;
    if (login === null) return stored;
    const provider = this.find(login.id);
    // The operator removed the provider from the configuration, so its users lose access.
    if (provider === null) return this.endRefused(session, "the configuration no longer has the provider");
    if (login.refresh === null) return stored;
    const { token: sealed, due_at, checked_by = 0 } = login.refresh;
    if (checked_by > now) return this.awaitCheck(session);
    if (due_at > now) return stored;
    const unchecked = { token: sealed, due_at: now + RETRY_AFTER };
    const version = await this.claimCheck(stored, { ...unchecked, checked_by: now + MAX_CHECK });
    if (version === null) return this.awaitCheck(session);
    const token = openText(this.host.vault, refreshTokenOwner(session.id), sealed);
    let next: string | null;
    try {
      next = token === null ? null : await provider.refresh(token);
    } catch (error) {
      await this.storeRefresh(session, unchecked);
      if (!(error instanceof Refusal)) throw error;
      return this.read(this.host.documents, session.user_id, session.id);
    }
    if (next === null) return this.endRefused(session, "the provider refused to refresh the login");
    await this.storeRefresh(session, this.sealedRefresh(session.id, login.id, next, now));
    return this.read(this.host.documents, session.user_id, session.id);
  }

  /**
   * Waits until the request that checks the session has stored the result. Returns the stored session; null if it has
   * ended.
   */
  private async awaitCheck({ user_id, id }: StoredSession): Promise<StoredVersion | null> {
    for (;;) {
      const stored = await this.read(this.host.documents, user_id, id);
      if ((stored?.session.provider?.refresh?.checked_by ?? 0) <= this.host.clock()) return stored;
      await setTimeout(POLL_MS);
    }
  }

  /**
   * Postpones the check before it is made, so that only one request in one process contacts the provider: many
   * providers revoke a refresh token that is used twice. Returns the session's new version; null if another request was
   * faster, or the store cannot write.
   */
  private async claimCheck({ session, document }: StoredVersion, refresh: SealedRefresh): Promise<number | null> {
    if (session.provider === null) return null;
    const value = { ...session, provider: { ...session.provider, refresh } };
    try {
      return await this.host.ledger.transact((tx) =>
        this.host.documents.within(tx).put(document.key, value, document.version),
      );
    } catch (error) {
      this.host.log.warn("the check of a session at its provider was postponed", { error: String(error) });
      return null;
    }
  }

  private storeRefresh({ user_id, id }: StoredSession, refresh: SealedRefresh): Promise<void> {
    return this.host.ledger.transact(async (tx) => {
      const documents = this.host.documents.within(tx);
      const current = await this.read(documents, user_id, id);
      if (current === null || current.session.provider === null) return;
      const value = { ...current.session, provider: { ...current.session.provider, refresh } };
      await documents.put(current.document.key, value, current.document.version);
    });
  }

  private async endRefused(session: StoredSession, reason: string): Promise<null> {
    await this.host.ledger.transact((tx) => this.end(tx, session, null, reason));
    return null;
  }

  /** Ends all sessions of a user within a ledger transaction, and removes the user's devices. */
  async endAll(tx: LedgerTransaction, userId: string, by: Actor | null, reason: string | null): Promise<void> {
    for (const session of await this.list(userId, this.host.documents.within(tx)))
      await this.end(tx, session, by, reason);
    await removeDevicesOf(this.host.documents.within(tx), userId);
  }

  /**
   * Returns the user's sessions, newest first. Includes expired sessions until the user has more than `MAX_SESSIONS`
   * sessions. Omits ended sessions.
   */
  async list(userId: string, reader: DocumentReader = this.host.documents): Promise<StoredSession[]> {
    const documents = await reader.list({ prefix: keyOf(userId), limit: 1000 });
    return documents.map(readSession).sort((a, b) => b.started_at - a.started_at);
  }

  /** Returns the time of the user's last sign-in, in milliseconds; null if there was none. */
  async lastSignIn(userId: string): Promise<number | null> {
    const document = await this.host.documents.get(lastSignInKey(userId));
    return document === null ? null : (document.value as { at: number }).at;
  }

  /** Returns the session's document; null if it has ended. */
  async read(reader: DocumentReader, userId: string, id: string): Promise<StoredVersion | null> {
    const document = await reader.get(keyOf(userId, id));
    return document === null ? null : { session: readSession(document), document };
  }

  /**
   * Returns true if the session is neither ended nor expired. For a terminal, this includes the session that confirmed
   * it.
   */
  async isLive(session: Pick<StoredSession, "user_id" | "id">, tx: LedgerTransaction | null): Promise<boolean> {
    return (await this.recheck(session, tx)) !== null;
  }

  /** See `VerifiedSession.recheck`. */
  private async recheck(
    { user_id, id }: Pick<StoredSession, "user_id" | "id">,
    tx: LedgerTransaction | null,
  ): Promise<number | null> {
    const { documents, clock } = this.host;
    let stored = await this.read(tx === null ? documents : documents.within(tx), user_id, id);
    if (stored === null || this.isExpired(stored.session, tx?.now ?? clock())) return null;
    if (tx === null) stored = await this.checkAtProvider(stored);
    return stored === null ? null : this.validUntil(stored.session, tx);
  }

  /**
   * Returns the time until which the session is valid. If the session that confirmed a terminal's session has ended,
   * ends the terminal's session, unless a transaction is running, and returns null.
   */
  private async validUntil(session: StoredSession, tx: LedgerTransaction | null = null): Promise<number | null> {
    const { seen_at, started_at, provider, parent } = session;
    const { session_idle_minutes, session_hours } = this.options;
    const now = tx?.now ?? this.host.clock();
    const check = provider?.refresh?.due_at ?? Infinity;
    const ownEnd = Math.min(
      seen_at + session_idle_minutes * 60_000,
      started_at + session_hours * 3_600_000,
      // A check that is still due could not be recorded.
      check > now ? check : now + RETRY_AFTER,
    );
    if (parent === null) return ownEnd;
    const parentEnd = await this.recheck({ user_id: session.user_id, id: parent }, tx);
    if (parentEnd !== null) return Math.min(ownEnd, parentEnd);
    if (tx !== null) return null;
    return this.endRefused(session, "the session that confirmed the terminal has ended");
  }

  isExpired({ seen_at, started_at }: StoredSession, now: number): boolean {
    const { session_idle_minutes, session_hours } = this.options;
    return now - seen_at > session_idle_minutes * 60_000 || now - started_at > session_hours * 3_600_000;
  }

  private classifyCookie(
    session: StoredSession,
    { secret }: SessionCookie,
  ): "current" | "previous" | "replayed" | "wrong" {
    const now = this.host.clock();
    if (this.isExpired(session, now)) return "wrong";
    const mac = fromHex(this.macOf(session, secret));
    if (equalBytes(mac, fromHex(session.mac))) return "current";
    const { previous } = session;
    if (previous === null || !equalBytes(mac, fromHex(previous.mac))) return "wrong";
    return previous.until === null || previous.until > now ? "previous" : "replayed";
  }

  /**
   * Records the use, and replaces the secret when it is due. Returns the new secret, or null if it was not replaced. If
   * the response is lost, the browser continues with the previous secret, which is accepted until the new secret is
   * used. If two requests race, one of them replaces the secret.
   */
  private async renew(
    { session, document }: StoredVersion,
    { secret }: SessionCookie,
    cookieStatus: "current" | "previous",
  ): Promise<string | null> {
    const now = this.host.clock();
    const isUnconfirmed = session.previous?.until === null;
    const due = cookieStatus === "current" ? ROTATE_AFTER : isUnconfirmed ? GRACE_MS : Infinity;
    const rotates = now - session.rotated_at > due;
    const isConfirmed = cookieStatus === "current" && isUnconfirmed;
    if (!rotates && !isConfirmed && now - session.seen_at < TOUCH_AFTER) return null;
    const next: StoredSession = { ...session, seen_at: now };
    const fresh = rotates ? newSecret() : null;
    if (fresh !== null) {
      next.previous = { mac: this.macOf(session, secret), until: null };
      next.mac = this.macOf(session, fresh);
      next.rotated_at = now;
    } else if (isConfirmed && session.previous !== null) {
      next.previous = { mac: session.previous.mac, until: now + GRACE_MS };
    }
    try {
      const written = await this.host.ledger.transact((tx) =>
        this.host.documents.within(tx).put(document.key, { ...next }, document.version),
      );
      return written === null ? null : fresh;
    } catch (error) {
      // Continue, because a failure of the store to write must not sign people out.
      this.host.log.warn("the use of a session could not be recorded", { error: String(error) });
      return null;
    }
  }

  /** Ends a session whose previous secret was used after it expired, because two parties have the cookie. */
  private async endReplayed(session: StoredSession): Promise<void> {
    this.host.log.warn("ended a session because a replaced cookie was sent again", { user: session.user_id });
    await this.host.ledger.transact((tx) => this.end(tx, session, null, "a replaced cookie was sent again"));
  }

  /**
   * Returns the MAC of a session's secret. A hash would not suffice: someone who can insert rows into the database could
   * then create a session.
   */
  private macOf({ user_id, id, started_at }: StoredSession, secret: string): string {
    return toHex(this.host.vault.mac("users/session", utf8(canonicalText([user_id, id, started_at, secret]))));
  }

  /**
   * Returns the token that the pages of a session send in a header. Browsers send a cookie to every port of its host, so
   * the cookie alone must not suffice. Pages keep the token in storage, which belongs to one origin, port included.
   */
  private pageTokenOf({ user_id, session_id }: Pick<SessionCookie, "user_id" | "session_id">): string {
    return toBase64Url(this.host.vault.mac("users/session-page", utf8(canonicalText([user_id, session_id]))));
  }

  /** Returns the session cookies to which the page token belongs. Throws MISSING_CREDENTIAL if there is none. */
  private cookiesOfPage(request: Request, site: Site): [SessionCookie, ...SessionCookie[]] {
    const pageToken = utf8(request.headers.get(PAGE_HEADER) ?? "");
    const [cookie, ...others] = readSessionCookies(request, site).filter((each) =>
      equalBytes(pageToken, utf8(this.pageTokenOf(each))),
    );
    if (cookie === undefined)
      throw new Refusal(
        "MISSING_CREDENTIAL",
        "the request has no session cookie that belongs to the page token in its header `Assent-Session`; sign in again",
      );
    return [cookie, ...others];
  }

  /** Returns the valid cookie of one session; if none is valid, the first one. */
  private selectCookie(
    session: StoredSession,
    cookies: [SessionCookie, ...SessionCookie[]],
  ): { cookie: SessionCookie; status: ReturnType<Sessions["classifyCookie"]> } {
    const classified = cookies.map((cookie) => ({ cookie, status: this.classifyCookie(session, cookie) }));
    const valid = classified.find(({ status }) => status === "current" || status === "previous");
    return valid ?? { cookie: cookies[0], status: this.classifyCookie(session, cookies[0]) };
  }

  private cookieFor({ user_id, id }: StoredSession, secret: string, site: Site): string {
    return sessionCookie({ user_id, session_id: id, secret }, site, this.options.session_hours * 3600);
  }
}

function loginPrefixes({ provider }: StoredSession): string[] {
  if (provider === null) return [];
  const { id, sub, sid } = provider;
  return [loginKey(id, "sub", sub), ...(sid === null ? [] : [loginKey(id, "sid", sid)])];
}

function readSession({ value }: Document): StoredSession {
  return value as unknown as StoredSession;
}

function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

function endedSessionRefusal(site: Site): Refusal {
  return new Refusal("MISSING_CREDENTIAL", "your session has ended; sign in again", {
    headers: { "Set-Cookie": clearSessionCookie(site) },
  });
}

/**
 * Requests that change something and are allowed in a terminal's session: votes, questions to the agent, and sign-out.
 */
const TERMINAL_REQUESTS = [/^POST \/v1\/actions\/[^/]+\/(?:approval|questions)$/, /^DELETE \/v1\/session$/];

/**
 * Throws INSUFFICIENT_SCOPE for other requests that change something. Otherwise, a program that takes over the terminal
 * could add a passkey or a delegation, and keep its access.
 */
function assertTerminalMay(request: Request): void {
  if (SAFE_METHODS.includes(request.method)) return;
  const name = `${request.method} ${new URL(request.url).pathname}`;
  if (!TERMINAL_REQUESTS.some((allowed) => allowed.test(name)))
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      "a terminal session can only read, vote and ask questions; do this in the console",
    );
}

/** Throws USERS_CROSS_SITE unless a page of this service sent the request. */
export function assertSameSite(request: Request, site: Site): void {
  const origin = request.headers.get("origin");
  if (origin !== site.origin)
    throw new Refusal(
      ERRORS.CROSS_SITE,
      `the request comes from ${origin === null ? "a page without an origin" : origin.slice(0, 200)}, and people use this service at ${site.origin}`,
    );
  if (request.headers.get(PAGE_HEADER) === null)
    throw new Refusal(ERRORS.CROSS_SITE, "send the header `Assent-Session: 1` with every request that is not GET");
}

const refreshTokenOwner = (sessionId: string) => ({ purpose: "users/refresh-token", subject: sessionId });

function recordSession(
  tx: LedgerTransaction,
  change: "started" | "ended",
  { id, user_id, method }: StoredSession,
  by: Actor | null,
  reason: string | null,
): void {
  tx.record({
    type: "users:session",
    v: 1,
    at: toRfc3339(tx.now),
    action_id: null,
    agent_id: null,
    data: { change, session_id: id, user_id, method, reason },
    by,
  });
}
