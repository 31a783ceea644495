/** Which actions an erasure is about, by what was asked and reported. */
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { type JsonValue, parseStoredRequest } from "../../src/core.ts";

type Scalar = string | number | boolean | null;

export type ContentFilter = (row: ActionRow) => boolean;

const ROOTS = ["params", "context", "result"];

/**
 * Actions that hold exactly this value: at the place that an RFC 6901 pointer names, or anywhere. Throws
 * VALIDATION_FAILED for what could only be a mistake.
 */
export function createContentFilter(value: Scalar, pointer?: string): ContentFilter {
  if (pointer === undefined) {
    if (value === null || value === "" || typeof value === "boolean")
      throw validationError("/value", "too many actions hold it somewhere; say where with `pointer`");
    return (row) => containsValue(contentOf(row), value);
  }
  const path = parsePointer(pointer);
  return (row) => valueAt(contentOf(row), path) === value;
}

function contentOf(row: ActionRow): JsonValue {
  const request = parseStoredRequest(row);
  if (request === null) return null;
  const result = row.result === null ? null : (JSON.parse(row.result) as JsonValue);
  return { params: request.params, context: request.context, result };
}

/** Without recursion: values are nested as deeply as a request may be. */
function containsValue(content: JsonValue, value: Scalar): boolean {
  const open: JsonValue[] = [content];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === value) return true;
    if (typeof next === "object" && next !== null) open.push(...Object.values(next as Record<string, JsonValue>));
  }
  return false;
}

function valueAt(content: JsonValue, path: readonly string[]): JsonValue | undefined {
  let here: JsonValue | undefined = content;
  for (const name of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, name)) return undefined;
    here = (here as Record<string, JsonValue>)[name];
  }
  return here;
}

function parsePointer(pointer: string): string[] {
  const [, ...path] = pointer.split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer) || path.length < 2 || !ROOTS.includes(path[0] ?? ""))
    throw validationError(
      "/pointer",
      "write an RFC 6901 pointer into params, context or result, such as /params/customer/email",
    );
  return path;
}

export function validationError(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", `the body does not have the expected form: ${pointer}: ${detail}`, {
    errors: [{ pointer, detail }],
  });
}
