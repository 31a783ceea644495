/**
 * The credential that this browser is signed in with: an API key, or `COOKIE_CREDENTIAL` for a user with a session
 * cookie, which no script can read. Each tab stores the credential in its session storage, and sends it to new tabs of
 * this origin on request. An API key is stored on the device only if the person selected "Stay signed in". After a
 * sign-in, the page `/sign-in` stores `COOKIE_CREDENTIAL` on the device, so that the console knows about the session.
 */
const STORE = "assent.key";
/** Time that a new tab waits for a response from a signed-in tab. Milliseconds. */
const ANSWER_MS = 400;

/** Placeholder credential for a user whose session is in a cookie. The browser sends the cookie automatically. */
export const COOKIE_CREDENTIAL = "cookie";

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
  // A form on another site cannot send this header. The service requires it, because the browser sends the cookie with
  // every request.
  if (credential === COOKIE_CREDENTIAL) return { credentials: "same-origin", headers: { "assent-session": "1" } };
  // Never send credentials that the browser adds on its own.
  return { credentials: "omit", headers: credential === null ? {} : { authorization: `Bearer ${credential}` } };
}

/** Calls `listener` when the credential changes. Returns a function that removes the listener. */
export function watchSession(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Signs in with the credential, in this tab and in all tabs that are not signed in.
 * @param remember whether to store the credential on the device, so that it remains after the last tab is closed
 */
export function signIn(credential: string, remember: boolean): void {
  sessionStorage.setItem(STORE, credential);
  if (remember) localStorage.setItem(STORE, credential);
  else localStorage.removeItem(STORE);
  notify(credential, "");
  post({ type: "key", key: credential });
}

/**
 * Signs out in every tab.
 * @param reason shown on the sign-in page; empty if the person chose to sign out
 */
export function signOut(reason = ""): void {
  const credential = currentCredential();
  forget();
  notify(null, reason);
  if (credential !== null) post({ type: "out", key: credential, why: reason });
}

/**
 * Signs out in every tab because the service responded with 401.
 * @param detail detail of the response. Not displayed for a session cookie: if the browser has dropped the cookie, the
 * detail asks for an API key
 */
export function signOutAfterRefusal(detail: string): void {
  signOut(currentCredential() === COOKIE_CREDENTIAL ? "your session has ended" : detail);
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
      forget();
      notify(null, data.why);
    }
  });
  return opened;
}

/** Deletes the credential, and everything that the person typed, because reasons and drafts are private. */
function forget(): void {
  localStorage.removeItem(STORE);
  for (const name of Object.keys(sessionStorage)) if (name.startsWith("assent.")) sessionStorage.removeItem(name);
}

function notify(credential: string | null, reason: string): void {
  for (const listener of listeners) listener(credential, reason);
}
