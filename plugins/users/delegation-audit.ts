/** Checks delegations, and that each vote on behalf of another user used an active delegation that covers the action. */
import {
  type ApprovalEntry,
  type Delegation,
  type DelegationEntry,
  delegationState,
  delegationStatus,
  hasScope,
  isWithinLimits,
  limitsOfDelegation,
  parseEntryTime,
  principalOfUser,
  scopesOfRoles,
  type Users,
  userState,
} from "../../src/core.ts";
import type { FeatureAuditor } from "../../src/plugin.ts";

export function createDelegationAuditor(): FeatureAuditor {
  /** The delegations before the entry that was checked last. No vote can have used one that the last entry created. */
  let delegations = delegationState.initial;
  return {
    check(entry, { state }) {
      delegations = state(delegationState);
      if (entry.type === "delegation") assertMayDelegate(entry, state(userState));
      if (entry.type === "approval" && entry.delegation !== null)
        assertDelegated(entry, delegations.get(entry.delegation.id), state(userState));
    },
    checkVotes(action, entries, fault) {
      for (const entry of entries) {
        const used = entry.type === "approval" ? entry.delegation : null;
        const delegation = used === null ? undefined : delegations.get(used.id);
        const limits = delegation === undefined ? null : limitsOfDelegation(delegation);
        if (limits !== null && !isWithinLimits(limits, action))
          fault(
            `the vote of entry ${(entry as { seq?: number }).seq} uses the delegation ${used?.id}, which does not cover ${action.tool} of ${action.agent_id}`,
          );
      }
    },
  };
}

function assertMayDelegate({ change, delegation: { from, to }, by }: DelegationEntry, users: Users): void {
  if (change !== "created") return;
  if (by.principal !== principalOfUser(from))
    throw new RangeError(`the delegation of the user ${from} was created by ${by.principal}`);
  for (const user of [from, to])
    if (!mayApprove(users, user)) throw new RangeError(`the user ${user} of a delegation cannot approve`);
}

function assertDelegated(
  { delegation: used, by, at }: ApprovalEntry,
  delegation: Delegation | undefined,
  users: Users,
): void {
  if (delegation === undefined) throw new RangeError(`it uses the delegation ${used?.id}, which does not exist`);
  const { id, from, to } = delegation;
  if (used?.from !== principalOfUser(from) || by?.principal !== principalOfUser(to))
    throw new RangeError(`it uses the delegation ${id}, which is of other users`);
  if (delegationStatus(delegation, users, parseEntryTime(at)) !== "active")
    throw new RangeError(`it uses the delegation ${id}, which was not active`);
  if (!mayApprove(users, from))
    throw new RangeError(`it is given on behalf of the user ${from}, who could not approve`);
}

function mayApprove(users: Users, id: string): boolean {
  const user = users.get(id);
  return user !== undefined && user.ended_at === null && hasScope(scopesOfRoles(user.roles), "approvals:decide");
}
