/**
 * Sign-in of a terminal. The terminal keeps a random verifier and prints a link with its challenge. A user who is
 * signed in in a browser opens the link and types the terminal's code, which stores a confirmation. The terminal then
 * exchanges its verifier for a session, once. Unauthenticated requests do not write to the store.
 */
import { type Document, Refusal } from "../../src/plugin.ts";
import { userState, type CoreHost } from "../../src/core.ts";
import { copiedPasskeyError } from "./passkey-counters.ts";
import { gestureOptions, useGesture, verifyGesture } from "./passkey-gesture.ts";
import { ERRORS } from "./user-errors.ts";
import type { Sessions, StoredSession } from "./sessions.ts";
import type { SignInResult } from "./sign-in.ts";
import type { Site } from "./site.ts";
import { matchesTerminalCode, terminalChallenge } from "../actions/api.ts";

const PREFIX = "terminal/";
/** Time limit for the terminal to sign in after the confirmation. Milliseconds. */
const VALID_MS = 2 * 60_000;
/** Maximum number of confirmations that one read examines in order to remove expired confirmations. */
const MAX_PRUNED = 100;

type Confirmation = {
  user_id: string;
  /** Id of the browser's session. */
  session_id: string;
  /** Milliseconds. */
  expires_at: number;
};

const confirmationIn = ({ value }: Document): Confirmation => value as unknown as Confirmation;

/** Returns the purpose of a challenge. An assertion for one terminal, user and session is not valid for another. */
const purposeOf = ({ user_id, id }: StoredSession, challenge: string): string =>
  `terminal:${user_id}:${id}:${challenge}`;

function assertCode({ challenge, code }: { challenge: string; code: string }): void {
  if (!matchesTerminalCode(code, challenge))
    throw new Refusal(ERRORS.CHALLENGE_INVALID, "this is not the code that the terminal shows; type it again");
}

/** Returns the options of the gesture that confirms a terminal; null if the user has no passkey for this site. */
export async function terminalOptions(
  host: CoreHost,
  site: Site,
  session: StoredSession,
  terminal: { challenge: string; code: string },
): Promise<object | null> {
  assertCode(terminal);
  return gestureOptions(host, site, session.user_id, purposeOf(session, terminal.challenge));
}

/**
 * Stores that the user of a browser's session confirmed a terminal. Returns the deadline for the terminal's sign-in.
 * Throws USERS_CHALLENGE_INVALID if the code does not belong to the terminal or the terminal was confirmed before, and
 * USERS_PASSKEY_INVALID if the user has a passkey for this site and did not sign with it.
 */
export async function confirmTerminal(
  host: CoreHost,
  sessions: Sessions,
  site: Site,
  session: StoredSession,
  { response, ...terminal }: { challenge: string; code: string; response?: unknown },
): Promise<number> {
  assertCode(terminal);
  const { user_id, id } = session;
  const { challenge } = terminal;
  const gesture = await verifyGesture(host, site, user_id, response, purposeOf(session, challenge));
  const expiresAt = await host.ledger.transact(async (tx) => {
    const user = tx.state(userState).get(user_id);
    if (user?.ended_at !== null || !(await sessions.isLive({ user_id, id }, tx)))
      throw new Refusal("MISSING_CREDENTIAL", "your session has ended; sign in again");
    const documents = host.documents.within(tx);
    if ((await documents.get(PREFIX + challenge)) !== null)
      throw new Refusal(ERRORS.CHALLENGE_INVALID, "this terminal was confirmed already; start it again");
    if ((await useGesture(host, tx, site, user, gesture)) === "copied") return null;
    for (const old of await documents.list({ prefix: PREFIX, limit: MAX_PRUNED }))
      if (confirmationIn(old).expires_at <= tx.now) await documents.delete(old.key, old.version);
    const confirmation: Confirmation = { user_id, session_id: id, expires_at: tx.now + VALID_MS };
    await documents.put(PREFIX + challenge, confirmation, null);
    return confirmation.expires_at;
  });
  if (expiresAt === null) throw copiedPasskeyError(host, { id: user_id });
  return expiresAt;
}

/**
 * Starts a terminal's session, which ends with the browser session that confirmed it. Throws
 * USERS_TERMINAL_UNCONFIRMED if no one has confirmed the terminal, or the confirmation has expired or was used.
 */
export async function signInTerminal(
  host: CoreHost,
  sessions: Sessions,
  site: Site,
  verifier: string,
  browser: string,
): Promise<SignInResult> {
  const key = PREFIX + terminalChallenge(verifier);
  if ((await host.documents.get(key)) === null) throw unconfirmedRefusal();
  return host.ledger.transact(async (tx) => {
    const documents = host.documents.within(tx);
    const document = await documents.get(key);
    if (document === null) throw unconfirmedRefusal();
    const { user_id, session_id, expires_at } = confirmationIn(document);
    const user = tx.state(userState).get(user_id);
    const isValid = expires_at > tx.now && (await sessions.isLive({ user_id, id: session_id }, tx));
    if (!isValid || user === undefined || user.ended_at !== null) throw unconfirmedRefusal();
    await documents.delete(key, document.version);
    const options = { method: "terminal", browser, parent: session_id };
    const session = await sessions.start(tx, user, options, site);
    return { user, ...session };
  });
}

function unconfirmedRefusal(): Refusal {
  return new Refusal(
    ERRORS.TERMINAL_UNCONFIRMED,
    "no one has confirmed this terminal in a browser, or the confirmation has expired",
  );
}
