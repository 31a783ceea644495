/**
 * The official conformance suite, installed on demand: its client against a proxy in front of a known server, and its
 * servers behind a proxy. Policies allow everything, so failures are caused by the proxy's handling of messages.
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CACHE } from "../support/cache.ts";
import { runProgram, type Run } from "../support/cli.ts";
import { startHttpProxy, setUp, type Setup } from "../support/mcp.ts";
import { startConformanceServer } from "../support/mcp-conformance.ts";
import { NODE, programOf, scriptOf, withoutRuntime } from "../support/runtimes.ts";

const PACKAGE = "@modelcontextprotocol/conformance";
const VERSION = "0.1.16";
const FOLDER = join(CACHE, `assent-mcp-conformance-${VERSION}`);

/** Why it cannot be installed; false if it is available. */
function install(): string | false {
  // It uses features that Node has since 22.
  const runtime = withoutRuntime("deno");
  if (runtime !== false || existsSync(FOLDER)) return runtime;
  const fresh = `${FOLDER}.${process.pid}`;
  try {
    mkdirSync(fresh, { recursive: true });
    writeFileSync(join(fresh, "package.json"), JSON.stringify({ private: true, dependencies: { [PACKAGE]: VERSION } }));
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: fresh,
      stdio: "pipe",
      timeout: 120_000,
    });
    renameSync(fresh, FOLDER);
    return false;
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    return `${PACKAGE} cannot be installed here: ${String(error).slice(0, 300)}`;
  }
}

const skip = install();
describe(`${PACKAGE} ${VERSION}`, { skip }, () => {
  let setup: Setup;
  before(async () => {
    setup = await setUp("policy: all\nrules:\n  - { name: all, tool: mcp.conformance, effect: allow }\n");
  });
  after(() => setup?.close());

  const conformance = (...args: string[]): Promise<Run> =>
    runProgram(
      programOf("deno") as string,
      ["run", "-A", "--no-lock", join(FOLDER, "node_modules", PACKAGE, "dist/index.js"), ...args],
      { env: setup.env, cwd: setup.folder },
    );

  test("as a server of 2025-11-25 the proxy passes all its scenarios", { timeout: 120_000 }, async () => {
    const upstream = await startConformanceServer();
    try {
      const proxy = await startHttpProxy(
        setup,
        ["--name", "conformance", "--http", `${upstream.url}/mcp`, "--listen", "0"],
        {},
        [],
      );
      try {
        const { code, out, err } = await conformance("server", "--suite", "all", "--url", proxy.url);
        const failed = out.split("\n").filter((line) => /^✗|[1-9]\d* failed/.test(line));
        assert.deepEqual(failed, [], err);
        assert.match(out, /Total: 44 passed, 0 failed/);
        assert.equal(code, 0, err);
      } finally {
        await proxy.close();
      }
    } finally {
      await upstream.stop(0);
    }
    // Every call was decided.
    for (const operation of [
      "test_simple_text",
      "test_reconnection",
      "resources/read",
      "prompts/get",
      "sampling/createMessage",
    ]) {
      const { body } = await setup.service.call("GET", `/v1/actions?operation=${encodeURIComponent(operation)}`, {
        key: setup.service.admin,
      });
      assert.equal(body.actions[0]?.status, "succeeded", operation);
    }
  });

  for (const scenario of ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"])
    test(`as a client the proxy passes its scenario ${scenario}`, { timeout: 60_000 }, async () => {
      const command = [process.execPath, ...NODE, scriptOf("test/support/mcp-conformance-client")].join(" ");
      const { code, out, err } = await conformance("client", "--command", command, "--scenario", scenario);
      assert.equal(code, 0, out + err);
      assert.match(out + err, /OVERALL: PASSED/);
    });
});
