/**
 * Returns the text; if it is longer than `max` UTF-16 code units, returns its start and an ellipsis. Does not split a
 * surrogate pair, because canonical JSON rejects lone surrogates.
 * @example
 * clipText("abcdef", 3); // "abc…"
 */
export function clipText(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)}…`;
}

/**
 * Matches characters that are invisible or change how other characters are displayed: controls, format characters (bidi
 * marks, zero-width joiners, tags), default-ignorable code points, separators, spaces other than U+0020, private use,
 * unassigned, lone surrogates, and the Braille blank, which Unicode classifies as a symbol.
 */
export const HIDDEN_CHARACTERS =
  /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\u2800]|(?! )\p{Zs}/gu;

export function hasHiddenCharacters(text: string): boolean {
  return text.search(HIDDEN_CHARACTERS) >= 0;
}

/** Returns the notation of a character's code point, such as `U+202E`. */
export function formatCodePoint(character: string): string {
  return `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Replaces hidden characters with visible escapes, such as `[U+202E]`. */
export function revealHidden(text: string): string {
  return text.replace(HIDDEN_CHARACTERS, (hidden) => `[${formatCodePoint(hidden)}]`);
}

/**
 * Returns the escape of a character in a double-quoted string of CEL and of YAML.
 * @example
 * escapeCharacter("\u2028"); // "\\u2028"
 */
export function escapeCharacter(character: string): string {
  const point = (character.codePointAt(0) as number).toString(16);
  return point.length > 4 ? `\\U${point.padStart(8, "0")}` : `\\u${point.padStart(4, "0")}`;
}

/**
 * Returns the string as one line, clipped by `clipText`. Replaces hidden characters with spaces and collapses spaces.
 */
export function toSingleLine(text: string, max: number): string {
  return clipText(text.replace(HIDDEN_CHARACTERS, " ").replace(/ {2,}/g, " ").trim(), max);
}

/** Control characters and marks of direction, which could control a terminal or reorder a line. */
// oxlint-disable-next-line no-control-regex -- the pattern must match control characters
export const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Replaces control characters and marks of direction with U+FFFD. */
export function replaceControlCharacters(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, "\ufffd");
}
