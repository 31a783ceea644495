/** What the approval page needs: one action by a link token, without a key. */
import type { Static } from "@sinclair/typebox";
import { defineRoute, type Host, type Route, toRfc3339 } from "../../src/plugin.ts";
import { parseStoredRequest, findMembersShownFirst } from "../../src/core.ts";
import { voteOn } from "./vote.ts";
import { readVotes, policySetFor, renderVotes } from "./action-record.ts";
import { withCurrentStatus } from "./rows.ts";
import { LinkAnswer, LinkBody, LinkVerdictBody } from "./link-schemas.ts";
import { readLink } from "./voter.ts";

async function linkAnswer(host: Host, token: string): Promise<Static<typeof LinkAnswer>> {
  const { row: linked, approver, refusal } = await readLink(host, token);
  const { row, votes } = await readVotes(host, linked);
  const { params, context } = parseStoredRequest(row) ?? { params: {}, context: {} };
  const { id, agent_id, tool, operation, reason, risk_level, policy, rule, request_hash } = row;
  const set = await policySetFor(host, row);
  const { status } = withCurrentStatus(row, host.clock());
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
      ...(set === undefined ? {} : { shown_first: findMembersShownFirst(set, row) }),
      request_hash,
      approvals: renderVotes(votes),
      approvals_needed: row.quorum,
      expires_at: row.expires_at === null ? null : toRfc3339(row.expires_at),
      created_at: toRfc3339(row.created_at),
    },
  };
}

export function linkRoutes(host: Host, tag: string): Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/approval-link",
      tag,
      summary: "Look at the action that a link was sent for",
      scope: null,
      body: LinkBody,
      bodyLimit: 4096,
      description: "Changes nothing. The token goes in the body, so that it stands in no log and in no history.",
      responses: { 200: { description: "The action, and who would decide.", schema: LinkAnswer } },
      errors: ["TOKEN_MALFORMED", "TOKEN_INVALID", "RECORD_ALTERED", "STORAGE_UNAVAILABLE"],
      handle: async ({ body }) => ({ status: 200, json: await linkAnswer(host, body.token) }),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/approval-link/verdict",
      tag,
      summary: "Approve or deny by a link",
      scope: null,
      body: LinkVerdictBody,
      bodyLimit: 32_768,
      description: "Decides as the person whom the link was sent to.",
      responses: { 200: { description: "The action after the verdict.", schema: LinkAnswer } },
      errors: [
        "SELF_APPROVAL",
        "TOKEN_MALFORMED",
        "TOKEN_INVALID",
        "ALREADY_VOTED",
        "ACTION_NOT_PENDING",
        "APPROVAL_EXPIRED",
        "NO_LONGER_ALLOWED",
        "STOPPED",
        "ACTION_ERASED",
        "RECORD_ALTERED",
        "STORAGE_UNAVAILABLE",
      ],
      async handle({ body }) {
        await voteOn(host, "link", body);
        return { status: 200, json: await linkAnswer(host, body.token) };
      },
    }),
  ];
}
