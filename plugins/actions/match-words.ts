/** Matches actions with the words of a search. */
import { type CompiledPolicySet, decodeEdit, redactRow } from "../../src/core.ts";
import type { ActionRow, ContainedText } from "../../src/storage/index.ts";

/** A shorter word would match the hexadecimal ids of many actions. */
const MIN_ID_PREFIX = 8;
/** Everything except ASCII characters that JSON writes unchanged inside a string, and that are not JSON syntax. */
const OUTSIDE_STRINGS = /[^\w!#$%&'()*+./;<=>?@^`|~-]+/;

/** A longer text would take the store long to compare with a request that repeats its beginning. */
const MAX_TEXT = 16;

/** Splits the words of a search, in lowercase. Returns an empty list without a search. */
export function splitWords(q: string | undefined): readonly string[] {
  return (q ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}

/**
 * Returns true if every word occurs in the action's names, in its request, or as the beginning of its id. Values that the
 * policies redact match nothing.
 */
export function matchesWords(words: readonly string[], row: ActionRow, policies: CompiledPolicySet): boolean {
  if (words.length === 0) return true;
  const { id, agent_id, tool, operation, request, effective } = redactRow(policies, row);
  const text = `${tool} ${operation} ${agent_id} ${request} ${changedText(effective)}`.toLowerCase();
  return words.every((word) => text.includes(inJson(word)) || (word.length >= MIN_ID_PREFIX && id.startsWith(word)));
}

/**
 * Returns the changed request as JSON. Its column also has a salt, which readers must not find out: it protects the
 * commitment to the request after an erasure.
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
 * Returns text that all actions with these words contain, so that the store can omit most other actions; undefined if
 * there is none, or if the policies redact anything, because the time that a search takes would confirm a guess of a
 * redacted value. The text is part of one JSON string or number, because rows can have the members in another order.
 */
export function findContainedText(words: readonly string[], policies: CompiledPolicySet): ContainedText | undefined {
  if (policies.redacts) return undefined;
  const texts = words.flatMap((word) =>
    inJson(word)
      .split(OUTSIDE_STRINGS)
      .filter((part) => part !== "")
      .map((part) => ({
        // In lowercase, the letters U+0130 and U+212A contain an i and a k.
        text: part.slice(0, MAX_TEXT).replace(/[ik]/g, "_"),
        id_prefix: word.length >= MIN_ID_PREFIX && /^[\da-f-]+$/.test(word) ? word : "",
      })),
  );
  const letters = ({ text }: ContainedText): number => text.replace(/[_%]/g, "").length;
  return texts.sort((a, b) => letters(b) - letters(a))[0];
}
