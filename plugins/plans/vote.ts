/**
 * Votes on a plan and cancels it. A vote rejects the actions that the approver struck out and approves the others, in
 * one transaction.
 */
import {
  checkToken,
  type CompiledPolicySet,
  confirmCredential,
  type CoreHost,
  type VoteSignature,
  type LedgerTransaction,
  questionsDigest,
  sha256Hex,
  type TokenClaims,
  type TokenForm,
  utf8,
  withoutDelegations,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  assertToken,
  cancelVisibleAction,
  commitPreview,
  createApprovalMac,
  factsChangedError,
  findVotedPinChanges,
  isOverdue,
  isStartable,
  noLongerAllowedError,
  type PinChange,
  prefetchRedecision,
  type PreparedVote,
  prepareVote,
  recordUnvotableAction,
  recordVote,
  type UnvotableAction,
  type Vote,
} from "../actions/api.ts";
import { actionListDigest, type PlanMember, remainingMembers } from "./action-list.ts";
import { planObstacleError, readRowsOfVisiblePlan, verifyPlan, type VerifiedPlan } from "./state.ts";
import { addActionPosition, withActionPosition } from "./submit.ts";

/**
 * Form of a plan's token: it contains the plan's id in place of an action's, and the digest of its list in place of a
 * request's.
 */
export const PLAN_TOKEN: TokenForm = { prefix: "apn1_", domain: "assent-plan-approval/1" };

/** An approver's vote on a plan. */
export interface PlanVote {
  /** False rejects every pending action. */
  approve: boolean;
  reason?: string;
  /** Pending actions to reject. Positions start at 1. */
  strikes?: readonly { position: number; reason?: string }[];
}

/** Proof that the approver saw the plan: its token, or a verified signature for each of its actions. */
type PlanProof = { token: string } | { gestureFor: (actionId: string) => VoteSignature };

interface PlannedVote {
  /** Index of the action in the plan. */
  i: number;
  row: ActionRow;
  vote: Vote;
}

/** The first action that a vote does not count for. */
interface EndedVote {
  /** Index of the action in the plan. */
  i: number;
  row: ActionRow;
  /** The pinned facts that changed; null if something else prevented the vote. */
  changes: PinChange[] | null;
}

/** Ids of a grant and of a sole approval, which a vote on a plan never creates. */
const NO_IDS = { grant: "", soleApproval: "" };

/** Errors of a voter who cannot approve an action that others can approve. The action stays pending. */
const LEFT_TO_OTHERS = ["APPROVER_NOT_ELIGIBLE", "ALREADY_VOTED"];

/**
 * Returns the claims of the token for a vote on the plan.
 * @param set policies that render the previews for the approver
 */
export function planTokenClaims(
  { entry, rows, histories, digest }: VerifiedPlan,
  approver: string,
  set: CompiledPolicySet,
): TokenClaims {
  const questions = digestOf(histories.map((history) => questionsDigest(history.questions)));
  // A vote covers exactly the actions that are pending now, so the digest must change when an action is no longer
  // pending. A pending action without a preview therefore adds "pending".
  const preview = digestOf(
    rows.map((row, i) =>
      row.status === "pending_approval"
        ? (digestOf([commitPreview(row, set), histories[i]?.pins ?? null]) ?? "pending")
        : null,
    ),
  );
  const ends = rows.flatMap(({ status, expires_at }) => (status === "pending_approval" ? (expires_at ?? []) : []));
  return {
    action_id: entry.plan.id,
    request_hash: digest,
    questions,
    preview,
    approver,
    expires_at: Math.min(...ends, Number.MAX_SAFE_INTEGER),
  };
}

/** Returns one digest over the digests of all actions; null if no action has a digest. */
function digestOf(digests: readonly (string | null)[]): string | null {
  return digests.every((each) => each === null) ? null : sha256Hex(utf8(JSON.stringify(digests)));
}

/**
 * Splits an approver's vote on the plan into votes on its pending actions. Rejections come first. Throws
 * ACTION_NOT_PENDING if no action is pending, or if an action that was struck out is not pending.
 */
export function listPlannedVotes({ terms, members, rows }: VerifiedPlan, answer: PlanVote): PlannedVote[] {
  const { approve, reason, strikes = [] } = answer;
  if (!approve && strikes.length > 0)
    throw new Refusal("VALIDATION_FAILED", "`strikes` need `approve: true`; a rejection covers the whole plan", {
      errors: [{ pointer: "/strikes", detail: "only with an approval" }],
    });
  const struck = new Map<number, string | undefined>();
  for (const { position, reason: why } of strikes) {
    const status = members[position - 1]?.status;
    if (status !== "pending_approval")
      throw new Refusal(
        "ACTION_NOT_PENDING",
        `action ${position} of the plan ${status === undefined ? "does not exist" : `is ${status}`}; only a pending action can be struck out`,
      );
    if (struck.has(position)) throw new Refusal("VALIDATION_FAILED", `action ${position} is struck out twice`);
    struck.set(position, why ?? reason);
  }
  const pending = members.filter(({ status }) => status === "pending_approval");
  if (pending.length === 0) throw new Refusal("ACTION_NOT_PENDING", `no action of the plan ${terms.id} is pending`);
  const isRejected = ({ position }: PlanMember): boolean => !approve || struck.has(position);
  const after = members.map((member): PlanMember =>
    member.status === "pending_approval" && isRejected(member) ? { ...member, status: "denied" } : member,
  );
  const list = actionListDigest(terms, after);
  const votes = pending.map((member): PlannedVote => {
    const i = member.position - 1;
    const why = isRejected(member) ? (struck.get(member.position) ?? reason) : reason;
    const vote = { approve: !isRejected(member), list, ...(why === undefined ? {} : { reason: why }) };
    return { i, row: rows[i] as ActionRow, vote };
  });
  return [...votes.filter(({ vote }) => !vote.approve), ...votes.filter(({ vote }) => vote.approve)];
}

/**
 * Votes on the plan. Actions that still need another person's vote stay pending. Throws a Refusal if the vote does not
 * count for any action, or NO_LONGER_ALLOWED if the policies now deny an action; in that case only the denials are
 * recorded.
 */
export async function voteOnPlan(
  host: CoreHost,
  credential: Credential,
  id: string,
  answer: PlanVote,
  proof: PlanProof,
): Promise<void> {
  if (answer.approve) await prefetchPlan(host, credential, id);
  const denied = await host.ledger.transact(async (tx): Promise<EndedVote | null> => {
    const caller = await confirmCredential(tx, credential, "approvals:decide");
    const plan = await verifyPlan(host, tx, await readRowsOfVisiblePlan(tx, id, caller), tx.now);
    if ("token" in proof)
      assertToken(
        checkToken(
          PLAN_TOKEN,
          proof.token,
          planTokenClaims(plan, caller.principal, tx.activePolicies.compiled),
          createApprovalMac(host),
        ),
      );
    if (answer.approve) assertNotFailed(plan);
    const prepared = await prepareVotes(host, tx, caller, listPlannedVotes(plan, answer), proof);
    const ended = prepared.filter((each) => "ends" in each.ballot);
    if (ended.length === 0) {
      for (const { ballot } of prepared) await recordVote(host, tx, ballot as PreparedVote, NO_IDS);
      return null;
    }
    // A changed list of actions voids the vote, so record only the changes.
    for (const { ballot } of ended) await recordUnvotableAction(tx, ballot as UnvotableAction);
    const [first] = ended;
    const row = first === undefined ? null : await tx.action(first.row.id);
    if (first === undefined || row === null) return null;
    return { i: first.i, row, changes: findVotedPinChanges(first.ballot as UnvotableAction) };
  });
  // Throw only after the commit, because a refusal within the transaction would roll the denial back.
  if (denied === null) return;
  const { i, row, changes } = denied;
  throw addActionPosition(i, changes === null ? noLongerAllowedError(row) : factsChangedError(changes));
}

/**
 * Prefetches the facts of all actions at once. Otherwise, the transaction would read the facts of one action after the
 * other, and run again after each read; the number of these repetitions is limited.
 */
async function prefetchPlan(host: CoreHost, credential: Credential, id: string): Promise<void> {
  if (!host.policies.latest().compiled.hasFacts) return;
  const ids = (await readRowsOfVisiblePlan(host.storage, id, credential)).map((row) => row.id);
  await prefetchRedecision(host, ids, () => true);
}

/** Throws PLAN_STOPPED if an action has failed and the plan stops at a failure. */
function assertNotFailed({ terms, members }: VerifiedPlan): void {
  const failed = remainingMembers(members).find(({ status }) => status === "failed" || status === "unknown");
  if (terms.stop_on_failure && failed !== undefined) throw planObstacleError(terms, { kind: "stopped", by: failed });
}

type PreparedPlanVote = PlannedVote & { ballot: PreparedVote | UnvotableAction };

/** Checks every vote without recording it. Omits approvals that other people have to give. */
async function prepareVotes(
  host: CoreHost,
  tx: LedgerTransaction,
  caller: Credential,
  votes: readonly PlannedVote[],
  proof: PlanProof,
): Promise<PreparedPlanVote[]> {
  const prepared: PreparedPlanVote[] = [];
  let refusal: unknown = null;
  for (const planned of votes) {
    const { i, row, vote } = planned;
    const voteProof = "token" in proof ? ({ shown: "verified" } as const) : { gesture: proof.gestureFor(row.id) };
    try {
      const ballot = await withActionPosition(i, () => prepareVote(host, tx, row, { caller, proof: voteProof }, vote));
      prepared.push({ ...planned, ballot });
    } catch (error) {
      if (!vote.approve || !(error instanceof Refusal) || !LEFT_TO_OTHERS.includes(error.code)) throw error;
      refusal ??= error;
    }
  }
  const isCast = !votes.some(({ vote }) => vote.approve) || prepared.some(({ vote }) => vote.approve);
  if (!isCast) throw refusal;
  return prepared;
}

/**
 * Cancels the pending actions of the plan. For an admin, also cancels startable actions that have not started. Returns
 * all actions of the plan. Throws NOT_THE_SUBMITTER, and ACTION_NOT_PENDING if no action can be cancelled.
 */
export function cancelPlan(
  host: CoreHost,
  credential: Credential,
  id: string,
  reason: string | null,
): Promise<ActionRow[]> {
  return host.ledger.transact(async (tx) => {
    const caller = withoutDelegations(await tx.confirm(credential));
    const rows = await readRowsOfVisiblePlan(tx, id, caller);
    const isOpen = (row: ActionRow): boolean =>
      row.status === "pending_approval"
        ? !isOverdue(row, tx.now)
        : caller.hasScope("admin") && isStartable(row, tx.now);
    const open = rows.filter(isOpen);
    if (open.length === 0)
      throw new Refusal(
        "ACTION_NOT_PENDING",
        `no action of the plan ${id} is pending; an admin can also cancel actions that may start`,
      );
    for (const row of open) await cancelVisibleAction(tx, caller, row, reason);
    return readRowsOfVisiblePlan(tx, id, caller);
  });
}
