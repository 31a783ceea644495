/** Prints the types of clients/typescript/api.ts from the schemas of the routes, with the descriptions as comments. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Returns the declarations. @param build a compiled copy of the project, with the layout of dist/ */
export async function renderClientTypes(build) {
  const load = (path) => import(pathToFileURL(join(build, path)).href);
  const loadOptional = async (path) => (existsSync(join(build, path)) ? load(path) : {});
  const actions = await load("plugins/actions/schemas.js");
  const plans = await loadOptional("plugins/plans/schemas.js");
  const events = await load("plugins/events/schemas.js");
  const { Components } = await load("src/http/openapi-components.js");
  return printTypes(new Components(), [
    { name: "Action", schema: actions.ActionRecord },
    { name: "Plan", schema: plans.PlanRecord },
    { name: "ListedPlan", schema: plans.PlanSummary },
    { name: "ActionList", schema: actions.ActionList },
    { name: "Submission", schema: actions.ActionBody, sent: true },
    { name: "Result", schema: actions.ResultBody, sent: true },
    { name: "ListQuery", schema: actions.ListQuery, sent: true, without: ["agent", "offset"] },
    { name: "Event", schema: events.Event },
    { name: "EventsQuery", schema: events.eventsQuery(["decision", "approval", "…"]), sent: true, without: ["agent"] },
  ]);
}

/**
 * Returns an interface for each type. Optional members of types that clients send (`sent`) also accept undefined.
 * The type of a schema of a deleted feature is `any`. A reference to a schema becomes the name of its type, or `Record<string, unknown>` if `types` does not contain it.
 */
function printTypes(components, types) {
  const names = new Map(types.map(({ name, schema }) => [schema?.title, name]));
  return types
    .map(({ name, schema, sent = false, without = [] }) => {
      if (schema === undefined) return `export type ${name} = any;\n`;
      const { properties, required } = components.inline(schema);
      const printed = Object.fromEntries(Object.entries(properties).filter(([member]) => !without.includes(member)));
      return `export interface ${name} ${objectOf({ properties: printed, required }, sent, names, "")}\n`;
    })
    .join("\n");
}

function objectOf({ properties, required = [] }, sent, names, indent) {
  const inner = `${indent}  `;
  const lines = Object.entries(properties).flatMap(([name, schema]) => {
    const optional = !required.includes(name);
    const words = schema.description ?? schema.anyOf?.find(({ description }) => description)?.description;
    return [
      ...(words === undefined ? [] : [`${inner}/** ${words.replaceAll("*/", "*\\/")} */`]),
      `${inner}${name}${optional ? "?" : ""}: ${typeOf(schema, sent, names, inner)}${optional && sent ? " | undefined" : ""};`,
    ];
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

/** The schema of the members whose names are not fixed. */
function membersOf({ additionalProperties, patternProperties = {} }) {
  return Object.values(patternProperties)[0] ?? (typeof additionalProperties === "object" ? additionalProperties : {});
}

function typeOf(schema, sent, names, indent) {
  const print = (part) => typeOf(part, sent, names, indent);
  if (schema.$ref !== undefined) return names.get(/[^/]+$/.exec(schema.$ref)[0]) ?? "Record<string, unknown>";
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(print))].join(" | ");
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
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
      if (schema.properties !== undefined) return objectOf(schema, sent, names, indent);
      return `Record<string, ${print(membersOf(schema))}${sent ? " | undefined" : ""}>`;
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case undefined:
      return "unknown";
    default:
      throw new Error(`cannot print a type for ${JSON.stringify(schema)}`);
  }
}
