/**
 * The texts of a message, for notifiers to lay out. All of them are plain text: the caller must escape markup. Text from
 * agents cannot hide or reorder the surrounding text, and cannot add lines to a title or a fact.
 */
import type { ApprovalMessage, ClosedMessage, NoticeMessage } from "../contract/notifier.ts";
import {
  describeLink,
  describeOutcome,
  listMessageFacts,
  messageTitle,
  otherRequestLines,
  requestSections,
} from "./approval-message-text.ts";

/** A message to people. */
export type PersonalMessage = ApprovalMessage | ClosedMessage | NoticeMessage;

export interface MessageSheet {
  /** The subject, as one line. */
  title: string;
  opening: string;
  /** Page that the message links to, with a label and a descriptive sentence; null if there is none. */
  link: { url: string; label: string; about: string } | null;
  /** More requests of a digest, each with its own link. */
  others: readonly { text: string; link: string }[];
  facts: readonly (readonly [name: string, value: string])[];
  /** Parameters and context, and what the page offers with an approval, as lines. */
  sections: readonly (readonly [name: string, lines: readonly string[]])[];
}

/**
 * Returns the texts of a message.
 * @example
 * const { title, opening, facts } = messageSheet(message);
 */
export function messageSheet(message: PersonalMessage): MessageSheet {
  if (message.kind === "notice") {
    const { title, opening, facts } = message.notice;
    const link = { url: message.link, label: "Open the console", about: "Opening it changes nothing." };
    return { title, opening, link, others: [], facts, sections: [] };
  }
  const { action } = message;
  const { offers } = action;
  const sections: [string, readonly string[]][] = [
    ...requestSections(action),
    ...(offers.length === 0
      ? []
      : [["Your approval can also cover later requests", offers] as [string, readonly string[]]]),
  ];
  const shared = { title: messageTitle(message), facts: listMessageFacts(action), sections };
  if (!("link" in message)) return { ...shared, opening: describeOutcome(message), link: null, others: [] };
  const lines = otherRequestLines(message);
  return {
    ...shared,
    opening: "An agent asks for your decision. It waits until someone decides or the request expires.",
    link: { url: message.link, label: "Open the approval page", about: describeLink(message) },
    others: message.others.map(({ link }, i) => ({ text: lines[2 * i] ?? "", link })),
  };
}

/**
 * Returns the pages that a message links to, each with the label of its button.
 * @example
 * const buttons = sheetLinks(messageSheet(message)).map(({ label, url }) => ({ text: label, url }));
 */
export function sheetLinks({ link, others }: Pick<MessageSheet, "link" | "others">): { label: string; url: string }[] {
  return [
    ...(link === null ? [] : [{ label: link.label, url: link.url }]),
    ...others.map((other, i) => ({ label: `Open request ${i + 2}`, url: other.link })),
  ];
}

/** Replaces the request in a message, if an agent made it longer than the receiving service accepts. */
export const TOO_LONG = "The request is too long for this message. The approval page shows it.";

/**
 * Renders the sheet. If it is too long, omits its sections, and then its facts, so that an agent cannot suppress a
 * message by a long request.
 * @example
 * const text = renderFitting(messageSheet(message), renderText, (text) => text.length <= 4096);
 */
export function renderFitting<T>(
  sheet: MessageSheet,
  render: (sheet: MessageSheet) => T,
  fits: (rendered: T) => boolean,
): T {
  const brief = { ...sheet, opening: `${sheet.opening} ${TOO_LONG}`, sections: [] };
  return [sheet, brief].map(render).find(fits) ?? render({ ...brief, facts: [] });
}

/**
 * Returns the opening, the facts and the sections as lines of text.
 * @example
 * const text = sheetLines(messageSheet(message)).join("\n");
 */
export function sheetLines({
  opening,
  facts,
  sections,
}: Pick<MessageSheet, "opening" | "facts" | "sections">): string[] {
  return [
    opening,
    "",
    ...facts.map(([name, value]) => `${name}: ${value}`),
    ...sections.flatMap(([name, lines]) => ["", `${name}:`, ...lines.map((line) => `  ${line}`)]),
  ];
}
