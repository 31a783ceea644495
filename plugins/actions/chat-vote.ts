/**
 * Votes with the buttons of a chat message. A vote counts as a vote by the approval link that the message contains: the
 * same rules apply, and the token of the link identifies the voter. A button is sealed, so it works only for the account
 * to which the message was sent, and only with that link. The first button displays the request as it is now, and the
 * second one votes on exactly what was displayed.
 */
import { createHmac } from "node:crypto";
import {
  type ApiResponse,
  equalSecrets,
  type FacadeCall,
  listMessageFacts,
  type MessageAction,
  type MessageSheet,
  requestSections,
} from "../../src/plugin.ts";

/** A link with a token that votes as a person. */
const PERSONAL_LINK = /#(apl1_[\w.-]+)$/;
const MAC_BYTES = 16;
/** Number of hex digits of the digest in a button. Chat services limit the length of a button's value. */
const DIGEST_DIGITS = 32;
/** Maximum length of an error. Characters. */
const MAX_ERROR = 1000;

/** The members of the response to `POST /v1/approval-link` that a form displays. */
export interface LinkResponse {
  /** Digest of what the approver must see; null if the request is no longer pending. */
  shown: string | null;
  approver: string;
  names: MessageAction["names"];
  refusal: string | null;
  signature_required: boolean;
  /** The largest grant that the rules allow with an approval. */
  grants: { count: number; for_seconds: number } | null;
  /** Scopes that an approval can grant. Only for a facade that names the account that it verified. */
  offers?: readonly { scope: string; text: string }[];
  action: Omit<MessageAction, "names" | "submitted_by" | "edited_by" | "plan" | "offers" | "quorum" | "votes"> & {
    approvals: readonly (Omit<MessageAction["votes"][number], "at"> & { created_at: string })[];
    approvals_needed: number | null;
    /** What the agent submitted, if an approver changed the request. */
    proposed: { params: MessageAction["params"]; edited_by: string } | null;
  };
}

/** Returns the token of a personal link; null if the link identifies no person. */
export function linkToken(link: string): string | null {
  return PERSONAL_LINK.exec(link)?.[1] ?? null;
}

/** Returns the facts of the request that a link is about, as a form displays them. */
export function listLinkFacts({ action, names }: Pick<LinkResponse, "action" | "names">): [string, string][] {
  const { approvals, approvals_needed, proposed, shown_first } = action;
  const facts = listMessageFacts({
    ...action,
    votes: approvals.map(({ created_at: at, ...vote }) => ({ ...vote, at })),
    quorum: approvals_needed ?? 1,
    names,
    submitted_by: "",
    edited_by: proposed?.edited_by ?? null,
    plan: null,
    offers: [],
  });
  if (proposed === null) return facts;
  const [[, lines] = ["", []]] = requestSections({ params: proposed.params, context: {}, shown_first });
  return [...facts, ["Proposed by the agent", lines.join("\n")]];
}

/** Returns a sentence with the status of the request. */
export function describeStatus({ status, approvals, approvals_needed }: LinkResponse["action"]): string {
  const votes = approvals.filter(({ approve }) => approve).length;
  return status === "pending_approval"
    ? `The request is still pending: ${votes} of ${approvals_needed ?? 1} approvals.`
    : `The request is ${status}.`;
}

/** Returns the code of an error response. */
export function codeOf({ json }: ApiResponse): unknown {
  return ((json ?? {}) as { code?: unknown }).code;
}

/** Returns what a person can do about an error response. */
export function detailOf({ json }: ApiResponse): string {
  const { detail } = (json ?? {}) as { detail?: unknown };
  return typeof detail === "string" ? detail.slice(0, MAX_ERROR) : "The service did not record the vote. Try again.";
}

/** What a chat displays after a button was pressed. */
export type ButtonAnswer =
  /** A text, and the link to the page if the person can go on there. */
  | { kind: "notice"; text: string; page: string | null }
  /** The request, and the value of the button that votes on it. */
  | { kind: "confirm"; approve: boolean; sheet: MessageSheet; value: string }
  /** The vote is recorded. */
  | { kind: "voted"; text: string };

/** A message with buttons. */
interface SentLink {
  /** Account to which the message was sent. */
  to: string;
  /** The personal link in the message. */
  link: string;
}

/** A button of a message, with the value that the chat service sends back. */
interface VoteButton {
  label: string;
  approve: boolean;
  value: string;
}

/**
 * Returns the two buttons that open the form; none if the link identifies no person.
 * @example
 * const buttons = openButtons(token, { to: message.to, link: message.link });
 */
export function openButtons(secret: string, sent: SentLink): VoteButton[] {
  if (linkToken(sent.link) === null) return [];
  return [true, false].map((approve) => ({
    label: approve ? "Approve…" : "Deny…",
    approve,
    value: seal(secret, sent, "open", approve, ""),
  }));
}

/**
 * Handles a pressed button.
 * @param secret the secret with which the values of the buttons are sealed
 * @param value the value of the button
 * @param sent the account that pressed the button, and the link in its message
 * @example
 * const answer = await answerButton(call, token, pressed.data, { to: String(pressed.from.id), link });
 */
export async function answerButton(
  call: FacadeCall,
  secret: string,
  value: string,
  sent: SentLink,
): Promise<ButtonAnswer> {
  const notice = (text: string, page: string | null = null): ButtonAnswer => ({ kind: "notice", text, page });
  const [, step, answer, digest = ""] = /^([ov])([ad])\.[\w-]+\.([0-9a-f]*)$/.exec(value) ?? [];
  const token = linkToken(sent.link);
  const approve = answer === "a";
  const isOpen = step === "o";
  if (
    step === undefined ||
    token === null ||
    !equalSecrets(value, seal(secret, sent, isOpen ? "open" : "vote", approve, digest))
  )
    return notice("This request was sent to another person. Only they can answer it here.");
  const response = await call.callApi("POST", "/v1/approval-link", { json: { token } });
  if (response.status !== 200) return notice(detailOf(response), sent.link);
  const link = response.json as LinkResponse;
  if (link.shown === null) return notice(`The request is no longer pending. ${describeStatus(link.action)}`);
  if (link.signature_required)
    return notice("The rule accepts only votes that are signed with a passkey. Vote on the approval page.", sent.link);
  if (approve && link.refusal !== null) return notice(link.refusal, sent.link);
  if (!isOpen && link.shown.startsWith(digest) && digest.length === DIGEST_DIGITS)
    return vote(call, token, link.shown, approve);
  return {
    kind: "confirm",
    approve,
    sheet: confirmationSheet(link, sent, approve, isOpen),
    value: seal(secret, sent, "vote", approve, link.shown.slice(0, DIGEST_DIGITS)),
  };
}

async function vote(call: FacadeCall, token: string, shown: string, approve: boolean): Promise<ButtonAnswer> {
  const answer = await call.callApi("POST", "/v1/approval-link/verdict", { json: { token, shown, approve } });
  if (answer.status !== 200) return { kind: "notice", text: detailOf(answer), page: null };
  return { kind: "voted", text: `Your vote is recorded. ${describeStatus((answer.json as LinkResponse).action)}` };
}

function confirmationSheet(link: LinkResponse, sent: SentLink, approve: boolean, isFirst: boolean): MessageSheet {
  const voter = link.names[link.approver] ?? link.approver;
  const verb = approve ? "approve" : "deny";
  return {
    title: `Confirm that you ${verb} this request`,
    opening: `${isFirst ? "" : "The request has changed. "}Your vote counts for ${voter}. Press the button again to ${verb} it.`,
    link: { url: sent.link, label: "Open the approval page", about: "The page shows everything." },
    others: [],
    facts: listLinkFacts(link),
    sections: requestSections(link.action),
  };
}

/**
 * Returns the value of a button: at most 58 characters of letters, digits, `.`, `_` and `-`. It contains a MAC over the
 * account, the link and the button's effect.
 */
function seal(secret: string, { to, link }: SentLink, step: "open" | "vote", approve: boolean, digest: string): string {
  const sealed = JSON.stringify(["assent-button/1", to, linkToken(link), step, approve, digest]);
  const mac = createHmac("sha256", secret).update(sealed).digest().subarray(0, MAC_BYTES).toString("base64url");
  return `${step.charAt(0)}${approve ? "a" : "d"}.${mac}.${digest}`;
}
