/** Who may approve in an emergency without the other approvers, and what such a vote records. */
import { SELF_RELATION_REASONS, type SoleApproval } from "../../src/core.ts";
import { errorKind, Refusal, toRfc3339, Type } from "../../src/plugin.ts";
import { coversChain } from "../actions/api.ts";
import { breakGlassState } from "./state.ts";

export const ERRORS = {
  notAllowed: errorKind("BREAK_GLASS_NOT_ALLOWED", 403, "This approver cannot break the glass"),
  notFound: errorKind("BREAK_GLASS_NOT_FOUND", 404, "No such break-glass approval"),
  reviewed: errorKind("BREAK_GLASS_REVIEWED", 409, "The break-glass approval was reviewed already"),
  notEligible: errorKind("REVIEWER_NOT_ELIGIBLE", 403, "This person cannot review the break-glass approval"),
};

export const soleApproval: SoleApproval = {
  body: Type.Boolean({
    description:
      "true: approves in an emergency without other approvers (break-glass). Only for a signed-in user with the scope `approvals:break_glass`, and with a `reason`; opens a review.",
  }),
  errors: [ERRORS.notAllowed],
  assertForm({ approve, reason = "", grant }) {
    const fault = !approve
      ? { pointer: "/approve", detail: "break-glass is only for approvals; any approver can deny" }
      : reason.trim() === ""
        ? { pointer: "/reason", detail: "give the reason why it cannot wait for the approvers; the reviewer reads it" }
        : grant === undefined
          ? null
          : { pointer: "/grant", detail: "an emergency approval covers one action and grants nothing" };
    if (fault !== null)
      throw new Refusal("VALIDATION_FAILED", `this is not a break-glass approval: ${fault.detail}`, {
        errors: [fault],
      });
  },
  /**
   * Only a signed-in user may. Keys and terminal sessions are rejected, because a coding agent runs on the same machine
   * and can read its user's key files. Links are rejected, because everyone who gets the message has the link, and its
   * recipient is a name in the configuration without a role.
   */
  findRefusal(caller, action, self) {
    if (self !== null)
      return new Refusal(
        "SELF_APPROVAL",
        `${SELF_RELATION_REASONS[self]}; no one can use break-glass for their own agent; someone else must`,
      );
    const session = caller?.session ?? null;
    if (caller === null || session === null)
      return new Refusal(ERRORS.notAllowed, "only a signed-in user can break the glass; a key or a link cannot");
    if (session.terminal)
      return new Refusal(ERRORS.notAllowed, "the session of a terminal cannot break the glass; do it in the console");
    if (!caller.hasScope("approvals:break_glass"))
      return new Refusal(
        "INSUFFICIENT_SCOPE",
        "you lack the scope approvals:break_glass, which the role break_glass has",
      );
    if (!coversChain(session.visibility, action))
      return new Refusal(
        "APPROVER_NOT_ELIGIBLE",
        "you see this action only through a delegation, which does not allow break-glass",
      );
    return null;
  },
  record(tx, { id: related_action, agent_id, tool, operation }, { id, by, reason }) {
    tx.record({
      type: "break_glass",
      v: 1,
      at: toRfc3339(tx.now),
      change: "used",
      agent_id,
      use: { id, tool, operation },
      related_action,
      comment: reason,
      by,
    });
  },
  listUnreviewed: (states) => [...states.state(breakGlassState).open.values()],
};
