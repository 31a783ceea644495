/**
 * Builds entries about open actions: actions that wait for approval, and actions that may start but have not started.
 */
import type { Actor, ApprovalEntry } from "./entries.ts";
import { effectiveCommitment } from "./edited-request.ts";
import { toRfc3339 } from "./time.ts";

interface RecordedAction {
  id: string;
  agent_id: string;
  salt: string;
  request_hash: string;
  effective: string | null;
  quorum: number | null;
}

/** Returns the fields that are common to every entry about an action. */
export function actionEntryFields(action: Omit<RecordedAction, "quorum">, now: number) {
  return {
    action_id: action.id,
    at: toRfc3339(now),
    agent_id: action.agent_id,
    commitment: effectiveCommitment(action),
  };
}

/** Values of the fields of a vote, for an entry of type `approval` that is not a vote. */
export const NON_VOTE_FIELDS = {
  self_approval: false,
  delegation: null,
  break_glass: false,
  grant: null,
  groups: [],
  independent: false,
  gesture: null,
  preview: null,
  questions: null,
  plan: null,
} satisfies Partial<ApprovalEntry>;

/**
 * Returns the entry that cancels an action.
 * @param approvals the number of approvals so far
 */
export function cancellationEntry(
  action: RecordedAction,
  now: number,
  { by, comment, approvals }: { by: Actor | null; comment: string | null; approvals: number },
): ApprovalEntry {
  return {
    type: "approval",
    v: 1,
    ...actionEntryFields(action, now),
    verdict: "cancelled",
    by,
    comment,
    ...NON_VOTE_FIELDS,
    approvals,
    quorum: action.quorum ?? 1,
    status: "cancelled",
    approved_until: null,
    rejection_until: null,
  };
}
