/** `assent policy diff` on folders and on revisions of real repositories. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { assentInProcessWith, folderWith, type Run } from "../support/cli.ts";
import { GIT_ENV, repository } from "../support/git.ts";

const rule = (name: string, effect: string, when?: string): string =>
  `  - name: ${name}\n    tool: t\n    effect: ${effect}\n${when === undefined ? "" : `    when: ${when}\n`}`;
const policy = (name: string, ...rules: string[]): string => `policy: ${name}\nrules:\n${rules.join("")}`;

const diff = (cwd: string, ...args: string[]): Promise<Run> =>
  assentInProcessWith({ cwd, env: GIT_ENV }, "policy", "diff", ...args);

function project(t: TestContext) {
  const made = repository(t);
  const first = made.commit({
    "policies/a.yaml": policy("a", rule("r", "allow")),
    "policies/deep/c.yaml": policy("c", rule("r", "deny")),
    "README.md": "x",
  });
  made.commit({
    "policies/a.yaml": policy("a", rule("r", "deny", "params.n > 1")),
    "policies/b.yaml": policy("b", rule("s", "allow")),
  });
  return { ...made, first };
}

describe("diff", () => {
  test("lists policies, rules and effects; exits with 0 if equal or different, and with 1 only with --exit-code", async (t) => {
    const { folder, first } = project(t);
    const text = await diff(folder, "HEAD~1", "HEAD");
    assert.deepEqual(text, {
      code: 0,
      err: "",
      out: `~ the policy "a" changes in 1 place
    ~ the effect of the rule "r" is deny; it was allow; the rule "r" matches only when params.n > 1
+ the policy "b" is new: 1 rule (1 allow)
    + the rule "s" is new: it allows t
1 policy added, 1 policy changed, 1 rule added, 1 rule changed
`,
    });
    assert.deepEqual(
      await diff(folder, first),
      text,
      "the working folder is the other side, and the revision takes its folder",
    );
    assert.equal((await diff(folder, "HEAD~1", "HEAD", "--exit-code")).code, 1);
    assert.deepEqual(await diff(folder, "HEAD", "policies", "--exit-code"), {
      code: 0,
      out: "the policies are the same\n",
      err: "",
    });
    assert.deepEqual(
      await diff(join(folder, "policies"), "HEAD~1:policies", "."),
      text,
      "as git has it: from the root on",
    );
    assert.deepEqual(await diff(join(folder, "policies"), "HEAD~1:./", "HEAD:."), text);
  });

  test("prints JSON, and Markdown in which text of a policy is not markup", async (t) => {
    const { folder, commit } = project(t);
    commit({ "policies/b.yaml": policy("b", rule('"<img src=x> `|` @team"', "allow")) });
    const json = JSON.parse((await diff(folder, "HEAD~1", "HEAD", "--format", "json")).out) as Record<string, unknown>;
    assert.deepEqual(
      [json["before"], json["after"], json["equal"], json["rules"]],
      ["HEAD~1", "HEAD", false, { added: 1, removed: 1, changed: 0, moved: 0 }],
    );
    const { out } = await diff(folder, "HEAD~1", "HEAD", "--format", "markdown");
    assert.match(out, /^### Policies: 1 policy changed, 1 rule added, 1 rule removed\n\n#### `b`\n/);
    assert.ok(
      out.includes(
        "| rule added | `<img src=x> '\\|' @team` | `the rule \"<img src=x> '\\|' @team\" is new: it allows t` |",
      ),
      out,
    );
  });

  test("includes subfolders with --recursive, on both sides", async (t) => {
    const { folder, commit } = project(t);
    commit({ "policies/deep/c.yaml": policy("c", rule("r", "allow")) });
    assert.match((await diff(folder, "HEAD~1", "HEAD")).out, /the same/);
    assert.match((await diff(folder, "HEAD~1", "HEAD", "--recursive")).out, /^~ the policy "c"/);
    assert.match((await diff(folder, "HEAD~1", "policies", "--recursive")).out, /^~ the policy "c"/);
  });

  test("treats a revision as data: text that looks like an option or a command is rejected", async (t) => {
    const { folder } = project(t);
    for (const rev of [
      "--output=stolen",
      "-h",
      "--upload-pack=touch stolen",
      ":policies",
      "HEAD; touch stolen",
      "$(touch stolen)",
    ]) {
      const run = await diff(folder, "--", rev, "HEAD");
      assert.equal(run.code, 2, rev);
      assert.match(run.err, /is neither a folder nor a revision of /, rev);
    }
    assert.ok(!existsSync(join(folder, "stolen")) && !existsSync(join(folder, "policies", "stolen")));
  });

  test("exits with 2 and a reason if the arguments cannot be compared", async (t) => {
    const { folder, git, commit } = project(t);
    for (const [args, words] of [
      [["nope"], /"nope" is neither a folder nor a revision of /],
      [["HEAD:nope"], /the revision "HEAD" has no folder nope/],
      [["HEAD:README.md"], /HEAD:README\.md is a file, not a folder/],
      [["HEAD", "/"], /is outside the repository/],
      [[], /takes two folders or revisions/],
      [["a", "b", "c"], /takes two folders or revisions/],
    ] as [string[], RegExp][]) {
      const run = await diff(folder, ...args);
      assert.deepEqual([run.code, words.test(run.err), run.out], [2, true, ""], `${args.join(" ")}: ${run.err}`);
    }
    symlinkSync("a.yaml", join(folder, "policies", "link.yaml"));
    git("add", "-A");
    git("commit", "-q", "-m", "link");
    assert.match(
      (await diff(folder, "HEAD", "HEAD~1")).err,
      /^link\.yaml: a link is not followed in a revision\nassent: the policies of HEAD are not valid; nothing was compared\n/,
    );
    rmSync(join(folder, "policies", "link.yaml"));
    commit({ "policies/a.yaml": "policy: a\n" });
    const faulty = await diff(folder, "HEAD~2", "HEAD");
    assert.deepEqual(
      [
        faulty.code,
        /^a\.yaml:1:1: rules: .*\nassent: the policies of HEAD are not valid; nothing was compared\n/.test(faulty.err),
      ],
      [2, true],
      faulty.err,
    );
    const blob = git("rev-parse", "HEAD~2:policies/a.yaml");
    rmSync(join(folder, ".git", "objects", blob.slice(0, 2), blob.slice(2)));
    const broken = await diff(folder, "HEAD~2", "HEAD");
    assert.deepEqual([broken.code, broken.err.includes(`git does not have the object ${blob}`)], [1, true], broken.err);
    const alone = folderWith(t, { "p/a.yaml": policy("a", rule("r", "allow")) });
    const env = { ...GIT_ENV, GIT_CEILING_DIRECTORIES: join(alone, "..") };
    const run = await assentInProcessWith({ cwd: alone, env }, "policy", "diff", "main", "p");
    assert.deepEqual(
      [run.code, /cannot be a revision because the working folder is not in a git repository/.test(run.err)],
      [2, true],
      run.err,
    );
  });

  test("works in a bare repository, as in a hook on a server", async (t) => {
    const { folder, git } = project(t);
    const bare = join(folder, "..", `${folder.split("/").at(-1)}-bare`);
    t.after(() => rmSync(bare, { recursive: true, force: true }));
    git("clone", "-q", "--bare", folder, bare);
    mkdirSync(join(bare, "policies"));
    const run = await diff(bare, "HEAD~1:policies", "HEAD:policies", "--exit-code");
    assert.deepEqual([run.code, run.out.startsWith('~ the policy "a"')], [1, true], run.err);
  });
});
