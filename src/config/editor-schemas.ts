/** JSON Schemas for completion and validation in editors, generated from the schemas that the service uses. */
import type { TSchema } from "@sinclair/typebox";
import { ConfigSchema } from "./index.ts";
import { PolicySchema, PolicyTestSchema } from "../domain/policy/parse/policy-schema.ts";

export const EDITOR_SCHEMAS = ["policy", "policy-test", "config"] as const;
export type EditorSchema = (typeof EDITOR_SCHEMAS)[number];

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/**
 * Returns the schema as JSON text that ends in a newline.
 * @param sections schemas of the options of plugins, by name
 */
export function renderEditorSchema(name: EditorSchema, sections: Readonly<Record<string, TSchema>>): string {
  const schemas: Readonly<Record<EditorSchema, TSchema>> = {
    policy: PolicySchema,
    "policy-test": PolicyTestSchema,
    config: relaxForEditors({ ...ConfigSchema, properties: { ...ConfigSchema.properties, ...sections } }),
  };
  return `${JSON.stringify({ $schema: DIALECT, ...schemas[name] }, null, 2)}\n`;
}

const VARIABLE = {
  type: "string",
  pattern: "\\$\\{[^}]+\\}",
  description: "An environment variable, ${NAME} or ${NAME:-default}.",
};

/**
 * Returns a schema of what the file may contain: members with a default are optional, and numbers and booleans may be
 * `${NAME}`.
 */
function relaxForEditors(schema: TSchema): TSchema {
  const walk = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(walk);
    if (typeof node !== "object" || node === null) return node;
    const copy = Object.fromEntries(
      Object.entries(node).map(([key, value]) => [
        key,
        key === "default" || key === "examples" ? (value as unknown) : walk(value),
      ]),
    );
    const properties = copy["properties"] as Record<string, { default?: unknown }> | undefined;
    const required = (copy["required"] as string[] | undefined)?.filter(
      (key) => properties?.[key]?.default === undefined,
    );
    if (required?.length === 0) delete copy["required"];
    else if (required !== undefined) copy["required"] = required;
    if (copy["type"] !== "integer" && copy["type"] !== "number" && copy["type"] !== "boolean") return copy;
    const { description, default: fallback, ...rest } = copy;
    return {
      ...(description === undefined ? {} : { description }),
      ...(fallback === undefined ? {} : { default: fallback }),
      anyOf: [rest, VARIABLE],
    };
  };
  return walk(schema) as TSchema;
}
