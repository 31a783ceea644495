/**
 * JSON Schemas for editors, from the schemas that the service validates with: completion, hover texts and marks while
 * a policy, its tests or `assent.yaml` are written. The published files stay equal to this by a test.
 */
import type { TSchema } from "@sinclair/typebox";
import { ConfigSchema } from "./index.ts";
import { PolicySchema, PolicyTestSchema } from "../domain/policy/parse/schema.ts";

export type EditorSchema = "policy" | "policy-test" | "config";

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** Where the files are published, from `src/`. */
export const EDITOR_SCHEMA_FILES: Readonly<Record<EditorSchema, string>> = {
  policy: "domain/policy/parse/policy.schema.json",
  "policy-test": "domain/policy/parse/policy-test.schema.json",
  config: "config/assent.schema.json",
};

/** As text, with a line break at its end. */
export function renderEditorSchema(name: EditorSchema): string {
  const schemas: Readonly<Record<EditorSchema, TSchema>> = {
    policy: PolicySchema,
    "policy-test": PolicyTestSchema,
    config: relaxForEditors(ConfigSchema),
  };
  return `${JSON.stringify({ $schema: DIALECT, ...schemas[name] }, null, 2)}\n`;
}

const VARIABLE = {
  type: "string",
  pattern: "\\$\\{[^}]+\\}",
  description: "An environment variable, ${NAME} or ${NAME:-default}.",
};

/** The configuration as it stands in the file: what has a default may be left out, and numbers and booleans may be `${NAME}`. */
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
