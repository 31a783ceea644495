/** MCP over standard input and output: a message a line, UTF-8. */
import type { Readable, Writable } from "node:stream";
import { decodeUtf8 } from "../../domain/json.ts";
import { ERROR_CODE, MessageError, type Message } from "./message.ts";
import type { Channel } from "./peer.ts";

/** A longer line is nobody's call. Bytes. */
export const MAX_LINE_BYTES = 10 * 1024 * 1024;

export interface LineChannelOptions {
  input: Readable;
  output: Writable;
  /** @throws MessageFault */
  parse(text: string): Message;
  /** A line that is no message, or not an exact one. */
  onInvalidMessage(fault: MessageError, reply: (message: Message) => void): void;
  /** Called by `close`, besides the end of the output. */
  onClose?: () => Promise<void>;
  /** What is said when the input ends. */
  closeReason: () => string;
}

export function createLineChannel({
  input,
  output,
  parse,
  onInvalidMessage: onfault,
  onClose: end,
  closeReason: gone,
}: LineChannelOptions): Channel {
  let closed = false;
  const channel: Channel = {
    onmessage: () => {},
    onclose: () => {},
    send(message) {
      return new Promise((resolve, reject) => {
        if (closed || !output.writable) return reject(new Error(gone()));
        output.write(`${JSON.stringify(message)}\n`, (error) => (error == null ? resolve() : reject(error)));
      });
    },
    async close() {
      finish("closed");
      await end?.();
    },
  };

  function finish(why: string): void {
    if (closed) return;
    closed = true;
    channel.onclose(why);
  }

  function handleLine(line: Uint8Array): void {
    const text = decodeUtf8(line);
    if (text !== null && text.trim() === "") return;
    try {
      if (text === null) throw new MessageError("the line is not UTF-8", null, ERROR_CODE.parse);
      channel.onmessage(parse(text));
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      onfault(error, (message) => void channel.send(message).catch(() => {}));
    }
  }

  let pendingChunks: Buffer[] = [];
  let pendingBytes = 0;
  input.on("data", (chunk: Buffer) => {
    let start = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, start)) {
      const line = chunk.subarray(start, at);
      handleLine(pendingChunks.length === 0 ? line : Buffer.concat([...pendingChunks, line]));
      pendingChunks = [];
      pendingBytes = 0;
      start = at + 1;
    }
    if (start === chunk.length) return;
    pendingChunks.push(chunk.subarray(start));
    pendingBytes += chunk.length - start;
    if (pendingBytes <= MAX_LINE_BYTES) return;
    pendingChunks = [];
    finish(`a line has more than ${MAX_LINE_BYTES} bytes`);
    input.destroy();
  });
  for (const event of ["end", "close", "error"]) input.on(event, () => finish(gone()));
  output.on("error", () => finish(gone()));
  return channel;
}
