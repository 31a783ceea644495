/** Text from outside, made safe to look at: nothing in it may hide, reorder or imitate what stands around it. */

/**
 * Characters that show nothing or change how others show: controls, formats (bidi marks, zero-width
 * joiners, tags), what Unicode lets a font ignore, line and paragraph separators, spaces other than
 * the plain one, private use, unassigned, and halves of surrogate pairs.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]|(?! )\p{Zs}/u;
const RUN = new RegExp(`(${HIDDEN.source})`, "u");

const NAMES = {
  0x00: "null",
  0x07: "bell",
  0x08: "backspace",
  0x09: "tab",
  0x0a: "line feed",
  0x0d: "carriage return",
  0x1b: "escape",
  0x7f: "delete",
  0xa0: "no-break space",
  0xad: "soft hyphen",
  0x200b: "zero width space",
  0x200c: "zero width non-joiner",
  0x200d: "zero width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x2028: "line separator",
  0x2029: "paragraph separator",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2060: "word joiner",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark",
};

/**
 * @param {string} text
 * @param {{ lines?: boolean }} [options] lines: line feeds and tabs stay what they are
 * @returns {{ text: string, mark: string | null }[]} `mark` names the hidden character that `text` ("U+202E") stands for
 */
export function reveal(text, { lines = false } = {}) {
  const parts = [];
  for (const part of text.split(RUN)) {
    if (part === "") continue;
    if (!HIDDEN.test(part) || (lines && /^[\n\t]$/.test(part))) {
      const last = parts.at(-1);
      if (last !== undefined && last.mark === null) last.text += part;
      else parts.push({ text: part, mark: null });
    } else {
      const code = part.codePointAt(0) ?? 0;
      const name =
        NAMES[code] ??
        (/\p{Cs}/u.test(part)
          ? "half of a surrogate pair"
          : /\p{Zs}/u.test(part)
            ? "unusual space"
            : "invisible character");
      parts.push({ text: `U+${code.toString(16).toUpperCase().padStart(4, "0")}`, mark: name });
    }
  }
  return parts;
}

/** As plain text, where there is no markup: titles, labels. @param {unknown} value */
export function plain(value) {
  return reveal(String(value))
    .map((part) => (part.mark === null ? part.text : `[${part.text}]`))
    .join("");
}

/** "3 min 20 s", "12 min", "2 h 5 min", "4 d 3 h": as exact as it matters. @param {number} ms */
export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  const parts =
    d > 0
      ? [
          [d, "d"],
          [h, "h"],
        ]
      : h > 0
        ? [
            [h, "h"],
            [m, "min"],
          ]
        : m >= 10
          ? [[m, "min"]]
          : m > 0
            ? [
                [m, "min"],
                [s % 60, "s"],
              ]
            : [[s, "s"]];
  return parts
    .filter(([count], i) => i === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** In the reader's zone and habits. @param {string} rfc3339 */
export function when(rfc3339) {
  const time = Date.parse(rfc3339);
  return Number.isNaN(time) ? rfc3339 : local.format(time);
}

/** "agents:write" and the like out of a list typed by hand. @param {string} text */
export function list(text) {
  return text.split(/[\s,]+/).filter((item) => item !== "");
}

/** A principal as people name it: "ada" for owner:ada, "key 0193…" for a key without an owner. @param {string} principal */
export function who(principal) {
  if (principal.startsWith("owner:")) return principal.slice(6);
  return principal.startsWith("key:") ? `key ${principal.slice(4)}` : principal;
}
