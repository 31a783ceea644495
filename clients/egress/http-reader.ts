/**
 * Reads HTTP/1.1 requests of the agent. Accepts only what every server reads in the same way, because the proxy must
 * forward exactly the request that was decided. Therefore it does not use the parser of Node, which repairs some
 * requests. The proxy writes the head and the framing of the forwarded request itself.
 */
import type { Duplex } from "node:stream";
import { Refusal, unreadableRefusal } from "./refusal.ts";

const MAX_HEAD = 64 * 1024;
const MAX_HEADERS = 200;
const END_OF_HEAD = "\r\n\r\n";

/** Headers that must not be repeated. */
const SINGLE_HEADERS =
  "host content-length content-type content-encoding transfer-encoding authorization proxy-authorization expect trailer upgrade".split(
    " ",
  );
/** Options of `Connection` that name no other header. A request that names others asks to drop these headers. */
const CONNECTION_OPTIONS = ["keep-alive", "close", "te", "proxy-connection"];

/** Reads bytes of a stream on demand. */
export class ByteReader {
  private readonly stream: Duplex;
  private chunks: Buffer[] = [];
  private size = 0;
  private ended = false;
  private wake: (() => void) | null = null;
  private readonly highWaterMark: number;

  constructor(stream: Duplex, highWaterMark: number) {
    this.stream = stream;
    this.highWaterMark = highWaterMark;
    stream.on("data", this.onData);
    stream.on("end", this.onEnd);
    stream.on("close", this.onEnd);
  }

  private readonly onData = (chunk: Buffer): void => {
    this.chunks.push(chunk);
    this.size += chunk.length;
    if (this.size > this.highWaterMark && this.wake === null) this.stream.pause();
    this.wake?.();
  };

  private readonly onEnd = (): void => {
    this.ended = true;
    this.wake?.();
  };

  /** Resolves when more bytes have arrived. Resolves to false if none will. */
  private async more(): Promise<boolean> {
    if (this.ended) return false;
    const before = this.size;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      this.stream.resume();
    });
    this.wake = null;
    return this.size > before;
  }

  private buffered(): Buffer {
    if (this.chunks.length !== 1) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0] as Buffer;
  }

  /** Returns the bytes before `end`, and skips `end`. Returns null if the stream ends before the first byte. */
  async readUntil(end: string, limit: number, tooLong: Refusal): Promise<Buffer | null> {
    for (;;) {
      const buffered = this.buffered();
      const at = buffered.indexOf(end);
      if (at > limit || (at < 0 && this.size > limit)) throw tooLong;
      if (at >= 0) {
        this.drop(at + end.length);
        return buffered.subarray(0, at);
      }
      if (await this.more()) continue;
      if (this.size === 0) return null;
      throw unreadableRefusal("the request ended early");
    }
  }

  async readExactly(length: number): Promise<Buffer> {
    while (this.size < length) if (!(await this.more())) throw unreadableRefusal("the request ended early");
    const bytes = this.buffered().subarray(0, length);
    this.drop(length);
    return bytes;
  }

  private drop(length: number): void {
    this.chunks = [this.buffered().subarray(length)];
    this.size -= length;
  }

  /** Stops reading, so that another reader can continue. Returns the bytes that were read and not used. */
  detach(): Buffer {
    this.stream.off("data", this.onData).off("end", this.onEnd).off("close", this.onEnd);
    this.stream.pause();
    return this.buffered();
  }
}

export interface RequestHead {
  method: string;
  /** The target as sent: `/path?query`, `http://host/path?query`, or `host:port` for CONNECT. */
  target: string;
  /** Names in lowercase, in the order in which they were sent. */
  headers: [name: string, value: string][];
}

/** Returns the value of a header that is sent once at most; null if it is absent. */
export const headerOf = ({ headers }: Pick<RequestHead, "headers">, name: string): string | null =>
  headers.find(([each]) => each === name)?.[1] ?? null;

/** Reads the head of the next request. Resolves to null at the end of the stream. Throws Refusal. */
export async function readHead(reader: ByteReader): Promise<RequestHead | null> {
  const tooLong = unreadableRefusal(`the head of the request is longer than ${MAX_HEAD} bytes`, 431);
  const bytes = await reader.readUntil(END_OF_HEAD, MAX_HEAD, tooLong);
  if (bytes === null) return null;
  const [first = "", ...lines] = bytes.toString("latin1").split("\r\n");
  if (first.startsWith("PRI * HTTP/2")) throw unreadableRefusal("the proxy does not speak HTTP/2", 505);
  const [, method, target, version] = /^([A-Z]{1,20}) ([!-~]+) HTTP\/(\d\.\d)$/.exec(first) ?? [];
  if (method === undefined || target === undefined)
    throw unreadableRefusal("the request does not start with an HTTP/1.1 request line");
  // Python before 3.13 sends CONNECT as HTTP/1.0 without Host. The protocol ends with the head, so the version is of no
  // consequence.
  if (version !== "1.1" && !(version === "1.0" && method === "CONNECT"))
    throw unreadableRefusal(`the proxy speaks HTTP/1.1 only; got HTTP/${version}`, 505);
  if (lines.length > MAX_HEADERS) throw unreadableRefusal(`the request has more than ${MAX_HEADERS} headers`, 431);
  const headers = lines.map(readHeaderLine);
  assertPlainHeaders(method, headers);
  return { method, target, headers };
}

function readHeaderLine(line: string): [string, string] {
  if (/^[ \t]/.test(line)) throw unreadableRefusal("a header continues on another line");
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~]*)$/.exec(line) ?? [];
  if (name === undefined || value === undefined)
    throw unreadableRefusal("a header has characters that servers interpret differently");
  return [name.toLowerCase(), value.trim()];
}

function assertPlainHeaders(method: string, headers: [string, string][]): void {
  const seen = new Set<string>();
  for (const [name, value] of headers) {
    // CGI programs read `Content_Length` as `Content-Length`.
    const read = name.replaceAll("_", "-");
    if (read !== name && SINGLE_HEADERS.includes(read))
      throw unreadableRefusal(`servers can read the header ${name} as ${read}`);
    if (seen.has(name) && SINGLE_HEADERS.includes(name)) throw unreadableRefusal(`the request has two headers ${name}`);
    seen.add(name);
    if (name === "connection")
      for (const option of value.toLowerCase().split(/[ \t]*,[ \t]*/))
        if (!CONNECTION_OPTIONS.includes(option))
          throw unreadableRefusal(`the connection option "${option}" changes the request or its protocol`);
  }
  if (!seen.has("host") && method !== "CONNECT") throw unreadableRefusal("the request has no header host");
  if (seen.has("expect")) throw unreadableRefusal("the proxy reads the whole body before it answers; omit Expect", 417);
  if (seen.has("trailer")) throw unreadableRefusal("the request announces trailers");
  if (seen.has("content-length") && seen.has("transfer-encoding"))
    throw unreadableRefusal("the request has both Content-Length and Transfer-Encoding");
}

/** Reads the whole body of the request. Throws Refusal. */
export async function readBody(reader: ByteReader, head: RequestHead, limit: number): Promise<Buffer> {
  const tooLarge = new Refusal(`the body is longer than ${limit} bytes, the value of max_body_bytes in egress.yaml`, {
    status: 413,
    code: "BODY_TOO_LARGE",
  });
  const encoding = headerOf(head, "transfer-encoding");
  if (encoding === null) {
    const length = headerOf(head, "content-length") ?? "0";
    if (!/^\d{1,15}$/.test(length)) throw unreadableRefusal("Content-Length is not a number");
    if (Number(length) > limit) throw tooLarge;
    return reader.readExactly(Number(length));
  }
  if (encoding.toLowerCase() !== "chunked") throw unreadableRefusal("Transfer-Encoding is not chunked");
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const line = await reader.readUntil("\r\n", 16, unreadableRefusal("the size of a chunk is not valid"));
    const size = line?.toString("latin1") ?? "";
    // No extensions, signs or spaces, which servers read differently.
    if (!/^[0-9A-Fa-f]{1,8}$/.test(size)) throw unreadableRefusal("the size of a chunk is not valid");
    const length = Number.parseInt(size, 16);
    total += length;
    if (total > limit) throw tooLarge;
    chunks.push(await reader.readExactly(length));
    if ((await reader.readExactly(2)).toString("latin1") !== "\r\n")
      throw unreadableRefusal(length === 0 ? "the request has trailers" : "a chunk is longer than its size");
    if (length === 0) return Buffer.concat(chunks);
  }
}
