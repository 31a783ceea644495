/** `assent mcp install`, `uninstall` and `doctor`: every server of a client behind the proxy, or nothing changed. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { proxiedEntry, removeProxy, addProxy } from "../../../clients/mcp/cli/clients.ts";
import { readServers } from "../../../clients/settings/mcp-servers.ts";
import { createAssent } from "../../../clients/typescript/index.ts";
import { readHeadersVariable } from "../../../clients/mcp/config/proxy-config.ts";
import { assent, type Run } from "../../support/cli.ts";
import { NODE, scriptOf } from "../../support/runtimes.ts";
import { ASSENT, startProcess, stopProcess, type ServiceProcess } from "../../support/process.ts";
import { POLICIES } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const COMMAND = { program: ["/usr/bin/assent"], options: [] };

describe("settings of a client", () => {
  const text = `{
    // The team's servers.
    "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "server-filesystem", "."], "env": { "TOKEN": "s3cret" } },
        "tracker": { "type": "http", "url": "https://mcp.example.com/mcp" }
    },
    "other": [1, 2]
}\r\n`;

  test("have every server behind the proxy, keep all else, and are restored byte for byte", () => {
    const backup = addProxy(text, "claude-code", COMMAND, [], null);
    assert.deepEqual(readServers(backup.after, "claude-code"), {
      files: {
        command: "/usr/bin/assent",
        args: ["mcp", "proxy", "--name", "files", "--", "npx", "-y", "server-filesystem", "."],
        env: { TOKEN: "s3cret" },
      },
      tracker: {
        type: "stdio",
        command: "/usr/bin/assent",
        args: ["mcp", "proxy", "--name", "tracker", "--http", "https://mcp.example.com/mcp"],
      },
    });
    assert.match(backup.after, /The team's servers[^]*"other": \[1, 2\]/);
    assert.equal(addProxy(backup.after, "claude-code", COMMAND, [], backup).after, backup.after);
    assert.equal(removeProxy(backup.after, "claude-code", backup), text);
  });

  test("that were edited after the installation keep the edit and lose only the proxy", () => {
    const backup = addProxy(text, "claude-code", COMMAND, [], null);
    const edited = backup.after.replace("[1, 2]", "[3]");
    for (const known of [backup, null]) {
      const restored = removeProxy(edited, "claude-code", known);
      assert.deepEqual(readServers(restored, "claude-code"), readServers(text, "claude-code"));
      assert.match(restored, /"other": \[3\]/);
    }
  });

  test("take a server that was added later, and lose both proxies", () => {
    const first = addProxy(text, "claude-code", COMMAND, [], null);
    const more = first.after.replace(`"mcpServers": {`, `"mcpServers": { "git": { "command": "git-server" },`);
    const second = addProxy(more, "claude-code", COMMAND, [], first);
    assert.ok(
      Object.values(readServers(second.after, "claude-code")).every(({ command }) => command === "/usr/bin/assent"),
    );
    const { git, ...others } = readServers(removeProxy(second.after, "claude-code", second), "claude-code");
    assert.deepEqual(git, { command: "git-server" });
    assert.deepEqual(others, readServers(text, "claude-code"));
  });

  for (const [what, entry, why] of [
    ["headers that are not texts", { url: "https://x.example/mcp", headers: { a: 1 } }, /headers.*--skip b leaves it/],
    ["the transport SSE", { type: "sse", url: "https://x.example/sse" }, /SSE/],
    ["neither a command nor a url", { disabled: true }, /no command and no url/],
    ["arguments that are not texts", { command: "x", args: [1] }, /args are not a list of strings/],
  ] as const)
    test(`are not changed if a server has ${what}, unless it is skipped`, () => {
      const settings = JSON.stringify({ mcpServers: { a: { command: "a" }, b: entry } });
      assert.throws(() => addProxy(settings, "claude-code", COMMAND, [], null), why);
      const { after } = addProxy(settings, "claude-code", COMMAND, ["b"], null);
      assert.deepEqual(readServers(after, "claude-code")["b"], entry);
    });

  test("pass the headers of a server to the proxy in a variable, which the proxy sends and uninstall restores", () => {
    const headers = { Authorization: "Bearer ${TOKEN}" };
    const remote = JSON.stringify({ mcpServers: { a: { type: "http", url: "https://x.example/mcp", headers } } });
    const { after } = addProxy(remote, "claude-code", COMMAND, [], null);
    const { a } = readServers(after, "claude-code");
    assert.ok(!JSON.stringify(a?.["args"]).includes("Bearer"), "other users can see the arguments of a process");
    assert.ok(a !== undefined);
    const { ASSENT_MCP_HEADERS: encoded = "" } = a["env"] as Record<string, string>;
    assert.deepEqual(readHeadersVariable({ ASSENT_MCP_HEADERS: encoded.replace("${TOKEN}", "t") }), {
      Authorization: "Bearer t",
    });
    assert.throws(
      () => readHeadersVariable({ ASSENT_MCP_HEADERS: '{"Authorization": 1}' }),
      (error: Error) => error.message.includes("JSON object of strings"),
    );
    assert.deepEqual(
      readServers(removeProxy(after, "claude-code", null), "claude-code"),
      readServers(remote, "claude-code"),
    );
  });

  test("are not changed if a name cannot be a tool's, two names are one tool, or the file cannot be parsed", () => {
    assert.throws(() => proxiedEntry("a b", { command: "x" }, COMMAND), /name must have 1 to 32 letters/);
    const alike = JSON.stringify({ mcpServers: { Files: { command: "a" }, files: { command: "b" } } });
    assert.throws(
      () => addProxy(alike, "claude-code", COMMAND, [], null),
      /"files": policies cannot tell it from "Files"/,
    );
    for (const broken of ["{", '{"mcpServers": []}', '{"mcpServers": {"a": 1}}', '{"a":1,"a":2}'])
      assert.throws(() => addProxy(broken, "claude-code", COMMAND, [], null), /not JSON|not an object|twice/);
  });

  test("of VS Code have their servers under another member", () => {
    const { after } = addProxy('{"servers":{"a":{"type":"stdio","command":"a"}}}', "vscode", COMMAND, [], null);
    assert.equal(readServers(after, "vscode")["a"]?.["command"], "/usr/bin/assent");
  });
});

describe("a client's servers behind the service", () => {
  let service: ServiceProcess;
  let folder = "";
  let home = "";
  let project = "";
  let agentKey = "";
  let adminKey = "";

  before(async () => {
    folder = temporaryFolder("assent-mcp-install-");
    service = await startProcess({ ASSENT_DATA: join(folder, "data"), ASSENT_POLICIES: POLICIES });
    adminKey = /export ADMIN_KEY=(\S+)/.exec(service.output())?.[1] ?? "";
    const env = { ASSENT_URL: service.url, ASSENT_API_KEY: adminKey };
    agentKey = (await assent(["keys", "create", "c", "--preset", "agent", "--agent", "claude"], { env })).out.trim();
  });

  after(async () => {
    await stopProcess(service);
    rmSync(folder, { recursive: true, force: true });
  });

  beforeEach(() => {
    home = temporaryFolder("home-", folder);
    project = join(home, "project");
    mkdirSync(project);
  });

  const run = (...args: string[]): Promise<Run> =>
    assent(["mcp", ...args], { cwd: project, env: { HOME: home, XDG_CONFIG_HOME: "", XDG_STATE_HOME: "" } });
  const login = (): Promise<Run> =>
    assent(["login", "--url", service.url], { env: { HOME: home, XDG_CONFIG_HOME: "" }, input: agentKey });
  const settings = (): string => join(project, ".mcp.json");
  const server = { command: process.execPath, args: [...NODE, scriptOf("test/support/mcp-server"), "stdio"] };

  test("are installed, checked, and taken out again", async () => {
    const original = `${JSON.stringify({ mcpServers: { demo: { ...server, env: { MCP_RECORD: join(home, "record") } } } })}\n`;
    writeFileSync(settings(), original);
    const early = await run("install", "--client", "claude-code");
    assert.equal(early.code, 1);
    assert.match(early.err, /the proxy would have no key.*login/);
    assert.equal(readFileSync(settings(), "utf8"), original);

    assert.equal((await login()).code, 0);
    const direct = await run("doctor", "--client", "claude-code");
    assert.equal(direct.code, 1);
    assert.match(direct.out, /^problem .*"demo" is not behind the proxy/m);

    const installed = await run("install", "--client", "claude-code");
    assert.equal(installed.code, 0, installed.err);
    const state = join(home, ".local/state/assent/mcp-install");
    const [backup = ""] = readdirSync(state);
    assert.equal(statSync(join(state, backup)).mode & 0o777, 0o600);
    // No default policy names this server, and both commands say so.
    const allDenied =
      /^problem .*"demo" .* offers \d+ tools, but the policies deny every call: .*policy for mcp\.demo /m;
    assert.match(installed.err, allDenied);
    const denied = await run("doctor", "--client", "claude-code");
    assert.equal(denied.code, 1);
    assert.match(denied.out, allDenied);
    const policy = { policy: "demo", rules: [{ name: "echo", tool: "mcp.demo", operation: "echo", effect: "allow" }] };
    await createAssent({ url: service.url, apiKey: adminKey }).call("POST", "/v1/policies?activate=true", policy);
    const doctor = await run("doctor", "--client", "claude-code");
    assert.equal(doctor.code, 0, doctor.out + doctor.err);
    assert.match(doctor.out, /the policies deny \d+ of them: .*forbidden/);
    assert.match(doctor.out, /^ok .*"demo" is behind the proxy, which starts and offers \d+ tools/m);
    assert.match((await run("install", "--client", "claude-code")).out, /nothing changes/);
    // A server that cannot be behind the proxy: doctor does not recommend a command that refuses it.
    const sse = '"old":{"type":"sse","url":"https://x.example/sse"},"demo"';
    const proxied = readFileSync(settings(), "utf8");
    writeFileSync(settings(), proxied.replace('"demo"', sse));
    const advice = (await run("doctor", "--client", "claude-code")).out;
    assert.match(advice, /"old" is not behind the proxy; it cannot be, because it uses .*SSE.* --skip old/);
    assert.equal((await run("install", "--client", "claude-code", "--skip", "old")).code, 0);
    writeFileSync(settings(), proxied);

    assert.equal((await run("uninstall", "--client", "claude-code")).code, 0);
    assert.equal(readFileSync(settings(), "utf8"), original);
    assert.ok(!existsSync(join(state, backup)));
  });

  test("that have the key in their entry, as in docs/mcp.md, are checked with this key and without a login", async () => {
    const entry = (key: string) => ({
      command: process.execPath,
      args: [...ASSENT, "mcp", "proxy", "--name", "filesystem", "--", server.command, ...server.args],
      env: { ASSENT_URL: service.url, ASSENT_API_KEY: key },
    });
    const check = async (key: string): Promise<string> => {
      writeFileSync(settings(), JSON.stringify({ mcpServers: { filesystem: entry(key) } }));
      return (await run("doctor", "--client", "claude-code")).out;
    };
    const checked = await check(agentKey);
    assert.match(checked, /"filesystem" .* offers \d+ tools, but the policies deny every call/);
    assert.doesNotMatch(checked, /assent login/);
    const all = await assent(["doctor"], {
      cwd: project,
      env: { HOME: home, XDG_CONFIG_HOME: "", ASSENT_URL: service.url },
    });
    assert.match(all.out, /^note +mcp +claude-code has MCP servers behind the proxy here$/m);
    assert.match(await check(adminKey), /^problem .* has a key that does not work: .*may do more than submit/m);
    assert.match(await check("assent_wrong"), /^problem .* has a key that does not work: .*does not accept this key/m);
  });

  test("at an address, with headers, answer through the installed proxy", async (t) => {
    const remote = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        if (request.headers.authorization !== "Bearer s3cret") return response.writeHead(401).end();
        if (request.method !== "POST") return response.writeHead(405).end();
        const { id, method } = JSON.parse(text) as { id?: number; method: string };
        if (id === undefined) return response.writeHead(202).end();
        const results: Record<string, object> = {
          initialize: {
            protocolVersion: "2025-11-25",
            capabilities: { tools: {} },
            serverInfo: { name: "r", version: "1" },
          },
          "tools/list": { tools: [{ name: "get", inputSchema: { type: "object" } }] },
        };
        const result = results[method];
        const answer = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
        return response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
      });
    });
    await new Promise<void>((resolve) => remote.listen(0, "127.0.0.1", resolve));
    t.after(() => remote.close());
    const url = `http://127.0.0.1:${(remote.address() as AddressInfo).port}/mcp`;
    const entry = { type: "http", url, headers: { Authorization: "Bearer s3cret" } };
    writeFileSync(settings(), JSON.stringify({ mcpServers: { remote: entry } }));
    assert.equal((await login()).code, 0);
    assert.match(
      (await run("install", "--client", "claude-code")).err,
      /"remote" is behind the proxy, which starts and offers 1 tool\b/,
    );
    const doctor = await run("doctor", "--client", "claude-code");
    assert.match(doctor.out, /"remote" is behind the proxy, which starts and offers 1 tool\b/);
  });

  test("are not changed by a dry run, without settings, or if the file cannot be parsed", async () => {
    assert.match((await run("install", "--client", "cursor")).err, /cursor has no servers .*there is no/);
    const file = join(project, ".cursor/mcp.json");
    mkdirSync(dirname(file));
    writeFileSync(file, '{"mcpServers":{"a":{"command":"a"}}}');
    assert.match((await run("install", "--client", "cursor", "--dry-run")).out, /"--name",\n/);
    assert.equal(readFileSync(file, "utf8"), '{"mcpServers":{"a":{"command":"a"}}}');
    writeFileSync(file, "{");
    const broken = await run("install", "--client", "cursor");
    assert.equal(broken.code, 1);
    assert.match(broken.err, /mcp\.json: the file is not JSON.*nothing was changed/);
    assert.equal((await run("install", "--client", "emacs")).code, 2);
  });
});
