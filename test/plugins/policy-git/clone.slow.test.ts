/** The clones of policy-git: what they fetch of a repository, and what they leave. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { openRepository, type Repository } from "../../../plugins/policy-git/repository.ts";
import { makeRepository, serveHttp, type Serving, type TestRepository } from "../../support/git-server.ts";
import { until } from "../../support/wait.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let root: string;
let repository: TestRepository;
let serving: Serving | null = null;

beforeEach(() => {
  root = temporaryFolder("assent-mirror-");
  repository = makeRepository(root);
});
afterEach(async () => {
  await serving?.stop();
  serving = null;
  rmSync(root, { recursive: true, force: true });
});

const clones = (): string => join(root, "clones");
const open = (url: string, more: { ref?: string | null; timeoutMs?: number } = {}): Repository =>
  openRepository({
    url,
    ref: "main",
    folder: clones(),
    timeoutMs: 20_000,
    signal: new AbortController().signal,
    secrets: [["http.extraHeader", `Authorization: Basic ${Buffer.from("git:secret").toString("base64")}`]],
    env: {},
    signers: null,
    ...more,
  });
const allow = (what: string, allowed: boolean): void =>
  void execFileSync("git", ["-C", repository.bare, "config", `uploadpack.${what}`, String(allowed)]);

function bytesOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce(
    (sum, entry) =>
      sum + (entry.isDirectory() ? bytesOf(join(folder, entry.name)) : statSync(join(folder, entry.name)).size),
    0,
  );
}
/** Loads the newest commit. Returns its files, and the size of the clone in bytes. */
async function load(from: Repository, folder = "p"): Promise<{ commit: string; files: object; bytes: number }> {
  const clone = await from.clone();
  try {
    const { files, faults } = await clone.files(folder, true, null);
    assert.deepEqual(faults, []);
    return {
      commit: clone.commit,
      files: Object.fromEntries(files.map(({ name, content }) => [name, new TextDecoder().decode(content)])),
      bytes: bytesOf(clones()),
    };
  } finally {
    await clone.remove();
  }
}

/** Random, so that it does not compress. */
const LARGE = randomBytes(3_000_000).toString("base64");
const FILES = { "p/a.yaml": "a: 1\n", "p/deep/b.yaml": "b: 1\n", "large.bin": LARGE, "other.yaml": "c: 1\n" };

describe("a clone", () => {
  for (const [name, version, partial] of [
    ["a server that leaves contents out and gives single objects", 2, true],
    ["a server that leaves contents out and refuses single objects", 0, false],
  ] as const)
    test(`of ${name} has the policies, with credentials`, async () => {
      allow("allowFilter", true);
      allow("allowAnySHA1InWant", false);
      const first = repository.commit(FILES);
      serving = await serveHttp(root, "secret", version);
      const from = open(`${serving.url}/policies.git`);
      assert.equal(await from.newest(), first);
      const loaded = await load(from);
      assert.deepEqual([loaded.commit, loaded.files], [first, { "a.yaml": "a: 1\n", "deep/b.yaml": "b: 1\n" }]);
      assert.ok(partial ? loaded.bytes < 500_000 : loaded.bytes > LARGE.length / 2, `${loaded.bytes} bytes`);
      const second = repository.commit({ "p/a.yaml": "a: 2\n" });
      assert.equal(await from.newest(), second);
      assert.deepEqual((await load(from)).files, { "a.yaml": "a: 2\n", "deep/b.yaml": "b: 1\n" });
      assert.deepEqual(readdirSync(clones()), []);
    });

  test("of a server without partial clones has the policies", async () => {
    const commit = repository.commit(FILES);
    const { files, ...loaded } = await load(open(`file://${repository.bare}`));
    assert.deepEqual([loaded.commit, files], [commit, { "a.yaml": "a: 1\n", "deep/b.yaml": "b: 1\n" }]);
  });

  test("has the commit that the remote reports for a branch, a tag of either kind, HEAD and a commit", async () => {
    const first = repository.commit(FILES);
    for (const args of [
      ["tag", "light"],
      ["tag", "-a", "-m", "x", "annotated"],
      ["push", "-q", "origin", "--tags"],
    ])
      repository.git(...args);
    const second = repository.commit({ "p/a.yaml": "a: 2\n" });
    for (const [ref, commit] of [
      ["main", second],
      [null, second],
      ["light", first],
      ["annotated", first],
      ["refs/tags/annotated", first],
      [first, first],
    ] as const) {
      const from = open(`file://${repository.bare}`, { ref });
      assert.deepEqual([await from.newest(), (await load(from)).commit], [commit, commit], String(ref));
    }
    await assert.rejects(
      open(`file://${repository.bare}`, { ref: "none" }).newest(),
      /neither a branch nor a tag "none"/,
    );
  });

  test("removes what killed processes left, and keeps the clones of running processes", async () => {
    repository.commit(FILES);
    const from = open(`file://${repository.bare}`);
    const ours = await from.clone();
    const [name = ""] = readdirSync(clones());
    const [machine, pid] = name.split("-");
    assert.equal(pid, String(process.pid));
    const exited = spawnSync("true").pid;
    const abandoned = [`${machine}-${exited}-${"a".repeat(16)}`, `${machine}-${pid}-${"b".repeat(16)}`];
    const kept = [`${machine}-${process.ppid}-${"c".repeat(16)}`, `${"0".repeat(8)}-${exited}-${"d".repeat(16)}`];
    for (const left of [...abandoned, ...kept]) mkdirSync(join(clones(), left, "refs"), { recursive: true });
    await load(from);
    assert.deepEqual(readdirSync(clones()).sort(), [name, ...kept].sort());
    await ours.remove();
  });

  test("does not outlive a server that accepts connections and never answers", async () => {
    const silent = createServer((socket) => void socket.on("error", () => {}).resume());
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    try {
      for (const protocol of ["http", "git"]) {
        const from = open(`${protocol}://127.0.0.1:${port}/policies.git`, { timeoutMs: 500 });
        await assert.rejects(from.newest(), /git did not respond within 0\.5 s/);
        await assert.rejects(from.clone(), /git did not respond within 0\.5 s/);
      }
      assert.deepEqual(readdirSync(clones()), []);
      const connections = (): Promise<number> =>
        new Promise((resolve) => silent.getConnections((_, count) => resolve(count)));
      await until("git and its helpers have exited", async () => (await connections()) === 0);
    } finally {
      silent.close();
    }
  });
});
