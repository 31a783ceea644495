/** Sessions: documents of this plugin, read with each request, so that an ended one is refused at once in every process. */
import { randomBytes } from "node:crypto";
import { type Authenticated, type Document, type DocumentReader, Refusal, toRfc3339 } from "../../src/plugin.ts";
import {
  type CoreHost,
  type LedgerTransaction,
  utf8,
  canonicalText,
  equalBytes,
  fromHex,
  toHex,
  type Actor,
  type User,
} from "../../src/core.ts";
import {
  endedSessionCookie,
  hasSessionCookie,
  readSessionCookie,
  sessionCookie,
  type SessionCookie,
} from "./cookies.ts";
import { ERRORS } from "./errors.ts";
import type { Options } from "./options.ts";
import { siteOf, type Site } from "./site.ts";
import { createSessionPasskeys } from "./vote-signing.ts";

const SAFE_METHODS = ["GET", "HEAD"];
/** A page sends it with every request that changes something. A form of another site cannot. */
const CSRF_HEADER = "assent-session";
/** Replaces the secret after this time. Milliseconds. */
const ROTATE_AFTER = 15 * 60_000;
/**
 * How long the previous secret is accepted once the new one was used: requests of other tabs may be on their way, to
 * processes whose clocks differ by minutes.
 */
const GRACE = 5 * 60_000;
/** The precision of `seen_at`. */
const TOUCH_AFTER = 60_000;
/** A user's oldest sessions end above this number. */
const MAX_SESSIONS = 50;

/** A session as it is stored. Times are milliseconds. */
export interface StoredSession {
  id: string;
  user_id: string;
  /** MAC of the secret, hex. */
  mac: string;
  /** MAC of the secret before, and until when it is accepted; `until` is null while the new one was not used yet. */
  previous: { mac: string; until: number | null } | null;
  rotated_at: number;
  started_at: number;
  seen_at: number;
  /** `passkey`, `link`, `recovery_code` or `oidc:<provider>`. */
  method: string;
  /** The browser's `User-Agent`, shortened. */
  browser: string;
}

/** How a user signed in. */
export type SignIn = Pick<StoredSession, "method" | "browser">;

/** A request's session: the credential, and the session as it is stored. */
export interface Identified extends Authenticated {
  session: StoredSession;
  site: Site;
}

const keyOf = (user: string, id = ""): string => `session/${user}/${id}`;

export class Sessions {
  private readonly host: CoreHost;
  private readonly options: Options;

  constructor(host: CoreHost, options: Options) {
    this.host = host;
    this.options = options;
  }

  /**
   * Returns the caller's credential; null if the request has no session cookie. Throws MISSING_CREDENTIAL if the session has ended,
   * and USERS_CROSS_SITE if a request that changes something did not come from a page of this service.
   */
  async identify(request: Request): Promise<Identified | null> {
    if (!hasSessionCookie(request)) return null;
    const site = siteOf(this.host.config.server.public_url, request);
    if (!SAFE_METHODS.includes(request.method)) assertSameSite(request, site);
    const cookie = readSessionCookie(request, site);
    const stored = cookie === null ? null : await this.read(this.host.documents, cookie.user_id, cookie.session_id);
    const standing = cookie === null || stored === null ? "wrong" : this.standingOf(stored.session, cookie);
    if (standing === "replayed") await this.endReplayed(stored?.session as StoredSession);
    if (cookie === null || stored === null || standing === "wrong" || standing === "replayed") throw ended(site);
    const { session } = stored;
    const credential = await this.host.users.credential({
      id: session.id,
      user_id: session.user_id,
      isLive: (tx) => this.isLive(session, tx),
      passkeys: createSessionPasskeys(this.host, site, session),
    });
    if (credential === null) throw ended(site);
    const renewed = await this.renew(stored, cookie, standing);
    return {
      credential,
      session,
      site,
      ...(renewed === null ? {} : { headers: { "Set-Cookie": this.cookieFor(session, renewed, site) } }),
    };
  }

  /** Starts a session inside a job, and returns its cookie. */
  async start(tx: LedgerTransaction, user: User, how: SignIn, site: Site): Promise<{ id: string; cookie: string }> {
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
      ...how,
    };
    session.mac = this.macOf(session, secret);
    const open = await this.list(user.id, documents);
    for (const old of open.slice(MAX_SESSIONS - 1)) await this.end(tx, old, null, "too many sessions");
    await documents.put(keyOf(user.id, session.id), { ...session }, null);
    recordSession(tx, "started", session, null, null);
    return { id: session.id, cookie: this.cookieFor(session, secret, site) };
  }

  /** Ends a session inside a job. Does nothing if it has ended. */
  async end(tx: LedgerTransaction, session: StoredSession, by: Actor | null, reason: string | null): Promise<void> {
    const documents = this.host.documents.within(tx);
    const document = await documents.get(keyOf(session.user_id, session.id));
    if (document === null) return;
    await documents.delete(document.key, document.version);
    recordSession(tx, "ended", session, by, reason);
  }

  async endAll(tx: LedgerTransaction, userId: string, by: Actor | null, reason: string | null): Promise<void> {
    for (const session of await this.list(userId, this.host.documents.within(tx)))
      await this.end(tx, session, by, reason);
  }

  /** Returns the user's sessions, newest first. Ended ones are not among them; expired ones are, until the next sign-in. */
  async list(userId: string, reader: DocumentReader = this.host.documents): Promise<StoredSession[]> {
    const documents = await reader.list({ prefix: keyOf(userId), limit: 1000 });
    return documents.map(opened).sort((a, b) => b.started_at - a.started_at);
  }

  /** Returns the session's document; null if it has ended. */
  private async read(
    reader: DocumentReader,
    userId: string,
    id: string,
  ): Promise<{ session: StoredSession; document: Document } | null> {
    const document = await reader.get(keyOf(userId, id));
    return document === null ? null : { session: opened(document), document };
  }

  private async isLive({ user_id, id }: StoredSession, tx: LedgerTransaction | null): Promise<boolean> {
    const { documents, clock } = this.host;
    const stored = await this.read(tx === null ? documents : documents.within(tx), user_id, id);
    return stored !== null && !this.isExpired(stored.session, tx?.now ?? clock());
  }

  isExpired({ seen_at, started_at }: StoredSession, now: number): boolean {
    const { session_idle_minutes, session_hours } = this.options;
    return now - seen_at > session_idle_minutes * 60_000 || now - started_at > session_hours * 3_600_000;
  }

  private standingOf(session: StoredSession, { secret }: SessionCookie): "current" | "previous" | "replayed" | "wrong" {
    const now = this.host.clock();
    if (this.isExpired(session, now)) return "wrong";
    const mac = fromHex(this.macOf(session, secret));
    if (equalBytes(mac, fromHex(session.mac))) return "current";
    const { previous } = session;
    if (previous === null || !equalBytes(mac, fromHex(previous.mac))) return "wrong";
    return previous.until === null || previous.until > now ? "previous" : "replayed";
  }

  /**
   * Notes the use, and replaces the secret when it is time. Returns the new secret, or null. A lost response costs nothing: the
   * secret before it is accepted until the new one is used. If two requests race, one of them replaces the secret.
   */
  private async renew(
    { session, document }: { session: StoredSession; document: Document },
    { secret }: SessionCookie,
    standing: "current" | "previous",
  ): Promise<string | null> {
    const now = this.host.clock();
    const isUnconfirmed = session.previous?.until === null;
    const due = standing === "current" ? ROTATE_AFTER : isUnconfirmed ? GRACE : Infinity;
    const rotates = now - session.rotated_at > due;
    const isConfirmed = standing === "current" && isUnconfirmed;
    if (!rotates && !isConfirmed && now - session.seen_at < TOUCH_AFTER) return null;
    const next: StoredSession = { ...session, seen_at: now };
    const fresh = rotates ? newSecret() : null;
    if (fresh !== null) {
      next.previous = { mac: this.macOf(session, secret), until: null };
      next.mac = this.macOf(session, fresh);
      next.rotated_at = now;
    } else if (isConfirmed && session.previous !== null) {
      next.previous = { mac: session.previous.mac, until: now + GRACE };
    }
    try {
      const written = await this.host.ledger.transact((tx) =>
        this.host.documents.within(tx).put(document.key, { ...next }, document.version),
      );
      return written === null ? null : fresh;
    } catch (error) {
      // The session is as good as before; a store that only reads must not sign people out.
      this.host.log.warn("the use of a session could not be noted", { error: String(error) });
      return null;
    }
  }

  /** A secret that was replaced and confirmed comes again: two parties have the cookie. */
  private async endReplayed(session: StoredSession): Promise<void> {
    this.host.log.warn("a session was ended because a replaced cookie was sent again", { user: session.user_id });
    await this.host.ledger.transact((tx) => this.end(tx, session, null, "a replaced cookie was sent again"));
  }

  /** A MAC and not a hash: a row that somebody writes into the database admits no one. */
  private macOf({ user_id, id, started_at }: StoredSession, secret: string): string {
    return toHex(this.host.vault.mac("users/session", utf8(canonicalText([user_id, id, started_at, secret]))));
  }

  private cookieFor({ user_id, id }: StoredSession, secret: string, site: Site): string {
    return sessionCookie({ user_id, session_id: id, secret }, site, this.options.session_hours * 3600);
  }
}

function opened({ value }: Document): StoredSession {
  return value as unknown as StoredSession;
}

function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

function ended(site: Site): Refusal {
  return new Refusal("MISSING_CREDENTIAL", "your session has ended; sign in again", {
    headers: { "Set-Cookie": endedSessionCookie(site) },
  });
}

/** Throws USERS_CROSS_SITE unless a page of this service sent the request. */
export function assertSameSite(request: Request, site: Site): void {
  const origin = request.headers.get("origin");
  if (origin !== site.origin)
    throw new Refusal(
      ERRORS.CROSS_SITE,
      `the request comes from ${origin === null ? "a page without an origin" : origin.slice(0, 200)}, and people use this service at ${site.origin}`,
    );
  if (request.headers.get(CSRF_HEADER) === null)
    throw new Refusal(ERRORS.CROSS_SITE, "send the header `Assent-Session: 1` with every request that is not GET");
}

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
