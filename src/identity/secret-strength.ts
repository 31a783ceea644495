/**
 * Estimates whether a secret can be guessed, from its characters. Length is not sufficient: a sentence from a manual is
 * long but public.
 */

/** Letter pairs that account for half of all pairs in English text, but only a tenth in random letters. */
const COMMON_PAIRS = new Set(
  "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ge wo pa ss sw rd ke ey pl am xa mp lo wi il mb em".split(
    " ",
  ),
);
const LEAST_CHARACTERS = 16;
const LEAST_DISTINCT = 8;

/**
 * Returns the weakness of a secret as the end of a sentence that begins with "the secret"; null if there is no
 * weakness.
 */
export function describeSecretWeakness(secret: string): string | null {
  const unit = secret.slice(0, `${secret}${secret}`.indexOf(secret, 1));
  if (unit.length < LEAST_CHARACTERS || new Set(unit).size < LEAST_DISTINCT) return "repeats itself";
  if (countSequenceCharacters(unit) > unit.length / 2) return "runs through the alphabet or the digits";
  if (countWordCharacters(unit) > unit.length * 0.6) return "is made of words";
  return null;
}

/** Counts the characters that repeat the previous character, or continue a sequence such as `abc` or `321`. */
function countSequenceCharacters(text: string): number {
  let count = 0;
  for (let i = 1; i < text.length; i++) if (Math.abs(text.charCodeAt(i) - text.charCodeAt(i - 1)) <= 1) count++;
  return count;
}

/**
 * Counts the characters that look like English words. Random text in mixed case rarely has four letters of one case in
 * a row.
 */
function countWordCharacters(text: string): number {
  const words = text.match(/[A-Z]?[a-z]{3,}|[A-Z]{4,}/g) ?? [];
  return words.filter((word) => readsLikeEnglish(word.toLowerCase())).reduce((sum, word) => sum + word.length, 0);
}

function readsLikeEnglish(word: string): boolean {
  let common = 0;
  for (let i = 1; i < word.length; i++) if (COMMON_PAIRS.has(word.slice(i - 1, i + 1))) common++;
  // A long secret can be one string of random letters. The lower threshold would sometimes classify it as words by
  // chance.
  return common / (word.length - 1) >= (word.length > 12 ? 0.5 : 0.33);
}
