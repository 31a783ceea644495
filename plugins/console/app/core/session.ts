/**
 * The credential that this browser is signed in with: an API key, or the page token of a user's session. A page token
 * is useless without the session's cookie, which no script can read. Each tab stores the credential in its session
 * storage, and sends it to new tabs of this origin on request. Only page tokens are stored on the device, by the page
 * `/sign-in`.
 */
const STORE = "assent.key";
/** Prefix of a page token in the stores (plugins/users/app/page-token.ts). No API key begins with it. */
const SESSION_PREFIX = "session.";
/** Time that a new tab waits for a response from a signed-in tab. Milliseconds. */
const ANSWER_MS = 400;

/** Returns true if a user is signed in, false for an API key and if no one is signed in. */
export function isUserSession(): boolean {
  return currentCredential()?.startsWith(SESSION_PREFIX) === true;
}

/**
 * Returns the address of the page where people sign in. After the sign-in, that page returns to the current address.
 */
export function userSignInAddress(): string {
  return `/sign-in?return_to=${encodeURIComponent(location.pathname + location.hash)}`;
}

type Listener = (credential: string | null, reason: string) => void;
type Message = { type: "ask" } | { type: "key"; key: string } | { type: "out"; key: string; why: string };

const listeners = new Set<Listener>();
let channel: BroadcastChannel | null = null;

/** Returns the credential; null if no one is signed in. */
export function currentCredential(): string | null {
  return sessionStorage.getItem(STORE) ?? localStorage.getItem(STORE);
}

/** Returns the `fetch` options that send a credential. For null, returns options that send no credential. */
export function credentialFetchOptions(credential: string | null): {
  credentials: RequestCredentials;
  headers: Record<string, string>;
} {
  // The service requires the page token, because browsers send the cookie to every port of this host.
  if (credential?.startsWith(SESSION_PREFIX) === true)
    return { credentials: "same-origin", headers: { "assent-session": credential.slice(SESSION_PREFIX.length) } };
  // Never send credentials that the browser adds on its own.
  return { credentials: "omit", headers: credential === null ? {} : { authorization: `Bearer ${credential}` } };
}

/** Calls `listener` when the credential changes. Returns a function that removes the listener. */
export function watchSession(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Signs in with the API key, in this tab and in all tabs that are not signed in. */
export function signIn(key: string): void {
  sessionStorage.setItem(STORE, key);
  notify(key, "");
  post({ type: "key", key });
}

/**
 * Signs out in every tab.
 * @param reason shown on the sign-in page; empty if the person chose to sign out
 */
export function signOut(reason = ""): void {
  const credential = currentCredential();
  forget(credential);
  notify(null, reason);
  if (credential !== null) post({ type: "out", key: credential, why: reason });
}

/**
 * Signs out in every tab because the service responded with 401.
 * @param detail detail of the response. Not displayed for a session: if the browser has dropped the cookie, the
 * detail asks for an API key
 */
export function signOutAfterRefusal(detail: string): void {
  signOut(isUserSession() ? "your session has ended" : detail);
}

/** Asks other tabs for their credential. Resolves to null if no tab is signed in. */
export function requestKeyFromTabs(): Promise<string | null> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stop();
      resolve(currentCredential());
    };
    const timer = setTimeout(end, ANSWER_MS);
    const stop = watchSession((credential) => {
      if (credential !== null) end();
    });
    post({ type: "ask" });
  });
}

/** Starts listening to other tabs. */
export function listenToOtherTabs(): void {
  openChannel();
}

function post(message: Message): void {
  openChannel().postMessage(message);
}

function openChannel(): BroadcastChannel {
  if (channel !== null) return channel;
  const opened = new BroadcastChannel("assent.session");
  channel = opened;
  opened.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    const ownKey = currentCredential();
    if (data.type === "ask" && ownKey !== null) post({ type: "key", key: ownKey });
    if (data.type === "key" && ownKey === null && typeof data.key === "string") {
      sessionStorage.setItem(STORE, data.key);
      notify(data.key, "");
    }
    // Ignore the message if the other tab signed out a different credential than this tab's.
    if (data.type === "out" && ownKey !== null && data.key === ownKey) {
      forget(ownKey);
      notify(null, data.why);
    }
  });
  return opened;
}

/**
 * Deletes the credential, and everything that the person typed, because reasons and drafts are private. Keeps the page
 * token of a newer session.
 */
function forget(credential: string | null): void {
  if (localStorage.getItem(STORE) === credential) localStorage.removeItem(STORE);
  for (const name of Object.keys(sessionStorage)) if (name.startsWith("assent.")) sessionStorage.removeItem(name);
}

function notify(credential: string | null, reason: string): void {
  for (const listener of listeners) listener(credential, reason);
}
