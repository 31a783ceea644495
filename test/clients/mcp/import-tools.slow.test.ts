import assert from "node:assert/strict";
import test from "node:test";
import { parsePolicies } from "../../../src/domain/policy/parse/parse.ts";
import { assentInProcess } from "../../support/cli.ts";
import { SERVER } from "../../support/mcp.ts";

test("import-tools prints the tools of an MCP server, and check then knows their parameters", async () => {
  const run = await assentInProcess("policy", "import-tools", "--name", "notes", "--", ...SERVER);
  assert.equal(run.code, 0, run.err);
  const policy = (when: string): string =>
    `policy: p\n${run.out}rules:\n  - { name: r, tool: mcp.notes, operation: placed, when: '${when}', effect: allow }\n`;
  const { documents, faults } = parsePolicies(policy('params.region == "eu"'), "p.yaml");
  assert.deepEqual(faults, []);
  const placed = documents[0]?.tools?.find(({ operation }) => operation === "placed");
  assert.deepEqual(
    [placed?.tool, placed?.params["properties"]],
    ["mcp.notes", { region: { type: "string", "x-mcp-header": "Region" } }],
  );
  const [fault] = parsePolicies(policy('params.regoin == "eu"'), "p.yaml").faults;
  assert.match(fault?.message ?? "", /params has no field "regoin"; did you mean "region"\?/);
});

test("import-tools explains the usage if it has no server, or the server is unreachable", async () => {
  const cases: [args: string[], code: number, message: RegExp][] = [
    [["npx", "server"], 2, /write the server's command after "--": assent policy import-tools -- npx server/],
    [["--http", "nowhere"], 2, /--http must be a URL; got "nowhere"/],
    [["--config", "/nonexistent.yaml"], 2, /there is no \/nonexistent\.yaml; give a server by/],
    [["--", "/nonexistent-program"], 1, /nonexistent-program/],
  ];
  for (const [args, code, message] of cases) {
    const run = await assentInProcess("policy", "import-tools", ...args);
    assert.equal(run.code, code, `${args.join(" ")}: ${run.err}`);
    assert.match(run.err, message);
  }
});
