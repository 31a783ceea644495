/**
 * What a decision read of the past. The amounts used before one action and before the next would tell every reader of
 * the ledger what the first one paid. So an entry holds only a commitment, and the values are in the action's row. They
 * have a salt of their own: whoever may open the commitment to the request could otherwise try amounts until one fits.
 */
import { canonicalBytes, canonicalText } from "./canonical.ts";
import { sha256Hex } from "./hash.ts";
import type { JsonValue } from "./json.ts";
import type { Facts, LimitFact, RecordedFacts } from "./policy/types.ts";
import { commit } from "./request.ts";

/** What the commitment covers, and 32 random bytes in hex. */
export interface Past {
  limits: LimitFact[];
  salt: string;
}

/**
 * The facts as their entry holds them, and what is kept beside the action to open them: canonical JSON of `Past`, null
 * where nothing of the past was read.
 */
export function sealFacts(facts: Facts, newSalt: () => string): { facts: RecordedFacts; past: string | null } {
  const { limits, ...others } = facts;
  if (limits === undefined || limits.length === 0) return { facts, past: null };
  const past: Past = { limits, salt: newSalt() };
  return { facts: { ...others, past: commitPast(past) }, past: canonicalText(past as unknown as JsonValue) };
}

/** SHA-256(salt ‖ SHA-256(canonical `{limits}`)). */
export function commitPast({ limits, salt }: Past): string {
  return commit(salt, sha256Hex(canonicalBytes({ limits } as unknown as JsonValue)));
}

/** Null for a text that the service did not write. */
export function readPast(text: string | null): Past | null {
  try {
    const { limits, salt } = JSON.parse(text ?? "null") as Past;
    return Array.isArray(limits) && typeof salt === "string" ? { limits, salt } : null;
  } catch {
    return null;
  }
}

/**
 * The facts that the decision was made from. What was used stays unknown where `past` is not what the entry commits
 * to: every limit denies then.
 */
export function openFacts(recorded: RecordedFacts, past: string | null): Facts {
  const { past: commitment, ...facts } = recorded;
  if (commitment === undefined) return facts;
  return opens(commitment, past) ? { ...facts, limits: (readPast(past) as Past).limits } : facts;
}

/** Whether `past` is what the entry commits to, and written as the service writes it. */
export function opens(commitment: string, past: string | null): boolean {
  const read = readPast(past);
  try {
    return read !== null && commitPast(read) === commitment && canonicalText(read as unknown as JsonValue) === past;
  } catch {
    return false;
  }
}
