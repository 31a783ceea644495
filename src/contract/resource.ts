import type { TObject, TSchema } from "@sinclair/typebox";
import type { Scope } from "../domain/scopes.ts";
import type { ErrorCode } from "./errors.ts";
import type { Credential, Logger } from "./host.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What a handler gets. Everything here was checked against the route's schemas. */
export interface RequestContext {
  readonly request: Request;
  readonly requestId: string;
  /** Percent-decoded. */
  readonly params: Record<string, string>;
  /** Typed as the route's query schema says (numbers and booleans are converted). */
  readonly query: Record<string, unknown>;
  /** The parsed and validated JSON body, or the text for a non-JSON body type; undefined where the route takes none. */
  readonly body: unknown;
  readonly contentType: string | null;
  /** Null only where the route's `scope` is null, or its `keyOptional` and no key was sent. */
  readonly credential: Credential | null;
  readonly headers: Headers;
  /** Aborts when the client went away or the service stops. Made when it is read, which is not free: read it only to wait. */
  readonly signal: AbortSignal;
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
  also?: readonly string[];
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
  /** A request without a key is taken too, with a null credential: the handler says what else it needs. */
  keyOptional?: boolean;
  params?: TObject;
  query?: TObject;
  /** Request headers that the handler reads, for the documentation: the handler checks them. */
  headers?: TObject;
  /** JSON body. Absent: the route takes no body, and one that is sent is refused. */
  body?: TSchema;
  /** When true an empty body stands for `{}`. */
  bodyOptional?: boolean;
  /** Media types taken as text instead of JSON, e.g. `application/yaml`. */
  textBodies?: readonly string[];
  /** Never counted against a rate limit: for probes. */
  unlimited?: boolean;
  /** Bytes. Default: the configured limit. */
  bodyLimit?: number;
  /** Reads the `Idempotency-Key` header; documented only, the handler does the work. */
  idempotent?: boolean;
  responses: Record<number, ResponseSpec>;
  errors: readonly ErrorCode[];
  handle(context: RequestContext): Promise<Reply> | Reply;
}
