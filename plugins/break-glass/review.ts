/** Closes the review of an emergency approval. The reviewer must be another person and give a comment. */
import {
  canSee,
  confirmCredential,
  type CoreHost,
  describePrincipal,
  SELF_RELATION_REASONS,
  toActor,
  userState,
  withoutDelegations,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { findSelfApproval, principalsBehindCredential } from "../actions/api.ts";
import { ERRORS } from "./sole-approval.ts";
import { breakGlassState, type BreakGlassUse } from "./state.ts";

/**
 * Closes the review. Throws REVIEWER_NOT_ELIGIBLE for the person who gave the emergency approval and for the person
 * behind the agent (in a session or with any of their keys), and for a key whose owner is not a user.
 */
export function reviewBreakGlass(
  host: CoreHost,
  credential: Credential,
  id: string,
  comment: string,
): Promise<BreakGlassUse> {
  if (comment.trim() === "")
    throw new Refusal("VALIDATION_FAILED", "`comment` is empty; describe what the review found", {
      errors: [{ pointer: "/comment", detail: "must not be empty" }],
    });
  return host.ledger.transact(async (tx) => {
    // A person could otherwise have a delegate review their own emergency approval.
    const caller = withoutDelegations(await confirmCredential(tx, credential, "approvals:decide"));
    const use = tx.state(breakGlassState).all.get(id);
    if (use === undefined || !canSeeUse(use, caller)) throw notFoundRefusal(id);
    if (use.review !== null)
      throw new Refusal(
        ERRORS.reviewed,
        `${await describePrincipal(tx, tx.state(userState), use.review.by.principal)} already reviewed this emergency approval, at ${toRfc3339(use.review.at)}`,
      );
    const row = await tx.action(use.action_id);
    if (row === null) throw notFoundRefusal(id);
    const self = findSelfApproval(host, row, caller);
    if (self !== null) throw notEligibleRefusal(`${SELF_RELATION_REASONS[self]}; someone else must review it`);
    if (host.keys.isUnknownOwner(caller.key.owner))
      throw notEligibleRefusal(
        "your key has no owner who is a user, so you might be the person who broke the glass; sign in",
      );
    const approver = principalsBehindCredential(host, use.by);
    if (
      principalsBehindCredential(host, { principal: caller.principal, key_id: caller.key.id }).some((each) =>
        approver.includes(each),
      )
    )
      throw notEligibleRefusal("you broke the glass, or your key counts as that person; someone else must review it");
    const { agent_id, tool, operation, action_id: related_action } = use;
    tx.record({
      type: "break_glass",
      v: 1,
      at: toRfc3339(tx.now),
      change: "reviewed",
      agent_id,
      use: { id, tool, operation },
      related_action,
      comment,
      by: toActor(caller.key, caller.principal),
    });
    return tx.state(breakGlassState).all.get(id) as BreakGlassUse;
  });
}

export function canSeeUse({ agent_id, tool }: BreakGlassUse, { visibility }: Credential): boolean {
  return canSee(visibility, { agent_id, tool, submitted_by: null });
}

function notFoundRefusal(id: string): Refusal {
  return new Refusal(ERRORS.notFound, `there is no break-glass approval ${id} that you may see`);
}

function notEligibleRefusal(detail: string): Refusal {
  return new Refusal(ERRORS.notEligible, detail);
}
