/**
 * What a decision read of the past. The amounts used before one action and before the next would tell every reader of
 * the ledger what the first one paid. So an entry holds only a commitment, and the values are in the action's row.
 */
import type { JsonValue } from "./json.ts";
import { commitKept, keptText, opensKept, readKept, type Kept } from "./kept.ts";
import type { Facts, LimitFact, RecordedFacts } from "./policy/types.ts";

/** What the commitment covers, and 32 random bytes in hex. */
export interface Past {
  limits: LimitFact[];
  salt: string;
}

/**
 * The facts as their entry holds them, and what is kept beside the action to open them; null where nothing of the past
 * was read.
 */
export function sealFacts(facts: Facts, newSalt: () => string): { facts: RecordedFacts; past: string | null } {
  const { limits, ...others } = facts;
  if (limits === undefined || limits.length === 0) return { facts, past: null };
  const kept: Kept = { limits: limits as unknown as JsonValue, salt: newSalt() };
  return { facts: { ...others, past: commitKept(kept) }, past: keptText(kept) };
}

/** Null for a text that the service did not write. */
export function readPast(text: string | null): Past | null {
  const kept = readKept(text) as unknown as Past | null;
  return Array.isArray(kept?.limits) ? kept : null;
}

/**
 * The facts that the decision was made from. What was used stays unknown where `past` is not what the entry commits
 * to: every limit denies then.
 */
export function openFacts(recorded: RecordedFacts, past: string | null): Facts {
  const { past: commitment, ...facts } = recorded;
  if (commitment === undefined || !opensKept(commitment, past)) return facts;
  return { ...facts, limits: readPast(past)?.limits ?? [] };
}
