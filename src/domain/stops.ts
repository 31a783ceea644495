/**
 * Stops: what halts decisions above all policies. They stand in the ledger and nowhere else, and are made again from its
 * entries: whoever writes to the database can lift none.
 */
import type { ActionRequest } from "./actions.ts";
import type { Actor, StopEntry } from "./entries.ts";
import { matchesAnyName } from "./policy/compile/name-patterns.ts";
import type { Facts, StopFact } from "./policy/types.ts";
import { parseRfc3339, toRfc3339 } from "./time.ts";

/** What a stop is about: all of what it names. Null for every one. */
export interface StopSelector {
  /** Glob, without regard to case. */
  agent: string | null;
  /** Likewise. */
  tool: string | null;
  /** Name of a policy: what its rules and limits answer. */
  policy: string | null;
}

export interface Stop extends StopSelector {
  id: string;
  reason: string;
  /** When it ends by itself. Milliseconds; null when never. */
  until: number | null;
  /** Of the entry that placed it. */
  seq: number;
  placed_at: number;
  placed_by: Actor;
  /** Who asked for it to be lifted, the last one being who lifted it. */
  lifts: readonly { by: Actor; at: number; comment: string | null }[];
  lifted_at: number | null;
}

/** Every stop that was ever placed, by id, and in the order of the ledger those that may hold. */
export interface Stops {
  readonly all: ReadonlyMap<string, Stop>;
  readonly open: readonly Stop[];
}

export const NO_STOPS: Stops = { all: new Map(), open: [] };

/** Throws RangeError for an entry that does not follow from those before it. */
export function applyStopEntry({ all }: Stops, entry: StopEntry & { seq: number }): Stops {
  const at = timeOf(entry.at);
  const { id, until, ...about } = entry.stop;
  const before = all.get(id);
  let stop: Stop;
  if (entry.change === "placed") {
    if (before !== undefined) throw new RangeError(`the stop ${id} is placed twice`);
    const ends = until === null ? null : timeOf(until);
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
    if (lifted !== entry.approvals >= entry.needed) throw new RangeError(`the stop ${id} is not lifted by so many`);
    const lifts = [...before.lifts, { by: entry.by, at, comment: entry.comment }];
    stop = { ...before, lifts, lifted_at: lifted ? at : null };
  }
  const stops = new Map(all).set(id, stop);
  return { all: stops, open: [...stops.values()].filter((one) => isStopActive(one, at)) };
}

export function isStopActive({ until, lifted_at }: Stop, now: number): boolean {
  return lifted_at === null && (until === null || until > now);
}

export function listActiveStops({ open }: Stops, now: number): Stop[] {
  return open.filter((stop) => isStopActive(stop, now));
}

/** Whether it is about what this agent does with this tool. Which policies answer is not asked here. */
export function stopApplies({ agent, tool }: StopSelector, action: Pick<ActionRequest, "agent_id" | "tool">): boolean {
  return (
    (agent === null || matchesAnyName([agent], action.agent_id)) &&
    (tool === null || matchesAnyName([tool], action.tool))
  );
}

/** What a decision about the action must know: one that stops it whatever policies say, or else those that name policies. */
export function findStopFacts(
  stops: Stops,
  action: Pick<ActionRequest, "agent_id" | "tool">,
  now: number,
): Pick<Facts, "stops"> {
  if (stops.open.length === 0) return {};
  const held = listActiveStops(stops, now).filter((stop) => stopApplies(stop, action));
  const whole = held.find(({ policy }) => policy === null);
  const facts = (whole === undefined ? held : [whole]).map(({ id, policy, until }): StopFact => ({
    id,
    policy,
    until: until === null ? null : toRfc3339(until),
  }));
  return facts.length === 0 ? {} : { stops: facts };
}

function timeOf(text: string): number {
  const at = parseRfc3339(text);
  if (at === null) throw new RangeError(`${text} is no time`);
  return at;
}
