/** Routes that run what was allowed. */
import type { Host } from "../../src/contract/host.ts";
import { defineRoute, type Route } from "../../src/contract/resource.ts";
import { reportResult, startAction } from "./execute.ts";
import { answerWith, RECORD } from "./record.ts";
import * as schema from "./schemas.ts";

export function executionRoutes(host: Host, tag: string): Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/start",
      tag,
      summary: "Start with the permit, once",
      scope: "actions:execute",
      params: schema.IdParams,
      body: schema.StartBody,
      queued: true,
      bodyLimit: 16_384,
      responses: { 200: RECORD },
      errors: [
        "ACTION_NOT_FOUND",
        "PERMIT_INVALID",
        "PERMIT_EXPIRED",
        "ACTION_NOT_STARTABLE",
        "NO_LONGER_ALLOWED",
        "STOPPED",
        "ACTION_ERASED",
        "RECORD_ALTERED",
      ],
      handle: async ({ credential, params, body }) =>
        answerWith(host, await startAction(host, credential, params.id, body.permit), credential),
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
      responses: { 200: RECORD },
      errors: ["ACTION_NOT_FOUND", "ACTION_NOT_STARTED", "NOT_THE_EXECUTOR", "ACTION_ERASED", "RECORD_ALTERED"],
      handle: async ({ credential, params, body }) =>
        answerWith(host, await reportResult(host, credential, params.id, body), credential),
    }),
  ];
}
