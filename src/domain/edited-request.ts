/**
 * Requests whose parameters an approver or the policies changed. The submitted request is called proposed, and the
 * changed request is called effective. Entries after the change commit to the effective request, and only this request
 * may run.
 */
import type { ActionRequest } from "./actions.ts";
import { canonicalText } from "./canonical.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "./json.ts";
import type { EditableParameter } from "./policy/policy-types.ts";
import { commitDigest, encodeRequest, parseCompleteRequest } from "./request.ts";

/** The effective request as the action's row stores it. */
interface StoredEdit {
  /** Time of the change. Milliseconds. */
  at: number;
  /** Principal of the approver, or `CHANGED_BY_POLICIES`. */
  by: string;
  comment: string | null;
  request: ActionRequest;
  /** 32 random bytes, hex. */
  salt: string;
}

/** Author of a change that obligations of rules made. Not a valid principal, because principals contain a colon. */
export const CHANGED_BY_POLICIES = "policies";

/** The columns of an action's row that determine what may run. */
interface RequestColumns {
  request: string;
  request_hash: string;
  salt: string;
  effective: string | null;
}

export function encodeEdit(edit: StoredEdit): string {
  return canonicalText(edit as unknown as JsonValue);
}

/**
 * Decodes the column `effective`. Returns null if the request was not changed. Throws SyntaxError if the service did
 * not write the value.
 */
export function decodeEdit(text: string | null): StoredEdit | null {
  if (text === null) return null;
  const edit = JSON.parse(text) as StoredEdit;
  parseCompleteRequest({ request: JSON.stringify(edit.request) });
  if (typeof edit.salt !== "string" || typeof edit.by !== "string" || encodeEdit(edit) !== text)
    throw new SyntaxError("the row's effective request is not what the service writes");
  return edit;
}

/** Returns the row's commitment to the request that may run: the effective request, or else the submitted one. */
export function effectiveCommitment({ effective, salt, request_hash }: Omit<RequestColumns, "request">): string {
  const edit = decodeEdit(effective);
  return edit === null ? commitDigest(salt, request_hash) : commitDigest(edit.salt, encodeRequest(edit.request).hash);
}

/** Returns the hash of the request that may run. */
export function effectiveRequestHash({
  effective,
  request_hash,
}: Pick<RequestColumns, "effective" | "request_hash">): string {
  const edit = decodeEdit(effective);
  return edit === null ? request_hash : encodeRequest(edit.request).hash;
}

/**
 * Returns the request that may run; null if it was erased. Throws SyntaxError if the row was not written by the
 * service.
 * @example
 * const request = effectiveRequest(row); // with the parameters that an approver changed
 */
export function effectiveRequest(row: Pick<RequestColumns, "request" | "effective">): ActionRequest | null {
  return decodeEdit(row.effective)?.request ?? parseCompleteRequest(row);
}

/** Returns the member at a path such as `params.amount`; null if the parameters do not have it. */
export function findParameter(
  params: JsonObject,
  path: string,
): { parent: JsonObject; name: string; value: JsonValue } | null {
  const names = path.split(".").slice(1);
  const name = names.pop() as string;
  let parent: JsonValue | undefined = params;
  for (const each of names) parent = isJsonObject(parent) && Object.hasOwn(parent, each) ? parent[each] : undefined;
  return isJsonObject(parent) && Object.hasOwn(parent, name)
    ? { parent, name, value: parent[name] as JsonValue }
    : null;
}

/**
 * Combines the parameters that several rules let approvers change. The result contains only parameters that every rule
 * lets approvers change, within the bounds of every rule.
 */
export function combineEditableParameters(lists: readonly (readonly EditableParameter[])[]): EditableParameter[] {
  const [first = [], ...others] = lists;
  return first.flatMap((terms) => {
    const all = [terms, ...others.flatMap((list) => list.find(({ path }) => path === terms.path) ?? [])];
    return all.length === lists.length ? [combineBounds(terms.path, all)] : [];
  });
}

function combineBounds(path: string, all: readonly EditableParameter[]): EditableParameter {
  const withoutUndefined = <T>(values: readonly (T | undefined)[]): T[] =>
    values.filter((value) => value !== undefined);
  const mins = withoutUndefined(all.map(({ min }) => min));
  const maxes = withoutUndefined(all.map(({ max }) => max));
  const lengths = withoutUndefined(all.map(({ max_length }) => max_length));
  const [values, ...more] = withoutUndefined(all.map(({ one_of }) => one_of));
  return {
    ...(maxes.length === 0 ? {} : { max: Math.min(...maxes) }),
    ...(lengths.length === 0 ? {} : { max_length: Math.min(...lengths) }),
    ...(mins.length === 0 ? {} : { min: Math.max(...mins) }),
    ...(values === undefined ? {} : { one_of: values.filter((value) => more.every((list) => list.includes(value))) }),
    path,
  };
}

/** Returns true if the row's effective request and its hash match the commitments in the entries. */
export function matchesRecordedEdit(
  recorded: { commitment: string; at: number; by: { principal: string } | null; comment: string | null } | null,
  row: { effective: string | null; effective_hash: string | null },
): boolean {
  try {
    const edit = decodeEdit(row.effective);
    if (edit === null || recorded === null) return edit === null && recorded === null && row.effective_hash === null;
    const { at, by, comment, commitment } = recorded;
    const { hash } = encodeRequest(edit.request);
    if (row.effective_hash !== hash) return false;
    return (
      commitDigest(edit.salt, hash) === commitment &&
      edit.at === at &&
      edit.by === (by?.principal ?? CHANGED_BY_POLICIES) &&
      edit.comment === comment
    );
  } catch {
    return false;
  }
}
