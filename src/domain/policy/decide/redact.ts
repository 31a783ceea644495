/**
 * Replaces the values of parameters that rules redact, for display and delivery. Decisions, hashes and execution use
 * the original values. A rule redacts parameters of every action that its matchers match, whatever the decision is.
 */
import type { ActionRequest } from "../../actions.ts";
import { decodeEdit, encodeEdit } from "../../edited-request.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import type { EditableParameter } from "../policy-types.ts";
import { matchNamesOf } from "./name-matches.ts";

/** Replaces a redacted value. */
export const REDACTED = "[redacted]";

type Named = Pick<ActionRequest, "agent_id" | "tool" | "operation">;

/** The columns of an action's row that contain its request. */
interface RequestTexts extends Named {
  request: string;
  effective: string | null;
}

/** Returns the paths of the parameters that enforced policies redact in an action, such as `params.card.number`. */
export function findRedactedPaths(
  set: CompiledPolicySet,
  action: Named,
  matches = matchNamesOf(set, action),
): string[] {
  if (!set.redacts) return [];
  const paths = matches
    .policies()
    .flatMap((policy) => (policy.shadow ? [] : matches.rules(policy).flatMap(({ redact }) => redact)));
  return [...new Set(paths)];
}

/**
 * Returns the parameters that an approver can change, except redacted parameters. The service refuses an edit that
 * changes nothing, so an edit could confirm a guess of a redacted value.
 */
export function omitRedactedEditable(
  set: CompiledPolicySet,
  action: Named,
  editable: readonly EditableParameter[],
): EditableParameter[] {
  const redacted = findRedactedPaths(set, action).map((path) => path.split("."));
  return editable.filter(({ path }) => !redacted.some((each) => pathsOverlap(each, path.split("."))));
}

/** Returns true if one path is equal to the other or contains it. */
export function pathsOverlap(a: readonly string[], b: readonly string[]): boolean {
  return a.slice(0, b.length).every((name, i) => name === b[i]);
}

/** Returns the parameters without the redacted members. Suggestions must not mention them. */
export function omitRedacted(set: CompiledPolicySet, action: Named, params: JsonObject): JsonObject {
  return change(params, findRedactedPaths(set, action), undefined);
}

/** Returns the parameters as people see them. */
export function redactParams(set: CompiledPolicySet, action: Named, params: JsonObject): JsonObject {
  return change(params, findRedactedPaths(set, action), REDACTED);
}

/**
 * Returns the row with redacted values in its requests. Do not compute hashes from the result. Does not change a string
 * that cannot be parsed, because a reader cannot display it either.
 * @example
 * const { params } = effectiveRequest(redactRow(set, row)) ?? {}; // { card: { number: "[redacted]" } }
 */
export function redactRow<T extends RequestTexts>(set: CompiledPolicySet, row: T): T {
  const paths = findRedactedPaths(set, row);
  if (paths.length === 0) return row;
  const redact = (request: ActionRequest): ActionRequest => ({
    ...request,
    params: change(request.params, paths, REDACTED),
  });
  const request = unlessUnreadable(row.request, (text) =>
    text === "" ? text : JSON.stringify(redact(JSON.parse(text) as ActionRequest)),
  );
  const effective = unlessUnreadable(row.effective, (text) => {
    const edit = decodeEdit(text);
    return edit === null ? null : encodeEdit({ ...edit, request: redact(edit.request) });
  });
  return { ...row, request, effective };
}

function unlessUnreadable<T extends string | null>(text: T, convert: (text: T) => T): T {
  try {
    return convert(text);
  } catch {
    return text;
  }
}

/** @param replacement undefined removes the members */
function change(params: JsonObject, paths: readonly string[], replacement: string | undefined): JsonObject {
  return paths.reduce<JsonObject>(
    (value, path) => changeMember(value, path.split(".").slice(1), replacement) as JsonObject,
    params,
  );
}

/**
 * Replaces the member at a path, including in each object of a list. If a string, number or boolean is where the path
 * needs an object, replaces it as a whole, because it can contain the value in another form, such as JSON in a string.
 */
function changeMember(
  value: JsonValue,
  names: readonly string[],
  replacement: string | undefined,
): JsonValue | undefined {
  const [name, ...rest] = names;
  if (name === undefined) return replacement;
  if (value === null) return value;
  if (Array.isArray(value))
    return value.map((each) => changeMember(each, names, replacement)).filter((each) => each !== undefined);
  if (!isJsonObject(value)) return replacement;
  // Keep the order of members, which approvers see.
  const members = Object.entries(value).map(
    ([each, member]) => [each, each === name ? changeMember(member, rest, replacement) : member] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => member !== undefined)) as JsonObject;
}
