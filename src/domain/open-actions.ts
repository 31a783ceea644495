/** What is recorded of an action that is open: it waits for approval, or may start and has not. */
import type { ActionStatus } from "./actions.ts";
import type { Actor, ApprovalEntry } from "./entries.ts";
import { commitDigest } from "./request.ts";
import { toRfc3339 } from "./time.ts";

interface RecordedAction {
  id: string;
  agent_id: string;
  salt: string;
  request_hash: string;
  quorum: number | null;
}

export const OPEN_STATUSES: readonly ActionStatus[] = ["pending_approval", "allowed", "approved"];

/** What every entry about an action begins with. */
export function actionEntryFields(action: Omit<RecordedAction, "quorum">, now: number) {
  return {
    action_id: action.id,
    at: toRfc3339(now),
    agent_id: action.agent_id,
    commitment: commitDigest(action.salt, action.request_hash),
  };
}

/** @param approvals how many have approved so far */
export function cancellationEntry(
  action: RecordedAction,
  now: number,
  { by, comment, approvals }: { by: Actor; comment: string | null; approvals: number },
): ApprovalEntry {
  return {
    type: "approval",
    v: 4,
    ...actionEntryFields(action, now),
    verdict: "cancelled",
    by,
    comment,
    self_approval: false,
    approvals,
    quorum: action.quorum ?? 1,
    status: "cancelled",
    approved_until: null,
    rejection_until: null,
  };
}
