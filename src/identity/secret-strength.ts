/** Whether a secret can be guessed, from its text alone. Length says little: a sentence out of a manual is long, and known to all. */

/** Pairs that half of English text is made of, and a tenth of random letters. */
const COMMON_PAIRS = new Set(
  "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ge wo pa ss sw rd ke ey pl am xa mp lo wi il mb em".split(
    " ",
  ),
);
const LEAST_CHARACTERS = 16;
const LEAST_DISTINCT = 8;

/** What makes it weak, to be said after "the secret"; null when nothing does. */
export function describeWeakness(secret: string): string | null {
  const unit = secret.slice(0, `${secret}${secret}`.indexOf(secret, 1));
  if (unit.length < LEAST_CHARACTERS || new Set(unit).size < LEAST_DISTINCT) return "repeats itself";
  if (inSequences(unit) > unit.length / 2) return "runs through the alphabet or the digits";
  if (inWords(unit) > unit.length * 0.6) return "is made of words";
  return null;
}

/** Characters that follow from the one before, as in `abc` and `321`. */
function inSequences(text: string): number {
  let count = 0;
  for (let i = 1; i < text.length; i++) if (Math.abs(text.charCodeAt(i) - text.charCodeAt(i - 1)) <= 1) count++;
  return count;
}

/** Characters of what reads like English words. Random text in mixed case hardly has four letters of one case together. */
function inWords(text: string): number {
  const words = text.match(/[A-Z]?[a-z]{3,}|[A-Z]{4,}/g) ?? [];
  return words.filter((word) => readsLikeEnglish(word.toLowerCase())).reduce((sum, word) => sum + word.length, 0);
}

function readsLikeEnglish(word: string): boolean {
  let common = 0;
  for (let i = 1; i < word.length; i++) if (COMMON_PAIRS.has(word.slice(i - 1, i + 1))) common++;
  // Long texts of chance come closer to the average of chance.
  return common / (word.length - 1) >= (word.length > 12 ? 0.5 : 0.33);
}
