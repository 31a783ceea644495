/** Parses and validates query and path parameters. */
import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { Refusal, type FieldError } from "../contract/errors.ts";
import { explainFault, lastPointerSegment } from "../domain/validation.ts";
import { findSimilarName } from "../domain/similar-name.ts";
import { createSchemaCheck } from "./schema-check.ts";

export type ParameterReader<T> = (parameters: Iterable<readonly [string, string]>) => T;

/**
 * Returns a function that reads and validates the parameters. The function rejects unknown and duplicate parameters. If
 * it ignored a mistyped filter, a list would contain more items than the client wanted.
 */
export function createParameterReader(
  schema: TObject | undefined,
  kind: "query" | "path",
): ParameterReader<Record<string, unknown>> {
  const names = Object.keys(schema?.properties ?? {});
  // Without a schema, path parameters stay strings. The router returns only parameters in the path.
  if (schema === undefined && kind === "path") return (parameters) => Object.fromEntries(parameters);
  const check = schema === undefined ? null : createSchemaCheck(schema);
  return (parameters) => {
    const values: Record<string, unknown> = {};
    const errors: FieldError[] = [];
    for (const [name, text] of parameters) {
      if (!names.includes(name)) {
        if (schema?.additionalProperties === true) continue;
        const suggestion = findSimilarName(name, names);
        errors.push({
          parameter: name,
          detail: `this parameter does not exist${suggestion === null ? "" : `; did you mean "${suggestion}"?`}`,
        });
      } else if (name in values) {
        errors.push({ parameter: name, detail: "this parameter appears twice; send it once" });
      } else {
        values[name] = convert((schema as TObject).properties[name] as TSchema, text);
      }
    }
    if (check !== null && errors.length === 0 && !check().Check(values)) {
      const seen = new Set<string>();
      for (const fault of check().Errors(values)) {
        if (seen.has(fault.path)) continue;
        seen.add(fault.path);
        errors.push({ parameter: lastPointerSegment(fault.path), detail: explainFault(fault, names) });
      }
    }
    const first = errors[0];
    if (first !== undefined) {
      throw new Refusal(
        "VALIDATION_FAILED",
        `the ${kind} parameter "${first.parameter ?? ""}" cannot be used: ${first.detail}`,
        { errors },
      );
    }
    return values;
  };
}

/**
 * Converts a parameter to the type of its schema. If that is not possible, returns the string unchanged, so that
 * validation reports it.
 */
function convert(schema: TSchema, text: string): unknown {
  switch (schema[Kind]) {
    case "Integer":
    case "Number":
      return /^-?\d{1,16}(?:\.\d{1,16})?$/.test(text) ? Number(text) : text;
    case "Boolean":
      return text === "true" ? true : text === "false" ? false : text;
    default:
      return text;
  }
}

/** Returns the decoded name-value pairs of a URL's query. */
export function parseQuery(url: string): Iterable<readonly [string, string]> {
  const at = url.indexOf("?");
  return at < 0 ? [] : new URLSearchParams(url.slice(at).replace(/#.*$/, ""));
}
