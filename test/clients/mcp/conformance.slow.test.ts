/**
 * The official conformance suite: its client against known servers, directly and through a proxy, and its servers behind
 * a proxy. Policies allow everything, so failures are caused by the proxy's handling of messages.
 */
import "../../support/on-disk.ts";
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runProgram, type Run } from "../../support/cli.ts";
import { startHttpProxy, setUp, type Setup } from "../../support/mcp.ts";
import { startConformanceServer } from "../../support/mcp-conformance.ts";
import { startConformanceServer2026 } from "../../support/mcp-conformance-2026.ts";
import { ROOT } from "../../support/process.ts";
import { NODE, programOf, scriptOf, withoutRuntime } from "../../support/runtimes.ts";

const PACKAGE = "@modelcontextprotocol/conformance";
const CLI = join(ROOT, "node_modules", PACKAGE, "dist/index.js");

/** The program uses features that Node has since 22. */
const skip = existsSync(CLI)
  ? withoutRuntime("deno")
  : `${PACKAGE} is not installed; run npm ci --workspaces --include-workspace-root`;

/** Known servers of both revisions, and the number of checks that each passes. */
const REVISIONS = {
  "2025-11-25": { start: startConformanceServer, total: /Total: 81 passed, 0 failed/ },
  "2026-07-28": { start: startConformanceServer2026, total: /Total: 196 passed, 0 failed/ },
};

describe(PACKAGE, { skip }, () => {
  let setup: Setup;
  before(async () => {
    setup = await setUp("policy: all\nrules:\n  - { name: all, tool: mcp.conformance, effect: allow }\n");
  });
  after(() => setup?.close());

  const conformance = (...args: string[]): Promise<Run> =>
    runProgram(programOf("deno") as string, ["run", "-A", "--no-lock", CLI, ...args], {
      env: setup.env,
      cwd: setup.folder,
    });

  for (const [revision, { start, total }] of Object.entries(REVISIONS))
    test(`all frozen scenarios for servers of ${revision} pass directly and through the proxy, with the extensions`, async () => {
      const upstream = await start();
      const url = `${upstream.url}/mcp`;
      try {
        const proxy = await startHttpProxy(setup, ["--name", "conformance", "--http", url, "--listen", "0"], {}, []);
        try {
          for (const address of [url, proxy.url]) {
            const { code, out, err } = await conformance("server", "--requirements", revision, "--url", address);
            const failed = out.split("\n").filter((line) => /^✗|[1-9]\d* failed/.test(line));
            assert.deepEqual(failed, [], `${address}: ${err}${out}`);
            assert.match(out, total, address);
            assert.equal(code, 0, err);
          }
        } finally {
          await proxy.close();
        }
      } finally {
        await upstream.stop(0);
      }
    });

  test("every call of the scenarios was decided, and every call that its client finished has ended", async () => {
    const { service } = setup;
    for (const operation of [
      "test_simple_text",
      "test_reconnection",
      "slow_compute",
      "test_input_required_result_multiple_inputs",
      "resources/read",
      "prompts/get",
      "sampling/createMessage",
    ]) {
      const { body } = await service.call("GET", `/v1/actions?operation=${encodeURIComponent(operation)}&limit=200`, {
        key: service.admin,
      });
      const statuses = new Set((body.actions as { status: string }[]).map(({ status }) => status));
      assert.ok(statuses.has("succeeded"), operation);
      // A scenario leaves a question unanswered on purpose, so questions can still wait.
      if (operation !== "sampling/createMessage")
        assert.ok(!statuses.has("executing"), `${operation}: ${[...statuses].join(", ")}`);
    }
  });

  for (const [scenario, version] of [
    ["initialize", "2025-11-25"],
    ["tools_call", "2025-11-25"],
    ["elicitation-sep1034-client-defaults", "2025-11-25"],
    ["sse-retry", "2025-11-25"],
    ["tools_call", "2026-07-28"],
    ["http-standard-headers", "2026-07-28"],
    ["http-custom-headers", "2026-07-28"],
    ["http-invalid-tool-headers", "2026-07-28"],
    ["sep-2322-client-request-state", "2026-07-28"],
  ] as const)
    test(`as a client of ${version} the proxy passes its scenario ${scenario}`, async () => {
      const command = [process.execPath, ...NODE, scriptOf("test/support/mcp-conformance-client"), version].join(" ");
      const args = ["--command", command, "--scenario", scenario, "--spec-version", version];
      const { code, out, err } = await conformance("client", ...args);
      assert.equal(code, 0, out + err);
      assert.match(out + err, /OVERALL: PASSED/);
    });
});
