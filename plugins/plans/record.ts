/** Renders plans for the API. */
import {
  type CompiledPolicySet,
  type CoreHost,
  hasRecordedRequest,
  makeToken,
  requiresSignature,
} from "../../src/core.ts";
import type { Credential, Reply } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { createApprovalMac, readActionRecord, recordAlteredError, withCurrentStatus } from "../actions/api.ts";
import { findPlanFailure } from "./action-list.ts";
import { PlanRecord, type PlanSummary } from "./schemas.ts";
import { readPlanEntry, readRowsOfVisiblePlan, verifyPlan, type VerifiedPlan } from "./state.ts";
import { PLAN_TOKEN, planTokenClaims } from "./vote.ts";

export const PLAN_RESPONSE = { description: "The plan, with its actions.", schema: PlanRecord };

/**
 * Returns the response of a route for one plan. Throws RECORD_ALTERED if the store differs from the ledger.
 * @param rows all actions of the plan, in order
 */
export async function buildPlanReply(
  host: CoreHost,
  rows: readonly ActionRow[],
  credential: Credential,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const now = host.clock();
  const plan = await verifyPlan(host, host.storage, rows, now);
  const { compiled: set } = await host.policies.current();
  const actions: PlanRecord["actions"] = [];
  for (const row of rows) {
    // People vote on the displayed text, so it must match the record.
    if (row.erased_at === null && !hasRecordedRequest(row)) throw recordAlteredError(row, ["request"]);
    actions.push(await readActionRecord(host, withCurrentStatus(row, now), credential, { token: false, set }));
  }
  const { id, ordered, stop_on_failure } = plan.terms;
  const failure = findPlanFailure(plan.terms, plan.members);
  const json: PlanRecord = {
    id,
    agent_id: plan.entry.agent_id,
    ordered,
    stop_on_failure,
    digest: plan.digest,
    stopped: failure === null ? null : { position: failure.position, status: failure.status },
    submitted_by: plan.entry.by.key_id,
    created_at: plan.entry.at,
    actions,
    ...votingOn(host, plan, credential, set),
  };
  return { status: 200, json, headers };
}

/** Reads a plan that the credential may see, and returns the response of a route for it. */
export async function readPlanReply(host: CoreHost, id: string, credential: Credential): Promise<Reply> {
  return buildPlanReply(host, await readRowsOfVisiblePlan(host.storage, id, credential), credential);
}

/** Returns the token for a vote on the plan, if the credential may vote and an action is pending. */
function votingOn(
  host: CoreHost,
  plan: VerifiedPlan,
  credential: Credential,
  set: CompiledPolicySet,
): Pick<PlanRecord, "approval_token" | "signature_required"> {
  const isPending = plan.members.map(({ status }) => status === "pending_approval");
  if (!credential.hasScope("approvals:decide") || !isPending.includes(true)) return {};
  const approvers = plan.histories.flatMap(({ requirement }, i) =>
    isPending[i] === true ? (requirement?.approvers ?? []) : [],
  );
  return {
    approval_token: makeToken(PLAN_TOKEN, planTokenClaims(plan, credential.principal, set), createApprovalMac(host)),
    signature_required: requiresSignature(approvers),
  };
}

/** @param rows all actions of the plan, in order */
export async function summarizePlan(host: CoreHost, rows: readonly ActionRow[]): Promise<PlanSummary> {
  const { plan, agent_id, by, at } = await readPlanEntry(host.storage, rows[0] as ActionRow);
  const now = host.clock();
  return {
    id: plan.id,
    agent_id,
    ordered: plan.ordered,
    stop_on_failure: plan.stop_on_failure,
    submitted_by: by.key_id,
    created_at: at,
    actions: rows.map((row) => {
      const { id, tool, operation, status } = withCurrentStatus(row, now);
      return { id, tool, operation, status };
    }),
  };
}
