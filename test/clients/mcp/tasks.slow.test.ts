/** MCP Tasks of both revisions: a call waits for its approval while the client does something else. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  rawClient,
  setUp,
  startHttpProxy,
  type ListeningProxy,
  type RawClient,
  type Refused,
  type Setup,
} from "../../support/mcp.ts";
import { eventually, until } from "../../support/wait.ts";

interface Task {
  taskId: string;
  status: string;
  statusMessage?: string;
  ttl: number;
  pollInterval: number;
}

describe("a call as a task", () => {
  let setup: Setup;
  let client: RawClient;
  before(async () => {
    setup = await setUp();
    client = await rawClient(setup, ["--name", "notes", "--wait", "0"], { tasks: {} });
  });
  after(async () => {
    await client?.close();
    await setup?.close();
  });

  const begin = async (name: string, given: Record<string, unknown> = {}, of = client): Promise<Task> => {
    const { result } = await of.ask("tools/call", { name, arguments: given, task: { ttl: 600_000 } });
    return result?.["task"] as Task;
  };
  const get = async ({ taskId }: Task): Promise<Task> =>
    (await client.ask("tasks/get", { taskId })).result as unknown as Task;
  const resultOf = async ({ taskId }: Task): Promise<Refused> =>
    (await client.ask("tasks/result", { taskId })).result as unknown as Refused;
  const waits = (n: number) => async (): Promise<boolean> =>
    (await setup.actions()).some(
      ({ status, params }) => status === "pending_approval" && (params as { n?: number }).n === n,
    );
  const written = (n: number): number =>
    setup.record().filter(({ given }) => (given as { n?: number } | undefined)?.n === n).length;

  test("is offered for every tool to a client that supports tasks", async () => {
    assert.deepEqual((client.greeting["capabilities"] as { tasks: unknown }).tasks, {
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const { result } = await client.ask("tools/list");
    const tools = result?.["tools"] as { execution?: { taskSupport: string } }[];
    assert.deepEqual([...new Set(tools.map(({ execution }) => execution?.taskSupport))], ["optional"]);
    const other = await rawClient(setup, ["--name", "notes"]);
    const plain = (await other.ask("tools/list")).result?.["tools"] as { execution?: unknown }[];
    assert.ok(plain.every(({ execution }) => execution === undefined));
    await other.close();
  });

  test("is answered immediately, waits longer than a call could, and is made once after the approval", async () => {
    const task = await begin("write", { n: 100 });
    assert.equal(task.status, "working");
    await until("the call is pending approval", waits(100));
    assert.match((await get(task)).statusMessage ?? "", /waiting for approval/);
    assert.equal(written(100), 0);
    const result = resultOf(task);
    await setup.decide(true);
    assert.equal((await result).isError, undefined);
    assert.deepEqual((await result)._meta?.["io.modelcontextprotocol/related-task"], { taskId: task.taskId });
    assert.equal((await get(task)).status, "completed");
    assert.equal((await resultOf(task)).isError, undefined);
    assert.equal(written(100), 1);
  });

  test("that is denied has the reason in its result, which clients fetch only of completed tasks", async () => {
    const task = await begin("forbidden");
    assert.equal((await resultOf(task)).structuredContent?.status, "denied");
    assert.equal((await get(task)).status, "completed");
  });

  test("that was cancelled while it waited is not made when it is approved", async () => {
    const task = await begin("write", { n: 200 });
    await until("the call is pending approval", waits(200));
    const cancelled = await client.ask("tasks/cancel", { taskId: task.taskId });
    assert.equal(cancelled.result?.["status"], "cancelled");
    await setup.decide(true);
    assert.equal((await resultOf(await begin("echo"))).isError, undefined);
    assert.equal(written(200), 0);
    assert.equal((await get(task)).status, "cancelled");
    assert.equal((await client.ask("tasks/cancel", { taskId: task.taskId })).error?.code, -32602);
    assert.ok((await client.ask("tasks/result", { taskId: task.taskId })).error);
  });

  test("of a client that disconnected is not made, and no other client can read it", async () => {
    const other = await rawClient(setup, ["--name", "notes"], { tasks: {} });
    const task = await begin("write", { n: 300 }, other);
    await until("the call is pending approval", waits(300));
    assert.equal((await client.ask("tasks/get", { taskId: task.taskId })).error?.code, -32602);
    const { tasks } = (await client.ask("tasks/list")).result as { tasks: Task[] };
    assert.ok(tasks.length > 0 && !tasks.some(({ taskId }) => taskId === task.taskId));
    await other.close();
    await setup.decide(true);
    assert.equal((await resultOf(await begin("echo"))).isError, undefined);
    assert.equal(written(300), 0);
  });
});

describe("a call of 2026-07-28 as a task", () => {
  const KEY = "io.modelcontextprotocol/";
  const TASKS = { extensions: { [`${KEY}tasks`]: {} } };
  let setup: Setup;
  let proxy: ListeningProxy;
  const startProxy = (): Promise<ListeningProxy> =>
    startHttpProxy(setup, ["--name", "notes", "--listen", "0", "--wait", "0"]);
  before(async () => {
    setup = await setUp();
    proxy = await startProxy();
  });
  after(async () => {
    await proxy?.close();
    await setup?.close();
  });

  type Body = { result: Record<string, unknown>; error?: { code: number; message: string; data?: unknown } };
  const ask = async (method: string, params: Record<string, unknown>, capabilities: unknown = TASKS) => {
    const name = params["name"] ?? params["taskId"];
    const response = await fetch(proxy.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        ...(typeof name === "string" ? { "mcp-name": name } : {}),
      },
      // A client need not send its name.
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: {
          ...params,
          _meta: { [`${KEY}protocolVersion`]: "2026-07-28", [`${KEY}clientCapabilities`]: capabilities },
        },
      }),
    });
    const text = await response.text();
    const last = text.split("\n").findLast((line) => line.startsWith("data: "));
    return { status: response.status, ...(JSON.parse(last?.slice(6) ?? text) as Body) };
  };
  const write = async (n: number): Promise<string> => {
    const { result } = await ask("tools/call", { name: "write", arguments: { n } });
    assert.equal(result["resultType"], "task");
    assert.equal(result["status"], "working");
    await until("the call is pending approval", setup.waits(n));
    return String(result["taskId"]);
  };
  const get = async (taskId: string): Promise<Record<string, unknown>> => (await ask("tasks/get", { taskId })).result;
  const ended = (taskId: string): Promise<Record<string, unknown>> =>
    eventually(
      async () => {
        const task = await get(taskId);
        return task["status"] === "working" ? undefined : task;
      },
      () => "the task has not ended",
    );
  const written = (n: number): number =>
    setup.record().filter(({ given }) => (given as { n?: number } | undefined)?.n === n).length;

  test("replies at once, shows the approval page, and is made once after the approval", async () => {
    const taskId = await write(100);
    const task = await get(taskId);
    assert.match(String(task["statusMessage"]), /^\[assent:[0-9a-f]+\] waiting for approval .*\/approve#/);
    assert.equal(written(100), 0);
    await setup.decide(true);
    const { status, result } = (await ended(taskId)) as { status: string; result: Refused };
    assert.equal(status, "completed");
    assert.equal(result.isError, undefined);
    assert.equal(written(100), 1);
  });

  test("that a person rejects is completed with a refusal that has the proxy's mark", async () => {
    const taskId = await write(101);
    await setup.decide(false, "not today");
    const { status, result } = (await ended(taskId)) as { status: string; result: Refused };
    assert.equal(status, "completed");
    assert.equal(result.isError, true);
    assert.match(result.content[0]?.text ?? "", /^\[assent:[0-9a-f]+\] .*not today/);
    assert.equal(result.structuredContent?.status, "rejected");
    assert.equal(written(101), 0);
  });

  test("that was cancelled states that it has not run, and is not made when it is approved", async () => {
    const taskId = await write(102);
    assert.deepEqual(Object.keys((await ask("tasks/cancel", { taskId })).result).sort(), ["_meta", "resultType"]);
    const task = await ended(taskId);
    assert.equal(task["status"], "cancelled");
    assert.match(String(task["statusMessage"]), /The call has not run/);
    await setup.decide(true);
    assert.equal((await ask("tools/call", { name: "echo", arguments: {} })).result["resultType"], "complete");
    assert.equal(written(102), 0);
  });

  test("needs the extension, and a denied call is no task", async () => {
    const refused = await ask("tasks/get", { taskId: "any" }, {});
    assert.deepEqual(
      [refused.status, refused.error?.code, refused.error?.data],
      [400, -32021, { requiredCapabilities: TASKS }],
    );
    const listen = await ask("subscriptions/listen", { notifications: { taskIds: ["any"] } }, {});
    assert.equal(listen.error?.code, -32021);
    const { result } = await ask("tools/call", { name: "write", arguments: { n: 103 } }, {});
    assert.equal((result as unknown as Refused).structuredContent?.status, "pending_approval");
    const denied = await ask("tools/call", { name: "forbidden", arguments: {} });
    assert.equal((denied.result as unknown as Refused).structuredContent?.status, "denied");
    assert.deepEqual(
      [(await ask("tasks/list", {})).status, (await ask("unknown/method", {})).error?.code],
      [404, -32601],
    );
  });

  test("whose proxy was restarted is unknown, and the same call joins the same approval", async () => {
    const taskId = await write(104);
    await proxy.close();
    proxy = await startProxy();
    const lost = await ask("tasks/get", { taskId });
    assert.equal(lost.error?.code, -32602);
    assert.match(lost.error?.message ?? "", /has not run/);
    const second = await write(104);
    const waiting = (await setup.actions()).filter(({ params }) => (params as { n?: number }).n === 104);
    assert.equal(waiting.length, 1);
    await setup.decide(true);
    assert.equal((await ended(second))["status"], "completed");
    assert.equal(written(104), 1);
  });
});
