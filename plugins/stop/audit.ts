/** Checks that no action was allowed or started while a stop applied to it. */
import {
  type ApprovalEntry,
  type DecisionEntry,
  type ExecutionEntry,
  matchesAnyName,
  type RedecisionEntry,
} from "../../src/core.ts";
import type { EntryBody, FeatureAuditor } from "../../src/plugin.ts";
import { findStops, listActiveStops, type StopHistory, stopState } from "./state.ts";

type OpenEntry = ApprovalEntry | RedecisionEntry | ExecutionEntry;

/** Returns true if the entry lets an open action continue: an approval, a permit or a start. */
function letsActionContinue(entry: OpenEntry): boolean {
  if (entry.type === "approval") return entry.verdict === "approve";
  return entry.type === "redecision" ? entry.decision.effect !== "deny" : entry.phase === "start";
}

/**
 * Throws RangeError if a stop applied. Ignores stops of a policy, which only a replay can check. Ignores stops of a tool
 * for entries other than decisions, because only decisions contain the tool.
 */
function assertNotStopped(entry: DecisionEntry | OpenEntry, stops: StopHistory, now: number): void {
  let stop: string | undefined;
  if (entry.type === "decision") {
    if (entry.status !== "denied") stop = findStops(stops, entry, now).find(({ policy }) => policy === null)?.id;
  } else if (letsActionContinue(entry)) {
    stop = listActiveStops(stops, now).find(
      ({ agent, tool, policy }) =>
        tool === null && policy === null && (agent === null || matchesAnyName([agent], entry.agent_id)),
    )?.id;
  }
  if (stop !== undefined) throw new RangeError(`the stop ${stop} was active and should have prevented this entry`);
}

function isChecked(entry: EntryBody): entry is DecisionEntry | OpenEntry {
  return ["decision", "approval", "redecision", "execution"].includes(entry.type);
}

export const stopAuditor: FeatureAuditor = {
  check(entry, { state, now }) {
    const stops = state(stopState);
    if (stops.open.length > 0 && isChecked(entry)) assertNotStopped(entry, stops, now);
  },
  created: {
    "POST /v1/stop"({ state }, id) {
      const { placed_by, placed_at } = state(stopState).all.get(id) ?? {};
      return placed_by === undefined || placed_at === undefined
        ? null
        : { key_id: placed_by.key_id, created_at: placed_at };
    },
  },
};
