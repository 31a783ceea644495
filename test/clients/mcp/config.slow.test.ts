/** `assent-mcp.yaml`, names of servers, and the examples of docs/mcp.md. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  ProxyConfigError,
  deriveServerName,
  approvalWaitFor,
  readProxyConfig,
} from "../../../clients/mcp/config/proxy-config.ts";
import { assentInProcess, folderWith } from "../../support/cli.ts";
import { ROOT } from "../../support/process.ts";

const page = readFileSync(join(ROOT, "docs/mcp.md"), "utf8");
const blocks = [...page.matchAll(/^( *)```yaml\n([^]*?)^ *```$/gm)].map(([, indent = "", text = ""]) =>
  text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
);

describe("the configuration of the proxy", () => {
  test("of docs/mcp.md is valid", () => {
    const text = blocks.find((block) => block.includes("servers:")) as string;
    const { servers, wait } = readProxyConfig(text.replace("# wait: 50 ", "wait: 50 "), { TRACKER_TOKEN: "t" });
    assert.equal(wait, 50);
    assert.deepEqual(
      servers.map(({ name, tool, hide, open, meta, definitions }) => ({ name, tool, hide, open, meta, definitions })),
      [
        { name: "filesystem", tool: "mcp.filesystem", hide: ["write_*"], open: [], meta: [], definitions: "first" },
        {
          name: "tracker",
          tool: "mcp.tracker",
          hide: [],
          open: ["resources/read"],
          meta: ["com.example/*"],
          definitions: "accepted",
        },
      ],
    );
    assert.deepEqual(servers[1]?.target, {
      url: "https://mcp.example.com/mcp",
      headers: { Authorization: "Bearer t" },
      credentialHeaders: null,
      oauth: null,
      signIns: null,
      exchange: null,
      subject: null,
    });
  });

  test("the policy of docs/mcp.md passes assent policy check", async (t) => {
    const policy = blocks.find((block) => block.startsWith("policy:")) as string;
    const { code, out, err } = await assentInProcess("policy", "check", folderWith(t, { "notes.yaml": policy }));
    assert.equal(code, 0, out + err);
  });

  for (const [what, text, why] of [
    ["an unknown key", "servers: { a: { command: x, arg: [] } }", /"arg" is not recognized; did you mean "args"\?$/],
    ["an unknown key at the top", "server: {}\nservers: { a: { command: x } }", /"server" .*did you mean "servers"/],
    ["an address that is none", "servers: { a: { url: x } }", /url: does not have .*: an http or https URL/],
    [
      "more than one fault",
      "wait: soon\nservers: { a: { command: 1 } }",
      /^\/servers\/a\/command: .*; \/wait: |wait.*; .*command/,
    ],
    ["both a command and an address", "servers: { a: { command: x, url: 'http://x' } }", /set either command or url/],
    ["neither", "servers: { a: {} }", /set either command or url/],
    ["headers for a process", "servers: { a: { command: x, headers: {} } }", /headers need url/],
    ["no server", "servers: {}", /servers/],
    ["a variable that is not set", "servers: { a: { url: 'http://x', headers: { a: '${NOT_SET}' } } }", /NOT_SET/],
    ["a method that cannot be open", "servers: { a: { command: x, open: [tools/call] } }", /open/],
    ["a key twice", "servers: { a: { command: x } }\nservers: {}", /unique/],
    ["a name that is none", "servers: { 'a b': { command: x } }", /name/],
    ["one tool for two servers", "servers: { a: { command: x }, b: { command: y, tool: MCP.a } }", /already/],
    ["no YAML", "servers: [", /.+/],
  ] as const)
    test(`with ${what} is rejected`, () => {
      assert.throws(
        () => readProxyConfig(text, {}),
        (error) => error instanceof ProxyConfigError && why.test(error.message),
      );
    });

  for (const [command, name] of [
    ["npx -y @modelcontextprotocol/server-filesystem /home/me", "filesystem"],
    ["npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /home/me", "filesystem"],
    ["uvx mcp-server-git --repository /home/me/app", "git"],
    ["node /opt/server-everything/dist/index.js stdio", "everything"],
    ["/usr/local/bin/github-mcp-server stdio", "github"],
    ["docker run -i --rm mcp/fetch", "fetch"],
  ] as const)
    test(`${command} is named ${name}`, () => assert.equal(deriveServerName(command.split(" ")), name));

  test("a server at a URL is named after its host", () =>
    assert.equal(deriveServerName(new URL("https://mcp.example.com/x")), "mcp.example.com"));

  test("the proxy waits as long as the client is known to wait, unless it is configured", () => {
    assert.equal(approvalWaitFor({ name: "claude-code" }, undefined), 240);
    assert.equal(approvalWaitFor({ name: "constructor" }, undefined), 50);
    assert.equal(approvalWaitFor({ name: "claude-code" }, 7), 7);
  });
});
