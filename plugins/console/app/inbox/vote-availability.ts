/** Determines what the signed-in person can do with a request. */
import { now } from "../core/api.ts";
import type { Action } from "../core/api-types.ts";
import { hasScope, me } from "../core/me.ts";
import type { Item } from "./queue-state.ts";

export type VoteAvailability = "settled" | "expired" | "voted" | "not yours" | "open";

type Vote = Action["approvals"][number];

/** Returns the signed-in person's vote. */
export function findOwnVote(action: Action): Vote | null {
  return action.approvals.find(({ approver }) => approver === me()?.principal) ?? null;
}

export function approvalsGiven(action: Pick<Action, "approvals">): number {
  return action.approvals.filter(({ approve }) => approve).length;
}

export function findVoteAvailability({ action, outcome, isFull }: Item): VoteAvailability {
  if (outcome !== null) return "settled";
  if (action.expires_at !== null && Date.parse(action.expires_at) <= now()) return "expired";
  if (findOwnVote(action) !== null) return "voted";
  return !hasScope("approvals:decide") || (isFull && action.approval_token === undefined) ? "not yours" : "open";
}
