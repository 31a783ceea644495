/**
 * What decisions on an action read of the past. The amounts used before one action and before the next would tell every
 * reader of the ledger what the first one paid. So an entry holds only a commitment, and the values are in the action's
 * row.
 */
import { canonicalText } from "./canonical.ts";
import type { JsonValue } from "./json.ts";
import { commitSalted, type SaltedMembers } from "./kept.ts";
import type { Facts, LimitFact, RecordedFacts } from "./policy/types.ts";

/** What a commitment covers, and 32 random bytes in hex. */
export interface Past {
  limits: LimitFact[];
  salt: string;
}

/**
 * The facts as their entry holds them, and what is kept beside the action to open this entry and those before it:
 * canonical JSON of `Past`, or of an array of them where a later decision read something else; null where nothing of
 * the past was read.
 * @param kept what opens those before it
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

/** SHA-256(salt ‖ SHA-256(canonical `{limits}`)). */
export function commitPast(past: Past): string {
  return commitSalted(past as unknown as SaltedMembers);
}

/** In the order of the entries that read them first. Empty for a text that the service did not write. */
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

/** Null for none. */
export function encodePasts(pasts: readonly Past[]): string | null {
  if (pasts.length === 0) return null;
  return canonicalText((pasts.length === 1 ? pasts[0] : pasts) as unknown as JsonValue);
}

/**
 * The facts that a decision was made from. What was used stays unknown where `past` does not hold what the entry
 * commits to: every limit denies then.
 */
export function restoreFacts(recorded: RecordedFacts, past: string | null): Facts {
  const { past: commitment, ...facts } = recorded;
  if (commitment === undefined) return facts;
  const opened = findPast(commitment, past);
  return opened === null ? facts : { ...facts, limits: opened.limits };
}

/** Of what is kept, that which an entry commits to. */
export function findPast(commitment: string, past: string | null): Past | null {
  return decodePasts(past).find((one) => commitmentOf(one) === commitment) ?? null;
}

/** Whether `past` is what these entries commit to, in their order, and no more. */
export function pastMatchesCommitments(commitments: readonly string[], past: string | null): boolean {
  const pasts = decodePasts(past);
  if (pasts.length === 0 && past !== null) return false;
  const expected = [...new Set(commitments)];
  return pasts.length === expected.length && pasts.every((one, i) => commitmentOf(one) === expected[i]);
}

/** Null for what is no salt. */
function commitmentOf(past: Past): string | null {
  try {
    return commitPast(past);
  } catch {
    return null;
  }
}
