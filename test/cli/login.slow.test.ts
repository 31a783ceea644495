/**
 * `assent login`, `logout` and `doctor`: a stored key cannot approve, and each problem comes with what to do. And `assent watch`
 * on a terminal.
 * @needs users
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { EXIT_CODES } from "../../src/cli/command.ts";
import { readSecret, type SecretInput } from "../../src/cli/secret-input.ts";
import { serve } from "../../src/serve/index.ts";
import { assent, folderWith, type Run } from "../support/cli.ts";
import { confirmTerminal, invite, startPeople } from "../support/people.ts";
import { ASSENT, startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startTerminal, withoutTerminal } from "../support/terminal.ts";

let service: ServiceProcess;
let folder = "";
let home = "";
const keys = { admin: "", agent: "", auditor: "" };

before(async () => {
  folder = temporaryFolder("assent-login-");
  service = await startProcess({ ASSENT_DATA: join(folder, "data"), ASSENT_POLICIES: FEW_POLICIES });
  keys.admin = /export ADMIN_KEY=(\S+)/.exec(service.output())?.[1] ?? "";
  keys.agent = /export AGENT_KEY=(\S+)/.exec(service.output())?.[1] ?? "";
  const env = { ASSENT_URL: service.url, ASSENT_API_KEY: keys.admin };
  keys.auditor = (await assent(["keys", "create", "ann", "--preset", "auditor"], { env })).out.trim();
});

after(async () => {
  await stopProcess(service);
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(() => {
  home = temporaryFolder("home-", folder);
});

const run = (args: string[], env: Record<string, string> = {}, input = ""): Promise<Run> =>
  assent(args, { cwd: home, env: { HOME: home, XDG_CONFIG_HOME: "", ...env }, input });
const login = (key: string): Promise<Run> => run(["login", "--url", service.url], {}, `${key}\n`);
const loginFile = (): string => join(home, ".config/assent/login.json");

describe("assent login", () => {
  test("stores a key that cannot approve, readable only by this user, and commands use it until logout", async () => {
    const done = await login(keys.agent);
    assert.equal(done.code, EXIT_CODES.ok, done.err);
    assert.ok(!done.out.includes(keys.agent) && !done.err.includes(keys.agent));
    assert.equal(statSync(loginFile()).mode & 0o777, 0o600);
    assert.equal((await run(["actions"])).code, EXIT_CODES.ok);
    assert.match((await run(["status"])).out, new RegExp(`^service {3}${service.url} is ready\nkey {7}agent`));
    assert.equal((await run(["logout"])).code, EXIT_CODES.ok);
    assert.ok(!existsSync(loginFile()));
    assert.match((await run(["actions"], { ASSENT_URL: service.url })).err, /set ASSENT_API_KEY/);
    assert.match((await run(["logout"])).out, /no key is stored/);
  });

  test("rejects a key that can vote or create keys, an invalid key, and a key in the arguments", async () => {
    const admin = await login(keys.admin);
    assert.equal(admin.code, EXIT_CODES.failure);
    assert.match(admin.err, /is not stored, because it has .*approvals:decide.*keys:manage/);
    assert.match((await login("assent_wrong")).err, /UNAUTHENTICATED|401|key/);
    assert.equal((await run(["login", keys.agent])).code, EXIT_CODES.usage);
    assert.equal((await login("")).code, EXIT_CODES.usage);
    assert.ok(!existsSync(loginFile()));
  });

  test("replaces an earlier key, also in a file that others could read", async () => {
    await login(keys.agent);
    chmodSync(loginFile(), 0o644);
    assert.match((await run(["actions"])).err, /other users can read it; run "chmod 600/);
    assert.equal((await run(["login", "--url", service.url], {}, keys.auditor)).code, EXIT_CODES.ok);
    assert.equal(statSync(loginFile()).mode & 0o777, 0o600);
    assert.ok(readFileSync(loginFile(), "utf8").includes(keys.auditor));
  });

  test("sends the stored key to no other service", async () => {
    await login(keys.agent);
    const elsewhere = await run(["actions"], { ASSENT_URL: "http://127.0.0.1:9" });
    assert.equal(elsewhere.code, EXIT_CODES.usage);
    assert.match(elsewhere.err, /you are logged in to .*: set ASSENT_API_KEY/);
  });

  test("is not used by commands that vote or make keys", async () => {
    await login(keys.agent);
    for (const args of [
      ["approve", "019346a0-0000-7000-8000-000000000000"],
      ["keys", "list"],
      ["stop", "--reason", "x"],
    ])
      assert.match((await run(args)).err, /set ASSENT_API_KEY to the key that this command acts with/, args.join(" "));
  });
});

describe("a secret on the terminal", () => {
  function terminal(): { input: EventEmitter & SecretInput; modes: boolean[] } {
    const modes: boolean[] = [];
    const input = Object.assign(new EventEmitter(), {
      setRawMode: (on: boolean) => void modes.push(on),
      resume: () => undefined,
      pause: () => undefined,
    }) as unknown as EventEmitter & SecretInput;
    return { input, modes };
  }

  test("is read in raw mode and never displayed", async () => {
    const { input, modes } = terminal();
    let displayed = "";
    const secret = readSecret("key: ", input, (text) => (displayed += text));
    input.emit("data", Buffer.from("assent_abX"));
    input.emit("data", Buffer.from("\u007fc\r"));
    assert.equal(await secret, "assent_abc");
    assert.deepEqual([displayed, modes], ["key: \n", [true, false]]);
  });

  test("is not read when the user presses Ctrl+C, and the terminal is usable again", async () => {
    const { input, modes } = terminal();
    const secret = readSecret("key: ", input, () => undefined);
    input.emit("data", Buffer.from("abc\u0003"));
    await assert.rejects(secret, /no key was entered/);
    assert.deepEqual(modes, [true, false]);
  });
});

describe("assent doctor", () => {
  const lines = ({ out }: Run, check: string): string =>
    out
      .split("\n")
      .filter((line) => line.split(/ +/)[1] === check)
      .join("\n");

  test("finds nothing wrong with a service and a key that work, and says what the key can do", async () => {
    const asAdmin = await run(["doctor"], { ASSENT_URL: service.url, ASSENT_API_KEY: keys.admin });
    assert.equal(asAdmin.code, EXIT_CODES.ok, asAdmin.out + asAdmin.err);
    assert.match(lines(asAdmin, "service"), /^ok/);
    assert.match(lines(asAdmin, "clock"), /^ok/);
    assert.match(lines(asAdmin, "key"), /^ok .*may .*approvals:decide/);
    assert.match(lines(asAdmin, "policies"), /^ok .*payments/);
    assert.match(lines(asAdmin, "configuration"), /^note .*no assent\.yaml and no store/);
    await login(keys.agent);
    const asAgent = await run(["doctor"]);
    assert.equal(asAgent.code, EXIT_CODES.ok, asAgent.out);
    assert.match(lines(asAgent, "key"), /cannot vote/);
  });

  test("checks the store, and names the channels that policies name and the configuration lacks", async () => {
    const { code, out } = await run(["doctor", "--json"], {
      ASSENT_URL: service.url,
      ASSENT_API_KEY: keys.agent,
      ASSENT_DATA: join(folder, "data"),
      ASSENT_POLICIES: FEW_POLICIES,
    });
    assert.equal(code, EXIT_CODES.ok, out);
    const { findings } = JSON.parse(out) as {
      findings: { check: string; state: string; text: string; fix?: string }[];
    };
    const of = (check: string) => findings.find((finding) => finding.check === check);
    assert.equal(of("store")?.state, "ok");
    assert.equal(of("notifications")?.state, "note");
    assert.match(of("notifications")?.text ?? "", /no one is notified there: .*finance/);
    assert.match(of("notifications")?.fix ?? "", /docs\/notifications\.md/);
  });

  test("reports each problem with what to do, and exits with 1", async (t) => {
    const broken = folderWith(t, { "assent.yaml": "sever: {}\n" });
    const env = { HOME: home, ASSENT_URL: "http://127.0.0.1:9", ASSENT_API_KEY: "x" };
    const { code, out } = await assent(["doctor"], { cwd: broken, env });
    assert.equal(code, EXIT_CODES.failure);
    assert.match(out, /^problem {2}configuration {2}.*did you mean "server"[^\n]*\n +correct the configuration/m);
    assert.match(out, /^problem {2}service [^\n]*\n +start it with/m);
    const rejected = await run(["doctor"], { ASSENT_URL: service.url, ASSENT_API_KEY: "assent_wrong" });
    assert.equal(rejected.code, EXIT_CODES.failure);
    assert.match(rejected.out, /^problem {2}key [^\n]*\n +use another key/m);
    mkdirSync(join(broken, "data"));
    writeFileSync(join(broken, "data/assent.db"), "this is no database");
    writeFileSync(join(broken, "assent.yaml"), "data: ./data\n");
    const damaged = await assent(["doctor"], { cwd: broken, env });
    assert.match(damaged.out, /^problem {2}store /m);
  });
});

test("a person lists, votes and quits in a narrow terminal", { skip: withoutTerminal }, async (t) => {
  const policy = "policy: ask\nrules: [{ name: all, tool: stripe, effect: require_approval }]\n";
  const people = await startPeople({ policy });
  t.after(() => people.close());
  const server = await serve((request, info) => people.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  t.after(() => server.stop(1000));
  people.runtime.listensAt(server.port);
  const ada = await invite(people, { name: "Ada", roles: ["approver"] }, people.runtime.host.origin() ?? "");
  const submit = async (customer: string): Promise<string> => {
    const body = { agent_id: "bot", tool: "stripe", operation: "refund", params: { amount: 5, customer } };
    return (await people.call("POST", "/v1/actions", { body })).body.id as string;
  };

  const command = [process.execPath, ...ASSENT, "watch"].map((word) => JSON.stringify(word)).join(" ");
  const terminal = startTerminal(command, 50, { ASSENT_URL: server.url, HOME: home });
  t.after(() => terminal.kill());
  const [, code = "", challenge = ""] = await terminal.shows(/type the code (\S+):\s+\S+#terminal=([\w-]{43})$/m);
  const confirmed = await confirmTerminal(ada, challenge, code);
  assert.equal(confirmed.status, 201, JSON.stringify(confirmed.body));
  await terminal.shows(/signed in as Ada/);

  const first = await submit("4711");
  await terminal.shows(/^ {2}1 {2}bot {2}stripe refund/m);
  // The line has two rows when the second request arrives.
  const reason = "asked the customer, who has sent a picture of it";
  terminal.type(`a 1 ${reason}`);
  await terminal.shows(/^> a 1 asked .* picture of it$/m);
  await submit("4712");
  await terminal.shows(new RegExp(`^  2  bot  stripe refund .*"customer":"4712"[^\\n]*\\n> a 1 ${reason}$`, "m"));
  assert.equal(terminal.lines().filter((line) => line.includes(reason)).length, 1);
  terminal.type("\r");
  await terminal.shows(/^approve request 1\? \[y\/N\] $/m);
  terminal.type("y\r");
  await terminal.shows(/^ {2}1 {2}is approved, last vote by [A-Z]\w+/m);
  const { approvals } = (await people.call("GET", `/v1/actions/${first}`, { key: people.admin })).body;
  assert.equal(approvals[0].reason, reason);

  terminal.type("\u0003");
  assert.equal(await terminal.ended, EXIT_CODES.ok);
  assert.deepEqual(terminal.lines().slice(-2), ["> ", ""], "the shell continues on a line of its own");
  const { sessions } = (await ada.call("GET", `/v1/users/${ada.id}/sessions`)).body;
  assert.deepEqual(
    sessions.map(({ method }: { method: string }) => method),
    ["link"],
    "the session has ended",
  );
});
