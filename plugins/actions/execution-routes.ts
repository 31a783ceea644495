/** Routes that run what was allowed, and give the permits for it. */
import { defineRoute, type Host, REPLAYED_HEADERS, type Route } from "../../src/plugin.ts";
import { reportResult, startAction } from "./execute.ts";
import type { Expiry } from "./expiry.ts";
import { isDeniedByRedecision, noLongerAllowedError } from "./redecision.ts";
import { grantPermit } from "./permits.ts";
import { actionReply, ACTION_RESPONSE, renderRedecision } from "./action-record.ts";
import * as schema from "./schemas.ts";

export function executionRoutes(host: Host, tag: string, expiry: Expiry): Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/permit",
      tag,
      summary: "Take a permit",
      scope: "actions:execute",
      params: schema.IdParams,
      body: schema.PermitBody,
      queued: true,
      bodyLimit: 8192,
      description:
        "For an action that may start. It is decided again first, with the policies, the agent and the key of this moment, and that is recorded: `redecision` says what came out and what of it changed. A deny ends the action; where more people have to approve now, it waits for them. Any number of permits starts an action once.",
      responses: {
        200: { ...ACTION_RESPONSE, description: "The action, with a `permit`." },
        202: { ...ACTION_RESPONSE, description: "More people have to approve it now." },
      },
      errors: [
        "ACTION_NOT_FOUND",
        "ACTION_NOT_STARTABLE",
        "START_EXPIRED",
        "NO_LONGER_ALLOWED",
        "STOPPED",
        "TOO_MANY_PERMITS",
        "PERMIT_KEY_RETIRED",
        "ACTION_ERASED",
        "RECORD_ALTERED",
      ],
      async handle({ credential, params }) {
        const granted = await grantPermit(host, credential, params.id);
        const { row, permit } = granted;
        if (isDeniedByRedecision(row)) throw noLongerAllowedError(row);
        const reply = await actionReply(host, row, credential, { permit, redecision: renderRedecision(granted) });
        if (row.status !== "pending_approval") return reply;
        if (row.expires_at !== null) expiry.plan(row.expires_at);
        return { ...reply, status: 202, headers: { Location: `/v1/actions/${row.id}` } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/start",
      tag,
      summary: "Start, once",
      scope: "actions:execute",
      params: schema.IdParams,
      body: schema.StartBody,
      queued: true,
      confirmsCredential: true,
      bodyLimit: 16_384,
      description:
        "The key that submitted the action needs no permit, and the body may be empty; any other key sends one. The action is decided again first: a deny ends it, and where more people have to approve now, it waits for them. A start that names an `attempt` may be sent again where its answer is missing; it is answered as the first was, with `Idempotency-Replayed: true`, while the action may still start, and another start is refused.",
      responses: {
        200: {
          ...ACTION_RESPONSE,
          headers: { "Idempotency-Replayed": "`true` where this `attempt` had started it before." },
        },
      },
      errors: [
        "ACTION_NOT_FOUND",
        "PERMIT_REQUIRED",
        "PERMIT_INVALID",
        "PERMIT_EXPIRED",
        "ACTION_NOT_STARTABLE",
        "START_EXPIRED",
        "NO_LONGER_ALLOWED",
        "MORE_APPROVALS_NEEDED",
        "STOPPED",
        "ACTION_ERASED",
        "RECORD_ALTERED",
      ],
      async handle({ credential, params, body }) {
        const { row, isRetry: repeated } = await startAction(host, credential, params.id, body);
        return actionReply(host, row, credential, repeated ? { headers: REPLAYED_HEADERS } : {});
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/result",
      tag,
      summary: "Report how it went",
      scope: "actions:execute",
      params: schema.IdParams,
      body: schema.ResultBody,
      queued: true,
      confirmsCredential: true,
      description:
        "By the key that started the action, once. A result that names the `attempt` of the start may be sent again where its answer is missing: the same one is answered as the first was, with `Idempotency-Replayed: true`, and another one is refused.",
      responses: {
        200: {
          ...ACTION_RESPONSE,
          headers: { "Idempotency-Replayed": "`true` where this result was reported before." },
        },
      },
      errors: ["ACTION_NOT_FOUND", "ACTION_NOT_STARTED", "NOT_THE_EXECUTOR", "ACTION_ERASED", "RECORD_ALTERED"],
      async handle({ credential, params, body }) {
        const { row, isRetry: repeated } = await reportResult(host, credential, params.id, body);
        return actionReply(host, row, credential, repeated ? { headers: REPLAYED_HEADERS } : {});
      },
    }),
  ];
}
