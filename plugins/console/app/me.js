/** Who is signed in, what that key may do, and the names of keys that records name by id. */
import { call, url } from "./api.js";
import { key } from "./session.js";

/** @typedef {{ principal: string, scopes: string[], key: { id: string, name: string, owner: string | null, agent_id: string | null } }} Me */

/** @type {Me | null} */
let current = null;
/** Names by id; null for one that is asked for, or of which nothing is known. @type {Map<string, string | null>} */
const names = new Map();
/** @type {Set<() => void>} */
const watchers = new Set();
/** @type {Set<string>} */
let wanted = new Set();

const SOON = 20;
const MOST = 100;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** @param {AbortSignal} [signal] @returns {Promise<Me>} */
export async function loadMe(signal) {
  const used = key();
  const me = await call("/v1/me", signal === undefined ? {} : { signal });
  if (key() === used) takeMe(me);
  return me;
}

/** As the service told it to whoever signs in. @param {Me} me */
export function takeMe(me) {
  current = me;
  names.set(me.key.id, me.key.name);
}

export function forgetMe() {
  current = null;
  names.clear();
}

export function me() {
  return current;
}

/** @param {string} scope */
export function may(scope) {
  return current?.scopes.includes(scope) === true;
}

/** Null while it is not known; it is asked for then, and the watchers are told. @param {string} id of a key */
export function nameOfKey(id) {
  const name = names.get(id);
  if (name !== undefined) return name;
  if (!UUID.test(id) || !["actions:read", "provenance:read", "keys:manage"].some(may)) return null;
  names.set(id, null);
  if (wanted.size === 0) setTimeout(fetchNames, SOON);
  wanted.add(id);
  return null;
}

/** @param {() => void} watcher */
export function whenNamesCome(watcher) {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

async function fetchNames() {
  const ids = [...wanted];
  wanted = new Set();
  for (let from = 0; from < ids.length; from += MOST) {
    try {
      const part = ids.slice(from, from + MOST);
      const { keys } = await call(url("/v1/api-keys/names", { ids: part.join(",") }));
      for (const { id, name } of keys) names.set(id, name);
    } catch {
      // The ids stand where the names would.
    }
  }
  for (const watcher of watchers) watcher();
}
