/**
 * deploy/ci: the script and the hook on real repositories, with receivers on loopback instead of GitHub's and GitLab's
 * APIs.
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test, type TestContext } from "node:test";
import { parse } from "yaml";
import { folderWith, runProgram, writeFiles, type Files, type Run } from "../support/cli.ts";
import { GIT_ENV, repository, type Repository } from "../support/git.ts";
import { ROOT, startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { ALLOWED, FEW_POLICIES } from "../support/service.ts";

const CI = join(ROOT, "deploy", "ci");
const SCRIPT = join(CI, "check-policies.sh");
const TOKEN = `ghs_${"s3cr3t".repeat(6)}`;
const API_KEY = `assent-test-admin-${"0".repeat(32)}`;

const GOOD =
  "policy: a\nrules:\n  - name: small\n    tool: t\n    when: params.n < 10\n    effect: allow\n  - name: others\n    effect: deny\n";
const one = (name: string, n: number, effect: string): string =>
  `  - name: ${name}\n    action: { agent_id: a, tool: t, operation: o, params: { n: ${n} } }\n    expect: { effect: ${effect} }\n`;
const TESTS = `now: 2026-01-01T00:00:00Z\ncases:\n${one("small goes", 1, "allow")}${one("large does not", 10, "deny")}`;
const FILES: Files = { "policies/a.yaml": GOOD, "policies/a_test.yaml": TESTS };

/** A checker that succeeds without findings, for tests that only cover the posting. */
const NO_CHECKER = { ASSENT_BIN: "true" };

/** Removes these variables, so that the environment of the test run has no effect. */
const BARE: Record<string, string> = Object.fromEntries(
  [
    "GITHUB_TOKEN",
    "GITHUB_REPOSITORY",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_API_URL",
    "GITLAB_TOKEN",
    "CI_API_V4_URL",
    "CI_MERGE_REQUEST_IID",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA",
    "ASSENT_BASE",
    "ASSENT_PR",
  ].map((name) => [name, ""]),
);

function check(cwd: string, env: Record<string, string> = {}, ...args: string[]): Promise<Run> {
  return runProgram("sh", [...args, SCRIPT, "policies"], { cwd, env: { ...BARE, ...GIT_ENV, ...env } });
}

interface Received {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** Starts a receiver that sends the test's responses and stores the requests. */
async function receiver(
  t: TestContext,
  answer: (request: Received) => [status: number, body: unknown],
): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const one: Received = {
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      received.push(one);
      const [status, body] = answer(one);
      response
        .writeHead(status, {
          "content-type": "application/json",
          ...(status === 302 ? { location: "/elsewhere" } : {}),
        })
        .end(JSON.stringify(body));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

/** Creates programs that record their arguments and environment, then run the real program. */
function spies(t: TestContext): { path: string; seen(): string[] } {
  const folder = folderWith(t, {});
  const log = join(folder, "log");
  for (const name of ["node", "git", "curl"]) {
    const real =
      name === "node"
        ? process.execPath
        : execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    writeFileSync(join(folder, name), `#!/bin/sh\n{ echo "=== ${name} $*"; env; } >> '${log}'\nexec '${real}' "$@"\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return {
    path: `${folder}:${process.env["PATH"] ?? ""}`,
    seen: () => readFileSync(log, "utf8").split(/^=== /m).slice(1),
  };
}

function project(t: TestContext): Repository & { base: string } {
  const made = repository(t);
  const base = made.commit(FILES);
  return { ...made, base };
}

describe("check-policies.sh", () => {
  test("reports the files, the tests with their coverage, and the difference to the base", async (t) => {
    const { folder, base, commit } = project(t);
    commit({
      "policies/a.yaml": GOOD.replace("n < 10", "n < 10 && params.n > 0"),
      "policies/b.yaml": GOOD.replace("policy: a", "policy: b"),
    });
    const run = await check(folder, { ASSENT_BASE: base, GITHUB_STEP_SUMMARY: join(folder, "summary.md") });
    assert.equal(run.code, 0, run.out + run.err);
    assert.equal(run.err, "");
    assert.match(
      run.out,
      /^<!-- assent policies policies -->\n## Policies in `policies`\n\n### :white_check_mark: The tests pass\n\n {4}2 passed, 0 failed\n {4}4 of 4 rules are reached \(100 %\)\n/,
    );
    assert.match(run.out, /\n### Policies: 1 policy added, 1 policy changed, 2 rules added, 1 rule changed\n/);
    const out = (name: string): string => readFileSync(join(folder, "policy-report", name), "utf8");
    assert.deepEqual([out("report.md"), readFileSync(join(folder, "summary.md"), "utf8")], [run.out, run.out]);
    assert.deepEqual((JSON.parse(out("policies.sarif")) as { runs: [{ results: unknown[] }] }).runs[0].results, []);
    assert.match(out("policies.xml"), /tests="2" failures="0"/);
  });

  test("fails because of faults, tests or coverage, and not because the base cannot be used", async (t) => {
    const { folder, base } = project(t);
    writeFiles(folder, {
      "policies/a_test.yaml": `now: 2026-01-01T00:00:00Z\ncases:\n${one("small goes", 1, "allow")}`,
    });
    const partly = await check(folder, { ASSENT_BASE: "0".repeat(40) });
    assert.equal(partly.code, 0);
    assert.match(
      partly.out,
      /no test reaches the rule "others"[\s\S]*### Not compared with the base revision\n\n {4}assent: "0{40}" is neither a folder nor a revision/,
    );
    const short = await check(folder, { ASSENT_BASE: base, ASSENT_MIN_COVERAGE: "100" });
    assert.deepEqual(
      [short.code, /### :x: The tests do not pass, or reach too few rules\n/.test(short.out)],
      [1, true],
    );
    assert.equal((await check(folder, { ASSENT_MIN_COVERAGE: "all" })).code, 2);
    writeFiles(folder, { "policies/a_test.yaml": TESTS.replace("effect: deny", "effect: allow") });
    assert.match(
      (await check(folder)).out,
      /:x: [\s\S]* {4}FAIL {2}a_test\.yaml: large does not: effect is deny, expected allow/,
    );
    writeFiles(folder, {
      "policies/a.yaml": `${GOOD}  - name: "x\\n### Approved :white_check_mark:\\n"\n    effect: perhaps\n`,
      "policies/b.yaml": "``` x\n---\n",
    });
    const faulty = await check(folder, { ASSENT_BASE: base });
    assert.equal(faulty.code, 1);
    assert.match(faulty.out, /### :x: The files have faults\n\n {4}a\.yaml:10:13: /);
    assert.ok(
      faulty.out
        .split("\n")
        .slice(5)
        .every((line) => line === "" || line.startsWith("    ")),
      faulty.out,
    );
    assert.match(readFileSync(join(folder, "policy-report", "policies.xml"), "utf8"), /failures="[1-9]/);
  });

  test("posts to GitHub, and updates its own comment, but no other comment", async (t) => {
    const { folder, base } = project(t);
    let comments: unknown[] = [];
    const api = await receiver(t, ({ method }) => (method === "GET" ? [200, comments] : [201, {}]));
    const env = {
      ...NO_CHECKER,
      ASSENT_BASE: base,
      GITHUB_TOKEN: TOKEN,
      GITHUB_REPOSITORY: "o/r",
      ASSENT_PR: "7",
      GITHUB_API_URL: api.url,
    };
    const first = await check(folder, env);
    assert.deepEqual([first.code, first.err], [0, ""]);
    assert.deepEqual(
      api.received.map(({ method, url }) => `${method} ${url}`),
      ["GET /repos/o/r/issues/7/comments?per_page=100", "POST /repos/o/r/issues/7/comments"],
    );
    for (const { headers } of api.received) assert.equal(headers["authorization"], `Bearer ${TOKEN}`);
    assert.equal((JSON.parse(api.received[1]?.body ?? "") as { body: string }).body, first.out);
    const body = "<!-- assent policies policies -->\nold";
    comments = [
      { id: 1, user: { login: "mallory" }, body },
      { id: 2, user: { login: "github-actions[bot]" }, body: "something else" },
      { id: 3, user: { login: "github-actions[bot]" }, body },
    ];
    api.received.length = 0;
    await check(folder, env);
    assert.deepEqual(
      api.received.slice(1).map(({ method, url }) => `${method} ${url}`),
      ["PATCH /repos/o/r/issues/comments/3"],
    );
  });

  test("posts to GitLab under the token's own account", async (t) => {
    const { folder, base } = project(t);
    const body = "<!-- assent policies policies -->\nold";
    const api = await receiver(t, ({ method, url }) =>
      method !== "GET"
        ? [200, {}]
        : [
            200,
            url === "/user"
              ? { id: 5 }
              : [
                  { id: 11, author: { id: 4 }, body },
                  { id: 12, author: { id: 5 }, body },
                ],
          ],
    );
    const run = await check(folder, {
      CI_MERGE_REQUEST_DIFF_BASE_SHA: base,
      GITLAB_TOKEN: TOKEN,
      CI_API_V4_URL: api.url,
      CI_PROJECT_ID: "9",
      CI_MERGE_REQUEST_IID: "3",
    });
    assert.deepEqual([run.code, run.err], [0, ""]);
    assert.deepEqual(
      api.received.map(({ method, url }) => `${method} ${url}`),
      [
        "GET /user",
        "GET /projects/9/merge_requests/3/notes?per_page=100&sort=desc",
        "PUT /projects/9/merge_requests/3/notes/12",
      ],
    );
    for (const { headers } of api.received) assert.equal(headers["private-token"], TOKEN);
    assert.match(run.out, /### No rule changes/, "the base is the one that GitLab names");
  });

  test("does not leak tokens in its output, files or child processes, with or without tracing, or to another address", async (t) => {
    const { folder, base } = project(t);
    const api = await receiver(t, () => [302, { message: "moved" }]);
    const { path, seen } = spies(t);
    const run = await check(
      folder,
      {
        PATH: path,
        ASSENT_BASE: base,
        GITHUB_TOKEN: TOKEN,
        GITLAB_TOKEN: TOKEN,
        GH_TOKEN: TOKEN,
        GITHUB_REPOSITORY: "o/r",
        ASSENT_PR: "7",
        GITHUB_API_URL: api.url,
        ASSENT_URL: "http://127.0.0.1:1",
        ASSENT_API_KEY: API_KEY,
      },
      "-x",
    );
    assert.equal(run.code, 1, "the backtest that was asked for could not be made");
    assert.match(run.out, /### :x: The backtest could not be made\n\n {4}assent: /);
    assert.match(run.err, /check-policies: the report was not posted: GET was answered with 302\n$/);
    assert.deepEqual(
      api.received.map(({ url }) => url),
      ["/repos/o/r/issues/7/comments?per_page=100"],
      "a redirection is not followed",
    );
    const started = seen();
    assert.ok(started.length >= 7 && started.some((one) => one.startsWith("curl ")), "the spies were there");
    for (const text of [run.out, run.err, readFileSync(join(folder, "policy-report", "report.md"), "utf8"), ...started])
      assert.ok(!text.includes(TOKEN), text.slice(0, 300));
    for (const text of [run.out, run.err]) assert.ok(!text.includes(API_KEY));
    assert.deepEqual(
      started.filter((text) => text.includes(API_KEY)).map((text) => / policy (\w+)/.exec(text)?.[1]),
      ["backtest"],
      "the key is for the backtest alone",
    );
    const plain = await check(folder, {
      ...NO_CHECKER,
      GITHUB_TOKEN: TOKEN,
      GITHUB_REPOSITORY: "o/r",
      ASSENT_PR: "7",
      GITHUB_API_URL: "http://api.example.com",
    });
    assert.deepEqual(
      [plain.code, plain.err],
      [0, "check-policies: the report was not posted: GET needs an https address\n"],
    );
    const odd = await check(folder, {
      ...NO_CHECKER,
      GITHUB_TOKEN: `${TOKEN}"\nurl = "${api.url}/stolen`,
      GITHUB_REPOSITORY: "o/r",
      ASSENT_PR: "7",
      GITHUB_API_URL: api.url,
    });
    assert.match(odd.err, /the token holds characters that no token has/);
    assert.equal(api.received.length, 1);
  });

  test("cuts a report that is too long for a comment", async (t) => {
    const { folder, base } = project(t);
    const line = `a rule is new: ${"\ud83d\ude00".repeat(20)}\n`;
    writeFiles(folder, { "long.txt": line.repeat(900), "checker.sh": '#!/bin/sh\nexec cat "${0%/*}/long.txt"\n' });
    chmodSync(join(folder, "checker.sh"), 0o755);
    const api = await receiver(t, ({ method }) => (method === "GET" ? [200, []] : [201, {}]));
    const run = await check(folder, {
      ASSENT_BIN: join(folder, "checker.sh"),
      ASSENT_BASE: base,
      GITHUB_TOKEN: TOKEN,
      GITHUB_REPOSITORY: "o/r",
      ASSENT_PR: "7",
      GITHUB_API_URL: api.url,
    });
    const { body } = JSON.parse(api.received[1]?.body ?? "{}") as { body: string };
    assert.ok(
      run.out.length > 100_000 && body.length < 61_000 && body.length > 50_000,
      `${run.out.length} ${body.length}`,
    );
    assert.match(body, /\n\nThe report is longer; the job has all of it\.$/);
  });
});

describe("check-policies.sh with a service", () => {
  let service: ServiceProcess;
  let data = "";
  before(async () => {
    data = execFileSync("mktemp", ["-d"], { encoding: "utf8" }).trim();
    service = await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: API_KEY });
    for (let i = 0; i < 3; i++)
      await fetch(`${service.url}/v1/actions`, {
        method: "POST",
        headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
        body: JSON.stringify(ALLOWED),
      });
  });
  after(async () => {
    await stopProcess(service);
    rmSync(data, { recursive: true, force: true });
  });

  test("reports which past decisions would flip, and fails because of them only if configured", async (t) => {
    const { folder, base } = project(t);
    const env = { ASSENT_BASE: base, ASSENT_URL: service.url, ASSENT_API_KEY: API_KEY };
    const told = await check(folder, env);
    assert.deepEqual([told.code, told.err], [0, ""]);
    assert.match(
      told.out,
      /### 3 of 3 past decisions would flip\n[\s\S]*\| 3 \| \*\*allow\*\* [^|]*\| \*\*deny\*\* `a` `others` \|/,
    );
    const strict = await check(folder, { ...env, ASSENT_FAIL_ON_FLIPS: "1" });
    assert.deepEqual([strict.code, strict.out.includes("### 3 of 3 past decisions would flip")], [1, true]);
    const stored = await check(folder, { ASSENT_BACKTEST: "store", ASSENT_DATA: data, ASSENT_BASE: base });
    assert.match(stored.out, /### 3 of 3 past decisions would flip/, stored.out);
  });
});

describe("the pre-receive hook", () => {
  function server(t: TestContext): Repository & { push(...args: string[]): Promise<Run>; bare: string } {
    const made = repository(t);
    const bare = folderWith(t, {});
    made.git("init", "-q", "--bare", "-b", "main", bare);
    mkdirSync(join(bare, "hooks"), { recursive: true });
    symlinkSync(join(CI, "pre-receive"), join(bare, "hooks", "pre-receive"));
    made.git("remote", "add", "origin", bare);
    return {
      ...made,
      bare,
      push: (...args) =>
        runProgram("git", ["push", "-q", "origin", ...args], { cwd: made.folder, env: { ...BARE, ...GIT_ENV } }),
    };
  }

  test("accepts valid policies and rejects others on the protected branch, and ignores other branches", async (t) => {
    const { push, commit, git, bare } = server(t);
    const head = (branch: string): string => git("ls-remote", bare, `refs/heads/${branch}`).split("\t")[0] as string;
    const first = commit(FILES);
    const taken = await push("main");
    assert.deepEqual([taken.code, head("main")], [0, first], taken.err);
    commit({ "policies/a.yaml": GOOD.replace("n < 10", "n < 11") });
    const refused = await push("main");
    assert.equal(refused.code, 1);
    assert.match(
      refused.err,
      /FAIL {2}a_test\.yaml: large does not[\s\S]*matches when params\.n < 11; it was params\.n < 10[\s\S]*refs\/heads\/main: the policies are not valid; the push was rejected/,
    );
    assert.equal(head("main"), first);
    assert.equal((await push("main:refs/heads/idea")).code, 0, "another branch may hold anything");
    git("rm", "-q", "-r", "policies");
    commit({ "README.md": "x" });
    const gone = await push("main");
    assert.deepEqual([gone.code, /the push would remove policies/.test(gone.err), head("main")], [1, true, first]);
  });

  test("is not misled by attributes or links, and enforces the minimum coverage", async (t) => {
    const { push, commit, git, bare, folder } = server(t);
    commit({
      ...FILES,
      "policies/a_test.yaml": TESTS.replace("effect: deny", "effect: allow"),
      "policies/.gitattributes": "*_test.yaml export-ignore\n",
      ".gitattributes": "*_test.yaml export-ignore\n",
    });
    assert.equal((await push("main")).code, 1, "a failing test that an archive would leave out");
    const secret = folderWith(t, { "secret.yaml": "password: hunter2\n" });
    writeFiles(folder, FILES);
    symlinkSync(join(secret, "secret.yaml"), join(folder, "policies", "b.yaml"));
    commit({});
    const linked = await push("main");
    assert.equal(linked.code, 1);
    assert.ok(!/password|hunter2/.test(linked.err), linked.err);
    rmSync(join(folder, "policies", "b.yaml"));
    commit({ "policies/a_test.yaml": `now: 2026-01-01T00:00:00Z\ncases:\n${one("small goes", 1, "allow")}` });
    git("-C", bare, "config", "assent.mincoverage", "100");
    const short = await push("main");
    assert.deepEqual([short.code, /50 % of the rules are reached/.test(short.err)], [1, true], short.err);
    git("-C", bare, "config", "assent.mincoverage", "50");
    assert.equal((await push("main")).code, 0);
  });
});

describe("the recipes", () => {
  const recipe = (path: string): Record<string, any> =>
    parse(readFileSync(join(CI, path), "utf8")) as Record<string, any>;
  const isShell = (lines: string): void => void execFileSync("sh", ["-n"], { input: lines });
  const variables = new Set(
    [...readFileSync(SCRIPT, "utf8").matchAll(/\b(ASSENT_[A-Z_]+|GITHUB_TOKEN)\b/g)].map((match) => match[1]),
  );

  test("for GitHub Actions runs the script on pull requests with minimal permissions", () => {
    const workflow = recipe("github-actions/policies.yml");
    assert.deepEqual(Object.keys(workflow["on"]), ["pull_request", "push"], "and not pull_request_target");
    assert.deepEqual(workflow["permissions"], { contents: "read", "pull-requests": "write" });
    const [job] = Object.values(workflow["jobs"]) as any[];
    assert.equal(typeof job["runs-on"], "string");
    for (const step of job.steps) {
      assert.ok("uses" in step !== "run" in step, JSON.stringify(step));
      if ("run" in step) isShell(step.run);
      else assert.match(step.uses, /^actions\/[a-z-]+@v\d+$/);
      if (step.uses?.startsWith("actions/checkout")) assert.equal(step.with["persist-credentials"], false);
    }
    const run = job.steps.find((step: any) => step.run?.includes("check-policies.sh"));
    for (const name of Object.keys(run.env)) assert.ok(variables.has(name), `the script does not know ${name}`);
    assert.equal(job.steps[0].with["fetch-depth"], 0, "the base is there to compare with");
    assert.ok(!run.run.includes("${{"), "nothing of a pull request is pasted into a command");
  });

  test("for GitLab runs the script on merge requests", () => {
    const job = recipe("gitlab-ci/policies.yml")["policies"];
    assert.match(job.rules[0].if, /merge_request_event/);
    for (const line of [...job.before_script, ...job.script]) isShell(line);
    assert.ok(job.script.some((line: string) => line.includes("deploy/ci/check-policies.sh policies")));
    assert.equal(job.variables.GIT_DEPTH, 0);
    assert.equal(job.artifacts.reports.junit, "policy-report/policies.xml");
  });

  test("the README lists every variable and file", () => {
    const page = readFileSync(join(CI, "README.md"), "utf8");
    for (const name of variables) assert.ok(page.includes(`\`${name}\``), `${name} is not in the README`);
    for (const [, path] of page.matchAll(/\]\(([^)#:]+)\)/g)) assert.ok(existsSync(join(CI, path as string)), path);
  });
});
