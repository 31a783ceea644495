/** Determines what the signed-in person can do with a request. */
import { serviceNow } from "../core/api.ts";
import type { Action } from "../core/api-types.ts";
import { hasScope, currentMe } from "../core/me.ts";
import { findVoteElsewhere } from "../core/parts.ts";
import { findHeldVote } from "./held-votes.ts";
import type { QueueItem } from "./queue-state.ts";

export type VoteAvailability = "settled" | "expired" | "voted" | "not yours" | "elsewhere" | "held" | "open";

type Vote = Action["approvals"][number];

/** Whether the signed-in person gave the vote. */
export const isOwnVote = ({ approver }: Vote): boolean => approver === currentMe()?.principal;

/** Returns the signed-in person's vote. */
export function findOwnVote(action: Action): Vote | null {
  return action.approvals.find(isOwnVote) ?? null;
}

export function countApprovals(action: Pick<Action, "approvals">): number {
  return action.approvals.filter(({ approve }) => approve).length;
}

export function findVoteAvailability({ action, outcome, isFull }: QueueItem): VoteAvailability {
  if (outcome !== null) return "settled";
  if (action.expires_at !== null && Date.parse(action.expires_at) <= serviceNow()) return "expired";
  if (findOwnVote(action) !== null) return "voted";
  if (findHeldVote(action.id) !== null) return "held";
  if (findVoteElsewhere(action) !== null) return "elsewhere";
  return !hasScope("approvals:decide") || (isFull && action.approval_token === undefined) ? "not yours" : "open";
}
