/**
 * Renders messages in Telegram's HTML. Text that an agent can influence is code, in which Telegram recognises no mention,
 * command or address, and its three control characters are escaped.
 */
import { type MessageSheet, renderFitting, sheetLinks } from "../../src/plugin.ts";

/** Telegram's limit is 4,096 characters after parsing; this one counts the markup, too. */
const MAX_TEXT = 4000;

export interface TelegramText {
  text: string;
  parse_mode: "HTML";
  link_preview_options: { is_disabled: true };
}

/** A button with an address, or with a value that Telegram sends back. */
export type Button = { text: string; url: string } | { text: string; callback_data: string };

/** Renders a message. Omits a request that is too long for Telegram, which is then only on the approval page. */
export function renderHtml(sheet: MessageSheet): TelegramText {
  const text = renderFitting(sheet, render, (html) => html.length <= MAX_TEXT);
  return { text, parse_mode: "HTML", link_preview_options: { is_disabled: true } };
}

/** Returns true if Telegram can display the whole message. */
export const fitsTelegram = (sheet: MessageSheet): boolean => render(sheet).length <= MAX_TEXT;

/** Returns the keyboard of a message: the given buttons in one row, then one row for each link. */
export function keyboardOf(sheet: MessageSheet, buttons: Button[]): { inline_keyboard: Button[][] } {
  const links = sheetLinks(sheet).map(({ label, url }): Button[] => [{ text: label, url }]);
  return { inline_keyboard: [...(buttons.length === 0 ? [] : [buttons]), ...links] };
}

function render({ title, opening, link, others, facts, sections }: MessageSheet): string {
  return [
    `<code>${escape(title)}</code>`,
    `<blockquote><code>${escape(opening)}</code></blockquote>`,
    ...facts.map(([name, value]) => `<b>${escape(name)}</b> <code>${escape(value)}</code>`),
    ...sections.map(([name, lines]) => `<b>${escape(name)}</b>\n<pre>${escape(lines.join("\n"))}</pre>`),
    ...others.map(({ text }) => `<code>${escape(text)}</code>`),
    ...(link === null ? [] : [`<code>${escape(link.about)}</code>`]),
  ].join("\n");
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
