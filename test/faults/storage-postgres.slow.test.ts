/** Faults of a database over a network: locks of other clients, lost connections, timeouts, TLS. */
import assert from "node:assert/strict";
import type { StorageHost } from "../../src/plugin.ts";
import { createLogger } from "../../src/serve/log.ts";
import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import postgres from "postgres";
import plugin, { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { Address } from "../../plugins/storage-postgres/dial.ts";
import { parseAddresses, openSession } from "../../plugins/storage-postgres/database-session.ts";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { idempotencyRow } from "../../src/testing/suite/rows.ts";
import { makeCertificate } from "../support/receiver.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startPgbouncer, withoutPgbouncer } from "../support/pgbouncer.ts";
import { NODE, scriptOf } from "../support/runtimes.ts";
import { pause, until } from "../support/wait.ts";

const unavailable =
  (words: RegExp) =>
  (error: unknown): boolean =>
    error instanceof StorageError && error.kind === "unavailable" && words.test(error.message);

describe("a store on Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let url: string;
  let storage: Storage;
  before(async () => {
    server = await startPostgres();
    url = await server.database();
    storage = postgresStorage({ url, poolSize: 2, lockTimeoutMs: 300, statementTimeoutMs: 500, silenceTimeoutMs: 500 });
    await storage.open();
  });
  after(async () => {
    await storage.close();
    await server.stop();
  });

  it("waits for another client's lock at most for its timeout, and continues when the lock is released", async () => {
    const other = postgres(url, { max: 1 });
    try {
      await other.begin(async (tx) => {
        await tx`select 1 from ledger_head for update`;
        let ran = false;
        await assert.rejects(
          storage.write(async () => void (ran = true)),
          unavailable(/lock timeout/),
        );
        assert.equal(ran, false);
        assert.equal((await storage.head()).size, 0, "reads do not wait");
      });
      await storage.write((tx) => tx.putMeta("after", "yes"));
      assert.equal(await storage.meta("after"), "yes");
    } finally {
      await other.end();
    }
  });

  it("lets another process continue when the process that holds the lock is stopped, and discards that process's write", async () => {
    const address = await server.database();
    const other = postgresStorage({ url: address });
    await other.open();
    const holder = spawn(process.execPath, [...NODE, scriptOf("test/faults/children/lock-holder"), address], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface({ input: holder.stdout })[Symbol.asyncIterator]();
    try {
      assert.equal((await lines.next()).value, "holds the lock");
      holder.kill("SIGSTOP");
      await other.write((tx) => tx.putMeta("a", "other"));
      holder.kill("SIGCONT");
      holder.stdin.write("go on\n");
      assert.equal((await lines.next()).value, "unavailable");
      assert.equal(await other.meta("a"), "other");
    } finally {
      holder.kill("SIGKILL");
      await other.close();
    }
  });

  it(
    "is refused behind a pooler that shares connections between transactions",
    { skip: withoutPgbouncer },
    async () => {
      const address = new URL(await server.database());
      const pooler = await startPgbouncer(address, "transaction");
      try {
        address.port = String(pooler.port);
        const pooled = postgresStorage({ url: address.href });
        await assert.rejects(pooled.open(), unavailable(/pool_mode = session/));
      } finally {
        await pooler.stop();
      }
    },
  );

  it(
    "keeps its timeouts behind a pooler, which would refuse or drop them among the startup parameters",
    {
      skip: withoutPgbouncer,
    },
    async () => {
      const address = new URL(url);
      const pooler = await startPgbouncer(address, "session");
      address.port = String(pooler.port);
      const pooled = postgresStorage({ url: address.href, poolSize: 2, lockTimeoutMs: 300 });
      const other = postgres(url, { max: 1 });
      try {
        await pooled.open();
        await other.begin(async (tx) => {
          await tx`select 1 from ledger_head for update`;
          await assert.rejects(
            pooled.write(() => Promise.resolve()),
            unavailable(/lock timeout/),
          );
        });
      } finally {
        await other.end();
        await pooled.close();
        await pooler.stop();
      }
    },
  );

  it("does not let work that hangs hold the lock forever", async () => {
    const hanging = storage.write(async (tx) => {
      await tx.putMeta("hangs", "yes");
      await pause(1500);
      await tx.putMeta("hangs", "longer");
    });
    await assert.rejects(hanging, StorageError);
    assert.equal(await storage.meta("hangs"), null, "nothing of it is there");
    await storage.write((tx) => tx.putMeta("hangs", "no more"));
  });

  it("reports a row that was sent but not inserted, and stores none of the others", async () => {
    const row = idempotencyRow("i", { key_id: "k", route: "r", resource_id: "x" });
    await storage.write((tx) => tx.insertIdempotency(row));
    await assert.rejects(
      storage.write(async (tx) => {
        await tx.insertIdempotency({ ...row, resource_id: "y" });
      }),
      unavailable(/duplicate key/),
    );
    await assert.rejects(
      storage.write(async (tx) => {
        await tx.insertIdempotency({ ...row, resource_id: "y" });
        await tx.putMeta("beside", "it");
      }),
      StorageError,
    );
    assert.deepEqual(
      [(await storage.idempotency("k", "r", "i"))?.resource_id, await storage.meta("beside")],
      ["x", null],
    );
    await storage.write((tx) => tx.putMeta("next", "goes in"));
  });

  it("loses the transaction with its connection, at any moment, and opens a new connection", async () => {
    for (const moment of ["before", "between", "after"]) {
      const result = storage.write(async (tx) => {
        if (moment === "before") await server.cutConnections();
        await tx.putMeta("cut", moment);
        if (moment === "between") await server.cutConnections();
        await tx.putMeta("cut too", moment);
        if (moment === "after") await server.cutConnections();
      });
      await assert.rejects(result, StorageError, moment);
      await until("it connects again", () =>
        storage
          .write((tx) => tx.putMeta("back", moment))
          .then(
            () => true,
            () => false,
          ),
      );
      assert.deepEqual(
        [await storage.meta("cut"), await storage.meta("cut too"), await storage.meta("back")],
        [null, null, moment],
      );
    }
  });

  it("releases the memory of results while the connection stays open", async () => {
    const options = {
      url,
      name: "assent test",
      connectTimeoutMs: 10_000,
      statementTimeoutMs: 10_000,
      silenceMs: 10_000,
      lockTimeoutMs: 10_000,
      tls: "disable",
    } as const;
    const session = await openSession(options, parseAddresses(options)[0] as Address);
    const ask = async (): Promise<object> => (await session.query("select $1::text as n", ["1"])).rows;
    const answers: WeakRef<object>[] = [];
    for (let i = 0; i < 20; i++) answers.push(new WeakRef(await ask()));
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    await until("the answers are collected", () => {
      collect();
      // The socket can still reference the newest results.
      return answers.filter((answer) => answer.deref() !== undefined).length < 10;
    });
    await session.end();
  });

  it("rejects a database whose encoding cannot store every string", async () => {
    await server.run(url, (client) =>
      client.unsafe("create database latin encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'"),
    );
    try {
      const address = new URL(url);
      address.pathname = "/latin";
      await assert.rejects(postgresStorage({ url: address.href }).open(), unavailable(/encoding LATIN1.*createdb/));
    } finally {
      await server.run(url, (client) => client.unsafe("drop database latin with (force)"));
    }
  });

  it("reports what is wrong with a URL without printing its password", async () => {
    const { port } = new URL(url);
    for (const [address, words] of [
      [`postgres://assent:hidden@127.0.0.1:${port}/nothing`, /database "nothing" does not exist/],
      ["postgres://assent:hidden@127.0.0.1:1/assent", /ECONNREFUSED/],
    ] as const) {
      const wrong = postgresStorage({ url: address, connectTimeoutMs: 2000 });
      await assert.rejects(
        wrong.open(),
        (error: unknown) =>
          error instanceof StorageError && words.test(error.message) && !error.message.includes("hidden"),
      );
      await wrong.close();
    }
  });
});

function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

describe(
  "TLS to Postgres",
  { skip: withoutPostgres || (hasOpenssl() ? false : "no openssl to make a certificate with") },
  () => {
    let server: PostgresServer;
    let certificate: string;
    before(async () => {
      const { key, cert } = makeCertificate("localhost");
      certificate = cert;
      server = await startPostgres({
        settings: ["ssl=on"],
        files: {
          "server.crt": certificate,
          "server.key": key,
          "pg_hba.conf": "host all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n",
        },
      });
    });
    after(async () => {
      await server.stop();
    });

    async function encrypted(url: string): Promise<boolean> {
      const client = postgres(url, { max: 1 });
      try {
        const [row] =
          await client`select bool_and(ssl) as all from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'assent%'`;
        return row?.["all"] === true;
      } finally {
        await client.end();
      }
    }

    it("is used and checked as asked", async () => {
      const url = (await server.database()).replace("127.0.0.1", "localhost");
      const plain = postgresStorage({ url, tls: "disable" });
      await plain.open();
      assert.equal(await encrypted(url), false);
      await plain.close();
      for (const options of [{ tls: "require" as const }, { tls: "verify-full" as const, ca: certificate }]) {
        const storage = postgresStorage({ url, ...options });
        await storage.open();
        await storage.write((tx) => tx.putMeta("a", "b"));
        assert.equal(await encrypted(url), true, JSON.stringify(options.tls));
        await storage.close();
      }
      const strict = postgresStorage({ url, tls: "verify-full" });
      await assert.rejects(strict.open(), /self-signed certificate/);
      await strict.close();
      const elsewhere = postgresStorage({
        url: url.replace("localhost", "127.0.0.2"),
        tls: "verify-full",
        ca: certificate,
        connectTimeoutMs: 2000,
      });
      await assert.rejects(elsewhere.open(), StorageError);
      await elsewhere.close();
    });

    it("accepts a certificate authority only in modes that verify certificates", () => {
      const host: StorageHost = { log: createLogger("silent"), data: "/nowhere", databaseUrl: "postgres://x/y" };
      const options = {
        pool_size: 8,
        statement_timeout_ms: 30_000,
        silence_timeout_ms: 2_500,
        lock_timeout_ms: 10_000,
        connect_timeout_ms: 10_000,
        accept_unsafe_server: false,
        notify: true,
        statement_triggers: true,
      };
      assert.throws(
        () => plugin.storage?.(host, { ...options, tls: "require", tls_ca_file: "/nonexistent" }),
        /tls_ca_file requires tls: verify-full/,
      );
      assert.throws(
        () => plugin.storage?.(host, { ...options, tls: "verify-full", tls_ca_file: "/nonexistent" }),
        /tls_ca_file cannot be read: ENOENT/,
      );
    });
  },
);
