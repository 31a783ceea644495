/**
 * The token of this origin's session, which the service requires with the session's cookie. Browsers send the cookie to
 * every port of this host; the storage of the token belongs to this port only. The console reads the same item.
 */
const STORE = "assent.key";
const PREFIX = "session.";
/** Session storage key of a tab that has started a sign-in at a provider. */
const STARTED = "assent.sign-in";

/** Returns the page token; null if no one is signed in. */
export function pageToken(): string | null {
  const stored = localStorage.getItem(STORE);
  return stored?.startsWith(PREFIX) === true ? stored.slice(PREFIX.length) : null;
}

export function storePageToken(token: string): void {
  localStorage.setItem(STORE, PREFIX + token);
}

export function removePageToken(): void {
  if (pageToken() !== null) localStorage.removeItem(STORE);
}

/** Remembers in this tab that the person starts a sign-in at a provider. */
export function markSignInStarted(): void {
  sessionStorage.setItem(STARTED, "");
}

/**
 * Takes the page token from the address after a sign-in at a provider, and stores it in this browser. Returns null if
 * the address has none. Returns false, and stores nothing, if this tab did not start the sign-in. Otherwise, a page on
 * another port could plant the cookie of its own sign-in, so that the person acts as another user.
 */
export function takePageToken(): boolean | null {
  const token = /^#session=([A-Za-z0-9_-]{43})$/.exec(location.hash)?.[1];
  if (token === undefined) return null;
  history.replaceState(null, "", location.pathname + location.search);
  const isStarted = sessionStorage.getItem(STARTED) !== null;
  sessionStorage.removeItem(STARTED);
  if (isStarted) storePageToken(token);
  return isStarted;
}
