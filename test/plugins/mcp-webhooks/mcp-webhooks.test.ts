/** Requests of Docker's MCP gateway and of ToolHive, in their formats. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import mcpWebhooks from "../../../plugins/mcp-webhooks/index.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { approve, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `
policy: mcp
rules:
  - { name: small refunds, tool: stripe, operation: refund, effect: allow, when: params.amount <= 100 && !has(context.mcp) }
  - { name: larger ones by a person, tool: stripe, operation: refund, effect: require_approval, when: params.amount <= 1000 }
`;
type Args = Record<string, unknown>;

describe("a request of an MCP gateway", () => {
  let service: Service;
  let listening: RunningServer;
  before(async () => {
    service = await startService({
      policy: POLICY,
      plugins: [{ plugin: mcpWebhooks, options: { enabled: true, tool: "stripe" }, origin: "mcp-webhooks" }],
    });
    listening = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  });
  after(async () => {
    await listening.stop(0);
    await service.close();
  });
  const basic = (key: string): string => `Basic ${btoa(`assent:${key}`)}`;
  const post = (name: string, raw: string, key = service.agent): Promise<Answer> =>
    service.call("POST", `/mcp-webhooks/${name}`, { key: null, raw, headers: { authorization: basic(key) } });
  const docker = (params: unknown): Promise<Answer> =>
    post("docker", JSON.stringify({ Session: {}, Params: params, Extra: null }));
  const toolhive = (mcp_request: unknown, principal?: string): Promise<Answer> =>
    post(
      "toolhive",
      JSON.stringify({
        version: "v0.1.0",
        uid: "u-1",
        timestamp: "2026-11-22T12:00:00Z",
        principal: principal === undefined ? null : { sub: principal },
        mcp_request,
        context: { server_name: "payments", source_ip: "10.0.0.1:4711", transport: "stdio" },
      }),
    );
  const refundOf = (args: Args, more: Args = {}) => ({
    name: "refund",
    arguments: args,
    _meta: { progressToken: 1 },
    ...more,
  });
  const message = (args: Args, more: Args = {}) => ({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: refundOf(args, more),
  });
  /**
   * Whether the gateway would pass the call on. Docker's does so for every response without a body, whatever its
   * status.
   */
  const asks: [string, (args: Args, more?: Args) => Promise<Answer>, (answer: Answer) => boolean][] = [
    ["Docker", (args, more) => docker(refundOf(args, more)), ({ body }) => body === ""],
    [
      "ToolHive",
      (args, more) => toolhive(message(args, more)),
      ({ status, body }) => status === 200 && body.allowed === true,
    ],
  ];

  for (const [name, ask, passes] of asks) {
    it(`lets ${name} pass allowed calls, after their start is recorded`, async () => {
      assert.ok(passes(await ask({ amount: 5 })));
      const { body } = await service.call("GET", "/v1/actions?limit=1");
      const { status, tool, operation, params } = body.actions[0];
      assert.deepEqual([status, tool, operation, params], ["executing", "stripe", "refund", { amount: 5 }]);
      for (const args of [{ amount: 5000 }, {}]) assert.ok(!passes(await ask(args)), JSON.stringify(args));
    });

    it(`lets ${name} pass an approved call once, with exactly the same arguments`, async () => {
      const amount = name === "Docker" ? 500 : 600;
      const waits = await ask({ amount });
      assert.ok(!passes(waits));
      assert.match(JSON.stringify(waits.body), /waits for approval.*not denied.*same arguments/);
      const { body } = await service.call("GET", "/v1/actions?status=pending_approval&limit=1");
      await approve(service, body.actions[0].id);
      assert.ok(!passes(await ask({ amount: amount + 1 })));
      assert.ok(
        !passes(await ask({ amount }, { inputResponses: { confirm: "yes" } })),
        "answers of another round count",
      );
      assert.ok(passes(await ask({ amount })));
      assert.ok(!passes(await ask({ amount })));
    });

    it(`denies ${name} without a key, a body or a service that can record`, async () => {
      const path = name.toLowerCase();
      for (const raw of ["", "{", "[]", "null", '"x"', '{"Params":{"name":"refund","name":"refund"}}'])
        assert.ok(!passes(await post(path, raw)), raw);
      const raw = JSON.stringify({ Params: refundOf({ amount: 5 }), mcp_request: message({ amount: 5 }) });
      const wrong = await post(path, raw, "wrong");
      assert.ok(!passes(wrong) && JSON.stringify(wrong.body).includes("INVALID_CREDENTIAL"));
      assert.ok(!passes(await service.call("POST", `/mcp-webhooks/${path}`, { key: null, raw })));
      assert.ok(!passes(await service.call("GET", `/mcp-webhooks/${path}`, { key: service.agent })));
      assert.ok(!passes(await post(path, JSON.stringify("x".repeat(2_000_000)))));
    });
  }

  it("rejects messages that Go's parser and JavaScript's parser would read as different calls", async () => {
    const call = message({ amount: 5 });
    for (const request of [
      { ...call, method: "ping", Method: "tools/call" },
      { ...call, Params: refundOf({ amount: 5000 }) },
      { ...call, "param\u017f": refundOf({ amount: 5000 }) },
      message({ amount: 5 }, { Arguments: { amount: 5000 } }),
      message({ amount: 5 }, { NAME: "transfer" }),
      [call],
      { jsonrpc: "2.0", id: 1, result: {} },
      { ...call, method: "tools/run" },
    ])
      assert.equal((await toolhive(request)).body.reason, "REQUEST_UNREADABLE", JSON.stringify(request));
    const both = await post(
      "docker",
      JSON.stringify({ Params: refundOf({ amount: 5 }), params: refundOf({ amount: 6 }) }),
    );
    assert.equal(both.body.isError, true);
  });

  it("passes messages that call no tool, because the gateway sends every message", async () => {
    for (const method of [
      "initialize",
      "ping",
      "tools/list",
      "resources/read",
      "notifications/initialized",
      "tasks/get",
    ])
      assert.equal((await toolhive({ jsonrpc: "2.0", id: 1, method })).body.allowed, true, method);
  });

  it("keeps the calls of two ToolHive principals apart", async () => {
    const ask = (who: string): Promise<Answer> => toolhive(message({ amount: 700 }), who);
    assert.equal((await ask("ada")).body.reason, "APPROVAL_REQUIRED");
    const { body } = await service.call("GET", "/v1/actions?status=pending_approval&limit=1");
    assert.deepEqual([body.actions[0].agent_id, body.actions[0].context], ["ada", { principal: "ada" }]);
    await approve(service, body.actions[0].id);
    assert.equal((await ask("bob")).body.allowed, false);
    assert.equal((await ask("ada")).body.allowed, true);
  });

  it("always returns a body, because Docker's gateway reads a response without one as an allow", async () => {
    const socket = connect(listening.port, "127.0.0.1");
    let text = "";
    socket.write("POST /mcp-webhooks/docker HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n");
    for await (const chunk of socket) text += String(chunk);
    assert.match(text, /^HTTP\/1\.1 400 [^]*\r\n\r\n[^]+/);
  });
});
