import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { Scope } from "../domain/scopes.ts";
import type { ErrorCode, ErrorKind } from "./errors.ts";
import type { Credential, Logger } from "./host.ts";

/** An account of a notifier, such as a Slack user. */
export interface VerifiedAccount {
  readonly notifier: string;
  readonly to: string;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Input of a route handler, validated against the route's schemas. `defineRoute` infers the types from them. */
export interface RequestContext<
  Params = Record<string, string>,
  Query = Record<string, unknown>,
  Body = unknown,
  Who extends Credential | null = Credential | null,
> {
  readonly request: Request;
  readonly requestId: string;
  /** Percent-decoded parameters of the path. */
  readonly params: Params;
  /** Parameters of the query. Numbers and booleans are converted. */
  readonly query: Query;
  /**
   * The parsed and validated JSON body, or a string for other media types; undefined if the route does not accept a
   * body.
   */
  readonly body: Body;
  readonly contentType: string | null;
  /** The caller. Null only if the route's `scope` is null. */
  readonly credential: Who;
  readonly headers: Headers;
  /** The account that a facade of this process has verified as the caller; null for every other caller. */
  readonly account: VerifiedAccount | null;
  /**
   * Aborts when the client disconnects, the service stops, or the caller's credential ends or its rights change. Read
   * this member only before a wait, because each read creates a signal. After the handler, the core authenticates the
   * caller again: a caller without the same rights gets an error instead of the reply.
   */
  readonly signal: AbortSignal;
  /**
   * Authenticates the caller again, after a wait. Returns the current credential; null if the route requires none.
   * Rejects with a `Refusal` if the credential has ended or its rights have changed.
   */
  reauthenticate(): Promise<Who>;
  /**
   * Releases the queue slot of a `queued` route before the response. Call it before a long wait, such as a wait for
   * votes.
   */
  releaseQueueSlot(): void;
  /**
   * Runs work that waits for another system, without the queue slot, so that a slow system cannot fill the queue.
   * Acquires a slot again after the work. Throws OVERLOADED if the queue is then full. Without a slot, only runs the
   * work.
   */
  withoutQueueSlot<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Reserves memory for a large response before it is built. Throws TOO_MANY_BYTES if the key's limit would be
   * exceeded, and OVERLOADED if the process's limit would be exceeded. A response is admitted despite a limit if it is
   * small, or if no other response counts against the limit. The reservation ends when the response has been sent.
   */
  reserveResponseBytes(bytes: number): void;
  readonly log: Logger;
}

/** Result of a handler. Set at most one of `json`, `text`, `bytes` and `stream`. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  json?: unknown;
  text?: string;
  bytes?: Uint8Array;
  /** Ends early if the caller's credential ends or its rights change. */
  stream?: ReadableStream<Uint8Array>;
  /** Returns the last text of a `stream` that ends early. Without it, such a stream fails. */
  farewell?(reason: string): string;
}

export interface ResponseSpec {
  description: string;
  schema?: TSchema;
  contentType?: string;
  /** Other media types of responses with the same status. */
  otherContentTypes?: readonly string[];
  /** Additional response headers with their descriptions. */
  headers?: Readonly<Record<string, string>>;
}

export interface Route {
  method: Method;
  /**
   * Literal segments and `:name` parameters, e.g. `/v1/actions/:id`; the last segment can be `:name+`, which matches
   * the rest of the path.
   */
  path: string;
  summary: string;
  description?: string;
  tag: string;
  /** Required scope. A list requires one of its scopes. Null if the route requires no credential. */
  scope: Scope | readonly Scope[] | null;
  params?: TObject;
  query?: TObject;
  /** Request headers that the handler reads, for the documentation. The handler itself validates them. */
  headers?: TObject;
  /**
   * Schema of the JSON body. An empty body counts as `{}` if the schema accepts `{}`. Without `body` and `textBodies`,
   * the route rejects every body.
   */
  body?: TSchema;
  /** Media types whose bodies the handler receives as a string instead of JSON, e.g. `application/yaml`. */
  textBodies?: readonly string[];
  /** Exempts the route from rate limits, except if the key is invalid or lacks the scope. For health probes. */
  exemptFromRateLimit?: boolean;
  /**
   * Counts each request against `ledger.max_queue` until its response. While the queue is full, rejects requests with
   * OVERLOADED before reading the body. For requests of agents, not for votes.
   */
  queued?: boolean;
  /**
   * Whether the handler confirms the credential under the ledger's lock (`tx.confirm`) before it returns anything. The
   * core then does not read the key again, because the handler rejects a revoked key.
   */
  confirmsCredential?: boolean;
  /**
   * Exempts requests from keys with the route's scope from rate limits and in-flight limits, so that they are accepted
   * even under load. For emergencies. Set a small `bodyLimit`.
   */
  urgent?: boolean;
  /** Maximum body size in bytes. Default: the configured limit. */
  bodyLimit?: number;
  /** Whether the handler reads the `Idempotency-Key` header. For the documentation. */
  idempotent?: boolean;
  responses: Record<number, ResponseSpec>;
  /** Media type of the handler's own errors if the route speaks another protocol. For the documentation. */
  errorContentType?: string;
  /** Errors of the handler, in addition to the core's errors (src/http/core-errors.ts). */
  errors?: readonly (ErrorCode | ErrorKind)[];
  handle(context: RequestContext): Promise<Reply> | Reply;
}

/** Returns the names of a path's parameters, such as `id` for `/v1/actions/:id`. */
type Names<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | Names<`/${Rest}`>
  : Path extends `${string}:${infer Name}+`
    ? Name
    : Path extends `${string}:${infer Name}`
      ? Name
      : never;

type ParamsOf<Path extends string, Params> = Params extends TObject
  ? Static<Params>
  : string extends Path
    ? Record<string, string>
    : Record<Names<Path>, string>;
type QueryOf<Query> = Query extends TObject ? Static<Query> : Record<string, never>;
type BodyOf<Body, Texts> =
  | (Body extends TSchema ? Static<Body> : never)
  | (Texts extends readonly string[] ? string : never)
  | (Body extends undefined ? (Texts extends undefined ? undefined : never) : never);
type Given<Schema> = Exclude<Schema, undefined>;
type CredentialOf<Scopes> = [Scopes] extends [null] ? null : null extends Scopes ? Credential | null : Credential;

/** A route with the types of its schemas. */
export interface TypedRoute<
  Verb extends Method,
  Path extends string,
  Query extends TObject,
  Body extends TSchema,
  Responses extends Record<number, ResponseSpec>,
> extends Route {
  method: Verb;
  path: Path;
  query?: Query;
  body?: Body;
  responses: Responses;
}

/**
 * The functions that return the routes of each feature. A feature adds its own with a module augmentation. `ApiCalls`
 * has the types of their requests and responses.
 */
// oxlint-disable-next-line typescript/no-empty-interface
export interface FeatureRoutes {}

interface RouteDefinition<
  Verb extends Method,
  Path extends string,
  Scopes extends Scope | readonly Scope[] | null,
  Params extends TObject | undefined,
  Query extends TObject | undefined,
  Body extends TSchema | undefined,
  Texts extends readonly string[] | undefined,
  Responses extends Record<number, ResponseSpec>,
> extends Omit<
  Route,
  "method" | "path" | "scope" | "params" | "query" | "body" | "textBodies" | "responses" | "handle"
> {
  method: Verb;
  path: Path;
  scope: Scopes;
  params?: Params;
  query?: Query;
  body?: Body;
  textBodies?: Texts;
  responses: Responses;
  handle(
    context: RequestContext<ParamsOf<Path, Params>, QueryOf<Query>, BodyOf<Body, Texts>, CredentialOf<Scopes>>,
  ): Promise<Reply> | Reply;
}

/**
 * Returns the route unchanged. Infers the types of the handler's `params`, `query` and `body` from the schemas, and
 * keeps the types of the schemas for `ApiCalls`.
 * `credential` is not null if `scope` is a scope.
 * @example
 * defineRoute({
 *   method: "GET",
 *   path: "/v1/greetings/:name",
 *   tag: "greetings",
 *   summary: "Greet someone",
 *   scope: null,
 *   responses: { 200: { description: "The greeting." } },
 *   handle: ({ params: { name } }) => ({ status: 200, json: { greeting: `hello ${name}` } }),
 * });
 */
export function defineRoute<
  const Verb extends Method,
  const Path extends string,
  const Scopes extends Scope | readonly Scope[] | null,
  Params extends TObject | undefined = undefined,
  Query extends TObject | undefined = undefined,
  Body extends TSchema | undefined = undefined,
  Texts extends readonly string[] | undefined = undefined,
  Responses extends Record<number, ResponseSpec> = Record<number, ResponseSpec>,
>(
  route: RouteDefinition<Verb, Path, Scopes, Params, Query, Body, Texts, Responses>,
): TypedRoute<NoInfer<Verb>, NoInfer<Path>, Given<NoInfer<Query>>, Given<NoInfer<Body>>, NoInfer<Responses>> {
  return route as unknown as TypedRoute<Verb, Path, Given<Query>, Given<Body>, Responses>;
}

/** A request and its response, for observers. */
export interface CompletedRequest {
  method: string;
  /** The route's path template, e.g. `/v1/actions/:id`; null if no route matched. */
  route: string | null;
  status: number;
  /** Milliseconds until the response was created. Excludes the time to send a stream. */
  ms: number;
}
