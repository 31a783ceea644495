/** What the approval page needs: a look at one action by a link token, without a key. */
import type { Static } from "@sinclair/typebox";
import type { Host } from "../../src/contract/host.ts";
import { defineRoute, type Route } from "../../src/contract/resource.ts";
import { requestOf } from "../../src/domain/request.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { votesOf } from "./record.ts";
import { asOf } from "./rows.ts";
import { LinkAnswer, LinkBody } from "./link-schemas.ts";
import { lookByLink } from "./voter.ts";

export async function linkAnswer(host: Host, token: string): Promise<Static<typeof LinkAnswer>> {
  const { row, approver, refusal } = await lookByLink(host, token);
  const { params, context } = requestOf(row) ?? { params: {}, context: {} };
  const { id, agent_id, tool, operation, reason, risk_level, policy, rule, request_hash } = row;
  const { status } = asOf(row, host.clock());
  return {
    approver,
    refusal: refusal?.message ?? null,
    action: {
      id,
      agent_id,
      tool,
      operation,
      params,
      context,
      status,
      reason,
      risk_level,
      policy,
      rule,
      request_hash,
      approvals: votesOf(await host.storage.approvals(id)),
      approvals_needed: row.quorum,
      expires_at: row.expires_at === null ? null : toRfc3339(row.expires_at),
      created_at: toRfc3339(row.created_at),
    },
  };
}

export function linkRoute(host: Host): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/approval-link",
    tag: "actions",
    summary: "Look at the action that a link was sent for",
    scope: null,
    body: LinkBody,
    bodyLimit: 4096,
    description:
      "Changes nothing. The token goes in the body, so that it stands in no log and in no history. POST /v1/actions/{id}/approval takes the same token, without a key.",
    responses: { 200: { description: "The action, and who would decide.", schema: LinkAnswer } },
    errors: ["TOKEN_MALFORMED", "TOKEN_INVALID", "STORAGE_UNAVAILABLE"],
    handle: async ({ body }) => ({ status: 200, json: await linkAnswer(host, body.token) }),
  });
}
