/** Limits on how often one key, and one address without a key, may call. Counted in this process. */
import type { Config } from "../config/index.ts";
import { Refusal } from "../contract/errors.ts";
import { createRateWindows } from "./rate-windows.ts";

/** Header fields that tell the client where it stands; empty where nothing is limited. */
export type RateLimitHeaders = Record<string, string>;

export interface RateLimits {
  /** Counts a request of a key. Throws RATE_LIMITED. */
  key(keyId: string): RateLimitHeaders;
  /** Counts a call without a valid key. Throws RATE_LIMITED. */
  address(address: string): RateLimitHeaders;
  /** Counts an invalid key. Throws RATE_LIMITED when there were too many. */
  badKey(address: string): void;
}

const LONGEST_PENALTY = 64;
const NOTHING: RateLimitHeaders = {};

export function createRateLimits(limits: Config["rate_limits"]): RateLimits {
  const keys = limits.per_key === null ? null : limit("key", limits.per_key);
  const addresses = limits.per_address === null ? null : limit("address", limits.per_address);
  const most = limits.bad_keys_per_minute;
  const badKeys = most === 0 ? null : createRateWindows(60_000);
  return {
    key: (keyId) => keys?.(keyId) ?? NOTHING,
    address: (address) => addresses?.(address) ?? NOTHING,
    badKey(address) {
      const uses = badKeys?.(address).uses ?? 0;
      if (uses <= most) return;
      // Doubles with each further try, so that a client in a loop is soon told to wait for a minute.
      const wait = Math.min(LONGEST_PENALTY, 2 ** Math.min(6, uses - most - 1));
      throw limited(
        `${most} wrong API keys came from this address within a minute; check the key, and wait ${wait} s`,
        { "Retry-After": String(wait) },
      );
    },
  };
}

/** draft-ietf-httpapi-ratelimit-headers-10: `RateLimit-Policy` says the rule, `RateLimit` what is left of it. */
function limit(
  name: string,
  { requests, seconds }: { requests: number; seconds: number },
): (id: string) => RateLimitHeaders {
  const windows = createRateWindows(seconds * 1000);
  const policy = `"${name}";q=${requests};w=${seconds}`;
  return (id) => {
    const { uses, endsIn } = windows(id);
    const wait = Math.max(1, Math.ceil(endsIn / 1000));
    const standing = {
      RateLimit: `"${name}";r=${Math.max(0, requests - uses)};t=${wait}`,
      "RateLimit-Policy": policy,
    };
    if (uses <= requests) return standing;
    throw limited(`the limit of ${requests} requests in ${seconds} s for this ${name} is used up; wait ${wait} s`, {
      ...standing,
      "Retry-After": String(wait),
    });
  };
}

function limited(detail: string, headers: Record<string, string>): Refusal {
  return new Refusal("RATE_LIMITED", detail, { headers });
}
