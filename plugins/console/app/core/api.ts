/** Sends the console's requests. Also observes the service's clock, and whether the service is reachable. */
import type { Api } from "./api-types.ts";
import { credentialFetchOptions, currentCredential, signOutAfterRefusal } from "./session.ts";

/** Request timeout. Milliseconds. */
const TIMEOUT_MS = 20_000;
/** Interval of health checks while the service is unreachable. Milliseconds. */
const HEALTH_CHECK_MS = 3000;

export interface ResponseFault {
  pointer?: string;
  parameter?: string;
  line?: number;
  column?: number;
  detail: string;
}

interface ProblemDetails {
  status: number;
  code: string;
  detail: string;
  title?: string;
  errors?: ResponseFault[];
}

/** A problem (RFC 9457) that the service returned. `status` is 0 if the service did not respond. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly errors: readonly ResponseFault[];
  constructor({ status, code, detail, title = "", errors = [] }: ProblemDetails) {
    super(detail);
    this.status = status;
    this.code = code;
    this.title = title;
    this.errors = errors;
  }
}

interface ApiRequestOptions {
  method?: string;
  body?: unknown;
  /** A body that is sent as it is. */
  rawBody?: string;
  /** Media type of the body. */
  type?: string;
  headers?: Record<string, string>;
  /** Credential to send instead of the signed-in credential. Null sends no credential. */
  key?: string | null;
  signal?: AbortSignal;
  timeoutMs?: number;
}

let clockOffset = 0;
let downSince: number | null = null;
let isChecking = false;
const watchers = new Set<(since: number | null) => void>();

/** Returns the service's time in milliseconds, because deadlines are in the service's time. */
export function serviceNow(): number {
  return Date.now() + clockOffset;
}

/**
 * Calls `watcher` now and whenever the reachability of the service changes. The argument is when the service became
 * unreachable, or null if it is reachable. Returns a function that removes the watcher.
 */
export function watchReachability(watcher: (since: number | null) => void): () => void {
  watchers.add(watcher);
  watcher(downSince);
  return () => void watchers.delete(watcher);
}

/**
 * Calls `retry` when the service becomes reachable again, or after `HEALTH_CHECK_MS` if it counts as reachable now.
 * Returns a function that cancels this.
 */
export function retryWhenReachable(retry: () => void): () => void {
  const timer = downSince === null ? setTimeout(retry, HEALTH_CHECK_MS) : undefined;
  const watcher = (since: number | null): void => {
    if (since === null) retry();
  };
  watchers.add(watcher);
  return () => {
    clearTimeout(timer);
    watchers.delete(watcher);
  };
}

/**
 * Checks whether the service is reachable, and repeats the check until it is. Called after a failed request that could
 * mean that the service is unreachable.
 */
export async function checkReachability(): Promise<void> {
  if (isChecking) return;
  isChecking = true;
  while (!(await answersHealthCheck())) {
    setReachable(false);
    await new Promise((resolve) => setTimeout(resolve, HEALTH_CHECK_MS));
  }
  isChecking = false;
  setReachable(true);
}

/**
 * Resolves to true if the service responds to a health check in time, with any status. The timer keeps the controller
 * from being garbage-collected, so the timeout also ends a check that hangs.
 */
async function answersHealthCheck(): Promise<boolean> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), HEALTH_CHECK_MS);
  try {
    await fetch("/healthz", { cache: "no-store", credentials: "omit", signal: late.signal });
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

function setReachable(isReachable: boolean): void {
  if (isReachable === (downSince === null)) return;
  downSince = isReachable ? null : Date.now();
  for (const watcher of watchers) watcher(downSince);
  if (!isReachable) void checkReachability();
}

type Given<K extends keyof Api> = (Api[K]["query"] extends never ? { query?: never } : { query?: Api[K]["query"] }) &
  (Api[K]["body"] extends never ? { body?: never } : { body: Api[K]["body"] }) & {
    /** Values of the path's parameters, in the order of the path. */
    path?: readonly string[];
    key?: string | null;
    signal?: AbortSignal | undefined;
    headers?: Record<string, string>;
  };

/**
 * Calls an operation of the OpenAPI document. Throws `ApiError` unless the status is 2xx.
 *
 *   const { actions } = await request("GET /v1/approvals", { query: { limit: 50 } });
 *   await request("POST /v1/actions/{id}/approval", { path: [id], body: { token, approve: true } });
 */
export function request<K extends keyof Api>(operation: K, given: Given<K>): Promise<Api[K]["response"]> {
  const [method = "GET", template = ""] = operation.split(" ");
  const {
    path = [],
    query,
    body,
    signal,
    ...options
  } = given as {
    path?: readonly string[];
    query?: Record<string, string | number | boolean | undefined>;
    body?: unknown;
    signal?: AbortSignal;
    key?: string | null;
    headers?: Record<string, string>;
  };
  let used = 0;
  const address = buildUrl(
    template.replaceAll(/\{[^}]+\}/g, () => encodeSegment(path[used++] ?? "")),
    query ?? {},
  );
  return fetchJson(address, {
    method,
    ...options,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  }) as Promise<Api[K]["response"]>;
}

/** Returns the response. Throws `ApiError` unless the status is 2xx. The timeout covers only the headers. */
export function sendRequest(path: string, options: ApiRequestOptions = {}): Promise<Response> {
  return exchange(path, options, (response) => Promise.resolve(response));
}

/** Returns the response's JSON; null for status 204. Prefer `request`, which is typed. */
export function fetchJson(path: string, options: ApiRequestOptions = {}): Promise<unknown> {
  return exchange(path, options, async (response) => (response.status === 204 ? null : response.json()));
}

/** Returns the response's JSON with its entity tag. */
export function fetchJsonWithEtag(
  path: string,
  options: ApiRequestOptions = {},
): Promise<{ body: unknown; etag: string }> {
  return exchange(path, options, async (response) => ({
    body: (await response.json()) as unknown,
    etag: response.headers.get("etag") ?? "",
  }));
}

/** Returns the response's text. */
export function fetchText(path: string, options: ApiRequestOptions = {}): Promise<string> {
  return exchange(path, options, (response) => response.text());
}

async function exchange<T>(
  path: string,
  { method = "GET", timeoutMs = TIMEOUT_MS, key: given, signal, ...options }: ApiRequestOptions,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    const response = await fetch(path, {
      method,
      cache: "no-store",
      redirect: "error",
      ...contentOf(options, given === undefined ? currentCredential() : given),
      signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
    });
    setClock(response);
    if (!response.ok) throw await problemOf(response);
    const answer = await read(response);
    setReachable(true);
    return answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    if (error instanceof ApiError) {
      if (error.status === 401 && given === undefined) signOutAfterRefusal(error.message);
      // A proxy responded instead of the service.
      if (error.status === 502 || error.status === 504) void checkReachability();
      throw error;
    }
    void checkReachability();
    throw late.signal.aborted ? timeoutError(method, timeoutMs) : unreachableError(method);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Updates the clock offset from the response's Date header. The header has whole seconds, so differences of up to two
 * seconds are ignored.
 */
function setClock(response: Response): void {
  const date = Date.parse(response.headers.get("date") ?? "");
  if (!Number.isNaN(date)) clockOffset = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0;
}

function contentOf(
  { body, rawBody: given, type = "application/json", headers = {} }: ApiRequestOptions,
  credential: string | null,
): RequestInit {
  const content = given ?? (body === undefined ? undefined : JSON.stringify(body));
  const authorization = credentialFetchOptions(credential);
  return {
    credentials: authorization.credentials,
    headers: { ...authorization.headers, ...(content === undefined ? {} : { "content-type": type }), ...headers },
    ...(content === undefined ? {} : { body: content }),
  };
}

async function problemOf(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => ({}))) as Partial<ProblemDetails>;
  return new ApiError({
    title: response.statusText,
    code: "UNKNOWN",
    detail: `the service responded with status ${response.status}`,
    ...problem,
    status: response.status,
  });
}

/** Returns the advice after a failed request. After a failed write, it is unknown whether the write took effect. */
const adviceFor = (method: string): string =>
  method === "GET" ? "try again" : "it may have taken effect: check before you repeat it";

function timeoutError(method: string, timeoutMs: number): ApiError {
  const detail = `the service has not responded for ${Math.round(timeoutMs / 1000)} seconds; ${adviceFor(method)}`;
  return new ApiError({ status: 0, code: "TIMEOUT", detail });
}

function unreachableError(method: string): ApiError {
  return new ApiError({ status: 0, code: "UNREACHABLE", detail: `the service does not respond; ${adviceFor(method)}` });
}

/** Returns `/path?…` without empty parameters. */
export function buildUrl(path: string, query: Record<string, string | number | boolean | null | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  const all = search.toString();
  return all === "" ? path : `${path}?${all}`;
}

/** Returns a value encoded as one segment of a path. */
export function encodeSegment(id: string): string {
  return encodeURIComponent(id);
}
