/** Cross-origin calls (the Fetch standard, section 3.2): off unless origins are configured. Credentials are bearer keys, never cookies, so none are allowed here. */

const ALLOWED_HEADERS =
  "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, Traceparent, X-Request-Id";
const EXPOSED_HEADERS =
  "Action-Joined, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id";
const PREFLIGHT_SECONDS = "600";

export interface Cors {
  /** What a response to this request carries; null where the origin is not allowed or CORS is off. */
  headers(request: Request): Record<string, string> | null;
  /** What the answer to a preflight carries besides; null when the request is none. */
  preflight(request: Request, methods: string): Record<string, string> | null;
}

/** Null when no origin is configured. */
export function createCors(origins: readonly string[]): Cors | null {
  if (origins.length === 0) return null;
  const any = origins.includes("*");
  const listed = new Set(origins);
  const allowed = (request: Request): string | null => {
    const origin = request.headers.get("origin");
    return origin !== null && (any || listed.has(origin)) ? origin : null;
  };
  return {
    headers(request) {
      const origin = allowed(request);
      // A cache must not give one origin's answer to another, whichever came first.
      if (origin === null) return any ? null : { Vary: "Origin" };
      return any
        ? { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": EXPOSED_HEADERS }
        : { "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED_HEADERS, Vary: "Origin" };
    },
    preflight(request, methods) {
      if (allowed(request) === null || request.headers.get("access-control-request-method") === null) return null;
      return {
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": PREFLIGHT_SECONDS,
      };
    },
  };
}
