/** Several processes with different clocks on one Postgres, and a Postgres whose clock was set back. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import postgres from "postgres";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { createLeaderLease } from "../../src/cluster/leader-lease.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { newKey } from "../support/keys.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";
import { NODE, scriptOf } from "../support/runtimes.ts";
import { until } from "../support/wait.ts";

const DAY = 86_400_000;

describe("shared jobs and wrong clocks", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  async function withStore(work: (storage: Storage, url: string) => Promise<void>): Promise<void> {
    const url = await server.database();
    const storage = postgresStorage({ url });
    await storage.open();
    try {
      await work(storage, url);
    } finally {
      await storage.close();
    }
  }

  async function withChild(url: string, ahead: number, work: (isIts: boolean) => Promise<void>): Promise<void> {
    const child = spawn(process.execPath, [...NODE, scriptOf("test/faults/children/duty"), url, String(ahead)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const gone = once(child, "exit");
    try {
      const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
      await work(value === "true");
    } finally {
      child.kill("SIGKILL");
      await gone;
    }
  }

  it("another process takes over the job of a process that died with its clock a day ahead", () =>
    withStore(async (storage, url) => {
      const duty = createLeaderLease(storage, "job", "the heir");
      await withChild(url, DAY, async (isIts) => {
        assert.equal(isIts, true);
        assert.equal(await duty.isLeader(), false, "it lives");
      });
      await until("the job is taken over", () => duty.isLeader());
    }));

  it("a process whose clock is a day ahead does not take over a job that another process is running", () =>
    withStore(async (storage, url) => {
      assert.equal(await createLeaderLease(storage, "job", "the holder").isLeader(), true);
      await withChild(url, DAY, async (isIts) => assert.equal(isIts, false));
    }));

  it("two processes whose clocks differ by a day write one history, in order", async () => {
    const url = await server.database();
    const key = newKey();
    const start = (ahead: number): Promise<Service> =>
      startService({
        ahead,
        storage: () => postgresStorage({ url, poolSize: 3 }),
        change(config) {
          config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
          config.ledger.key = key;
          config.ledger.origin = "clocks.test/log";
        },
      });
    const right = await start(0);
    const wrong = await start(DAY);
    try {
      const ids: string[] = [];
      for (const service of [right, wrong, right, wrong, right]) {
        const { status, body } = await service.call("POST", "/v1/actions", { key: right.agent, body: ALLOWED });
        assert.equal(status, 200);
        ids.push(body.id as string);
        // An id is created before the lock is acquired, from the latest time that this process has observed.
        const { size } = await right.storage.head();
        const [last] = await right.storage.entries(size - 1, size);
        await until("it was heard of", () => right.runtime.host.clock() >= (last?.created_at ?? 0));
      }
      const { size } = await right.storage.head();
      const times = (await right.storage.entries(0, size)).map(({ created_at }) => created_at);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => a - b),
      );
      assert.deepEqual(ids, [...ids].sort());
      assert.ok(right.runtime.host.ledger.clockAhead() > DAY / 2);
      assert.equal(wrong.runtime.host.ledger.clockAhead(), 0);
    } finally {
      await wrong.close();
      await right.close();
    }
  });

  it("a lease that was acquired before Postgres's clock was set back has expired", () =>
    withStore(async (storage, url) => {
      const sql = postgres(url, { max: 1 });
      try {
        await sql`insert into leases (name, holder, until) values ('job', 'gone', ${Date.now() + DAY}), ('process/gone', 'gone', ${Date.now() + DAY})`;
      } finally {
        await sql.end();
      }
      assert.deepEqual(await storage.leases(30_000), []);
      assert.equal(await createLeaderLease(storage, "job", "the heir").isLeader(), true);
      assert.deepEqual(await storage.leases(30_000), [{ name: "job", holder: "the heir" }]);
    }));
});
