/** Grants: what a user has allowed a client. They exist only as ledger entries, so all processes know the same grants. */
import { parseEntryTime } from "../../src/core.ts";
import { type EntryBody, type Fold, PersistentMap } from "../../src/plugin.ts";
import { GRANT_ENTRY, type GrantChange } from "./schemas.ts";

export interface Grant extends Pick<GrantChange, "client" | "resource" | "issuer" | "claims" | "user"> {
  id: string;
  agent_id: string;
  /** Counts the access tokens that were issued. */
  generation: number;
  /** Expiry of the newest access token, and of the one before. Milliseconds. */
  access: readonly [newest: number, previous: number];
  granted_at: number;
  refreshed_at: number;
  expires_at: number;
  ended_at: number | null;
}

export interface Grants {
  byId: PersistentMap<string, Grant>;
  /** Ids of grants by what was exchanged for them, so that nothing is exchanged twice. */
  byUsed: PersistentMap<string, string>;
  /** Number of grants at which those that are over are removed. */
  pruneAt: number;
}

const MIN_PRUNE = 1000;
/**
 * Grants remain this long after their expiry, which is not before the expiry of what was exchanged for them, with the
 * tolerated clock difference. Milliseconds.
 */
const KEPT_MS = 3_600_000;

export const grantState: Fold<Grants> = {
  name: "oauth-grants",
  initial: { byId: PersistentMap.of(), byUsed: PersistentMap.of(), pruneAt: MIN_PRUNE },
  on: { [GRANT_ENTRY]: (grants, entry) => applyGrantEntry(grants, entry as GrantEntry) },
};

type GrantEntry = Extract<EntryBody, { data: object }>;

/** Returns the grants after an entry. Throws RangeError if the entry contradicts earlier entries. */
export function applyGrantEntry(grants: Grants, { at: time, agent_id, data }: GrantEntry): Grants {
  const { change, grant_id: id, used, access_expires_at, expires_at, ...about } = data as GrantChange;
  const at = parseEntryTime(time);
  const access = access_expires_at === null ? 0 : parseEntryTime(access_expires_at);
  const before = grants.byId.get(id);
  if (change === "granted") {
    if (before !== undefined || used === null || grants.byUsed.has(used))
      throw new RangeError(`the grant ${id} is granted twice`);
    const { user, client, resource, issuer, claims } = about;
    const grant: Grant = {
      id,
      agent_id: agent_id as string,
      user,
      client,
      resource,
      issuer,
      claims,
      generation: 1,
      access: [access, 0],
      granted_at: at,
      refreshed_at: at,
      ended_at: null,
      expires_at: parseEntryTime(expires_at),
    };
    const { byId, byUsed, pruneAt } = grants.byId.size < grants.pruneAt ? grants : prune(grants, at);
    return { byId: byId.with(id, grant), byUsed: byUsed.with(used, id), pruneAt };
  }
  if (before === undefined || before.ended_at !== null) throw new RangeError(`there is no grant ${id} to change`);
  const after: Grant =
    change === "ended"
      ? { ...before, ended_at: at }
      : {
          ...before,
          generation: before.generation + 1,
          access: [access, before.access[0]],
          refreshed_at: at,
        };
  return { ...grants, byId: grants.byId.with(id, after) };
}

function prune({ byId, byUsed }: Grants, now: number): Grants {
  const isOver = ({ expires_at, access }: Grant): boolean => Math.max(expires_at, access[0]) + KEPT_MS < now;
  const rest = [...byId].filter(([, grant]) => !isOver(grant));
  const ids = new Set(rest.map(([id]) => id));
  return {
    byId: PersistentMap.of(rest),
    byUsed: PersistentMap.of([...byUsed].filter(([, id]) => ids.has(id))),
    pruneAt: Math.max(MIN_PRUNE, rest.length * 2),
  };
}
