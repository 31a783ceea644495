/** Checks that no action was allowed or started while a stop applied to it. */
import { parseEntryTime } from "../domain/time.ts";
import type { ApprovalEntry, DecisionEntry, ExecutionEntry, RedecisionEntry, StopEntry } from "../domain/entries.ts";
import { listActiveStops, NO_STOPS, findStops, applyStopEntry, type Stop, type StopHistory } from "../domain/stops.ts";
import { matchesAnyName } from "../domain/policy/compile/name-patterns.ts";
import type { EntryBody } from "./report.ts";

type OpenEntry = ApprovalEntry | RedecisionEntry | ExecutionEntry;
const CHECKED_TYPES = ["decision", "approval", "redecision", "execution"];

/** Returns true if the entry lets an open action continue: an approval, a permit or a start. */
function letsActionContinue(entry: OpenEntry): boolean {
  if (entry.type === "approval") return entry.verdict === "approve";
  return entry.type === "redecision" ? entry.decision.effect !== "deny" : entry.phase === "start";
}

export interface StopsAuditor {
  /**
   * Applies the next entry; call it in order. Throws for an entry that a stop should have prevented, or that
   * contradicts earlier entries.
   */
  fold(body: EntryBody): void;
  stop(id: string): Stop | undefined;
  /** Returns the stops as of the entry that was applied last. */
  stops(): StopHistory;
}

export function createStopsAuditor(): StopsAuditor {
  let stops = NO_STOPS;

  /**
   * Throws RangeError if a stop applied. Ignores stops of a policy, which only a replay can check. Ignores stops of a
   * tool for entries other than decisions, because only decisions contain the tool.
   */
  function assertNotStopped(body: EntryBody, at: number): void {
    const entry = body as unknown as DecisionEntry | OpenEntry;
    let stop: string | undefined;
    if (entry.type === "decision") {
      if (entry.status !== "denied") stop = findStops(stops, entry, at).find(({ policy }) => policy === null)?.id;
    } else if (letsActionContinue(entry)) {
      stop = listActiveStops(stops, at).find(
        ({ agent, tool, policy }) =>
          tool === null && policy === null && (agent === null || matchesAnyName([agent], entry.agent_id)),
      )?.id;
    }
    if (stop !== undefined) throw new RangeError(`the stop ${stop} was active and should have prevented this entry`);
  }

  return {
    fold(body) {
      const type = body["type"];
      if (type === "stop") stops = applyStopEntry(stops, body as unknown as StopEntry & { seq: number });
      else if (stops.open.length > 0 && CHECKED_TYPES.includes(String(type)))
        assertNotStopped(body, parseEntryTime(String(body["at"])));
    },
    stop: (id) => stops.all.get(id),
    stops: () => stops,
  };
}
