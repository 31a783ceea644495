/** Listens on Node, Deno and Bun, through srvx. */
import type { IncomingMessage, ServerResponse as ServerResponseOfNode } from "node:http";
import type { Duplex } from "node:stream";
import { FastResponse, serve as listen, type Server, type ServerRequest } from "srvx";
import type { FetchHandler } from "../http/handler.ts";
import type { RequestInfo } from "../http/request-info.ts";
import { discardNodeBody, readNodeBody } from "./node-body.ts";

export interface Listening {
  url: string;
  port: number;
  /** Stops accepting, lets what runs finish for at most `graceMs`, then closes every connection. Idempotent. */
  stop(graceMs?: number): Promise<void>;
}

export interface ServeOptions {
  host: string;
  port: number;
}

/**
 * Header lines of one request. Node reads 2,000 by default and drops the rest without a word: a gateway would then pass
 * on headers that nobody here saw. Deno and Bun have limits of about this size, and refuse by themselves.
 */
const MAX_HEADER_LINES = 128;

/** How often connections that have turned idle are closed while the service stops. */
const IDLE_LOOK_MS = 50;

/** The response class that is fastest on this runtime; give it to `createRuntime`. */
export const ServerResponse: typeof Response = FastResponse;

/** Rejects with a message for people when the address cannot be had. */
export async function serve(fetch: FetchHandler, options: ServeOptions): Promise<Listening> {
  const cut = new AbortController();
  const server = listen({
    fetch: (request) => (hasTooManyHeaders(request) ? tooManyHeaders() : fetch(request, infoOf(request))),
    // The handler answers every fault itself; what arrives here is the server's own, and says nothing.
    error: () => new Response("Internal Server Error\n", { status: 500 }),
    hostname: options.host,
    port: options.port,
    manual: true,
    silent: true,
    gracefulShutdown: false,
    // Bun closes an idle connection after 10 seconds: shorter than a granted wait.
    bun: { idleTimeout: 255 },
    deno: { signal: cut.signal },
  });
  const node = server.node?.server;
  // 0: Node drops no line, so that all of them can be counted. The size of all headers together is limited by Node.
  if (node !== undefined && "maxHeadersCount" in node) node.maxHeadersCount = 0;
  node?.on("clientError", answerUnread).on("request", cutEndless);
  await bind(server, options);
  const url = (server.url ?? `http://${options.host}:${options.port}/`).replace(/\/$/, "");
  let stopped: Promise<void> | null = null;
  return {
    url,
    port: Number(new URL(url).port || 80),
    stop: (graceMs = 10_000) => (stopped ??= close(server, graceMs, cut)),
  };
}

const UNREAD: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

/** Node's own answers have no body, and there are gateways that take no body for a yes (docs/gateways.md). */
function answerUnread({ code = "" }: NodeJS.ErrnoException, socket: Duplex): void {
  // As Node does: nothing into the middle of an answer that is under way.
  const underWay = (socket as { _httpMessage?: { headersSent: boolean } | null })._httpMessage?.headersSent === true;
  if (!socket.writable || underWay || code === "ECONNRESET") return void socket.destroy();
  const status = UNREAD[code] ?? "400 Bad Request";
  const body = `${status}\n`;
  const head = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}`;
  socket.end(`${head}\r\n\r\n${body}`, () => socket.destroy());
}

function hasTooManyHeaders({ runtime }: ServerRequest): boolean {
  const request = runtime?.node?.req as IncomingMessage | undefined;
  return request !== undefined && request.rawHeaders.length > 2 * MAX_HEADER_LINES;
}

function tooManyHeaders(): Response {
  const body = `431 Request Header Fields Too Large: at most ${MAX_HEADER_LINES} header lines\n`;
  return new FastResponse(body, { status: 431, headers: { Connection: "close", "Content-Type": "text/plain" } });
}

/** Requests of one connection that may wait for their answers at once. */
const MOST_PIPELINED = 128;
const waiting = new WeakMap<Duplex, number>();

/** Node reads on while nothing is answered: a client that sends without end on one connection would be held in memory whole. */
function cutEndless({ socket }: IncomingMessage, response: ServerResponseOfNode): void {
  const before = waiting.get(socket) ?? 0;
  waiting.set(socket, before + 1);
  response.once("close", () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
  if (before >= MOST_PIPELINED) socket.destroy();
}

function infoOf(request: ServerRequest): RequestInfo {
  const node = request.runtime?.node;
  if (node === undefined) return { ip: () => request.ip, target: () => sentTarget(request.url) };
  return {
    ip: () => request.ip,
    target: () => (node.req as IncomingMessage).url ?? null,
    readBody: (max, take) => readNodeBody(node.req as IncomingMessage, max, take),
    discardBody: (most, patienceMs) => discardNodeBody(node.req as IncomingMessage, most, patienceMs),
  };
}

/** Deno reports the URL as it was sent. Bun resolves dot segments and backslashes first. */
function sentTarget(url: string): string | null {
  return "bun" in process.versions ? null : url.slice(url.indexOf("/", url.indexOf("://") + 3));
}

async function bind(server: Server, at: ServeOptions): Promise<void> {
  try {
    await Promise.all([server.serve(), server.ready()]);
  } catch (error) {
    throw explainBinding(error, at);
  }
}

/** Why an address cannot be had, for people. */
function explainBinding(error: unknown, { host, port }: ServeOptions): unknown {
  const code = (error as { code?: string }).code;
  if (code === "EADDRINUSE") return new Error(`port ${port} on ${host} is taken by another process`, { cause: error });
  if (code === "EACCES")
    return new Error(`port ${port} on ${host} needs more rights than this process has; choose one above 1023`, {
      cause: error,
    });
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return new Error(`"${host}" is not an address of this machine`, { cause: error });
  return error;
}

async function close(server: Server, graceMs: number, cut: AbortController): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), graceMs);
  });
  const closed = server.close().then(() => "closed" as const);
  // On Node a connection whose answer was under way, without a word of closing, turns idle only after that.
  const node = server.node?.server;
  const idle = setInterval(() => {
    if (node !== undefined && "closeIdleConnections" in node) node.closeIdleConnections();
  }, IDLE_LOOK_MS);
  if ((await Promise.race([closed, patience])) === "late") {
    // Deno takes no word but this.
    cut.abort();
    await server.close(true);
  }
  clearInterval(idle);
  clearTimeout(timer);
}

/** First SIGINT or SIGTERM stops gracefully; a second one ends the process at once. */
export function onSignals(stop: (signal: string) => Promise<void>): void {
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(130);
      stopping = true;
      stop(signal).then(
        () => process.exit(0),
        (error: unknown) => {
          process.stderr.write(`assent: stopping failed: ${String(error)}\n`);
          process.exit(1);
        },
      );
    });
  }
}
