/** Runs `npx assent` in a clean clone, before and after the first build. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { ROOT } from "../support/runtimes.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("a clean clone", { skip: existsSync(join(ROOT, ".git")) ? false : "no clone" }, () => {
  const folder = temporaryFolder("assent-clone-");
  const clone = join(folder, "clone");
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("runs `npx assent`, also where dist/ is built only by it", () => {
    const files = execFileSync("git", ["ls-files", "-z"], { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean);
    for (const file of files.filter((name) => existsSync(join(ROOT, name)))) {
      mkdirSync(join(clone, dirname(file)), { recursive: true });
      cpSync(join(ROOT, file), join(clone, file));
    }
    symlinkSync(join(ROOT, "node_modules"), join(clone, "node_modules"));
    const env = { ...process.env, npm_config_cache: join(folder, "npm") };
    for (let start = 0; start < 2; start++)
      assert.match(
        execFileSync("npx", ["assent", "--version"], { cwd: clone, env, encoding: "utf8" }),
        /^\d+\.\d+\.\d+\n$/,
      );
  });
});
