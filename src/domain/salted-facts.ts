/**
 * Commitments to the data that decisions on an action read: attributes of the agent and its principal, facts about
 * delegators, past actions, limit usage, and values of fact sources. The entry contains a commitment, and the action's row contains the values.
 * If the entry contained the values, they could not be erased. Also, the limit usage before two consecutive actions
 * would reveal the amount of the first.
 */
import { canonicalText } from "./canonical.ts";
import { isJsonObject, type JsonValue } from "./json.ts";
import { commitSalted, type SaltedMembers } from "./salted-commitment.ts";
import type { Facts, RecordedFacts } from "./policy/policy-types.ts";

/** Facts that the commitment covers. A member is present if the decision read it. */
const COMMITTED_MEMBERS = ["attributes", "delegators", "history", "limits", "sources"] as const;
type CommittedFacts = Pick<Facts, (typeof COMMITTED_MEMBERS)[number]>;

/** The facts that a commitment covers, with a salt of 32 random bytes in hex. */
export interface SaltedFacts extends CommittedFacts {
  salt: string;
}

/**
 * Replaces the values that the decision read with a commitment. Returns two things:
 * - `facts` for the ledger entry, with the commitment.
 * - `past` for the action's row, with the values of all the action's commitments, as canonical JSON. It is a
 *   `SaltedFacts`, an array of them if decisions read different values, or null if no decision read values.
 * @param kept `past` in the row before this decision
 */
export function commitFacts(
  facts: Facts,
  newSalt: () => string,
  kept: string | null = null,
): { facts: RecordedFacts; past: string | null } {
  const { attributes: _, delegators: __, history: ___, limits: ____, sources: _____, ...others } = facts;
  const read = selectCommitted(facts);
  if (Object.keys(read).length === 0) return { facts: others, past: kept };
  const pasts = decodeSaltedFacts(kept);
  const text = canonicalText(read as unknown as JsonValue);
  const same = pasts.find((past) => canonicalText(selectCommitted(past) as unknown as JsonValue) === text);
  if (same !== undefined) return { facts: { ...others, past: commitSaltedFacts(same) }, past: kept };
  const past: SaltedFacts = { ...read, salt: newSalt() };
  return { facts: { ...others, past: commitSaltedFacts(past) }, past: encodeSaltedFacts([...pasts, past]) };
}

/** Returns the members that the commitment covers, without empty members. */
function selectCommitted(facts: CommittedFacts): CommittedFacts {
  return Object.fromEntries(
    COMMITTED_MEMBERS.filter((name) => hasContent(facts[name])).map((name) => [name, facts[name]]),
  );
}

function hasContent(value: unknown): boolean {
  return typeof value === "object" && value !== null && (!Array.isArray(value) || value.length > 0);
}

/**
 * Returns SHA-256(salt ‖ SHA-256(canonical members without the salt)).
 * @example
 * commitSaltedFacts({ salt, calls: [] });
 */
export function commitSaltedFacts(past: SaltedFacts): string {
  return commitSalted(past as unknown as SaltedMembers);
}

/** Decodes the row's string, in order of the entries. Returns [] if the service did not write the string. */
export function decodeSaltedFacts(text: string | null): SaltedFacts[] {
  try {
    const read = JSON.parse(text ?? "[]") as SaltedFacts | SaltedFacts[];
    const pasts = (Array.isArray(read) ? read : [read]).map((past) => ({ ...selectCommitted(past), salt: past.salt }));
    const whole = pasts.every((past) => Object.keys(past).length > 1 && SALT.test(past.salt) && hasExpectedTypes(past));
    return whole && (text === null || encodeSaltedFacts(pasts) === text) ? pasts : [];
  } catch {
    return [];
  }
}

/** Returns true if the members have the types that their readers expect. Someone may have altered the row. */
function hasExpectedTypes({
  attributes,
  delegators = [],
  history = [],
  limits = [],
  sources = [],
}: Partial<SaltedFacts>): boolean {
  return (
    isListOfObjects(delegators) &&
    delegators.every((facts) => isJsonObject(facts.principal) && hasExpectedTypes(facts)) &&
    (attributes === undefined || isJsonObject(attributes)) &&
    [history, limits, sources].every(isListOfObjects) &&
    history.every(({ actions }) => isListOfObjects(actions))
  );
}

const SALT = /^[0-9a-f]{64}$/;

const isListOfObjects = (value: unknown): boolean => Array.isArray(value) && value.every(isJsonObject);

/** Encodes the values for the row; null if there are none. */
export function encodeSaltedFacts(pasts: readonly SaltedFacts[]): string | null {
  if (pasts.length === 0) return null;
  return canonicalText((pasts.length === 1 ? pasts[0] : pasts) as unknown as JsonValue);
}

/**
 * Returns the facts of a decision. If `past` does not match the entry's commitment, the values stay unknown. Then every
 * limit denies, and every condition that reads these values fails.
 */
export function restoreFacts(recorded: RecordedFacts, past: string | null): Facts {
  const { past: commitment, ...facts } = recorded;
  if (commitment === undefined) return facts;
  const opened = findFactsByCommitment(commitment, past);
  return opened === null ? facts : { ...facts, ...selectCommitted(opened) };
}

/** Returns an entry with its facts restored. The facts still contain the commitment. */
export function restoreEntry<Entry extends { facts: RecordedFacts }>(entry: Entry, past: string | null): Entry {
  return { ...entry, facts: { ...entry.facts, ...restoreFacts(entry.facts, past) } };
}

/** Returns the values that match the commitment; null if `past` does not contain them. */
export function findFactsByCommitment(commitment: string, past: string | null): SaltedFacts | null {
  return decodeSaltedFacts(past).find((candidate) => commitmentOf(candidate) === commitment) ?? null;
}

/** Returns true if `past` contains exactly the values of these commitments, in the same order. */
export function factsMatchCommitments(commitments: readonly string[], past: string | null): boolean {
  const pasts = decodeSaltedFacts(past);
  if (pasts.length === 0 && past !== null) return false;
  const expected = [...new Set(commitments)];
  return pasts.length === expected.length && pasts.every((past, i) => commitmentOf(past) === expected[i]);
}

/** Returns the commitment; null if the salt is invalid. */
function commitmentOf(past: SaltedFacts): string | null {
  try {
    return commitSaltedFacts(past);
  } catch {
    return null;
  }
}
