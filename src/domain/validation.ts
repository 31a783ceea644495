/**
 * Registers TypeBox formats with linear-time checks, and explains TypeBox errors in sentences that state what to do.
 */
import { unescapePointerToken } from "./json-pointer.ts";
import { FormatRegistry, Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { ValueErrorType, type ValueError } from "@sinclair/typebox/errors";
import { findNameFault } from "./names.ts";
import { findSimilarName } from "./similar-name.ts";
import { parseRfc3339 } from "./time.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Registers the formats that schemas use. TypeBox has no built-in formats, and rejects every value of an unknown
 * format.
 */
function registerFormats(): void {
  if (!FormatRegistry.Has("uuid")) FormatRegistry.Set("uuid", (value) => UUID.test(value));
  if (!FormatRegistry.Has("name")) FormatRegistry.Set("name", (value) => findNameFault(value) === null);
  if (!FormatRegistry.Has("date-time")) FormatRegistry.Set("date-time", (value) => parseRfc3339(value) !== null);
}

registerFormats();

/** Returns the last segment of an RFC 6901 pointer, unescaped. */
export function lastPointerSegment(pointer: string): string {
  return unescapePointerToken(pointer.slice(pointer.lastIndexOf("/") + 1));
}

/**
 * Returns the fault to report. If a value does not match any variant of a union, this is the fault in the first variant
 * that the value matches in part.
 */
export function findInnermostFault(error: ValueError): ValueError {
  if (error.type !== ValueErrorType.Union) return error;
  for (const variant of error.errors) {
    const first = variant.First();
    if (first !== undefined && first.path.length > error.path.length) return findInnermostFault(first);
  }
  return error;
}

/**
 * Returns one sentence about a fault. `siblings` are the known member names, for a suggestion about an unknown member.
 */
export function explainFault(error: ValueError, siblings: readonly string[]): string {
  const { schema } = error;
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties: {
      const name = lastPointerSegment(error.path);
      const suggestion = findSimilarName(name, siblings);
      return `"${name}" is not recognized${suggestion === null ? "" : `; did you mean "${suggestion}"?`}`;
    }
    case ValueErrorType.ObjectRequiredProperty:
      return "this member is required";
    case ValueErrorType.StringFormat:
      if (schema["format"] === "name") return `the name ${findNameFault(String(error.value)) ?? "is not one"}`;
      return schema["format"] === "uuid"
        ? "expected a UUID in lowercase"
        : schema["format"] === "date-time"
          ? "expected an RFC 3339 time such as 2026-01-31T12:00:00Z"
          : `expected the format ${String(schema["format"])}`;
    case ValueErrorType.StringPattern:
      return typeof schema.description === "string"
        ? `does not have the expected form: ${schema.description}`
        : "does not have the expected form";
    case ValueErrorType.Union:
      return `expected ${describeSchema(schema)}`;
    default:
      return error.message.charAt(0).toLowerCase() + error.message.slice(1);
  }
}

/** Returns a short description of the values that a schema accepts, such as "an object" or "null or a string". */
function describeSchema(schema: TSchema): string {
  if (schema[Kind] === "Union") return (schema["anyOf"] as TSchema[]).map(describeSchema).join(" or ");
  if ("const" in schema) return JSON.stringify(schema["const"]);
  if (typeof schema["type"] === "string")
    return schema["type"] === "object"
      ? "an object"
      : `a ${schema["type"]}`.replace(/^a ([aeiou])/, "an $1").replace("a null", "null");
  return "another value";
}

/** Returns the names of the siblings of the member at `pointer`. */
export function siblingNames(root: TSchema, pointer: string): string[] {
  let schema: TSchema | undefined = root;
  for (const segment of pointer.split("/").slice(1, -1)) {
    if (schema === undefined) return [];
    const properties = schema["properties"] as Record<string, TSchema> | undefined;
    const anyName: TSchema | undefined = Object.values(
      (schema["patternProperties"] as Record<string, TSchema> | undefined) ?? {},
    )[0];
    schema = properties?.[segment] ?? (schema["items"] as TSchema | undefined) ?? anyName;
  }
  return Object.keys((schema as TObject | undefined)?.properties ?? {});
}
