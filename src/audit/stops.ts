/** Holds the ledger against the stops in it: nothing was let go while one held that is about it. */
import { parseEntryTime } from "../domain/action-history.ts";
import type { ApprovalEntry, DecisionEntry, ExecutionEntry, RedecisionEntry, StopEntry } from "../domain/entries.ts";
import { listActiveStops, NO_STOPS, findStopFacts, applyStopEntry, type Stop, type Stops } from "../domain/stops.ts";
import { matchesAnyName } from "../domain/policy/compile/name-patterns.ts";
import type { Body } from "./report.ts";

type OpenEntry = ApprovalEntry | RedecisionEntry | ExecutionEntry;
const LOOKED_AT = ["decision", "approval", "redecision", "execution"];

/** Whether it lets an open action go on: a yes, a permit, a start. */
function goesOn(entry: OpenEntry): boolean {
  if (entry.type === "approval") return entry.verdict === "approve";
  return entry.type === "redecision" ? entry.decision.effect !== "deny" : entry.phase === "start";
}

export interface StopsAudit {
  /** Takes the entries one after another. Throws RangeError for one that must not stand where it does. */
  fold(body: Body): void;
  stop(id: string): Stop | undefined;
  /** As of the entry that was taken last. */
  stops(): Stops;
}

export function createStopsAudit(): StopsAudit {
  let stops = NO_STOPS;

  /** What a stop that names a policy is about only replay can say; of verdicts and starts the entry names no tool. */
  function assertFree(body: Body, at: number): void {
    const entry = body as unknown as DecisionEntry | OpenEntry;
    let stop: string | undefined;
    if (entry.type === "decision") {
      if (entry.status !== "denied")
        stop = findStopFacts(stops, entry, at).stops?.find(({ policy }) => policy === null)?.id;
    } else if (goesOn(entry)) {
      stop = listActiveStops(stops, at).find(
        ({ agent, tool, policy }) =>
          tool === null && policy === null && (agent === null || matchesAnyName([agent], entry.agent_id)),
      )?.id;
    }
    if (stop !== undefined) throw new RangeError(`the stop ${stop} held, and it went on`);
  }

  return {
    fold(body) {
      const type = body["type"];
      if (type === "stop") stops = applyStopEntry(stops, body as unknown as StopEntry & { seq: number });
      else if (stops.open.length > 0 && LOOKED_AT.includes(String(type)))
        assertFree(body, parseEntryTime(String(body["at"])));
    },
    stop: (id) => stops.all.get(id),
    stops: () => stops,
  };
}
