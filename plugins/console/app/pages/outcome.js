/** How an action ended, for whoever looked on. */
import { Who } from "../person.js";
import { Notice, Text, html } from "../ui.js";

/**
 * @typedef {{ kind: string, text: string, by?: string, reason?: string | null, before?: string, mine?: boolean }} Outcome
 * `by`: principal before the text. `before`: said first
 */

/** Null while it is still open. @param {any} action @returns {Outcome | null} */
export function outcomeOf(action) {
  if (action.status === "pending_approval") return null;
  const last = action.approvals.at(-1);
  const vote = { by: last?.approver, reason: last?.reason };
  if (action.status === "expired")
    return { kind: "busy", text: "It expired: nobody decided in time. The agent has to ask again." };
  if (action.status === "cancelled") return { kind: "busy", text: "Whoever asked has withdrawn it." };
  if (action.denied_by === "policy")
    return { kind: "bad", text: "It was decided again, and the policies deny it now." };
  if (action.status === "denied") return { kind: "bad", text: "denied it", ...vote };
  return { kind: "good", text: "approved it", ...vote };
}

/** @param {{ outcome: Outcome }} props */
export function Ended({ outcome }) {
  const { kind, text, by, reason, before = "" } = outcome;
  return html`<${Notice} kind=${kind}
    >${before === "" ? null : `${before} `}${by === undefined ? null : html`<${Who} principal=${by} /> `}${text}${reason ? html`: “<${Text} value=${reason} />”` : text.endsWith(".") ? null : "."}<//
  >`;
}
