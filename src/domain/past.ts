/**
 * Commitments to the limit usage that decisions on an action read. Recorded in clear, the usage before two consecutive
 * actions would reveal the first one's amount. The entry therefore holds a commitment, and the action's row holds the
 * values.
 */
import { canonicalText } from "./canonical.ts";
import type { JsonValue } from "./json.ts";
import { commitSalted, type SaltedMembers } from "./kept.ts";
import type { Facts, LimitFact, RecordedFacts } from "./policy/policy-types.ts";

/** The committed limit usage, with a salt of 32 random bytes in hex. */
interface Past {
  limits: LimitFact[];
  salt: string;
}

/**
 * Returns the facts for the entry, and the text for the action's row that opens this entry's commitment and those of
 * earlier entries. The text is canonical JSON of a `Past`, of an array if a later decision read other values, or null
 * if no usage was read.
 * @param kept the text in the row so far
 */
export function commitFacts(
  facts: Facts,
  newSalt: () => string,
  kept: string | null = null,
): { facts: RecordedFacts; past: string | null } {
  const { limits, ...others } = facts;
  if (limits === undefined || limits.length === 0) return { facts: others, past: kept };
  const pasts = decodePasts(kept);
  const text = canonicalText(limits as unknown as JsonValue);
  const same = pasts.find((past) => canonicalText(past.limits as unknown as JsonValue) === text);
  if (same !== undefined) return { facts: { ...others, past: commitPast(same) }, past: kept };
  const past: Past = { limits, salt: newSalt() };
  return { facts: { ...others, past: commitPast(past) }, past: encodePasts([...pasts, past]) };
}

/** Returns SHA-256(salt ‖ SHA-256(canonical `{limits}`)). */
export function commitPast(past: Past): string {
  return commitSalted(past as unknown as SaltedMembers);
}

/** Decodes the row's text, in order of the entries. Returns [] for a text that the service did not write. */
export function decodePasts(text: string | null): Past[] {
  try {
    const read = JSON.parse(text ?? "[]") as Past | Past[];
    const pasts = (Array.isArray(read) ? read : [read]).map(({ limits, salt }) => ({ limits, salt }));
    const whole = pasts.every(({ limits, salt }) => Array.isArray(limits) && typeof salt === "string");
    return whole && (text === null || encodePasts(pasts) === text) ? pasts : [];
  } catch {
    return [];
  }
}

/** Encodes the values for the row; null if there are none. */
export function encodePasts(pasts: readonly Past[]): string | null {
  if (pasts.length === 0) return null;
  return canonicalText((pasts.length === 1 ? pasts[0] : pasts) as unknown as JsonValue);
}

/**
 * Returns the facts that a decision was made from. If `past` does not match the entry's commitment, the usage stays
 * unknown and every limit denies.
 */
export function restoreFacts(recorded: RecordedFacts, past: string | null): Facts {
  const { past: commitment, ...facts } = recorded;
  if (commitment === undefined) return facts;
  const opened = findPast(commitment, past);
  return opened === null ? facts : { ...facts, limits: opened.limits };
}

/** Returns the value that the entry commits to, or null. */
export function findPast(commitment: string, past: string | null): Past | null {
  return decodePasts(past).find((one) => commitmentOf(one) === commitment) ?? null;
}

/** Whether `past` holds exactly the values that these entries commit to, in their order. */
export function pastMatchesCommitments(commitments: readonly string[], past: string | null): boolean {
  const pasts = decodePasts(past);
  if (pasts.length === 0 && past !== null) return false;
  const expected = [...new Set(commitments)];
  return pasts.length === expected.length && pasts.every((one, i) => commitmentOf(one) === expected[i]);
}

/** Returns null for an invalid salt. */
function commitmentOf(past: Past): string | null {
  try {
    return commitPast(past);
  } catch {
    return null;
  }
}
