/** Rate limits, also when the time of day changes. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defaultConfig } from "../../src/config/index.ts";
import { Refusal } from "../../src/contract/errors.ts";
import { createRateLimits, type RateLimits } from "../../src/http/rate-limit.ts";
import { createRateWindows } from "../../src/http/rate-windows.ts";

const DAY = 86_400_000;

function refusalOf(work: () => unknown): Refusal | null {
  try {
    work();
    return null;
  } catch (error) {
    assert.ok(error instanceof Refusal);
    return error;
  }
}

describe("rate limits on a clock that is set", () => {
  const limits = (): RateLimits =>
    createRateLimits({
      ...defaultConfig({ data: "unused" }).rate_limits,
      per_key: { requests: 2, seconds: 60 },
      bad_keys_per_minute: 2,
    });

  it("never require a longer wait than their window, after a day forward and back", (t) => {
    const { key } = limits();
    const now = Date.now;
    const clock = t.mock.method(Date, "now", () => now() + DAY);
    key("k");
    key("k");
    clock.mock.restore();
    const refusal = refusalOf(() => key("k"));
    assert.ok(refusal !== null);
    assert.equal(refusal.code, "RATE_LIMITED");
    assert.ok(Number(refusal.headers["Retry-After"]) <= 60, refusal.message);
  });

  it("are not lifted by a clock that jumps forward", (t) => {
    const { key, badKey } = limits();
    for (let i = 0; i < 2; i++) {
      key("k");
      badKey("10.0.0.1");
    }
    const now = Date.now;
    t.mock.method(Date, "now", () => now() + DAY);
    assert.equal(refusalOf(() => key("k"))?.code, "RATE_LIMITED");
    assert.equal(refusalOf(() => badKey("10.0.0.1"))?.code, "TOO_MANY_BAD_KEYS");
  });
});

describe("windows", () => {
  it("begin with the first use of a name, end by themselves, and leave nothing stored", () => {
    let now = 0;
    const windows = createRateWindows(1000, () => now);
    assert.deepEqual(windows("a"), { uses: 1, endsIn: 1000 });
    now = 400;
    assert.deepEqual(windows("b"), { uses: 1, endsIn: 1000 });
    assert.deepEqual(windows("a"), { uses: 2, endsIn: 600 });
    now = 1000;
    assert.deepEqual(windows("a"), { uses: 1, endsIn: 1000 });
    assert.deepEqual(windows("b"), { uses: 2, endsIn: 400 });
    now = 1399;
    assert.deepEqual(windows("b"), { uses: 3, endsIn: 1 });
    now = 1400;
    assert.deepEqual(windows("b"), { uses: 1, endsIn: 1000 });
  });
});
