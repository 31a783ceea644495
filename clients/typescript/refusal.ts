/** Explains why an action cannot run, and what its agent can do next. */
import type { AssentError } from "./client-errors.ts";
import type { ActionRecord } from "./action-types.ts";

/**
 * Kind of refusal:
 *
 * - `denied` by a policy
 * - `rejected` by a person or a machine reviewer, including an earlier rejection of the same request
 * - `stopped` by a stop of the service
 * - `expired`: no one decided on the action, or no one started it, in time
 * - `cancelled` before it started
 * - `taken`: another call runs the action or has run it
 * - `refused`: the service did not start the action
 * - `edited`: an approver or a policy changed the parameters, and the caller cannot apply the change
 */
export type RefusalOutcome =
  | "denied"
  | "rejected"
  | "stopped"
  | "expired"
  | "cancelled"
  | "taken"
  | "refused"
  | "edited";

/** The members of an action's record that explain why it does not run. */
export type ExplainedAction = Pick<
  ActionRecord,
  "status" | "denied_by" | "rejection" | "reason" | "reason_code" | "approved_until"
> &
  Partial<Pick<ActionRecord, "params" | "proposed" | "names" | "alternative">>;

export interface RefusalExplanation {
  outcome: RefusalOutcome;
  /** Completes "The call was …", for example with `rejected by alice: use npm run ship instead`. */
  why: string;
  /** One or two sentences for the agent. */
  next: string;
}

const MAX_LENGTH = 500;
const SUBMIT_AGAIN = "It was not refused: the same request can be submitted again, and is decided anew. Tell the user.";
const NO_DETOUR = "Do not look for another way to do the same";

/**
 * Returns the refusal of an action that cannot run now.
 * @param error the error of the start, if the action's status does not explain it
 * @example
 * const { outcome, why, next } = explainRefusal(action);
 * return `The call was ${why}. ${next}`;
 */
export function explainRefusal(
  action: ExplainedAction,
  error?: Pick<AssentError, "code" | "message">,
): RefusalExplanation {
  switch (action.status) {
    case "denied":
      return deniedRefusal(action);
    case "expired":
      return {
        outcome: "expired",
        why: action.approved_until ? "approved, and not started in time" : "not decided on in time",
        next: SUBMIT_AGAIN,
      };
    case "cancelled":
      return {
        outcome: "cancelled",
        why: "cancelled",
        next: "No one refused it, but do not submit it again unless the user asks for it.",
      };
    case "allowed":
    case "approved":
      if (action.proposed != null && error === undefined) return editedRefusal(action);
      return startRefusal(action, error);
    default:
      return {
        outcome: "taken",
        why: `already taken by another call: it is ${action.status}`,
        next: "One approval or decision is good for one run. If it is still needed, submit it again.",
      };
  }
}

function editedRefusal({ params = {}, proposed, status }: ExplainedAction): RefusalExplanation {
  const changed = Object.keys(params).filter(
    (name) => JSON.stringify(params[name]) !== JSON.stringify(proposed?.params[name]),
  );
  const values = changed.map((name) => `${name} = ${JSON.stringify(params[name])}`).join(", ");
  return {
    outcome: "edited",
    why: `${status} with other parameters: ${toSingleLine(values)}`,
    next: "They cannot be applied to this call. If the user agrees, make a new call with exactly these parameters; it is decided anew.",
  };
}

function startRefusal(
  { status }: ExplainedAction,
  error: Pick<AssentError, "code" | "message"> | undefined,
): RefusalExplanation {
  const { code = "UNKNOWN", message = `it is ${status}` } = error ?? {};
  if (code === "STOPPED") return stopRefusal(message);
  if (code === "START_EXPIRED")
    return { outcome: "expired", why: `${status}, and not started in time`, next: SUBMIT_AGAIN };
  return {
    outcome: "refused",
    why: `not started by the service (${code}): ${toSingleLine(message)}`,
    next: "Tell the user.",
  };
}

function stopRefusal(reason: string): RefusalExplanation {
  return {
    outcome: "stopped",
    why: `stopped: ${toSingleLine(reason)}`,
    next: `The stop is not about this request alone. ${NO_DETOUR}; tell the user that work is stopped, and try again once the stop is lifted.`,
  };
}

function deniedRefusal(action: ExplainedAction): RefusalExplanation {
  const { alternative, denied_by, rejection, reason, reason_code } = action;
  if (denied_by === "person" || denied_by === "reviewer" || denied_by === "earlier_rejection") {
    const words = toSingleLine(rejection?.reason ?? "");
    const until = rejection?.holds_until ?? null;
    const alternative =
      words === "" ? "Ask the user how to go on." : "If the approver names another way, take that one.";
    return {
      outcome: "rejected",
      why: `${denied_by === "earlier_rejection" ? "already " : ""}rejected by ${approverName(rejection?.approver, action.names)}${words === "" ? "" : `: ${words}`}`,
      next:
        (until === null
          ? "Do not submit the same request again unless the user asks for it. "
          : `The same request is refused until ${until}, unless an approver lifts the rejection. `) +
        `${alternative} Otherwise: ${lowerFirst(NO_DETOUR)}.`,
    };
  }
  if (denied_by === "stop") return stopRefusal(reason);
  const code = reason_code === "POLICY_RULE" ? "" : ` (${toSingleLine(String(reason_code))})`;
  return {
    outcome: "denied",
    why: `denied by policy${code}: ${toSingleLine(reason)}`,
    next:
      `The same request gets the same answer for as long as the policies stay as they are. ${NO_DETOUR}; tell the user.` +
      (alternative === undefined ? "" : ` If it serves the user's purpose: ${toSingleLine(alternative.text)}.`),
  };
}

/** Returns the name of a person or key for display; the id if the record has no name. */
export function approverName(principal: string | undefined, names: Readonly<Record<string, string>> = {}): string {
  if (principal === undefined) return "a person";
  const name = Object.hasOwn(names, principal) ? names[principal] : undefined;
  if (name !== undefined) return toSingleLine(principal.startsWith("key:") ? `the key ${name}` : name);
  return toSingleLine(principal.replace(/^(user|key|reviewer):/, "the $1 "));
}

/**
 * Converts a string that a person or a policy wrote to one short line, without characters that hide or reorder text.
 * @example
 * toSingleLine("too\nexpensive", 200); // "too expensive"
 */
export function toSingleLine(text: unknown, longest = MAX_LENGTH): string {
  const line = String(text)
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Z}]+/gu, " ")
    .trim();
  const characters = Array.from(line);
  return characters.length <= longest ? line : `${characters.slice(0, longest).join("")}…`;
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
