/** A channel over standard input and output: one message per line, UTF-8. */
import type { Readable, Writable } from "node:stream";
import { decodeUtf8 } from "../../domain/json.ts";
import { ERROR_CODE, MessageError, type Message } from "./rpc-message.ts";
import type { Channel } from "./peer.ts";

/** Maximum size of one line. Bytes. */
const MAX_LINE_BYTES = 10 * 1024 * 1024;

interface LineChannelOptions {
  input: Readable;
  output: Writable;
  /** @throws MessageError */
  parse(text: string): Message;
  /** Called for a line that is not a valid, unambiguous message. */
  onInvalidMessage(fault: MessageError, reply: (message: Message) => void): void;
  /** Called by `close` after the channel has closed. */
  onClose?: () => Promise<void>;
  /** Returns the reason to report when the input ends. */
  closeReason: () => string;
}

export function createLineChannel({
  input,
  output,
  parse,
  onInvalidMessage,
  onClose,
  closeReason,
}: LineChannelOptions): Channel {
  let closed = false;
  const channel: Channel = {
    onmessage: () => {},
    onclose: () => {},
    send(message) {
      return new Promise((resolve, reject) => {
        if (closed || !output.writable) return reject(new Error(closeReason()));
        output.write(`${JSON.stringify(message)}\n`, (error) => (error == null ? resolve() : reject(error)));
      });
    },
    async close() {
      markClosed("closed");
      await onClose?.();
    },
  };

  function markClosed(reason: string): void {
    if (closed) return;
    closed = true;
    channel.onclose(reason);
  }

  function handleLine(line: Uint8Array): void {
    const text = decodeUtf8(line);
    if (text !== null && text.trim() === "") return;
    try {
      if (text === null) throw new MessageError("the line is not UTF-8", null, ERROR_CODE.parse);
      channel.onmessage(parse(text));
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      onInvalidMessage(error, (message) => void channel.send(message).catch(() => {}));
    }
  }

  let pendingChunks: Buffer[] = [];
  let pendingBytes = 0;
  input.on("data", (chunk: Buffer) => {
    let start = 0;
    for (let newline = chunk.indexOf(10); newline >= 0; newline = chunk.indexOf(10, start)) {
      const line = chunk.subarray(start, newline);
      handleLine(pendingChunks.length === 0 ? line : Buffer.concat([...pendingChunks, line]));
      pendingChunks = [];
      pendingBytes = 0;
      start = newline + 1;
    }
    if (start === chunk.length) return;
    pendingChunks.push(chunk.subarray(start));
    pendingBytes += chunk.length - start;
    if (pendingBytes <= MAX_LINE_BYTES) return;
    pendingChunks = [];
    markClosed(`a line has more than ${MAX_LINE_BYTES} bytes`);
    input.destroy();
  });
  for (const event of ["end", "close", "error"]) input.on(event, () => markClosed(closeReason()));
  output.on("error", () => markClosed(closeReason()));
  return channel;
}
