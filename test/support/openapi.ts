/** Validates responses against the OpenAPI document. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

export interface Operation {
  method: string;
  path: string;
  operationId: string;
  // OpenAPI documents are read without types.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  spec: any;
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Document = any;

export interface ResponseValidator {
  operations: Operation[];
  /** Returns the faults of a response to this operation. The list is empty if the response conforms. */
  faults(operation: Operation, answer: { status: number; headers: Headers; text: string }): string[];
  /** Returns the faults of a value compared with a schema of the document. */
  valueFaults(schema: object, value: unknown): string[];
}

export function createResponseValidator(document: Document): ResponseValidator {
  const ajv = new Ajv2020({ strict: false, allErrors: false, inlineRefs: false, code: { optimize: false } });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  // A custom format. `src/domain/names.ts` defines what it accepts.
  ajv.addFormat("name", true);
  ajv.addSchema(document as object, "doc");
  const known = new Map<string, (value: unknown) => string[]>();

  function check(schema: object): (value: unknown) => string[] {
    const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"doc#/');
    let validate = known.get(text);
    if (validate === undefined) {
      const compiled = ajv.compile(JSON.parse(text) as object);
      validate = (value) =>
        compiled(value)
          ? []
          : (compiled.errors ?? []).map(
              (error) => `${error.instancePath} ${error.message ?? ""} ${JSON.stringify(error.params)}`,
            );
      known.set(text, validate);
    }
    return validate;
  }

  const operations: Operation[] = [];
  for (const [path, methods] of Object.entries(
    document.paths as Record<string, Record<string, { operationId: string }>>,
  )) {
    for (const [method, spec] of Object.entries(methods))
      operations.push({ method: method.toUpperCase(), path, operationId: spec.operationId, spec });
  }
  return {
    operations,
    valueFaults: (schema, value) => check(schema)(value),
    faults(operation, { status, headers, text }) {
      const where = `${operation.method} ${operation.path} → ${status}`;
      const found: string[] = [];
      if (headers.get("x-request-id") === null) found.push(`${where}: no X-Request-Id`);
      const response = operation.spec.responses[String(status)];
      if (response === undefined) return [...found, `${where} is not documented: ${text.slice(0, 200)}`];
      for (const name of ["Action-Joined", "Idempotency-Replayed"])
        if (headers.has(name) && response.headers?.[name] === undefined)
          found.push(`${where}: the header ${name} is not documented`);
      const type = headers.get("content-type")?.split(";")[0] ?? null;
      const media = response.content?.[type ?? ""];
      if (response.content === undefined)
        return text === "" ? found : [...found, `${where}: a body where none is documented`];
      if (media === undefined) return [...found, `${where}: the media type ${type} is not documented`];
      if (type === null || !/[/+]json$/.test(type)) return found;
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch {
        return [...found, `${where}: not JSON: ${text.slice(0, 100)}`];
      }
      found.push(...check(media.schema as object)(value).map((fault) => `${where}: ${fault}`));
      // SCIM sends the status of an error as a string.
      if (status >= 400 && Number((value as { status?: number | string }).status) !== status)
        found.push(`${where}: the problem says ${(value as { status?: number }).status}`);
      return found;
    },
  };
}
