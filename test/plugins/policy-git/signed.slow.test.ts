/**
 * `signed_by`: only commits signed by listed keys of the listed kind, and never an older commit than the last accepted
 * one.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import policyGit from "../../../plugins/policy-git/index.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { makeRepository, type TestRepository } from "../../support/git-server.ts";
import { startService, type Service } from "../../support/service.ts";
import { eventually } from "../../support/wait.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const ACTION = { agent_id: "bot", tool: "t", operation: "o" };
const rule = (effect: string): string => `policy: p\nrules:\n  - { name: r, effect: ${effect} }\n`;
const withoutGpg = spawnSync("gpg", ["--version"]).status === 0 ? false : "no gpg on this machine";

let root: string;
let repository: TestRepository;
let service: Service;
let listed: string;
let signingKey: string;
/** Options of the plugin, read at each start. */
let options: Record<string, unknown>;
const home = process.env["HOME"];

beforeEach(() => {
  root = temporaryFolder("assent-signed-");
  repository = makeRepository(root);
  signingKey = join(root, "listed");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "listed", "-f", signingKey]);
  listed = readFileSync(`${signingKey}.pub`, "utf8").trim();
  mkdirSync(join(root, "base"));
  writeFileSync(
    join(root, "base", "base.yaml"),
    "policy: base\nrules:\n  - { name: none, tool: none, effect: deny }\n",
  );
});
afterEach(async () => {
  await service.close();
  process.env["HOME"] = home;
  rmSync(root, { recursive: true, force: true });
});

async function start(more: object = {}): Promise<void> {
  options = {
    interval_seconds: 1,
    timeout_seconds: 20,
    url: `file://${repository.bare}`,
    signed_by: [listed],
    ...more,
  };
  service = await startService({
    policies: join(root, "base"),
    plugins: [{ plugin: policyGit as unknown as Plugin, options, origin: "policy-git", core: true }],
  });
}

const decide = async (): Promise<string> =>
  (await service.call("POST", "/v1/actions", { body: ACTION })).body.decision as string;
const becomes = (effect: string): Promise<true> =>
  eventually(
    async () => ((await decide()) === effect ? true : undefined),
    () => `it did not become ${effect}; log: ${service.logged.slice(-5).join("\n")}`,
  );
const says = (pattern: RegExp): Promise<true> =>
  eventually(
    async () => (pattern.test(service.logged.join("\n")) ? true : undefined),
    () => `nothing said ${pattern}; log: ${service.logged.slice(-5).join("\n")}`,
  );

describe("signed_by", () => {
  test("an older signed commit is not loaded after a reset or at the next start; a newer one is", async () => {
    const old = repository.commit({ "p.yaml": rule("allow") }, { signingKey });
    await start();
    assert.equal(await decide(), "allow");
    const newest = repository.commit({ "p.yaml": rule("deny") }, { signingKey });
    await becomes("deny");
    repository.git("push", "--quiet", "--force", "origin", `${old}:refs/heads/main`);
    await says(new RegExp(`the commit ${old} does not descend from ${newest}, the last accepted commit`));
    assert.equal(await decide(), "deny");
    await service.restart();
    assert.equal(await decide(), "deny");
    repository.commit({ "p.yaml": rule("require_approval") }, { signingKey });
    await becomes("require_approval");
  });

  test("a commit of another branch is not loaded, even if signed, unless it is named", async () => {
    repository.commit({ "p.yaml": rule("allow") }, { signingKey });
    await start();
    repository.git("checkout", "--quiet", "--orphan", "other");
    const other = repository.commit({ "p.yaml": rule("deny") }, { signingKey, branch: "other" });
    repository.git("push", "--quiet", "--force", "origin", `${other}:refs/heads/main`);
    await says(/does not descend from/);
    assert.equal(await decide(), "allow");
    options["accept"] = other;
    await service.restart();
    assert.equal(await decide(), "deny");
  });

  test("ancestry is found across any number of commits", async () => {
    repository.commit({ "p.yaml": rule("allow") }, { signingKey });
    await start({ interval_seconds: 86_400 });
    assert.equal(await decide(), "allow");
    for (let i = 0; i < 150; i++) repository.git("commit", "--quiet", "--allow-empty", "-m", `between ${i}`);
    repository.commit({ "p.yaml": rule("deny") }, { signingKey });
    await service.restart();
    assert.equal(await decide(), "deny");
  });

  test("an OpenPGP signature by a key in the service user's keyring does not count", { skip: withoutGpg }, async () => {
    repository.commit({ "p.yaml": rule("allow") }, { signingKey });
    await start();
    const ring = join(root, "home");
    mkdirSync(join(ring, ".gnupg"), { recursive: true, mode: 0o700 });
    process.env["HOME"] = ring;
    const env = { ...process.env, GNUPGHOME: join(ring, ".gnupg") };
    try {
      const who = "Ring <ring@example.com>";
      const make = ["--batch", "--quiet", "--passphrase", "", "--quick-generate-key", who, "ed25519", "sign", "never"];
      execFileSync("gpg", make, { env, stdio: "ignore" });
      const work = join(root, "work");
      writeFileSync(join(work, "p.yaml"), rule("deny"));
      const git = ["-C", work, "-c", "user.name=t", "-c", "user.email=ring@example.com"];
      execFileSync("git", [...git, "commit", "--quiet", "-a", "-Sring@example.com", "-m", "by the ring"], { env });
      execFileSync("git", ["-C", work, "push", "--quiet", "origin", "HEAD:main"], { env });
      await says(/is not signed by a key of signed_by: it has a PGP SIGNATURE/);
      assert.equal(await decide(), "allow");
    } finally {
      spawnSync("gpgconf", ["--kill", "all"], { env });
    }
  });
});
