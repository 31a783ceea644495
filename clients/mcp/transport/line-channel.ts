/** A channel over standard input and output: one message per line, UTF-8. */
import type { Readable, Writable } from "node:stream";
import { decodeUtf8 } from "../../../src/domain/json.ts";
import {
  ERROR_CODE,
  isRequest,
  isResponse,
  findAnsweredIds,
  MessageError,
  type Message,
  type OutgoingMessage,
} from "./rpc-message.ts";
import { NotSentError, type Channel } from "./peer.ts";

/** Maximum size of one line. Bytes. */
export const MAX_LINE_BYTES = 10 * 1024 * 1024;
/** Size of the beginning and of the end of a longer line that are searched for an id. Bytes. */
const EDGE_BYTES = 4096;
/**
 * Delay after which a whole JSON value counts as a line although no line break follows it. Some servers write none, or
 * write the length of a message before it. Milliseconds.
 */
const UNENDED_LINE_MS = 2000;
/** Notifications are dropped while the other side has not read this many bytes. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

interface LineChannelOptions {
  input: Readable;
  output: Writable;
  /** Returns the messages of a line. */
  parse(text: string): (Message | MessageError)[];
  /** Called for a line that is not a valid, unambiguous message. */
  onInvalidMessage(fault: MessageError, reply: (message: OutgoingMessage) => void): void;
  /** What happens if a line is too long. `skip`: the line counts as an invalid message. */
  onTooLong: "close" | "skip";
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
  onTooLong,
  onClose,
  closeReason,
}: LineChannelOptions): Channel {
  let closed = false;
  const channel: Channel = {
    onmessage: () => {},
    onclose: () => {},
    send(message) {
      return new Promise((resolve, reject) => {
        if (closed || !output.writable) return reject(new NotSentError(closeReason()));
        // The other side may not read for a long time. Replies and requests are few; notifications can be many.
        const isNotification = "method" in message && !isRequest(message);
        if (isNotification && output.writableLength > MAX_UNREAD_BYTES) return resolve();
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

  function handle(message: Message | MessageError): void {
    const fault = message instanceof MessageError ? message : deliver(message);
    if (fault === null) return;
    onInvalidMessage(fault, (reply) => void channel.send(reply).catch(() => {}));
    channel.onInvalidMessage?.(fault);
  }

  /** Passes a message on. Returns the fault if its handler throws, which would otherwise end the process. */
  function deliver(message: Message): MessageError | null {
    try {
      channel.onmessage(message);
      return null;
    } catch (error) {
      return new MessageError(`the proxy cannot handle the message: ${String(error)}`, ERROR_CODE.internal, {
        request: isRequest(message) ? message : null,
        answers: isResponse(message) ? [message.id] : [],
      });
    }
  }

  function handleLine(line: Uint8Array): void {
    const text = decodeUtf8(line);
    if (text === null) {
      const answers = findAnsweredIds(Buffer.from(line).toString());
      return handle(new MessageError("the line is not UTF-8", ERROR_CODE.parse, { answers }));
    }
    if (text.trim() !== "") for (const message of parse(text)) handle(message);
  }

  /** @param edges the beginning and the end of the line */
  function handleTooLongLine(edges: string): void {
    const reason = `a line has more than ${MAX_LINE_BYTES} bytes`;
    if (onTooLong === "close") {
      markClosed(reason);
      input.destroy();
      return;
    }
    if (/^\s*\{[^{]*"method"\s*:\s*"notifications\//.test(edges))
      return handle(new MessageError(reason, ERROR_CODE.invalidRequest));
    const ids = findAnsweredIds(`"result": ${edges}`);
    handle(new MessageError(reason, ERROR_CODE.invalidRequest, { answers: ids.length === 0 ? "unknown" : ids }));
  }

  let line: Buffer[] = [];
  let lineBytes = 0;
  let unended: NodeJS.Timeout | undefined;

  function addToLine(chunk: Buffer): void {
    line.push(chunk);
    lineBytes += chunk.length;
    if (lineBytes <= MAX_LINE_BYTES) return;
    if (onTooLong === "close") return endLine();
    const whole = Buffer.concat(line);
    line = [Buffer.from(whole.subarray(0, EDGE_BYTES)), Buffer.from(whole.subarray(-EDGE_BYTES))];
  }

  function endLine(): void {
    const [bytes, isTooLong] = [Buffer.concat(line), lineBytes > MAX_LINE_BYTES];
    line = [];
    lineBytes = 0;
    if (isTooLong) handleTooLongLine(bytes.toString());
    else handleLine(bytes);
  }

  /** Whether the line is JSON, or too long to be read. */
  const isComplete = (): boolean =>
    lineBytes > MAX_LINE_BYTES ||
    parse(Buffer.concat(line).toString()).every(
      (message) => !(message instanceof MessageError) || message.code !== ERROR_CODE.parse,
    );

  input.on("data", (chunk: Buffer) => {
    let start = 0;
    for (let newline = chunk.indexOf(10); newline >= 0; newline = chunk.indexOf(10, start)) {
      addToLine(chunk.subarray(start, newline));
      endLine();
      start = newline + 1;
    }
    if (start < chunk.length) addToLine(chunk.subarray(start));
    clearTimeout(unended);
    if (onTooLong === "skip" && lineBytes > 0)
      unended = setTimeout(() => isComplete() && endLine(), UNENDED_LINE_MS).unref();
  });
  for (const event of ["end", "close", "error"])
    input.on(event, () => {
      clearTimeout(unended);
      // A server can end right after a reply without a line break.
      if (!closed && onTooLong === "skip" && lineBytes > 0) endLine();
      markClosed(closeReason());
    });
  output.on("error", () => markClosed(closeReason()));
  return channel;
}
