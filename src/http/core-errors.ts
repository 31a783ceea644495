/** What the core itself can answer on a route, besides what the route's handler does. */
import type { ErrorCode } from "../contract/errors.ts";
import type { Route } from "../contract/resource.ts";

const CREDENTIAL: readonly ErrorCode[] = ["MISSING_CREDENTIAL", "INVALID_CREDENTIAL", "INSUFFICIENT_SCOPE", "STORAGE_UNAVAILABLE", "SHUTTING_DOWN"];
const BODY: readonly ErrorCode[] = ["INVALID_UTF8", "BODY_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"];
const JSON_BODY: readonly ErrorCode[] = ["MALFORMED_JSON", "DUPLICATE_KEY", "LONE_SURROGATE", "UNSAFE_INTEGER", "TOO_DEEP"];

/** Every code that an answer of this route can carry, each once, by status. */
export function errorsOf(route: Route): ErrorCode[] {
  return [
    ...new Set<ErrorCode>([
      // A body where none is taken, a path that is not percent-encoded, an unknown query parameter.
      "BAD_REQUEST",
      "VALIDATION_FAILED",
      ...(route.body === undefined && route.textBodies === undefined ? [] : BODY),
      ...(route.body === undefined ? [] : JSON_BODY),
      ...(route.scope === null ? [] : CREDENTIAL),
      ...(route.unlimited === true ? [] : (["RATE_LIMITED"] as const)),
      ...route.errors,
      "INTERNAL",
    ]),
  ];
}
