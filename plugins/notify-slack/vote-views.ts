/** Renders the forms and notices that open in Slack when a person presses a button. */
import { type LinkResponse, listLinkFacts } from "../actions/api.ts";
import { renderContent, fieldSections, MAX_TEXT, renderNote, plainText } from "./blocks.ts";
import type { VoteForm } from "./vote-button.ts";

/** Slack's limits, in characters. */
const MAX_TITLE = 24;
const MAX_REASON = 2000;
/** Ids of the form and of the field with the reason. */
export const VOTE_VIEW = "vote";
export const REASON_BLOCK = "reason";
export const REASON_INPUT = "text";

/**
 * Renders the form. It displays the same request and preview as the approval page, because `form.shown` is their
 * digest.
 */
export function renderVoteForm({ action, approver, names }: LinkResponse, form: VoteForm): object {
  const verb = form.approve ? "Approve" : "Deny";
  const facts = listLinkFacts({ action, names });
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
