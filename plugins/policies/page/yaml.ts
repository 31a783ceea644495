/**
 * Writes a value as YAML that people can read and edit. The service parses the YAML, because its errors then contain
 * line numbers.
 */

const PLAIN = /^[A-Za-z_][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
/** Words that YAML 1.1 or 1.2 reads as something other than strings. */
const RESERVED = /^(?:true|false|yes|no|on|off|null|y|n|nan|inf)$/i;

/**
 * Order in which people usually write the members. The service stores members alphabetically. Other members follow
 * these.
 */
const ORDER = [
  "policy",
  "name",
  "description",
  "mode",
  "applies_to",
  "tool",
  "operation",
  "agent",
  "when",
  "effect",
  "risk",
  "reason",
  "approval",
  "rules",
];

function rank(name: string): number {
  const position = ORDER.indexOf(name);
  return position < 0 ? ORDER.length : position;
}

/**
 * Returns a JSON value as YAML that ends in a line feed.
 * @example renderYaml({ policy: "refunds", rules: [] }) // "policy: refunds\nrules: []\n"
 */
export function renderYaml(value: unknown): string {
  return `${renderBlock(value, "").replace(/^\n/, "")}\n`;
}

/** Renders the value that follows a key. The result starts with a line feed if the value has several lines. */
function renderBlock(value: unknown, indent: string): string {
  if (Array.isArray(value)) return renderList(value, indent);
  if (isMap(value)) {
    const names = Object.keys(value).sort((a, b) => rank(a) - rank(b));
    if (names.length === 0) return " {}";
    return names.map((name) => `\n${indent}${renderScalar(name)}:${renderBlock(value[name], `${indent}  `)}`).join("");
  }
  if (typeof value === "string" && isBlockText(value)) {
    const lines = value.replace(/\n$/, "").replaceAll(/^(?=.)/gm, indent);
    return ` |${value.endsWith("\n") ? "" : "-"}\n${lines}`;
  }
  return ` ${renderScalar(value)}`;
}

function renderList(items: readonly unknown[], indent: string): string {
  if (items.length === 0) return " []";
  const isFlat = items.every((item) => typeof item !== "object" || item === null);
  const flow = isFlat ? items.map(renderScalar).join(", ") : "";
  if (isFlat && flow.length < 80) return ` [${flow}]`;
  return items
    .map((item) => {
      const text = renderBlock(item, `${indent}  `);
      return `\n${indent}-${isMap(item) && Object.keys(item).length > 0 ? ` ${text.trimStart()}` : text}`;
    })
    .join("");
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns true if a multi-line string can be written as a literal block and reads back unchanged. */
function isBlockText(text: string): boolean {
  return /\n./.test(text) && /^[^\s]/.test(text) && !/[^\n\x20-\x7e\xa1-\ud7ff]|\n\n$| \n/.test(text);
}

/** Renders a scalar. A JSON string is also a valid double-quoted scalar in YAML. */
function renderScalar(value: unknown): string {
  return typeof value === "string" && PLAIN.test(value) && !RESERVED.test(value) ? value : JSON.stringify(value);
}
