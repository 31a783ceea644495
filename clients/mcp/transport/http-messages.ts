/**
 * Reads the messages in a server's HTTP responses. The official transport drops a message that it does not accept, and
 * then waits for the reply that was in it.
 */
import { MAX_LINE_BYTES } from "./line-channel.ts";
import { ResponseLostError } from "./peer.ts";
import {
  ERROR_CODE,
  isResponse,
  MessageError,
  parseServerMessages,
  type Message,
  type RequestId,
} from "./rpc-message.ts";

type OnMessage = (message: Message | MessageError) => void;

/**
 * Calls `onMessage` for the messages of a successful response, or of its stream as they arrive. Returns a response for
 * the official transport, which contains only that a request has its reply.
 */
export async function consumeMessages(
  response: Response,
  onMessage: OnMessage,
): Promise<{ response: Response; isStreamed: boolean }> {
  const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  const { body, status } = response;
  if (body === null) return { response, isStreamed: false };
  const headers = new Headers(response.headers);
  for (const name of ["content-length", "content-encoding"]) headers.delete(name);
  if (type === "text/event-stream") {
    const events = body.pipeThrough(new TransformStream(createEventReader(onMessage)));
    return { response: new Response(events, { status, headers }), isStreamed: true };
  }
  if (type === "application/json") {
    for (const message of parseServerMessages(await readText(body))) onMessage(message);
    return { response: new Response(null, { status: 202, headers }), isStreamed: false };
  }
  return { response: dropBody(response), isStreamed: false };
}

/** Drops a body that is of no use. The official transport would read it, also if it never ends. */
export function dropBody({ body, status, headers }: Response): Response {
  void body?.cancel().catch(() => {});
  return new Response(null, { status, headers });
}

/**
 * Like `consumeMessages`, for a response with an error status to a request of protocol revision 2026-07-28. The revision
 * states the status of some replies, for example 404 of an unknown method. Drops other bodies.
 */
export async function consumeErrorReply(response: Response, id: RequestId, onMessage: OnMessage): Promise<Response> {
  const { body, headers } = response;
  if (body === null || !isJson(headers)) return dropBody(response);
  const reply = parseServerMessages(await readText(body)).find(
    (message) => !(message instanceof MessageError) && isResponse(message) && message.id === id,
  );
  if (reply === undefined) return dropBody(response);
  onMessage(reply);
  return new Response(null, { status: 202 });
}

const isJson = (headers: Headers): boolean =>
  headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() === "application/json";

async function readText(body: ReadableStream<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    chunks.push(part.value);
    bytes += part.value.length;
    if (bytes <= MAX_LINE_BYTES) continue;
    await reader.cancel().catch(() => {});
    throw new ResponseLostError(`the response has more than ${MAX_LINE_BYTES} bytes`);
  }
  return Buffer.concat(chunks).toString();
}

/** Reads the `data` of server-sent events, and passes on their other fields. */
function createEventReader(onMessage: OnMessage): Transformer<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let fields: string[] = [];
  let data: string[] = [];
  /** The parts of the current line. */
  let line: string[] = [];
  let size = 0;

  /** Returns the fields for the official transport. */
  function endEvent(): string {
    const isMessage = fields.every((field) => !field.startsWith("event:") || /^event: ?message$/.test(field));
    const text = data.join("\n");
    // A server sends empty data with an id from which the client can resume the stream.
    const parsed = size > MAX_LINE_BYTES ? [tooLong()] : text === "" ? [] : parseServerMessages(text);
    const replies = parsed.flatMap((message) =>
      message instanceof MessageError || !isResponse(message) ? [] : [message],
    );
    // Events with other names, such as `ping`, keep the connection open.
    for (const message of isMessage ? parsed : replies) onMessage(message);
    const [reply] = replies;
    const seen = reply === undefined ? "" : JSON.stringify({ jsonrpc: "2.0", id: reply.id, result: {} });
    const lines = data.length === 0 ? fields : [...fields, `data: ${seen}`];
    [fields, data, size] = [[], [], 0];
    return lines.length === 0 ? "" : `${lines.join("\n")}\n\n`;
  }

  /** Returns text for the official transport. */
  function endLine(): string {
    const text = line.join("");
    line = [];
    if (text === "") return endEvent();
    if (text.startsWith(":")) {
      size -= text.length;
      return "";
    }
    if (/^data(?::|$)/.test(text)) data.push(text.replace(/^data:? ?/, ""));
    else fields.push(text);
    return "";
  }

  /** Whether the text so far ends with a carriage return, so that a line feed belongs to the same line break. */
  let isAfterReturn = false;

  return {
    transform(chunk, controller) {
      let output = "";
      const text = decoder.decode(chunk, { stream: true });
      const rest = isAfterReturn && text.startsWith("\n") ? text.slice(1) : text;
      if (text !== "") isAfterReturn = text.endsWith("\r");
      for (const [i, part] of rest.split(/\r\n|\r|\n/).entries()) {
        if (i > 0) output += endLine();
        size += part.length;
        // Of an event that is too long, only the size is kept.
        if (size <= MAX_LINE_BYTES) line.push(part);
        else [line, data] = [[], []];
      }
      if (output !== "") controller.enqueue(encoder.encode(output));
    },
    // A server can end the response right after a reply.
    flush(controller) {
      controller.enqueue(encoder.encode(endLine() + endEvent()));
    },
  };
}

function tooLong(): MessageError {
  const text = `an event has more than ${MAX_LINE_BYTES} bytes`;
  return new MessageError(text, ERROR_CODE.invalidRequest, { answers: "unknown" });
}
