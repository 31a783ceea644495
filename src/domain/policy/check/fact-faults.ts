/** Finds type faults in the inputs of a policy's facts. */
import type { NamedValueFault } from "../condition/named-values.ts";
import type { PolicyDocument } from "../policy-types.ts";
import { ANY_MAP, type StaticType } from "./static-types.ts";
import { findTypeFault } from "./type-check.ts";

/**
 * Returns the first type fault of each input. An input must be a string, a number or a boolean.
 * @param types the types of the named values
 */
export function findFactFaults(
  facts: NonNullable<PolicyDocument["facts"]>,
  types: ReadonlyMap<string, StaticType>,
): NamedValueFault[] {
  return Object.entries(facts).flatMap(([name, { with: inputs = {} }]) =>
    Object.entries(inputs).flatMap(([input, source]) => {
      const fault = findTypeFault(source, "per", ANY_MAP, types);
      return fault === null ? [] : [{ pointer: `/facts/${name}/with/${input}`, ...fault }];
    }),
  );
}
