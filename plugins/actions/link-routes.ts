/** Routes of the approval page: read and vote on one action with a link token instead of a key. */
import type { Static } from "@sinclair/typebox";
import {
  type CoreHost,
  decodeEdit,
  decodeQuestions,
  effectiveRequestHash,
  effectiveRequest,
  presentRequest,
  readPrincipalNames,
  redactRow,
  userState,
  requiresSignature,
} from "../../src/core.ts";
import { defineRoute, toRfc3339, type VerifiedAccount } from "../../src/plugin.ts";
import { castVoteOnAction } from "./cast-vote.ts";
import {
  readRowWithVotes,
  commitPreview,
  digestShownRequest,
  digestShownQuestions,
  renderGrantLimits,
  readPendingPolicySet,
  renderOriginalRequest,
  renderQuestions,
  renderVotes,
} from "./action-record.ts";
import { withCurrentStatus } from "./visible-action.ts";
import { renderPins } from "./render-pins.ts";
import { compareRequest } from "./compare-request.ts";
import { createFactReadingHost } from "./read-inputs.ts";
import { LinkResponse, LinkBody, linkVoteBody } from "./link-schemas.ts";
import { readVerifiedHistory } from "./verify-record.ts";
import { readLink } from "./voter.ts";

async function linkAnswer(
  host: CoreHost,
  token: string,
  account: VerifiedAccount | null,
): Promise<Static<typeof LinkResponse>> {
  const { row: linked, recipient, refusal } = await readLink(host, token);
  const { row, votes } = await readRowWithVotes(host, linked);
  const { compiled } = await host.policies.current();
  const displayed = redactRow(compiled, row);
  const { params, context } = effectiveRequest(displayed) ?? { params: {}, context: {} };
  const { id, agent_id, tool, operation, reason, risk_level, policy, rule } = row;
  const set = await readPendingPolicySet(host, row);
  const { status } = withCurrentStatus(row, host.clock());
  const isPending = status === "pending_approval";
  const history = isPending ? await readVerifiedHistory(host.storage, row) : null;
  const compared = isPending ? await compareRequest(host, row, recipient.visibility) : null;
  const approval = history?.newest.decision.approval ?? null;
  const offers =
    account === null || approval === null || row.plan_id !== null || host.voteAddition === null
      ? null
      : await host.voteAddition.listOffers(host.storage, row, compiled, approval);
  const pins = history === null ? [] : await renderPins(host, row, history, true);
  return {
    approver: recipient.principal,
    names: await readPrincipalNames(host.storage, await host.state(userState), [
      recipient.principal,
      decodeEdit(row.effective)?.by ?? null,
      ...decodeQuestions(row.questions).map(({ asked_by }) => asked_by),
      ...votes.flatMap(({ principal, on_behalf_of }) => [principal, on_behalf_of]),
      ...(compared?.earlier_votes ?? []).map(({ approver }) => approver),
    ]),
    refusal: refusal?.message ?? null,
    grants: renderGrantLimits(row, history?.newest.decision.approval?.grants),
    shown:
      set === undefined || history === null
        ? null
        : digestShownRequest(row, {
            questions: digestShownQuestions(row, history),
            preview: commitPreview(row, set),
            pins: history.pins,
          }),
    ...(offers === null ? {} : { offers: [...offers] }),
    signature_required: requiresSignature(history?.requirement?.approvers ?? []),
    action: {
      id,
      agent_id,
      tool,
      operation,
      params,
      context,
      questions: renderQuestions(row),
      proposed: renderOriginalRequest(displayed),
      status,
      reason,
      risk_level,
      policy,
      rule,
      ...(set === undefined ? {} : presentRequest(set, { ...row, params, context })),
      ...(pins.length === 0 ? {} : { pins }),
      ...compared,
      request_hash: effectiveRequestHash(row),
      approvals: renderVotes(votes),
      approvals_needed: row.quorum,
      expires_at: row.expires_at === null ? null : toRfc3339(row.expires_at),
      created_at: toRfc3339(row.created_at),
    },
  };
}

export function linkRoutes(host: CoreHost, tag: string) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/approval-link",
      tag,
      summary: "Read the action of a link",
      scope: null,
      body: LinkBody,
      bodyLimit: 4096,
      description:
        "Changes nothing. The token is in the body, so that it does not appear in logs and browser histories.",
      responses: { 200: { description: "The action, and the approver of the link.", schema: LinkResponse } },
      errors: ["APPROVER_NOT_ELIGIBLE", "TOKEN_MALFORMED", "TOKEN_INVALID", "RECORD_ALTERED", "STORAGE_UNAVAILABLE"],
      handle: async ({ body, account }) => ({ status: 200, json: await linkAnswer(host, body.token, account) }),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/approval-link/verdict",
      tag,
      summary: "Approve or deny by link",
      scope: null,
      body: linkVoteBody(host),
      bodyLimit: 32_768,
      description:
        "Votes as the person to whom the link was sent. The vote must contain the `shown` of POST /v1/approval-link, so that it covers what that response showed.",
      responses: { 200: { description: "The action after the vote.", schema: LinkResponse } },
      errors: [
        "SELF_APPROVAL",
        "VOTE_SIGNATURE_REQUIRED",
        "APPROVER_NOT_ELIGIBLE",
        "TOKEN_MALFORMED",
        "TOKEN_INVALID",
        "ALREADY_VOTED",
        "ACTION_NOT_PENDING",
        ...host.guard.approvalErrors,
        ...(host.voteAddition?.errors ?? []),
        "APPROVAL_EXPIRED",
        "NO_LONGER_ALLOWED",
        ...host.barErrors,
        "FACTS_UNAVAILABLE",
        "FACTS_CHANGED",
        "ACTION_ERASED",
        "RECORD_ALTERED",
        "STORAGE_UNAVAILABLE",
      ],
      async handle({ body, account }) {
        const ballot = { link: body.token, shown: body.shown, account };
        await castVoteOnAction(createFactReadingHost(host, null), ballot, body);
        return { status: 200, json: await linkAnswer(host, body.token, account) };
      },
    }),
  ];
}
