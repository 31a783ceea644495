/**
 * Sign-in of a terminal. The terminal keeps a random verifier and prints a link with its challenge. A user who is
 * signed in in a browser opens the link and types the terminal's code, which stores a confirmation. The terminal then
 * exchanges its verifier for a session, once. Unauthenticated requests write nothing.
 */
import { type Document, Refusal } from "../../src/plugin.ts";
import { type CoreHost, isTerminalCode, terminalChallenge } from "../../src/core.ts";
import { ERRORS } from "./user-errors.ts";
import type { Sessions, StoredSession } from "./sessions.ts";
import type { SignedIn } from "./sign-in.ts";
import type { Site } from "./site.ts";

const PREFIX = "terminal/";
/** Time limit for the terminal to sign in after the confirmation. Milliseconds. */
const VALID_MS = 2 * 60_000;
/** Maximum number of confirmations that one read examines to remove expired ones. */
const PRUNED = 100;

type Confirmation = {
  user_id: string;
  /** Id of the browser's session. */
  session_id: string;
  /** Milliseconds. */
  expires_at: number;
};

const confirmationIn = ({ value }: Document): Confirmation => value as unknown as Confirmation;

/**
 * Records that the user of a browser session confirmed a terminal. Returns the time until which the terminal can sign
 * in. Throws USERS_CHALLENGE_INVALID if the code is not the terminal's, or the terminal was already confirmed.
 */
export async function confirmTerminal(
  host: CoreHost,
  sessions: Sessions,
  { user_id, id }: StoredSession,
  { challenge, code }: { challenge: string; code: string },
): Promise<number> {
  if (!isTerminalCode(code, challenge))
    throw new Refusal(ERRORS.CHALLENGE_INVALID, "this is not the code that the terminal shows; type it again");
  return host.ledger.transact(async (tx) => {
    if (tx.users.get(user_id)?.ended_at !== null || !(await sessions.isLive({ user_id, id }, tx)))
      throw new Refusal("MISSING_CREDENTIAL", "your session has ended; sign in again");
    const documents = host.documents.within(tx);
    if ((await documents.get(PREFIX + challenge)) !== null)
      throw new Refusal(ERRORS.CHALLENGE_INVALID, "this terminal was already confirmed; start it again");
    for (const old of await documents.list({ prefix: PREFIX, limit: PRUNED }))
      if (confirmationIn(old).expires_at <= tx.now) await documents.delete(old.key, old.version);
    const confirmation: Confirmation = { user_id, session_id: id, expires_at: tx.now + VALID_MS };
    await documents.put(PREFIX + challenge, confirmation, null);
    return confirmation.expires_at;
  });
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
): Promise<SignedIn> {
  const key = PREFIX + terminalChallenge(verifier);
  if ((await host.documents.get(key)) === null) throw unconfirmed();
  return host.ledger.transact(async (tx) => {
    const documents = host.documents.within(tx);
    const document = await documents.get(key);
    if (document === null) throw unconfirmed();
    const { user_id, session_id, expires_at } = confirmationIn(document);
    const user = tx.users.get(user_id);
    const isValid = expires_at > tx.now && (await sessions.isLive({ user_id, id: session_id }, tx));
    if (!isValid || user === undefined || user.ended_at !== null) throw unconfirmed();
    await documents.delete(key, document.version);
    const how = { method: "terminal", browser, parent: session_id };
    const session = await sessions.start(tx, user, how, site);
    return { user, session_id: session.id, cookie: session.cookie };
  });
}

function unconfirmed(): Refusal {
  return new Refusal(
    ERRORS.TERMINAL_UNCONFIRMED,
    "no one has confirmed this terminal in a browser, or the confirmation has expired",
  );
}
