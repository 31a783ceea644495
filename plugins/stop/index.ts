/** Stops: one request denies actions on every process, with precedence over all policies. */
import {
  type CoreHost,
  defineCorePlugin,
  isStopActive,
  listActiveStops,
  matchesAnyName,
  readIdempotentCall,
  REPLAYED_HEADERS,
  type Stop,
} from "../../src/core.ts";
import { type Credential, defineRoute, type Route, toRfc3339 } from "../../src/plugin.ts";
import { liftStop, placeStop, findStop, stopNotFound } from "./changes.ts";
import * as schema from "./schemas.ts";

const TAG = "stop";
const BODY_BYTES = 8192;
/** Scopes of everyone whom a stop affects. */
const READERS = ["actions:submit", "actions:read_own", "actions:execute", "approvals:decide", "stop:write"] as const;

export default defineCorePlugin({ name: "stop", setup: (host) => ({ routes: routes(host) }) });

function routes(host: CoreHost): Route[] {
  const one = { description: "The stop.", schema: schema.StopRecord };
  return [
    defineRoute({
      method: "GET",
      path: "/v1/stop",
      tag: TAG,
      summary: "List active stops",
      scope: READERS,
      description:
        "A key that is bound to an agent sees those that are about this agent. Who placed a stop, and why, is shown to keys that see every action, or hold `stop:write`.",
      responses: { 200: { description: "Those that hold; an empty list when none does.", schema: schema.StopList } },
      async handle({ credential }) {
        const stops = listActiveStops(await host.stops.list(), host.clock()).filter((stop) => canSee(credential, stop));
        return { status: 200, json: { stops: stops.map((stop) => renderStop(host, credential, stop)) } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/stop",
      tag: TAG,
      summary: "Stop everything, or what an agent, a tool or a policy does",
      scope: "stop:write",
      body: schema.StopBody,
      bodyLimit: BODY_BYTES,
      urgent: true,
      idempotent: true,
      description:
        "From the answer on, on every process: what is submitted is denied with the reason code STOPPED, and nothing is approved or started. What waits or may start stays as it is, and its time runs on. What runs may report its result.",
      responses: {
        200: { ...one, description: "It was placed by an earlier request with this Idempotency-Key." },
        201: { ...one, description: "It holds." },
      },
      errors: ["AGENT_MISMATCH", "POLICY_NOT_FOUND", "TOO_MANY_STOPS", "IDEMPOTENCY_CONFLICT"],
      async handle({ body, headers, credential }) {
        const call = readIdempotentCall(headers, "POST /v1/stop", body);
        const { stop, replayed } = await placeStop(host, credential, body, call);
        return {
          status: replayed ? 200 : 201,
          json: renderStop(host, credential, stop),
          headers: { Location: `/v1/stop/${stop.id}`, ...(replayed ? REPLAYED_HEADERS : {}) },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/stop/:id",
      tag: TAG,
      summary: "Read a stop",
      scope: READERS,
      params: schema.StopParams,
      responses: { 200: one },
      errors: ["STOP_NOT_FOUND"],
      async handle({ params: { id }, credential }) {
        const stop = findStop(await host.stops.list(), id);
        if (!canSee(credential, stop)) throw stopNotFound(id);
        return { status: 200, json: renderStop(host, credential, stop) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/stop/:id/lift",
      tag: TAG,
      summary: "Lift a stop, or ask for it to be lifted",
      scope: "stop:write",
      params: schema.StopParams,
      body: schema.LiftBody,
      bodyLimit: BODY_BYTES,
      urgent: true,
      description:
        "Where the configuration wants several people (`stop.lift_approvals`), the stop holds until so many have asked. Who counts as one person is decided as for approvals.",
      responses: {
        200: { ...one, description: "Lifted." },
        202: { ...one, description: "It still holds: more people have to ask." },
      },
      errors: ["AGENT_MISMATCH", "STOP_NOT_FOUND", "STOP_OVER", "ALREADY_VOTED"],
      async handle({ params, body, credential }) {
        const stop = await liftStop(host, credential, params.id, body.reason ?? null);
        return { status: stop.lifted_at === null ? 202 : 200, json: renderStop(host, credential, stop) };
      },
    }),
  ];
}

function canSee({ visibility }: Credential, { agent }: Stop): boolean {
  return !("agent_id" in visibility) || agent === null || matchesAnyName([agent], visibility.agent_id);
}

function renderStop(host: CoreHost, credential: Credential, stop: Stop): schema.StopRecord {
  const { id, agent, tool, policy, reason, until, seq } = stop;
  const all = "all" in credential.visibility || credential.hasScope("stop:write");
  return {
    id,
    status: stop.lifted_at !== null ? "lifted" : isStopActive(stop, host.clock()) ? "holds" : "ended",
    agent,
    tool,
    policy,
    until: formatTime(until),
    placed_at: toRfc3339(stop.placed_at),
    reason: all ? reason : null,
    placed_by: all ? stop.placed_by.principal : null,
    lift: {
      needed: host.config.stop.lift_approvals,
      asked: all
        ? stop.lifts.map(({ by, at, comment }) => ({ by: by.principal, at: toRfc3339(at), reason: comment }))
        : [],
    },
    lifted_at: formatTime(stop.lifted_at),
    seq,
  };
}

function formatTime(ms: number | null): string | null {
  return ms === null ? null : toRfc3339(ms);
}
