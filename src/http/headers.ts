/** Headers that are independent of resources. */
import type { Config } from "../config/index.ts";

/** Returns the headers of every response. A page sets its own Content-Security-Policy. */
export function commonHeaders(config: Config): Record<string, string> {
  return {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": config.server.cors_origins.length > 0 ? "cross-origin" : "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    ...(config.server.public_url?.startsWith("https:") === true
      ? { "Strict-Transport-Security": "max-age=31536000" }
      : {}),
  };
}

/** Returns the request id of the client if it is safe to log, else null. It is not unique. */
export function acceptRequestId(given: string | null): string | null {
  return given !== null && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : null;
}
