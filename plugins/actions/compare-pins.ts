/** Compares the values of pinned facts at two times. */
import { canonicalText, type JsonValue, type Pin, type PinnedValue } from "../../src/core.ts";

/** The values of one pin at two times. A value is undefined if the fact was not pinned at that time or had no value. */
export interface PinChange extends Pin {
  before: JsonValue | undefined;
  now: JsonValue | undefined;
}

/** Returns the pins whose values differ, including those that only one of the lists contains. */
export function comparePins(before: readonly PinnedValue[], now: readonly PinnedValue[]): PinChange[] {
  const find = (values: readonly PinnedValue[], { path, policy }: Pin): JsonValue | undefined =>
    values.find((value) => value.path === path && value.policy === policy)?.value;
  const textOf = (value: JsonValue | undefined): string => (value === undefined ? "" : canonicalText(value));
  const isListed = (pin: Pin): boolean =>
    before.some((candidate) => candidate.path === pin.path && candidate.policy === pin.policy);
  return [...before, ...now.filter((pin) => !isListed(pin))]
    .map((pin) => ({ path: pin.path, policy: pin.policy, before: find(before, pin), now: find(now, pin) }))
    .filter((change) => textOf(change.before) !== textOf(change.now));
}
