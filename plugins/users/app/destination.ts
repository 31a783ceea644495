/**
 * Reads the address of the sign-in page: the terminal that opened the page, the page to open after the sign-in, and the
 * error of a failed sign-in.
 */

/** Challenge of the terminal that opened this page; null if no terminal opened it. */
export const terminalChallenge: string | null = /^#terminal=([A-Za-z0-9_-]{43})$/.exec(location.hash)?.[1] ?? null;

/** Whether the link to this page starts the passkey sign-in immediately, so that no one has to choose it twice. */
export const wantsPasskey: boolean = location.hash === "#passkey";

/** Returns the path of this service to open after the sign-in. Returns `/` if the address names another site. */
export function returnPath(): string {
  if (terminalChallenge !== null) return `/sign-in#terminal=${terminalChallenge}`;
  const returnTo = new URLSearchParams(location.search).get("return_to") ?? "/";
  const url = new URL(returnTo, location.origin);
  return url.origin === location.origin && returnTo.startsWith("/") ? url.pathname + url.search + url.hash : "/";
}

/**
 * Messages for error codes in the address. The address contains only a code, so that a link cannot make the page
 * display other text.
 */
const FAILURES: Readonly<Record<string, string>> = {
  USERS_PROVIDER_UNAVAILABLE: "The identity provider does not respond. Try again later. Sessions that exist continue.",
  USERS_PROVIDER_REFUSED: "The identity provider refused the sign-in. Start again.",
  USERS_PROVIDER_INVALID:
    "The identity provider's response is not valid. Start again, and tell an admin if it happens twice.",
  USERS_CHALLENGE_INVALID: "The sign-in expired, was used before or was started in another browser. Start again.",
  USERS_SIGN_IN_ENDED: "Your user is deactivated. Ask an admin to reactivate it.",
};

/** Message for a sign-in at a provider that did not start in this tab. */
export const NOT_STARTED_HERE = "The sign-in did not start in this tab. Start again.";

/** Returns the message for the error code in the address; null if there is no code. */
export function failureInAddress(): string | null {
  const code = new URLSearchParams(location.search).get("failed");
  if (code === null) return null;
  return (Object.hasOwn(FAILURES, code) ? FAILURES[code] : undefined) ?? "The sign-in failed. Start again.";
}
