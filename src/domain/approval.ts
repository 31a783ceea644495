/** Detects approvers who try to approve their own action. */
import { sameName } from "./names.ts";

interface KeyIdentity {
  key_id: string;
  agent_id: string | null;
  owner: string | null;
}

/**
 * Why the service treats an approver as the submitter of the action. `unknown_owner`: the voter and the submitter might
 * be the same person, because the voting key has no owner, or the submitting key has an owner who is not a user.
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
  return approver.owner !== null && approver.owner === submitter.owner ? "same_owner" : null;
}

export const SELF_RELATION_REASONS: Readonly<Record<SelfRelation, string>> = {
  same_key: "this key submitted the action",
  same_agent: "this key is bound to the agent that acts",
  same_maker: "the submitter of the action made this key, so its vote counts as the submitter's",
  same_owner: "this key has the same owner as the one that submitted the action",
  unknown_owner: "this key has no owner who is a user, so it might belong to the person behind the agent",
};
