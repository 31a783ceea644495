/** The one way to the service: with the key, a time-out that is said, and the difference between the two clocks. */
import { key, signOut } from "./session.js";

/** A request that takes longer has failed for whoever waits. Milliseconds. */
const LONGEST = 20_000;
/** How often a service that does not answer is looked for. */
const LOOK_EVERY = 3000;

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

let ahead = 0;
/** When the service was first found not to answer. @type {number | null} */
let downSince = null;
let looking = false;
/** @type {Set<(since: number | null) => void>} */
const watchers = new Set();

/** The service's clock, in milliseconds: what runs out, runs out by it. */
export function now() {
  return Date.now() + ahead;
}

/**
 * Tells how it stands, when the service stops answering (since when), and when it answers again (null).
 * @param {(since: number | null) => void} watcher
 */
export function whenReach(watcher) {
  watchers.add(watcher);
  watcher(downSince);
  return () => void watchers.delete(watcher);
}

/**
 * For whom the service did not answer: tells when it does again. It may do so already, where it was away for a moment.
 * @param {() => void} again
 */
export function whenBack(again) {
  const timer = downSince === null ? setTimeout(again, LOOK_EVERY) : undefined;
  /** @param {number | null} since */
  const watcher = (since) => since === null && again();
  watchers.add(watcher);
  return () => {
    clearTimeout(timer);
    watchers.delete(watcher);
  };
}

/** Looks whether the service answers, because something said that it may not. */
export async function suspect() {
  if (looking) return;
  looking = true;
  for (;;) {
    try {
      await fetch("/healthz", { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(LOOK_EVERY) });
      break;
    } catch {
      reached(false);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
    }
  }
  looking = false;
  reached(true);
}

/** @param {boolean} answered */
function reached(answered) {
  if (answered === (downSince === null)) return;
  downSince = answered ? null : Date.now();
  for (const watcher of watchers) watcher(downSince);
  if (!answered) void suspect();
}

/**
 * @typedef {{ method?: string, body?: unknown, text?: string, type?: string, headers?: Record<string, string>, key?: string | null, signal?: AbortSignal, longest?: number }} Options
 * `key`: null for none; whoever is signed in when it is left out. `longest`: milliseconds until it counts as failed
 */

/**
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Response>} throws ApiError for anything but 2xx. The time-out ends with the headers: the body is the caller's
 */
export function send(path, options = {}) {
  return exchange(path, options, async (response) => response);
}

/** The answer as JSON; null where there is none. @param {string} path @param {Options} [options] */
export function call(path, options = {}) {
  return exchange(path, options, async (response) => (response.status === 204 ? null : response.json()));
}

/** The answer as JSON, with its entity tag. @param {string} path @param {Options} [options] @returns {Promise<{ body: any, etag: string }>} */
export function tagged(path, options = {}) {
  return exchange(path, options, async (response) => ({
    body: await response.json(),
    etag: response.headers.get("etag") ?? "",
  }));
}

/** The answer as text. @param {string} path @param {Options} [options] */
export function text(path, options = {}) {
  return exchange(path, options, (response) => response.text());
}

/** @param {string} path @param {Options} options @param {(response: Response) => Promise<any>} read */
async function exchange(path, { method = "GET", longest = LONGEST, key: given, signal, ...options }, read) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), longest);
  // Null: without a key, whoever is signed in.
  const credential = given === undefined ? key() : given;
  try {
    const response = await fetch(path, {
      method,
      // Never a credential that the browser adds by itself, never an answer from its cache.
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      ...contentOf(options, credential),
      signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
    });
    const date = Date.parse(response.headers.get("date") ?? "");
    // The header has whole seconds: smaller differences are its rounding.
    if (!Number.isNaN(date)) ahead = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0;
    if (!response.ok) throw await problemOf(response);
    const answer = await read(response);
    reached(true);
    return answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    if (error instanceof ApiError) {
      if (error.status === 401 && given === undefined) signOut(error.message);
      // What stands between answers for a service that does not.
      if (error.status === 502 || error.status === 504) void suspect();
      throw error;
    }
    void suspect();
    throw late.signal.aborted ? tooLate(method, longest) : unreachable(method);
  } finally {
    clearTimeout(timer);
  }
}

/** @param {Options} options @param {string | null} credential @returns {RequestInit} */
function contentOf({ body, text: given, type = "application/json", headers = {} }, credential) {
  const content = given ?? (body === undefined ? undefined : JSON.stringify(body));
  return {
    headers: {
      ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
      ...(content === undefined ? {} : { "content-type": type }),
      ...headers,
    },
    ...(content === undefined ? {} : { body: content }),
  };
}

/** @param {Response} response */
async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  return new ApiError({
    title: response.statusText,
    code: "UNKNOWN",
    detail: `the service answered ${response.status}`,
    ...problem,
    status: response.status,
  });
}

/** Of what changes something, nobody knows whether it was done. @param {string} method */
const unsure = (method) =>
  method === "GET" ? "try again" : "it may have been done all the same: look before you do it again";

/** @param {string} method @param {number} longest */
function tooLate(method, longest) {
  const detail = `the service has not answered for ${Math.round(longest / 1000)} seconds; ${unsure(method)}`;
  return new ApiError({ status: 0, code: "TIMEOUT", detail });
}

/** @param {string} method */
function unreachable(method) {
  return new ApiError({ status: 0, code: "UNREACHABLE", detail: `the service does not answer; ${unsure(method)}` });
}

/** `/path?…` without what is empty. @param {string} path @param {Record<string, string | number | boolean | null | undefined>} query */
export function url(path, query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  const all = search.toString();
  return all === "" ? path : `${path}?${all}`;
}

/** A segment of a path. @param {string} id */
export function at(id) {
  return encodeURIComponent(id);
}
