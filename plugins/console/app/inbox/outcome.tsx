/** The outcome of a request. */
import type { Action } from "../core/api-types.ts";
import { Notice, MarkedValue } from "../ui/elements.tsx";
import { PrincipalName } from "../ui/person.tsx";

export interface RequestOutcome {
  kind: "good" | "bad" | "busy";
  text: string;
  /** Principal of the voter, or the reviewer. Rendered in front of the text. */
  by?: string | undefined;
  reason?: string | null | undefined;
  /** Whether this browser's vote settled the request. */
  isMine?: boolean;
}

/** Returns the outcome of an action; null while the action is pending. */
export function findOutcome(action: Action): RequestOutcome | null {
  if (action.status === "pending_approval") return null;
  const last = action.approvals.at(-1);
  const vote = { by: last?.approver, reason: last?.reason };
  if (action.status === "expired") return { kind: "busy", text: "It expired before it was settled." };
  if (action.status === "cancelled") return { kind: "busy", text: "It was cancelled." };
  if (action.denied_by === "policy")
    return { kind: "bad", text: "It was evaluated again, and the current policies deny it." };
  if (action.denied_by === "reviewer")
    return reviewOutcome(action.rejection?.approver.replace(/^reviewer:/, "") ?? "", action.rejection?.reason);
  if (action.status !== "denied" && last === undefined) return reviewOutcome(null, null);
  if (action.status === "denied") return { kind: "bad", text: "denied it", ...vote };
  return { kind: "good", text: "approved it", ...vote };
}

/**
 * Returns the outcome of a machine review.
 * @param denier the reviewer that denied the request; null if all approved it
 */
export function reviewOutcome(denier: string | null, reason: string | null | undefined): RequestOutcome {
  if (denier === null) return { kind: "good", text: "Machine reviewers approved it." };
  return { kind: "bad", text: "denied it", by: `the reviewer ${denier}`, reason };
}

export function OutcomeText({ outcome }: { outcome: RequestOutcome }) {
  const { kind, text, by, reason } = outcome;
  return (
    <Notice kind={kind}>
      {by === undefined ? null : (
        <>
          <PrincipalName principal={by} />{" "}
        </>
      )}
      {text}
      {reason ? (
        <>
          : “<MarkedValue value={reason} />”
        </>
      ) : text.endsWith(".") ? null : (
        "."
      )}
    </Notice>
  );
}
