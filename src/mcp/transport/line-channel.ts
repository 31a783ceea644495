/** MCP over standard input and output: a message a line, UTF-8. */
import type { Readable, Writable } from "node:stream";
import { decodeUtf8 } from "../../domain/json.ts";
import { CODE, MessageFault, type Message } from "./message.ts";
import type { Channel } from "./peer.ts";

/** A longer line is nobody's call. Bytes. */
export const LONGEST_LINE = 10 * 1024 * 1024;

export interface LineOptions {
  input: Readable;
  output: Writable;
  /** @throws MessageFault */
  parse(text: string): Message;
  /** A line that is no message, or not an exact one. */
  onfault(fault: MessageFault, reply: (message: Message) => void): void;
  /** Called by `close`, besides the end of the output. */
  end?: () => Promise<void>;
  /** What is said when the input ends. */
  gone: () => string;
}

export function lineChannel({ input, output, parse, onfault, end, gone }: LineOptions): Channel {
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

  function take(line: Uint8Array): void {
    const text = decodeUtf8(line);
    if (text !== null && text.trim() === "") return;
    try {
      if (text === null) throw new MessageFault("the line is not UTF-8", null, CODE.parse);
      channel.onmessage(parse(text));
    } catch (error) {
      if (!(error instanceof MessageFault)) throw error;
      onfault(error, (message) => void channel.send(message).catch(() => {}));
    }
  }

  let parts: Buffer[] = [];
  let size = 0;
  input.on("data", (chunk: Buffer) => {
    let start = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, start)) {
      const line = chunk.subarray(start, at);
      take(parts.length === 0 ? line : Buffer.concat([...parts, line]));
      parts = [];
      size = 0;
      start = at + 1;
    }
    if (start === chunk.length) return;
    parts.push(chunk.subarray(start));
    size += chunk.length - start;
    if (size <= LONGEST_LINE) return;
    parts = [];
    finish(`a line has more than ${LONGEST_LINE} bytes`);
    input.destroy();
  });
  for (const event of ["end", "close", "error"]) input.on(event, () => finish(gone()));
  output.on("error", () => finish(gone()));
  return channel;
}
