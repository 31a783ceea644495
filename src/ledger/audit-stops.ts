/** Holds the ledger against the stops in it: nothing was let go while one held that is about it. */
import { timeOf } from "../domain/action-history.ts";
import type { ApprovalEntry, DecisionEntry, ExecutionEntry, StopEntry } from "../domain/entries.ts";
import { heldStops, NO_STOPS, stopFacts, withStop, type Stop } from "../domain/stops.ts";
import { matchesAnyName } from "../domain/policy/semantics.ts";
import type { Body } from "./audit-report.ts";

export interface StopsAudit {
  /** Takes the entries one after another. Throws RangeError for one that must not stand where it does. */
  fold(body: Body): void;
  stop(id: string): Stop | undefined;
}

export function createStopsAudit(): StopsAudit {
  let stops = NO_STOPS;

  /** What a stop that names a policy is about only replay can say; of verdicts and starts the entry names no tool. */
  function assertFree(body: Body, at: number): void {
    const entry = body as unknown as DecisionEntry | ApprovalEntry | ExecutionEntry;
    let stop: string | undefined;
    if (entry.type === "decision") {
      if (entry.status !== "denied")
        stop = stopFacts(stops, entry, at).stops?.find(({ policy }) => policy === null)?.id;
    } else if (entry.type === "approval" ? entry.verdict === "approve" : entry.phase === "start") {
      stop = heldStops(stops, at).find(
        ({ agent, tool, policy }) =>
          tool === null && policy === null && (agent === null || matchesAnyName([agent], entry.agent_id)),
      )?.id;
    }
    if (stop !== undefined) throw new RangeError(`the stop ${stop} held, and it went on`);
  }

  return {
    fold(body) {
      const type = body["type"];
      if (type === "stop") stops = withStop(stops, body as unknown as StopEntry & { seq: number });
      else if (stops.open.length > 0 && (type === "decision" || type === "approval" || type === "execution"))
        assertFree(body, timeOf(String(body["at"])));
    },
    stop: (id) => stops.all.get(id),
  };
}
