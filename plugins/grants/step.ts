/** Finds the grant that covers an action: for its decision, and again for votes, permits and its start. */
import {
  type CoreHost,
  type CountedDecision,
  type Decision,
  type DecisionStep,
  findGrantUsage,
  type GrantFact,
  type GrantUsage,
  grantUseLimitPolicy,
  type LimitFact,
  matchGrant,
  type RelaxableAction,
  type Rights,
  type StepFacts,
  type StepReader,
  type SubmittedAction,
  usageOf,
  userState,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import {
  coversChain,
  findSelfApproval,
  maySelfConfirm,
  raiseToReports,
  readApproverEligibility,
  readRecordedName,
} from "../actions/api.ts";
import { findGrantEnd, findOpenGrants, type Grant, grantState, isGrantFor } from "./state.ts";

/** Allows actions that require approval if a grant covers them. */
export const grantStep = (host: CoreHost): DecisionStep => ({
  name: "grants",
  relax(action) {
    return action.counted === null ? findCoveringGrants(host, action) : findRecordedGrant(host, action, action.counted);
  },
});

/** Returns the facts of each open grant that can cover a new request, oldest first. */
function findCoveringGrants(host: CoreHost, use: RelaxableAction): AsyncIterable<StepFacts> | null {
  const { reader, action, decided } = use;
  if (decided.decision.approval?.grants === undefined) return null;
  const grants = findOpenGrants(reader.state(grantState), action, reader.placedBar, reader.now).filter((grant) =>
    isGrantFor(grant, action),
  );
  return grants.length === 0 ? null : toStepFacts(host, use, grants, (grant) => readGrantUsage(reader, grant));
}

/**
 * Returns the facts of the grant that covered an action when it was decided, if the grant is still open. Uses the
 * grant's usage from that decision, because the current usage already includes this action.
 * @param counted the decision that counted the action against limits and the grant
 */
function findRecordedGrant(
  host: CoreHost,
  use: RelaxableAction,
  counted: CountedDecision,
): AsyncIterable<StepFacts> | null {
  const { reader, action } = use;
  const { facts } = counted;
  if (facts.grant === undefined) return null;
  const grant = reader.state(grantState).all.get(facts.grant.id);
  const usage = findGrantUsage(facts);
  if (grant === undefined || usage === null || !isGrantFor(grant, action)) return null;
  if (findGrantEnd(grant, reader.placedBar, reader.now) !== null) return null;
  const { id, granted_at: since, sum } = grant;
  const uses = { policy: grantUseLimitPolicy(id), limit: "uses", subject: "", since, ...usageOf(sum) };
  return toStepFacts(host, use, [grant], async () => ({
    ...usage,
    sum: await raiseToReports(reader, uses, usage.sum, counted),
  }));
}

async function* toStepFacts(
  host: CoreHost,
  { reader, action, evaluation, decided }: RelaxableAction,
  grants: readonly Grant[],
  readUsage: (grant: Grant) => Promise<GrantUsage>,
): AsyncGenerator<StepFacts> {
  for (const grant of grants) {
    // Compare the scope first, because that does not read from the store.
    if (matchGrant(grant, evaluation) === null) continue;
    const eligibility = await findGrantorEligibility(host, reader, action, decided.decision, grant);
    if (eligibility === null) continue;
    const { id, by, granted_at, until, count, scope, sum } = grant;
    const fact: GrantFact = {
      id,
      by: by.principal,
      by_name: await readRecordedName(reader, reader.state(userState), by.principal),
      granted_at: toRfc3339(granted_at),
      until: toRfc3339(until),
      count,
      scope,
      sum,
      ...eligibility,
    };
    yield { grant: fact, limits: grantUsageFacts(grant, await readUsage(grant)) };
  }
}

/** Returns the usage of a grant so far, including earlier actions of this batch. */
async function readGrantUsage(
  reader: Pick<StepReader, "limitUsed">,
  { id, granted_at }: Pick<Grant, "id" | "granted_at">,
): Promise<GrantUsage> {
  return reader.limitUsed(grantUseLimitPolicy(id), "uses", "", granted_at);
}

/**
 * Describes how a vote of the grantor on this action would count now: its groups, whether it is independent, and
 * whether the grantor is the person behind the agent. Null if the vote would not be accepted.
 */
async function findGrantorEligibility(
  host: CoreHost,
  tx: StepReader,
  action: SubmittedAction,
  decision: Decision,
  grant: Grant,
): Promise<Pick<GrantFact, "groups" | "independent" | "self"> | null> {
  const rights = await host.keys.rightsOf(tx, grant.by.key_id);
  if (rights === null || !canCreateGrants(rights, grant) || !coversChain(rights.visibility, action)) return null;
  const plans = decision.approval?.approvers ?? [];
  const self = findSelfApproval(host, action, rights);
  // A grant by the person behind the agent needs what their vote would need: a signature, and self-confirmation in
  // every rule.
  if (self !== null && !(isSignedByHeldPasskey(tx, grant) && maySelfConfirm(self, plans))) return null;
  const approver = { principal: rights.principal, key_id: rights.key.id, groups: rights.groups };
  const { groups, independent } = readApproverEligibility(host, action, approver, plans, tx);
  return { groups: [...groups].sort(), independent, self: self !== null };
}

/**
 * Returns true if the grant was signed with a passkey that the grantor still has. Users remove a lost or stolen
 * passkey.
 */
function isSignedByHeldPasskey({ state }: Pick<StepReader, "state">, { passkey, by }: Grant): boolean {
  return (
    passkey !== null &&
    state(userState)
      .get(by.key_id)
      ?.passkeys.some(({ id }) => id === passkey) === true
  );
}

/** Returns true if the grantor still has the rights to vote and to create grants. */
export function canCreateGrants({ key, principal, hasScope }: Rights, { by }: Pick<Grant, "by">): boolean {
  const isSame = principal === by.principal && key.agent_id === null;
  return isSame && hasScope("approvals:decide") && hasScope("grants:write");
}

/**
 * Returns the facts that record the usage, in the form of the usage of a limit. The limit's policy is `grant:<id>`,
 * which cannot be the name of a real policy.
 */
function grantUsageFacts({ id, sum: cap }: Pick<GrantFact, "id" | "sum">, { count, sum }: GrantUsage): LimitFact[] {
  const fact = (limit: string, used: number): LimitFact => ({
    policy: grantUseLimitPolicy(id),
    limit,
    basis: "",
    used,
  });
  return [fact("count", count), ...(cap === null ? [] : [fact("sum", sum)])];
}
