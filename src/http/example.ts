/** Builds an example value of a schema, from its `examples` or else from its members. */
import type { TSchema } from "@sinclair/typebox";

const UUID = "019346a0-0000-7000-8000-000000000000";
const HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const TIME = "2026-01-31T12:00:00.000Z";

/** @param name the name of the member, which is the example value of a string without a known format */
export function buildExample(schema: TSchema, name = "value"): unknown {
  const examples = schema["examples"] as unknown[] | undefined;
  if (examples !== undefined) return examples[0];
  if ("const" in schema) return schema["const"];
  if ("default" in schema) return schema["default"];
  const variants = schema["anyOf"] as TSchema[] | undefined;
  if (variants !== undefined)
    return buildExample(variants.find((variant) => variant["type"] !== "null") ?? (variants[0] as TSchema), name);
  switch (schema["type"]) {
    case "object":
      return Object.fromEntries(
        Object.entries((schema["properties"] ?? {}) as Record<string, TSchema>).map(([key, inner]) => [
          key,
          buildExample(inner, key),
        ]),
      );
    case "array":
      return [buildExample(schema["items"] as TSchema, name)];
    case "integer":
    case "number":
      return (schema["minimum"] as number | undefined) ?? 1;
    case "boolean":
      return true;
    case "null":
      return null;
    case "string":
      return schema["pattern"] === "^[0-9a-f]{64}$"
        ? HASH
        : schema["format"] === "uuid"
          ? UUID
          : schema["format"] === "date-time"
            ? TIME
            : /hash|digest|root/.test(name)
              ? HASH
              : name;
    default:
      return {};
  }
}
