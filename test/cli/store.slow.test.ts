/**
 * Operations on a store, with real processes: backup and restore, audit, migration, and the move from SQLite to
 * Postgres.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { MIGRATIONS } from "../../plugins/storage-sql/migrations.ts";
import { COPIED_TABLES, type Storage } from "../../src/contract/storage.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { readBareHead } from "../../src/testing/suite/rows.ts";
import { assentInProcessWithEnv } from "../support/cli.ts";
import { postgresTool, startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ASSENT, ROOT, startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { ALLOWED, ASKED, FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;

function assent(args: string[], env: Record<string, string>): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...ASSENT, ...args],
      { cwd: ROOT, env: { ...process.env, ...env } },
      (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

async function submit(
  service: ServiceProcess,
  body: object = ALLOWED,
): Promise<{ id: string; decision_hash: string; permit?: string; status: string }> {
  const response = await fetch(`${service.url}/v1/actions`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json", prefer: "permit" },
    body: JSON.stringify(body),
  });
  assert.ok(response.ok, `${response.status}`);
  return (await response.json()) as never;
}

/** Submits continuously until stopped, which resolves once at least so many actions were submitted. */
function load(service: ServiceProcess): (atLeast?: number) => Promise<void> {
  let limit = Infinity;
  let count = 0;
  const done = (async () => {
    while (count < limit)
      count += (await Promise.all([submit(service), submit(service, ASKED), submit(service)])).length;
  })();
  return (atLeast = 0) => {
    limit = Math.max(atLeast, count + 1);
    return done;
  };
}

describe("the embedded store", () => {
  const folder = temporaryFolder("assent-store-");
  const data = join(folder, "data");
  const env = { ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN };
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("is backed up under load and restored: an older copy is detected and rejected unless accepted", async () => {
    const service = await startProcess(env);
    const first = await submit(service);
    const stop = load(service);
    const made = await assent(["backup", join(folder, "backup")], env);
    assert.deepEqual(
      [made.code, made.err],
      [0, "the folder contains the service's secrets: store it where only you can read it\n"],
    );
    await stop();
    const late = await submit(service);
    assert.equal(await stopProcess(service), 0);
    for (const name of readdirSync(join(folder, "backup")))
      assert.equal(statSync(join(folder, "backup", name)).mode & 0o077, 0, name);

    // Onto an empty machine.
    const elsewhere = { ...env, ASSENT_DATA: join(folder, "backup") };
    const audited = await assentInProcessWithEnv(elsewhere, "audit");
    assert.equal(audited.code, 0, audited.out);
    const moved = await startProcess(elsewhere);
    assert.ok(
      (await fetch(`${moved.url}/v1/actions/${first.id}`, { headers: { authorization: `Bearer ${ADMIN}` } })).ok,
    );
    assert.equal(await stopProcess(moved), 0);
    rmSync(join(folder, "backup", "checkpoint"), { force: true });

    // In place of a newer one.
    for (const name of ["assent.db", "assent.db-wal", "assent.db-shm"]) rmSync(join(data, name), { force: true });
    copyFileSync(join(folder, "backup", "assent.db"), join(data, "assent.db"));
    const refused = await assent(["serve", "--port", "0"], env);
    assert.equal(refused.code, 1);
    assert.match(
      refused.err,
      /the store has \d+ entries, and the stored checkpoint .*checkpoint was signed over \d+: an older copy of the store was restored[\s\S]*--accept-rollback/,
    );
    const kept = await assentInProcessWithEnv(env, "audit", "--checkpoint", join(data, "checkpoint"));
    assert.equal(kept.code, 6);
    assert.match(kept.out, /an older copy of the store was restored, or entries were lost/);
    const accepted = await startProcess(env, ["--accept-rollback"]);
    assert.equal(
      (await fetch(`${accepted.url}/v1/actions/${late.id}`, { headers: { authorization: `Bearer ${ADMIN}` } })).status,
      404,
    );
    await submit(accepted);
    assert.equal(await stopProcess(accepted), 0);
    assert.equal(
      readdirSync(data).filter((name) => name.startsWith("checkpoint.before-rollback-")).length,
      1,
      "what was signed before is kept for whoever asks",
    );
    const again = await startProcess(env);
    assert.equal(await stopProcess(again), 0, "once is enough");
  });

  it(
    "rejects a data folder that was replaced as a whole, and a secret from the documentation",
    { timeout: 120_000 },
    async () => {
      const at = { ...env, ASSENT_DATA: join(folder, "whole"), ASSENT_STATE: join(folder, "state") };
      const service = await startProcess(at);
      await submit(service);
      assert.equal(await stopProcess(service), 0);
      cpSync(at.ASSENT_DATA, join(folder, "copy"), { recursive: true });
      const later = await startProcess(at);
      await submit(later);
      assert.equal(await stopProcess(later), 0);
      rmSync(at.ASSENT_DATA, { recursive: true });
      cpSync(join(folder, "copy"), at.ASSENT_DATA, { recursive: true });
      const refused = await assent(["serve", "--port", "0"], at);
      assert.equal(refused.code, 1);
      assert.match(
        refused.err,
        /the store has \d+ entries, and the stored checkpoint .*state.*\.checkpoint was signed over \d+/,
      );
      assert.equal(await stopProcess(await startProcess(at, ["--accept-rollback"])), 0);
      assert.equal(await stopProcess(await startProcess(at)), 0, "once is enough");

      const weak = await assent(["serve", "--port", "0"], {
        ...at,
        ASSENT_SECRET: "a-secret-of-at-least-32-characters",
      });
      assert.deepEqual([weak.code, /the token secret can be guessed/.test(weak.err)], [1, true]);
      assert.ok(!weak.err.includes("a-secret-of"), "it is not repeated");
    },
  );

  it("does not overwrite a backup, and names missing files", async () => {
    assert.match(
      (await assentInProcessWithEnv(env, "backup", join(folder, "backup"))).err,
      /is not empty; give a new one/,
    );
    assert.equal((await assentInProcessWithEnv(env, "backup")).code, 2);
    const nothing = await assentInProcessWithEnv({ ...env, ASSENT_DATA: join(folder, "nothing") }, "audit");
    assert.deepEqual(
      [nothing.code, /there is no store at/.test(nothing.err), existsSync(join(folder, "nothing"))],
      [1, true, false],
    );
  });

  it("is audited even if an unrelated plugin has invalid options", async () => {
    const file = join(folder, "wrong-token.yaml");
    writeFileSync(file, "plugins: [built-in, { name: notify-slack, options: { token: no-token } }]\n");
    const audited = await assentInProcessWithEnv(env, "audit", "--config", file);
    assert.equal(audited.code, 0, audited.err);
    // The same file does prevent a start: otherwise the test would prove nothing.
    assert.match((await assent(["serve", "--port", "0", "--config", file], env)).err, /plugin "notify-slack"/);
  });

  it("the audit runs beside the service, and reports every kind of damage", async () => {
    const service = await startProcess(env);
    const stop = load(service);
    const beside = await assent(["audit", "--json"], env);
    assert.equal(beside.code, 0, beside.out);
    const report = JSON.parse(beside.out) as { entries: number; actions: number; policySets: number };
    assert.ok(report.actions > 10 && report.entries > report.actions && report.policySets >= 1);
    assert.match(beside.err, /entries: 100 % of \d+[\s\S]*actions: 100 % of \d+/);
    await stop();
    const { id } = await submit(service, ASKED);
    assert.equal(await stopProcess(service), 0);

    const damages: [string, RegExp][] = [
      [
        `update actions set status = 'approved' where id = unhex('${id}', '-')`,
        /is approved in the store and pending_approval in the ledger/,
      ],
      [
        `update actions set request = replace(request, '500', '900') where id = unhex('${id}', '-')`,
        /does not hash to its request hash/,
      ],
      [
        "drop trigger policy_sets_no_update; update policy_sets set document = document || ' '",
        /policy set [0-9a-f]{64} was altered/,
      ],
      [
        "drop trigger policy_sets_no_delete; delete from policy_sets",
        /policy set [0-9a-f]{64} made decisions but is not in the store/,
      ],
      [
        "drop trigger entries_no_update; update entries set bytes = cast(replace(cast(bytes as text), 'seq', 'sep') as blob) where seq = 5",
        /entry 5 was altered/,
      ],
      [
        `delete from actions where id = unhex('${id}', '-')`,
        /the store has \d+ actions, but the ledger has \d+ decisions/,
      ],
    ];
    const { DatabaseSync } = await loadSqlite();
    for (const [sql, expected] of damages) {
      const copy = temporaryFolder("damaged-", folder);
      copyFileSync(join(data, "assent.db"), join(copy, "assent.db"));
      const db = new DatabaseSync(join(copy, "assent.db"));
      db.exec(sql);
      db.close();
      const found = await assentInProcessWithEnv({ ...env, ASSENT_DATA: copy }, "audit");
      assert.equal(found.code, 6, sql);
      assert.match(found.out, expected, sql);
    }
  });

  it("is migrated by a command, which can check without a migration", async () => {
    const at = { ...env, ASSENT_DATA: join(folder, "own") };
    const known = MIGRATIONS.length;
    assert.equal((await assentInProcessWithEnv(at, "migrate")).out, `the store has schema ${known}\n`);
    const checked = await assentInProcessWithEnv(at, "migrate", "--check");
    assert.deepEqual([checked.code, checked.out], [0, `the store has schema ${known}: no migration is pending\n`]);
    const { DatabaseSync } = await loadSqlite();
    const db = new DatabaseSync(join(folder, "own", "assent.db"));
    db.exec("insert into schema_migrations values (99, 'from the future', 0)");
    assert.match((await assentInProcessWithEnv(at, "migrate")).err, /written by a newer version \(schema 99/);
    assert.match((await assentInProcessWithEnv(at, "migrate", "--check")).out, /a newer version migrated it/);
    db.exec("update schema_migrations set name = 'ledger, actions, keys, policies' where version = 1");
    db.close();
    for (const command of [["migrate"], ["migrate", "--check"], ["audit"], ["serve"]])
      assert.match(
        (await assentInProcessWithEnv(at, ...command)).err,
        /made before 0\.1\.0 .*[0-9a-f]{40}/,
        command.join(" "),
      );
  });
});

describe("Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  const folder = temporaryFolder("assent-store-");
  const data = join(folder, "data");
  const env = { ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN };
  before(async () => {
    server = await startPostgres();
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function everyRow(storage: Storage): Promise<Record<string, unknown[]>> {
    const copying = storage.copying;
    assert.ok(copying !== undefined);
    const all: Record<string, unknown[]> = {};
    for (const table of COPIED_TABLES) {
      const rows = await copying.read(table, null, 1_000_000);
      all[table] = rows.filter((row) => row["name"] !== "unfinished_copy" && row["name"] !== "secret_fingerprint");
    }
    return all;
  }

  it("accepts a copy of a SQLite store, row for row, however often the copy is interrupted", async () => {
    const service = await startProcess(env);
    await load(service)(600);
    const odd = await submit(service, { ...ALLOWED, params: { ...ALLOWED.params, note: "\u0000\u0001 ü 😀" } });
    const pending = await submit(service, ASKED);
    assert.equal(await stopProcess(service), 0);
    const url = await server.database();
    const at = {
      ...env,
      DATABASE_URL: url,
      ASSENT_SECRET: readFileSync(join(data, "secret"), "utf8").trim(),
      ASSENT_LOG_KEY: readFileSync(join(data, "log-key.pem"), "utf8"),
      ASSENT_PERMIT_KEY: readFileSync(join(data, "permit-key.pem"), "utf8"),
    };

    // Interrupted as soon as it reports the first written rows, a little later each time.
    for (const words of [/entries: \d/, /actions: \d/]) {
      const child = spawn(process.execPath, [...ASSENT, "copy", "--to", url], {
        cwd: ROOT,
        env: { ...process.env, ...env },
        stdio: ["ignore", "ignore", "pipe"],
      });
      await new Promise<void>((resolve) => {
        let said = "";
        child.stderr.on("data", (chunk: Buffer) => {
          said += chunk.toString();
          if (words.test(said)) child.kill("SIGKILL");
        });
        child.once("exit", () => resolve());
      });
      const early = await assent(["serve", "--port", "0"], at);
      assert.deepEqual([early.code, /an unfinished copy/.test(early.err)], [1, true], early.err);
    }
    // Used again in between: an action that was copied as pending is decided now.
    const between = await startProcess(env);
    assert.ok(
      (
        await fetch(`${between.url}/v1/actions/${pending.id}/cancel`, {
          method: "POST",
          headers: { authorization: `Bearer ${ADMIN}` },
        })
      ).ok,
    );
    assert.equal(await stopProcess(between), 0);

    const done = await assent(["copy", "--to", url], env);
    assert.equal(done.code, 0, done.err);
    assert.match(done.out, /^copied \d+ entries and verified the copy\n/);
    const [source, target] = [sqliteStorage({ path: join(data, "assent.db") }), postgresStorage({ url })];
    await Promise.all([source.open({ readOnly: true }), target.open({ readOnly: true })]);
    try {
      assert.deepEqual(await everyRow(target), await everyRow(source));
      assert.deepEqual(await readBareHead(target), await readBareHead(source));
      assert.deepEqual(await target.checkpoint(), await source.checkpoint());
      assert.deepEqual((await auditStore(target, (await target.meta("log_vkey")) ?? "")).faults, []);
    } finally {
      await Promise.all([source.close(), target.close()]);
    }
    const second = await assentInProcessWithEnv(env, "copy", "--to", url);
    assert.deepEqual([second.code, /already contains a store/.test(second.err)], [1, true]);

    const onPostgres = await startProcess(at);
    const seen = await fetch(`${onPostgres.url}/v1/actions/${odd.id}`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    assert.equal(((await seen.json()) as { params: { note: string } }).params.note, "\u0000\u0001 ü 😀");
    assert.equal(
      (
        (await (
          await fetch(`${onPostgres.url}/v1/actions/${pending.id}`, { headers: { authorization: `Bearer ${ADMIN}` } })
        ).json()) as { status: string }
      ).status,
      "cancelled",
    );
    const started = await fetch(`${onPostgres.url}/v1/actions/${odd.id}/start`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
      body: JSON.stringify({ permit: odd.permit }),
    });
    assert.equal(started.status, 200, "a permit from before is good");
    await submit(onPostgres);
    assert.equal(await stopProcess(onPostgres), 0);

    // And back.
    const back = await assent(["copy", "--to", join(folder, "back")], at);
    assert.equal(back.code, 0, back.err);
    assert.equal((await assentInProcessWithEnv({ ...env, ASSENT_DATA: join(folder, "back") }, "audit")).code, 0);
  });

  it("rejects a process whose secret differs from the other processes", async () => {
    const url = await server.database();
    const at = {
      ...env,
      ASSENT_DATA: join(folder, "secrets"),
      DATABASE_URL: url,
      ASSENT_SECRET: "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU",
    };
    assert.equal(await stopProcess(await startProcess(at)), 0);
    const other = await assent(["serve", "--port", "0"], { ...at, ASSENT_SECRET: "UaV6cJhG4fDpZ8sLx2MnBtR7eQv9wY3k" });
    assert.deepEqual(
      [other.code, /the token secret is not the one that this store was first used with/.test(other.err)],
      [1, true],
      other.err,
    );
    assert.equal(
      await stopProcess(
        await startProcess({ ...at, ASSENT_SECRET: "UaV6cJhG4fDpZ8sLx2MnBtR7eQv9wY3k" }, ["--accept-secret"]),
      ),
      0,
    );
    assert.equal(
      await stopProcess(await startProcess({ ...at, ASSENT_SECRET: "UaV6cJhG4fDpZ8sLx2MnBtR7eQv9wY3k" })),
      0,
    );
  });

  it("rejects a process whose environment differs from the other processes", async () => {
    const url = await server.database();
    const at = { ...env, ASSENT_DATA: join(folder, "environments"), DATABASE_URL: url };
    const staging = { ...at, ASSENT_ENVIRONMENT: "staging" };
    assert.equal(await stopProcess(await startProcess(staging)), 0);
    const other = await assent(["serve", "--port", "0"], { ...at, ASSENT_ENVIRONMENT: "production" });
    assert.equal(other.code, 1);
    assert.match(
      other.err,
      /the environment is "production", and this database was started with "staging"; set ASSENT_ENVIRONMENT=staging/,
    );
    const without = await assent(["serve", "--port", "0"], at);
    assert.equal(without.code, 1);
    assert.match(without.err, /no environment is configured, and this database was started with "staging"/);
    assert.equal(await stopProcess(await startProcess(staging)), 0);
    assert.equal(await stopProcess(await startProcess(at, ["--accept-environment"])), 0);
    const former = await assent(["serve", "--port", "0"], staging);
    assert.equal(former.code, 1);
    assert.match(
      former.err,
      /the environment is "staging", and this database was started without one; unset ASSENT_ENVIRONMENT/,
    );
  });

  it(
    "is dumped and restored with its own tools, and an older dump is detected",
    { skip: postgresTool("pg_dump") === null ? "no pg_dump on this machine" : false },
    async () => {
      const url = await server.database();
      const at = { ...env, ASSENT_DATA: join(folder, "dumped"), DATABASE_URL: url };
      const service = await startProcess(at);
      const first = await submit(service);
      const stop = load(service);
      const dump = join(folder, "assent.dump");
      writeFileSync(
        dump,
        execFileSync(postgresTool("pg_dump") as string, ["--format=custom", url], { maxBuffer: 1 << 30 }),
      );
      await stop();
      assert.equal(await stopProcess(service), 0);
      const restored = await server.database();
      execFileSync(postgresTool("pg_restore") as string, ["--no-owner", "--dbname", restored, dump], {
        stdio: ["ignore", "inherit", "inherit"],
      });
      const onOld = { ...at, DATABASE_URL: restored };
      const elsewhere = { ...onOld, ASSENT_DATA: join(folder, "elsewhere"), ASSENT_STATE: join(folder, "other state") };
      assert.equal((await assentInProcessWithEnv(elsewhere, "audit")).code, 0, "the dump is of one moment");
      assert.equal((await assentInProcessWithEnv(onOld, "audit")).code, 6, "this machine remembers more");
      const refused = await assent(["serve", "--port", "0"], onOld);
      assert.deepEqual(
        [refused.code, /an older copy of the store was restored/.test(refused.err)],
        [1, true],
        refused.err,
      );
      const accepted = await startProcess(onOld, ["--accept-rollback"]);
      assert.ok(
        (await fetch(`${accepted.url}/v1/actions/${first.id}`, { headers: { authorization: `Bearer ${ADMIN}` } })).ok,
      );
      await submit(accepted);
      assert.equal(await stopProcess(accepted), 0);
    },
  );
});

test("an invalid checkpoint file does not make the service ignore it", async () => {
  const data = temporaryFolder("assent-store-");
  try {
    const env = { ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN };
    assert.equal(await stopProcess(await startProcess(env)), 0);
    writeFileSync(join(data, "checkpoint"), "assent.local/other\n12\nAAAA\n\n— nobody AAAA\n");
    const refused = await assent(["serve", "--port", "0"], env);
    assert.deepEqual(
      [refused.code, /the stored checkpoint .* cannot be used/.test(refused.err)],
      [1, true],
      refused.err,
    );
    // A possible state after a power failure.
    writeFileSync(join(data, "checkpoint"), "");
    assert.equal(await stopProcess(await startProcess(env)), 0);
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
});
