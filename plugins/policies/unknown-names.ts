/** Finds reviewers and fact sources to which policies refer but which the configuration does not define. */
import { findSimilarName, type PolicyDocument } from "../../src/core.ts";

/**
 * Returns a sentence for each reviewer of a policy that is not configured, in order of appearance.
 * @param configured the names of the configured reviewers
 */
export function findUnknownReviewers(
  documents: readonly PolicyDocument[],
  configured: readonly string[],
): { message: string }[] {
  return documents.flatMap(({ policy, rules, limits = [] }) => {
    const named = new Set(
      [...rules, ...limits].flatMap(({ approval }) => approval?.reviewers ?? []).map(({ name }) => name),
    );
    return [...named]
      .filter((name) => !configured.includes(name))
      .map((name) => {
        const suggestion = findSimilarName(name, configured);
        const hint = suggestion === null ? "" : `; did you mean "${suggestion}"?`;
        return {
          message: `the policy "${policy}" names the reviewer "${name}", which is not configured, so people decide${hint}`,
        };
      });
  });
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
      const configuredSource = configured.find((candidate) => candidate.name === source);
      if (configuredSource === undefined) {
        const suggestion = findSimilarName(
          source,
          configured.map((item) => item.name),
        );
        const hint = suggestion === null ? "" : `; did you mean "${suggestion}"?`;
        return [{ message: `${fact} names the source "${source}", which is not configured, so its rules deny${hint}` }];
      }
      const [given, taken] = [Object.keys(inputs).sort().join(", "), [...configuredSource.inputs].sort().join(", ")];
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
