/**
 * Changes parameters of a pending action, where its rules let approvers do that. The changed request is evaluated again
 * in the same transaction, limits included. Earlier votes are void, and another person has to approve it.
 */
import {
  combineEditableParameters,
  omitRedactedEditable,
  combinePlans,
  effectiveCommitment,
  commitFacts,
  confirmCredential,
  type CoreHost,
  countApproversNeeded,
  effectiveRequest,
  encodeEdit,
  findMemberships,
  type LedgerTransaction,
  hasEnrolled,
  listUses,
  isOfUnknownPerson,
  principalOfKey,
  toActor,
  displayPrincipal,
  userState,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  approvalExpiredError,
  assertMeetsOversightMode,
  assertNotErased,
  assertPending,
  collectCurrentFacts,
  coversChain,
  describeUncovered,
  decideByRules,
  findRejection,
  findUserAsApprover,
  findVotingBlock,
  findVoteIneligibility,
  isNewPerson,
  isRequesterKnown,
  isOverdue,
  newSalt,
  noLongerAllowedError,
  principalsBehindVote,
  readApproverEligibility,
  recordDenial,
  recordEdit,
  type Redecision,
  reevaluateAction,
  toCountedVotes,
  type VerifiedHistory,
  verifyAgainstLedger,
  verifyTokenVoter,
  visibleAction,
  type Voter,
  writeLimitUses,
  writePastActions,
} from "../actions/api.ts";
import { ERRORS } from "./errors.ts";
import { type EditedValue, editRequest } from "./parameters.ts";

interface Edit {
  /** The approval token from the action's record. */
  token: string;
  /** New values, keyed by path, such as `params.amount`. */
  changes: Readonly<Record<string, EditedValue>>;
  reason: string | null;
}

/**
 * Changes the request. Throws EDIT_NOT_ALLOWED, and NO_LONGER_ALLOWED if the policies now deny the unchanged action;
 * the denial is recorded first.
 */
export async function editAction(host: CoreHost, credential: Credential, id: string, edit: Edit): Promise<ActionRow> {
  const { row, denied } = await host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "approvals:decide");
    const row = await visibleAction(tx, id, caller);
    assertNotErased(row);
    const history = await verifyAgainstLedger(host, tx, row, await tx.approvals(id));
    const voter = verifyTokenVoter(host, row, caller, edit.token, { history, set: tx.activePolicies.compiled });
    assertPending(row);
    if (isOverdue(row, tx.now)) throw approvalExpiredError(row);
    assertMayEdit(host, tx, row, history, voter);
    await assertOthersCanApprove(host, tx, row, history, voter.actor);
    const before = await reevaluateAction(host, tx, row, history.basis);
    const cause = { occasion: "edit", by: toActor(caller.key, caller.principal) } as const;
    if (before.decision.effect === "deny") return { row: await recordDenial(tx, row, before, cause), denied: true };
    return { row: await changeRequest(host, tx, row, history, before, { ...edit, cause }), denied: false };
  });
  if (denied) throw noLongerAllowedError(row);
  return row;
}

/** Throws unless an approval by this voter would count now, and the request was never changed or allowed. */
function assertMayEdit(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  history: VerifiedHistory,
  { actor, self, groups, visibility, session }: Voter,
): void {
  const requirement = history.requirement ?? { approvers: [], since: tx.now };
  // Omit `signature`, because an edit is not signed.
  assertMeetsOversightMode(
    { self, gesture: null },
    requirement.approvers.map(({ exclude_requester_groups, mode, stages }) => ({
      exclude_requester_groups,
      mode,
      stages,
    })),
  );
  // A delegate can vote in the delegator's place, but cannot change the request.
  const own = session?.visibility ?? visibility;
  if (!coversChain(own, row)) throw new Refusal("APPROVER_NOT_ELIGIBLE", describeUncovered(own, row));
  const principals = principalsBehindVote(host, actor);
  if (isOfUnknownPerson(principals))
    throw editRefusal("your key has no owner, so no one else could approve the change; sign in to change the request");
  if (history.edit !== null)
    throw editRefusal("the request has been changed already; reject it, and let the agent submit another one");
  if (history.mayHaveRun)
    throw editRefusal("the action was allowed before and may have run; reject it, or approve it unchanged");
  const vote = {
    ...readApproverEligibility(host, row, { ...actor, groups }, requirement.approvers, tx),
    principals,
    self: false,
    break_glass: false,
    // Assume a signed vote, because the signature comes from the person who approves the changed request.
    signed: true,
    at: tx.now,
  };
  const ineligible = findVoteIneligibility(requirement, toCountedVotes(host, history.approvals), vote, {
    now: tx.now,
    isRequesterKnown: isRequesterKnown(row, tx),
  });
  if (ineligible !== null) throw ineligible.refusal;
}

/**
 * Throws if every credential that can approve counts as the person who changes the request: the changed request could
 * then only be rejected. Recipients of links can approve, too.
 */
async function assertOthersCanApprove(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  { requirement }: VerifiedHistory,
  actor: Voter["actor"],
): Promise<void> {
  if (host.channels.names().length > 0) return;
  const editor = principalsBehindVote(host, actor);
  for (const user of tx.state(userState).values()) {
    const approver = hasEnrolled(user) ? await findUserAsApprover(host, tx, user.id) : null;
    if (approver === null) continue;
    const history = { requirement, approvals: [], edit: { by: actor } };
    const block = findVotingBlock(host, row, approver, history, tx, host.guard.findApprovalBlock(row));
    // Someone else may be on call later.
    if (block === null || block.groups.some((group) => group !== null && host.groups.rotas.has(group))) return;
  }
  for (const { id, owner, scopes, revoked_at, expires_at } of await tx.keys()) {
    const mayVote = scopes.includes("approvals:decide") || scopes.includes("admin");
    if (!mayVote || revoked_at !== null || (expires_at ?? Infinity) <= tx.now) continue;
    const vote = { principal: principalOfKey({ id, owner }), key_id: id };
    if (isNewPerson([editor], principalsBehindVote(host, vote))) return;
  }
  throw editRefusal(
    'no one else could approve the changed request: no other user has enrolled who can approve it, and each other key that can approve counts as the same person as you, because of its owner or its creator, or has no owner. Enrol a user, or create a key on the machine ("assent keys create" with --local), and change the request then; or reject it and say what to change',
  );
}

async function changeRequest(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  history: VerifiedHistory,
  before: Redecision,
  { changes, reason, cause }: Edit & { cause: { occasion: "edit"; by: ReturnType<typeof toActor> } },
): Promise<ActionRow> {
  const { requirement, terms, basis } = history;
  const proposed = effectiveRequest(row);
  if (proposed === null) throw new Error(`the request of ${row.id} is missing`);
  // The decision's rules and the current rules must both let approvers change the member. The bounds of both apply.
  const editableParameters = terms?.editable ?? [];
  const both = combineEditableParameters([editableParameters, before.decision.approval?.editable ?? []]);
  const editable = omitRedactedEditable(tx.activePolicies.compiled, row, both);
  const request = editRequest(proposed, changes, editable);
  if ("path" in request)
    throw new Refusal(ERRORS.notAllowed, `${request.path === "" ? "" : `${request.path}: `}${request.detail}`);
  const facts = await collectCurrentFacts(host, tx, row, basis);
  const rejection = await findRejection(host, tx, request, { obliged: null, facts });
  if (rejection !== null)
    throw editRefusal(
      `${displayPrincipal(rejection.approver, rejection.approver_name)} rejected the changed request at ${rejection.at}; nothing was changed`,
    );
  // Release the earlier uses, so that the action does not count against limits twice.
  await tx.releaseLimitUses(row.id);
  const subject = { policies: tx.activePolicies, request, id: row.id, facts, counted: null };
  // A person approves the changed request, so no step can.
  const { decision, facts: decidedOn, evaluation, needs } = await decideByRules(host, tx, subject);
  if (decision.effect === "deny")
    throw editRefusal(`the policies deny the changed request (${decision.reason}); nothing was changed`);
  const approvers = combinePlans([...(requirement?.approvers ?? []), ...(decision.approval?.approvers ?? [])]);
  const stored = { at: tx.now, by: cause.by.principal, comment: reason, request, salt: newSalt() };
  const effective = encodeEdit(stored);
  const committed = commitFacts(decidedOn, newSalt, row.past);
  const redecision = { decision, policySet: tx.activePolicies.digest, ...committed };
  const changed = await recordEdit(tx, { ...row, effective }, history, redecision, {
    ...cause,
    edit: { previous: effectiveCommitment(row), comment: reason },
    quorum: Math.max(1, ...approvers.map(countApproversNeeded)),
    approvers,
  });
  await writeLimitUses(tx, listUses(evaluation, { decision, facts: decidedOn }, needs), row.id);
  await tx.removePastAction(row.id);
  await writePastActions(tx, findMemberships(evaluation, decision.effect), row.id);
  return changed;
}

function editRefusal(detail: string): Refusal {
  return new Refusal(ERRORS.notAllowed, detail);
}
