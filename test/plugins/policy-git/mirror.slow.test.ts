/** The mirror of policy-git: what it fetches of a repository, and what it keeps. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { openRepository, type Repository } from "../../../plugins/policy-git/repository.ts";
import { makeRepository, serveHttp, type Serving, type TestRepository } from "../../support/git-server.ts";
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

const mirror = (): string => join(root, "mirror");
const open = (url: string): Repository =>
  openRepository({
    url,
    ref: "main",
    folder: mirror(),
    timeoutMs: 20_000,
    secrets: [["http.extraHeader", `Authorization: Basic ${Buffer.from("git:secret").toString("base64")}`]],
    env: {},
    signers: null,
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
async function contents(from: Repository, commit: string, folder: string): Promise<Record<string, string>> {
  const { files, faults } = await from.files(commit, folder, true, null);
  assert.deepEqual(faults, []);
  return Object.fromEntries(files.map(({ name, content }) => [name, new TextDecoder().decode(content)]));
}

/** Random, so that it does not compress. */
const LARGE = randomBytes(3_000_000).toString("base64");
const FILES = { "p/a.yaml": "a: 1\n", "p/deep/b.yaml": "b: 1\n", "large.bin": LARGE, "other.yaml": "c: 1\n" };

describe("a mirror", () => {
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
      assert.equal(await from.fetch(), first);
      assert.deepEqual(await contents(from, first, "p"), { "a.yaml": "a: 1\n", "deep/b.yaml": "b: 1\n" });
      const second = repository.commit({ "p/a.yaml": "a: 2\n" });
      assert.equal(await from.fetch(), second);
      assert.deepEqual(await contents(from, second, "p"), { "a.yaml": "a: 2\n", "deep/b.yaml": "b: 1\n" });
      // Again, as another process: nothing more is fetched.
      assert.deepEqual(await contents(open(`${serving.url}/policies.git`), second, "p"), {
        "a.yaml": "a: 2\n",
        "deep/b.yaml": "b: 1\n",
      });
      const bytes = bytesOf(mirror());
      assert.ok(partial ? bytes < 500_000 : bytes > LARGE.length / 2, `${bytes} bytes`);
    });

  test("of a server without partial clones has the policies", async () => {
    const commit = repository.commit(FILES);
    const from = open(`file://${repository.bare}`);
    assert.equal(await from.fetch(), commit);
    assert.deepEqual(await contents(from, commit, "p"), { "a.yaml": "a: 1\n", "deep/b.yaml": "b: 1\n" });
  });

  test("does not grow with every change", { timeout: 120_000 }, async () => {
    allow("allowFilter", true);
    const packs: number[] = [];
    for (let n = 1; n <= 16; n++) {
      const commit = repository.commit({ "p/a.yaml": `a: ${n}\n` });
      const from = open(`file://${repository.bare}`);
      assert.equal(await from.fetch(), commit);
      assert.deepEqual(await contents(from, commit, "p"), { "a.yaml": `a: ${n}\n` });
      packs.push(readdirSync(join(mirror(), "objects", "pack")).filter((file) => file.endsWith(".pack")).length);
    }
    assert.ok(Math.max(...packs) <= 22 && (packs.at(-1) as number) < Math.max(...packs), packs.join());
    assert.deepEqual(
      readdirSync(join(mirror(), "objects")).filter((name) => /^[0-9a-f]{2}$/.test(name)),
      [],
      "nothing lies beside the packs",
    );
  });
});
