/** What operators see of the active stops: a metric, and a check of `GET /readyz`. */
import type { CoreHost } from "../../src/core.ts";
import type { Gauge, HealthCheck } from "../../src/plugin.ts";
import { listActiveStops, stopState } from "./state.ts";

export function stopsGauge(host: CoreHost): Gauge {
  return {
    name: "assent_stops_held",
    help: "Active stops.",
    labels: [],
    read: async () => [{ labels: {}, value: listActiveStops(await host.state(stopState), host.clock()).length }],
  };
}

/** Returns only the number of stops, because callers of the route are not authenticated. */
export function stopsCheck(host: CoreHost): HealthCheck {
  return {
    name: "stops",
    async read() {
      const held = listActiveStops(await host.state(stopState), host.clock());
      const whole = held.some(({ agent, tool, policy }) => agent === null && tool === null && policy === null);
      const detail = whole ? "everything is stopped" : held.length > 0 ? "some actions are stopped" : "ok";
      return { ok: held.length === 0, detail, held: held.length };
    },
  };
}
