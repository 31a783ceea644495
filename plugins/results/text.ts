/** Finds and replaces what patterns match in a string, also across characters that are not displayed. */
import { chargeSteps, matchesOf } from "../../src/core.ts";

/** Start and end in UTF-16 code units. */
type Span = readonly [start: number, end: number];

/** A string as it reads, and for each code unit of it the offset in the original string. */
interface Reading {
  text: string;
  offsets: readonly number[];
}

const PLAIN = /^[\x20-\x7e\t\r\n]*$/;
/** Characters that change how text is stored, and not how it reads: zero-width, soft hyphen, direction, variation. */
const NOT_DISPLAYED = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/**
 * Returns the string without characters that are not displayed, with each other character in its compatibility form
 * (NFKC), such as `A` for a full-width A. Null if the string already has this form.
 */
export function readPlainly(text: string): Reading | null {
  chargeSteps(1 + (text.length >> 4));
  if (PLAIN.test(text)) return null;
  chargeSteps(text.length);
  const parts: string[] = [];
  const offsets: number[] = [];
  let at = 0;
  for (const character of text) {
    if (!NOT_DISPLAYED.test(character)) {
      const plain = character.normalize("NFKC");
      parts.push(plain);
      for (let i = 0; i < plain.length; i++) offsets.push(at);
    }
    at += character.length;
  }
  return { text: parts.join(""), offsets: [...offsets, text.length] };
}

/** Returns true if a pattern matches in the string, as it is or as it reads. */
export function isFound(patterns: readonly string[], text: string): boolean {
  const plain = readPlainly(text);
  return patterns.some((pattern) => occurs(pattern, text) || (plain !== null && occurs(pattern, plain.text)));
}

function occurs(pattern: string, text: string): boolean {
  for (const _ of matchesOf(text, pattern, 1)) return true;
  return false;
}

/** Returns the string with the replacement in place of each match. */
export function replaceFound(patterns: readonly string[], text: string, replacement: string): string {
  const plain = readPlainly(text);
  const spans: Span[] = [];
  for (const pattern of patterns) {
    for (const match of matchesOf(text, pattern)) spans.push([match[0] ?? 0, match[1] ?? 0]);
    if (plain === null) continue;
    const { offsets } = plain;
    for (const match of matchesOf(plain.text, pattern))
      spans.push([offsets[match[0] ?? 0] ?? 0, offsets[match[1] ?? 0] ?? text.length]);
  }
  if (spans.length === 0) return text;
  const pieces: string[] = [];
  let copied = 0;
  let covered = -1;
  for (const [start, end] of spans.sort(([a], [b]) => a - b)) {
    if (start >= covered) pieces.push(text.slice(copied, start), replacement);
    covered = Math.max(covered, end);
    copied = covered;
  }
  chargeSteps(text.length >> 4);
  return [...pieces, text.slice(copied)].join("");
}
