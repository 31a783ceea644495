/** `assent hook setup`: from nothing to a tested hook, a second run without changes, and undo. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, test, type TestContext } from "node:test";
import { createAssent } from "../../../clients/typescript/index.ts";
import { run } from "../../../src/cli/main.ts";
import { needs } from "../../support/features.ts";
import { assent, folderWith, runProgram, writeFiles, type Run } from "../../support/cli.ts";
import { HOOK, runHook, startHookService, type HookService } from "../../support/hook.ts";
import { until } from "../../support/wait.ts";
import { addPerson } from "../../support/service.ts";

const VARIABLES = { ...process.env };
const cwd = process.cwd();
afterEach(() => {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (!(name in VARIABLES)) delete process.env[name];
  Object.assign(process.env, VARIABLES);
});

/** A user of this machine: a home folder, a project, and no service. */
function user(t: TestContext, variables: Record<string, string>): { home: string; project: string } {
  const home = folderWith(t, { "project/README.md": "x" });
  Object.assign(process.env, {
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local/share"),
    XDG_STATE_HOME: join(home, ".local/state"),
    XDG_RUNTIME_DIR: join(home, "run"),
    ASSENT_HOOKD: "off",
    ASSENT_API_KEY: "",
    ASSENT_AGENT: "",
    ...variables,
  });
  process.chdir(join(home, "project"));
  return { home, project: join(home, "project") };
}

/** Runs in this process, as on a terminal; the service that it starts is a separate process. */
async function setup(
  args: string[],
  watched = true,
  { host = "claude-code", command = [process.execPath, ...HOOK].join(" ") } = {},
): Promise<Run> {
  let [out, err] = ["", ""];
  const code = await run(["hook", "setup", "--host", host, "--command", command, ...args], {
    out: (text) => (out += `${text}\n`),
    err: (text) => (err += `${text}\n`),
    fancy: false,
    watched,
  });
  return { code, out, err };
}

/** The active policies, and the agents of keys that are not revoked. */
async function madeBy({ service }: HookService): Promise<{ policies: string[]; keys: string[] }> {
  const list = (path: string) => service.call("GET", path, { key: service.admin });
  const { policies } = (await list("/v1/policies?status=active")).body as { policies: { name: string }[] };
  const { api_keys } = (await list("/v1/api-keys")).body as {
    api_keys: { agent_id: string | null; revoked_at: string | null }[];
  };
  return {
    policies: policies.map(({ name }) => name),
    keys: api_keys.flatMap(({ agent_id, revoked_at }) => (agent_id === null || revoked_at !== null ? [] : [agent_id])),
  };
}

const readEvent = (project: string, id: string): string =>
  JSON.stringify({
    session_id: "s",
    cwd: project,
    tool_use_id: id,
    hook_event_name: "PreToolUse",
    tool_name: "Read",
    tool_input: { file_path: join(project, "README.md") },
  });

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

const isDown = async (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`).then(
    () => false,
    () => true,
  );

test("one command sets everything up, a second changes nothing, and it can be undone", async (t) => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { home, project } = user(t, { ASSENT_URL: url });
  const configFile = join(home, ".config/assent/hook.json");
  const settingsFile = join(home, ".claude/settings.json");
  try {
    const first = await setup([]);
    assert.equal(first.code, 0, first.err + first.out);
    for (const call of ["Read", "Edit", "git status"])
      assert.match(first.out, new RegExp(`ok +${call} was allowed through the hook`));
    assert.equal(statSync(configFile).mode & 0o777, 0o600);
    const config = JSON.parse(readFileSync(configFile, "utf8")) as { url: string; api_key: string; agent: string };
    assert.deepEqual([config.url, config.agent], [url, "claude-code"]);

    // The person approves with the displayed key, and no file of this user contains it.
    const [, adminKey] = /^ {2}(\S{20,})$/m.exec(first.err) ?? [];
    assert.ok(adminKey !== undefined, first.err);
    for (const path of filesBelow(home)) assert.ok(!readFileSync(path).includes(adminKey), path);
    const agent = createAssent({ url, apiKey: config.api_key });
    const person = createAssent({ url, apiKey: adminKey });
    const asked = await agent.submit({
      agent_id: "claude-code",
      tool: "files",
      operation: "write",
      params: {
        paths: [join(project, "AGENTS.md")],
        secrets: [],
        untracked: [],
        later: [join(project, "AGENTS.md")],
        workspace: project,
      },
    });
    assert.equal(asked.status, "pending_approval");
    assert.equal((await person.vote(asked.id, true)).status, "approved");
    await assert.rejects(
      () => agent.call("POST", "/v1/api-keys", { name: "x", preset: "admin" }),
      /INSUFFICIENT_SCOPE|scope/,
    );

    const before = [configFile, settingsFile].map((path) => readFileSync(path, "utf8"));
    const second = await setup([], false);
    assert.equal(second.code, 0, second.err);
    assert.match(second.out, /settings\.json: nothing changes/);
    assert.deepEqual(
      [configFile, settingsFile].map((path) => readFileSync(path, "utf8")),
      before,
    );

    // git tracks the file, so that reading it needs no approval.
    for (const args of [
      ["init", "--quiet"],
      ["add", "README.md"],
    ])
      assert.equal((await runProgram("git", args, { cwd: project })).code, 0);
    // After a restart of the machine, the first calls of the hook start the service again, with the same store and key.
    const pidFile = join(home, ".local/share/assent/service.pid");
    const kill = async (): Promise<void> => {
      process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
      await until("the service is down", () => isDown(url));
    };
    const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]));
    const calls = (): Promise<Run[]> =>
      Promise.all(["a", "b"].map((id) => runHook("claude-code", readEvent(project, id), { ...env, ASSENT_URL: "" })));
    await kill();
    for (const call of await calls()) assert.deepEqual([call.code, call.out], [0, ""], call.out + call.err);
    assert.equal((await setup([], false)).code, 0);
    assert.equal(readFileSync(configFile, "utf8"), before[0]);

    // If the hook cannot start it, the denial contains the address and the command that reports the cause.
    await kill();
    const service = join(home, ".local/share/assent/assent.yaml");
    const valid = readFileSync(service, "utf8");
    writeFileSync(service, `${valid}wrong: 1\n`);
    const [refused] = await calls();
    assert.match(refused?.out ?? "", new RegExp(`no service responds at ${url}\\..* hook start"`));
    const [, command] = /run this command, which reports the cause: (.*?)"/.exec(refused?.out ?? "") ?? [];
    const reported = await runProgram("sh", ["-c", command ?? "false"], { env });
    assert.equal(reported.code, 1);
    assert.match(reported.err, /wrong/);
    writeFileSync(service, valid);
    const started = await runProgram("sh", ["-c", command ?? "false"], { env: { ...env, npm_command: "exec" } });
    assert.equal(started.code, 0, started.err);
    assert.match(started.out, new RegExp(`a service runs at ${url};`));
    // The service outlives the npx that ran the command: with npm's variables, it would stop with npm.
    const shown = await runProgram("ps", ["eww", "-o", "command=", "-p", readFileSync(pidFile, "utf8").trim()]);
    assert.match(shown.out, / HOME=/);
    assert.doesNotMatch(shown.out, / npm_/);

    const undone = await setup(["--undo"]);
    assert.equal(undone.code, 0, undone.err);
    assert.ok(!existsSync(settingsFile) && !existsSync(configFile));
    await until("the service is down", () => isDown(url));
    assert.equal((await setup(["--undo"])).code, 0);
    // The store exists, and gets another key for the agent without another admin key.
    const again = await setup([]);
    assert.equal(again.code, 0, again.err);
    assert.ok(!again.err.includes("admin key"), again.err);
  } finally {
    // In this home folder, so that it stops the service.
    await setup(["--undo"]);
  }
});

test("without a terminal no service is started, so that no agent reads the key that approves", async (t) => {
  const { home } = user(t, { ASSENT_URL: `http://127.0.0.1:${await freePort()}` });
  const refused = await setup([], false);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /Run it yourself in a terminal/);
  assert.deepEqual(
    filesBelow(home).filter((path) => !path.endsWith("README.md")),
    [],
  );
});

test("a failure after the service has started removes the service, its store and the key", async (t) => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { home } = user(t, { ASSENT_URL: url, XDG_CONFIG_HOME: join(folderWith(t, { file: "" }), "file") });
  const refused = await setup([]);
  assert.equal(refused.code, 1);
  assert.match(
    refused.err,
    /admin key above does not exist any more\.\nassent: ENOTDIR: .*file\/assent'; nothing was changed\n$/,
  );
  assert.ok(await isDown(url));
  assert.ok(!existsSync(join(home, ".local/share/assent")));
  assert.ok(!existsSync(join(home, ".claude")));
});

test("a full disk is named with what to do, and leaves nothing that a later setup would use", async (t) => {
  const folder = folderWith(t, {});
  for (const [size, file] of [
    ["32k", "policies/coding-agents.yaml"],
    ["1500k", "service.starting"],
  ] as const) {
    const { home } = user(t, { ASSENT_URL: `http://127.0.0.1:${await freePort()}`, XDG_DATA_HOME: folder });
    if (spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]).status !== 0)
      return t.skip("mounting a tmpfs is not permitted here");
    try {
      const refused = await setup([]);
      assert.equal(refused.code, 1, refused.out);
      const text = `assent: ${folder}/assent/${file} cannot be written: ENOSPC: no space left on device, write; free disk space and`;
      assert.ok(refused.err.includes(text), refused.err);
      assert.match(refused.err, /; nothing was changed\n$/);
      assert.deepEqual(readdirSync(folder), []);
      assert.ok(!existsSync(join(home, ".claude")));
    } finally {
      // The hook that setup tried can still have the folder open.
      spawnSync("umount", ["-l", folder]);
    }
  }
});

describe("with a running service", () => {
  test("a key that the service does not accept is named as the cause, and nothing is changed", async (t) => {
    const hooks = await startHookService();
    t.after(() => hooks.close());
    const { home } = user(t, { ASSENT_URL: hooks.url, ASSENT_API_KEY: "wrong" });
    const wrong = await setup([], false);
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /ASSENT_API_KEY: INVALID_CREDENTIAL: .*; nothing was changed\n$/);
    assert.ok(!existsSync(join(home, ".config")));

    const file = join(home, ".config/assent/hook.json");
    const text = JSON.stringify({ url: hooks.url, api_key: "assent_revoked", agent: "coder" });
    writeFiles(home, { ".config/assent/hook.json": text });
    process.env["ASSENT_API_KEY"] = "";
    const revoked = await setup([], false);
    assert.equal(revoked.code, 1);
    assert.match(revoked.err, /does not accept this key .*ASSENT_API_KEY.*; nothing was changed\n$/);
    assert.equal(readFileSync(file, "utf8"), text);
    assert.deepEqual(await madeBy(hooks), { policies: ["test"], keys: ["coder"] });
  });

  test("it needs a key that creates keys, installs the pack, and leaves only the agent's key", async (t) => {
    const hooks = await startHookService();
    t.after(() => hooks.close());
    const { home } = user(t, { ASSENT_URL: hooks.url });
    const without = await setup([], false);
    assert.equal(without.code, 1);
    assert.match(without.err, /the hook has no key for .* ASSENT_API_KEY/);
    assert.ok(!existsSync(join(home, ".config/assent/hook.json")));

    process.env["ASSENT_API_KEY"] = hooks.service.admin;
    const unknown = await setup(["--owner", "user:nobody"], false);
    assert.equal(unknown.code, 1);
    assert.match(unknown.err, /no user is "user:nobody"/);
    assert.ok(!existsSync(join(home, ".config/assent/hook.json")));

    const ada = await addPerson(hooks.service, "Ada");
    const done = await setup(["--agent", "coder", "--owner", ada], false);
    assert.equal(done.code, 0, done.err + done.out);
    assert.match(done.out, /ok +the policy pack "coding-agents" is installed and active/);
    const { api_keys } = (await hooks.service.call("GET", "/v1/api-keys", { key: hooks.service.admin })).body;
    const [made] = (api_keys as { agent_id: string | null; owner: string | null }[]).filter(
      ({ agent_id }) => agent_id === "coder",
    );
    assert.equal(made?.owner, ada);
    assert.match((await setup(["--owner", "Ben"], false)).err, /run setup with --undo first to change its owner/);
    for (const path of filesBelow(home)) assert.ok(!readFileSync(path).includes(hooks.service.admin), path);
    const { body } = await hooks.service.call("GET", "/v1/actions", { key: hooks.service.admin });
    assert.deepEqual(
      (body.actions as { status: string; agent_id: string }[]).map(({ status, agent_id }) => `${agent_id} ${status}`),
      Array.from({ length: 3 }, () => "coder failed"),
      "the proof is recorded, and as not run",
    );
  });

  test("with Codex, a command is tested that must be refused", async (t) => {
    const hooks = await startHookService();
    t.after(() => hooks.close());
    const { home, project } = user(t, { ASSENT_URL: hooks.url, ASSENT_API_KEY: hooks.service.admin });
    // This hook ignores commands, and passes other calls on.
    writeFiles(project, {
      "hook.mjs": `
        import { spawnSync } from "node:child_process";
        import { readFileSync } from "node:fs";
        const input = readFileSync(0, "utf8");
        if (JSON.parse(input).tool_name === "Bash") process.exit();
        const options = { input, stdio: ["pipe", "inherit", "inherit"] };
        spawnSync(process.execPath, [...${JSON.stringify(HOOK)}, ...process.argv.slice(2)], options);`,
    });
    const broken = await setup([], false, {
      host: "codex",
      command: `${process.execPath} ${join(project, "hook.mjs")}`,
    });
    assert.equal(broken.code, 1, broken.out);
    assert.match(broken.err, /cat \.env was not refused by the service.*it printed nothing/);
    assert.ok(!existsSync(join(home, ".codex/hooks.json")));

    const done = await setup([], false, { host: "codex" });
    assert.equal(done.code, 0, done.err + done.out);
    assert.match(done.out, /ok +Edit was allowed through the hook\nok +cat \.env was refused through the hook/);
    assert.ok(existsSync(join(home, ".codex/hooks.json")));
  });

  test("a stricter policy is named, and nothing is changed", async (t) => {
    const hooks = await startHookService("policy: strict\nrules:\n  - { name: nothing is read, effect: deny }\n");
    t.after(() => hooks.close());
    const { home } = user(t, { ASSENT_URL: hooks.url, ASSENT_API_KEY: hooks.service.admin });
    writeFiles(home, { ".claude/settings.json": '{ "model": "x" }\n' });
    const refused = await setup([], false);
    assert.equal(refused.code, 1);
    assert.match(
      refused.err,
      /Read: deny by strict \/ nothing is read.*Change or remove "strict".*nothing was changed/,
    );
    assert.equal(readFileSync(join(home, ".claude/settings.json"), "utf8"), '{ "model": "x" }\n');
    assert.deepEqual(await madeBy(hooks), { policies: ["strict"], keys: ["coder"] });
    assert.ok(!existsSync(join(home, ".config/assent/hook.json")));
  });

  test(
    "a failure after the first change undoes the key, the pack and the configuration",
    needs("agents"),
    async (t) => {
      const hooks = await startHookService();
      t.after(() => hooks.close());
      const { home } = user(t, { ASSENT_URL: hooks.url, ASSENT_API_KEY: hooks.service.admin });
      const body = { id: "claude-code", allowed_tools: ["shell"] };
      await hooks.service.call("POST", "/v1/agents", { key: hooks.service.admin, body });
      const refused = await setup([], false);
      assert.equal(refused.code, 1);
      assert.match(refused.err, /still do not allow everyday calls: Read: deny.*registered agent.*nothing was changed/);
      assert.deepEqual(await madeBy(hooks), { policies: ["test"], keys: ["coder"] });
      assert.ok(!existsSync(join(home, ".config/assent/hook.json")));
      assert.ok(!existsSync(join(home, ".claude/settings.json")));
    },
  );

  test("install refuses until the hook can ask, and doctor reports policies that deny every Read", async (t) => {
    const hooks = await startHookService();
    t.after(() => hooks.close());
    const folder = folderWith(t, {});
    const install = (env: Record<string, string>): Promise<Run> =>
      assent(["hook", "install", "--host", "claude-code", "--command", "x"], { cwd: folder, env });
    const env = { ...hooks.env, HOME: folder };
    for (const [more, reason] of [
      [{ ASSENT_API_KEY: "" }, /has no api_key/],
      [{ ASSENT_URL: "http://127.0.0.1:9" }, /does not respond like the service/],
      [{ ASSENT_API_KEY: "wrong" }, /does not accept this key/],
      [{ ASSENT_API_KEY: hooks.service.admin }, /may do more than submit/],
    ] as const) {
      const refused = await install({ ...env, ...more });
      assert.equal(refused.code, 1);
      assert.match(refused.err, reason);
      assert.match(refused.err, /assent hook setup --host claude-code/);
      assert.ok(!existsSync(join(folder, ".claude")));
    }
    assert.equal((await install(env)).code, 0);
    const { code, out } = await assent(["hook", "doctor", "--host", "claude-code"], { cwd: folder, env });
    assert.equal(code, 1);
    assert.match(out, /^wrong the policies deny every Read/m);
    assert.match(out, /^ok +the policies allow git status/m);
  });
});
