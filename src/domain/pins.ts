/**
 * Values of fact sources that a rule pins: the approver sees them, and the action starts only while they are the same.
 * Entries contain a salted commitment to the values, and the action's row contains the values, as with all facts.
 */
import { canonicalBytes } from "./canonical.ts";
import { sha256Hex } from "./hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "./json.ts";
import type { Decision, Pin, SourceFact } from "./policy/policy-types.ts";
import { commitDigest } from "./request.ts";

/** A pin with its value. `value` is absent if the fact or the member is absent. */
export interface PinnedValue extends Pin {
  value?: JsonValue;
}

/** Returns the name of the fact that a path such as `facts.invoice.total` reads. */
export const factOfPin = (path: string): string => path.split(".")[1] ?? "";

/** Returns the values of the pins. */
export function readPins(pins: readonly Pin[], sources: readonly SourceFact[] = []): PinnedValue[] {
  return pins.map(({ path, policy }) => {
    const [, name, ...members] = path.split(".");
    const fact = sources.find((source) => source.policy === policy && source.name === name && source.fault === null);
    let value: JsonValue | undefined = fact?.value;
    for (const member of members)
      value = isJsonObject(value) && Object.hasOwn(value, member) ? value[member] : undefined;
    return { path, policy, ...(value === undefined ? {} : { value }) };
  });
}

/**
 * Returns the commitment to the values of the pins; null if there are none. Equal values of one action have equal
 * commitments.
 * @param salt the salt of the action
 */
export function commitPins(salt: string, values: readonly PinnedValue[]): string | null {
  return values.length === 0 ? null : commitDigest(salt, sha256Hex(canonicalBytes(values as unknown as JsonObject[])));
}

/** A decision in an entry, and the commitment to its pinned values. */
export interface PinningEntry {
  decision: Pick<Decision, "approval">;
  pins?: string;
}

/**
 * Returns whether the entry commits to these facts.
 * @example
 * pinsMatchEntry(entry, action.salt, past?.sources); // true, unless someone altered the values
 */
export function pinsMatchEntry(
  { decision, pins }: PinningEntry,
  salt: string,
  sources?: readonly SourceFact[],
): boolean {
  return commitPins(salt, readPins(decision.approval?.pins ?? [], sources)) === (pins ?? null);
}
