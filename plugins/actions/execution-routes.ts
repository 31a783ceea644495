/** Routes that issue permits, start actions and report their results. */
import { type CoreHost, type JsonObject, REPLAYED_HEADERS } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { reportResult, startAction } from "./execute.ts";
import { scheduleExpiry } from "./expiry.ts";
import { isDeniedByRedecision, noLongerAllowedError } from "./redecision.ts";
import { grantPermit } from "./grant-permit.ts";
import { buildActionReply, ACTION_RESPONSE, renderRedecision } from "./action-record.ts";
import { expireFactsAfter } from "./fact-writes.ts";
import { createFactReadingHost } from "./read-inputs.ts";
import { settleOutcome } from "./unknown-outcome.ts";
import * as schema from "./schemas.ts";
import { tracedAction, tracedExecution } from "./traced-action.ts";

export function executionRoutes(host: CoreHost, tag: string) {
  return [permitRoute(host, tag), startRoute(host, tag), resultRoute(host, tag), settleRoute(host, tag)];
}

function permitRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions/:id/permit",
    tag,
    summary: "Issue a permit",
    scope: "actions:execute",
    params: schema.IdParams,
    body: schema.PermitBody,
    queued: true,
    bodyLimit: 8192,
    description:
      "Issues a permit for an action that may start. The current policies, agent and key are evaluated first, and the result is recorded; `redecision` contains it and what changed. If they deny the action, it is denied; if they require more approvals, it is pending again. An action starts once, however many permits it has.",
    responses: {
      200: { ...ACTION_RESPONSE, description: "The action, with a `permit`." },
      202: { ...ACTION_RESPONSE, description: "The action now requires more approvals." },
    },
    errors: [
      "ACTION_NOT_FOUND",
      "NOT_THE_SUBMITTER",
      "ACTION_NOT_STARTABLE",
      "START_EXPIRED",
      "NO_LONGER_ALLOWED",
      ...host.guard.startErrors,
      ...host.barErrors,
      "FACTS_UNAVAILABLE",
      "TOO_MANY_PERMITS",
      "PERMIT_KEY_RETIRED",
      "ACTION_ERASED",
      "RECORD_ALTERED",
    ],
    async handle(context) {
      const { credential, params } = context;
      const granted = await grantPermit(createFactReadingHost(host, context), credential, params.id);
      const { row, permit } = granted;
      if (isDeniedByRedecision(row)) throw noLongerAllowedError(row);
      const reply = await buildActionReply(host, row, credential, { permit, redecision: renderRedecision(granted) });
      if (row.status !== "pending_approval") return reply;
      scheduleExpiry(host, row);
      return { ...reply, status: 202, headers: { Location: `/v1/actions/${row.id}` } };
    },
  });
}

function startRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions/:id/start",
    tag,
    summary: "Start an action, once",
    scope: "actions:execute",
    params: schema.IdParams,
    body: schema.StartBody,
    queued: true,
    confirmsCredential: true,
    bodyLimit: 16_384,
    description:
      "The key that submitted the action needs no permit, and may send an empty body; any other key must send a permit. The current policies, agent and key are evaluated first. If they deny the action, it is denied; if they require more approvals, it is pending again. If the response is lost, repeat the request with the same `attempt`. It gets the same response, with `Idempotency-Replayed: true`, while the action may still start. Any other start is rejected. If a credential issuer of the configuration covers the action, the response has a `credential`, and the key needs the scope `credentials:receive`.",
    responses: {
      200: {
        ...ACTION_RESPONSE,
        headers: { "Idempotency-Replayed": "`true` if this `attempt` had already started the action." },
      },
    },
    errors: [
      "ACTION_NOT_FOUND",
      "NOT_THE_SUBMITTER",
      "PERMIT_REQUIRED",
      "PERMIT_INVALID",
      "PERMIT_EXPIRED",
      "ACTION_NOT_STARTABLE",
      "START_EXPIRED",
      "NO_LONGER_ALLOWED",
      "MORE_APPROVALS_NEEDED",
      ...host.guard.startErrors,
      "CREDENTIAL_NOT_ISSUED",
      ...host.barErrors,
      "FACTS_UNAVAILABLE",
      "ACTION_ERASED",
      "RECORD_ALTERED",
    ],
    async handle(context) {
      const { credential, params, body, releaseQueueSlot } = context;
      const { row, isRetry, issued } = await startAction(host, credential, params.id, body, {
        factHost: () => createFactReadingHost(host, context),
        releaseQueueSlot,
      });
      return buildActionReply(host, row, credential, { issued, ...(isRetry ? { headers: REPLAYED_HEADERS } : {}) });
    },
  });
}

function resultRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions/:id/result",
    tag,
    summary: "Report the result",
    scope: "actions:execute",
    params: schema.IdParams,
    body: schema.ResultBody,
    queued: true,
    confirmsCredential: true,
    description:
      "For the key that started the action, once. If the response is lost, repeat the request with the `attempt` of the start. The same result gets the same response, with `Idempotency-Replayed: true`. A different result is rejected.",
    responses: {
      200: {
        ...ACTION_RESPONSE,
        headers: { "Idempotency-Replayed": "`true` if this result had already been reported." },
      },
    },
    errors: ["ACTION_NOT_FOUND", "ACTION_NOT_STARTED", "NOT_THE_EXECUTOR", "ACTION_ERASED", "RECORD_ALTERED"],
    async handle({ credential, params, body }) {
      const { row, isRetry } = await reportResult(host, credential, params.id, body);
      if (!isRetry) await expireFactsAfter(host, row);
      const execution = isRetry ? null : tracedExecution(row);
      if (execution !== null) host.trace()?.addExecution(tracedAction(row), execution);
      return buildActionReply(host, row, credential, isRetry ? { headers: REPLAYED_HEADERS } : {});
    },
  });
}

function settleRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions/:id/settle",
    tag,
    summary: "Settle an unknown outcome",
    scope: "actions:settle",
    params: schema.IdParams,
    body: schema.SettleBody,
    description:
      "For an action whose status is `unknown`, because no result was reported in time: a person, or a probe with its own key, records what happened. The action is then `succeeded` or `failed`. The key that started the action reports its result instead, even if it is late.",
    responses: { 200: ACTION_RESPONSE },
    errors: ["ACTION_NOT_FOUND", "OUTCOME_NOT_UNKNOWN", "ACTION_ERASED", "RECORD_ALTERED"],
    async handle({ credential, params, body: { meta = {}, ...body } }) {
      const row = await settleOutcome(host, credential, params.id, { ...body, meta: meta as JsonObject });
      await expireFactsAfter(host, row);
      return buildActionReply(host, row, credential);
    },
  });
}
