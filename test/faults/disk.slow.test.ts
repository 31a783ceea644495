/** Runs the service on a full disk and on a read-only disk. It returns 503, logs the cause, and recovers. */
import { needs } from "../support/features.ts";
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { createLogger } from "../../src/serve/log.ts";
import { withFaults } from "../../src/testing/faults.ts";
import { startProcess, stopProcess } from "../support/process.ts";
import { ALLOWED, ASKED, FEW_POLICIES, waitForSignature, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Mounts a small file system. Returns null if mounting is not permitted. */
function mount(size: string): { path: string; remount(mode: "ro" | "rw"): void; unmount(): void } | null {
  const path = temporaryFolder("assent-disk-");
  const run = (...args: string[]) => spawnSync("mount", args, { encoding: "utf8" });
  if (run("-t", "tmpfs", "-o", `size=${size}`, "tmpfs", path).status !== 0) {
    rmSync(path, { recursive: true });
    return null;
  }
  return {
    path,
    remount(mode) {
      const done = run("-o", `remount,${mode}`, path);
      assert.equal(done.status, 0, done.stderr);
    },
    unmount() {
      spawnSync("umount", ["-l", path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

test("a full disk causes 503 and a clear log line, and the service recovers when space is free again", async (t) => {
  const disk = mount("8m");
  if (disk === null) return t.skip("mounting a tmpfs is not permitted here");
  const service = await startService({
    storage: () => sqliteStorage({ path: join(disk.path, "store", "assent.db") }),
    change: ({ server }) => (server.max_body_bytes = 1_048_576),
  });
  try {
    const first = await service.call("POST", "/v1/actions", { body: ALLOWED });
    assert.equal(first.status, 200);
    const ballast = join(disk.path, "ballast");
    try {
      writeFileSync(ballast, new Uint8Array(16 * 1024 * 1024));
    } catch {
      // The write fails when the disk is full, which is the purpose.
    }
    // SQLite can still write into free pages of its files. After that, the response must be a 503, never a decision.
    let full = await service.call("POST", "/v1/actions", {
      body: { ...ALLOWED, context: { pad: "x".repeat(200_000) } },
    });
    for (let i = 0; i < 20 && full.status === 200; i++)
      full = await service.call("POST", "/v1/actions", { body: { ...ALLOWED, context: { pad: "x".repeat(200_000) } } });
    assert.deepEqual([full.status, full.body.code, full.headers.get("retry-after")], [503, "STORAGE_UNAVAILABLE", "1"]);
    assert.ok(!("decision" in full.body));
    assert.ok(
      service.logged.some((line) => line.includes('"kind":"full"')),
      service.logged.slice(-3).join("\n"),
    );
    const read = await service.call("GET", `/v1/actions/${first.body.id}`);
    assert.equal(read.status, 200, "what is recorded can still be read");
    rmSync(ballast);
    const again = await service.call("POST", "/v1/actions", { body: ALLOWED });
    assert.equal(again.status, 200, "there is room again");
    await service.restart();
    assert.equal((await service.call("GET", `/v1/actions/${again.body.id}`)).status, 200);
  } finally {
    await service.close().finally(() => disk.unmount());
  }
});

test("a read-only folder is reported in one line at startup, and the service starts when it can write again", async (t) => {
  const disk = mount("32m");
  if (disk === null) return t.skip("mounting a tmpfs is not permitted here");
  const env = { ASSENT_DATA: join(disk.path, "data"), ASSENT_POLICIES: FEW_POLICIES };
  try {
    // Create the store first, so that the test covers writes to an existing store.
    await stopProcess(await startProcess(env));
    disk.remount("ro");
    const failure = await startProcess(env).then(
      () => "it started",
      (error: Error) => error.message,
    );
    assert.match(failure, /exited with 1 before it listened/);
    assert.match(failure, /^assent: .*(read-only|readonly|cannot be written)/m);
    assert.ok(!failure.includes("    at "), "an operator gets words, not a stack");
    disk.remount("rw");
    assert.equal(await stopProcess(await startProcess(env)), 0);
  } finally {
    disk.unmount();
  }
});

test("a store that becomes read-only while the service runs causes 503 and a clear log line, and recovers", async () => {
  // A mount cannot be made read-only while its files are open. The kernel does it on an I/O error, and this test
  // simulates the error of the next write.
  let faulty: ReturnType<typeof withFaults> | null = null;
  const service = await startService({
    storage: (folder) => (faulty = withFaults(sqliteStorage({ path: join(folder, "assent.db") }))),
  });
  try {
    await waitForSignature(service);
    (faulty as unknown as ReturnType<typeof withFaults>).faults.failNext("begin", "not-persisted", {
      kind: "readonly",
    });
    const refused = await service.call("POST", "/v1/actions", { body: ALLOWED });
    assert.deepEqual([refused.status, refused.body.code], [503, "STORAGE_UNAVAILABLE"]);
    assert.ok(service.logged.some((line) => line.includes('"level":"error"') && line.includes('"kind":"readonly"')));
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
  } finally {
    await service.close();
  }
});

test("while nothing can be written, everything can be read, including actions that expired in the meantime", async () => {
  let faulty: ReturnType<typeof withFaults> | null = null;
  const service = await startService({
    storage: (folder) => (faulty = withFaults(sqliteStorage({ path: join(folder, "assent.db") }))),
  });
  try {
    const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
    await waitForSignature(service);
    const { faults } = faulty as unknown as ReturnType<typeof withFaults>;
    for (let i = 0; i < 1000; i++)
      for (const operation of ["begin", "lease"]) faults.failNext(operation, "not-persisted", { kind: "full" });
    service.clock.now += 9 * 3_600_000;
    const listed = async (query: string): Promise<string[]> => {
      const { status, body } = await service.call("GET", `/v1/actions${query}`, { key: service.admin });
      assert.equal(status, 200, query);
      return body.actions.map((action: { id: string; status: string }) => `${action.id} ${action.status}`);
    };
    assert.deepEqual(await listed(""), [`${id} expired`]);
    assert.deepEqual(await listed("?status=expired"), [`${id} expired`]);
    assert.deepEqual(await listed("?status=pending_approval"), []);
    assert.deepEqual((await service.call("GET", "/v1/approvals", { key: service.admin })).body.actions, []);
    const one = await service.call("GET", `/v1/actions/${id}?wait=30`, { key: service.admin });
    assert.deepEqual([one.status, one.body.status, one.body.approval_token], [200, "expired", undefined]);
    assert.equal((await service.storage.action(id as string))?.status, "pending_approval", "nothing could be written");
    faults.clear();
    await until("the end is written when that is possible again", async () => {
      await listed("");
      return (await service.storage.action(id as string))?.status === "expired";
    });
  } finally {
    await service.close();
  }
});

test(
  "while the checkpoint file's disk does not respond, the service soon refuses decisions, says so and can be stopped",
  needs("metrics", "stop"),
  async () => {
    const data = temporaryFolder("assent-hung-");
    const key = `assent-test-admin-${"0".repeat(32)}`;
    const { child, url, ended, output } = await startProcess({
      ASSENT_DATA: data,
      ASSENT_POLICIES: FEW_POLICIES,
      ASSENT_ADMIN_KEY: key,
    });
    const call = async (method: string, path: string, body?: object): Promise<{ status: number; text: string }> => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const response = await fetch(`${url}${path}`, init);
      return { status: response.status, text: await response.text() };
    };
    try {
      assert.equal((await call("POST", "/v1/actions", ALLOWED)).status, 200);
      assert.equal((await call("GET", "/checkpoint")).status, 200);
      // Reading a pipe without a writer never ends, like reading from a disk that does not respond.
      rmSync(join(data, "checkpoint"));
      assert.equal(spawnSync("mkfifo", [join(data, "checkpoint")]).status, 0);
      let refused = await call("POST", "/v1/actions", ALLOWED);
      await until("decisions are refused", async () => {
        refused = await call("POST", "/v1/actions", ALLOWED);
        return refused.status !== 200;
      });
      assert.deepEqual([refused.status, JSON.parse(refused.text).code], [503, "STORAGE_UNAVAILABLE"]);
      const ready = await call("GET", "/readyz");
      assert.equal(ready.status, 503);
      assert.match(
        JSON.parse(ready.text).ledger.detail,
        /^unavailable: the newest entries have been unsigned for \d+ s/,
      );
      assert.equal((await call("GET", "/checkpoint")).status, 503);
      const [, seconds] = /^assent_ledger_unsigned_seconds (\S+)$/m.exec((await call("GET", "/metrics")).text) ?? [];
      assert.ok(Number(seconds) > 10, seconds);
      assert.match(
        output(),
        /decisions are refused until entries are signed again.*the disk did not respond within 5 s/,
      );
      assert.equal((await call("POST", "/v1/stop", { reason: "a stop works in any case" })).status, 201);
      child.kill("SIGTERM");
      assert.equal(await ended, "SIGKILL");
      assert.match(output(), /stopping failed: .*ledger did not close in time/);
      // Nothing was lost.
      rmSync(join(data, "checkpoint"));
      assert.equal(await stopProcess(await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES })), 0);
    } finally {
      child.kill("SIGKILL");
      rmSync(data, { recursive: true, force: true });
    }
  },
);

test("a service that is stopped while no sync of any file completes ends, says so and loses nothing", async (t) => {
  if (spawnSync("strace", ["-V"]).status !== 0) return t.skip("no strace");
  const data = temporaryFolder("assent-hung-");
  const key = `assent-test-admin-${"0".repeat(32)}`;
  const env = { ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: key };
  const service = await startProcess(env);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${service.url}/v1/actions`, { method: "POST", headers, body: JSON.stringify(ALLOWED) });
  const { id } = (await response.json()) as { id: string };
  const injected = `-f -p ${service.child.pid} -e trace=fsync,fdatasync -e inject=fsync,fdatasync:delay_enter=600000000`;
  const strace = spawn("strace", [...injected.split(" "), "-o", join(data, "strace")]);
  try {
    await until("strace is there", () => existsSync(join(data, "strace")));
    service.child.kill("SIGTERM");
    await until("it gives up", () => /stopping failed: the process did not respond for 10 s/.test(service.output()));
    // A traced process stays until strace, which delays it, has ended.
    strace.kill("SIGKILL");
    assert.equal(await service.ended, "SIGKILL");
    const restarted = await startProcess(env);
    assert.equal((await fetch(`${restarted.url}/v1/actions/${id}`, { headers })).status, 200);
    assert.equal(await stopProcess(restarted), 0);
  } finally {
    service.child.kill("SIGKILL");
    strace.kill("SIGKILL");
    rmSync(data, { recursive: true, force: true });
  }
});

/** Starts a service whose store writes its log lines to `said`. */
function tellingService(said: string[]): Promise<Service> {
  const log = createLogger("error", (lines) => said.push(lines));
  return startService({ broken: true, storage: (folder) => sqliteStorage({ path: join(folder, "assent.db"), log }) });
}

test("a data folder that is deleted or replaced while the service runs is reported: the service is not ready and rejects writes", async () => {
  for (const how of ["deleted", "replaced", "its log deleted"] as const) {
    const said: string[] = [];
    const service = await tellingService(said);
    try {
      assert.equal((await service.call("GET", "/readyz", { key: null })).status, 200);
      const store = join(service.folder, "assent.db");
      if (how === "replaced") {
        copyFileSync(store, `${store}.copy`);
        renameSync(`${store}.copy`, store);
      } else for (const name of how === "deleted" ? ["", "-wal", "-shm"] : ["-wal"]) rmSync(store + name);
      // Submissions fail at once; `/readyz` reports it within a second.
      const refused = await service.call("POST", "/v1/actions", { body: ALLOWED });
      assert.deepEqual([refused.status, refused.body.code], [503, "STORAGE_UNAVAILABLE"], how);
      assert.ok(
        said.some((line) => /files are not in place.* was removed or replaced/.test(line)),
        said.join("\n"),
      );
      const ready = await service.call("GET", "/readyz", { key: null });
      assert.deepEqual([ready.status, ready.body.ready, ready.body.storage.ok], [503, false, false], how);
    } finally {
      await service.close();
    }
  }
  const said: string[] = [];
  const idle = await tellingService(said);
  try {
    rmSync(idle.folder, { recursive: true });
    await until(
      "an idle service notices",
      async () => (await idle.call("GET", "/readyz", { key: null })).status === 503,
    );
  } finally {
    await idle.close();
  }
});

test("a lock that the file system does not release is reported to need a restart, and does not delay later requests", async (t) => {
  if (spawnSync("strace", ["-V"]).status !== 0) return t.skip("no strace");
  const folder = temporaryFolder("assent-unlock-");
  const service = await startProcess({ ASSENT_DATA: folder, ASSENT_POLICIES: FEW_POLICIES });
  try {
    const ready = async () => (await fetch(`${service.url}/readyz`)).status;
    assert.equal(await ready(), 200);
    // The second unlock releases the lock after the first failed, for whichever read or write comes next.
    const injected = `-f -p ${service.child.pid} -e trace=fcntl -e inject=fcntl:error=EIO:when=2+2`.split(" ");
    const strace = spawn("strace", [...injected, "-o", join(folder, "strace")]);
    await until("strace is there", () => existsSync(join(folder, "strace")));
    await until("it needs a restart", async () => {
      // While strace delays each system call, a connection can time out before its response.
      await ready().catch(() => null);
      return /did not release a lock of .*restart the service/.test(service.output());
    });
    assert.equal(await ready(), 503);
    // strace loses a signal that arrives while it detaches from the process.
    const detached = once(strace, "exit");
    strace.kill("SIGTERM");
    await detached;
  } finally {
    await stopProcess(service);
    rmSync(folder, { recursive: true, force: true });
  }
});
