/** Validates and compares the names of tools, operations and agents. */
import { hasHiddenCharacters } from "./text.ts";
import { groupByScript } from "./visible-text.ts";

const VISIBLE_ASCII = /^[!-~]*$/;

/**
 * Returns the fault of a name; null if the name is valid. Rejects names that a person could confuse with another name:
 * compatibility characters (U+FF42 for b), separate accents, invisible characters, and words of mixed scripts.
 */
export function findNameFault(text: string): string | null {
  if (VISIBLE_ASCII.test(text)) return null;
  if (hasHiddenCharacters(text)) return "contains an invisible character";
  if (text.trim() !== text) return "begins or ends with a space";
  if (text.normalize("NFKC") !== text) return "is not in the Unicode normal form NFKC";
  return findMixedScriptFault(text);
}

/**
 * Rejects words with letters of several scripts, which look like other words (Unicode TR 39). An example is `stripe`
 * with the Cyrillic letter U+0435 instead of `e`.
 */
function findMixedScriptFault(text: string): string | null {
  for (const word of text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []) {
    const scripts = groupByScript(word);
    if (scripts.size > 1) return `mixes letters of ${[...scripts.keys()].join(" and ")} in one word`;
  }
  return null;
}

const ASCII = /^[\0-\x7f]*$/;

/**
 * Returns the form in which names are compared: NFKC, case-folded. Idempotent.
 * @example
 * foldName("ＡDA"); // "ada"
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  return Array.from(name.normalize("NFKC"), foldCharacter).join("").normalize("NFKC");
}

/** Characters whose upper and lower case do not give the simple case folding. */
const FOLDED: Readonly<Record<string, string>> = {
  // Keep the dotless i distinct from i.
  "\u0131": "\u0131",
  "\u1fd3": "\u0390",
  "\u1fe3": "\u03b0",
  "\ufb05": "\ufb06",
};

/**
 * Returns a character's simple case folding: Unicode's CaseFolding.txt, status C and S, or another member of the same
 * class. It maps one code point to one code point, so that `?` in a glob still matches one character.
 */
export function foldCharacter(character: string): string {
  const folded = FOLDED[character] ?? character.toUpperCase().toLowerCase();
  if (isSingleCodePoint(folded)) return folded;
  const lower = character.toLowerCase();
  return isSingleCodePoint(lower) ? lower : character;
}

function isSingleCodePoint(text: string): boolean {
  return text.length === ((text.codePointAt(0) ?? 0) > 0xffff ? 2 : 1);
}

export function sameName(a: string, b: string): boolean {
  return a === b || foldName(a) === foldName(b);
}
