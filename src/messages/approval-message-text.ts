/**
 * Renders messages about an action as plain text. Text from the agent cannot hide or reorder the surrounding text, and
 * cannot add lines. The caller must escape markup.
 */
import type { ApprovalMessage, ClosedMessage, MessageAction } from "../contract/notifier.ts";
import type { JsonObject } from "../domain/json.ts";
import { outlineLines } from "../domain/outline.ts";
import { displayPrincipal } from "../domain/principals.ts";
import { clipText } from "../domain/text.ts";
import { renderMarkedText } from "../domain/visible-text.ts";

type ClosedOutcome = "approved" | "denied" | "expired" | "cancelled";

/**
 * Maximum number of characters of a fact's value. Slack's limit for a field is 2,000 after escaping, and escaping makes
 * a character up to 5 times longer (`&amp;`).
 */
const MAX_FACT = 300;
const MAX_OPERATION = 80;

/**
 * Returns the subject of a message about an action, as one line.
 * @example
 * messageTitle(message); // "Approval needed: stripe refund (high risk)"
 */
export function messageTitle(message: ApprovalMessage | ClosedMessage): string {
  const { kind, action } = message;
  if (kind === "break_glass") return `Emergency approval by one person: ${operationOf(action)}`;
  if (kind === "outcome_unknown") return `Outcome unknown: ${operationOf(action)}`;
  if (kind === "approval_closed") return `${capital(closedOutcome(action))}: ${operationOf(action)}`;
  const more = "others" in message && message.others.length > 0 ? ` and ${message.others.length} more` : "";
  const words = {
    approval_requested: "Approval needed",
    approval_escalated: "Approval still needed",
    approval_reminder: "Reminder, approval needed",
  }[kind];
  return `${words}: ${operationOf(action)}${riskOf(action)}${more}`;
}

function riskOf({ risk_level: risk }: MessageAction): string {
  return risk === null ? "" : ` (${renderText(risk, MAX_OPERATION)} risk)`;
}

/**
 * Returns two lines for each additional request in a digest: its title and its link. Returns an empty list for other
 * messages.
 * @example
 * otherRequestLines(message); // ["2. stripe refund (high risk), by billing-bot, expires 2026-01-31 12:00:00 UTC", "https://…/approve#…"]
 */
export function otherRequestLines({ others }: Pick<ApprovalMessage, "others">): string[] {
  return others.flatMap(({ action, link }, i) => {
    const expiry = action.expires_at === null ? "" : `, expires ${formatTime(action.expires_at)}`;
    // The preview can be displayed unchanged.
    const preview = action.preview === null ? "" : `: ${action.preview}`;
    const agent = renderText(action.agent_id, MAX_OPERATION);
    return [`${i + 2}. ${operationOf(action)}${riskOf(action)}, by ${agent}${expiry}${preview}`, link];
  });
}

/**
 * Returns the outcome in words. Treats an action that is running or finished as approved, because it can start before
 * people are notified of the approval.
 */
function closedOutcome({ status }: MessageAction): ClosedOutcome {
  return status === "denied" || status === "expired" || status === "cancelled" ? status : "approved";
}

/**
 * Describes the outcome of an action in one or two sentences: how, when, why and by whom it was closed, or that its
 * result is unknown.
 * @example
 * if (!("link" in message)) describeOutcome(message); // "Approved by ada at 2026-01-31 12:00:00 UTC."
 */
export function describeOutcome({ action }: ClosedMessage): string {
  if (action.status === "unknown")
    return "The action was started, and no result was reported in time. Find out whether it had its effect, and settle it.";
  const outcome = closedOutcome(action);
  if (outcome === "expired")
    return `The request expired${action.expires_at === null ? "" : ` at ${formatTime(action.expires_at)}`}. No one denied it, and it will not run.`;
  if (outcome === "cancelled") return "The request was cancelled. It will not run.";
  const votes = action.votes.filter(({ approve }) => approve === (outcome === "approved"));
  const voters = votes.map(
    ({ approver, on_behalf_of, break_glass, at, reason }) =>
      `${formatPrincipal(approver, action.names)}${on_behalf_of === null ? "" : ` for ${formatPrincipal(on_behalf_of, action.names)}`}${break_glass ? " without a second approver in an emergency," : ""} at ${formatTime(at)}${reason === null || reason === "" ? "" : ` (“${renderText(reason, MAX_FACT)}”)`}`,
  );
  const review = votes.some(({ break_glass }) => break_glass)
    ? " Another person must review it (/v1/break-glass)."
    : "";
  return `${capital(outcome)}${voters.length === 0 ? "" : ` by ${voters.join(", ")}`}.${review}`;
}

/**
 * Returns the facts that an approver needs, as names and values, the most important first.
 * @example
 * const text = listMessageFacts(message.action).map(([name, value]) => `${name}: ${value}`).join("\n");
 */
export function listMessageFacts(action: MessageAction): [name: string, value: string][] {
  const facts: [string, string | null][] = [
    ["Agent", action.agent_id],
    ["Operation", `${action.tool} ${action.operation}`],
    ["Risk", action.risk_level],
    ["Reason", action.reason],
    ["Policy", action.policy === null ? null : `${action.policy}${action.rule === null ? "" : ` / ${action.rule}`}`],
    ["Submitted by", action.submitted_by === "" ? null : formatPrincipal(action.submitted_by, action.names)],
    ["Plan", action.plan === null ? null : `number ${action.plan.position} of a plan, which is approved as a whole`],
    ...(action.pins ?? []).map(({ path, value, current, state }): [string, string] => [
      path,
      `${JSON.stringify(value)}${state === "changed" ? `; now ${JSON.stringify(current)}` : state === "unreadable" ? "; cannot be read now" : ""}`,
    ]),
    ["Changed by", action.edited_by === null ? null : formatPrincipal(action.edited_by, action.names)],
    ...action.questions.flatMap(({ asked_by, question, answer }, i): [string, string | null][] => [
      [`Question ${i + 1}`, `${formatPrincipal(asked_by, action.names)}: ${question}`],
      [`Answer ${i + 1}`, answer],
    ]),
    ["Approvals", `${action.votes.filter(({ approve }) => approve).length} of ${action.quorum}`],
    ["Expires", action.expires_at === null ? null : formatTime(action.expires_at)],
    ["Action", action.id],
    ["Request hash", action.request_hash],
  ];
  const rendered = facts.flatMap(([name, value]): [string, string][] =>
    value === null || value === "" ? [] : [[name, renderText(value, MAX_FACT)]],
  );
  // The preview is already rendered. Rendering it again would escape its markers a second time.
  return action.preview === null ? rendered : [["Request", action.preview], ...rendered];
}

/** Maximum number of lines of the parameters, and of the context. The approval page displays the rest. */
const MAX_PARAMETERS = 60;
const MAX_CONTEXT = 20;

/**
 * Returns the parameters, and the context if there is one, as lines. Collapses long values into lines that state what
 * they hide, unless `isComplete` is true.
 * @example
 * for (const [name, lines] of requestSections(message.action)) print(name, lines.join("\n"));
 */
export function requestSections(
  { params, context, shown_first: first }: Pick<MessageAction, "params" | "context" | "shown_first">,
  { isComplete = false } = {},
): [name: string, lines: string[]][] {
  const part = (name: string, root: string, value: JsonObject, lines: number): [string, string[]] => {
    const most = isComplete ? { lines: Infinity, each: Infinity } : { lines };
    return [name, Object.keys(value).length === 0 ? ["(none)"] : outlineLines(value, { root, first, ...most })];
  };
  return [
    part("Parameters", "/params", params, MAX_PARAMETERS),
    ...(Object.keys(context).length === 0 ? [] : [part("Context", "/context", context, MAX_CONTEXT)]),
  ];
}

/**
 * Formats a principal by its name: `Ada Lovelace` for a user, `the key laptop` for a key without an owner. Without a
 * name, formats its id.
 */
export function formatPrincipal(principal: string, names: MessageAction["names"]): string {
  const name = Object.hasOwn(names, principal) ? (names[principal] ?? null) : null;
  return renderText(displayPrincipal(principal, name), MAX_FACT);
}

function operationOf({ tool, operation }: MessageAction): string {
  return `${renderText(tool, MAX_OPERATION)} ${renderText(operation, MAX_OPERATION)}`;
}

/**
 * Returns text from other people or systems as part of one line: without line breaks, with marks for hidden and reordered
 * characters, and with at most `max` characters.
 * @example
 * renderText("refund\u202e", 80);
 */
export function renderText(text: string, max: number): string {
  return clipText(renderMarkedText(text), max);
}

/**
 * Returns the sentences that an approver needs about the link of a request.
 * @example
 * describeLink(message); // "The page asks for your key. Opening it decides nothing."
 */
export function describeLink({ action, person }: ApprovalMessage): string {
  if (action.plan !== null)
    return "The page shows the whole plan, and asks you to sign in. Opening it decides nothing.";
  return person === null
    ? "The page asks for your key. Opening it decides nothing."
    : `This link is personal and votes as ${formatPrincipal(person, action.names)}: do not pass it on. Opening it decides nothing.`;
}

/**
 * Formats a time to the second in UTC, because readers are in different time zones.
 * @example
 * formatTime("2026-01-31T12:00:00.000Z"); // "2026-01-31 12:00:00 UTC"
 */
export function formatTime(rfc3339: string): string {
  return `${rfc3339.slice(0, 10)} ${rfc3339.slice(11, 19)} UTC`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
