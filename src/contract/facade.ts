import type { Logger } from "./host.ts";
import type { Reply } from "./resource.ts";

/**
 * Another protocol's door to the service: it reads the request itself, asks `/v1` as the same client, and says the
 * answer, and whatever goes wrong, in that protocol's words.
 */
export interface Facade {
  /** As a route's: literal segments and `:name`. */
  path: string;
  /** Takes whatever lies below `path`, too, however it is written. `path` has no parameters then. */
  includesSubpaths?: boolean;
  title: string;
  /** `any` passes every method on, HEAD and OPTIONS among them. */
  methods: "any" | readonly ("GET" | "POST")[];
  /** Request header that holds the API key, alone or as `Bearer <key>`. Default: `Authorization`. */
  keyHeader?: string;
  /** Takes the key as the password of HTTP Basic, too: for callers that are configured with nothing but a URL. */
  acceptsBasicAuth?: boolean;
  /** Bytes. Default: the configured limit. */
  bodyLimit?: number;
  serve(call: FacadeCall): Promise<Reply> | Reply;
  /** The answer where `serve` was not reached or failed: it must never read as permission. */
  fault(fault: FacadeFault): Reply;
}

/** What the core would have said as problem details. */
export interface FacadeFault {
  status: number;
  code: string;
  detail: string;
}

export interface FacadeCall {
  readonly request: Request;
  /**
   * Path and query as the client sent them. `request.url` is normalised: dot segments are resolved, and backslashes are
   * slashes. Null where the server only knows that form (Bun).
   */
  readonly target: string | null;
  /** Percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The whole body, as it came. */
  readonly body: Uint8Array;
  /**
   * Sends a request to this service's own API in this process, with the caller's key. It ends with the caller's: a
   * caller that went away waits for nothing.
   * @param path of this service, e.g. `/v1/actions?join=open`
   */
  callApi(method: string, path: string, options?: ApiCallOptions): Promise<ApiResponse>;
  readonly log: Logger;
}

export interface ApiCallOptions {
  json?: unknown;
  headers?: Record<string, string>;
}

/** What the API answered. */
export interface ApiResponse {
  status: number;
  headers: Headers;
  /** Parsed; null where there is no JSON. */
  json: unknown;
}
