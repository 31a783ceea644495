/**
 * Generates the OpenAPI 3.1 document from the schemas that validate requests. A schema with a `title` becomes a
 * component of that name.
 */
import { Type, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { ERRORS, type ErrorKind } from "../contract/errors.ts";
import type { ApiDescription } from "../contract/host.ts";
import type { ResponseSpec, Route } from "../contract/resource.ts";
import { listRouteErrors } from "./core-errors.ts";
import { buildExample } from "./example.ts";
import { Components } from "./openapi-components.ts";

type Json = Record<string, unknown>;

interface OpenApiOptions extends ApiDescription {
  routes: readonly Route[];
  /** Errors of plugins. */
  errors: readonly ErrorKind[];
  /** Schemas of the entry types that features declare. */
  records: readonly TSchema[];
  /** Total number of scopes. A route that accepts all of them is documented as accepting any key. */
  scopes: number;
  version: string;
  /** Base URL of the operations. */
  server: string;
}

const FieldErrorSchema = Type.Object(
  {
    pointer: Type.Optional(Type.String({ description: "RFC 6901 pointer into the body." })),
    parameter: Type.Optional(Type.String({ description: "Name of a query or path parameter, or of a header." })),
    detail: Type.String(),
    line: Type.Optional(Type.Integer({ description: "Line in a YAML body, starting at 1." })),
    column: Type.Optional(Type.Integer({ description: "Column in a YAML body, starting at 1." })),
  },
  { additionalProperties: false },
);

/** Returns the schema of a problem document (RFC 9457). */
function problemSchema(pluginErrors: readonly ErrorKind[]): TSchema {
  return Type.Object(
    {
      type: Type.String({ description: "Reference to the documentation of the code." }),
      title: Type.String(),
      status: Type.Integer(),
      detail: Type.String({ description: "What went wrong, and what to do." }),
      code: Type.Union(
        [...Object.keys(ERRORS), ...pluginErrors.map(({ code }) => code)].map((code) => Type.Literal(code)),
        { description: "Stable identifier of the error, for programs." },
      ),
      request_id: Type.String(),
      errors: Type.Optional(Type.Array(FieldErrorSchema)),
    },
    { title: "Problem", additionalProperties: false },
  );
}

export function openApiDocument(options: OpenApiOptions): Json {
  const components = new Components({ CoreEntry: options.records });
  const paths: Record<string, Json> = {};
  for (const route of [...options.routes].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))) {
    const path = route.path.replaceAll(/:([A-Za-z_]+)\+?/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = renderOperation(route, components, options.scopes);
  }
  const used = new Set(options.routes.map(({ tag }) => tag));
  components.refer(problemSchema(options.errors));
  return {
    openapi: "3.1.1",
    info: {
      title: "Assent",
      version: options.version,
      description: options.description,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: options.server }],
    tags: [...used]
      .sort()
      .map((name) => ({ name, ...(options.tags[name] === undefined ? {} : { description: options.tags[name] }) })),
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          bearerFormat: "assent_…",
          description: "An API key: `Authorization: Bearer assent_…`. Each operation names the scope that it needs.",
        },
      },
      headers: {
        RequestId: { description: "Identifies this request in the log of the service.", schema: { type: "string" } },
        ETag: { description: "Entity tag, for If-None-Match and If-Match.", schema: { type: "string" } },
        IdempotencyReplayed: {
          description:
            "`true` if this request created nothing and this is the response of the first request with the key.",
          schema: { type: "string" },
        },
      },
      schemas: components.schemas,
      examples: Object.fromEntries(
        options.routes
          .flatMap(listRouteErrors)
          .sort((a, b) => (a.code < b.code ? -1 : 1))
          .map((kind) => [kind.code, { summary: kind.title, value: problemExample(kind) }]),
      ),
    },
  };
}

function renderOperation(route: Route, components: Components, scopesInAll: number): Json {
  const scopes = route.scope === null ? [] : [route.scope].flat();
  const named = scopes.length === scopesInAll ? "any" : scopes.map((scope) => `\`${scope}\``).join(" or ");
  const needs = scopes.length === 0 ? "Needs no key." : `Scope: ${named}.`;
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, needs].filter((part) => part !== undefined).join("\n\n"),
    ...(scopes.length === 0 ? { security: [] } : { "x-scopes": scopes }),
    ...parametersOf(route, components),
    ...(route.body === undefined && route.textBodies === undefined
      ? {}
      : { requestBody: requestBody(route, components) }),
    responses: {
      ...successResponses(route, components),
      ...errorResponses(listRouteErrors(route), route.errorContentType),
    },
  };
}

/** Returns the id of an operation: `POST /v1/actions/:id/approval` → `postActionsByIdApproval`. */
function operationId({ method, path }: Route): string {
  const words = path.split(/[/.-]/).filter((word) => word !== "" && word !== "v1");
  const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
  return (
    method.toLowerCase() +
    words
      .map((word) => (word.startsWith(":") ? `By${capital(word.slice(1).replace("+", ""))}` : capital(word)))
      .join("")
  );
}

function parametersOf(route: Route, components: Components): Json {
  const renderParameters = (location: "path" | "query" | "header", properties: Record<string, TSchema> = {}): Json[] =>
    Object.entries(properties).map(([name, schema]) => {
      const { description, ...rest } = components.inline(schema) as Json & { description?: string };
      const required = location === "path" || !isOptional(schema);
      return {
        name,
        in: location,
        required,
        ...(description === undefined ? {} : { description }),
        schema: rest,
        ...(location === "path" ? { example: buildExample(schema, name) } : {}),
      };
    });
  const named = [...route.path.matchAll(/:([A-Za-z_]+)/g)].map(([, name]) => name as string);
  const params = Object.fromEntries(
    named.map((name) => [name, (route.params?.properties[name] as TSchema | undefined) ?? Type.String()]),
  );
  const idempotency =
    route.idempotent === true
      ? {
          "Idempotency-Key": Type.Optional(
            Type.String({
              pattern: "^[\\x21-\\x7e]{1,255}$",
              description:
                "A repeated request with the same key and body creates nothing and returns the result of the first.",
            }),
          ),
        }
      : {};
  const parameters = [
    ...renderParameters("path", params),
    ...renderParameters("query", route.query?.properties),
    ...renderParameters("header", { ...idempotency, ...route.headers?.properties }),
  ];
  return parameters.length === 0 ? {} : { parameters };
}

function isOptional(schema: TSchema): boolean {
  return Object.getOwnPropertySymbols(schema).some((symbol) => symbol.description === "TypeBox.Optional");
}

function requestBody(route: Route, components: Components): Json {
  const content: Json = {};
  if (route.body !== undefined)
    content["application/json"] = { schema: components.refer(route.body), example: buildExample(route.body) };
  for (const type of route.textBodies ?? []) content[type] = { schema: { type: "string" } };
  return { required: route.body === undefined || !Value.Check(route.body, {}), content };
}

const replayed = { "Idempotency-Replayed": { $ref: "#/components/headers/IdempotencyReplayed" } };

function successResponses(route: Route, components: Components): Json {
  const answers: Json = {};
  for (const [status, spec] of Object.entries(route.responses)) {
    const tagged = route.method === "GET" && status === "200" && spec.contentType !== "application/octet-stream";
    answers[status] = {
      description: spec.description,
      headers: {
        "X-Request-Id": { $ref: "#/components/headers/RequestId" },
        ...(tagged ? { ETag: { $ref: "#/components/headers/ETag" } } : {}),
        ...(route.idempotent === true ? replayed : {}),
        ...Object.fromEntries(
          Object.entries(spec.headers ?? {}).map(([name, description]) => [
            name,
            { description, schema: { type: "string" } },
          ]),
        ),
      },
      ...contentOf(spec, components),
    };
    if (tagged) answers["304"] = { description: "Not modified: `If-None-Match` names the current representation." };
  }
  return answers;
}

function contentOf(spec: ResponseSpec, components: Components): Json {
  const content: Json = {};
  const type = spec.contentType ?? (spec.schema === undefined ? null : "application/json");
  if (type !== null) {
    content[type] =
      spec.schema === undefined
        ? { schema: type === "application/octet-stream" ? {} : { type: "string" } }
        : { schema: components.refer(spec.schema), example: buildExample(spec.schema) };
  }
  for (const other of spec.otherContentTypes ?? []) content[other] = { schema: { type: "string" } };
  return Object.keys(content).length === 0 ? {} : { content };
}

/**
 * Returns the responses for these errors, one for each status.
 * @param otherType the media type of errors in the form of another protocol
 */
function errorResponses(kinds: readonly ErrorKind[], otherType?: string): Json {
  const byStatus = new Map<number, ErrorKind[]>();
  for (const kind of kinds) byStatus.set(kind.status, [...(byStatus.get(kind.status) ?? []), kind]);
  const answers: Json = {};
  for (const [status, listed] of byStatus) {
    const examples = Object.fromEntries(listed.map(({ code }) => [code, { $ref: `#/components/examples/${code}` }]));
    answers[String(status)] = {
      description: listed.map(({ code, title }) => `\`${code}\`: ${title}.`).join(" "),
      headers: { "X-Request-Id": { $ref: "#/components/headers/RequestId" } },
      content: {
        "application/problem+json": {
          schema: {
            allOf: [
              { $ref: "#/components/schemas/Problem" },
              { type: "object", properties: { code: { enum: listed.map(({ code }) => code) } } },
            ],
          },
          examples,
        },
        ...(otherType === undefined ? {} : { [otherType]: { schema: { type: "object" } } }),
      },
    };
  }
  return answers;
}

function problemExample({ code, status, title }: ErrorKind): Json {
  return {
    type: `/docs/errors#${code.toLowerCase().replaceAll("_", "-")}`,
    title,
    status,
    detail: "one sentence that says what went wrong and what to do",
    code,
    request_id: "019346a0-0000-7000-8000-000000000000",
  };
}
