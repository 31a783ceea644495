/** Finds faults in `approval.preview` when the policy is loaded. */
import { parsePreview } from "../decide/preview.ts";
import { describeType, unionMembers, type StaticType } from "./static-types.ts";
import { inferType, VARIABLE_TYPES } from "./type-check.ts";

/**
 * Returns the first fault of the preview as a message; null if the preview is valid. Checks the type of each
 * placeholder, with the tools' schemas for the members of `params`.
 * @param params the type of `params` from `inferParamsType`
 */
export function findPreviewFault(preview: string, params: StaticType): string | null {
  const parts = parsePreview(preview);
  if (typeof parts === "string") return parts;
  for (const part of parts) {
    if (!("source" in part)) continue;
    const inferred = inferType(part.source, "value", new Map([...VARIABLE_TYPES, ["params", params]]));
    if ("message" in inferred) return inferred.message;
    const types = unionMembers(inferred.type);
    if (types.length > 0 && types.every(({ kind }) => kind === "list" || kind === "map"))
      return `"{${part.source}}" is ${describeType(inferred.type)}; name a member that is a string, a number or a bool`;
  }
  return null;
}
