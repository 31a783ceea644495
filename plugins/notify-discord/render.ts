/**
 * Renders messages for Discord. Text that an agent can influence is code, in which Discord recognises no mention, link or
 * markup, and no message can mention anyone.
 */
import { type MessageSheet, renderFitting, sheetLines, sheetLinks } from "../../src/plugin.ts";

/** Discord's limits, in characters. */
const MAX_CONTENT = 2000;
const MAX_DESCRIPTION = 4096;
const MAX_LABEL = 80;
export const MAX_URL = 512;
const MAX_ROW = 5;

const STYLES = { success: 3, danger: 4, link: 5 };

/** A row of buttons. */
interface Row {
  type: 1;
  components: object[];
}

export interface DiscordMessage {
  content: string;
  embeds: object[];
  components: Row[];
  allowed_mentions: { parse: [] };
}

/** Renders a message with the given buttons, and one button for each link. Omits a request that is too long. */
export function renderMessage(sheet: MessageSheet, buttons: object[] = []): DiscordMessage {
  const links = sheetLinks(sheet);
  // Discord rejects a button with a long address. The address is then part of the text, which an agent cannot influence.
  const long = links.filter(({ url }) => url.length > MAX_URL).map(({ label, url }) => `${label}: <${url}>`);
  const components = [
    ...buttons,
    ...links.filter(({ url }) => url.length <= MAX_URL).map(({ label, url }) => linkButton(label, url)),
  ];
  return {
    content: [toCode(sheet.title), ...long].join("\n").slice(0, MAX_CONTENT),
    embeds: [{ description: renderFitting(sheet, describe, fits).slice(0, MAX_DESCRIPTION) }],
    components: rows(components),
    allowed_mentions: { parse: [] },
  };
}

/** Returns true if Discord can display the whole message. */
export const fitsDiscord = (sheet: MessageSheet): boolean => fits(describe(sheet));

/** Returns a button whose value Discord sends back. */
export function voteButton(label: string, approve: boolean, value: string): object {
  return { type: 2, style: approve ? STYLES.success : STYLES.danger, label, custom_id: value };
}

function linkButton(label: string, url: string): object {
  return { type: 2, style: STYLES.link, label: label.slice(0, MAX_LABEL), url };
}

function rows(components: object[]): Row[] {
  return Array.from({ length: Math.ceil(components.length / MAX_ROW) }, (_, i) => ({
    type: 1,
    components: components.slice(i * MAX_ROW, (i + 1) * MAX_ROW),
  }));
}

const fits = (description: string): boolean => description.length <= MAX_DESCRIPTION;

function describe(sheet: MessageSheet): string {
  const { link, others } = sheet;
  const lines = [...sheetLines(sheet), ...others.map(({ text }) => text), ...(link === null ? [] : ["", link.about])];
  return `\`\`\`\n${lines.map(withoutBackticks).join("\n")}\n\`\`\``;
}

const toCode = (text: string): string => `\`${withoutBackticks(text)}\``;

/** Replaces backticks, which would end the code. */
const withoutBackticks = (text: string): string => text.replaceAll("`", "[U+0060]");
