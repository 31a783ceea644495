import { canonicalText, type JsonValue } from "../../src/core.ts";

/** A member of a recorded decision or entry, compared with the replay. */
export interface FieldComparison {
  field: string;
  recorded: unknown;
  replayed: unknown;
  equal: boolean;
}

/** Compares members by their canonical JSON. A member that is missing on one side counts as different. */
export function compareFields(recorded: Record<string, unknown>, replayed: Record<string, unknown>): FieldComparison[] {
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(replayed)])].sort();
  return names.map((field) => {
    const a = recorded[field];
    const b = replayed[field];
    const equal =
      (a === undefined) === (b === undefined) &&
      (a === undefined || canonicalText(a as JsonValue) === canonicalText(b as JsonValue));
    return { field, recorded: a ?? null, replayed: b ?? null, equal };
  });
}
