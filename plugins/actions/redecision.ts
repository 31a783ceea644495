/**
 * Evaluates the policies again for an open action, for example at every approving vote, at its start and before a
 * permit is issued. The policies, the agent and the key may have changed since the first decision.
 */
import {
  userState,
  actionEntryFields,
  commitFacts,
  type CoreHost,
  effectiveRequestHash,
  effectiveRequest,
  type Decision,
  type DecisionEntry,
  type Facts,
  type LedgerTransaction,
  type RecordedFacts,
  type RedecisionEntry,
  restoreFacts,
  type ApprovalRequirement,
  type ApproverPlan,
  combinePlans,
  countApproversNeeded,
  type CountedVote,
  reviewsApprove,
  satisfiesPlans,
} from "../../src/core.ts";
import type { VerifiedHistory } from "./verify-record.ts";
import { Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { findAuthority } from "./authority-inputs.ts";
import { assertNotBarred } from "./barred.ts";
import { decideAction } from "./decide-action.ts";
import { releaseLimitUses } from "./limit-usage.ts";
import { findPinChanges, pinsForEntry } from "./pins.ts";
import { newSalt } from "./salt.ts";

export interface Redecision {
  decision: Decision;
  policySet: string | null;
  facts: RecordedFacts;
  /** The salted past data that the action's entries commit to, including this entry. */
  past: string | null;
}

/** The occasion of a redecision, and the actor who caused it. */
type RedecisionCause = Pick<RedecisionEntry, "occasion" | "by">;

/** Effect of a redecision on the action. `confirmed` leaves its status as it is. */
type RedecisionOutcome = "denied" | "pending_approval" | "confirmed";

/**
 * Decides with the current policies, agent and key. Records nothing. Throws BarredError while a bar denies the action, and
 * FACTS_UNAVAILABLE if the policies deny only because a fact source does not respond.
 *
 * A limit uses the count that `basis` recorded, because the current count already includes the action. A limit that
 * `basis` did not record uses its current count. A budget uses the sum of the reports if it is larger. A grant that
 * covered the action must still cover it. Histories are read again, because newer actions can matter.
 * @param basis the decision that counted the action against limits, from its entry
 */
export async function reevaluateAction(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  basis: Pick<DecisionEntry, "facts">,
): Promise<Redecision> {
  const request = effectiveRequest(row);
  if (request === null) throw new Error(`the request of ${row.id} is missing`);
  const facts = await collectCurrentFacts(host, tx, row, basis);
  const counted = { facts: restoreFacts(basis.facts, row.past), hasStarted: row.started_at !== null };
  const subject = { policies: tx.activePolicies, request, id: row.id, facts, counted };
  const decided = await decideAction(host, tx, subject, { submitter: row, isNew: false });
  assertNotBarred(host, row, decided);
  if (isUndecided(decided)) throw factsUnavailableError(row, decided.decision);
  const { digest } = tx.activePolicies;
  return { decision: decided.decision, policySet: digest, ...commitFacts(decided.facts, newSalt, row.past) };
}

/**
 * Collects the current facts about the submitter. Sets `final_request`: the submitter has already received a decision,
 * so obligations must no longer change the request.
 */
export async function collectCurrentFacts(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  basis: Pick<DecisionEntry, "facts">,
): Promise<Facts> {
  const { attributes: ofAgent, ...agent } = await tx.agentFacts(row.agent_id);
  // Read the key only for policies that use its attributes, because that is an extra read at each start.
  const rights = tx.activePolicies.compiled.readsAttributes ? await host.keys.rightsOf(tx, row.submitted_by) : null;
  return {
    principal: basis.facts.principal,
    final_request: true,
    ...(basis.facts.session === undefined ? {} : { session: basis.facts.session }),
    ...agent,
    attributes: { ...ofAgent, groups: [...(rights?.groups ?? [])], roles: [...(rights?.roles ?? [])] },
    ...(await keyFacts(tx, row.submitted_by)),
    ...findAuthority(host, tx, basis.facts.authority?.id ?? null, row.agent_id),
  };
}

/** Returns true if the policies deny only because a fact source does not respond, for the agent or for a delegator. */
function isUndecided({ decision, facts }: { decision: Decision; facts: Facts }): boolean {
  const { effect, reason_code, policy } = decision;
  const sources = [facts, ...(facts.delegators ?? [])].flatMap((each) => each.sources ?? []);
  const isUnanswered = sources.some((fact) => fact.policy === policy && fact.fault === "no_answer");
  return effect === "deny" && reason_code === "CONDITION_ERROR" && isUnanswered;
}

function factsUnavailableError({ status }: ActionRow, { reason }: Decision): Refusal {
  return new Refusal("FACTS_UNAVAILABLE", `${reason}; the action stays ${status}: try again`, {
    headers: { "Retry-After": "2" },
  });
}

async function keyFacts(tx: LedgerTransaction, id: string): Promise<Pick<Facts, "key_ended">> {
  const user = tx.state(userState).get(id);
  if (user !== undefined) return user.ended_at === null ? {} : { key_ended: true };
  const key = await tx.key(id);
  const live = key !== null && key.revoked_at === null && (key.expires_at === null || key.expires_at > tx.now);
  return live ? {} : { key_ended: true };
}

/**
 * Returns the effect of a redecision on a startable action, at its start or for a permit. An action whose pinned facts
 * have changed returns to its approvers.
 * @param votes the approving votes
 */
export function resolveRedecision(
  row: ActionRow,
  redecision: Redecision,
  history: VerifiedHistory,
  votes: readonly CountedVote[],
  now: number,
): RedecisionOutcome {
  const { decision } = redecision;
  const { requirement, asked, edit } = history;
  if (decision.effect === "deny") return "denied";
  if (findPinChanges(redecision, history, row).length > 0) return "pending_approval";
  if (decision.approval === null) return "confirmed";
  // If a person changed the request, another person must approve it, so reviewers do not suffice.
  if ((edit === null || edit.by === null) && reviewsApprove(decision.approval.reviewers ?? [], asked?.reviews ?? []))
    return "confirmed";
  const isApproved = satisfiesPlans(decision.approval.approvers, votes, requirement?.since ?? now, now);
  return isApproved ? "confirmed" : "pending_approval";
}

/** Combines the plans of the action and of its redecision. Changed policies can only add requirements. */
export function combineApproverPlans(
  requirement: Pick<ApprovalRequirement, "approvers"> | null,
  { decision }: Redecision,
): ApproverPlan[] {
  return combinePlans([...(requirement?.approvers ?? []), ...(decision.approval?.approvers ?? [])]);
}

/** Records that the policies no longer allow the action. The caller must commit this before it reports the denial. */
export async function recordDenial(
  tx: LedgerTransaction,
  row: ActionRow,
  redecision: Redecision,
  cause: RedecisionCause,
): Promise<ActionRow> {
  const { row: denied } = await recordRedecision(tx, row, null, redecision, { ...cause, status: "denied" });
  await releaseLimitUses(tx, row);
  return denied;
}

/**
 * Returns the action to pending because the current policies require more approvals, or because pinned facts have
 * changed. Its votes stay valid, unless pinned values have changed since. A startable action gets the approval period
 * of the current policies; a pending action keeps its deadline. The caller must commit this before it reports the
 * change.
 */
export async function requireMoreApprovals(
  tx: LedgerTransaction,
  row: ActionRow,
  redecision: Redecision,
  cause: RedecisionCause,
  history: VerifiedHistory,
): Promise<ActionRow> {
  // If only the facts have changed, the policies might no longer require approval.
  const approval = redecision.decision.approval ?? history.terms;
  if (approval === null) throw new Error(`the redecision of ${row.id} requires no approval`);
  const approvers = combineApproverPlans(history.requirement, redecision);
  const { row: pending } = await recordRedecision(tx, row, history, redecision, {
    ...cause,
    status: "pending_approval",
    quorum: Math.max(...approvers.map(countApproversNeeded)),
    expires_at: row.status === "pending_approval" ? row.expires_at : tx.now + approval.expires_in_ms,
    approvers,
  });
  return pending;
}

/** Records that the action is still allowed. Returns the action, and the hash of the entry. */
export function recordConfirmation(
  tx: LedgerTransaction,
  row: ActionRow,
  redecision: Redecision,
  cause: RedecisionCause,
): Promise<{ row: ActionRow; hash: string }> {
  return recordRedecision(tx, row, null, redecision, { ...cause, status: row.status as RedecisionEntry["status"] });
}

/**
 * Records that an approver changed the request. The action keeps its deadline.
 * @param row the action with the changed request
 */
export async function recordEdit(
  tx: LedgerTransaction,
  row: ActionRow,
  history: VerifiedHistory,
  redecision: Redecision,
  terms: RedecisionCause & Pick<RedecisionTerms, "quorum" | "approvers" | "edit">,
): Promise<ActionRow> {
  const status = "pending_approval";
  return (await recordRedecision(tx, row, history, redecision, { ...terms, status })).row;
}

/** The members of a redecision's entry that do not follow from the decision. */
interface RedecisionTerms extends RedecisionCause, Pick<RedecisionEntry, "status"> {
  /** Default: those of the action. */
  quorum?: number;
  /** Milliseconds. */
  expires_at?: number | null;
  approvers?: ApproverPlan[];
  edit?: RedecisionEntry["edit"];
}

async function recordRedecision(
  tx: LedgerTransaction,
  row: ActionRow,
  history: VerifiedHistory | null,
  { decision, policySet, facts, past }: Redecision,
  terms: RedecisionTerms,
): Promise<{ row: ActionRow; hash: string }> {
  const { occasion, by, status, quorum = row.quorum, expires_at = row.expires_at } = terms;
  const { approvers = null, edit = null } = terms;
  const entry = {
    type: "redecision",
    v: 1,
    ...actionEntryFields(row, tx.now),
    occasion,
    by,
    policy_set: policySet,
    facts,
    decision,
    status,
    quorum,
    expires_at: expires_at === null ? null : toRfc3339(expires_at),
    approvers,
    edit,
    ...pinsForEntry({ decision, facts, past }, row),
  } as const;
  const changed = edit === null ? {} : { effective: row.effective, effective_hash: effectiveRequestHash(row) };
  const recorded = tx.recordChange(row, history, entry, { past, ...changed });
  if (status !== "denied") await tx.movePastAction(row.id, tx.now);
  return recorded;
}

/** Returns the error to throw after the commit. Within the transaction, it would roll the denial's entry back. */
export function noLongerAllowedError(row: ActionRow): Refusal {
  return new Refusal(
    "NO_LONGER_ALLOWED",
    `the current policies, agent or key no longer allow the action: ${row.reason}`,
  );
}

/**
 * Returns the error to throw after the commit. Within the transaction, it would roll the redecision's entry back.
 * @param changedPins paths of the pinned facts that changed. Their values are for approvers, not for the agent
 */
export function moreApprovalsNeededError(row: ActionRow, changedPins: readonly string[]): Refusal {
  if (changedPins.length > 0)
    return new Refusal(
      "MORE_APPROVALS_NEEDED",
      `facts that were approved have changed (${changedPins.join(", ")}), so the action is pending again; wait until it is approved, then start it`,
    );
  return new Refusal(
    "MORE_APPROVALS_NEEDED",
    `the current policies require a total of ${row.quorum ?? 1} approvals, so the action is pending again: ${row.reason}; wait until it is approved, then start it`,
  );
}

export function isDeniedByRedecision(row: ActionRow): boolean {
  return row.status === "denied" && row.reason_code === "NO_LONGER_ALLOWED";
}
