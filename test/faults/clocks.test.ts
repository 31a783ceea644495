/** Processes on one Postgres that disagree about the time, and a Postgres whose own clock was set back. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import postgres from "postgres";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { createDuty } from "../../src/cluster/duty.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
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

  it("the job of a process that died with its clock a day ahead is taken over like any other's", () =>
    withStore(async (storage, url) => {
      const duty = createDuty(storage, "job", "the heir");
      await withChild(url, DAY, async (isIts) => {
        assert.equal(isIts, true);
        assert.equal(await duty.mine(), false, "it lives");
      });
      await until("the job is taken over", () => duty.mine());
    }));

  it("a process whose clock is a day ahead takes no job from one that does it", () =>
    withStore(async (storage, url) => {
      assert.equal(await createDuty(storage, "job", "the holder").mine(), true);
      await withChild(url, DAY, async (isIts) => assert.equal(isIts, false));
    }));

  it("a lease that Postgres timed before its clock was set back has ended", () =>
    withStore(async (storage, url) => {
      const sql = postgres(url, { max: 1 });
      try {
        await sql`insert into leases (name, holder, until) values ('job', 'gone', ${Date.now() + DAY}), ('process/gone', 'gone', ${Date.now() + DAY})`;
      } finally {
        await sql.end();
      }
      assert.deepEqual(await storage.leases(30_000), []);
      assert.equal(await createDuty(storage, "job", "the heir").mine(), true);
      assert.deepEqual(await storage.leases(30_000), [{ name: "job", holder: "the heir" }]);
    }));
});
