import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { Scope } from "../domain/scopes.ts";
import type { ErrorCode, ErrorKind } from "./errors.ts";
import type { Credential, Logger } from "./host.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What a handler gets. Everything here was checked against the route's schemas, which `defineRoute` infers the types from. */
export interface RequestContext<
  Params = Record<string, string>,
  Query = Record<string, unknown>,
  Body = unknown,
  Who extends Credential | null = Credential | null,
> {
  readonly request: Request;
  readonly requestId: string;
  /** Percent-decoded. */
  readonly params: Params;
  /** Numbers and booleans are converted. */
  readonly query: Query;
  /** The parsed and validated JSON body, or the text for a non-JSON body type; undefined where the route takes none. */
  readonly body: Body;
  readonly contentType: string | null;
  /** Null only where the route's `scope` is null. */
  readonly credential: Who;
  readonly headers: Headers;
  /** Aborts when the client went away or the service stops. Made when it is read, which is not free: read it only to wait. */
  readonly signal: AbortSignal;
  /** For a route that is `queued`: its work is done, and what is left is waiting. It makes room for the next. */
  releaseQueueSlot(): void;
  /**
   * Counts bytes of a large response before they are held in memory. Throws TOO_MANY_BYTES or OVERLOADED when this key,
   * or all together, have as many on their way as they may. They are given back with the request.
   */
  reserveResponseBytes(bytes: number): void;
  readonly log: Logger;
}

/** What a handler gives back. `body` is serialised as JSON unless it is text, bytes or a stream. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  json?: unknown;
  text?: string;
  bytes?: Uint8Array;
  stream?: ReadableStream<Uint8Array>;
}

export interface ResponseSpec {
  description: string;
  schema?: TSchema;
  contentType?: string;
  /** Other media types that the same status may come in. */
  otherContentTypes?: readonly string[];
  /** Headers that the answer may have besides those of every answer, and what each says. */
  headers?: Readonly<Record<string, string>>;
}

export interface Route {
  method: Method;
  /** Literal segments and `:name` parameters, e.g. `/v1/actions/:id`; the last may be `:name+`, which takes the rest of the path. */
  path: string;
  summary: string;
  description?: string;
  tag: string;
  /** Scope the credential must hold (one of them, when a list); null when no credential is needed. */
  scope: Scope | readonly Scope[] | null;
  params?: TObject;
  query?: TObject;
  /** Request headers that the handler reads, for the documentation: the handler checks them. */
  headers?: TObject;
  /** JSON body; an empty one stands for `{}` where the schema takes that. Absent: the route takes no body, and one that is sent is refused. */
  body?: TSchema;
  /** Media types taken as text instead of JSON, e.g. `application/yaml`. */
  textBodies?: readonly string[];
  /** Never counted against the rate limit of a key or an address, but for wrong keys: for probes. */
  exemptFromRateLimit?: boolean;
  /** Counts in `ledger.max_queue` until it is answered, and is refused with OVERLOADED, before its body is read, while that is full: for what agents send, not for what people decide. */
  queued?: boolean;
  /**
   * Its handler confirms the credential under the ledger's lock (`tx.confirm`) before it answers anything: a key that
   * was revoked a moment ago may get as far as that, and no look at the store is needed before.
   */
  confirmsCredential?: boolean;
  /**
   * Taken whatever else the service is busy with: no rate limit and no bound of what is in flight refuses it to a key
   * that holds its scope. For what must not wait; its `bodyLimit` is to be small.
   */
  urgent?: boolean;
  /** Bytes. Default: the configured limit. */
  bodyLimit?: number;
  /** Reads the `Idempotency-Key` header; documented only, the handler does the work. */
  idempotent?: boolean;
  responses: Record<number, ResponseSpec>;
  /** What the handler refuses with, besides what the core answers on any such route (src/http/core-errors.ts). */
  errors?: readonly (ErrorCode | ErrorKind)[];
  handle(context: RequestContext): Promise<Reply> | Reply;
}

/** Names of a path's parameters: `id` for `/v1/actions/:id`. */
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
type CredentialOf<Scopes> = [Scopes] extends [null] ? null : null extends Scopes ? Credential | null : Credential;

export interface RouteDefinition<
  Path extends string,
  Scopes extends Scope | readonly Scope[] | null,
  Params extends TObject | undefined,
  Query extends TObject | undefined,
  Body extends TSchema | undefined,
  Texts extends readonly string[] | undefined,
> extends Omit<Route, "path" | "scope" | "params" | "query" | "body" | "textBodies" | "handle"> {
  path: Path;
  scope: Scopes;
  params?: Params;
  query?: Query;
  body?: Body;
  textBodies?: Texts;
  handle(
    context: RequestContext<ParamsOf<Path, Params>, QueryOf<Query>, BodyOf<Body, Texts>, CredentialOf<Scopes>>,
  ): Promise<Reply> | Reply;
}

/**
 * A route whose handler's context has the types of the route's own schemas: `params`, `query` and `body`, and a
 * `credential` that is not null where `scope` names one.
 */
export function defineRoute<
  const Path extends string,
  const Scopes extends Scope | readonly Scope[] | null,
  Params extends TObject | undefined = undefined,
  Query extends TObject | undefined = undefined,
  Body extends TSchema | undefined = undefined,
  Texts extends readonly string[] | undefined = undefined,
>(route: RouteDefinition<Path, Scopes, Params, Query, Body, Texts>): Route {
  return route as Route;
}
