/** The one way to the service. Keeps the key for the tab alone, and the difference between the two clocks. */

const STORE = "assent.key";

/** A problem (RFC 9457) that the service answered with, or `status` 0 when it did not answer. */
export class ApiError extends Error {
  /** @param {{ status: number, code: string, detail: string, title?: string, errors?: { pointer?: string, parameter?: string, line?: number, column?: number, detail: string }[] }} problem */
  constructor(problem) {
    super(problem.detail);
    this.status = problem.status;
    this.code = problem.code;
    this.title = problem.title ?? "";
    this.errors = problem.errors ?? [];
  }
}

/** @type {Set<(why: string) => void>} */
const onRefused = new Set();
let ahead = 0;

/** Calls back when the service takes the key no longer. @param {(why: string) => void} listener */
export function whenRefused(listener) {
  onRefused.add(listener);
}

export function key() {
  return sessionStorage.getItem(STORE);
}

/** @param {string | null} value */
export function setKey(value) {
  if (value === null) sessionStorage.removeItem(STORE);
  else sessionStorage.setItem(STORE, value);
}

/** The service's clock, in milliseconds: what runs out, runs out by it. */
export function now() {
  return Date.now() + ahead;
}

/**
 * @param {string} path
 * @param {{ method?: string, body?: unknown, text?: string, type?: string, headers?: Record<string, string>, key?: string | null, signal?: AbortSignal }} [options]
 * @returns {Promise<Response>} throws ApiError for anything but 2xx
 */
export async function send(path, { method = "GET", body, text, type = "application/json", headers = {}, key: given, signal } = {}) {
  const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
  // Null: without a key, whoever is signed in.
  const credential = given === undefined ? key() : given;
  let response;
  try {
    response = await fetch(path, {
      method,
      // Never a credential that the browser adds by itself, never an answer from its cache.
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      headers: { ...(credential === null ? {} : { authorization: `Bearer ${credential}` }), ...(content === undefined ? {} : { "content-type": type }), ...headers },
      ...(content === undefined ? {} : { body: content }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError({ status: 0, code: "UNREACHABLE", detail: "the service does not answer; it is tried again when you ask again" });
  }
  const date = Date.parse(response.headers.get("date") ?? "");
  // The header has whole seconds: smaller differences are its rounding.
  if (!Number.isNaN(date)) ahead = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0;
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const error = new ApiError({ title: response.statusText, code: "UNKNOWN", detail: `the service answered ${response.status}`, ...problem, status: response.status });
  if (response.status === 401 && given === undefined) for (const listener of onRefused) listener(error.message);
  throw error;
}

/** @param {string} path @param {Parameters<typeof send>[1]} [options] */
export async function call(path, options) {
  const response = await send(path, options);
  return response.status === 204 ? null : response.json();
}

/** `/path?…` without what is empty. @param {string} path @param {Record<string, string | number | boolean | null | undefined>} query */
export function url(path, query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** A segment of a path. @param {string} id */
export function at(id) {
  return encodeURIComponent(id);
}
