/** Renders the forms and notices that open in Slack when a person presses a button. */
import { type MessageAction, listMessageFacts, requestSections } from "../../src/plugin.ts";
import { renderContent, fieldSections, MAX_TEXT, renderNote, plainText } from "./blocks.ts";
import type { VoteForm } from "./vote-button.ts";

/** Slack's limits, in characters. */
const MAX_TITLE = 24;
const MAX_REASON = 2000;
/** Ids of the form and of the field with the reason. */
export const VOTE_VIEW = "vote";
export const REASON_BLOCK = "reason";
export const REASON_INPUT = "text";

/** The members of the response to `POST /v1/approval-link` that this module reads. */
export interface LinkResponse {
  shown: string | null;
  approver: string;
  names: MessageAction["names"];
  refusal: string | null;
  signature_required: boolean;
  action: Omit<MessageAction, "names" | "submitted_by" | "edited_by" | "plan" | "grants" | "quorum" | "votes"> & {
    approvals: readonly (Omit<MessageAction["votes"][number], "at"> & { created_at: string })[];
    approvals_needed: number | null;
    /** What the agent submitted, if an approver changed the request. */
    proposed: { params: MessageAction["params"]; edited_by: string } | null;
  };
}

/**
 * Renders the form. It displays the same request and preview as the approval page, because `form.shown` is their
 * digest.
 */
export function renderVoteForm({ action, approver, names }: LinkResponse, form: VoteForm): object {
  const verb = form.approve ? "Approve" : "Deny";
  const facts = factsOf(action, names);
  const blocks = fieldSections(facts);
  const voter = names[approver] ?? approver;
  blocks.push(
    ...renderContent({ action }, facts),
    renderNote(`Your vote counts for ${voter}. To see everything, open the approval page.`),
    {
      type: "input",
      block_id: REASON_BLOCK,
      optional: true,
      label: plainText("Reason", MAX_TITLE),
      hint: plainText("Recorded with your vote. The agent gets the reason of a denial.", MAX_TEXT),
      element: { type: "plain_text_input", action_id: REASON_INPUT, multiline: true, max_length: MAX_REASON },
    },
  );
  return {
    type: "modal",
    callback_id: VOTE_VIEW,
    title: plainText(`${verb} the request`, MAX_TITLE),
    submit: plainText(verb, MAX_TITLE),
    close: plainText("Cancel", MAX_TITLE),
    private_metadata: JSON.stringify(form),
    blocks,
  };
}

function factsOf(action: LinkResponse["action"], names: MessageAction["names"]): [string, string][] {
  const { approvals, approvals_needed, proposed, shown_first } = action;
  const facts = listMessageFacts({
    ...action,
    votes: approvals.map(({ created_at: at, ...vote }) => ({ ...vote, at })),
    quorum: approvals_needed ?? 1,
    names,
    submitted_by: "",
    edited_by: proposed?.edited_by ?? null,
    plan: null,
    grants: [],
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

/**
 * Renders a notice.
 * @param page address of the approval page, for actions that are not possible in Slack
 */
export function renderNoticeView(title: string, text: string, page: string | null = null): object {
  const open = { type: "button", action_id: "open_approval", text: plainText("Open the approval page", 75), url: page };
  return {
    type: "modal",
    title: plainText(title, MAX_TITLE),
    close: plainText("Close", MAX_TITLE),
    blocks: [
      { type: "section", text: plainText(text, MAX_TEXT) },
      ...(page === null ? [] : [{ type: "actions", elements: [open] }, renderNote("The page opens in your browser.")]),
    ],
  };
}
