/**
 * Cross-origin requests (Fetch standard, section 3.2). Disabled unless origins are configured. Never allows
 * credentials: pages of other origins must send API keys as bearer tokens, and cannot use session cookies.
 */

const ALLOWED_HEADERS =
  "Assent-Session, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, Traceparent, X-Request-Id";
const EXPOSED_HEADERS =
  "Action-Joined, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id";
const PREFLIGHT_SECONDS = "600";

export interface Cors {
  /** Returns the CORS headers of a response; null if there are none. */
  headers(request: Request): Record<string, string> | null;
  /** Returns the additional headers for a preflight request of an allowed origin; null for any other request. */
  preflight(request: Request, methods: string): Record<string, string> | null;
}

/** Returns null if no origin is configured. */
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
      // Vary by origin, so that a cache does not return the response for one origin to another.
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
