/** Detects approvers who try to approve their own action. */
import { sameName } from "./names.ts";
import { ownerIdentity } from "./owner.ts";

interface KeyIdentity {
  key_id: string;
  agent_id: string | null;
  owner: string | null;
}

/**
 * Why an approver counts as the submitter of the action. `unknown_owner`: the voter and the submitter might be the same
 * person, because the voter has no owner or one of the two owners is not the name of a user.
 */
export type SelfRelation = "same_key" | "same_agent" | "same_owner" | "same_maker" | "unknown_owner";

/**
 * Returns why the approver counts as the submitter, or null if the approver is someone else.
 * @param submitter the submitting key, as it was when the action was submitted
 * @param agentId the agent of the action;
 * any key bound to this agent counts as the agent, even if a different key submitted the action
 */
export function findSelfRelation(submitter: KeyIdentity, agentId: string, approver: KeyIdentity): SelfRelation | null {
  if (approver.key_id === submitter.key_id) return "same_key";
  const agents = [agentId, submitter.agent_id];
  if (approver.agent_id !== null && agents.some((id) => id !== null && sameName(id, approver.agent_id as string)))
    return "same_agent";
  if (
    approver.owner !== null &&
    submitter.owner !== null &&
    ownerIdentity(approver.owner) === ownerIdentity(submitter.owner)
  )
    return "same_owner";
  return null;
}

export const SELF_RELATION_REASONS: Readonly<Record<SelfRelation, string>> = {
  same_key: "this key submitted the action",
  same_agent: "this key is bound to the agent that acts",
  same_maker: "the submitter of the action made this key, so its vote counts as the submitter's",
  same_owner: "this key has the same owner as the one that submitted the action",
  unknown_owner:
    "this key has no owner, or one of its owner and the owner of the key that submitted the action is not a user, so both might be the same person",
};
