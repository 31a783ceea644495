/** The SQLite store under SIGKILL, failing syncs, a full disk and a read-only disk. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { lacks, play, shellWords, start, storeFolder } from "./children/spawn.ts";

const folder = storeFolder();

describe("SIGKILL in the middle of writes", () => {
  const kills = Number(process.env["ASSENT_TEST_KILLS"] ?? 10);

  it(`${kills} times: every acknowledged write is stored, and every stored write is complete`, async () => {
    const path = join(folder, "killed", "assent.db");
    const { DatabaseSync } = await loadSqlite();
    let acknowledged = 0;
    for (let i = 0; i < kills; i++) {
      const writer = start("write", path);
      assert.equal(await writer.next(), "open");
      await writer.next();
      const timer = sleep(Math.random() * 60).then(() => writer.kill());
      for (let line = await writer.lines.next(); line.done !== true; line = await writer.lines.next()) {
        // The kill can cut off a line. An incomplete line is not an acknowledgement.
        acknowledged = Math.max(acknowledged, Number(line.value));
      }
      await timer;

      const storage = sqliteStorage({ path });
      await storage.open();
      const { size } = await storage.head();
      assert.ok(size >= acknowledged, `${acknowledged} entries were acknowledged, ${size} are there`);
      assert.equal(size % 3, 0);
      assert.equal(await storage.meta("size"), String(size));
      const entries = await storage.entries(0, size + 10);
      assert.deepEqual(
        entries.map((row) => row.seq),
        Array.from({ length: size }, (_, seq) => seq),
      );
      const actions = await storage.actions({ visibility: { all: true }, limit: size + 10 });
      assert.deepEqual(
        actions.map((row) => row.decision_seq),
        Array.from({ length: size / 3 }, (_, n) => size - 3 - n * 3),
      );
      await storage.close();
      const db = new DatabaseSync(path);
      assert.deepEqual(
        db
          .prepare("pragma integrity_check")
          .all()
          .map((row) => ({ ...(row as object) })),
        [{ integrity_check: "ok" }],
      );
      db.close();
      acknowledged = size;
    }
    assert.ok(acknowledged > kills, "hardly anything was written");
  });
});

describe(
  "a sync that fails",
  {
    skip: lacks(
      "strace may not trace here",
      "strace",
      "-f",
      "--seccomp-bpf",
      "-o",
      "/dev/null",
      "-e",
      "inject=fdatasync:error=EIO:when=1000",
      "true",
    ),
  },
  () => {
    // strace's `first+step`: the first sync that fails, and the distance to the next one that fails.
    for (const when of ["3+9", "4+11", "5+7", "9+10"]) {
      it(`repeatedly (${when}) loses no acknowledged write, and the store continues`, () => {
        const path = join(folder, `sync-${when}`, "assent.db");
        const { status, stdout, stderr } = play("sync", path, [
          "strace",
          "-f",
          "--seccomp-bpf",
          "-o",
          "/dev/null",
          "-e",
          "trace=fsync,fdatasync",
          "-e",
          `inject=fsync,fdatasync:error=EIO:when=${when}`,
        ]);
        assert.equal(status, 0, stderr);
        const [failures, entries] = stdout.trim().split(" ").map(Number) as [number, number];
        assert.ok(failures >= 5, `only ${failures} faults reached the store`);
        assert.ok(entries >= 60, `only ${entries} entries were written`);
      });
    }
  },
);

describe("a disk", { skip: lacks("no private mounts here", "unshare", "--map-root-user", "--mount", "true") }, () => {
  /** Runs a role on a small file system, in a mount namespace that ends with the shell. */
  function onDisk(
    name: string,
    script: (path: string, disk: string) => string,
  ): { status: number | null; stdout: string; stderr: string } {
    const disk = join(folder, name);
    mkdirSync(disk);
    const words = `set -e; mount -t tmpfs -o size=6m,mode=0755 tmpfs '${disk}'; ${script(join(disk, "assent.db"), disk)}`;
    return spawnSync("unshare", ["--map-root-user", "--mount", "sh", "-c", words], {
      encoding: "utf8",
    });
  }

  it("that is full gives `full`, reads go on, and so do writes when there is room", () => {
    const { status, stdout, stderr } = onDisk("full", (path) => shellWords("full", path));
    assert.equal(status, 0, stderr);
    assert.equal(stdout, "recovered\n");
  });

  it("that turned read-only gives `readonly`, and all is well when it turns back", () => {
    const { status, stdout, stderr } = onDisk("readonly", (path, disk) => {
      const once = shellWords("once", path);
      return `${once}; mount -o remount,ro '${disk}'; ${once}; mount -o remount,rw '${disk}'; ${once}`;
    });
    assert.equal(status, 0, stderr);
    assert.equal(stdout, "ok 3\nreadonly\nok 6\n");
  });
});

/** Takes from root the right to write where permissions forbid it. The role stays root, as only root may be able to enter the checkout. */
const AS_OWNER = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-dac_override"] : [];

describe("permissions", { skip: lacks("no setpriv here", "env", ...AS_OWNER, "true") }, () => {
  it("that forbid writing give `readonly`, and all is well when they are given back", () => {
    const { status, stdout, stderr } = play("permissions", join(folder, "permissions", "assent.db"), AS_OWNER);
    assert.equal(status, 0, stderr);
    assert.equal(stdout, "recovered\n");
  });
});
