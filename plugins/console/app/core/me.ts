/** The signed-in credential: its identity and scopes, and the names of keys and users that records identify by id. */
import { signal } from "@preact/signals";
import type { Api } from "./api-types.ts";
import { request } from "./api.ts";
import { currentCredential, isUserSession } from "./session.ts";

export type Me = Api["GET /v1/me"]["response"];

/** Null until it is loaded. */
const current = signal<Me | null>(null);
/** Names of keys and users, keyed by id; null for an id that is unknown, "" while it is being requested. */
const names = new Map<string, string | null>();
const watchers = new Set<() => void>();
let missingIds = new Set<string>();

/** Names that are requested within this time are read with one request. Milliseconds. */
const COLLECT_MS = 20;
const MAX_IDS = 100;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

export async function loadMe(signal?: AbortSignal): Promise<Me> {
  const used = currentCredential();
  const loaded = await request("GET /v1/me", { signal });
  if (currentCredential() === used) storeMe(loaded);
  return loaded;
}

/** Stores the identity that the service returned at the sign-in. */
export function storeMe(loaded: Me): void {
  current.value = loaded;
  names.set(loaded.key.id, loaded.key.name);
}

/** Stores names that a response contains, keyed by principal. */
export function storeNames(ofPrincipals: Readonly<Record<string, string>>): void {
  for (const [principal, name] of Object.entries(ofPrincipals))
    names.set(principal.replace(/^(?:user|key):/, ""), name);
}

export function clearMe(): void {
  current.value = null;
  names.clear();
}

export function currentMe(): Me | null {
  return current.value;
}

/** Returns the id of the signed-in user; null for an API key, and until the user is loaded. */
export function signedInUserId(): string | null {
  return isUserSession() ? (current.value?.key.id ?? null) : null;
}

/** Returns whether the credential has a scope. */
export function hasScope(scope: string): boolean {
  return (current.value?.scopes as readonly string[] | undefined)?.includes(scope) === true;
}

/**
 * Returns the name of a key or user; null if it is unknown or the credential cannot read names. If the name was not read
 * yet, requests it, returns "", and notifies the watchers when it arrives.
 */
export function nameOfKey(id: string): string | null {
  const name = names.get(id);
  if (name !== undefined) return name;
  if (!UUID.test(id) || !["actions:read", "provenance:read", "keys:manage"].some(hasScope)) return null;
  names.set(id, "");
  if (missingIds.size === 0) setTimeout(() => void fetchNames(), COLLECT_MS);
  missingIds.add(id);
  return "";
}

export function watchKeyNames(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

async function fetchNames(): Promise<void> {
  const ids = [...missingIds];
  missingIds = new Set();
  await readNames(ids);
  // Without names, the page shows the ids.
  for (const id of ids) if (names.get(id) === "") names.set(id, null);
  for (const watcher of watchers) watcher();
}

/**
 * Returns the names of principals, keyed by principal. A principal whose name is unknown or cannot be read has itself as
 * its name.
 */
export async function namesOfPrincipals(principals: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const idOf = (principal: string): string => principal.replace(/^(?:user|key):/, "");
  await readNames([...new Set(principals.map(idOf))].filter((id) => UUID.test(id) && !names.get(id)));
  return new Map(principals.map((principal) => [principal, names.get(idOf(principal)) || principal]));
}

async function readNames(ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    try {
      const query = { ids: ids.slice(from, from + MAX_IDS).join(",") };
      const { keys } = await request("GET /v1/api-keys/names", { query });
      for (const { id, name } of keys) names.set(id, name);
    } catch {
      // Without names, the page shows the ids.
    }
  }
}
