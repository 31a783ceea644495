/** Headers that belong to no resource. */
import type { Config } from "../config/index.ts";

/** What every response carries. A page that needs more than nothing brings a policy of its own. */
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

/** An id that the client chose is logged beside ours when it can do no harm there; two requests can have the same. */
export function acceptRequestId(given: string | null): string | null {
  return given !== null && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : null;
}
