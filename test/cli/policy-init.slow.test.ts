/** `assent policy init` writes a valid, formatted policy with complete tests. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { assent, assentInProcess, folderWith } from "../support/cli.ts";

test("the first policy passes check, test with full coverage, and fmt", async (t) => {
  const root = folderWith(t, {});
  const run = await assent(["policy", "init"], { cwd: root });
  assert.deepEqual([run.code, run.out], [0, "policies/first.yaml\npolicies/first_test.yaml\n"], run.err);
  const folder = join(root, "policies");
  for (const args of [
    ["check", folder],
    ["test", folder, "--min-coverage", "100"],
    ["fmt", folder, "--check"],
  ]) {
    const after = await assentInProcess("policy", ...args);
    assert.equal(after.code, 0, after.err);
  }
  assert.match(readFileSync(join(folder, "first.yaml"), "utf8"), /^# /);
});

test("nothing is overwritten, and nothing is added to existing policies", async (t) => {
  const folder = folderWith(t, { "notes.txt": "x" });
  assert.equal((await assentInProcess("policy", "init", folder)).code, 0);
  const before = readFileSync(join(folder, "first.yaml"), "utf8");
  writeFileSync(join(folder, "first.yaml"), `${before}# mine\n`);
  const again = await assentInProcess("policy", "init", folder);
  assert.deepEqual([again.code, /contains first\.yaml already/.test(again.err)], [2, true], again.err);
  assert.equal(readFileSync(join(folder, "first.yaml"), "utf8"), `${before}# mine\n`);
  const other = folderWith(t, { "other.yml": "policy: o\n" });
  assert.equal((await assentInProcess("policy", "init", other)).code, 2);
  assert.deepEqual(readdirSync(other), ["other.yml"]);
  // A file that the folder's listing skips also prevents it.
  const odd = folderWith(t, {});
  mkdirSync(join(odd, "first_test.yaml"));
  assert.equal((await assentInProcess("policy", "init", odd)).code, 1);
  assert.deepEqual(readdirSync(odd), ["first_test.yaml"], "both or none");
  assert.equal(
    (await assentInProcess("policy", "init", join(odd, "a", "b", "..", "..", "first_test.yaml"))).code,
    0,
    "an empty folder of any name will do",
  );
});
