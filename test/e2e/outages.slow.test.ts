/**
 * What an agent behind the hook and the MCP proxy sees if the service restarts while a call waits for an approval, or
 * accepts connections and never answers. The tests of the hook, the proxies and the clients have the other outages.
 * @needs hook, mcp
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { runHook, startHookService } from "../support/hook.ts";
import { setUp, startStdioProxy, type Refused } from "../support/mcp.ts";
import { approve, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const open = (service: Service, port: number): Promise<RunningServer> =>
  serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port });

/** Restarts the service, and approves the pending action while no client can reach it. */
async function approveDuringRestart(service: Service, listening: RunningServer): Promise<RunningServer> {
  const pending = async (): Promise<{ id: string }[]> =>
    (await service.call("GET", "/v1/actions?status=pending_approval", { key: service.admin })).body.actions;
  await until("a call waits for approval", async () => (await pending()).length === 1);
  await listening.stop(0);
  await service.restart();
  await approve(service, (await pending())[0]?.id ?? "");
  return open(service, listening.port);
}

const SHELL = JSON.stringify({
  session_id: "s",
  cwd: "/work/app",
  tool_use_id: "toolu_1",
  hook_event_name: "PreToolUse",
  tool_name: "Bash",
  tool_input: { command: "asked" },
});

test("the hook goes on waiting while the service restarts, and lets the call run once", async () => {
  const hooks = await startHookService();
  const first = await open(hooks.service, 0);
  const env = { ...hooks.env, ASSENT_URL: first.url };
  const waiting = runHook("claude-code", SHELL, env, ["--wait", "120"]);
  const second = await approveDuringRestart(hooks.service, first);
  const { code, out, err } = await waiting;
  assert.deepEqual([code, /"permissionDecision":"(\w+)"/.exec(out)?.[1]], [0, "allow"], err);
  const actions = (await hooks.service.call("GET", "/v1/actions", { key: hooks.service.admin })).body.actions;
  assert.deepEqual(
    actions.map(({ status }: { status: string }) => status),
    ["executing"],
  );
  await second.stop(0);
  await hooks.close();
});

test("the MCP proxy goes on waiting while the service restarts, and makes the call once", async () => {
  const setup = await setUp();
  const first = await open(setup.service, 0);
  const proxy = await startStdioProxy(setup, {
    flags: ["--name", "notes", "--wait", "120"],
    env: { ASSENT_URL: first.url },
  });
  const waiting = proxy.client.callTool({ name: "write", arguments: { n: 400 } }, { timeout: 600_000 });
  const second = await approveDuringRestart(setup.service, first);
  assert.equal(((await waiting) as unknown as Refused).isError, undefined);
  assert.deepEqual(
    setup.record().map(({ name }) => name),
    ["write"],
  );
  await proxy.close();
  await second.stop(0);
  await setup.close();
});

test("a service that accepts connections and never answers lets no call of the hook or the MCP proxy run", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const [hooks, setup] = [await startHookService(), await setUp()];
  const proxy = await startStdioProxy(setup, {
    flags: ["--name", "notes", "--agent", "bot", "--wait", "1"],
    env: { ASSENT_URL: url },
  });
  const [hook, called] = await Promise.all([
    runHook("claude-code", SHELL, { ...hooks.env, ASSENT_URL: url }, ["--wait", "1"]),
    proxy.client.callTool({ name: "echo", arguments: {} }, { timeout: 600_000 }),
  ]);
  assert.match(hook.out, /"permissionDecision":"deny"/);
  assert.match(hook.out, /not run/i);
  assert.equal((called as unknown as Refused).structuredContent?.status, "unavailable");
  assert.deepEqual(setup.record(), []);
  await proxy.close();
  silent.close();
  await hooks.close();
  await setup.close();
});
