/**
 * Signs a person in to the terminal. The person opens a link in a browser and types the code that the terminal shows.
 * The session stays in the memory of this process, because a coding agent that runs as the same user could read a file.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { AssentError, createAssent, ServiceUnavailable, type Assent } from "../../../../clients/typescript/index.ts";
import {
  CommandError,
  EXIT_CODES,
  type Output,
  reachesSite,
  toPrintable,
  withServiceErrors,
} from "../../../../src/command.ts";
import { terminalChallenge, terminalCode } from "./terminal-code.ts";

/** Timeout of one request in seconds. Short, because a person waits at the terminal. */
const TIMEOUT_SECONDS = 10;
/** Poll interval until the person has confirmed the sign-in. Milliseconds. */
const POLL_MS = 2000;
/** Time limit for the person to confirm. Milliseconds. */
const SIGN_IN_MS = 10 * 60_000;
const COOKIE = /^(?:__Host-)?assent_session(?:_\d+)?=[^;]+/;

export interface TerminalSession {
  service: Assent;
  /** Name of the user. */
  user: string;
  /**
   * Ends the session. If the service cannot be reached, does nothing, because the session expires when it has been
   * idle.
   */
  end(): Promise<void>;
}

/** The answer to a sign-in. */
interface SignedIn {
  user: { name: string };
  page_token: string;
}

/** Parameters that tests replace. */
interface SignInOptions {
  url: string;
  fetch?: typeof fetch;
  pollMs?: number;
  signal?: AbortSignal;
}

/**
 * Prints the link and the code, and waits until the person has confirmed the sign-in. Throws CommandError if no one
 * confirms, if people cannot sign in to the service, or if they sign in at a different address.
 */
export async function signInTerminal(
  { url, fetch: send = fetch, pollMs = POLL_MS, signal }: SignInOptions,
  io: Output,
): Promise<TerminalSession> {
  const base = url.replace(/\/+$/, "");
  const origin = await readSignInOrigin(
    createAssent({ url: base, apiKey: null, fetch: send, timeout: TIMEOUT_SECONDS, signal }),
    base,
  );
  // Do not pass the signal, which would also abort the request that ends the session.
  const session = createSessionFetch(send, origin);
  const service = createAssent({ url: base, apiKey: null, fetch: session.fetch, timeout: TIMEOUT_SECONDS });
  const verifier = randomBytes(32).toString("base64url");
  const challenge = terminalChallenge(verifier);
  io.err(
    `Sign in to vote. Open this link in a browser and type the code ${terminalCode(challenge)}:\n\n  ${origin}/sign-in#terminal=${challenge}\n`,
  );
  const { user, page_token } = await withServiceErrors(() => waitForSession(service, verifier, { pollMs, signal }));
  session.setPageToken(page_token);
  return {
    service,
    user: user.name,
    end: () =>
      service.call("DELETE", "/v1/session").then(
        () => undefined,
        () => undefined,
      ),
  };
}

/**
 * Returns the address at which people sign in. Throws CommandError unless the service was reached there: a relay at another
 * address could otherwise use the confirmation that the person gives at the right one.
 */
export async function readSignInOrigin(service: Assent, url: string): Promise<string> {
  const methods = await withServiceErrors(() =>
    service.call<{ origin: string | null; passkey: { reason: string | null } } | null>("GET", "/v1/sign-in-methods"),
  );
  const origin = methods?.origin;
  if (origin === null)
    throw new CommandError(toPrintable(methods?.passkey.reason ?? "people cannot sign in at this address"));
  if (typeof origin !== "string" || !URL.canParse(origin) || !reachesSite(url, origin))
    throw new CommandError(`people sign in at ${toPrintable(String(origin))}; set ASSENT_URL to it`);
  return origin;
}

async function waitForSession(
  service: Assent,
  verifier: string,
  { pollMs, signal }: { pollMs: number; signal: AbortSignal | undefined },
): Promise<SignedIn> {
  for (const end = performance.now() + SIGN_IN_MS; performance.now() < end;) {
    try {
      return await service.call<SignedIn>("POST", "/v1/session/terminal", { verifier });
    } catch (error) {
      const isWaiting =
        error instanceof ServiceUnavailable ||
        (error instanceof AssentError && error.code === "USERS_TERMINAL_UNCONFIRMED");
      if (!isWaiting) throw error;
    }
    await delay(pollMs, undefined, signal === undefined ? {} : { signal });
  }
  throw new CommandError("no one confirmed the sign-in within ten minutes", EXIT_CODES.failure);
}

/**
 * Creates a `fetch` that sends the session's cookie and page token like a page of the service, and adopts a replaced
 * cookie.
 */
function createSessionFetch(
  send: typeof fetch,
  origin: string,
): { fetch: typeof fetch; setPageToken(token: string): void } {
  let cookie = "";
  // Before the sign-in, the service requires the header with any value.
  let pageToken = "1";
  return {
    setPageToken: (token) => void (pageToken = token),
    async fetch(input, init) {
      const headers = new Headers(init?.headers);
      headers.set("origin", origin);
      headers.set("assent-session", pageToken);
      headers.set("user-agent", `assent watch on ${hostname()}`);
      if (cookie !== "") headers.set("cookie", cookie);
      const response = await send(input, { ...init, headers });
      for (const each of response.headers.getSetCookie()) cookie = COOKIE.exec(each)?.[0] ?? cookie;
      return response;
    },
  };
}
