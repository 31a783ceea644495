/** `assent policy fmt` on real folders. */
import assert from "node:assert/strict";
import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { assent, assentInProcess, folderWith } from "../support/cli.ts";

const LOOSE = "policy:   a\nrules:\n- name: r   # why\n  effect:   allow\n";
const NEAT = "policy: a\nrules:\n  - name: r # why\n    effect: allow\n";
const CASES =
  "now: 2026-01-01T00:00:00Z\ncases:\n- {name: c, action: {agent_id: a, tool: t, operation: o}, expect: {effect: allow}}\n";
const NEAT_CASES =
  "now: 2026-01-01T00:00:00Z\ncases:\n  - { name: c, action: { agent_id: a, tool: t, operation: o }, expect: { effect: allow } }\n";

describe("fmt", () => {
  test("writes and names changed files, and changes nothing the second time", async (t) => {
    const folder = folderWith(t, {
      "a.yaml": LOOSE,
      "a_test.yaml": CASES,
      "b.yaml": NEAT.replace("policy: a", "policy: b"),
      "in/c.yaml": LOOSE,
      ".hidden.yaml": LOOSE,
    });
    const look = await assentInProcess("policy", "fmt", folder, "--check");
    assert.deepEqual([look.code, look.out], [1, `${join(folder, "a.yaml")}\n${join(folder, "a_test.yaml")}\n`]);
    assert.match(look.err, /2 of 3 files would change/);
    assert.equal(readFileSync(join(folder, "a.yaml"), "utf8"), LOOSE, "--check writes nothing");
    const written = await assent(["policy", "fmt", folder]);
    assert.deepEqual(written, { code: 0, out: look.out, err: "" });
    assert.deepEqual(
      [readFileSync(join(folder, "a.yaml"), "utf8"), readFileSync(join(folder, "a_test.yaml"), "utf8")],
      [NEAT, NEAT_CASES],
    );
    assert.deepEqual(await assentInProcess("policy", "fmt", folder), { code: 0, out: "", err: "" });
    assert.equal(readFileSync(join(folder, "in/c.yaml"), "utf8"), LOOSE);
    assert.equal((await assentInProcess("policy", "fmt", folder, "--recursive")).out, `${join(folder, "in/c.yaml")}\n`);
    assert.equal(readFileSync(join(folder, ".hidden.yaml"), "utf8"), LOOSE);
  });

  test("leaves a faulty file unchanged and names it, and formats the others", async (t) => {
    const broken = LOOSE.replace("allow", "sometimes");
    const folder = folderWith(t, {
      "a.yaml": LOOSE,
      "b.yaml": broken,
      "c_test.yaml": "cases:   []\n",
      "d.yaml": Uint8Array.of(0xff),
    });
    const run = await assentInProcess("policy", "fmt", folder);
    assert.deepEqual([run.code, run.out], [1, `${join(folder, "a.yaml")}\n`]);
    assert.match(
      run.err,
      /^b\.yaml:4:13: .*\nc_test\.yaml:1:1: .*\nc_test\.yaml:1:10: .*\nd\.yaml: the file is not UTF-8\n$/,
    );
    assert.deepEqual(
      [readFileSync(join(folder, "b.yaml"), "utf8"), readFileSync(join(folder, "c_test.yaml"), "utf8")],
      [broken, "cases:   []\n"],
    );
  });

  test("replaces the target of a link, keeps its mode, and leaves no temporary file", async (t) => {
    const folder = folderWith(t, { "elsewhere/real.yaml": LOOSE, "policies/b.yaml": LOOSE.replace("a\n", "b\n") });
    symlinkSync("../elsewhere/real.yaml", join(folder, "policies/a.yaml"));
    chmodSync(join(folder, "elsewhere/real.yaml"), 0o640);
    const before = statSync(join(folder, "elsewhere/real.yaml")).ino;
    assert.equal((await assentInProcess("policy", "fmt", join(folder, "policies"))).code, 0);
    assert.ok(lstatSync(join(folder, "policies/a.yaml")).isSymbolicLink());
    const now = statSync(join(folder, "elsewhere/real.yaml"));
    assert.deepEqual([readFileSync(join(folder, "elsewhere/real.yaml"), "utf8"), now.mode & 0o777], [NEAT, 0o640]);
    assert.notEqual(now.ino, before, "a new file took its place: nobody reads half of it");
    assert.deepEqual(
      [readdirSync(join(folder, "elsewhere")), readdirSync(join(folder, "policies")).sort()],
      [["real.yaml"], ["a.yaml", "b.yaml"]],
    );
  });

  test("exits with 2 for a missing folder", async (t) => {
    const run = await assentInProcess("policy", "fmt", join(folderWith(t, {}), "none"));
    assert.deepEqual([run.code, /none cannot be read/.test(run.err)], [2, true]);
  });
});
