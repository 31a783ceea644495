/**
 * Reads requests of the AuthZEN Authorization API 1.0. Ignores unknown members. Rejects requests that lack required
 * members.
 */
import {
  canonicalText,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  readJsonObject,
  UnreadableRequest,
} from "../../src/core.ts";
import type { GateRequest } from "../actions/api.ts";

const SEMANTICS = ["execute_all", "deny_on_first_deny", "permit_on_first_permit"] as const;
type Semantic = (typeof SEMANTICS)[number];

/** Maximum number of evaluations in one request, enough for a page of a user interface. Each is a separate action. */
const MAX_EVALUATIONS = 50;

/**
 * Members of `context` that belong to the protocol and are not part of the request (ARAP, "Authorization-Relevant
 * Context").
 */
const PROTOCOL_CONTEXT = ["approval", "access_request", "evaluation_id", "evaluated_at", "reason"];

/** Parses the body. Throws UnreadableRequest if it cannot be parsed or has a different content type. */
export function readBody(request: Request, bytes: Uint8Array): JsonObject {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") throw new UnreadableRequest("send the body as application/json");
  return readJsonObject(bytes);
}

interface Evaluation {
  request: GateRequest;
  /** `context.approval`, which the caller got from an approved access request; null if absent. */
  approval: JsonObject | null;
}

/** Reads one evaluation (section 6.1 of the specification). Throws UnreadableRequest. */
export function readEvaluation(body: JsonObject): Evaluation {
  const subject = readEntity(body, "subject");
  const resource = readEntity(body, "resource");
  const action = readObject(body, "action");
  const name = readText(action, "action", "name");
  const context = body["context"] === undefined ? {} : readObject(body, "context");
  const approval = context["approval"];
  return {
    request: {
      agent_id: subject["id"] as string,
      tool: resource["type"] as string,
      operation: name,
      params: { subject, resource, action: propertiesOf(action, "action") },
      context: Object.fromEntries(Object.entries(context).filter(([key]) => !PROTOCOL_CONTEXT.includes(key))),
      meta: { via: "authzen" },
    },
    approval: isJsonObject(approval) ? approval : null,
  };
}

/** Reads a batch (section 7.1). Returns null if the body is a single evaluation. Throws UnreadableRequest. */
export function readEvaluations(body: JsonObject): { items: JsonObject[]; semantic: Semantic } | null {
  const options = body["options"] === undefined ? {} : readObject(body, "options");
  const semantic = options["evaluations_semantic"] ?? "execute_all";
  if (!SEMANTICS.includes(semantic as Semantic))
    throw new UnreadableRequest(`options.evaluations_semantic must be one of ${SEMANTICS.join(", ")}`);
  const given = body["evaluations"];
  if (given === undefined || (Array.isArray(given) && given.length === 0)) return null;
  if (!Array.isArray(given)) throw new UnreadableRequest("evaluations must be a list");
  if (given.length > MAX_EVALUATIONS)
    throw new UnreadableRequest(`a request can have at most ${MAX_EVALUATIONS} evaluations; got ${given.length}`);
  const { subject, action, resource, context } = body;
  const defaults = Object.fromEntries(
    Object.entries({ subject, action, resource, context }).filter(([, value]) => value !== undefined),
  ) as JsonObject;
  for (const name of ["subject", "action", "resource", "context"])
    if (defaults[name] !== undefined) readObject(defaults, name);
  return {
    semantic: semantic as Semantic,
    items: given.map((item) => {
      if (!isJsonObject(item)) throw new UnreadableRequest("each of the evaluations must be an object");
      return { ...defaults, ...item };
    }),
  };
}

/**
 * Returns whether a later request is for the same access as an earlier one (ARAP, "Decision and Binding Integrity").
 */
export function requestsSameAccess(
  request: GateRequest,
  earlier: Pick<GateRequest, "tool" | "operation" | "params"> & { context: JsonObject },
): boolean {
  const isEqual = (a: JsonValue, b: JsonValue): boolean => canonicalText(a) === canonicalText(b);
  const context = request.context ?? {};
  return (
    request.tool === earlier.tool &&
    request.operation === earlier.operation &&
    // The caller may send the actor as `client.actor` instead (ARAP, "Actor Delegation").
    isEqual(withoutActor(request.params), withoutActor(earlier.params)) &&
    // The requester may add context for the approver, but must not change or remove members that the decision was based
    // on.
    Object.entries(earlier.context).every(([key, value]) => context[key] !== undefined && isEqual(context[key], value))
  );
}

function withoutActor(params: JsonObject): JsonObject {
  const { subject } = params;
  if (!isJsonObject(subject) || !isJsonObject(subject["properties"])) return params;
  const { act: _, ...properties } = subject["properties"];
  return { ...params, subject: { ...subject, properties } };
}

/**
 * Reads `client.actor` of an access request: the claimed chain of agents, from the acting agent to the first one that
 * gave an authority. Returns null if the request claims none. Throws UnreadableRequest.
 */
export function readActors(body: JsonObject): string[] | null {
  const client = body["client"] === undefined ? {} : readObject(body, "client");
  if (client["actor"] === undefined) return null;
  const actor = readObject(client, "actor");
  const actors = [readText(actor, "client.actor", "id")];
  for (let link = actor; link["act"] !== undefined; link = readObject(link, "act")) {
    actors.push(readText(readObject(link, "act"), "act", "sub"));
  }
  return actors;
}

export function readObject(body: JsonObject, name: string): JsonObject {
  const value = body[name];
  if (value === undefined) throw new UnreadableRequest(`"${name}" is missing`);
  if (!isJsonObject(value)) throw new UnreadableRequest(`"${name}" must be an object`);
  return value;
}

function readEntity(body: JsonObject, name: string): JsonObject {
  const given = readObject(body, name);
  return { type: readText(given, name, "type"), id: readText(given, name, "id"), ...propertiesOf(given, name) };
}

function readText(given: JsonObject, of: string, name: string): string {
  const value = given[name];
  if (typeof value !== "string" || value === "") throw new UnreadableRequest(`"${of}.${name}" must be a string`);
  return value;
}

/** Returns the properties, empty if absent, so that a rule can test `has(params.resource.properties.status)`. */
function propertiesOf(given: JsonObject, of: string): { properties: JsonObject } {
  const value = given["properties"];
  if (value === undefined) return { properties: {} };
  if (!isJsonObject(value)) throw new UnreadableRequest(`"${of}.properties" must be an object`);
  return { properties: value };
}
