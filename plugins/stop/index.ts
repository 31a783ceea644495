/** Stops: one request denies actions in every process, with precedence over all policies. */
import { type CoreHost, defineCorePlugin, readIdempotentCall, REPLAYED_HEADERS } from "../../src/core.ts";
import { type Credential, defineRoute, toRfc3339 } from "../../src/plugin.ts";
import { stopAuditor } from "./audit.ts";
import { STOP_ENTRY } from "./entry.ts";
import { ERRORS } from "./errors.ts";
import { stopNotice } from "./notice.ts";
import { StopOptions } from "./options.ts";
import { isStopActive, listActiveStops, type Stop, stopState } from "./state.ts";
import { stopsCheck, stopsGauge } from "./status.ts";
import { stopBar } from "./stop-bar.ts";
import { canSeeStop, findStop, liftStop, placeStop, stopNotFoundRefusal } from "./stop-changes.ts";
import * as schema from "./schemas.ts";

const TAG = "stop";
const BODY_BYTES = 8192;
/** Scopes of callers who may list stops, because a stop can affect them. */
const READERS = ["actions:submit", "actions:read_own", "actions:execute", "approvals:decide", "stop:write"] as const;

export default defineCorePlugin({
  name: "stop",
  needs: ["actions"],
  errors: ERRORS,
  options: StopOptions,
  records: { stop: STOP_ENTRY },
  folds: [stopState],
  bars: [stopBar],
  auditors: [() => stopAuditor],
  notices: [stopNotice],
  setup: (host, { lift_approvals: needed }) => ({
    routes: routes(host, needed),
    gauges: [stopsGauge(host)],
    checks: [stopsCheck(host)],
  }),
});

/** @param needed the number of people who must lift a stop */
function routes(host: CoreHost, needed: number) {
  const response = { description: "The stop.", schema: schema.StopRecord };
  const render = (credential: Credential, stop: Stop) => renderStop(host, needed, credential, stop);
  return [
    defineRoute({
      method: "GET",
      path: "/v1/stop",
      tag: TAG,
      summary: "List active stops",
      scope: READERS,
      description:
        "A key that is bound to an agent sees only stops that affect the agent, and a member of groups with limits no stops of other agents. The reason and the person who placed a stop are visible to keys that see all actions or have `stop:write`.",
      responses: { 200: { description: "The active stops.", schema: schema.StopList } },
      async handle({ credential }) {
        const stops = listActiveStops(await host.state(stopState), host.clock()).filter((stop) =>
          canSeeStop(credential, stop),
        );
        return { status: 200, json: { stops: stops.map((stop) => render(credential, stop)) } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/stop",
      tag: TAG,
      summary: "Stop all actions, or the actions of an agent, a tool or a policy",
      scope: "stop:write",
      body: schema.StopBody,
      bodyLimit: BODY_BYTES,
      urgent: true,
      idempotent: true,
      description:
        "Takes effect on every process before the response is sent. Submissions are denied with the reason code STOPPED, and nothing can be approved or started. Pending, allowed and approved actions keep their status and can expire. Running actions can report their result.",
      responses: {
        200: { ...response, description: "An earlier request with this Idempotency-Key placed the stop." },
        201: { ...response, description: "The stop is active." },
      },
      errors: ["AGENT_MISMATCH", "POLICY_NOT_FOUND", ERRORS.tooMany, "IDEMPOTENCY_CONFLICT"],
      async handle({ body, headers, credential }) {
        const call = readIdempotentCall(headers, "POST /v1/stop", body);
        const { stop, replayed } = await placeStop(host, credential, body, call);
        return {
          status: replayed ? 200 : 201,
          json: render(credential, stop),
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
      responses: { 200: response },
      errors: [ERRORS.notFound],
      async handle({ params: { id }, credential }) {
        const stop = findStop(await host.state(stopState), id);
        if (!canSeeStop(credential, stop)) throw stopNotFoundRefusal(id);
        return { status: 200, json: render(credential, stop) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/stop/:id/lift",
      tag: TAG,
      summary: "Lift a stop, or request to lift it",
      scope: "stop:write",
      params: schema.StopParams,
      body: schema.LiftBody,
      bodyLimit: BODY_BYTES,
      urgent: true,
      description:
        "If the configuration requires several people (`stop.lift_approvals`), the stop stays active until enough of them have requested it. People are counted as for approvals.",
      responses: {
        200: { ...response, description: "Lifted." },
        202: { ...response, description: "The stop is still active, because more people must request it." },
      },
      errors: ["AGENT_MISMATCH", ERRORS.notFound, ERRORS.over, "ALREADY_VOTED"],
      async handle({ params, body, credential }) {
        const stop = await liftStop(host, needed, credential, params.id, body.reason ?? null);
        return { status: stop.lifted_at === null ? 202 : 200, json: render(credential, stop) };
      },
    }),
  ];
}

function renderStop(host: CoreHost, needed: number, credential: Credential, stop: Stop): schema.StopRecord {
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
      needed,
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

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    stop: typeof routes;
  }
}
