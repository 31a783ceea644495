/**
 * Stops, which prevent actions regardless of policies. They are stored only as ledger entries and are rebuilt from
 * these entries, so no write to the database can lift a stop.
 */
import { type Actor, type Bar, listNameReadings, matchesAnyName, parseEntryTime } from "../../src/core.ts";
import { type BarCoverage, type BarTarget, type Fold, PersistentMap, toRfc3339 } from "../../src/plugin.ts";
import type { StopEntry } from "./entry.ts";

/** Selects the actions that a stop covers. An action must match all members; null matches everything. */
interface StopSelector {
  /** Glob for the agent, regardless of case. */
  agent: string | null;
  /** Glob for the tool, regardless of case. */
  tool: string | null;
  /**
   * Name of a policy. The stop denies each action for which this policy has an answer; null denies regardless of
   * policies.
   */
  policy: string | null;
}

export interface Stop extends StopSelector {
  id: string;
  reason: string;
  /** Time when the stop expires, in milliseconds; null if it never expires. */
  until: number | null;
  /** Sequence number of the entry that placed the stop. */
  seq: number;
  placed_at: number;
  placed_by: Actor;
  /** Requests to lift the stop. If `lifted_at` is set, the last request lifted it. */
  lifts: readonly { by: Actor; at: number; comment: string | null }[];
  lifted_at: number | null;
}

/** All stops, including lifted ones, keyed by id, and the stops that can still be active, in ledger order. */
export interface StopHistory {
  readonly all: PersistentMap<string, Stop>;
  readonly open: readonly Stop[];
}

export const NO_STOPS: StopHistory = { all: PersistentMap.of(), open: [] };

/** Applies a stop entry. Throws RangeError if the entry contradicts earlier entries. */
export function applyStopEntry({ all, open }: StopHistory, entry: StopEntry & { seq: number }): StopHistory {
  const at = parseEntryTime(entry.at);
  const { id, until, ...about } = entry.stop;
  const before = all.get(id);
  let stop: Stop;
  if (entry.change === "placed") {
    if (before !== undefined) throw new RangeError(`the stop ${id} is placed twice`);
    const ends = until === null ? null : parseEntryTime(until);
    stop = {
      ...about,
      id,
      until: ends,
      seq: entry.seq,
      placed_at: at,
      placed_by: entry.by,
      lifts: [],
      lifted_at: null,
    };
  } else {
    if (before === undefined || before.lifted_at !== null) throw new RangeError(`there is no stop ${id} to lift`);
    const lifted = entry.change === "lifted";
    if (lifted !== entry.approvals >= entry.needed)
      throw new RangeError(`the stop ${id} was not lifted by this number of people`);
    const lifts = [...before.lifts, { by: entry.by, at, comment: entry.comment }];
    stop = { ...before, lifts, lifted_at: lifted ? at : null };
  }
  const others = open.filter((other) => other.id !== id);
  return { all: all.with(id, stop), open: [...others, stop].filter((other) => isStopActive(other, at)) };
}

export const stopState: Fold<StopHistory> = { name: "stops", initial: NO_STOPS, on: { stop: applyStopEntry } };

export function isStopActive({ until, lifted_at }: Stop, now: number): boolean {
  return lifted_at === null && (until === null || until > now);
}

export function listActiveStops({ open }: StopHistory, now: number): Stop[] {
  return open.filter((stop) => isStopActive(stop, now));
}

/** Returns true if the stop covers this agent and tool. Ignores the stop's policy. */
function stopApplies({ agent, tool }: StopSelector, action: BarTarget): boolean {
  if (agent !== null && !matchesAnyName([agent], action.agent_id)) return false;
  // A stop of `stripe` also covers `stripe/` and `stripe:refund`, which a program can read as `stripe`.
  return tool === null || listNameReadings(action.tool).some((name) => matchesAnyName([tool], name));
}

/** Returns what a stop covers. */
export function coverageOf(stop: StopSelector): BarCoverage {
  return (target, policies) => (stop.policy === null || policies.includes(stop.policy)) && stopApplies(stop, target);
}

/** Returns the active stops that cover an action. */
export function findStops(stops: StopHistory, action: BarTarget, now: number): Stop[] {
  return stops.open.length === 0 ? [] : listActiveStops(stops, now).filter((stop) => stopApplies(stop, action));
}

/**
 * Returns the bar of a stop, for the facts of a decision. Contains only the stop's id, because the stop's reason is
 * visible only to people who can read stops.
 */
export function toBar({ id, policy, until }: Stop): Bar {
  const consequence = policy === null ? "" : `, which stops the answers of policy "${policy}",`;
  const end = until === null ? "until someone lifts it" : `until ${toRfc3339(until)}, or until someone lifts it`;
  return {
    code: "STOPPED",
    id,
    policy,
    reason: `the stop ${id}${consequence} is in effect ${end}: no action is decided until then`,
  };
}

/** Returns the first stop that was placed after the entry `seq` and covers the target, even if it was lifted since. */
export function findStopPlacedAfter({ all }: StopHistory, target: BarTarget, seq: number): Stop | null {
  for (const stop of all.values()) if (stop.seq > seq && stopApplies(stop, target)) return stop;
  return null;
}
