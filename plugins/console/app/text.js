/** Words for people. Text from outside passes `markText`: nothing in it may hide, reorder or imitate what stands around it. */
import { markedText, markText } from "../../../src/domain/visible-text.ts";

export { markText };

/** As plain text, where there is no markup: titles, labels. @param {unknown} value */
export function plain(value) {
  return markedText(String(value));
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
