/**
 * The key that this browser is signed in with. A tab keeps it in its own storage, which ends with the tab, and hands it
 * to another tab of the same origin that asks; what is written down for good is written because the person asked.
 */

const STORE = "assent.key";
/** How long a new tab waits for one that is signed in. */
const ANSWER = 400;

/** @type {Set<(key: string | null, why: string) => void>} */
const listeners = new Set();
/** @type {BroadcastChannel | null} */
let channel = null;

export function key() {
  return sessionStorage.getItem(STORE) ?? localStorage.getItem(STORE);
}

/** True where the key outlives the last tab. */
export function remembered() {
  return localStorage.getItem(STORE) !== null;
}

/** Tells of each change, by whichever tab. @param {(key: string | null, why: string) => void} listener */
export function whenSessionChanges(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** @param {string} value @param {boolean} remember also after the last tab is closed */
export function signIn(value, remember) {
  sessionStorage.setItem(STORE, value);
  if (remember) localStorage.setItem(STORE, value);
  else localStorage.removeItem(STORE);
  tell(value, "");
  open().postMessage({ type: "key", key: value });
}

/** In every tab. @param {string} why said on the page; empty where the person asked for it */
export function signOut(why = "") {
  const value = key();
  forget();
  tell(null, why);
  if (value !== null) open().postMessage({ type: "out", key: value, why });
}

/** The key of another tab, where one is signed in. @returns {Promise<string | null>} */
export function askOtherTabs() {
  return new Promise((resolve) => {
    const over = () => (clearTimeout(timer), stop(), resolve(key()));
    const timer = setTimeout(over, ANSWER);
    const stop = whenSessionChanges((value) => value !== null && over());
    open().postMessage({ type: "ask" });
  });
}

function open() {
  if (channel !== null) return channel;
  channel = new BroadcastChannel("assent.session");
  channel.addEventListener("message", ({ data }) => {
    const mine = key();
    if (data.type === "ask" && mine !== null) channel?.postMessage({ type: "key", key: mine });
    if (data.type === "key" && mine === null && typeof data.key === "string") {
      sessionStorage.setItem(STORE, data.key);
      tell(data.key, "");
    }
    // A tab may be signed in with another key than the one that ended.
    if (data.type === "out" && mine !== null && data.key === mine) {
      forget();
      tell(null, data.why);
    }
  });
  return channel;
}

function forget() {
  sessionStorage.removeItem(STORE);
  localStorage.removeItem(STORE);
}

/** @param {string | null} value @param {string} why */
function tell(value, why) {
  for (const listener of listeners) listener(value, why);
}

/** Listens to the other tabs from now on. */
export function shareSession() {
  open();
}
