/** Routes that decide on a pending action. */
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../src/contract/errors.ts";
import type { Host } from "../../src/contract/host.ts";
import { defineRoute, type Route } from "../../src/contract/resource.ts";
import { looksLike } from "../../src/domain/tokens.ts";
import { cancelAction, voteOn } from "./approve.ts";
import { linkAnswer, linkRoute } from "./links.ts";
import { pendingRoute } from "./pending.ts";
import { answerWith, RECORD } from "./record.ts";
import * as schema from "./schemas.ts";
import { LinkAnswer } from "./link-schemas.ts";

export function verdictRoutes(host: Host, tag: string): Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/approval",
      tag,
      summary: "Approve or deny",
      scope: "approvals:decide",
      keyOptional: true,
      params: schema.IdParams,
      body: schema.ApprovalBody,
      bodyLimit: 32_768,
      description:
        "With a key, and the `approval_token` that the action shows to it. Or without a key, with the link token that was sent to one person.",
      responses: { 200: { ...RECORD, schema: Type.Union([schema.ActionRecord, LinkAnswer]) } },
      errors: [
        "ACTION_NOT_FOUND",
        "SELF_APPROVAL",
        "TOKEN_MALFORMED",
        "TOKEN_INVALID",
        "TOKEN_OTHER_ACTION",
        "TOKEN_OTHER_APPROVER",
        "ALREADY_VOTED",
        "ACTION_NOT_PENDING",
        "APPROVAL_EXPIRED",
        "NO_LONGER_ALLOWED",
        "STOPPED",
        "ACTION_ERASED",
        "RECORD_ALTERED",
      ],
      async handle({ credential, params, body }) {
        if (credential === null && !looksLike("link", body.token))
          throw new Refusal(
            "MISSING_CREDENTIAL",
            "send your API key as `Authorization: Bearer <key>`; only the token of a link that was sent to you is good without one",
            { headers: { "WWW-Authenticate": "Bearer" } },
          );
        const row = await voteOn(host, credential, params.id, body);
        return credential === null
          ? { status: 200, json: await linkAnswer(host, body.token) }
          : answerWith(host, row, credential);
      },
    }),
    pendingRoute(host, tag),
    linkRoute(host),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/cancel",
      tag,
      summary: "Withdraw an action",
      description: "One that waits for approval; with an admin key also one that may start and has not.",
      scope: ["actions:submit", "actions:execute"],
      params: schema.IdParams,
      body: schema.CancelBody,
      bodyLimit: 32_768,
      responses: { 200: RECORD },
      errors: ["NOT_THE_SUBMITTER", "ACTION_NOT_FOUND", "ACTION_NOT_PENDING", "APPROVAL_EXPIRED"],
      handle: async ({ credential, params, body }) =>
        answerWith(host, await cancelAction(host, credential, params.id, body.reason ?? null), credential),
    }),
  ];
}
