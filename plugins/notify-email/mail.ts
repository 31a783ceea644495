/** Renders a mail as plain text and as HTML, with the same content. */
import { HIDDEN_LINES_PATTERN } from "../../src/core.ts";
import { messageSheet, type MessageSheet, type PersonalMessage } from "../../src/plugin.ts";

/** Note on collapsed lines. Mail programs clip large messages silently, so long content is collapsed visibly. */
const FOLDED = "Some lines are collapsed. The approval page shows all of them.";

interface Mail {
  subject: string;
  text: string;
  html: string;
}

export function renderMail(message: PersonalMessage): Mail {
  const { title, opening, link, others, facts, sections } = messageSheet(message);
  const request: Parts["request"] = [
    ...sections,
    ...(others.length === 0
      ? []
      : [
          [
            "Also waiting for your decision, each with its own link",
            others.flatMap((other) => [other.text, other.link]),
          ] as const,
        ]),
  ];
  return mailOf({ title, opening, facts, request, link });
}

function mailOf(parts: Parts): Mail {
  const { title, opening, link, facts, request } = parts;
  const width = Math.max(...facts.map(([name]) => name.length)) + 2;
  const text = [
    title,
    "",
    opening,
    "",
    ...(link === null ? [] : [`${link.label}: ${link.url}`, link.about, ""]),
    ...facts.map(([name, value]) => `${`${name}:`.padEnd(width)}${value}`),
    ...request.flatMap(([name, lines]) => ["", `${name}:`, ...lines.map((line) => `  ${line}`)]),
    ...(isFolded(request) ? ["", FOLDED] : []),
    "",
  ].join("\n");
  return {
    subject: `[Assent] ${title.charAt(0).toLowerCase()}${title.slice(1)}`,
    text,
    html: html(parts),
  };
}

interface Parts extends Pick<MessageSheet, "title" | "opening" | "link" | "facts"> {
  request: MessageSheet["sections"];
}

/**
 * Renders HTML with inline styles and without remote content. Text of agents is in <bdi>, so that right-to-left text
 * does not move the text around it.
 */
function html({ title, opening, link, facts, request }: Parts): string {
  const cell = 'style="padding:4px 12px 4px 0;vertical-align:top"';
  const button =
    'style="display:inline-block;padding:10px 18px;background:#1f5fbf;color:#fff;text-decoration:none;border-radius:4px"';
  const pre =
    'dir="ltr" style="background:#f4f4f4;padding:12px;white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace"';
  return [
    '<!doctype html><html lang="en" dir="ltr"><head><meta charset="utf-8"></head><body style="font-family:sans-serif;color:#222;max-width:700px">',
    `<h1 style="font-size:20px"><bdi>${escape(title)}</bdi></h1>`,
    `<p><bdi>${escape(opening)}</bdi></p>`,
    ...(link === null
      ? []
      : [
          `<p><a href="${escape(link.url)}" ${button}>${escape(link.label)}</a></p><p style="color:#666"><bdi>${escape(link.about)}</bdi></p>`,
        ]),
    '<table style="border-collapse:collapse">',
    ...facts.map(
      ([name, value]) =>
        `<tr><th align="left" ${cell}>${escape(name)}</th><td ${cell}><bdi>${escape(value)}</bdi></td></tr>`,
    ),
    "</table>",
    ...request.map(
      ([name, lines]) => `<h2 style="font-size:16px">${escape(name)}</h2><pre ${pre}>${escape(lines.join("\n"))}</pre>`,
    ),
    ...(isFolded(request) ? [`<p><strong>${FOLDED}</strong></p>`] : []),
    "</body></html>",
  ].join("\n");
}

function isFolded(request: Parts["request"]): boolean {
  return request.some(([, lines]) => lines.some((line) => HIDDEN_LINES_PATTERN.test(line)));
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
