/** Questions of a server to the client, and of the proxy, during a call, in both protocol revisions. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Client } from "@modelcontextprotocol/client";
import {
  startHttpProxy,
  POLICY,
  startStdioProxy,
  setUp,
  type Proxied,
  type Refused,
  type Setup,
} from "../../support/mcp.ts";
import { until } from "../../support/wait.ts";

const ERAS = { "2025-11-25": "legacy", "2026-07-28": { pin: "2026-07-28" } } as const;

for (const era of ["2025-11-25", "2026-07-28"] as const)
  describe(`a client of ${era} that supports elicitation`, () => {
    let setup: Setup;
    let proxy: Proxied;
    const seen: Record<string, unknown>[] = [];
    let answer: Record<string, unknown> = {};
    const prepare = (client: Client): void =>
      client.setRequestHandler("elicitation/create", (request) => {
        seen.push(request.params as unknown as Record<string, unknown>);
        return answer as never;
      });
    before(async () => {
      setup = await setUp();
      proxy = await startStdioProxy(setup, {
        flags: ["--name", "notes", "--wait", "600"],
        client: {
          capabilities: { elicitation: { form: {}, url: {} } },
          versionNegotiation: { mode: ERAS[era] },
        },
        prepare,
      });
    });
    after(async () => {
      await proxy?.close();
      await setup?.close();
    });
    const call = async (name: string, given: Record<string, unknown> = {}): Promise<Refused> =>
      (await proxy.client.callTool({ name, arguments: given }, { timeout: 600_000 })) as unknown as Refused;

    test("answers a server's question, which is decided too, and the call is one action", async () => {
      answer = { action: "accept", content: { name: "Ada" } };
      assert.equal((await call("ask")).content[0]?.text, "accept Ada");
      assert.equal(seen.at(-1)?.["message"], "What is your name?");
      const operations = (await setup.actions()).map(({ operation }) => operation);
      assert.deepEqual(operations.sort(), ["ask", "elicitation/create"]);
      await until("both have ended", async () => (await setup.actions()).every(({ status }) => status === "succeeded"));
      assert.equal(setup.record().filter(({ name }) => name === "ask").length, 1);
    });

    test("is shown the approval page, and its answer approves nothing", async () => {
      answer = { action: "accept" };
      const running = call("write", { n: 100 });
      await until("it was shown", () => seen.at(-1)?.["mode"] === "url");
      const [action = {}] = await setup.actions();
      assert.equal(seen.at(-1)?.["url"], `${setup.listening.url}/approve#${String(action["id"])}`);
      assert.equal(action["status"], "pending_approval");
      assert.ok(!setup.record().some(({ name }) => name === "write"));
      await setup.decide(true);
      assert.equal((await running).isError, undefined);
      assert.equal(setup.record().filter(({ name }) => name === "write").length, 1);
    });
  });

test("a client of 2026-07-28 that left with the approval page: its call is made when it returns with the answer", async () => {
  const setup = await setUp();
  const proxy = await startHttpProxy(setup, ["--name", "notes", "--listen", "0", "--wait", "600"]);
  const ask = async (id: number, more: Record<string, unknown>, name = "write"): Promise<Record<string, unknown>> => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { url: {} } },
    };
    const response = await fetch(proxy.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: { name, arguments: { n: 100 }, _meta, ...more },
      }),
    });
    const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: {"));
    return (JSON.parse((lines.at(-1) as string).slice(6)) as { result: Record<string, unknown> }).result;
  };
  const made = (): number => setup.record().filter(({ name }) => name === "write").length;
  try {
    const first = await ask(1, {});
    assert.equal(first["resultType"], "input_required");
    await setup.decide(true);
    // It returns without an answer, and leaves again.
    const second = await ask(2, { requestState: first["requestState"] });
    assert.equal(second["resultType"], "input_required");
    // Time in which the call would be made.
    for (const id of [10, 11]) assert.equal((await ask(id, {}, "echo"))["resultType"], "complete");
    const action = (await setup.actions()).find(({ operation }) => operation === "write");
    assert.equal(action?.["status"], "approved");
    assert.equal(made(), 0);
    const [key = ""] = Object.keys(second["inputRequests"] as object);
    const answers = { requestState: second["requestState"], inputResponses: { [key]: { action: "accept" } } };
    assert.equal((await ask(3, answers))["resultType"], "complete");
    assert.equal(made(), 1);
    // A round can be continued once.
    assert.equal(await ask(4, answers).catch(() => undefined), undefined);
    assert.equal(made(), 1);
  } finally {
    await proxy.close();
    await setup.close();
  }
});

describe("if a policy denies a server's question", () => {
  let setup: Setup;
  before(async () => {
    setup = await setUp(POLICY.replace(', "elicitation/create"', ""));
  });
  after(() => setup?.close());

  test("the client gets no request, and the server receives the response that the client declined", async () => {
    const seen: unknown[] = [];
    const proxy = await startStdioProxy(setup, {
      client: { capabilities: { elicitation: { form: {} } } },
      prepare: (client) =>
        client.setRequestHandler("elicitation/create", (request) => {
          seen.push(request.params);
          return { action: "accept", content: { name: "Ada" } };
        }),
    });
    try {
      const result = (await proxy.client.callTool({ name: "ask", arguments: {} })) as unknown as Refused;
      assert.equal(result.content[0]?.text, "decline");
      assert.deepEqual(seen, []);
    } finally {
      await proxy.close();
    }
  });
});
