import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test, { type TestContext } from "node:test";
import policyFiles from "../../plugins/policy-files/index.ts";
import { defaultConfig } from "../../src/config/index.ts";
import { PolicySourceError, type PolicySource } from "../../src/contract/policy-source.ts";
import { checkPolicyFolder, loadPolicyFolder } from "../../src/policies/folder.ts";
import { listFilesBeside, listPolicyTree, readUnloadedFiles, sizePolicyTree } from "../../src/policies/git-tree.ts";
import type { Host } from "../../src/plugin.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const good = (name: string, effect = "allow"): string =>
  `policy: ${name}\nrules:\n  - name: r\n    effect: ${effect}\n`;
const tests = (effect: string): string =>
  `now: 2026-01-15T10:00:00Z\ncases:\n  - name: first\n    action: { agent_id: a, tool: t, operation: o }\n    expect: { effect: ${effect} }\n`;

function folderOf(t: TestContext, files: Record<string, string | Uint8Array>): string {
  const folder = temporaryFolder("assent-policies-");
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

const place = ({
  file,
  line,
  column,
  message,
}: {
  file: string;
  line: number | null;
  column: number | null;
  message: string;
}): string => `${file}:${line}:${column} ${message}`;

test("yaml and yml files of the folder itself are policies; tests, hidden files and folders are not", async (t) => {
  const folder = folderOf(t, {
    "b.yaml": good("b"),
    "a.yml": good("a"),
    "a_test.yaml": tests("allow"),
    "b_test.yml": tests("allow"),
    "notes.txt": "x",
    ".hidden.yaml": "{",
    "packs/c.yaml": good("c"),
    ".git/d.yaml": "{",
    "folder.yaml/e.yaml": good("e"),
  });
  const flat = await loadPolicyFolder(folder);
  assert.deepEqual(flat.faults, []);
  assert.deepEqual(
    flat.documents.map(({ document, file }) => `${document.policy} ${file}`),
    ["a a.yml", "b b.yaml"],
  );
  assert.deepEqual(
    flat.tests.map(({ file }) => file),
    ["a_test.yaml", "b_test.yml"],
  );
  const deep = await loadPolicyFolder(folder, { recursive: true });
  assert.deepEqual(
    deep.documents.map(({ document, file }) => `${document.policy} ${file}`),
    ["a a.yml", "b b.yaml", "e folder.yaml/e.yaml", "c packs/c.yaml"],
  );
});

test("faults of all files are reported together", async (t) => {
  const folder = folderOf(t, {
    "a.yaml": good("a").replace("allow", "alow"),
    "b.yaml": "rules: [",
    "bytes.yaml": Uint8Array.of(0x61, 0xff),
    "good.yaml": good("good"),
    "x_test.yaml": "cases: []\n",
  });
  const { faults } = await checkPolicyFolder(folder);
  assert.deepEqual(
    faults.map(({ file }) => file),
    ["a.yaml", "b.yaml", "bytes.yaml", "x_test.yaml", "x_test.yaml"],
  );
  assert.equal(
    place(faults[0] as (typeof faults)[number]),
    'a.yaml:4:13 rules.0.effect: expected "allow" or "deny" or "require_approval"; did you mean "allow"?',
  );
  assert.equal(place(faults[2] as (typeof faults)[number]), "bytes.yaml:null:null the file is not UTF-8");
});

test("a name in two files, or twice in one, names both places", async (t) => {
  const folder = folderOf(t, {
    "a.yaml": `# a\n${good("same")}`,
    "b.yaml": `${good("other")}---\n${good("same")}---\n${good("other")}`,
  });
  assert.deepEqual((await loadPolicyFolder(folder)).faults.map(place), [
    'b.yaml:6:9 the policy "same" is in a.yaml, line 2, already; give each policy its own name',
    'b.yaml:11:9 the policy "other" is in b.yaml, line 1, already; give each policy its own name',
  ]);
});

test("a test that fails is a fault at its case", async (t) => {
  const folder = folderOf(t, { "a.yaml": good("a"), "a_test.yaml": tests("deny") });
  const { faults, results } = await checkPolicyFolder(folder);
  assert.deepEqual(faults.map(place), [
    'a_test.yaml:3:5 the test "first" fails: effect is allow, expected deny (allowed by rule "r" of policy "a")',
  ]);
  assert.equal(results.length, 1);
});

test("tests that make too many decisions are a fault where they exceed the limit, and none of them runs", async (t) => {
  const step = "{ submit: { agent_id: a, tool: t, operation: o }, times: 1000 }";
  const scenarios = Array.from({ length: 11 }, (_, i) => `  - { name: s${i}, steps: [${step}] }\n`).join("");
  const folder = folderOf(t, {
    "a.yaml": good("a"),
    "a_test.yaml": `now: 2026-01-15T10:00:00Z\nscenarios:\n${scenarios}`,
  });
  const { faults, results } = await checkPolicyFolder(folder);
  assert.deepEqual(faults.map(place), [
    "a_test.yaml:13:5 the tests of a folder make at most 10000 decisions, one for each case and each step of a scenario; those up to here make 11000",
  ]);
  assert.deepEqual(results, []);
});

test("a folder that is missing, empty or a file is reported with advice", async (t) => {
  const folder = folderOf(t, { file: "" });
  const only = async (path: string): Promise<string> => {
    const { faults } = await loadPolicyFolder(path);
    assert.equal(faults.length, 1);
    return faults[0]?.message ?? "";
  };
  assert.match(
    await only(join(folder, "nope")),
    /^the folder does not exist; create it and put policies into it, or set ASSENT_POLICIES$/,
  );
  assert.match(
    await only(folder),
    /^the folder contains no policy: there is no \*\.yaml or \*\.yml file except tests and data$/,
  );
  assert.match(await only(join(folder, "file")), /^the folder cannot be read: /);
});

test(
  "a file that cannot be read is a fault",
  { skip: process.getuid?.() === 0 ? "root reads everything" : false },
  async (t) => {
    const folder = folderOf(t, { "a.yaml": good("a"), "b.yaml": good("b") });
    chmodSync(join(folder, "a.yaml"), 0);
    const { faults } = await loadPolicyFolder(folder);
    assert.match(faults[0]?.message ?? "", /^the file cannot be read: /);
  },
);

async function source(
  path: string,
  options: { path?: string; recursive: boolean } = { recursive: false },
): Promise<PolicySource> {
  const host = { config: defaultConfig({ data: "/nowhere", policies: path }) } as unknown as Host;
  const brought = await policyFiles.setup?.(host, { watch: false, poll_seconds: 2, baseline: false, ...options });
  return brought?.policySources?.[0] as PolicySource;
}

test("the source offers the whole folder, and its origin", async (t) => {
  const folder = folderOf(t, {
    "b.yaml": good("b"),
    "a.yaml": good("a", "deny"),
    "a_test.yaml": tests("deny"),
    "packs/c.yaml": good("c"),
  });
  const bundle = await (await source(folder)).load();
  assert.deepEqual(bundle, {
    policies: [
      { document: { policy: "a", rules: [{ name: "r", effect: "deny" }] }, origin: "a.yaml" },
      { document: { policy: "b", rules: [{ name: "r", effect: "allow" }] }, origin: "b.yaml" },
    ],
    source: { kind: "folder", path: folder },
  });
  assert.equal((await (await source("/nowhere", { path: folder, recursive: true })).load())?.policies.length, 3);
});

test("the source offers the whole folder or nothing", async (t) => {
  const folder = folderOf(t, { "a.yaml": good("a"), "b.yaml": "{", "c.yaml": good("c").replace("name", "nam") });
  await assert.rejects(
    async () => (await source(folder)).load(),
    (error) => {
      assert.ok(error instanceof PolicySourceError);
      assert.deepEqual([...new Set(error.faults.map(({ file }) => file))], ["b.yaml", "c.yaml"]);
      return true;
    },
  );
  const failing = folderOf(t, { "a.yaml": good("a"), "a_test.yaml": tests("deny") });
  await assert.rejects(async () => (await source(failing)).load(), PolicySourceError);
});

test("a linked folder is read like a real one, and an invalid link is a fault", async (t) => {
  const shared = folderOf(t, { "deny.yaml": good("deny", "deny"), "deeper/more.yaml": good("more") });
  const folder = folderOf(t, { "a.yaml": good("a"), "notes.md": "x" });
  symlinkSync(shared, join(folder, "shared"));
  symlinkSync("notes.md", join(folder, "linked.md"));
  const loaded = await loadPolicyFolder(folder, { recursive: true });
  assert.deepEqual(loaded.faults, []);
  assert.deepEqual(
    loaded.documents.map(({ file }) => file),
    ["a.yaml", join("shared", "deeper", "more.yaml"), join("shared", "deny.yaml")],
  );
  assert.equal((await loadPolicyFolder(folder)).documents.length, 1);

  const broken = folderOf(t, { "a.yaml": good("a") });
  symlinkSync("gone", join(broken, "folder"));
  const [nowhere] = (await loadPolicyFolder(broken, { recursive: true })).faults;
  assert.match(nowhere?.message ?? "", /the link ".*folder" is broken/);
  assert.deepEqual((await loadPolicyFolder(broken)).faults, []);

  const round = folderOf(t, { "inner/a.yaml": good("a") });
  symlinkSync("..", join(round, "inner", "up"));
  const [back] = (await loadPolicyFolder(round, { recursive: true })).faults;
  assert.match(back?.message ?? "", /the link ".*up" points to a folder that contains it/);
});

test("a submodule and a link in a commit are faults where their folder would be read", async (t) => {
  const root = folderOf(t, { "a.yaml": good("a"), "in/b.yaml": good("b"), ".hidden/c.yaml": good("c") });
  const git = (...args: string[]): Buffer =>
    execFileSync("git", ["-C", root, "-c", "user.name=t", "-c", "user.email=t@example.com", ...args]);
  git("init", "-q");
  symlinkSync("in", join(root, "linked"));
  symlinkSync("a.yaml", join(root, ".hidden", "link"));
  git("add", "-A");
  git("update-index", "--add", "--cacheinfo", `160000,${"1".repeat(40)},module`);
  git("commit", "-qm", "x");
  const listed = async (recursive: boolean) => {
    const { files, faults } = await listPolicyTree(
      (args) => Promise.resolve(git(...args)),
      "HEAD",
      recursive,
      "a link is not followed",
    );
    return [files.map(({ name }) => name), faults.map(({ file, message }) => `${file}: ${message.slice(0, 26)}`)];
  };
  assert.deepEqual(await listed(false), [["a.yaml"], []]);
  assert.deepEqual(await listed(true), [
    ["a.yaml", "in/b.yaml"],
    ["linked: a link is not followed", "module: a submodule is not followe"],
  ]);
});

test("files that look like policies and are not loaded are listed with the reason", async (t) => {
  const folder = folderOf(t, {
    "a.yaml": good("a"),
    "a_test.yaml": tests("allow"),
    // Policies under other names and in other places.
    "b.YAML": good("b", "deny"),
    "c.Yml": good("c"),
    "d.yaml.bak": good("d"),
    "e.yaml.disabled": good("e"),
    "f.txt": good("f"),
    "g.json": JSON.stringify({ policy: "g", rules: [{ name: "r", effect: "deny" }] }),
    policy: good("h"),
    "i.yaml~": `policy: i\nrules:\n\t- broken\n`,
    "j.limits": "policy: j\nlimits:\n  - name: l\n",
    ".k.yaml": good("k"),
    ".drafts/l.yaml": good("l"),
    "team/m.yaml": good("m"),
    "team/deep/n.yml": good("n"),
    "team/o.yaml.orig": good("o"),
    "p.json": '[{"policy": "p"}]',
    // No policies, or not of this folder.
    "README.md": `\n\`\`\`yaml\n${good("q")}\`\`\`\n`,
    "notes.txt": "policy: later",
    "network.json": '{"policy": {"rules": []}}',
    "team/workflow.yml": "on: push\njobs: {}\n",
    "image.png": new Uint8Array([0x89, 0x50, 0xff, 0xfe]),
    ".git/r.yaml": good("r"),
    "node_modules/x/s.yaml": good("s"),
    "..2026_01_15/a.yaml": good("a"),
  });
  // Links to a folder elsewhere, and to one that contains the policies.
  symlinkSync(folderOf(t, { "t.yaml": good("t") }), join(folder, "linked"));
  symlinkSync(folder, join(folder, "team", "loop"));
  const { documents, faults, unloaded } = await loadPolicyFolder(folder);
  assert.deepEqual(faults, []);
  assert.equal(documents.length, 1);
  assert.deepEqual(unloaded.map(({ file, reason }) => `${file} ${reason}`).sort(), [
    ".drafts/l.yaml hidden",
    ".k.yaml hidden",
    "b.YAML ending",
    "c.Yml ending",
    "d.yaml.bak ending",
    "e.yaml.disabled ending",
    "f.txt ending",
    "g.json ending",
    "i.yaml~ ending",
    "j.limits ending",
    "linked/t.yaml subfolder",
    "policy ending",
    "team/deep/n.yml subfolder",
    "team/m.yaml subfolder",
    "team/o.yaml.orig ending",
  ]);
  rmSync(join(folder, "team", "loop"));
  const deep = await loadPolicyFolder(folder, { recursive: true });
  assert.deepEqual(
    deep.unloaded.filter(({ reason }) => reason === "subfolder"),
    [],
  );
  const empty = await loadPolicyFolder(folderOf(t, { "refunds.YAML": good("a") }));
  assert.match(
    empty.faults[0]?.message ?? "",
    /contains no policy.*; refunds\.YAML looks like a policy and is not loaded, because its name does not end in \.yaml or \.yml/,
  );
});

test("policies next to the folder, and policies in other encodings, are listed", async (t) => {
  const root = folderOf(t, {
    "policies/a.yaml": good("a"),
    "policies/utf-16.txt": Buffer.from(`\ufeff${good("b")}`, "utf16le"),
    "policies/utf-16-big-endian": Buffer.from(good("b"), "utf16le").swap16(),
    "policies/latin-1.conf": Buffer.from(`# für alle\n${good("b")}`, "latin1"),
    "policies/large.yaml.old": `${good("b")}${"# a comment\n".repeat(30_000)}`,
    "policies.yaml": good("c"),
    "policy.yml": good("c"),
    "assent-policies.json": JSON.stringify({ policy: "c", rules: [] }),
    ".policies.yaml": good("c"),
    "team-policy.yaml.bak": good("c"),
    "policy/d.yaml": good("d"),
    "policy/team/e.txt": good("d"),
    "Policies/d.yaml": good("d"),
    "policies.d/d.yaml": good("d"),
    // No policies, or names of other things.
    "policy.md": good("c"),
    "policy.txt": "a text about policies",
    "other.yaml": good("c"),
    "policies-staging/a.yaml": good("a"),
    "policy/.git/f.yaml": good("d"),
  });
  const listed = async (folder: string): Promise<string[]> =>
    (await loadPolicyFolder(join(root, folder))).unloaded.map(({ file, reason }) => `${file} ${reason}`).sort();
  const beside = [
    "../.policies.yaml beside",
    "../Policies/d.yaml beside",
    "../assent-policies.json beside",
    "../policies.d/d.yaml beside",
    "../policies.yaml beside",
    "../policy.yml beside",
    "../policy/d.yaml beside",
    "../policy/team/e.txt beside",
    "../team-policy.yaml.bak beside",
  ];
  const inside = ["large.yaml.old", "latin-1.conf", "utf-16-big-endian", "utf-16.txt"].map((name) => `${name} ending`);
  assert.deepEqual(await listed("policies"), [...beside, ...inside]);
  const missing = await loadPolicyFolder(join(root, "rules"));
  assert.match(
    missing.faults[0]?.message ?? "",
    /the folder does not exist.*; \.\.\/\.policies\.yaml looks like a policy and is not loaded, because it is next to the folder/,
  );
  assert.equal(missing.unloaded.length, beside.length + 5);

  const git = (args: readonly string[], input?: string): Buffer =>
    execFileSync("git", ["-C", root, ...args], input === undefined ? {} : { input });
  git(["init", "--quiet"]);
  git(["add", "-A", "-f"]);
  const tree = git(["write-tree"]).toString().trim();
  const run = async (args: readonly string[], input?: string): Promise<Buffer> => git(args, input);
  const found = async (folder: string): Promise<string[]> => {
    const others = await listFilesBeside(run, tree, folder);
    const unloaded = await readUnloadedFiles(run, others, (files) => sizePolicyTree(run, files));
    return unloaded.map(({ file, reason }) => `${file} ${reason}`).sort();
  };
  assert.deepEqual(await found("policies"), beside);
  assert.equal((await found("rules")).length, beside.length + 4);
  assert.deepEqual(await found(""), []);
});

test("the packs next to the default policies are not named as unloaded, but changed packs and other files are", async (t) => {
  assert.deepEqual((await loadPolicyFolder("policies")).unloaded, []);
  const email = readFileSync("policies/packs/email.yaml", "utf8");
  const folder = folderOf(t, {
    "a.yaml": good("a"),
    "packs/email.yaml": email,
    "packs/payments.yaml": email,
    "packs/shell.yaml": `${email}# changed`,
    "packs/own.yaml": good("own"),
    "others/email.yaml": email,
  });
  assert.deepEqual((await loadPolicyFolder(folder)).unloaded.map(({ file }) => file).sort(), [
    "others/email.yaml",
    "packs/own.yaml",
    "packs/payments.yaml",
    "packs/shell.yaml",
  ]);
});

test("a git tree lists the files that can be unloaded policies, and its policies are the same", async (t) => {
  const folder = folderOf(t, {
    "a.yaml": good("a"),
    "b.YAML": good("b"),
    ".c.yaml": good("c"),
    "team/d.yaml": good("d"),
    "README.md": good("e"),
    "e.txt": "text",
  });
  const git = (args: readonly string[], input?: string): Buffer =>
    execFileSync("git", ["-C", folder, ...args], input === undefined ? {} : { input });
  git(["init", "--quiet"]);
  git(["add", "-A", "-f"]);
  const tree = git(["write-tree"]).toString().trim();
  const run = async (args: readonly string[], input?: string): Promise<Buffer> => git(args, input);
  const { files, others, faults } = await listPolicyTree(run, tree, false, "a link");
  assert.deepEqual(faults, []);
  assert.deepEqual(
    files.map(({ name }) => name),
    ["a.yaml"],
  );
  const unloaded = await readUnloadedFiles(run, others, (listed) => sizePolicyTree(run, listed));
  assert.deepEqual(unloaded.map(({ file, reason }) => `${file} ${reason}`).sort(), [
    ".c.yaml hidden",
    "b.YAML ending",
    "team/d.yaml subfolder",
  ]);
});
