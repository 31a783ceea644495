/** Rate limits for each key, and for each address without a valid key. Each process counts only its own requests. */
import type { Config } from "../config/index.ts";
import { Refusal } from "../contract/errors.ts";
import { createRateWindows } from "./rate-windows.ts";

/** Headers with the state of the rate limit; empty if there is no limit. */
export type RateLimitHeaders = Record<string, string>;

export interface RateLimits {
  /** Counts a request of a key. Throws RATE_LIMITED. */
  key(keyId: string): RateLimitHeaders;
  /** Counts a call without a valid key. Throws RATE_LIMITED. */
  address(address: string): RateLimitHeaders;
  /** Counts an invalid key. Throws TOO_MANY_BAD_KEYS after too many invalid keys. */
  badKey(address: string): void;
}

/** Maximum `Retry-After` for invalid keys. Seconds. */
const MAX_PENALTY = 64;
const NO_HEADERS: RateLimitHeaders = {};

export function createRateLimits(limits: Config["rate_limits"]): RateLimits {
  const keys = limits.per_key === null ? null : limit("key", limits.per_key);
  const addresses = limits.per_address === null ? null : limit("address", limits.per_address);
  const maxBadKeys = limits.bad_keys_per_minute;
  const badKeys = maxBadKeys === 0 ? null : createRateWindows(60_000);
  return {
    key: (keyId) => keys?.(keyId) ?? NO_HEADERS,
    address: (address) => addresses?.(address) ?? NO_HEADERS,
    badKey(address) {
      const uses = badKeys?.(address).uses ?? 0;
      if (uses <= maxBadKeys) return;
      // `Retry-After` doubles with each attempt, so that it is soon about a minute for a client in a loop.
      const wait = Math.min(MAX_PENALTY, 2 ** Math.min(6, uses - maxBadKeys - 1));
      throw new Refusal(
        "TOO_MANY_BAD_KEYS",
        `this address sent ${maxBadKeys} invalid API keys within a minute; check the key, and wait ${wait} s`,
        { headers: { "Retry-After": String(wait) } },
      );
    },
  };
}

/**
 * Returns a function that counts a request and returns the headers of draft-ietf-httpapi-ratelimit-headers-10:
 * `RateLimit-Policy` with the limit, and `RateLimit` with the number of remaining requests.
 */
function limit(
  name: string,
  { requests, seconds }: { requests: number; seconds: number },
): (id: string) => RateLimitHeaders {
  const windows = createRateWindows(seconds * 1000);
  const policy = `"${name}";q=${requests};w=${seconds}`;
  return (id) => {
    const { uses, endsIn } = windows(id);
    const wait = Math.max(1, Math.ceil(endsIn / 1000));
    const headers = {
      RateLimit: `"${name}";r=${Math.max(0, requests - uses)};t=${wait}`,
      "RateLimit-Policy": policy,
    };
    if (uses <= requests) return headers;
    throw rateLimitedRefusal(
      `the limit of ${requests} requests in ${seconds} s for this ${name} is used up; wait ${wait} s`,
      {
        ...headers,
        "Retry-After": String(wait),
      },
    );
  };
}

function rateLimitedRefusal(detail: string, headers: Record<string, string>): Refusal {
  return new Refusal("RATE_LIMITED", detail, { headers });
}
