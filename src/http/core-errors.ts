/** Errors that the core can return on a route, in addition to the errors of the route's handler. */
import { resolveErrorKind, type ErrorCode, type ErrorKind } from "../contract/errors.ts";
import type { Route } from "../contract/resource.ts";

const CREDENTIAL: readonly ErrorCode[] = [
  "MISSING_CREDENTIAL",
  "INVALID_CREDENTIAL",
  "TOO_MANY_BAD_KEYS",
  "INSUFFICIENT_SCOPE",
  "RIGHTS_CHANGED",
  "KEY_ALTERED",
  "STORE_ALTERED",
  "STORAGE_UNAVAILABLE",
  "SHUTTING_DOWN",
];
const BODY: readonly ErrorCode[] = ["INVALID_UTF8", "BODY_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "OVERLOADED"];
const RESPONSE: readonly ErrorCode[] = ["TOO_MANY_BYTES", "OVERLOADED"];
const JSON_BODY: readonly ErrorCode[] = [
  "MALFORMED_JSON",
  "DUPLICATE_KEY",
  "LONE_SURROGATE",
  "UNSAFE_INTEGER",
  "TOO_DEEP",
  "TOO_MANY_VALUES",
];

/** Returns all errors that the route can return, without duplicates. */
export function listRouteErrors(route: Route): ErrorKind[] {
  const kinds = [...listCoreErrors(route), ...(route.errors ?? []), "INTERNAL" as const].map(resolveErrorKind);
  return [...new Map(kinds.map((kind) => [kind.code, kind])).values()];
}

/** Returns the errors of the core for a route. Routes do not need to declare these errors. */
export function listCoreErrors(route: Route): ErrorCode[] {
  return [
    // Returned, for example, for an unexpected or incomplete body, or for a path that is not percent-encoded correctly.
    "BAD_REQUEST",
    "VALIDATION_FAILED",
    ...(route.body === undefined && route.textBodies === undefined ? [] : BODY),
    ...(route.body === undefined ? [] : JSON_BODY),
    ...(route.scope === null ? [] : CREDENTIAL),
    // Every route that requires a key counts invalid keys for the rate limit.
    ...(route.exemptFromRateLimit === true && route.scope === null ? [] : (["RATE_LIMITED"] as const)),
    ...(route.method === "GET" ? RESPONSE : []),
  ];
}
