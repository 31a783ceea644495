/** Selects actions to erase by the content of their request and result. */
import { decodeEdit, type JsonValue, parseStoredRequest } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

type Scalar = string | number | boolean | null;

export type ContentFilter = (row: ActionRow) => boolean;

const ROOTS = ["params", "context", "result"];

/**
 * Returns a filter for actions that contain exactly this value, at an RFC 6901 pointer or anywhere. Throws
 * VALIDATION_FAILED for a value that nearly every action contains, and for an invalid pointer.
 */
export function createContentFilter(value: Scalar, pointer?: string): ContentFilter {
  if (pointer === undefined) {
    if (value === null || value === "" || typeof value === "boolean")
      throw validationError("/value", "is too common to search for everywhere; send a `pointer` as well");
    return (row) => contentsOf(row).some((content) => containsValue(content, value));
  }
  const path = parsePointer(pointer);
  return (row) => contentsOf(row).some((content) => valueAt(content, path) === value);
}

/** Returns the submitted request, and the one that an approver changed it to. */
function contentsOf(row: ActionRow): JsonValue[] {
  const requests = [parseStoredRequest(row), decodeEdit(row.effective)?.request ?? null];
  const result = row.result === null ? null : (JSON.parse(row.result) as JsonValue);
  return requests.flatMap((request) =>
    request === null ? [] : { params: request.params, context: request.context, result },
  );
}

/** Iterates instead of recursing, because values may be nested deeply. */
function containsValue(content: JsonValue, value: Scalar): boolean {
  const open: JsonValue[] = [content];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === value) return true;
    if (typeof next === "object" && next !== null) open.push(...Object.values(next as Record<string, JsonValue>));
  }
  return false;
}

function valueAt(content: JsonValue, path: readonly string[]): JsonValue | undefined {
  let current: JsonValue | undefined = content;
  for (const name of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, name)) return undefined;
    current = (current as Record<string, JsonValue>)[name];
  }
  return current;
}

function parsePointer(pointer: string): string[] {
  const [, ...path] = pointer.split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer) || path.length < 2 || !ROOTS.includes(path[0] ?? ""))
    throw validationError(
      "/pointer",
      "must be an RFC 6901 pointer into params, context or result, such as /params/customer/email",
    );
  return path;
}

export function validationError(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", `the body does not have the expected form: ${pointer}: ${detail}`, {
    errors: [{ pointer, detail }],
  });
}
