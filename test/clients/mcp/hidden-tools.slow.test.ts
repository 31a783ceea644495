/** Tools that policies always deny are left out of lists. Calls are still decided by the policies. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startStdioProxy, setUp, SERVER, type Refused, type Setup } from "../../support/mcp.ts";

describe("hide_denied", () => {
  let setup: Setup;
  before(async () => {
    setup = await setUp();
    const [command, ...args] = SERVER;
    writeFileSync(
      join(setup.folder, "assent-mcp.yaml"),
      JSON.stringify({ agent: "bot", wait: 0, hide_denied: true, servers: { notes: { command, args } } }),
    );
  });
  after(() => setup?.close());
  const start = (env: Record<string, string> = {}) =>
    startStdioProxy(setup, { flags: ["--config", join(setup.folder, "assent-mcp.yaml")], server: [], env });

  test("leaves out tools that no rule allows, and keeps those that some arguments would; nothing is recorded", async () => {
    const proxy = await start();
    try {
      const names = (await proxy.client.listTools()).tools.map(({ name }) => name);
      assert.deepEqual(names, ["echo", "write", "slow", "ask", "broken", "placed", "typed"]);
      assert.deepEqual(await setup.actions(), []);
      // Called by name, it is decided like any other tool, and denied.
      const result = (await proxy.client.callTool({ name: "forbidden", arguments: {} })) as unknown as Refused;
      assert.equal(result.structuredContent?.status, "denied");
      assert.deepEqual(
        (await setup.actions()).map(({ operation, status }) => [operation, status]),
        [["forbidden", "denied"]],
      );
      assert.deepEqual(setup.record(), []);
    } finally {
      await proxy.close();
    }
  });

  test("lists all tools if the service is unreachable, and calls none", async () => {
    const proxy = await start({ ASSENT_URL: "http://127.0.0.1:9" });
    try {
      assert.equal((await proxy.client.listTools()).tools.length, 8);
      const result = (await proxy.client.callTool({ name: "echo", arguments: {} })) as unknown as Refused;
      assert.equal(result.structuredContent?.status, "unavailable");
    } finally {
      await proxy.close();
    }
  });
});
