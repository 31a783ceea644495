/** At most `max` UTF-16 code units and an ellipsis, never half of a surrogate pair: canonical JSON refuses those. */
export function clipText(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)}…`;
}

/**
 * Characters that show nothing or change how others show: controls, formats (bidi marks, zero-width joiners, tags), what
 * Unicode lets a font ignore, separators, spaces other than the plain one, private use, unassigned, halves of surrogate
 * pairs.
 */
export const HIDDEN = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]|(?! )\p{Zs}/gu;

export function hasHiddenCharacters(text: string): boolean {
  return text.search(HIDDEN) >= 0;
}

/** One line in which nothing hides, reorders or imitates what stands around it: `[U+202E]` for each hidden character. */
export function revealHidden(text: string): string {
  return text.replace(
    HIDDEN,
    (hidden) => `[U+${(hidden.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
}

/** What a person wrote, as one line: hidden characters become spaces, runs of spaces one, and it ends after `max` characters. */
export function toSingleLine(text: string, max: number): string {
  return clipText(text.replace(HIDDEN, " ").replace(/ {2,}/g, " ").trim(), max);
}
