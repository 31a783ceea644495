/** A definition as YAML to read and to edit. Reading YAML is the service's work: its errors have lines. */

const PLAIN = /^[A-Za-z_][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
/** Words that YAML 1.1 or 1.2 takes for something else. */
const RESERVED = /^(?:true|false|yes|no|on|off|null|y|n|nan|inf)$/i;

/** Members as people write them; the service keeps them by the alphabet. What is not named here comes behind. */
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

/** @param {string} name */
function rank(name) {
  const place = ORDER.indexOf(name);
  return place < 0 ? ORDER.length : place;
}

/** @param {unknown} value what `JSON.parse` gave @returns {string} with a line feed at its end */
export function yamlOf(value) {
  return `${block(value, "").replace(/^\n/, "")}\n`;
}

/** With a line feed before it where it takes lines of its own. @param {unknown} value @param {string} indent */
function block(value, indent) {
  if (Array.isArray(value)) {
    if (value.length === 0) return " []";
    if (value.every((item) => typeof item !== "object" || item === null) && value.map(scalar).join(", ").length < 80)
      return ` [${value.map(scalar).join(", ")}]`;
    return value
      .map(
        (item) =>
          `\n${indent}-${typeof item === "object" && item !== null && !Array.isArray(item) && Object.keys(item).length > 0 ? ` ${block(item, `${indent}  `).trimStart()}` : block(item, `${indent}  `)}`,
      )
      .join("");
  }
  if (typeof value === "object" && value !== null) {
    const names = Object.keys(value).sort((a, b) => rank(a) - rank(b));
    if (names.length === 0) return " {}";
    return names.map((name) => `\n${indent}${scalar(name)}:${block(value[name], `${indent}  `)}`).join("");
  }
  if (typeof value === "string" && isBlock(value))
    return ` |${value.endsWith("\n") ? "" : "-"}${value
      .replace(/\n$/, "")
      .replaceAll(/^(?=.)/gm, indent)
      .replace(/^/, "\n")}`;
  return ` ${scalar(value)}`;
}

/** Texts of several lines are written as such, where YAML gives them back as they are. @param {string} text */
function isBlock(text) {
  return /\n./.test(text) && /^[^\s]/.test(text) && !/[^\n\x20-\x7e\xa1-\ud7ff]|\n\n$| \n/.test(text);
}

/** JSON's texts are YAML's double-quoted ones. @param {unknown} value */
function scalar(value) {
  return typeof value === "string" && PLAIN.test(value) && !RESERVED.test(value) ? value : JSON.stringify(value);
}
