/** Changes parameters of a request as an approver asks, within the bounds of the rules. */
import { type ActionRequest, type combineEditableParameters, encodeRequest, findParameter } from "../../src/core.ts";

type EditableParameter = ReturnType<typeof combineEditableParameters>[number];

/** A value that an approver can give a parameter. */
export type EditedValue = string | number | boolean;

/** The reason why a change is refused: the parameter and the fault. */
interface EditFault {
  path: string;
  detail: string;
}

/**
 * Returns the request with the changed parameters, or the first fault. A change replaces a string, number or boolean
 * with a value of the same type, within the bounds of the rules.
 * @param changes the new values, keyed by path, such as `params.amount`
 */
export function editRequest(
  request: ActionRequest,
  changes: Readonly<Record<string, EditedValue>>,
  editable: readonly EditableParameter[],
): ActionRequest | EditFault {
  const params = structuredClone(request.params);
  for (const [path, value] of Object.entries(changes)) {
    const terms = editable.find((each) => each.path === path);
    if (terms === undefined) return { path, detail: "the rules do not let approvers change it (approval.editable)" };
    const found = findParameter(params, path);
    if (found === null) return { path, detail: "the request does not have it" };
    const { parent, name, value: before } = found;
    if (typeof before === "object" || typeof value !== typeof before)
      return {
        path,
        detail: `it must be a ${typeof before === "object" ? "text, number or boolean" : typeof before}, as in the request`,
      };
    const detail = findBoundFault(value, terms);
    if (detail !== null) return { path, detail };
    parent[name] = value;
  }
  const edited = { ...request, params };
  if (encodeRequest(edited).hash === encodeRequest(request).hash)
    return { path: "", detail: "nothing was changed; vote on the request instead" };
  return edited;
}

/** Returns why the value is outside the bounds of the rules; null if it is within them. */
function findBoundFault(
  value: EditedValue,
  { min, max, one_of: values, max_length: longest }: EditableParameter,
): string | null {
  if (min !== undefined && !(typeof value === "number" && value >= min)) return `it must be at least ${min}`;
  if (max !== undefined && !(typeof value === "number" && value <= max)) return `it must be at most ${max}`;
  if (values !== undefined && !values.includes(value)) return `it must be one of ${JSON.stringify(values)}`;
  if (typeof value === "string" && Array.from(value).length > (longest ?? MAX_EDITED_LENGTH))
    return `it must have at most ${longest ?? MAX_EDITED_LENGTH} characters`;
  return null;
}

/** Maximum length of a string for which the rules do not set `max_length`. Characters. */
const MAX_EDITED_LENGTH = 1000;
