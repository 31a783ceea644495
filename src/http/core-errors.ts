/** What the core itself can answer on a route, besides what the route's handler does. */
import { resolveErrorKind, type ErrorCode, type ErrorKind } from "../contract/errors.ts";
import type { Route } from "../contract/resource.ts";

const CREDENTIAL: readonly ErrorCode[] = [
  "MISSING_CREDENTIAL",
  "INVALID_CREDENTIAL",
  "INSUFFICIENT_SCOPE",
  "KEY_ALTERED",
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

/** Every error that an answer of this route can carry, each once. */
export function listRouteErrors(route: Route): ErrorKind[] {
  const kinds = [...listCoreErrors(route), ...(route.errors ?? []), "INTERNAL" as const].map(resolveErrorKind);
  return [...new Map(kinds.map((kind) => [kind.code, kind])).values()];
}

/** Those that need not be listed by the route. */
export function listCoreErrors(route: Route): ErrorCode[] {
  return [
    // A body where none is taken, a path that is not percent-encoded, an unknown query parameter.
    "BAD_REQUEST",
    "VALIDATION_FAILED",
    ...(route.body === undefined && route.textBodies === undefined ? [] : BODY),
    ...(route.body === undefined ? [] : JSON_BODY),
    ...(route.scope === null ? [] : CREDENTIAL),
    // Wrong keys are counted at every address that takes one.
    ...(route.exemptFromRateLimit === true && route.scope === null ? [] : (["RATE_LIMITED"] as const)),
    ...(route.method === "GET" ? RESPONSE : []),
  ];
}
