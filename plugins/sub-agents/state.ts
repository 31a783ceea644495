/**
 * The authorities that agents have given. Every process computes them from the ledger's entries, so no write to the
 * database can add, extend or change one.
 */
import { type Actor, type AuthorityFact, type AuthorityLink, parseEntryTime, sameName } from "../../src/core.ts";
import {
  dropOldEnded,
  type EndableValues,
  type Fold,
  PersistentMap,
  RETAINED_ENDED,
  type StatesReader,
  toRfc3339,
} from "../../src/plugin.ts";
import type { AuthorityEntry } from "./entry.ts";

/** Maximum number of authorities in a chain. */
export const MAX_DEPTH = 8;

export interface Authority extends Pick<
  AuthorityEntry["authority"],
  "id" | "parent" | "from" | "tools" | "operations" | "condition" | "count" | "sum" | "session"
> {
  /** The agent that may act under the authority. */
  agent_id: string;
  /** The first authority of the chain: its own id if it has no parent. */
  root: string;
  /** Position in its chain, from 1. */
  depth: number;
  /** Milliseconds. */
  created_at: number;
  until: number;
  comment: string | null;
  /** The key that gave it. */
  by: Actor;
  /** Sequence number of the entry that created it. */
  seq: number;
  /** The recorded end; null if no entry records an end. */
  ended: AuthorityEnd | null;
}

export interface AuthorityEnd {
  cause: NonNullable<AuthorityEntry["cause"]> | "time";
  /** Milliseconds. */
  at: number;
  by: Actor | null;
  comment: string | null;
}

/** The recent authorities. Those that ended long ago are evicted, so that agents cannot fill the memory. */
export interface Authorities extends EndableValues<Authority> {
  /** Authorities without a recorded end that had not expired at the last entry, in ledger order. */
  readonly open: readonly Authority[];
}

export const authorityState: Fold<Authorities> = {
  name: "sub-agents",
  initial: { all: PersistentMap.of(), nextSweep: RETAINED_ENDED, open: [] },
  on: { authority: applyAuthorityEntry },
};

/** Returns the authorities after an entry. Throws RangeError if the entry contradicts earlier entries. */
export function applyAuthorityEntry(
  { all, nextSweep, open }: Authorities,
  entry: AuthorityEntry & { seq: number },
): Authorities {
  const at = parseEntryTime(entry.at);
  const before = all.get(entry.authority.id) ?? null;
  const authority = entry.change === "created" ? create(all, before, entry, at) : end(before, entry, at);
  const isEnded = ({ ended, until }: Authority): boolean => ended !== null || until <= at;
  const others = open.filter(({ id }) => id !== authority.id);
  return {
    ...dropOldEnded({ all: all.with(authority.id, authority), nextSweep }, isEnded),
    open: [...others, authority].filter((each) => !isEnded(each)),
  };
}

function create(
  all: Authorities["all"],
  before: Authority | null,
  { agent_id, authority, cause, comment, by, seq }: AuthorityEntry & { seq: number },
  at: number,
): Authority {
  const { id, parent: parentId, from } = authority;
  const until = parseEntryTime(authority.until);
  const parent = parentId === null ? null : (all.get(parentId) ?? null);
  const fault = (detail: string): RangeError => new RangeError(`the authority ${id} ${detail}`);
  if (before !== null || cause !== null) throw fault("is created twice, or with the cause of an end");
  if (by.agent_id === null || !sameName(by.agent_id, from)) throw fault("was not given by the agent that it names");
  if (until <= at) throw fault("ends before it begins");
  if (parentId !== null) {
    if (parent === null || findEnd(all, parent, at) !== null) throw fault("names a parent that was not in force");
    if (!sameName(parent.agent_id, from)) throw fault("names a parent of another agent");
    if (until > parent.until || parent.depth >= MAX_DEPTH) throw fault("goes beyond its parent");
  }
  const position = { root: parent?.root ?? id, depth: (parent?.depth ?? 0) + 1 };
  return { ...authority, agent_id, ...position, created_at: at, until, comment, by, seq, ended: null };
}

function end(before: Authority | null, entry: AuthorityEntry, at: number): Authority {
  const { agent_id, authority, cause, comment, by } = entry;
  if (before === null || before.ended !== null || before.until <= at)
    throw new RangeError(`there is no authority ${authority.id} to end`);
  if (cause === null) throw new RangeError(`the authority ${authority.id} ends without a cause`);
  if (JSON.stringify(toTerms(before)) !== JSON.stringify(toTerms({ ...authority, agent_id })))
    throw new RangeError(`the authority ${authority.id} ends with other members than it was given with`);
  return { ...before, ended: { cause, at, by, comment } };
}

/** Returns what an entry says about an authority. */
export function toTerms(
  authority: Omit<Authority, "until" | "root" | "depth" | "created_at" | "comment" | "by" | "seq" | "ended"> & {
    until: number | string;
  },
): AuthorityEntry["authority"] & { agent_id: string } {
  const { agent_id, id, parent, from, tools, operations, condition, count, sum, until, session } = authority;
  return {
    agent_id,
    id,
    parent,
    from,
    tools,
    operations,
    condition,
    count,
    sum: sum && {
      of: sum.of,
      at_most: sum.at_most,
      ...(sum.reserve === undefined ? {} : { reserve: sum.reserve }),
    },
    until: typeof until === "string" ? until : toRfc3339(until),
    session: session && { id: session.id, issued_by: session.issued_by },
  };
}

/** Returns the authority and its ancestors, root first, as far as they are in memory. */
export function chainOf(all: Authorities["all"], authority: Authority): Authority[] {
  const chain = [authority];
  for (let { parent } = authority; parent !== null;) {
    const next = all.get(parent);
    if (next === undefined) break;
    chain.unshift(next);
    ({ parent } = next);
  }
  return chain;
}

/** Returns the end of an authority or of one of its ancestors. Null if it is in force. */
export function findEnd(all: Authorities["all"], authority: Authority, now: number): AuthorityEnd | null {
  const chain = chainOf(all, authority);
  for (const { ended, until } of chain.toReversed()) {
    if (ended !== null) return ended;
    if (until <= now) return { cause: "time", at: until, by: null, comment: null };
  }
  // Only ended authorities leave the memory.
  const isWhole = chain[0]?.parent === null;
  return isWhole ? null : { cause: "parent", at: authority.until, by: null, comment: null };
}

/** Returns the authorities in force below this one, directly or not. */
export function listBelow({ all, open }: Authorities, { id, root }: Authority, now: number): Authority[] {
  return open.filter(
    (other) =>
      other.root === root && other.id !== id && other.until > now && chainOf(all, other).some((link) => link.id === id),
  );
}

/**
 * Returns the authority that a request of the agent names, as a fact of its decision. An authority of another agent
 * counts as unknown, so that an agent learns nothing about it.
 */
export function resolveAuthority({ state, now }: StatesReader, id: string, agentId: string): AuthorityFact {
  const { all } = state(authorityState);
  const authority = all.get(id);
  if (authority === undefined || !sameName(authority.agent_id, agentId)) {
    const reason = `there is no authority "${id}" for the agent that submitted the action`;
    return { id, fault: { code: "AUTHORITY_UNKNOWN", reason }, links: [] };
  }
  const links = chainOf(all, authority).map(toLink);
  const ended = findEnd(all, authority, now);
  if (ended === null) return { id, fault: null, links };
  const reason = `the authority ${id} ended at ${toRfc3339(ended.at)} (${ended.cause})`;
  return { id, fault: { code: "AUTHORITY_ENDED", reason }, links };
}

function toLink({ id, from, by, session, created_at, until, ...terms }: Authority): AuthorityLink {
  return {
    id,
    agent_id: from,
    key_id: by.key_id,
    owner: by.owner,
    principal: by.principal,
    session,
    created_at: toRfc3339(created_at),
    until: toRfc3339(until),
    tools: [...terms.tools],
    operations: [...terms.operations],
    condition: terms.condition,
    count: terms.count,
    sum: terms.sum,
  };
}
