/**
 * Emergency approvals (break-glass) by one person, without the other approvers. Each opens a review, which another
 * person closes.
 */
import { type LedgerTransaction, SELF_RELATION_REASONS } from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { coversChain } from "./self-approval.ts";
import type { Vote, Voter } from "./voter.ts";

/** Throws VALIDATION_FAILED if a break-glass vote denies the action, has no reason, or contains a grant. */
export function assertBreakGlassForm({ approve, reason = "", grant, break_glass = false }: Vote): void {
  if (!break_glass) return;
  const fault = !approve
    ? { pointer: "/approve", detail: "break-glass is only for approvals; any approver can deny" }
    : reason.trim() === ""
      ? { pointer: "/reason", detail: "give the reason why it cannot wait for the approvers; the reviewer reads it" }
      : grant === undefined
        ? null
        : { pointer: "/grant", detail: "an emergency approval covers one action and grants nothing" };
  if (fault !== null)
    throw new Refusal("VALIDATION_FAILED", `this is not a break-glass approval: ${fault.detail}`, { errors: [fault] });
}

/**
 * Throws unless the voter may approve this action without other approvers: a signed-in user with the scope, who sees
 * the action without a delegation and is not the person behind the agent. Keys and terminal sessions are rejected,
 * because a coding agent runs on the same machine and can read its user's key files. Links are rejected, because
 * everyone who gets the message has the link, and its recipient is a name in the configuration without a role.
 */
export function assertMayBreakGlass(caller: Credential | null, row: ActionRow, { self, session }: Voter): void {
  if (self !== null)
    throw new Refusal(
      "SELF_APPROVAL",
      `${SELF_RELATION_REASONS[self]}; no one can use break-glass for their own agent; someone else must`,
    );
  if (caller === null || session === null)
    throw new Refusal("BREAK_GLASS_NOT_ALLOWED", "only a signed-in user can break the glass; a key or a link cannot");
  if (session.terminal)
    throw new Refusal(
      "BREAK_GLASS_NOT_ALLOWED",
      "the session of a terminal cannot break the glass; do it in the console",
    );
  if (!caller.hasScope("approvals:break_glass"))
    throw new Refusal("INSUFFICIENT_SCOPE", "you lack the scope approvals:break_glass, which the role break_glass has");
  if (!coversChain(session.visibility, row))
    throw new Refusal(
      "APPROVER_NOT_ELIGIBLE",
      "you see this action only through a delegation, which does not allow break-glass",
    );
}

/**
 * Records a break-glass use directly after its vote.
 * @param id id of the use
 */
export function recordBreakGlass(
  tx: LedgerTransaction,
  row: ActionRow,
  id: string,
  { actor }: Voter,
  reason: string,
): void {
  const { agent_id, tool, operation } = row;
  tx.record({
    type: "break_glass",
    v: 1,
    at: toRfc3339(tx.now),
    change: "used",
    agent_id,
    use: { id, tool, operation },
    related_action: row.id,
    comment: reason,
    by: actor,
  });
}
