/** The retention period erases each action once: across a crash, next to another process, and when the clock goes back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createRetentionTask } from "../../../plugins/retention/sweep.ts";
import { StorageError, type Storage } from "../../../src/contract/storage.ts";
import { type CoreHost, defineCorePlugin } from "../../../src/core.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { memoryStorage } from "../../../src/testing/index.ts";
import { SECRET } from "../../support/deployment.ts";
import { newKey } from "../../support/keys.ts";
import { setSection, startService, type Service, type ServiceOptions } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const DAY = 86_400_000;
/** More than two pages of a sweep. */
const ACTIONS = 150;
const RETENTION_DAYS = 10;

interface Process extends Service {
  sweep(): Promise<number>;
}

/** Starts a service whose sweeps the test runs, besides the one at its start. */
async function startProcess(storage: Storage, change: ServiceOptions["change"] = () => undefined): Promise<Process> {
  const hosts: CoreHost[] = [];
  const plugin = defineCorePlugin({
    name: "sweeper",
    setup(host) {
      hosts.push(host);
      return {};
    },
  }) as Plugin;
  const service = await startService({
    policy: "policy: none\nrules: []\n",
    storage: () => storage,
    plugins: [{ plugin, options: {}, origin: "sweeper", core: true }],
    change(config) {
      setSection(config, "retention", { request_days: RETENTION_DAYS });
      change(config);
    },
  });
  const periods = { request_days: RETENTION_DAYS, result_days: null, meta_days: null, questions_days: null };
  return Object.assign(service, { sweep: () => createRetentionTask(hosts.at(-1) ?? assert.fail(), periods).sweep() });
}

async function submit(service: Service, number: number): Promise<void> {
  for (let i = 0; i < number; i++) {
    const body = { agent_id: "bot", tool: "none", operation: "x", params: { i } };
    assert.equal((await service.call("POST", "/v1/actions", { key: service.admin, body })).status, 200);
  }
}

async function countKept({ storage }: Service): Promise<number> {
  const rows = await storage.actions({ visibility: { all: true }, limit: 1000 });
  return rows.filter(({ erased_at }) => erased_at === null).length;
}

/** Asserts that so many actions were erased, each with one entry. */
async function assertErasedOnce(service: Service, number: number): Promise<void> {
  const entries = await service.storage.entries(0, 1000);
  const ids = entries.filter(({ type }) => type === "erasure").map(({ action_id }) => action_id);
  assert.deepEqual([ids.length, new Set(ids).size], [number, number]);
}

/** Loses the connection at the commit of the second transaction that erases. */
function losingCommit(storage: Storage, isStored: boolean): Storage {
  let erasing = 0;
  return {
    ...storage,
    async write(work) {
      let erases = false;
      const lose = (): void => {
        if (erases && ++erasing === 2) throw new StorageError("unavailable", "the connection was lost at the commit");
      };
      const result = await storage.write(async (tx) => {
        const observed = {
          ...tx,
          eraseAction: (...args: Parameters<typeof tx.eraseAction>) => {
            erases = true;
            return tx.eraseAction(...args);
          },
        };
        const done = await work(observed);
        if (!isStored) lose();
        return done;
      });
      if (isStored) lose();
      return result;
    },
  };
}

describe("the retention period", () => {
  for (const isStored of [false, true])
    test(`goes on after a crash whose last commit was ${isStored ? "" : "not "}stored`, async () => {
      const service = await startProcess(losingCommit(memoryStorage(), isStored));
      try {
        await submit(service, ACTIONS);
        service.clock.now += (RETENTION_DAYS + 1) * DAY;
        await assert.rejects(service.sweep());
        const kept = await countKept(service);
        assert.ok(kept > 0 && kept < ACTIONS, `${kept} are left by the crash`);
        await assertErasedOnce(service, ACTIONS - kept);
        await service.restart();
        await until("the next process erases the rest", async () => (await countKept(service)) === 0);
        await assertErasedOnce(service, ACTIONS);
      } finally {
        await service.close();
      }
    });

  test("erases nothing twice if a process continues without its lease while another process has it", async () => {
    const memory = memoryStorage();
    await memory.open();
    const key = newKey();
    let isSweeping = false;
    let reads = 0;
    let release = (): void => undefined;
    const bothRead = new Promise<void>((resolve) => (release = resolve));
    const shared: Storage = {
      ...memory,
      exclusive: false,
      open: () => Promise.resolve(),
      close: () => Promise.resolve(),
      lease: () => Promise.resolve(true),
      async actions(filter) {
        const rows = await memory.actions(filter);
        if (!isSweeping) return rows;
        if (++reads === 2) release();
        await bothRead;
        return rows;
      },
    };
    const start = (): Promise<Process> =>
      startProcess(shared, (config) => {
        config.secret = SECRET;
        config.ledger.key = key;
        config.ledger.origin = "retention.test/log";
      });
    const one = await start();
    const two = await start();
    try {
      await submit(one, ACTIONS);
      for (const { clock } of [one, two]) clock.now += (RETENTION_DAYS + 1) * DAY;
      isSweeping = true;
      // Both have read the first page before one of them erases it.
      await Promise.allSettled([one.sweep(), two.sweep()]);
      isSweeping = false;
      assert.equal(await countKept(one), 0);
      await assertErasedOnce(one, ACTIONS);
    } finally {
      await two.close();
      await one.close();
    }
  });

  test("erases nothing early while the clock is back, and all that is due once it is right", async () => {
    const service = await startProcess(memoryStorage());
    const sweepAfter = (days: number): Promise<number> => {
      service.clock.now += days * DAY;
      return service.sweep();
    };
    try {
      await submit(service, 3);
      assert.equal(await sweepAfter(11), 3);
      await submit(service, 2);
      assert.equal(await sweepAfter(-11), 0, "the newer two are dated eleven days ahead");
      assert.equal(await sweepAfter(20), 0, "they are nine days old");
      assert.equal(await sweepAfter(2), 2);
      await assertErasedOnce(service, 5);
    } finally {
      await service.close();
    }
  });
});
