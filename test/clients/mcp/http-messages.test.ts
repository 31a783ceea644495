/** Messages in the HTTP responses of servers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { consumeErrorReply, consumeMessages } from "../../../clients/mcp/transport/http-messages.ts";
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

function sendParts(stream: ReadableStreamDefaultController<Uint8Array>, parts: readonly Uint8Array[]): void {
  for (const part of parts) stream.enqueue(part);
  stream.close();
}

test("any other error has no message, and keeps its status", async () => {
  for (const body of [
    { jsonrpc: "2.0", id: 8, error: { code: -32601, message: "another request" } },
    { jsonrpc: "2.0", id: null, error: { code: -32001, message: "no session" } },
    { error: "not found" },
  ]) {
    const { got, response } = await consume(body, 503);
    assert.deepEqual([got, response.status, response.body], [[], 503, null]);
  }
});

test("a reply in a stream is read with each kind of line break, in parts, without its last line break, and in an event with a name", async () => {
  const reply = { jsonrpc: "2.0", id: 7, result: { content: [{ type: "text", text: "h\u00f6" }] } };
  const data = `data: ${JSON.stringify(reply)}`;
  const lines = `data: ${JSON.stringify(reply, null, 1).replaceAll("\n", "\ndata: ")}\n\n`;
  for (const text of [
    ...["\n", "\r", "\r\n"].map((end) => `event: ping${end}data: {}${end}${end}: comment${end}${data}${end}${end}`),
    ...["\n", "\r", "\r\n"].map((end) => lines.replaceAll("\n", end)),
    `event: response\n${data}\n\n`,
    `\ufeff${data}\n\n`,
    `${data}\n`,
    data,
  ])
    for (const size of [1, 7, text.length]) {
      const bytes = new TextEncoder().encode(text);
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      const got: (Message | MessageError)[] = [];
      const { response } = await consumeMessages(
        new Response(new ReadableStream({ start: (stream) => sendParts(stream, parts) }), {
          headers: { "content-type": "text/event-stream" },
        }),
        (message) => void got.push(message),
      );
      await response.text();
      assert.deepEqual(got, [reply], JSON.stringify({ text, size }));
    }
});
