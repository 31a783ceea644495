/**
 * Claims of pending requests. They exist only as ledger entries, so all processes have the same claims. A claim affects
 * no decision: it only tells others who is reviewing the request.
 */
import { parseEntryTime, userOfPrincipal, userState } from "../../src/core.ts";
import type { EntryBody, Fold, StatesReader } from "../../src/plugin.ts";
import type { ActionRow, ApprovalRow } from "../../src/storage/index.ts";
import { CLAIM_ENTRY, type ClaimChange } from "./schemas.ts";

export interface Claim {
  action_id: string;
  /** Principal of the approver. */
  holder: string;
  /** Principal who claimed it or handed it over. */
  by: string;
  /** Milliseconds. */
  at: number;
  until: number;
  /** Sequence number of its entry. */
  seq: number;
}

/** The claims whose time was not over at the last entry about a claim, keyed by action. */
export type Claims = ReadonlyMap<string, Claim>;

export const claimState: Fold<Claims> = {
  name: "claims",
  initial: new Map(),
  on: { [CLAIM_ENTRY]: (claims, entry) => applyClaimEntry(claims, entry as ClaimEntry) },
};

type ClaimEntry = Extract<EntryBody, { data: object }> & { seq: number };

/** Returns the claims after an entry. Throws RangeError if the entry contradicts earlier entries. */
export function applyClaimEntry(claims: Claims, { action_id, at: time, by, data, seq }: ClaimEntry): Claims {
  const { change, holder, until } = data as ClaimChange;
  if (action_id === null || by === null) throw new RangeError("a claim names no action or no person");
  const at = parseEntryTime(time);
  const next = new Map([...claims].filter(([, claim]) => claim.until > at));
  if (change === "released") {
    if (next.get(action_id)?.holder !== holder)
      throw new RangeError(`${holder} has no claim of ${action_id} to release`);
    next.delete(action_id);
    return next;
  }
  if (until === null) throw new RangeError(`the claim of ${action_id} has no end`);
  return next.set(action_id, { action_id, holder, by: by.principal, at, until: parseEntryTime(until), seq });
}

/**
 * Returns the claim of an action; null if there is none. A claim ends at its time, when the action settles, when its
 * holder votes, and when its holder is deactivated.
 * @param votes votes on the action
 */
export function findClaim(
  { state, now }: StatesReader,
  row: Pick<ActionRow, "id" | "status" | "expires_at">,
  votes: readonly ApprovalRow[],
): Claim | null {
  const claim = state(claimState).get(row.id);
  if (claim === undefined || claim.until <= now) return null;
  if (!isPending(row, now)) return null;
  if (state(userState).get(userOfPrincipal(claim.holder) ?? "")?.ended_at != null) return null;
  const hasVoted = votes.some(({ action_id, principal }) => action_id === row.id && principal === claim.holder);
  return hasVoted ? null : claim;
}

/** Returns true if the action waits for approval and its deadline has not passed. */
export function isPending({ status, expires_at }: Pick<ActionRow, "status" | "expires_at">, now: number): boolean {
  return status === "pending_approval" && (expires_at ?? 0) > now;
}
