/** How old a message counts where the clocks of two processes show different things, and what the way took is not known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createArrivals, createClocks, LONGEST_WAIT, PATIENCE } from "../../src/cluster/sequencing/freshness.ts";

/** Two clocks, of which `theirs` runs at another pace and from another point. */
function worlds(pace = 1) {
  let real = 1_000;
  return {
    mine: () => 5_000_000 + real,
    theirs: () => 40_000 + real * pace,
    pass: (ms: number) => void (real += ms),
  };
}

test("a message never counts as younger than it is, whatever its way and the answer's took, and whoever's clock is faster", () => {
  for (const pace of [0.9995, 1, 1.0005])
    for (const back of [0, 5, 700, 1_900])
      for (const idle of [0, 10, 59_000])
        for (const way of [0, 3, 1_400]) {
          const { mine, theirs, pass } = worlds(pace);
          const clocks = createClocks(mine);
          const said = Math.floor(theirs());
          pass(back);
          clocks.note("a", said);
          pass(idle);
          const sent = clocks.at("a", mine());
          const began = theirs();
          assert.ok(sent <= began && sent > began - back * pace - 95, `${pace} ${back} ${idle}: ${began - sent}`);
          // And one that was begun before the answer came.
          assert.ok(clocks.at("a", mine() - idle - back - 100) <= theirs() - (idle + back + 100) * pace);
          pass(way);
          const arrivals = createArrivals(theirs);
          if (way > 0 && back === 0 && idle < 59_000)
            assert.equal(arrivals.isStale({ sent }), false, `${pace} ${back} ${idle} ${way}`);
        }
});

test("the answer that was least on its way is gone by; of another process, and after a fault, nothing is known", () => {
  const { mine, theirs, pass } = worlds();
  const clocks = createClocks(mine);
  assert.equal(clocks.knows("a"), false);
  assert.equal(clocks.at("a", mine()), 0);
  clocks.note("a", theirs());
  const slow = theirs();
  pass(1_000);
  clocks.note("a", slow);
  assert.ok(theirs() - clocks.at("a", mine()) <= 2);
  assert.equal(clocks.knows("a"), true);
  assert.equal(clocks.knows("b"), false);
  assert.equal(clocks.at("b", mine()), 0);
  pass(60_000);
  assert.equal(clocks.knows("a"), false);
  clocks.note("a", theirs());
  assert.equal(clocks.knows("a"), true);
  clocks.forget();
  assert.equal(clocks.knows("a"), false);
});

test("a message is taken once, and only while its sender waits for it", () => {
  let now = 10_000;
  const arrivals = createArrivals(() => now);
  const nonce = "0".repeat(32);
  assert.ok(LONGEST_WAIT < PATIENCE);
  assert.equal(arrivals.take({ nonce, sent: now }), "fresh");
  assert.equal(arrivals.take({ nonce, sent: now }), "again");
  const others = Array.from({ length: 500 }, (_, i) => ({ nonce: String(i), sent: now }));
  for (const one of others) assert.equal(arrivals.take(one), "fresh");
  now += LONGEST_WAIT;
  assert.equal(arrivals.take({ nonce: "held", sent: now - LONGEST_WAIT }), "fresh");
  for (const one of others) assert.equal(arrivals.take(one), "again");
  now += 1;
  // By now they are forgotten, and too old.
  for (const one of others) assert.notEqual(arrivals.take(one), "fresh");
  assert.equal(arrivals.take({ nonce: "old", sent: now - LONGEST_WAIT - 1 }), "stale");
  assert.equal(arrivals.take({ nonce: "of another time", sent: now + 1 }), "stale");
  assert.equal(arrivals.take({ nonce: "of no time", sent: 0 }), "stale");
  assert.equal(arrivals.take({ nonce: "new", sent: now }), "fresh");
});

test("a process remembers so many messages and takes no more, rather than forget one that can come again", () => {
  let now = 0;
  const arrivals = createArrivals(() => now);
  const results = Array.from({ length: 16_385 }, (_, i) => arrivals.take({ nonce: String(i), sent: 0 }));
  assert.equal(results.filter((one) => one === "fresh").length, 16_384);
  assert.equal(results.at(-1), "stale");
  assert.equal(arrivals.take({ nonce: "0", sent: 0 }), "again");
  now = LONGEST_WAIT + 1;
  assert.equal(arrivals.take({ nonce: "next", sent: now }), "fresh");
});
