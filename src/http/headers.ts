/** Response headers that do not depend on resources. */
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

/** Returns the request id that the client sent if it is safe to log, else null. The id might not be unique. */
export function acceptRequestId(requestId: string | null): string | null {
  return requestId !== null && /^[A-Za-z0-9._-]{1,128}$/.test(requestId) ? requestId : null;
}
