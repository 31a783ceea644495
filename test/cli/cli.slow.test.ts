import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { listBuiltInCommands } from "../../src/config/built-in-plugins.ts";
import { CORE_COMMANDS } from "../../src/contract/command.ts";
import { EXIT_CODES } from "../../src/cli/command.ts";
import { completionWords, listSubcommands } from "../../src/cli/completion/words.ts";
import { allCommands, listEntries } from "../../src/cli/commands.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import {
  assent as run,
  assentInProcess,
  assentInProcessWithEnv,
  folderWith,
  runProgram,
  type Run,
} from "../support/cli.ts";
import { needs, loadFeatures } from "../support/features.ts";
import { ASSENT, ROOT } from "../support/process.ts";
import { FEW_POLICIES, startService, type Service } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function assent(args: string[], env: Record<string, string> = {}, input = "", cwd = ROOT): Promise<Run> {
  return run(args, { cwd, env, input });
}

const COMMANDS = (await listEntries()).map(([name]) => name);

/** Commands without `--json`, and why. */
const WITHOUT_JSON: Readonly<Record<string, string>> = {
  serve: "runs until it is stopped",
  witness: "runs until it is stopped",
  hookd: "runs until it is stopped",
  "mcp proxy": "runs until it is stopped",
  "egress run": "prints what its command prints",
  "managed-agents": "runs until it is stopped",
  schema: "prints JSON",
  completion: "prints a script",
};

test("a full disk ends a command with the cause, and without a stack trace", async (t) => {
  if (!existsSync("/dev/full")) return t.skip("this system has no /dev/full");
  const { code, err } = await runProgram("sh", [
    "-c",
    'exec "$@" > /dev/full',
    "sh",
    process.execPath,
    ...ASSENT,
    "--version",
  ]);
  assert.equal(code, EXIT_CODES.failure);
  assert.match(
    err,
    /^assent: standard output cannot be written: ENOSPC: no space left on device, write; free disk space[^\n]*\n$/,
  );
});

describe("help and usage", () => {
  test("every command has help with examples, and the page lists it", async () => {
    const overview = await assentInProcess("help");
    assert.equal(overview.code, 0);
    const page = readFileSync(join(ROOT, "docs/cli.md"), "utf8");
    const names = [...overview.out.matchAll(/^ {2}([\w-]+) {2,}/gm)].map((match) => match[1] as string);
    assert.deepEqual(names, COMMANDS);
    assert.deepEqual([...names].sort(), [...CORE_COMMANDS, ...Object.keys(listBuiltInCommands())].sort());
    for (const name of names) {
      const help = await assentInProcess(name, "--help");
      assert.equal(help.code, 0);
      assert.match(help.out, /^usage: assent [\s\S]*examples:\n {2}/, name);
      assert.ok(page.includes(`\`assent ${name}`), `docs/cli.md does not tell of ${name}`);
    }
  });

  test("every command that prints a result takes --json", async () => {
    for (const [name, command] of await allCommands()) {
      if (Object.hasOwn(WITHOUT_JSON, name)) continue;
      const verbs = listSubcommands(name, command).map(({ text }) => text);
      for (const path of verbs.length === 0 ? [[name]] : verbs.map((verb) => [name, verb])) {
        const words = path.join(" ");
        if (Object.hasOwn(WITHOUT_JSON, words)) continue;
        assert.match((await assentInProcess(...path, "--help")).out, /--json/, words);
        // Options are parsed first, so the error names the first unknown one.
        const { code, err } = await assentInProcess(...path, "--json", "--no-such-option");
        assert.equal(code, EXIT_CODES.usage, words);
        assert.match(err, /'--no-such-option'/, words);
      }
    }
  });

  test("the words for completion are the commands, their subcommands and options", async () => {
    const lists = completionWords(await allCommands());
    const after = (...path: string[]): string[] =>
      lists.find((list) => list.path.join(" ") === path.join(" "))?.words.map(({ text }) => text) ?? [];
    assert.deepEqual(after(), COMMANDS);
    assert.deepEqual(after("keys").slice(0, 5), ["create", "list", "revoke", "rotate-permit", "rotate-log"]);
    assert.deepEqual(after("keys", "revoke"), ["--json", "--help"]);
    assert.deepEqual(after("completion").slice(0, 3), ["bash", "zsh", "fish"]);
    for (const option of ["--agent", "--wait", "--idempotency-key", "--json"])
      assert.ok(after("submit").includes(option), option);
    for (const option of ["--for", "--ends-on-failure", "--yes"]) assert.ok(after("approve").includes(option), option);
    assert.ok(after("policy", "test").includes("--min-coverage"));
    assert.ok(after("mcp", "accept").includes("--yes"));
    assert.deepEqual(
      lists.filter(({ path, words }) => words.length === 0 || path.some((word) => !/^[a-z-]+$/.test(word))),
      [],
    );
  });

  test("the completion scripts work in bash, zsh and fish, where they are installed", async (t) => {
    const scripts: Record<string, string> = {};
    for (const shell of ["bash", "zsh", "fish"]) scripts[shell] = (await assentInProcess("completion", shell)).out;
    const bash = async (line: string): Promise<string[]> => {
      const words = line.split(" ").map((word) => `'${word}'`);
      const script = `${scripts["bash"]}\nCOMP_WORDS=(${words.join(" ")})\nCOMP_CWORD=${words.length - 1}\n_assent\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
      const { code, out, err } = await runProgram("bash", ["--norc", "-c", script]);
      assert.equal(code, 0, err);
      return out.trim().split("\n");
    };
    assert.deepEqual(await bash("assent verif"), ["verify"]);
    assert.deepEqual(await bash("assent keys rot"), ["rotate-permit", "rotate-log"]);
    assert.deepEqual(await bash("assent keys create --ex"), ["--expires-at"]);
    assert.deepEqual(await bash("assent submit --to"), ["--tool"]);
    for (const [shell, line] of [
      ["zsh", `compdef() { print completes $1 for $2 }\n${scripts["zsh"]}`],
      ["fish", `${scripts["fish"]}\ncomplete -C "assent keys rotate-l"`],
    ] as const) {
      const ran = await runProgram(shell, ["-c", line]).catch(() => null);
      if (ran === null) t.diagnostic(`${shell} is not installed`);
      else {
        assert.equal(ran.err, "");
        assert.match(ran.out, shell === "zsh" ? /completes _assent for assent/ : /^rotate-log/m);
      }
    }
    assert.equal((await assentInProcess("completion", "tcsh")).code, EXIT_CODES.usage);
  });

  test("schema prints the schemas that the build writes", async () => {
    for (const name of ["policy", "policy-test"]) {
      const printed = await assentInProcess("schema", name);
      assert.deepEqual([printed.code, printed.out], [0, readFileSync(join(ROOT, `dist/${name}.schema.json`), "utf8")]);
    }
    const wrong = await assentInProcess("schema", "polices");
    assert.equal(wrong.code, EXIT_CODES.usage);
    assert.match(wrong.err, /assent schema takes one of policy, policy-test, config/);
  });

  test("exit codes are the documented ones", () => {
    const page = readFileSync(join(ROOT, "docs/cli.md"), "utf8");
    const documented = [...page.matchAll(/^\| (\d) \| /gm)].map((match) => Number(match[1]));
    assert.deepEqual(documented, Object.values(EXIT_CODES));
  });

  test("mistyped names are reported with a suggestion", async () => {
    for (const [args, words] of [
      [[], /usage: assent COMMAND/],
      [["polcy"], /no command "polcy"; did you mean "policy"/],
      [["submit", "--agnt", "x"], /did you mean --agent/],
      [["submit", "--agent", "x"], /--tool and --operation are needed/],
      [["submit", "--agent", "a", "--tool", "t", "--operation", "o", "--params", "{"], /--params takes a JSON object/],
      [
        ["submit", "--agent", "a", "--tool", "t", "--operation", "o", "--params", '{"to":1,"to":2}'],
        /--params takes a JSON object.*"to" appears twice/,
      ],
      [
        ["submit", "--agent", "a", "--tool", "t", "--operation", "o", "--wait", "soon"],
        /--wait must be seconds or a duration/,
      ],
      [["keys", "make"], /keys has no subcommand "make"; use create, list, revoke, rotate-permit or rotate-log/],
      [["verify", "x"], /--key is required/],
      [["verify", "x", "--key", "@no-such-file"], /"no-such-file" cannot be read/],
      [["verify", "no-such-file", "--key", "x"], /"no-such-file" cannot be read/],
      [["verify", "package.json", "--key", "x", "--entry", "no-such-file"], /"no-such-file" cannot be read/],
      [["policy", "lint"], /policy has no subcommand "lint"; use init, check, .* or \w+/],
      [["policy", "backtest", "--since", "yesterday"], /--since must be a time such as/],
      [["policy", "backtest", "--format", "html"], /must be text, json or markdown; got "html"/],
      [["actions"], /set ASSENT_API_KEY/],
      [["serve", "--port", "http"], /--port must be 0 to 65535; got "http"/],
      [["hook", "install", "--host", "x"], /run ".* hook install --help"/],
    ] as [string[], RegExp][]) {
      // Start a process once, for its exit code.
      const run = args.length === 0 ? await assent(args) : await assentInProcess(...args);
      assert.equal(run.code, EXIT_CODES.usage, args.join(" "));
      assert.match(run.out + run.err, words);
      assert.ok(!run.err.includes("    at "), "a user gets words, not a stack");
    }
  });

  test("every command that needs the service reports an invalid address in one line", async () => {
    for (const command of [["actions"], ["mcp", "proxy", "--", "cat"]]) {
      const run = await assentInProcessWithEnv({ ASSENT_API_KEY: "x", ASSENT_URL: "localhost:8000" }, ...command);
      assert.deepEqual([run.code, run.out], [EXIT_CODES.usage, ""]);
      assert.match(run.err, /^assent: ASSENT_URL must be an http or https URL; got "localhost:8000"\nrun .*\n$/);
    }
  });

  test("--version is the package's", async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    assert.deepEqual(await assentInProcess("--version"), { code: 0, out: `${version}\n`, err: "" });
  });

  test("exit code 5 means that the service is unreachable", async () => {
    const run = await assentInProcessWithEnv({ ASSENT_API_KEY: "x", ASSENT_URL: "http://127.0.0.1:9" }, "actions");
    assert.deepEqual([run.code, run.out], [EXIT_CODES.unreachable, ""]);
  });
});

describe("policies", () => {
  test("check reports every fault with its position, test runs the cases", async () => {
    const folder = temporaryFolder("assent-cli-");
    try {
      writeFileSync(
        join(folder, "a.yaml"),
        "policy: a\nrules:\n  - name: r\n    efect: allow\n  - name: s\n    effect: allow\n    when: 1 +\n",
      );
      const bad = await assentInProcess("policy", "check", folder);
      assert.equal(bad.code, EXIT_CODES.failure);
      assert.match(bad.err, /^a\.yaml:4:5: .*did you mean "effect"/m);
      assert.equal(bad.out, "");
      writeFileSync(join(folder, "a.yaml"), "policy: a\nrules:\n  - name: r\n    effect: allow\n");
      assert.deepEqual(await assentInProcess("policy", "check", folder), {
        code: 0,
        out: "1 policy is valid\n",
        err: "",
      });
      writeFileSync(
        join(folder, "a_test.yaml"),
        "now: 2026-01-01T00:00:00Z\ncases:\n  - name: c\n    action: { agent_id: a, tool: t, operation: o }\n    expect: { effect: deny }\n",
      );
      const failing = await assentInProcess("policy", "test", folder);
      assert.equal(failing.code, EXIT_CODES.failure);
      assert.match(failing.err, /FAIL {2}a_test\.yaml: c: effect is allow, expected deny/);
      assert.match(failing.out, /0 passed, 1 failed/);
      assert.equal((await assentInProcess("policy", "check", join(folder, "none"))).code, EXIT_CODES.failure);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("against a running service", () => {
  let running: Service;
  let server: RunningServer;
  let folder = "";
  before(async () => {
    folder = temporaryFolder("assent-cli-");
    const plugins = await loadFeatures(["users"]);
    running = await startService({
      plugins: plugins.map((plugin) => ({ plugin, options: {}, origin: plugin.name, core: true })),
    });
    server = await serve((request, info) => running.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  });
  after(async () => {
    await server.stop(500);
    await running.close();
    rmSync(folder, { recursive: true, force: true });
  });
  /** Starts a process only for what the command reads from its standard input. */
  const as = (key: string, args: string[], input = ""): Promise<Run> => {
    const env = { ASSENT_URL: server.url, ASSENT_API_KEY: key };
    if (input !== "") return assent(args, env, input);
    Object.assign(process.env, env);
    return assentInProcess(...args);
  };
  const refund = (amount: number) => [
    "submit",
    "--agent",
    "support-bot",
    "--tool",
    "stripe",
    "--operation",
    "refund",
    "--params",
    JSON.stringify({ amount, currency: "USD" }),
  ];

  const of = (key: string, body: object): RequestInit => ({
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

  test("submit uses the key's own agent if none is named", async () => {
    const create = ["keys", "create", "own", "--preset", "agent", "--agent", "own-bot"];
    const { out: key } = await as(running.admin, create);
    const words = refund(50).filter((word) => word !== "--agent" && word !== "support-bot");
    assert.match((await as(key.trim(), words)).out, /^allowed {2}stripe refund by own-bot\n/);
    const unbound = await as(running.agent, words);
    assert.equal(unbound.code, EXIT_CODES.failure);
    assert.match(unbound.err, /AGENT_UNBOUND: .* set the agent/);
  });

  test("status shows the service, the key and the pending actions, and reports what is missing", async () => {
    const known = await as(running.agent, ["status"]);
    assert.equal(known.code, EXIT_CODES.ok, known.err);
    assert.match(known.out, /^service {3}\S+ is ready\nkey {7}[^\n]+\nscopes {4}[^\n]*actions:submit/);
    const admin = JSON.parse((await as(running.admin, ["status", "--json"])).out) as {
      ready: boolean;
      pending: number;
    };
    assert.deepEqual([admin.ready, typeof admin.pending], [true, "number"]);
    assert.match(
      (await as("", ["status"])).out,
      /key {7}none; run "[^"]*assent[^"]* login" or set ASSENT_API_KEY\npolicies {2}\d+ active, policy set [0-9a-f]{12}\nsource {4}policy-files: applied\n/,
    );
    assert.equal((await as("assent_wrong", ["status"])).code, EXIT_CODES.failure);
    Object.assign(process.env, { ASSENT_URL: "http://127.0.0.1:9" });
    assert.equal((await assentInProcess("status")).code, EXIT_CODES.unreachable);
  });

  test("approve accepts the beginning of an id only if exactly one pending action has it", async () => {
    const { out } = await as(running.agent, [...refund(501), "--json"]);
    const { id } = JSON.parse(out) as { id: string };
    assert.match(
      (await as(running.admin, ["approve", "00000000"])).err,
      /no pending action has an id that begins with/,
    );
    const approved = await as(running.admin, ["approve", id.slice(0, -1)]);
    assert.equal(approved.code, EXIT_CODES.ok, approved.err);
    assert.match(approved.out, new RegExp(`^approved[^]*${id}`));
  });

  test("submit exits with the code of the decision", async () => {
    const allowed = await as(running.agent, refund(50));
    assert.equal(allowed.code, EXIT_CODES.ok, allowed.err);
    assert.match(allowed.out, /^allowed {2}stripe refund by support-bot\n/);
    assert.ok(!allowed.out.includes("\u001b["), "no colours on a pipe");
    assert.equal((await as(running.agent, refund(50_000))).code, EXIT_CODES.denied);
    assert.equal((await as(running.agent, refund(500))).code, EXIT_CODES.pending);
    const stdin = await as(running.agent, [...refund(1).slice(0, -1), "-", "--json"], '{"amount":1,"currency":"USD"}');
    assert.equal((JSON.parse(stdin.out) as { status: string }).status, "allowed");
  });

  test("actions lists the content of each action", async () => {
    const command = `docker ps --filter name=x\n${"x".repeat(300)}`;
    const submitted = ["--tool", "shell", "--operation", "run", "--params", JSON.stringify({ command })];
    await as(running.agent, ["submit", "--agent", "support-bot", ...submitted]);
    const { out } = await as(running.admin, ["actions", "--limit", "1"]);
    assert.match(out, /\tshell\trun\t[^\t]+\tdocker ps --filter name=x x{130,}…\n$/);
    await as(running.agent, refund(1));
    assert.match((await as(running.admin, ["actions", "--limit", "1"])).out, /\t{"amount":1,"currency":"USD"}\n$/);
  });

  test("plan submits a file, shows it, and votes with strikes", needs("plans"), async () => {
    const action = (amount: number) => ({
      agent_id: "support-bot",
      tool: "stripe",
      operation: "refund",
      params: { amount, currency: "USD" },
    });
    const file = JSON.stringify({ actions: [action(50), action(700), action(701)], stop_on_failure: true });
    writeFileSync(join(folder, "plan.json"), file);
    const submitted = await as(running.agent, ["plan", "submit", join(folder, "plan.json")]);
    assert.equal(submitted.code, EXIT_CODES.pending, submitted.err);
    assert.match(submitted.out, /in any order, stops at a failure\n {2}1 {2}allowed[^]* {2}3 {2}pending_approval/);
    const id = /^plan (\S+)/.exec(submitted.out)?.[1] ?? "";
    assert.match((await as(running.agent, ["plan", "approve", id])).err, /NO_TOKEN|INSUFFICIENT_SCOPE/);
    const approved = await as(running.admin, ["plan", "approve", id, "--strike", "2=too much"]);
    assert.equal(approved.code, EXIT_CODES.ok, approved.err);
    assert.match(approved.out, / {2}1 {2}allowed[^]* {2}2 {2}denied[^]* {2}3 {2}approved/);
    assert.equal((await as(running.admin, ["plan", "show", id])).out, approved.out);
    const listed = await as(running.agent, ["plan", "list", "--agent", "support-bot", "--limit", "1"]);
    assert.match(listed.out, new RegExp(`^${id} .* support-bot {2}1 allowed, 1 denied, 1 approved\n$`));
    assert.match((await as(running.agent, ["plan", "cancel", id])).err, /ACTION_NOT_PENDING/);
    const cancelled = await as(running.admin, ["plan", "cancel", id, "--reason", "not today"]);
    assert.match(cancelled.out, / {2}1 {2}cancelled[^]* {2}2 {2}denied[^]* {2}3 {2}cancelled/);
    for (const [args, expected, input] of [
      [["submit", "-"], /unknown member "action"/, '{"action":[]}'],
      [["submit", "-"], /must be a JSON object with an array "actions"/, "null"],
      [["submit", "package.json"], /unknown member "name"/, ""],
      [["submit", "README.md"], /not JSON/, ""],
      [["submit", "nowhere.json"], /cannot be read/, ""],
      [["approve", id, "--strike", "two"], /--strike must be the number/, ""],
      [["reject", id, "--strike", "1"], /--strike goes with approve/, ""],
      [["vote", id], /no subcommand "vote"/, ""],
      [["list", "--limit", "0"], /--limit must be at least 1; got 0/, ""],
    ] as const)
      assert.match((await as(running.admin, ["plan", ...args], input)).err, expected);
  });

  test("approve and deny vote with the key", async () => {
    const pending = JSON.parse((await as(running.agent, [...refund(500), "--json"])).out) as { id: string };
    const own = await as(running.agent, ["approve", pending.id]);
    assert.equal(own.code, EXIT_CODES.failure);
    const made = await as(running.admin, ["keys", "create", "grace", "--preset", "approver", "--json"]);
    const grace = JSON.parse(made.out) as { key: string; id: string };
    const approved = await as(grace.key, ["approve", pending.id, "--reason", "checked"]);
    assert.equal(approved.code, EXIT_CODES.ok);
    assert.match(approved.out, /^approved .*\n {2}vote {6}approved by the key grace: checked\n {2}until {5}20/s);
    assert.equal((await fetch(`${server.url}/v1/actions/${pending.id}/start`, of(running.agent, {}))).status, 200);
    const failed = { success: false, error: "the card\nhas expired" };
    assert.equal((await fetch(`${server.url}/v1/actions/${pending.id}/result`, of(running.agent, failed))).status, 200);
    assert.match((await as(running.admin, ["actions", pending.id])).out, /\n {2}error {5}the card\ufffdhas expired\n/);
    const again = await as(grace.key, ["deny", pending.id]);
    assert.equal(again.code, EXIT_CODES.failure);
    assert.match(again.err, /NO_TOKEN/);
    const asked = JSON.parse((await as(running.agent, [...refund(501), "--json"])).out) as { id: string };
    assert.equal((await as(grace.key, ["deny", asked.id, "--reason", "ask the\ncustomer"])).code, EXIT_CODES.ok);
    const refused = await as(running.agent, refund(501));
    assert.equal(refused.code, EXIT_CODES.denied);
    assert.match(
      refused.out,
      /\n {2}denied by earlier rejection\n {2}rejected {2}by the key \w+ at 20.+: ask the customer\n/,
    );
    assert.match(refused.out, new RegExp(`rejection ${asked.id}, refuses the same request until 20`));
    const lifted = await as(grace.key, ["lift", asked.id, "--reason", "asked"]);
    assert.deepEqual([lifted.code, /the same request can be submitted again/.test(lifted.out)], [EXIT_CODES.ok, true]);
    assert.equal((await as(running.agent, refund(501))).code, EXIT_CODES.pending);
    assert.match((await as(running.admin, ["keys", "list"])).out, /\tgrace\t/);
    assert.equal((await as(running.admin, ["keys", "revoke", grace.id])).code, EXIT_CODES.ok);
    assert.match((await as(grace.key, ["actions"])).err, /INVALID_CREDENTIAL/);
    assert.match((await as(`${grace.key.slice(0, -1)}x`, ["actions"])).err, /checksum is wrong/);
  });

  test("approve grants later actions, and grants lists and revokes them", needs("grants"), async () => {
    const rule = { name: "r", tool: "ci", effect: "require_approval", approval: { grants: { for: "8h", count: 50 } } };
    const post = async (path: string, body: object): Promise<{ id: string }> =>
      (await fetch(`${server.url}${path}`, of(running.admin, body))).json() as Promise<{ id: string }>;
    const { id: policy } = await post("/v1/policies", { policy: "granting", rules: [rule] });
    await post(`/v1/policies/${policy}/activate`, { version: 1 });
    const made = ["keys", "create", "greta", "--preset", "approver", "--json"];
    const { key } = JSON.parse((await as(running.admin, made)).out) as { key: string };
    const named = ["submit", "--agent", "support-bot", "--tool", "ci", "--operation", "deploy", "--json"];
    const deploy = (repo: string) => as(running.agent, [...named, "--params", JSON.stringify({ repo })]);
    const pending = JSON.parse((await deploy("web")).out) as { id: string };
    const terms = ["--for", "8h", "--count", "2", "--scope", 'params.repo == "web"', "--sum", "1.5", "--at-most", "9"];
    const earlier = JSON.parse((await deploy("it's new")).out) as { id: string };
    const other = JSON.parse((await deploy("it's new")).out) as { id: string };
    const suggested = await as(key, ["grants", "--suggest", other.id]);
    assert.equal(suggested.code, EXIT_CODES.ok, suggested.err);
    const command = String.raw`assent approve ${other.id} --for 8h --count 20 --scope 'size(params) == 1 && params.repo == "it'\''s new" && size(context) == 0'`;
    assert.ok(suggested.out.includes(`\n  ${command}\n`), suggested.out);
    assert.match(
      suggested.out,
      /^equal requests only: the same parameters and context: would have covered 1 of the last 2\n {2}20\S+ {2}pending_approval {2}/,
    );
    const { suggestions } = JSON.parse((await as(key, ["grants", "--suggest", other.id, "--json"])).out) as {
      suggestions: { requests: { id: string }[] }[];
    };
    assert.equal(suggestions.at(-1)?.requests[0]?.id, earlier.id);
    const approved = await as(key, ["approve", pending.id, ...terms]);
    assert.equal(approved.code, EXIT_CODES.ok, approved.err);
    assert.match(
      approved.out,
      /\nactive {2}ci deploy by .*\n {2}scope {5}params.repo == "web"\n {2}free {6}any other parameter, any other context\n {2}used {6}0 of 2\n/s,
    );
    assert.match(approved.err, /the grant leaves free in later requests: any other parameter, any other context\n/);
    const use = JSON.parse((await deploy("web")).out) as { status: string; grant: string };
    assert.equal(use.status, "allowed");
    const listed = await as(key, ["grants"]);
    assert.match(listed.out, /\n {2}used {6}1 of 2\n {2}sum {7}1.5 of 9 \(1.5\)\n/);
    assert.match((await as(key, ["grants", use.grant])).out, new RegExp(`id {8}${use.grant}`));
    const revoked = await as(key, ["grants", "--revoke", use.grant, "--reason", "done"]);
    assert.match(revoked.out, /^ended .*\n {2}ended {5}revoked at 20.* by the key \w+\n {2}comment {3}done\n/s);
    assert.match((await as(key, ["grants"])).out, /no grant is active/);
    assert.match((await as(key, ["grants", "--all"])).out, /^ended /);
    for (const [args, words] of [
      [["approve", pending.id, "--count", "2"], /--count grants later actions, which also needs --for and --count/],
      [["approve", pending.id, "--for", "soon", "--count", "2"], /--for must be a duration/],
      [["approve", pending.id, "--for", "8h", "--count", "0"], /--count must be a number of uses/],
      [["approve", pending.id, "--for", "8h", "--count", "2", "--sum", "1"], /--sum and --at-most go together/],
      [["deny", pending.id, "--for", "8h"], /--for/],
      [["grants", "--revoke", "x", "--all"], /--revoke takes only --reason/],
      [["grants", "--suggest", "x", "--all"], /--suggest takes only --json/],
    ] as [string[], RegExp][]) {
      const wrong = await as(key, args);
      assert.deepEqual([wrong.code, words.test(wrong.err)], [EXIT_CODES.usage, true], wrong.err);
    }
  });

  test("access-review lists rights, votes and use", async () => {
    const listed = await as(running.admin, ["access-review", "--days", "30"]);
    assert.equal(listed.code, 0, listed.err);
    assert.match(listed.out, /^from \S+ to \S+$/m);
    assert.match(listed.out, /^key \S.*: can approve everything; .*; (?:last used|UNUSED)/m);
    const { rows } = JSON.parse((await as(running.admin, ["access-review", "--json"])).out) as { rows: unknown[] };
    assert.ok(rows.length > 0);
    const wrong = await as(running.admin, ["access-review", "--days", "400"]);
    assert.match(wrong.err, /--days must be a whole number from 1 to 366; got `400`/);
  });

  test("verify accepts the proof and rejects every altered one", needs("provenance"), async () => {
    const action = JSON.parse((await as(running.agent, [...refund(5), "--json"])).out) as { decision_hash: string };
    const get = async (path: string): Promise<string> =>
      (await fetch(server.url + path, { headers: { authorization: `Bearer ${running.admin}` } })).text();
    const proof = await get(`/v1/provenance/${action.decision_hash}/proof`);
    const tlog = await get(`/v1/provenance/${action.decision_hash}/proof.tlog-proof`);
    const vkey = (JSON.parse(await get("/v1/provenance/keys")) as { keys: { vkey: string }[] }).keys[0]?.vkey as string;
    const parsed = JSON.parse(proof) as { leaf: string; path: string[]; checkpoint: string; index: number };
    writeFileSync(join(folder, "entry.json"), Buffer.from(parsed.leaf, "base64"));
    writeFileSync(join(folder, "log.vkey"), `${vkey}\n`);
    const verify = (input: string, more: string[] = [], key = vkey): Promise<Run> => {
      writeFileSync(join(folder, "proof"), input);
      return assentInProcess("verify", join(folder, "proof"), "--key", key, ...more);
    };
    assert.equal((await assent(["verify", "-", "--key", vkey], {}, proof)).code, EXIT_CODES.ok);
    assert.equal((await verify(proof)).code, EXIT_CODES.ok);
    const entry = ["--entry", join(folder, "entry.json")];
    assert.equal((await verify(tlog, entry, `@${join(folder, "log.vkey")}`)).code, EXIT_CODES.ok);
    assert.equal((await verify(tlog)).code, EXIT_CODES.usage);
    const altered = Buffer.from(parsed.leaf, "base64").toString().replace('"allow"', '"deny"');
    writeFileSync(join(folder, "altered.json"), altered);
    const flip = (hex: string) => (hex.startsWith("0") ? "1" : "0") + hex.slice(1);
    const change = (part: object) => JSON.stringify({ ...parsed, ...part });
    for (const [what, run] of [
      ["another entry", await verify(proof, ["--entry", join(folder, "altered.json")])],
      ["another leaf", await verify(change({ leaf: Buffer.from(altered).toString("base64") }))],
      ["another path", await verify(change({ path: [flip(parsed.path[0] as string), ...parsed.path.slice(1)] }))],
      ["another index", await verify(change({ index: parsed.index - 1 }))],
      ["another checkpoint", await verify(change({ checkpoint: parsed.checkpoint.replace(/\n(\d+)\n/, "\n9$1\n") }))],
      ["no proof", await verify("{}")],
      ["an altered tlog-proof", await verify(tlog, ["--entry", join(folder, "altered.json")])],
    ] as [string, Run][]) {
      assert.equal(run.code, EXIT_CODES.unverified, what);
      assert.match(run.err, /NOT VERIFIED/);
      assert.equal(run.out, "");
    }
    const other = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    assert.equal((await verify(proof, [], other)).code, EXIT_CODES.unverified);
    assert.equal((await verify(proof, [], "nonsense")).code, EXIT_CODES.usage);
  });

  test("a second service on the same store, and a port in use, are reported in one line", async () => {
    const second = await assent(["serve", "--port", "0"], {
      ASSENT_DATA: running.folder,
      ASSENT_POLICIES: FEW_POLICIES,
    });
    assert.equal(second.code, EXIT_CODES.failure);
    assert.match(second.err, /^assent: .*(lock|another process|in use)/m);
    const taken = await assent(["serve", "--port", new URL(server.url).port], {
      ASSENT_DATA: join(folder, "other"),
      ASSENT_POLICIES: FEW_POLICIES,
    });
    assert.equal(taken.code, EXIT_CODES.failure);
    assert.match(taken.err, /port \d+ on 127\.0\.0\.1 is in use by another process; choose another with --port or/);
    const { port } = new URL(server.url);
    const other = await assent(["mcp", "proxy", "--listen", port, "--", "cat"], { ASSENT_API_KEY: "x" });
    assert.equal(other.code, EXIT_CODES.failure);
    assert.match(other.err, /^assent: port .* is in use .* with --listen \(.*\n$/);
  });

  test("an operator without an admin key creates one with --local while the service is stopped", async () => {
    const env = { ASSENT_DATA: running.folder, ASSENT_POLICIES: FEW_POLICIES };
    assert.equal(
      (await assent(["keys", "create", "rescue", "--local"], env)).code,
      EXIT_CODES.failure,
      "not beside a running service",
    );
    await running.runtime.stop();
    const made = await assent(["keys", "create", "rescue", "--local", "--json"], env);
    await running.restart();
    assert.equal(made.code, EXIT_CODES.ok, made.err);
    assert.equal((await as((JSON.parse(made.out) as { key: string }).key, ["keys", "list"])).code, EXIT_CODES.ok);
  });

  test("status of a service that is not ready shows why, and the policies", async () => {
    running.runtime.beginStop();
    const status = await as(running.admin, ["status"]);
    assert.equal(status.code, EXIT_CODES.failure);
    assert.match(
      status.out,
      /^service {3}\S+ is not ready: it is stopping\npolicies {2}\d+ active, .*\nsource {4}policy-files: applied\n$/,
    );
  });
});

test("a configuration without plugins serves nothing, and reports it", async (t) => {
  const folder = folderWith(t, { "assent.yaml": "plugins: []\n" });
  const run = await assent(["serve"], { ASSENT_PORT: "0" }, "", folder);
  assert.deepEqual([run.code, run.out], [EXIT_CODES.failure, ""]);
  assert.match(run.err, /no plugins, so there is nothing to serve/);
});

test("all faults of a configuration are reported, with positions", async () => {
  const folder = temporaryFolder("assent-cli-");
  try {
    mkdirSync(join(folder, "policies"));
    writeFileSync(
      join(folder, "assent.yaml"),
      "server:\n  prot: 1\nledger:\n  max_batch: many\nsecret: ${NOT_SET_ANYWHERE}\n",
    );
    const run = await assent(["serve"], { ASSENT_PORT: "0" }, "", folder);
    assert.equal(run.code, EXIT_CODES.failure);
    assert.match(run.err, /assent\.yaml:2:3: .*did you mean "port"/);
    assert.match(run.err, /assent\.yaml:4:3: \/ledger\/max_batch: /);
    assert.match(run.err, /assent\.yaml:5:9: the environment variable NOT_SET_ANYWHERE is not set/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
