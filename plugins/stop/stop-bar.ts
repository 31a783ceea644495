/** Denies actions while a stop covers them, and ends permissions that were given before a stop. */
import type { BarSource } from "../../src/plugin.ts";
import { ERRORS } from "./errors.ts";
import { coverageOf, findStopPlacedAfter, findStops, stopState, toBar } from "./state.ts";

export const stopBar: BarSource = {
  error: ERRORS.stopped,
  find: ({ state, now }, target) => findStops(state(stopState), target, now).map(toBar),
  placedAfter({ state }, target, seq) {
    const stop = findStopPlacedAfter(state(stopState), target, seq);
    return stop && { at: stop.placed_at, by: stop.placed_by, reason: stop.reason };
  },
  coverageOf: (entry) => (entry.type === "stop" && entry.change === "placed" ? coverageOf(entry.stop) : null),
};
