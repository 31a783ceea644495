/** Matches actions with the words of a search. */
import { type CompiledPolicySet, decodeEdit, redactRow } from "../../src/core.ts";
import type { ActionRow, ContainedText } from "../../src/storage/index.ts";

/** Minimum length of a word that is compared with ids. A shorter word would match the ids of many actions. */
const MIN_ID_PREFIX = 8;
/** Matches whitespace, non-ASCII characters, and characters that JSON escapes in strings or uses as syntax. */
const OUTSIDE_STRINGS = /[^\w!#$%&'()*+./;<=>?@^`|~-]+/;

/** Maximum length of the text for the store. Requests that repeat the start of a long text would slow the search down. */
const MAX_TEXT = 16;

/** Splits the words of a search, in lowercase. Returns an empty list without a search. */
export function splitWords(q: string | undefined): readonly string[] {
  return (q ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}

/**
 * Whether every word occurs in the action's names, in its request, or as the beginning of its id. Values that the
 * policies redact match nothing.
 */
export function matchesWords(words: readonly string[], row: ActionRow, policies: CompiledPolicySet): boolean {
  if (words.length === 0) return true;
  const { id, agent_id, tool, operation, request, effective } = redactRow(policies, row);
  const text = `${tool} ${operation} ${agent_id} ${request} ${changedText(effective)}`.toLowerCase();
  return words.every((word) => text.includes(inJson(word)) || (word.length >= MIN_ID_PREFIX && id.startsWith(word)));
}

/**
 * Returns the changed request as JSON, without the salt that its column also contains. A search must not reveal the
 * salt, which protects the commitment to the request after an erasure.
 */
function changedText(effective: string | null): string {
  if (effective === null) return "";
  try {
    return JSON.stringify(decodeEdit(effective)?.request);
  } catch {
    // Someone altered the store. The audit reports it.
    return "";
  }
}

/** Returns the word as it is written inside a JSON string. */
const inJson = (word: string): string => JSON.stringify(word).slice(1, -1);

/**
 * Returns text that all actions with these words contain, so that the store can omit most other actions. Returns
 * undefined if there is no such text. Also returns undefined if the policies redact anything, because the duration of a
 * search would confirm a guess of a redacted value. The text is part of one JSON string or number, because rows can
 * have members in different orders.
 */
export function findContainedText(words: readonly string[], policies: CompiledPolicySet): ContainedText | undefined {
  if (policies.redacts) return undefined;
  const texts = words.flatMap((word) =>
    inJson(word)
      .split(OUTSIDE_STRINGS)
      .filter((part) => part !== "")
      .map((part) => ({
        // Replace i and k by `_`, which matches any character. `toLowerCase` turns U+0130 and U+212A into an i and a k,
        // but the store might not.
        text: part.slice(0, MAX_TEXT).replace(/[ik]/g, "_"),
        id_prefix: word.length >= MIN_ID_PREFIX && /^[\da-f-]+$/.test(word) ? word : "",
      })),
  );
  const letters = ({ text }: ContainedText): number => text.replace(/[_%]/g, "").length;
  return texts.sort((a, b) => letters(b) - letters(a))[0];
}
