/**
 * Cuts the connection to Postgres in the middle of a batch, at any position and in each way. Acknowledged actions are
 * recorded once, rejected ones are not recorded, the process survives, and the audit passes.
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { cuttingProxy, type Cut, type CutPlan, type CuttingProxy } from "../support/cutting-proxy.ts";
import { newKey } from "../support/keys.ts";
import { startPgbouncer, withoutPgbouncer } from "../support/pgbouncer.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { commandOf, scriptOf, withoutRuntime, type RuntimeName } from "../support/runtimes.ts";

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const LOG_KEY = newKey();
const PERMIT_KEY = newKey();
/** Multiplies the number of tested positions. */
const ROUNDS = Number(process.env["ASSENT_TEST_ROUNDS"] ?? 1);
const CUTS: Cut[] = ["fin", "rst", "terminate"];

interface Told {
  ids: string[];
  /** The first response that was not a decision. */
  refused: unknown;
}

class Submitter {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;
  /** Ids of all acknowledged actions. */
  readonly ids: string[] = [];
  said = "";

  constructor(runtime: RuntimeName, url: string) {
    const [program, args] = commandOf(runtime, scriptOf("test/faults/children/submitter"), [url, ADMIN], ["-A"]);
    this.child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, LOG_KEY, PERMIT_KEY },
    });
    this.child.stderr?.on("data", (chunk: Buffer) => (this.said += chunk.toString()));
    this.lines = createInterface({ input: this.child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  async answer<T>(): Promise<T> {
    const { value, done } = await this.lines.next();
    if (done === true) throw new Error(`the process ended:\n${this.said.slice(-4000)}`);
    return JSON.parse(value) as T;
  }

  private async tell<T>(line: string): Promise<T> {
    this.child.stdin?.write(`${line}\n`);
    return this.answer<T>();
  }

  async submit(count: number): Promise<Told> {
    const told = await this.tell<Told>(`submit ${count}`);
    this.ids.push(...told.ids);
    return told;
  }

  restart = (): Promise<unknown> => this.tell("restart");

  async end(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const gone = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.stdin?.end("end\n");
    await gone;
  }
}

/** Asserts that the audit passes and that each acknowledged action is recorded once. */
async function assertWhole(url: string, ids: readonly string[]): Promise<void> {
  const storage = postgresStorage({ url, poolSize: 2 });
  await storage.open({ readOnly: true });
  try {
    const vkey = (await storage.meta("log_vkey")) ?? undefined;
    assert.deepEqual((await auditStore(storage, vkey as string)).faults, []);
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) {
      const decided = (await storage.entriesOfAction(id)).filter(({ type }) => type === "decision");
      assert.equal(decided.length, 1, `${id} is there once`);
    }
  } finally {
    await storage.close();
  }
}

function places(): { count: number; after: CutPlan["after"] }[] {
  const messages = [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17].map((n) => ({ count: 3, after: { messages: n } }));
  const small = Array.from({ length: 4 * ROUNDS }, (_, i) => ({ count: 16, after: { bytes: 2 * i * 1024 + 1 } }));
  const large = Array.from({ length: 3 * ROUNDS }, (_, i) => ({
    count: 250,
    after: { bytes: 1 + Math.floor((i * 400_000) / (3 * ROUNDS)) },
  }));
  return [{ count: 1, after: { bytes: 1 } }, ...messages, ...small, ...large];
}

describe("a connection to Postgres that is cut", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  async function withProxy(
    target: (url: URL) => Promise<{ port: number; stop(): Promise<void> }>,
    work: (proxy: CuttingProxy, url: string, direct: string) => Promise<void>,
  ): Promise<void> {
    const direct = await server.database();
    const behind = await target(new URL(direct));
    const proxy = await cuttingProxy(behind.port, () => server.terminate(direct, "assent writer"));
    const url = new URL(direct);
    url.port = String(proxy.port);
    try {
      await work(proxy, url.href, direct);
    } finally {
      await proxy.stop();
      await behind.stop();
    }
  }

  async function rounds(
    runtime: RuntimeName,
    proxy: CuttingProxy,
    url: string,
    direct: string,
    plans: readonly { count: number; how: Cut; after: CutPlan["after"]; cold?: boolean }[],
  ): Promise<void> {
    const submitter = new Submitter(runtime, url);
    try {
      await submitter.answer();
      let struck = 0;
      for (const { count, how, after, cold } of plans) {
        if (cold === true) await submitter.restart();
        void proxy.arm({ how, after }).then(() => struck++);
        await submitter.submit(count);
        proxy.disarm();
        // The service recovers without a restart.
        for (let tries = 0; ; tries++) {
          const { ids, refused } = await submitter.submit(1);
          if (ids.length === 1) break;
          assert.ok(tries < 50, `it serves again after ${how} ${JSON.stringify(after)}: ${JSON.stringify(refused)}`);
        }
      }
      assert.ok(struck > plans.length / 2, `${struck} of ${plans.length} were cut`);
      await assertWhole(direct, submitter.ids);
      await submitter.restart();
      assert.equal((await submitter.submit(1)).ids.length, 1, "the next start serves");
      await assertWhole(direct, submitter.ids);
    } finally {
      await submitter.end();
    }
  }

  const straight = async (url: URL): Promise<{ port: number; stop(): Promise<void> }> => ({
    port: Number(url.port),
    stop: async () => undefined,
  });

  for (const how of CUTS) {
    it(`by ${how}, at any position, keeps the acknowledged actions and nothing else`, { timeout: 600_000 }, () =>
      withProxy(straight, (proxy, url, direct) =>
        rounds(
          "node",
          proxy,
          url,
          direct,
          places().map((place, i) => ({ ...place, how, cold: i % 9 === 8 })),
        ),
      ),
    );
  }

  for (const runtime of ["deno", "bun"] as const) {
    it(`is handled the same on ${runtime}`, { timeout: 600_000, skip: withoutRuntime(runtime) }, () =>
      withProxy(straight, (proxy, url, direct) =>
        rounds(
          runtime,
          proxy,
          url,
          direct,
          places()
            .filter((_, i) => i % 2 === 0)
            .map((place, i) => ({ ...place, how: CUTS[i % 3] as Cut })),
        ),
      ),
    );
  }

  it("is handled the same behind pgbouncer", { timeout: 600_000, skip: withoutPgbouncer }, () =>
    withProxy(
      (url) => startPgbouncer(url),
      (proxy, url, direct) =>
        rounds(
          "node",
          proxy,
          url,
          direct,
          places()
            .filter((_, i) => i % 2 === 0)
            .map((place, i) => ({ ...place, how: CUTS[i % 3] as Cut })),
        ),
    ),
  );

  it("the store rejects a change without a transaction, and an entry that the head does not cover", async () => {
    const direct = await server.database();
    const storage = postgresStorage({ url: direct, poolSize: 1 });
    await storage.open();
    await storage.close();
    const entry = (seq: number): string =>
      `insert into entries (seq, type, leaf_hash, bytes, followed, created_at) values (${seq}, 'decision', '\\x00', '\\x00', 0, 1)`;
    const outside = /outside a transaction/;
    await server.run(direct, async (client) => {
      await assert.rejects(client.unsafe(entry(0)), outside);
      await assert.rejects(client.unsafe("insert into meta (name, value) values ('a', 'b')"), outside);
      await assert.rejects(client.unsafe("update ledger_head set size = 1"), outside);
      const unguarded = await client`select tablename as name from pg_tables where schemaname = 'public' and not exists
        (select 1 from pg_trigger where tgname = tablename || '_in_transaction') order by tablename`;
      assert.deepEqual(
        unguarded.map(({ name }) => String(name)),
        ["leases", "liveness", "processes", "schema_migrations"],
        "single statements change these, and no other",
      );
      const named = "begin; select set_config('assent.transaction', 'x', true);";
      const done = async (sql: string, words: RegExp): Promise<void> => {
        await assert.rejects(client.unsafe(`${named} ${sql}; commit`), words);
        await client.unsafe("rollback");
      };
      await done(entry(0), /not covered by the head/);
      await done("update ledger_head set size = 1", /without its entries/);
      await done(`update ledger_head set size = 2; ${entry(0)}`, /without its entries/);
      await client.unsafe(`${named} update ledger_head set size = 1; ${entry(0)}; commit`);
    });
  });
});
