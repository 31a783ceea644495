/** Messages that are chosen to make the proxy throw, or to speak for another agent. */
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { createAssent } from "../../../clients/typescript/index.ts";
import { createSubscriptions } from "../../../clients/mcp/clients/subscriptions.ts";
import { CallGate } from "../../../clients/mcp/decisions/decide-call.ts";
import { removeMarks } from "../../../clients/mcp/decisions/mark.ts";
import { headerMismatch } from "../../../clients/mcp/transport/http-headers.ts";
import { createLineChannel } from "../../../clients/mcp/transport/line-channel.ts";
import { MessageError, META_KEY, parseServerMessages } from "../../../clients/mcp/transport/rpc-message.ts";

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

test("a server's message that is nested too deep is rejected, and names the request that it answers", () => {
  const reply = (depth: number) => parseServerMessages(`{"jsonrpc":"2.0","id":7,"result":${nested(depth)}}`)[0];
  for (const depth of [1001, 4000, 1_000_000]) {
    const fault = reply(depth);
    assert.ok(fault instanceof MessageError);
    assert.match(fault.message, /nested more than 1000 deep/);
    assert.deepEqual(fault.answers, [7]);
  }
  const [question] = parseServerMessages(
    `{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":${nested(4000)}}`,
  );
  assert.equal(question instanceof MessageError && question.request?.id, 8);
  removeMarks(reply(999));
});

test("a wrong reply names the request that it answers, or says that it answers one; other objects answer none", () => {
  const result = { content: [] };
  const answersOf = (value: unknown): unknown => {
    const [message] = parseServerMessages(JSON.stringify(value));
    return message instanceof MessageError ? message.answers : "valid";
  };
  for (const value of [
    { JSONRPC: "2.0", ID: 7, RESULT: result },
    { "json-rpc": "2.0", Id: "7", response: result },
    { id: 7, result },
    { id: 7 },
    { id: 7, data: "done" },
    [[{ id: 7, result }]],
    JSON.stringify({ jsonrpc: "2.0", id: 7, result }),
    { data: { jsonrpc: "2.0", id: 7, result } },
    { level: 30, msg: JSON.stringify({ jsonrpc: "2.0", id: 7, result }) },
  ])
    assert.deepEqual(JSON.stringify(answersOf(value)).replace('"7"', "7"), "[7]", JSON.stringify(value));
  for (const value of [
    { JSONRPC: "2.0", RESULT: result },
    { jsonrpc: "2.0" },
    { jsonrpc: "2.0", id: [7], result },
    { jsonrpc: "2.0", id: 7.5, Result: result },
    { result },
    { error: "it broke" },
    result,
    {},
  ])
    assert.equal(answersOf(value), "unknown", JSON.stringify(value));
  for (const value of [
    { level: 30, id: 7, msg: "a line of a log" },
    { timestamp: "2026-01-15", error: "a line of a log" },
    { METHOD: "notifications/progress", PARAMS: {} },
    { method: 1, id: 7 },
    { progress: 50 },
    { level: 30, request: { jsonrpc: "2.0", id: 7, method: "tools/call", params: { id: 7, result } } },
    "done",
    7,
    null,
  ])
    assert.deepEqual(answersOf(value), [], JSON.stringify(value));
});

test("a handler that throws loses its message, and not the process", () => {
  const input = new PassThrough();
  const faults: MessageError[] = [];
  const channel = createLineChannel({
    input,
    output: new PassThrough(),
    parse: parseServerMessages,
    onInvalidMessage: () => {},
    onTooLong: "skip",
    closeReason: () => "closed",
  });
  channel.onmessage = () => {
    throw new RangeError("no stack");
  };
  channel.onInvalidMessage = (fault) => void faults.push(fault);
  input.emit("data", Buffer.from('{"jsonrpc":"2.0","id":7,"result":{}}\n{"jsonrpc":"2.0","id":8,"method":"ping"}\n'));
  assert.deepEqual(
    faults.map(({ answers, request }) => [answers, request?.id]),
    [
      [[7], undefined],
      [[], 8],
    ],
  );
});

test("methods with names of built-in members are unknown methods", () => {
  const subscriptions = createSubscriptions();
  const sent: string[] = [];
  const incoming = {
    request: { jsonrpc: "2.0" as const, id: 1, method: "subscriptions/listen", params: {} },
    signal: new AbortController().signal,
  };
  void subscriptions.serve(incoming, {}, (method) => void sent.push(method));
  for (const method of ["constructor", "__proto__", "toString"]) {
    subscriptions.publish(method, {});
    const headers = new Headers({ "mcp-protocol-version": "2026-07-28", "mcp-method": method });
    const params = { _meta: { [META_KEY.version]: "2026-07-28" } };
    assert.equal(headerMismatch(headers, { jsonrpc: "2.0", id: 1, method, params }), null);
  }
  assert.deepEqual(sent, ["notifications/subscriptions/acknowledged"]);
});

test("a client that has disconnected before its subscription begins leaves none behind", async () => {
  const subscriptions = createSubscriptions();
  const sent: string[] = [];
  const notifications = { toolsListChanged: true };
  const request = { jsonrpc: "2.0" as const, id: 1, method: "subscriptions/listen", params: { notifications } };
  const capabilities = { tools: { listChanged: true } };
  await subscriptions.serve({ request, signal: AbortSignal.abort() }, capabilities, (method) => void sent.push(method));
  subscriptions.publish("notifications/tools/list_changed", {});
  assert.deepEqual(sent, []);
});

test("a model can propose a rule only for its own agent", async () => {
  let sent: unknown;
  const gate = new CallGate({
    assent: createAssent({
      url: "http://127.0.0.1:1",
      apiKey: "k",
      retries: 0,
      fetch: (_url, init) => {
        sent = JSON.parse(init?.body as string);
        return Promise.resolve(Response.json({}));
      },
    }),
    agentId: () => Promise.resolve("bot"),
    maxWait: () => 60,
    approvalPage: null,
    log: () => {},
  });
  const terms = { tool: "mcp.notes", operation: "write", reason: "often approved" };
  await gate.propose({ ...terms, agent_id: "another", dismissed: true }, new AbortController().signal);
  assert.deepEqual(sent, { ...terms, agent_id: "bot" });
});
