/** Finds type faults in the inputs of a policy's facts, and facts whose sources the service does not have. */
import { findSimilarName } from "../../similar-name.ts";
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

/** The properties of a fact source that a policy depends on. */
interface KnownFactSource {
  readonly name: string;
  /** Names of the source's inputs. */
  readonly inputs: readonly string[];
}

/** Returns one sentence for each fact that no configured source can provide, in order of appearance. */
export function findUnknownFactSources(
  documents: readonly PolicyDocument[],
  configured: readonly KnownFactSource[],
): { message: string }[] {
  return documents.flatMap(({ policy, facts = {} }) =>
    Object.entries(facts).flatMap(([name, { source, with: inputs = {} }]) => {
      const fact = `the fact "${name}" of the policy "${policy}"`;
      const known = configured.find((one) => one.name === source);
      if (known === undefined) {
        const suggestion = findSimilarName(
          source,
          configured.map((one) => one.name),
        );
        const hint = suggestion === null ? "" : `; did you mean "${suggestion}"?`;
        return [{ message: `${fact} names the source "${source}", which is not configured, so its rules deny${hint}` }];
      }
      const [given, taken] = [Object.keys(inputs).sort().join(", "), [...known.inputs].sort().join(", ")];
      return given === taken
        ? []
        : [
            {
              message: `${fact} passes ${given || "no inputs"}, and its source "${source}" takes ${taken || "none"}, so its rules deny`,
            },
          ];
    }),
  );
}
