/** Names of tools, operations and agents: which are taken, and when two of them are the same. */
import { hasHiddenCharacters } from "./text.ts";
import { scriptsOf } from "./visible-text.ts";

const VISIBLE_ASCII = /^[!-~]*$/;
/** Shows nothing in any font, though Unicode counts it among the symbols. */
const BLANK = "\u2800";

/**
 * Why a text is no name; null when it is one. A name looks like what it is: two that a person cannot tell apart by their
 * code points alone (U+FF42 for b, an accent of its own, a character that shows nothing, a Cyrillic letter in a Latin word)
 * are not both taken.
 */
export function findNameFault(text: string): string | null {
  if (VISIBLE_ASCII.test(text)) return null;
  if (hasHiddenCharacters(text) || text.includes(BLANK)) return "holds a character that shows nothing";
  if (text.trim() !== text) return "begins or ends with a space";
  if (text.normalize("NFKC") !== text) return "is not in the Unicode normal form NFKC";
  return findMixedScriptFault(text);
}

/** A word of several scripts, such as `strip` and a Cyrillic `\u0435`, looks like another word (Unicode TR 39). */
function findMixedScriptFault(text: string): string | null {
  for (const word of text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []) {
    const scripts = scriptsOf(word);
    if (scripts.size > 1) return `mixes letters of ${[...scripts.keys()].join(" and ")} in one word`;
  }
  return null;
}

const ASCII = /^[\0-\x7f]*$/;

/** The form in which names are compared: NFKC without regard to case. The same again for its own result. */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  return Array.from(name.normalize("NFKC"), foldCharacter).join("").normalize("NFKC");
}

/** Unicode's simple case folding: one code point stays one, so that `?` of a glob goes on counting characters. */
function foldCharacter(character: string): string {
  const folded = character.toUpperCase().toLowerCase();
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
