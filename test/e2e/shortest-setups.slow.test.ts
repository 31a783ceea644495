/**
 * Pastes the shortest setup of each page into an empty folder, with a real service, and checks that it works as printed.
 * The README's and Python's are in readme.slow.test.ts and python.slow.test.ts, those of gateways in gateways.slow.test.ts.
 * @needs egress, managed-agents, inference-hooks, devices, notify-chat, notify-discord, notify-email, notify-pagerduty, notify-slack, notify-teams, notify-telegram, notify-webhook
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { createAuthority } from "../../clients/egress/certificates.ts";
import { loadConfig } from "../../src/config/index.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { serve } from "../../src/serve/index.ts";
import { runProgram, type Run } from "../support/cli.ts";
import { codeBlocks, sectionBlocks } from "../support/documented.ts";
import { Vendor } from "../support/managed-agents-vendor.ts";
import { ASSENT, ROOT, startCommand, stopProcess, type ServiceProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const running = new Set<ServiceProcess>();
after(() => Promise.all([...running].map((service) => stopProcess(service))));

/** Starts the service in a folder. Returns it with the keys that its first start printed. */
async function startIn(folder: string, env: Record<string, string> = {}) {
  mkdirSync(join(folder, "policies"), { recursive: true });
  const service = await startCommand(
    [process.execPath, [...ASSENT, "serve"]],
    { ASSENT_AGENTS: "", ASSENT_DATA: join(folder, "data"), HOME: folder, ...env },
    { cwd: folder },
  );
  running.add(service);
  const keyOf = (name: string): string => new RegExp(`export ${name}=(\\S+)`).exec(service.output())?.[1] ?? "";
  return { service, url: service.url, admin: keyOf("ADMIN_KEY"), agent: keyOf("AGENT_KEY") };
}

/** Runs the commands of a page in a shell in which `assent` is the command line. */
function paste(folder: string, commands: string, env: Record<string, string>): Promise<Run> {
  const program = [process.execPath, ...ASSENT].map((word) => `'${word}'`).join(" ");
  const script = `set -e\nassent() { ${program} "$@"; }\nnpx() { "$@"; }\n${commands}`;
  return runProgram("bash", ["-c", script], { cwd: folder, env: { HOME: folder, XDG_CONFIG_HOME: "", ...env } });
}

/** Replaces what a reader replaces. Fails if the page does not contain it, so that the test cannot miss a change. */
function fill(text: string, values: Readonly<Record<string, string>>): string {
  let filled = text;
  for (const [name, value] of Object.entries(values)) {
    assert.ok(filled.includes(name), `the page no longer contains ${name}`);
    filled = filled.replaceAll(name, value);
  }
  return filled;
}

test("docs/egress.md: a request with the placeholder reaches the API with the credential, and another is denied", async () => {
  const folder = temporaryFolder("assent-setup-");
  const [config = "", policy = "", commands = ""] = sectionBlocks("docs/egress.md", "# APIs without their keys");
  const authority = createAuthority();
  writeFileSync(join(folder, "ca.pem"), authority.pem);
  const api = createServer(authority.issue("localhost"), ({ url, headers }, response) =>
    response.end(`${url} ${headers.authorization}\n`),
  ).listen(0, "127.0.0.1");
  await once(api, "listening");
  const host = `localhost:${(api.address() as AddressInfo).port}`;
  const local = { "api.github.com": host };
  writeFileSync(
    join(folder, "egress.yaml"),
    fill(config, { "https://api.github.com:": `https://${host}:\n    private: true\n    ca: ca.pem` }),
  );
  mkdirSync(join(folder, "policies"));
  writeFileSync(join(folder, "policies", "github.yaml"), fill(policy, local));
  const { service, url, agent } = await startIn(folder);
  const request = (path: string): string => `curl -s -H "Authorization: Bearer $GITHUB_TOKEN" https://${host}${path}`;
  const command = `sh -c '${request("/repos/acme/web/issues")}; ${request("/user")}'`;
  const values = {
    "http://127.0.0.1:8000": url,
    "API_KEY=…": `API_KEY=${agent}`,
    "ghp_…": "ghp_secret",
    claude: command,
  };
  const { code, out, err } = await paste(folder, fill(commands, values), {});
  assert.equal(code, 0, out + err);
  // The credential that the server sends back is replaced by asterisks.
  assert.match(out, /^\/repos\/acme\/web\/issues Bearer \*+$/m);
  assert.match(out, /"code":"DENIED"/);
  assert.doesNotMatch(out, /^\/user/m);
  await stopProcess(service);
  api.closeAllConnections();
  api.close();
});

test("docs/gateways.md, managed agents: an allowed call is confirmed, and doctor finds nothing wrong", async () => {
  const folder = temporaryFolder("assent-setup-");
  const [policy = "", commands = ""] = sectionBlocks("docs/gateways.md", "## Managed agents");
  mkdirSync(join(folder, "policies"));
  writeFileSync(join(folder, "policies", "managed.yaml"), policy);
  const { service, url, admin } = await startIn(folder);
  const vendor = new Vendor();
  const asks = { permission_policy: { type: "always_ask" } };
  vendor.agent = { id: "a", name: "coder", tools: [{ type: "agent_toolset_20260401", default_config: asks }] };
  const [read, bash] = vendor.call("s1", { name: "read", input: {} }, { name: "bash", input: {} });
  const listening = await serve(vendor.serve, { host: "127.0.0.1", port: 0 });
  const filled = fill(commands, {
    "assent keys create": "KEY=$(assent keys create",
    "--agent cloud\n": "--agent cloud)\n",
    "ASSENT_API_KEY=…": "ASSENT_API_KEY=$KEY",
    "ANTHROPIC_API_KEY=…": "ANTHROPIC_API_KEY=vendor-key",
  });
  const env = { ASSENT_URL: url, ASSENT_API_KEY: admin, ANTHROPIC_BASE_URL: listening.url };
  const { code, out, err } = await paste(folder, `${filled.trimEnd()} --once`, env);
  assert.equal(code, 0, out + err);
  assert.doesNotMatch(out, /^(?:problem|note)/m);
  assert.deepEqual(vendor.ran, [read]);
  assert.match(err, /"bash" waits for approval/);
  assert.ok(bash !== undefined && vendor.answers("s1").length === 1);
  await stopProcess(service);
  await listening.stop(0);
});

test("docs/gateways.md, inference hooks: a verified call is allowed, one of the CRM is denied with a link", async () => {
  const folder = temporaryFolder("assent-setup-");
  const [keys = "", config = "", policy = ""] = sectionBlocks("docs/gateways.md", "## Claude inference hooks");
  const first = await startIn(folder);
  const created = await paste(folder, keys, { ASSENT_URL: first.url, ASSENT_API_KEY: first.admin });
  assert.equal(created.code, 0, created.err);
  await stopProcess(first.service);
  writeFileSync(join(folder, "assent.yaml"), config);
  writeFileSync(join(folder, "policies", "claude.yaml"), policy);
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const { service, url } = await startIn(folder, {
    CLAUDE_HOOKS_SECRET: secret,
    CLAUDE_HOOKS_KEY: created.out.trim().split("\n").at(-1) ?? "",
  });
  const ask = async (tool_name: string, origin: string) => {
    const tool_info = { origin, verified_origin: true };
    const id = `req_${randomBytes(8).toString("hex")}`;
    const raw = JSON.stringify({
      type: "tool_call",
      request_id: id,
      tenant_id: "acme",
      actor: { type: "user", id: "user_01" },
      messages: [
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", tool_name, input: {}, tool_info }] },
      ],
    });
    const time = new Date();
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(time.getTime() / 1000)),
      "webhook-signature": new Webhook(secret).sign(id, time, raw),
    };
    const response = await fetch(`${url}/inference-hooks`, { method: "POST", headers, body: raw });
    return (await response.json()) as { action: string; deny_reason?: string };
  };
  assert.equal((await ask("mcp__docs__search", "https://mcp.docs.example.com")).action, "allow");
  assert.equal((await ask("mcp__docs__search", "https://evil.example")).action, "deny");
  const { action, deny_reason: reason } = await ask("crm_update", "https://mcp.crm.example.com");
  assert.deepEqual([action, reason?.includes("https://assent.example.com/")], ["deny", true]);
  const doctor = await paste(folder, "assent doctor", { ASSENT_URL: url });
  assert.match(doctor.out, /^ok +service /m);
  assert.doesNotMatch(doctor.out, /inference_hooks/);
  await stopProcess(service);
});

test("docs/fleet.md: the configuration of the service loads", async () => {
  const folder = temporaryFolder("assent-setup-");
  const [config = ""] = sectionBlocks("docs/fleet.md", "## The shortest setup");
  writeFileSync(join(folder, "assent.yaml"), config);
  const { service, url, admin } = await startIn(folder);
  const { code, out, err } = await paste(folder, "assent devices list", { ASSENT_URL: url, ASSENT_API_KEY: admin });
  assert.deepEqual([code, out], [0, "no machine is enrolled\n"], err);
  await stopProcess(service);
});

/** Plausible values of the variables of the examples. */
const VARIABLES = {
  SLACK_BOT_TOKEN: "xoxb-1-2-abc",
  TELEGRAM_BOT_TOKEN: `123456:${"a".repeat(35)}`,
  DISCORD_BOT_TOKEN: `${"a".repeat(24)}.${"b".repeat(6)}.${"c".repeat(38)}`,
  MATTERMOST_FINANCE_URL: "https://chat.example.com/hooks/1",
  TEAMS_FINANCE_URL: "https://teams.example.com/hooks/1",
  PAGERDUTY_ROUTING_KEY: "0123456789abcdef0123456789abcdef",
  SMTP_PASSWORD: "secret",
  DESK_WEBHOOK_SECRET: `whsec_${"a".repeat(32)}`,
  AUDIT_SECRET: `whsec_${"b".repeat(32)}`,
  AUDIT_SECRET_OLD: `whsec_${"c".repeat(32)}`,
};

const examples = [
  ...readdirSync(join(ROOT, "plugins"))
    .filter((name) => name.startsWith("notify-"))
    .map((name) => [`plugins/${name}/README.md`, sectionBlocks(`plugins/${name}/README.md`, `# ${name}`)[0] ?? ""]),
  ...codeBlocks("notifications.md", "yaml")
    .filter((block) => block.includes("plugins:"))
    .map((block) => [`docs/notifications.md, ${/name: (\S+)/.exec(block)?.[1]}`, block]),
];
for (const [place = "", example = ""] of examples)
  test(`${place}: a service starts with the example`, async () => {
    const folder = temporaryFolder("assent-setup-");
    writeFileSync(join(folder, "assent.yaml"), `data: ./data\n${example}`);
    mkdirSync(join(folder, "policies"));
    const { config } = loadConfig({ cwd: folder, env: VARIABLES });
    const runtime = await createRuntime(config);
    await runtime.start();
    await runtime.stop();
  });
