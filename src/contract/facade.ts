import type { Logger } from "./host.ts";
import type { Reply, VerifiedAccount } from "./resource.ts";

/**
 * An endpoint that speaks another protocol. It parses the request itself, calls `/v1` with the caller's key, and
 * translates the response or the error into that protocol.
 */
export interface Facade {
  /** Path with literal segments and `:name` parameters, as in a route. */
  path: string;
  /** Whether the facade also gets every path below `path`, in any encoding. Requires a `path` without parameters. */
  includesSubpaths?: boolean;
  title: string;
  /** `any` accepts every method, including HEAD and OPTIONS. */
  methods: "any" | readonly ("GET" | "POST")[];
  /** Request header that contains the API key, either as `<key>` or as `Bearer <key>`. Default: `Authorization`. */
  keyHeader?: string;
  /** Whether the key can also be the HTTP Basic password, for callers that can be configured only with a URL. */
  acceptsBasicAuth?: boolean;
  /**
   * True if the facade verifies its callers itself, for example by a signature over the body. The facade then calls the
   * API without a key, so it can use only routes that require none.
   */
  verifiesCallers?: true;
  /** Maximum body size in bytes. Default: the configured limit. */
  bodyLimit?: number;
  serve(call: FacadeCall): Promise<Reply> | Reply;
  /**
   * Returns the response that the caller gets if `serve` was not called or failed. The response must not look like an
   * allow.
   */
  fault(fault: FacadeFault): Reply;
}

/** An error of the core, with the members of its problem document. */
export interface FacadeFault {
  status: number;
  code: string;
  detail: string;
}

export interface FacadeCall {
  readonly request: Request;
  /**
   * Path and query as the client sent them. `request.url` is normalised: dot segments are resolved, and backslashes
   * become slashes. Null if the server provides only the normalised form (Bun).
   */
  readonly target: string | null;
  /** Percent-decoded parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** The complete, unmodified body. */
  readonly body: Uint8Array;
  /** When the request arrived, before its body was read, on the clock of `performance.now()`. */
  readonly receivedAt: number;
  /**
   * Calls this service's own API in this process with the caller's key. Aborts the call when the caller disconnects.
   * @param path a path of this service, e.g. `/v1/actions?join=open`
   */
  callApi(method: string, path: string, options?: ApiCallOptions): Promise<ApiResponse>;
  readonly log: Logger;
}

export interface ApiCallOptions {
  json?: unknown;
  headers?: Record<string, string>;
  /** The account that the facade has verified as its caller. Ignored unless the facade sets `verifiesCallers`. */
  account?: VerifiedAccount;
}

/** A response of the service's own API. */
export interface ApiResponse {
  status: number;
  headers: Headers;
  /** The parsed body; null if it is not JSON. */
  json: unknown;
}
