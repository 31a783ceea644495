/**
 * Grants: votes by which one approver allows later actions of an agent with one tool and operation. They are stored
 * only as ledger entries and are rebuilt from these entries, so no write to the database can add or extend a grant.
 */
import { type ActionRequest, type Actor, foldName, parseEntryTime, type SumCap } from "../../src/core.ts";
import { dropOldEnded, type EndableValues, type Fold, PersistentMap, RETAINED_ENDED } from "../../src/plugin.ts";
import type { GrantEntry } from "./entry.ts";

/**
 * The target of a grant, which covers only actions with exactly these names, because policies can be case-sensitive.
 */
export type GrantTarget = Pick<ActionRequest, "agent_id" | "tool" | "operation">;

export interface Grant extends GrantTarget {
  id: string;
  /** CEL; null covers every request. */
  scope: string | null;
  /** Maximum number of uses. */
  count: number;
  sum: SumCap | null;
  ends_on_failure: boolean;
  /** Credential id of the passkey that signed the grant together with a vote; null if no passkey signed it. */
  passkey: string | null;
  /** Start of the grant, and its expiry. Milliseconds. */
  granted_at: number;
  until: number;
  /** The grantor. */
  by: Actor;
  comment: string | null;
  /** The action whose approval created the grant; null if the grant was created by itself. */
  granted_with: string | null;
  /** Sequence number of the entry that created the grant. */
  seq: number;
  /** The recorded end of the grant; null if no entry records an end. */
  ended: GrantEnd | null;
}

export interface GrantEnd {
  cause: NonNullable<GrantEntry["cause"]> | "stop" | "time";
  /** Time of the end. Milliseconds. */
  at: number;
  /** The credential that ended the grant; null if it expired. */
  by: Actor | null;
  related_action: string | null;
  comment: string | null;
}

export interface Grants extends EndableValues<Grant> {
  /** Grants without a recorded end, keyed by case-folded agent, tool and operation. A list can be empty. */
  readonly open: PersistentMap<string, readonly Grant[]>;
}

export const NO_GRANTS: Grants = { all: PersistentMap.of(), nextSweep: RETAINED_ENDED, open: PersistentMap.of() };

/** Returns the grants after an entry. Throws RangeError if the entry contradicts earlier entries. */
export function applyGrantEntry({ all, nextSweep, open }: Grants, entry: GrantEntry & { seq: number }): Grants {
  const at = parseEntryTime(entry.at);
  const grant = changeGrant(all.get(entry.grant.id) ?? null, entry);
  const key = targetKey(grant);
  // Remove expired grants, so that the list stays short.
  const others = (open.get(key) ?? []).filter(({ id, until }) => id !== grant.id && until > at);
  // A grant that ended early stays in memory until its expiry, because its task may still be open.
  const isOver = ({ until }: Grant): boolean => until <= at;
  const grants = dropOldEnded({ all: all.with(grant.id, grant), nextSweep }, isOver);
  const lists = open.with(key, grant.ended === null ? [...others, grant] : others);
  const isSwept = grants.all.size < all.size;
  return { ...grants, open: isSwept ? PersistentMap.of([...lists].filter(([, list]) => !list.every(isOver))) : lists };
}

export const grantState: Fold<Grants> = { name: "grants", initial: NO_GRANTS, on: { grant: applyGrantEntry } };

function changeGrant(before: Grant | null, entry: GrantEntry & { seq: number }): Grant {
  const { change, cause, grant, agent_id, by, comment, related_action, seq } = entry;
  const at = parseEntryTime(entry.at);
  if (change === "granted") {
    if (before !== null) throw new RangeError(`the grant ${grant.id} is granted twice`);
    if (cause !== null) throw new RangeError(`the grant ${grant.id} is granted with the cause of an end`);
    const { until, ...terms } = grant;
    const granted = {
      agent_id,
      granted_at: at,
      until: parseEntryTime(until),
      by,
      comment,
      granted_with: related_action,
      seq,
    };
    return { ...terms, ...granted, ended: null };
  }
  if (before === null || before.ended !== null) throw new RangeError(`there is no grant ${grant.id} to end`);
  if (cause === null) throw new RangeError(`the grant ${grant.id} ends without a cause`);
  return { ...before, ended: { cause, at, by, related_action, comment } };
}

/** Returns the first bar that was placed after an entry and covers the target; null if there is none. */
export type FindPlacedBar = (target: GrantTarget, seq: number) => { at: number; by: Actor; reason: string } | null;

/** Returns the first end of a grant: a recorded end, a bar, or its expiry. Returns null while the grant is open. */
export function findGrantEnd(grant: Grant, findBar: FindPlacedBar, now: number): GrantEnd | null {
  const ends: GrantEnd[] = grant.ended === null ? [] : [grant.ended];
  const bar = findBar(grant, grant.seq);
  if (bar !== null) ends.push({ cause: "stop", at: bar.at, by: bar.by, related_action: null, comment: bar.reason });
  if (grant.until <= now) ends.push({ cause: "time", at: grant.until, by: null, related_action: null, comment: null });
  return ends.reduce<GrantEnd | null>((first, end) => (first === null || end.at < first.at ? end : first), null);
}

/** Returns the open grants for this target, regardless of case. Oldest first. */
export function findOpenGrants({ open }: Grants, target: GrantTarget, findBar: FindPlacedBar, now: number): Grant[] {
  return (open.get(targetKey(target)) ?? []).filter((grant) => findGrantEnd(grant, findBar, now) === null);
}

/** Returns true if the grant can cover an action with these names. */
export function isGrantFor(grant: GrantTarget, { agent_id, tool, operation }: GrantTarget): boolean {
  return grant.agent_id === agent_id && grant.tool === tool && grant.operation === operation;
}

const targetKey = ({ agent_id, tool, operation }: GrantTarget): string =>
  JSON.stringify([agent_id, tool, operation].map(foldName));
