/**
 * Renders messages as Slack blocks. Text of agents goes into plain text or code blocks, with Slack's three control
 * characters escaped, so that it cannot become markup, a link or a mention.
 */
import { HIDDEN_LINES_PATTERN } from "../../src/core.ts";
import { encodeVoteButton, VOTE_ACTIONS } from "./vote-button.ts";
import {
  type ApprovalMessage,
  type ClosedMessage,
  describeLink,
  describeOutcome,
  listMessageFacts,
  messageTitle,
  type NoticeMessage,
  otherRequestLines,
  requestSections,
} from "../../src/plugin.ts";

/** Slack's limits, in characters after escaping. */
const MAX_HEADER = 150;
const MAX_FIELD = 2000;
const MAX_FIELDS = 10;
export const MAX_TEXT = 3000;
/** Limit that this plugin sets: Slack allows 50 blocks, but rejects messages that are very long in total. */
const MAX_CODE_BLOCKS = 3;

export interface RenderedSlackMessage {
  /** Text for notifications and screen readers. */
  text: string;
  blocks: object[];
}

/**
 * Renders a message. With `brief`, omits parameters and context, which the approval page displays. With `votes`, adds
 * buttons that open a form in Slack to a message to a person.
 */
export function renderBlocks(
  message: ApprovalMessage | ClosedMessage,
  { brief = false, votes = false } = {},
): RenderedSlackMessage {
  const title = messageTitle(message);
  const blocks: object[] = [{ type: "header", text: plainText(title, MAX_HEADER) }];
  if (!("link" in message)) blocks.push({ type: "section", text: plainText(describeOutcome(message), MAX_TEXT) });
  const facts = listMessageFacts(message.action);
  blocks.push(...fieldSections(facts));
  blocks.push(
    ...(brief
      ? [renderNote("The request is too long for Slack. The approval page shows it.")]
      : renderContent(message, facts)),
  );
  if ("link" in message)
    blocks.push(...renderOffers(message), ...decisionBlocks(message, votes), ...otherRequests(message));
  return { text: clipTo(title, MAX_TEXT), blocks };
}

/** Renders a reminder, for the thread of the request's message. */
export function renderReminder(message: ApprovalMessage, votes: boolean): RenderedSlackMessage {
  const title = messageTitle(message);
  return {
    text: clipTo(title, MAX_TEXT),
    blocks: [{ type: "section", text: plainText(title, MAX_TEXT) }, ...decisionBlocks(message, votes)],
  };
}

export function renderNoticeBlocks(message: NoticeMessage): RenderedSlackMessage {
  const { title, opening, facts } = message.notice;
  const open = {
    type: "button",
    action_id: "open_console",
    text: plainText("Open the console", 75),
    url: message.link,
  };
  return {
    text: clipTo(title, MAX_TEXT),
    blocks: [
      { type: "header", text: plainText(title, MAX_HEADER) },
      { type: "section", text: plainText(opening, MAX_TEXT) },
      ...fieldSections(facts),
      { type: "actions", elements: [open] },
    ],
  };
}

/** Renders facts as fields, with as many fields per section as Slack accepts. */
export function fieldSections(facts: readonly (readonly [name: string, value: string])[]): object[] {
  const fields = facts.map(([name, value]) => plainText(`${name}\n${value}`, MAX_FIELD));
  return Array.from({ length: Math.ceil(fields.length / MAX_FIELDS) }, (_, i) => ({
    type: "section",
    fields: fields.slice(i * MAX_FIELDS, (i + 1) * MAX_FIELDS),
  }));
}

function decisionBlocks(message: ApprovalMessage, votes: boolean): object[] {
  const voteButtons = votes ? renderVoteButtons(message) : [];
  const page = {
    type: "button",
    action_id: "open_approval",
    ...(voteButtons.length === 0 ? { style: "primary" } : {}),
    text: plainText("Open the approval page", 75),
    url: message.link,
  };
  return [{ type: "actions", elements: [...voteButtons, page] }, renderNote(describeLink(message))];
}

/** Returns the buttons that open the form; none for channels and plans, whose links contain no token. */
function renderVoteButtons({ to, link }: ApprovalMessage): object[] {
  const value = encodeVoteButton(to, link);
  if (value === null) return [];
  return [
    { type: "button", action_id: VOTE_ACTIONS.approve, style: "primary", text: plainText("Approve…", 75), value },
    { type: "button", action_id: VOTE_ACTIONS.deny, style: "danger", text: plainText("Deny…", 75), value },
  ];
}

/** Renders what the approval page offers with an approval. */
function renderOffers({ action: { offers } }: ApprovalMessage): object[] {
  if (offers.length === 0) return [];
  const text = ["Your approval can also cover later requests. The approval page offers:", ...offers].join("\n• ");
  return [{ type: "section", text: plainText(text, MAX_TEXT) }];
}

/** Renders the other requests of a digest. Each has its own block, because their links are long. */
function otherRequests(message: ApprovalMessage): object[] {
  const lines = otherRequestLines(message);
  return message.others.map(({ link }, i) => ({
    type: "section",
    text: plainText(lines[2 * i] ?? "", MAX_TEXT),
    accessory: {
      type: "button",
      action_id: `open_approval_${i + 2}`,
      text: plainText("Open the approval page", 75),
      url: link,
    },
  }));
}

/** Renders parameters and context as code, and a hint if some of their lines or of the facts' lines are collapsed. */
export function renderContent(
  { action }: { action: Parameters<typeof requestSections>[0] },
  facts: readonly (readonly [name: string, value: string])[],
): object[] {
  const blocks: object[] = [];
  let cut = facts.some(
    ([name, value]) =>
      value.split("\n").some((line) => line.endsWith("…") || HIDDEN_LINES_PATTERN.test(line)) ||
      split(`${name}\n${value}`, MAX_FIELD).length > 1,
  );
  for (const [name, lines] of requestSections(action)) {
    // A backtick would end the code block.
    const parts = split(lines.join("\n").replaceAll("`", "[U+0060]"), MAX_TEXT - 50);
    const room = MAX_CODE_BLOCKS - blocks.length;
    for (const [i, part] of parts.slice(0, room).entries())
      blocks.push({
        type: "section",
        text: { type: "mrkdwn", verbatim: true, text: `${i === 0 ? `*${name}*\n` : ""}\`\`\`\n${part}\n\`\`\`` },
      });
    cut ||= parts.length > room || lines.some((line) => HIDDEN_LINES_PATTERN.test(line));
  }
  if (cut) blocks.push(renderNote("Some lines are collapsed. The approval page shows all of them."));
  return blocks;
}

/** Renders a line of small text. */
export function renderNote(text: string): object {
  return { type: "context", elements: [plainText(text, MAX_TEXT)] };
}

/** Renders plain text of at most `max` characters. */
export function plainText(text: string, max: number): object {
  return { type: "plain_text", emoji: false, text: clipTo(text, max) };
}

/**
 * Escapes the text and shortens it to at most `max` characters with an ellipsis. Never empty, because Slack rejects
 * empty text.
 */
function clipTo(text: string, max: number): string {
  const [first = " ", second] = split(text, max);
  return second === undefined ? first : `${split(text, max - 1)[0] as string}…`;
}

/** Returns true if Slack displays the text without cutting it. */
export const isWhole = (text: string, max: number): boolean => split(text, max).length <= 1;

/**
 * Escapes the text and splits it into parts of at most `max` characters, at line ends if possible, and never inside an
 * entity or a character.
 */
function split(text: string, max: number): string[] {
  const parts: string[] = [];
  let part = "";
  for (const [piece] of text.matchAll(/\[U\+[0-9A-F]+\]|[\s\S]/gu)) {
    const escaped = escape(piece);
    if (part.length + escaped.length > max) {
      const line = part.lastIndexOf("\n");
      const end = line > max / 2 ? line : part.length;
      parts.push(part.slice(0, end));
      part = part.slice(end).replace(/^\n/, "");
    }
    part += escaped;
  }
  return part === "" ? parts : [...parts, part];
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
