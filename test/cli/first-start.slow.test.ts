/** The first start: an empty folder, the first keys, and a start that fails. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createLogger, createRuntime, defaultConfig } from "../../src/index.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import { assent, folderWith, runProgram } from "../support/cli.ts";
import { ASSENT, startCommand, stopProcess, type ServiceProcess } from "../support/process.ts";
import { FEW_POLICIES } from "../support/service.ts";
import { until } from "../support/wait.ts";

/** Without environment variables that configure the service. */
const BARE = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => name.startsWith("ASSENT_") || name === "DATABASE_URL")
    .map((name) => [name, ""]),
);

async function serve(
  t: TestContext,
  cwd: string,
  env: Record<string, string> = {},
  args: string[] = [],
): Promise<ServiceProcess> {
  const service = await startCommand(
    [process.execPath, [...ASSENT, "serve", ...args]],
    { ...BARE, ASSENT_AGENTS: "", ASSENT_PORT: "0", HOME: cwd, ...env },
    { cwd },
  );
  t.after(() => stopProcess(service));
  return service;
}

/** As on Node 20: a loader that finds no package with SQLite. */
const WITHOUT_SQLITE = `--import=${`data:text/javascript,${encodeURIComponent(
  `import { register } from "node:module";
register("data:text/javascript," + encodeURIComponent(\`export async function resolve(name, context, next) {
  if (name === "@photostructure/sqlite") throw Object.assign(new Error("no package"), { code: "ERR_MODULE_NOT_FOUND" });
  return next(name, context);
}\`));`,
)}`}`;
const withoutNode20 = process.versions.node.startsWith("20.") ? false : "this Node has SQLite";

const keysIn = (text: string): string[] => [...text.matchAll(/assent_[\w-]{51}/g)].map(([key]) => key);

async function submit(url: string, key: string, amount: number): Promise<string> {
  const answer = await fetch(`${url}/v1/actions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      agent_id: "support-bot",
      tool: "stripe",
      operation: "refund",
      params: { amount, currency: "USD" },
    }),
  });
  return ((await answer.json()) as { status: string }).status;
}

describe("the first keys", () => {
  it("are displayed by the first start that listens, and not lost by one that fails", async (t) => {
    const folder = folderWith(t, {});
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    t.after(() => taken.close());
    const port = String((taken.address() as { port: number }).port);
    const env = { ...BARE, ASSENT_DATA: join(folder, "data"), ASSENT_POLICIES: FEW_POLICIES };
    const failed = await assent(["serve", "--port", port], { cwd: folder, env });
    assert.equal(failed.code, 1);
    assert.match(failed.err, /is in use by another process/);
    assert.deepEqual(keysIn(failed.out), []);
    assert.ok(existsSync(join(folder, "data/assent.db")), "the store already exists");
    const service = await serve(t, folder, env);
    const [admin = "", agent = "", ...more] = keysIn(service.output());
    assert.deepEqual(more, []);
    assert.equal(await submit(service.url, agent, 50), "allowed");
    const list = await fetch(`${service.url}/v1/api-keys`, { headers: { authorization: `Bearer ${admin}` } });
    assert.equal(list.status, 200);
    assert.match(
      service.output(),
      new RegExp(`console is at ${service.url.replace("127.0.0.1", "assent.localhost")}/`),
    );
  });

  it("come with a link that enrols the first admin, once", async (t) => {
    const folder = folderWith(t, {});
    const env = { ASSENT_DATA: join(folder, "data"), ASSENT_POLICIES: FEW_POLICIES };
    const service = await serve(t, folder, env);
    const [, link = ""] =
      /open this link once, within 24 hours, and create a passkey:\s+(\S+)/.exec(service.output()) ?? [];
    const { origin, pathname, hash } = new URL(link);
    assert.deepEqual([origin, pathname], [service.url.replace("127.0.0.1", "assent.localhost"), "/sign-in"]);
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json", origin, "assent-session": "1" };
      const answer = await fetch(`${service.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: answer.status, body: (await answer.json()) as any };
    };
    const token = hash.replace("#enrol=", "");
    const { body: challenge } = await post("/v1/enrolment/options", { token });
    const response = createAuthenticator(origin).create(challenge.options);
    const { status, body } = await post("/v1/enrolment", { token, response });
    assert.deepEqual([status, body.user?.roles], [201, ["admin"]], JSON.stringify(body));
    assert.equal((await post("/v1/enrolment/options", { token })).body.code, "USERS_LINK_INVALID");
    await stopProcess(service);
    const again = await serve(t, folder, env);
    assert.doesNotMatch(again.output(), /enrol=/, "only the first start prints a link");
  });

  it("are not stored if they could not be displayed; the next start displays others", async (t) => {
    const config = defaultConfig({ data: folderWith(t, {}), policies: FEW_POLICIES });
    const runtime = await createRuntime(config, { log: createLogger("silent") });
    await runtime.start();
    t.after(() => runtime.stop());
    const broken = (): never => {
      throw new Error("the terminal is gone");
    };
    await assert.rejects(runtime.createFirstKeys(broken), /the terminal is gone/);
    const shown: string[] = [];
    await runtime.createFirstKeys(({ admin }) => shown.push(admin));
    await runtime.createFirstKeys(({ admin }) => shown.push(admin));
    assert.equal(shown.length, 1);
    const answer = await runtime.fetch(
      new Request("http://assent.test/v1/api-keys", { headers: { authorization: `Bearer ${shown[0] ?? ""}` } }),
    );
    assert.equal(answer.status, 200);
  });

  for (const [how, args, env] of [
    ["a flag", ["--first-keys", "file"], {}],
    ["the environment, as the images do", [], { ASSENT_FIRST_KEYS: "file" }],
  ] as const)
    it(`go to a private file if ${how} says so, and not into the log`, async (t) => {
      const folder = folderWith(t, {});
      const env_ = { ASSENT_DATA: join(folder, "data"), ASSENT_POLICIES: FEW_POLICIES, ...env };
      const service = await serve(t, folder, env_, [...args]);
      const path = join(folder, "data/first-keys");
      assert.deepEqual(keysIn(service.output()), []);
      assert.ok(service.output().includes(path));
      assert.equal(statSync(path).mode & 0o777, 0o600);
      const [, agent = ""] = keysIn(readFileSync(path, "utf8"));
      assert.equal(await submit(service.url, agent, 50), "allowed");
    });

  it("are not created if their file cannot be written", async (t) => {
    const folder = folderWith(t, {});
    mkdirSync(join(folder, "data/first-keys/in-the-way"), { recursive: true });
    const env = { ...BARE, ASSENT_PORT: "0", ASSENT_DATA: join(folder, "data"), ASSENT_POLICIES: FEW_POLICIES };
    const failed = await assent(["serve", "--first-keys", "file"], { cwd: folder, env });
    assert.equal(failed.code, 1);
    assert.match(failed.err, /^assent: the keys of this new store cannot be written to .*first-keys/m);
    assert.equal(keysIn((await serve(t, folder, env)).output()).length, 2);
  });

  it("have two possible outputs, and another value is rejected", async (t) => {
    const { code, err } = await assent(["serve", "--first-keys", "mail"], { cwd: folderWith(t, {}), env: BARE });
    assert.equal(code, 2);
    assert.match(err, /--first-keys .* must be print or file; got "mail"/);
  });
});

describe("a first start", () => {
  it("warns of nothing, logs no request, and leaves nothing for the audit to report", async (t) => {
    const folder = folderWith(t, {});
    const service = await serve(t, folder);
    const [, agent = ""] = keysIn(service.output());
    assert.equal(await submit(service.url, agent, 50), "allowed");
    assert.equal(await submit(service.url, agent, 500), "pending_approval");
    const audit = await assent(["audit"], { cwd: folder, env: { ...BARE, HOME: folder } });
    assert.equal(audit.code, 0, audit.err);
    assert.doesNotMatch(audit.err, /warning/);
    await stopProcess(service);
    assert.doesNotMatch(service.output(), /"level":"(warn|error)"|"message":"request"/);
  });
});

describe("an empty folder", () => {
  it("gets the files that the clone serves, which can be changed", async (t) => {
    const folder = folderWith(t, {});
    const service = await serve(t, folder);
    assert.match(service.output(), /There was no assent\.yaml and no policies folder here\. Created both/);
    const [, agent = ""] = keysIn(service.output());
    assert.equal(await submit(service.url, agent, 50), "allowed");
    assert.equal(await submit(service.url, agent, 500), "pending_approval");
    for (const path of [
      "assent.yaml",
      "policies/payments.yaml",
      "policies/payments_test.yaml",
      ".assent/policy.schema.json",
    ])
      assert.ok(existsSync(join(folder, path)), path);
  });

  for (const name of ["policies", "data", "assent.yaml"])
    it(`is not treated as empty if it contains ${name}`, async (t) => {
      const folder = folderWith(t, name === "assent.yaml" ? { [name]: "server: { port: 0 }\n" } : {});
      if (name !== "assent.yaml") mkdirSync(join(folder, name));
      const service = await serve(t, folder);
      assert.doesNotMatch(service.output(), /Created both/);
      const [, agent = ""] = keysIn(service.output());
      assert.equal(await submit(service.url, agent, 50), "denied");
    });

  it("is not changed if the environment says what to serve", async (t) => {
    const folder = folderWith(t, {});
    await serve(t, folder, { ASSENT_DATA: join(folder, "elsewhere") });
    assert.ok(!existsSync(join(folder, "assent.yaml")) && !existsSync(join(folder, "policies")));
  });
});

describe("assent init", () => {
  it("writes a configuration, policies with their tests, and the schemas that their first lines name", async (t) => {
    const folder = folderWith(t, {});
    const { code, out, err } = await assent(["init"], { cwd: folder, env: BARE });
    assert.equal(code, 0);
    const written = out.trim().split("\n");
    for (const path of written.filter((one) => one.endsWith(".yaml"))) {
      const [, schema = ""] =
        /^# yaml-language-server: \$schema=(\S+)\n/.exec(readFileSync(join(folder, path), "utf8")) ?? [];
      JSON.parse(readFileSync(join(folder, path, "..", schema), "utf8"));
    }
    assert.ok(written.some((path) => path.endsWith("_test.yaml")));
    const [, command = ""] = /^Next: .*? (policy test policies)$/m.exec(err) ?? [];
    const tested = await assent(command.split(" "), { cwd: folder, env: BARE });
    assert.equal(tested.code, 0, tested.err);
  });

  it("overwrites nothing", async (t) => {
    const folder = folderWith(t, { "policies/payments.yaml": "mine" });
    const { code, err } = await assent(["init"], { cwd: folder, env: BARE });
    assert.equal(code, 2);
    assert.match(err, /policies\/payments\.yaml already exists/);
    assert.equal(readFileSync(join(folder, "policies/payments.yaml"), "utf8"), "mine");
    assert.ok(!existsSync(join(folder, "assent.yaml")));
  });

  it("prints commands that work after cd into the folder", async (t) => {
    const folder = folderWith(t, {});
    const { err } = await assent(["init", "approvals"], { cwd: folder, env: BARE });
    const [, script = ""] = /cd approvals && \S+ (\S+) serve$/m.exec(err) ?? [];
    assert.ok(existsSync(join(folder, "approvals", script)), err);
  });

  it("reports what is missing if Node has no SQLite, also to a user of bunx", { skip: withoutNode20 }, async (t) => {
    for (const [agent, words] of [
      ["npm/10", /Before "serve" works here: .*: use Node 22\.13 or later, or run "npm install @photostructure/],
      ["bun/1.3", /Before "serve" works here: .*: run it on Bun with "bunx --bun assent serve", or use Node 22/],
    ] as const) {
      const env = { ...BARE, npm_config_user_agent: agent, NODE_OPTIONS: WITHOUT_SQLITE };
      const { code, err } = await assent(["init"], { cwd: folderWith(t, {}), env });
      assert.equal(code, 0, err);
      assert.match(err, words);
    }
  });
});

it("serves without git on the PATH, denies, and reports what is missing", async (t) => {
  const folder = folderWith(t, {
    "assent.yaml": `server: { port: 0 }
plugins:
  - built-in
  - { name: policy-git, options: { url: "https://git.invalid/policies" } }
`,
  });
  mkdirSync(join(folder, "bin"));
  symlinkSync(process.execPath, join(folder, "bin/node"));
  const service = await serve(t, folder, { PATH: join(folder, "bin") });
  assert.match(service.output(), /git is not installed, and the policy-git plugin needs it/);
  assert.doesNotMatch(service.output(), /^\s+at /m);
  const [, agent = ""] = keysIn(service.output());
  assert.equal(await submit(service.url, agent, 50), "denied");
});

it("names the oldest Node that works on an older one, also without the launcher of the package", async () => {
  const old = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "18.20.8" } })';
  const { code, err } = await runProgram(process.execPath, [
    `--import=data:text/javascript,${encodeURIComponent(old)}`,
    ...ASSENT,
    "serve",
  ]);
  assert.deepEqual([code, err], [1, "assent needs Node 20.14 or later; this is Node 18.20.8\n"]);
});

it("exits silently when the reader of its output has closed the pipe", async () => {
  const child = spawn(process.execPath, [...ASSENT, "schema", "policy"], { stdio: ["ignore", "pipe", "pipe"] });
  // Closed before the first byte: what `head -1` does, but reliably.
  child.stdout.destroy();
  let err = "";
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.deepEqual([code, err], [0, ""]);
});

it("the service stops when npm start is stopped", async (t) => {
  const [program, ...args] = [process.execPath, ...ASSENT, "serve"];
  const start = [program, ...args].map((word) => JSON.stringify(word)).join(" ");
  const folder = folderWith(t, {
    "package.json": JSON.stringify({ name: "started", version: "1.0.0", scripts: { start } }),
  });
  const service = await startCommand(["npm", ["start"]], { ...BARE, ASSENT_PORT: "0", HOME: folder }, { cwd: folder });
  t.after(() => stopProcess(service));
  assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
  service.child.kill("SIGTERM");
  await until("the service stops", async () =>
    fetch(`${service.url}/healthz`).then(
      () => false,
      () => true,
    ),
  );
});
