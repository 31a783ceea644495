/** Finds the grant that covers an action, under the ledger's lock: for its decision, and again for its start. */
import {
  userState,
  grantState,
  applyGrant,
  canSee,
  type CoreHost,
  type Decision,
  type Evaluation,
  type Facts,
  findGrantEnd,
  findGrantUsage,
  findOpenGrants,
  type Grant,
  type GrantFact,
  grantUsageFacts,
  type GrantUsage,
  grantUseLimitPolicy,
  isGrantFor,
  type LedgerTransaction,
  matchGrant,
  readPrincipalNames,
  type Rights,
  toSingleLine,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import { maySelfConfirm, readApproverEligibility } from "./approver-plans.ts";
import { findSelfApproval, type SubmittedAction } from "./self-approval.ts";

const MAX_NAME = 200;

/** A decision that requires approval, and the facts that it was made from. */
interface UncoveredUse {
  decision: Decision;
  facts: Facts;
}

/**
 * Returns an allowing decision by the oldest grant that covers the action, with the facts to record; null if no grant
 * covers it.
 * @param action the action with its submitter
 */
export async function findGrantedDecision(
  host: CoreHost,
  tx: LedgerTransaction,
  action: SubmittedAction,
  evaluation: Evaluation,
  uncovered: UncoveredUse,
): Promise<{ decision: Decision; facts: Facts } | null> {
  if (uncovered.decision.approval?.grants === undefined) return null;
  for (const grant of findOpenGrants(tx.state(grantState), action, tx.placedBar, tx.now)) {
    if (!isGrantFor(grant, action)) continue;
    const granted = await applyOpenGrant(host, tx, action, evaluation, uncovered, grant, readGrantUsage);
    if (granted !== null) return granted;
  }
  return null;
}

/**
 * Evaluates an action again that a grant covered. Returns null unless the same grant still covers it. Uses the grant's
 * usage from the recorded facts, because the current usage already includes this action.
 * @param first the facts of the decision that counted the action against limits and the grant
 */
export function redecideWithGrant(
  host: CoreHost,
  tx: LedgerTransaction,
  action: SubmittedAction,
  evaluation: Evaluation,
  uncovered: UncoveredUse,
  first: Facts,
): Promise<{ decision: Decision; facts: Facts } | null> {
  const grant = tx.state(grantState).all.get(first.grant?.id ?? "");
  const usage = findGrantUsage(first);
  if (grant === undefined || usage === null || !isGrantFor(grant, action)) return Promise.resolve(null);
  if (findGrantEnd(grant, tx.placedBar, tx.now) !== null) return Promise.resolve(null);
  return applyOpenGrant(host, tx, action, evaluation, uncovered, grant, () => Promise.resolve(usage));
}

async function applyOpenGrant(
  host: CoreHost,
  tx: LedgerTransaction,
  action: SubmittedAction,
  evaluation: Evaluation,
  { decision, facts }: UncoveredUse,
  grant: Grant,
  readUsage: (tx: LedgerTransaction, grant: Grant) => Promise<GrantUsage>,
): Promise<{ decision: Decision; facts: Facts } | null> {
  // Compare the scope first, because that does not read from the store.
  if (matchGrant(grant, evaluation) === null) return null;
  const eligibility = await findGrantorEligibility(host, tx, action, decision, grant);
  if (eligibility === null) return null;
  const { id, by, granted_at, until, count, scope, sum } = grant;
  const names = await readPrincipalNames(tx, tx.state(userState), [by.principal]);
  const fact: GrantFact = {
    id,
    by: by.principal,
    by_name: toSingleLine(names[by.principal] ?? "", MAX_NAME) || null,
    granted_at: toRfc3339(granted_at),
    until: toRfc3339(until),
    count,
    scope,
    sum,
    ...eligibility,
  };
  const usage = grantUsageFacts(grant, await readUsage(tx, grant));
  const covered = { ...facts, limits: [...(facts.limits ?? []), ...usage], grant: fact };
  const granted = applyGrant(decision, evaluation, covered);
  return granted.effect === "allow" ? { decision: granted, facts: covered } : null;
}

/** Returns the usage of a grant so far, including earlier actions of this batch. */
async function readGrantUsage(
  reader: Pick<LedgerTransaction, "limitUsed">,
  { id, granted_at }: Pick<Grant, "id" | "granted_at">,
): Promise<GrantUsage> {
  return reader.limitUsed(grantUseLimitPolicy(id), "uses", "", granted_at);
}

/**
 * Returns how a vote of the grantor on this action would count now: the groups for which it would count, whether it
 * would be independent, and whether the grantor is the person behind the agent. Null if the vote would not be accepted.
 */
async function findGrantorEligibility(
  host: CoreHost,
  tx: LedgerTransaction,
  action: SubmittedAction,
  decision: Decision,
  grant: Grant,
): Promise<Pick<GrantFact, "groups" | "independent" | "self"> | null> {
  const rights = await host.keys.rightsOf(tx, grant.by.key_id);
  if (rights === null || !canCreateGrants(rights, grant) || !canSee(rights.visibility, action)) return null;
  const plans = decision.approval?.approvers ?? [];
  const self = findSelfApproval(host, action, rights);
  // A grant by the person behind the agent has the same conditions as their vote: it must be signed, and every rule
  // must allow self-confirmation.
  if (self !== null && !(isSignedByHeldPasskey(tx, grant) && maySelfConfirm(self, plans))) return null;
  const approver = { principal: rights.principal, key_id: rights.key.id, groups: rights.groups };
  const { groups, independent } = readApproverEligibility(host, action, approver, plans, tx);
  return { groups: [...groups].sort(), independent, self: self !== null };
}

/**
 * Whether the grant was signed with a passkey that the grantor still has. Users remove a passkey that was lost or
 * stolen.
 */
function isSignedByHeldPasskey({ state }: Pick<LedgerTransaction, "state">, { passkey, by }: Grant): boolean {
  return (
    passkey !== null &&
    state(userState)
      .get(by.key_id)
      ?.passkeys.some(({ id }) => id === passkey) === true
  );
}

/** Whether the grantor still has the rights to vote and to create grants. */
export function canCreateGrants({ key, principal, hasScope }: Rights, { by }: Pick<Grant, "by">): boolean {
  const isSame = principal === by.principal && key.agent_id === null;
  return isSame && hasScope("approvals:decide") && hasScope("grants:write");
}
