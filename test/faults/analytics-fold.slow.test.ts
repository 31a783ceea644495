/** Tests when the background job that sums analytics writes to the store, and when it must not write. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createSumUpdater, computeChunkSize, type SumUpdater } from "../../src/cluster/update-sums.ts";
import type { SumUpdaterOptions } from "../../src/cluster/update-sums.ts";

interface Bench {
  folding: SumUpdater;
  logged: string[];
  /** Makes the next write of the sums fail. */
  failNext(): void;
  announce(entries: number): void;
  /** Advances the clock by `ms` in steps, and waits for all work that becomes due. */
  pass(ms: number): Promise<void>;
  folds(): number;
}

async function begin(t: TestContext): Promise<Bench> {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  let failing = false;
  const logged: string[] = [];
  let size = 0;
  let listener: (size: number) => void = () => {};
  const ledger = { onGrowth: (given: typeof listener) => ((listener = given), () => (listener = () => {})) };
  const folding = createSumUpdater({
    upkeep: async () => {
      calls++;
      if (failing) throw ((failing = false), new Error("no"));
      return 0;
    },
    ledger,
    lease: { isLeader: async () => true, release: async () => {} },
    log: { warn: (message: string) => logged.push(message) },
  } as unknown as SumUpdaterOptions);
  folding.start();
  return {
    folding,
    logged,
    failNext: () => (failing = true),
    announce: (entries) => listener((size += entries)),
    async pass(ms) {
      for (let passed = 0; passed < ms; passed += 250) {
        t.mock.timers.tick(250);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    folds: () => calls,
  };
}

test("an idle service updates the sums once and then does not write to the store, whatever the entries were about", async (t) => {
  const { folding, announce, pass, folds } = await begin(t);
  await pass(2000);
  assert.equal(folds(), 1, "what an earlier run left");
  announce(7);
  await pass(2000);
  assert.equal(folds(), 2);
  await pass(600_000);
  assert.equal(folds(), 2);
  await folding.stop();
});

test("waits for a second without entries, but not forever", async (t) => {
  const { folding, announce, pass, folds } = await begin(t);
  await pass(2000);
  for (let i = 0; i < 10; i++) {
    announce(100);
    await pass(500);
  }
  assert.equal(folds(), 1, "somebody is always waiting");
  announce(20_000);
  await pass(1000);
  assert.equal(folds(), 2);
  await folding.stop();
});

test("a failed update of the sums is retried, and nothing else happens", async (t) => {
  const { folding, announce, pass, folds, failNext, logged } = await begin(t);
  await pass(2000);
  failNext();
  announce(1);
  await pass(2000);
  assert.deepEqual([folds(), logged.length], [2, 1]);
  await pass(10_000);
  assert.deepEqual([folds(), logged.length], [3, 1]);
  await folding.stop();
});

test("a notification with a size that the ledger never had does not delay the update", async (t) => {
  const { folding, announce, pass, folds } = await begin(t);
  await pass(2000);
  announce(1);
  await pass(2000);
  announce(1_000_000_000);
  await pass(2000);
  announce(-1_000_000_000);
  await pass(2000);
  assert.equal(folds(), 4);
  for (let i = 0; i < 10; i++) {
    announce(2500);
    await pass(500);
  }
  assert.equal(folds(), 5, "what is behind is folded although there is no quiet");
  await folding.stop();
});

test("after a stop, the sums are not updated", async (t) => {
  const { folding, announce, pass, folds } = await begin(t);
  announce(30_000);
  await folding.stop();
  await pass(60_000);
  assert.equal(folds(), 0);
});

test("transactions sum more entries while they are short, and fewer after a long one", () => {
  const sizes = (ms: number, from: number): number[] => {
    const all = [from];
    for (let i = 0; i < 6; i++) all.push(computeChunkSize(all.at(-1) as number, ms));
    return all;
  };
  assert.deepEqual(sizes(5, 250), [250, 500, 1000, 2000, 4000, 4000, 4000]);
  assert.deepEqual(sizes(200, 4000), [4000, 2000, 1000, 500, 250, 250, 250]);
  assert.deepEqual(sizes(30, 1000).at(-1), 1000);
});
