/** MCP Tasks of 2025-11-25: a call waits for its approval while the client does something else. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { rawClient, setUp, type RawClient, type Refused, type Setup } from "../support/mcp.ts";
import { until } from "../support/wait.ts";

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
