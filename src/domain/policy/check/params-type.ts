/** Determines the type of `params` in a rule from the tool schemas of its policy. */
import { normalizePatterns } from "../compile/name-patterns.ts";
import { isGlob } from "../compile/glob.ts";
import type { PolicyDocument, RuleDocument, ToolSchemaDocument } from "../policy-types.ts";
import { ANY_MAP, typeOfJsonSchema, createUnion, type StaticType } from "./static-types.ts";

type Matchers = Pick<RuleDocument, "tool" | "operation">;

/**
 * Returns the union of the schemas of all tools and operations that the rule matches. Returns `dyn` if one of these
 * tools has no schema, or if the rule uses a glob.
 */
export function inferParamsType(
  rule: Matchers,
  { tools = [], case_sensitive = false }: Pick<PolicyDocument, "tools" | "case_sensitive">,
): StaticType {
  const named = names(rule.tool, case_sensitive);
  if (named === null || tools.length === 0) return ANY_MAP;
  const operations = names(rule.operation, case_sensitive);
  const types: StaticType[] = [];
  for (const tool of named) {
    const schemas = tools.filter((schema) => isSameName(schema.tool, tool, case_sensitive));
    const found =
      operations === null
        ? schemasOfAllOperations(schemas)
        : operations.map((operation) => schemaOf(schemas, operation, case_sensitive));
    for (const schema of found) {
      if (schema === undefined) return ANY_MAP;
      types.push(typeOfJsonSchema(schema.params));
    }
  }
  return createUnion(types);
}

/** Returns the schemas that cover all operations; `[undefined]` if some operation might have no schema. */
function schemasOfAllOperations(schemas: readonly ToolSchemaDocument[]): (ToolSchemaDocument | undefined)[] {
  const general = schemas.filter(({ operation }) => operation === undefined);
  return general.length === 0 ? [undefined] : [...schemas];
}

function schemaOf(
  schemas: readonly ToolSchemaDocument[],
  operation: string,
  caseSensitive: boolean,
): ToolSchemaDocument | undefined {
  return (
    schemas.find(
      (schema) => schema.operation !== undefined && isSameName(schema.operation, operation, caseSensitive),
    ) ?? schemas.find((schema) => schema.operation === undefined)
  );
}

/** Returns the names after case folding; null if one of the names is a pattern. */
function names(value: string | string[] | undefined, caseSensitive: boolean): readonly string[] | null {
  if (value === undefined) return null;
  const folded = normalizePatterns([value].flat(), caseSensitive);
  return folded.some(isGlob) ? null : folded;
}

function isSameName(name: string, folded: string, caseSensitive: boolean): boolean {
  return normalizePatterns([name], caseSensitive)[0] === folded;
}
