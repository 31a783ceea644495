/** Renders the forms and notices that open in Slack when a person presses a button. */
import { type LinkResponse, listLinkFacts } from "../actions/api.ts";
import { renderMarkedText } from "../../src/core.ts";
import { renderContent, fieldSections, isWhole, MAX_TEXT, renderNote, plainText } from "./blocks.ts";
import type { VoteForm } from "./vote-button.ts";

/** Slack's limits, in characters. */
const MAX_TITLE = 24;
const MAX_REASON = 2000;
/** Ids of the form and of the field with the reason. */
export const VOTE_VIEW = "vote";
export const REASON_BLOCK = "reason";
export const REASON_INPUT = "text";
/** Ids of the fields with which an approval also starts a task. */
export const TASK_FIELDS = {
  scope: "task_scope",
  title: "task_title",
  minutes: "task_minutes",
  count: "task_count",
} as const;
/** Slack's limit for `private_metadata`, in characters. */
const MAX_METADATA = 3000;
const MAX_TASK_TITLE = 100;
const MAX_OPTION = 75;
const MINUTES = [30, 60, 120, 480];
const COUNTS = [1, 5, 20, 50];

/**
 * Renders the form. It displays the same request and preview as the approval page, because `form.shown` is their
 * digest.
 */
export function renderVoteForm(link: LinkResponse, button: Omit<VoteForm, "scopes">): object {
  const { action, approver, names } = link;
  const offers = button.approve ? chooseOffers(link, button) : [];
  const form: VoteForm = { ...button, scopes: offers.map(({ scope }) => scope) };
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
    ...(offers.length === 0 || link.grants === null ? [] : renderTaskFields(offers, link.grants)),
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

type Offers = NonNullable<LinkResponse["offers"]>;

/** Returns the offered scopes that the form can display whole and carry. */
function chooseOffers({ offers = [], grants }: LinkResponse, button: Omit<VoteForm, "scopes">): Offers {
  const fits = (count: number): boolean =>
    JSON.stringify({ ...button, scopes: offers.slice(0, count).map(({ scope }) => scope) }).length <= MAX_METADATA &&
    offers.slice(0, count).every((offer, i) => isWhole(describeOffer(offer, i), MAX_TEXT));
  return grants === null ? [] : offers.filter((_, i) => fits(i + 1));
}

const describeOffer = ({ scope, text }: Offers[number], i: number): string =>
  `${i + 1}. ${text}\nCondition: ${renderMarkedText(scope)}`;

/** Renders the fields of a task, each scope with its whole condition. */
function renderTaskFields(offers: Offers, { count, for_seconds }: NonNullable<LinkResponse["grants"]>): object[] {
  const field = (id: string, label: string, element: object): object => ({
    type: "input",
    block_id: id,
    optional: true,
    label: plainText(label, MAX_OPTION),
    element: { ...element, action_id: REASON_INPUT },
  });
  /** Offers the given values below the largest value that the rules allow, and that largest value if there is space. */
  const select = (values: readonly number[], largest: number, name: (value: number) => string): object => {
    const allowed = [...values.filter((value) => value < largest), largest].slice(0, values.length);
    const options = allowed.map((value) => ({ text: plainText(name(value), MAX_OPTION), value: String(value) }));
    return { type: "static_select", options, initial_option: options[0] };
  };
  return [
    renderNote(
      "Your approval can also start a task. Until it ends, the agent's requests that meet this condition do not ask:",
    ),
    ...offers.map((offer, i) => ({ type: "section", text: plainText(describeOffer(offer, i), MAX_TEXT) })),
    field(TASK_FIELDS.scope, "Allow for a task", {
      type: "static_select",
      placeholder: plainText("Only this request", MAX_OPTION),
      options: offers.map((_, i) => ({ text: plainText(`Requests as in ${i + 1}`, MAX_OPTION), value: String(i) })),
    }),
    field(TASK_FIELDS.title, "Name of the task", { type: "plain_text_input", max_length: MAX_TASK_TITLE }),
    field(
      TASK_FIELDS.minutes,
      "Time of the task",
      select(MINUTES, Math.max(1, Math.floor(for_seconds / 60)), (value) =>
        value % 60 === 0 ? `${value / 60} h` : `${value} min`,
      ),
    ),
    field(TASK_FIELDS.count, "Number of requests", select(COUNTS, count, String)),
  ];
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
