/**
 * Delegations: a user lets another user approve on their behalf for a limited time. They are stored only as ledger
 * entries and are rebuilt from these entries, so no write to the database can add or extend a delegation.
 */
import type { Actor, DelegationEntry } from "./entries.ts";
import type { Fold } from "./fold.ts";
import { foldName } from "./names.ts";
import type { GroupLimits } from "./groups.ts";
import { PersistentMap } from "./persistent-map.ts";
import { parseEntryTime } from "./time.ts";
import type { User, Users } from "./users.ts";

/** Maximum time from the start of a delegation to its end. Milliseconds. */
export const MAX_DELEGATION_MS = 90 * 86_400_000;

export interface Delegation {
  id: string;
  /** Id of the delegator, and id of the delegate. */
  from: string;
  to: string;
  /** Groups and rotas for which the delegate's vote counts; null for all groups of the delegator. */
  groups: readonly string[] | null;
  /** Globs of the actions that the delegation covers; null for all. */
  agents: readonly string[] | null;
  tools: readonly string[] | null;
  /** Start of the delegation, and its end. Milliseconds. */
  starts_at: number;
  until: number;
  comment: string | null;
  created_at: number;
  by: Actor;
  /** Sequence number of the entry that created the delegation. */
  seq: number;
  /** The recorded end of the delegation; null if no entry records an end. */
  ended: { cause: NonNullable<DelegationEntry["cause"]>; at: number; by: Actor; comment: string | null } | null;
}

/** All delegations, including ended ones, keyed by id, in the order of the ledger. */
export type Delegations = PersistentMap<string, Delegation>;

export const NO_DELEGATIONS: Delegations = PersistentMap.of();

/**
 * Returns the delegations after an entry.
 * Throws RangeError if the entry contradicts earlier entries.
 */
export function applyDelegationEntry(
  delegations: Delegations,
  { seq, change, cause, delegation, comment, by, ...entry }: DelegationEntry & { seq: number },
): Delegations {
  const { id, from, to, groups, agents, tools } = delegation;
  const at = parseEntryTime(entry.at);
  const before = delegations.get(id);
  if (change === "ended") {
    if (before === undefined || before.ended !== null) throw new RangeError(`there is no delegation ${id} to end`);
    if (cause === null) throw new RangeError(`the delegation ${id} ends without a cause`);
    return delegations.with(id, { ...before, ended: { cause, at, by, comment } });
  }
  const [starts_at, until] = [parseEntryTime(delegation.starts_at), parseEntryTime(delegation.until)];
  if (before !== undefined) throw new RangeError(`the delegation ${id} is created twice`);
  if (cause !== null) throw new RangeError(`the delegation ${id} is created with the cause of an end`);
  if (from === to) throw new RangeError(`the delegation ${id} is from a user to the same user`);
  if (until <= starts_at || until - starts_at > MAX_DELEGATION_MS || starts_at < at)
    throw new RangeError(`the delegation ${id} has a period that is not allowed`);
  const terms = { id, from, to, groups, agents, tools, starts_at, until };
  return delegations.with(id, { ...terms, comment, created_at: at, by, seq, ended: null });
}

export const delegationState: Fold<Delegations> = {
  name: "delegations",
  initial: NO_DELEGATIONS,
  on: { delegation: applyDelegationEntry },
};

export type DelegationStatus = "scheduled" | "active" | "ended";

/**
 * Returns the status at a time. A delegation ends when either user is deactivated, even before an entry records this.
 */
export function delegationStatus(delegation: Delegation, users: Users, now: number): DelegationStatus {
  const { from, to, starts_at, until, ended } = delegation;
  if (ended !== null || until <= now || !isLive(users.get(from)) || !isLive(users.get(to))) return "ended";
  return starts_at > now ? "scheduled" : "active";
}

const notEnded = new WeakMap<Delegations, ReadonlyMap<string, Delegation[]>>();

/** Returns the delegations to this user without a recorded end, oldest first. Searches ended ones once for each change. */
function listNotEnded(delegations: Delegations, to: string): readonly Delegation[] {
  const cached = notEnded.get(delegations);
  if (cached !== undefined) return cached.get(to) ?? [];
  const byUser = new Map<string, Delegation[]>();
  for (const delegation of delegations.values()) {
    if (delegation.ended !== null) continue;
    const others = byUser.get(delegation.to);
    if (others === undefined) byUser.set(delegation.to, [delegation]);
    else others.push(delegation);
  }
  notEnded.set(delegations, byUser);
  return byUser.get(to) ?? [];
}

/**
 * Returns the active delegations to this user, oldest first. Does not follow chains: delegations to one of the
 * delegators do not count.
 */
export function activeDelegationsTo(delegations: Delegations, users: Users, to: string, now: number): Delegation[] {
  return listNotEnded(delegations, to).filter((delegation) => delegationStatus(delegation, users, now) === "active");
}

/** Returns the next time at which a delegation to this user starts or ends as planned; null if there is none. */
export function nextDelegationChange(delegations: Delegations, to: string, now: number): number | null {
  const times = listNotEnded(delegations, to)
    .flatMap(({ starts_at, until }) => [starts_at, until])
    .filter((time) => time > now);
  return times.length === 0 ? null : Math.min(...times);
}

/** Returns the agents and tools that a delegation covers; null for all agents and tools. */
export function limitsOfDelegation({ agents, tools }: Delegation): GroupLimits | null {
  if (agents === null && tools === null) return null;
  return { agents: agents?.map(foldName) ?? null, tools: tools?.map(foldName) ?? null };
}

const isLive = (user: User | undefined): boolean => user !== undefined && user.ended_at === null;
