/** Replies of servers of 2026-07-28 that have an HTTP error status. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { consumeErrorReply } from "../../../clients/mcp/transport/http-messages.ts";
import type { Message, MessageError } from "../../../clients/mcp/transport/rpc-message.ts";

async function consume(body: unknown, status = 404): Promise<{ got: (Message | MessageError)[]; response: Response }> {
  const got: (Message | MessageError)[] = [];
  const response = await consumeErrorReply(Response.json(body, { status }), 7, (message) => void got.push(message));
  return { got, response };
}

test("an error reply to the request is read whatever its status, so that the call does not count as lost", async () => {
  const reply = { jsonrpc: "2.0", id: 7, error: { code: -32601, message: "unknown" } };
  const { got, response } = await consume(reply);
  assert.deepEqual([got, response.status], [[reply], 202]);
});

test("any other body stays in the response, with its status", async () => {
  for (const body of [
    { jsonrpc: "2.0", id: 8, error: { code: -32601, message: "another request" } },
    { jsonrpc: "2.0", id: null, error: { code: -32001, message: "no session" } },
    { error: "not found" },
  ]) {
    const { got, response } = await consume(body, 503);
    assert.deepEqual([got, response.status, await response.json()], [[], 503, body]);
  }
});
