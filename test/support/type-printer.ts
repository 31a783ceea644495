/** Prints JSON Schemas of the OpenAPI document as TypeScript. Supports only what the client's types need. */

// OpenAPI documents are read without types.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Schema = any;

export interface Printed {
  name: string;
  schema: Schema;
  /** True for a type that clients send. Optional members then also accept undefined. */
  sent?: boolean;
  /** Members of the schema to omit. */
  without?: readonly string[];
}

/**
 * Returns an interface for each type. A reference to one of `types` becomes its name. Other references become
 * `Record<string, unknown>`.
 */
export function printTypes(types: readonly Printed[]): string {
  const names = new Set(types.map(({ name }) => name));
  return types
    .map(({ name, schema, sent = false, without = [] }) => {
      const properties = Object.fromEntries(
        Object.entries(schema.properties as object).filter(([member]) => !without.includes(member)),
      );
      return `export interface ${name} ${objectOf({ ...schema, properties }, sent, names, "")}\n`;
    })
    .join("\n");
}

/**
 * Returns one member for each operation under /v1, such as `"GET /v1/actions/{id}"`, with the types of its query, its
 * body and its JSON response. Missing ones have the type `never`.
 */
export function printOperations(name: string, { paths, components }: Schema): string {
  const schemas = Object.entries(components.schemas as Record<string, Schema>).filter(
    ([, { properties }]) => properties,
  );
  const names = new Set(schemas.map(([schemaName]) => schemaName));
  const interfaces = printTypes(schemas.map(([schemaName, schema]) => ({ name: schemaName, schema })));
  const operations = Object.entries(paths as Record<string, Record<string, Schema>>)
    .filter(([path]) => path.startsWith("/v1/"))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => {
        const query = queryOf(operation);
        const body = operation.requestBody?.content["application/json"]?.schema;
        const success = Object.entries(operation.responses as Record<string, Schema>).find(
          ([status, { content }]) => status.startsWith("2") && content?.["application/json"] !== undefined,
        );
        const response = success?.[1].content["application/json"].schema;
        const print = (schema: Schema, sent: boolean): string => typeOf(schema, sent, names, "    ");
        return [
          `  "${method.toUpperCase()} ${path}": {`,
          `    query: ${Object.keys(query.properties as object).length === 0 ? "never" : objectOf(query, true, names, "    ")};`,
          `    body: ${body === undefined ? "never" : print(body, true)};`,
          `    response: ${response === undefined ? "never" : print(response, false)};`,
          "  };",
        ].join("\n");
      }),
    );
  return `${interfaces}\nexport interface ${name} {\n${operations.join("\n")}\n}\n`;
}

/** Returns an operation's query parameters as the schema of an object. */
export function queryOf({ parameters = [] }: Schema): Schema {
  const query = (parameters as Schema[]).filter((parameter) => parameter.in === "query");
  return {
    required: query.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(query.map(({ name, schema, description }) => [name, { description, ...schema }])),
  };
}

function objectOf({ properties, required = [] }: Schema, sent: boolean, names: Set<string>, indent: string): string {
  const inner = `${indent}  `;
  const lines = Object.entries(properties as Record<string, Schema>).flatMap(([name, schema]) => {
    const optional = !(required as string[]).includes(name);
    const words = descriptionOf(schema);
    const type = typeOf(schema, sent, names, inner);
    return [
      ...(words === null ? [] : [`${inner}/** ${words} */`]),
      `${inner}${name}${optional ? "?" : ""}: ${type}${optional && sent ? " | undefined" : ""};`,
    ];
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

function typeOf(schema: Schema, sent: boolean, names: Set<string>, indent: string): string {
  const print = (part: Schema): string => typeOf(part, sent, names, indent);
  if (schema.$ref !== undefined) {
    const name = /[^/]+$/.exec(schema.$ref as string)?.[0] ?? "";
    return names.has(name) ? name : "Record<string, unknown>";
  }
  if (schema.anyOf !== undefined) return [...new Set((schema.anyOf as Schema[]).map(print))].join(" | ");
  if (schema.enum !== undefined) return (schema.enum as unknown[]).map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "array": {
      const item = print(schema.items);
      return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return schema.properties === undefined
        ? `Record<string, ${schema.additionalProperties?.type === "string" ? "string" : "unknown"}>`
        : objectOf(schema, sent, names, indent);
    case "string":
    case "boolean":
    case "null":
      return schema.type as string;
    case undefined:
      return "unknown";
    default:
      throw new Error(`cannot print a type for ${JSON.stringify(schema)}`);
  }
}

/** Returns the schema's description, or that of the other type in a union with null. */
function descriptionOf(schema: Schema): string | null {
  const words: unknown =
    schema.description ?? schema.anyOf?.find(({ description }: Schema) => description)?.description;
  return typeof words === "string" ? words.replaceAll("*/", "*\\/") : null;
}
