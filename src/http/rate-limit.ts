/** Limits on how often one key, and one address without a key, may call. Counted in this process. */
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Config } from "../config/index.ts";
import { Refusal } from "../contract/errors.ts";

/** Header fields that tell the client where it stands; empty where nothing is limited. */
export type Standing = Record<string, string>;

export interface RateLimits {
  /** Counts a request of a key. Throws RATE_LIMITED. */
  key(keyId: string): Promise<Standing>;
  /** Counts a call without a valid key. Throws RATE_LIMITED. */
  address(address: string): Promise<Standing>;
  /** Counts a key that is none. Throws RATE_LIMITED when there were too many. */
  badKey(address: string): Promise<void>;
}

const LONGEST_PENALTY = 64;
const NOTHING: Standing = {};

export function createRateLimits(limits: Config["rate_limits"]): RateLimits {
  const keys = limits.per_key === null ? null : window("key", limits.per_key);
  const addresses = limits.per_address === null ? null : window("address", limits.per_address);
  const bad =
    limits.bad_keys_per_minute === 0
      ? null
      : new RateLimiterMemory({ points: limits.bad_keys_per_minute, duration: 60, keyPrefix: "bad" });
  return {
    key: (keyId) => keys?.(keyId) ?? Promise.resolve(NOTHING),
    address: (address) => addresses?.(address) ?? Promise.resolve(NOTHING),
    async badKey(address) {
      try {
        await bad?.consume(address);
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        // Doubles with each further try, so that a client in a loop is soon told to wait for a minute.
        const wait = Math.min(LONGEST_PENALTY, 2 ** Math.min(6, error.consumedPoints - limits.bad_keys_per_minute - 1));
        throw limited(
          `${limits.bad_keys_per_minute} wrong API keys came from this address within a minute; check the key, and wait ${wait} s`,
          { "Retry-After": String(wait) },
        );
      }
    },
  };
}

/** draft-ietf-httpapi-ratelimit-headers-10: `RateLimit-Policy` says the rule, `RateLimit` what is left of it. */
function window(
  name: string,
  { requests, seconds }: { requests: number; seconds: number },
): (id: string) => Promise<Standing> {
  const limiter = new RateLimiterMemory({ points: requests, duration: seconds, keyPrefix: name });
  const policy = `"${name}";q=${requests};w=${seconds}`;
  const standing = (left: number, ms: number): Standing => ({
    RateLimit: `"${name}";r=${left};t=${Math.ceil(ms / 1000)}`,
    "RateLimit-Policy": policy,
  });
  return async (id) => {
    try {
      const { remainingPoints, msBeforeNext } = await limiter.consume(id);
      return standing(remainingPoints, msBeforeNext);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      const wait = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
      throw limited(`the limit of ${requests} requests in ${seconds} s for this ${name} is used up; wait ${wait} s`, {
        ...standing(0, error.msBeforeNext),
        "Retry-After": String(wait),
      });
    }
  };
}

function limited(detail: string, headers: Record<string, string>): Refusal {
  return new Refusal("RATE_LIMITED", detail, { headers });
}
