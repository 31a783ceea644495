/** Listens on Node, Deno and Bun, through srvx. */
import { Worker } from "node:worker_threads";
import type { IncomingMessage, ServerResponse as ServerResponseOfNode } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { FastResponse, serve as listen, type Server, type ServerRequest } from "srvx";
import type { FetchHandler } from "../http/handler.ts";
import { isLoopbackHost } from "../domain/loopback.ts";
import type { RequestInfo } from "../http/request-info.ts";
import { discardNodeBody, readNodeBody } from "./node-body.ts";

export interface RunningServer {
  url: string;
  port: number;
  /**
   * Stops accepting requests, waits up to `graceMs` for running requests, and then closes every connection. Idempotent.
   */
  stop(graceMs?: number): Promise<void>;
}

interface ServeOptions {
  /** Address or name to listen on. Every loopback host means both loopback addresses. */
  host: string;
  /** 0 selects a free port. */
  port: number;
}

/** Maximum number of ports that are tried for port 0 until one is free on both loopback addresses. */
const MAX_PORTS = 20;

/**
 * Maximum number of header lines of one request. By default Node silently drops lines after the 2,000th, so a gateway
 * could forward headers that this service never checked. Deno and Bun have similar limits and reject such requests
 * themselves.
 */
const MAX_HEADER_LINES = 128;

/**
 * Node's keep-alive timeout for idle connections, in milliseconds. It is longer than a proxy's default (nginx and AWS:
 * 60 seconds). If the service closed the connection first, a proxy could send a POST on it at the same moment, and
 * would not know whether it was received.
 */
const KEEP_ALIVE_MS = 75_000;

/** Interval at which idle connections are closed while the service stops. Milliseconds. */
const IDLE_CHECK_MS = 50;

/** The fastest response class on this runtime. Pass it to `createRuntime`. */
export const ServerResponse: typeof Response = FastResponse;

/**
 * Starts the server. Rejects with a readable message if it cannot listen on the address.
 *
 * Listens on both loopback addresses, or on the one that the machine has. Browsers try both for `localhost`, so another
 * program that had the port on one of them would receive requests, cookies and keys that are meant for this server.
 */
export async function serve(fetch: FetchHandler, { host, port }: ServeOptions): Promise<RunningServer> {
  const [address, other] = addressesOf(host);
  for (let tried = 1; ; tried++) {
    const server = await listenOn(fetch, { host: address, port });
    if (other === undefined) return server;
    try {
      return join(server, await listenOn(fetch, { host: other, port: server.port }));
    } catch (error) {
      const { code } = ((error as Error).cause ?? error) as { code?: string };
      if (MISSING_ADDRESS.includes(code ?? "")) return server;
      await server.stop();
      if (code !== "EADDRINUSE") throw error;
      if (port !== 0 || tried === MAX_PORTS)
        throw new Error(`${(error as Error).message}, which would receive requests of browsers on this machine`, {
          cause: (error as Error).cause,
        });
    }
  }
}

/** Codes of the errors on a machine without IPv6 or IPv4. */
const MISSING_ADDRESS = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];

/** Returns the address to listen on, and the loopback address that it does not include. */
function addressesOf(host: string): [address: string, other?: string] {
  if (host === "::1") return [host, "127.0.0.1"];
  if (host === "0.0.0.0") return [host, "::1"];
  return isLoopbackHost(host) ? ["127.0.0.1", "::1"] : [host];
}

/** Returns one server for both. Its address is that of the first one. */
function join(server: RunningServer, other: RunningServer): RunningServer {
  return {
    ...server,
    stop: async (graceMs) => void (await Promise.all([server.stop(graceMs), other.stop(graceMs)])),
  };
}

async function listenOn(fetch: FetchHandler, options: ServeOptions): Promise<RunningServer> {
  const cut = new AbortController();
  const server = listen({
    fetch: (request) => (hasTooManyHeaders(request) ? tooManyHeaders() : fetch(request, infoOf(request))),
    // Called only for errors of the server library, because the handler responds to its own errors. The response
    // reveals no details.
    error: () => new Response("Internal Server Error\n", { status: 500 }),
    hostname: options.host,
    port: options.port,
    manual: true,
    silent: true,
    gracefulShutdown: false,
    // By default, Bun closes an idle connection after 10 seconds, which is shorter than the maximum `wait` of a
    // request.
    bun: { idleTimeout: 255 },
    deno: { signal: cut.signal },
  });
  const node = server.node?.server;
  // With 0, Node does not drop header lines, so that the service can count them. Node still limits their total size.
  if (node !== undefined && "maxHeadersCount" in node) node.maxHeadersCount = 0;
  if (node !== undefined && "keepAliveTimeout" in node) node.keepAliveTimeout = KEEP_ALIVE_MS;
  node?.on("clientError", answerClientError).on("request", limitPipelining);
  const connections = new Set<Socket>();
  node?.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  await bind(server, options);
  const url = (server.url ?? `http://${options.host}:${options.port}/`).replace(/\/$/, "");
  let stopped: Promise<void> | null = null;
  return {
    url,
    port: Number(new URL(url).port || 80),
    stop: (graceMs = 10_000) => (stopped ??= close(server, graceMs, cut, connections)),
  };
}

const CLIENT_ERROR_STATUS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

/**
 * Responds to a request that Node could not parse. Node's own response has no body, which some gateways treat as an
 * allow (docs/gateways.md).
 */
function answerClientError({ code = "" }: NodeJS.ErrnoException, socket: Duplex): void {
  // Like Node, do not write to a response that has already started.
  const isResponding =
    (socket as { _httpMessage?: { headersSent: boolean } | null })._httpMessage?.headersSent === true;
  if (!socket.writable || isResponding || code === "ECONNRESET") return void socket.destroy();
  const status = CLIENT_ERROR_STATUS[code] ?? "400 Bad Request";
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

/** Maximum number of requests without a response on one connection. */
const MAX_PIPELINED = 128;
const unanswered = new WeakMap<Duplex, number>();

/**
 * Closes a connection with too many pipelined requests. Node reads requests without backpressure, which could exhaust
 * memory.
 */
function limitPipelining({ socket }: IncomingMessage, response: ServerResponseOfNode): void {
  const before = unanswered.get(socket) ?? 0;
  unanswered.set(socket, before + 1);
  response.once("close", () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
  if (before >= MAX_PIPELINED) socket.destroy();
}

function infoOf(request: ServerRequest): RequestInfo {
  const node = request.runtime?.node;
  if (node === undefined) return { ip: () => request.ip, target: () => sentTarget(request.url) };
  return {
    ip: () => request.ip,
    target: () => (node.req as IncomingMessage).url ?? null,
    readBody: (max, take) => readNodeBody(node.req as IncomingMessage, max, take),
    discardBody: (maxBytes, timeoutMs) => discardNodeBody(node.req as IncomingMessage, maxBytes, timeoutMs),
  };
}

/**
 * Returns the request target as the client sent it. Returns null on Bun, which normalizes dot segments and backslashes
 * first.
 */
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

/** Returns an error that explains why the server cannot listen on the address. */
function explainBinding(error: unknown, { host, port }: ServeOptions): unknown {
  const code = (error as { code?: string }).code;
  if (code === "EADDRINUSE") return new Error(`port ${port} on ${host} is in use by another process`, { cause: error });
  if (code === "EACCES")
    return new Error(
      `port ${port} on ${host} requires privileges that this process does not have; choose a port above 1023`,
      {
        cause: error,
      },
    );
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return new Error(`"${host}" is not an address of this machine`, { cause: error });
  return error;
}

async function close(
  server: Server,
  graceMs: number,
  cut: AbortController,
  connections: ReadonlySet<Socket>,
): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), graceMs);
  });
  const closed = server.close().then(() => "closed" as const);
  // In Node, a keep-alive connection is not idle until its current response has been sent, so check repeatedly.
  const node = server.node?.server;
  const bytesRead = new WeakMap<Socket, number>();
  const idle = setInterval(() => {
    if (node !== undefined && "closeIdleConnections" in node) node.closeIdleConnections();
    // Node treats a connection that has not sent a complete request header as busy.
    for (const socket of connections) {
      const isStalled = bytesRead.get(socket) === socket.bytesRead && socket.writableLength === 0;
      if (isStalled && (unanswered.get(socket) ?? 0) === 0) socket.destroy();
      else bytesRead.set(socket, socket.bytesRead);
    }
  }, IDLE_CHECK_MS);
  if ((await Promise.race([closed, timeout])) === "late") {
    // On Deno, only the signal closes the remaining connections.
    cut.abort();
    await server.close(true);
  }
  clearInterval(idle);
  clearTimeout(timer);
}

/** Stops gracefully on the first SIGINT or SIGTERM, and exits immediately on the second. */
export function stopOnSignals(stop: (signal: string) => Promise<void>): void {
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(130);
      stopping = true;
      endIfStalled();
      stop(signal).then(
        () => process.exit(0),
        (error: unknown) => {
          process.stderr.write(`assent: stopping failed: ${String(error)}\n`);
          // An exit would wait for threads that wait for a disk. The process can be killed at any time without loss.
          process.kill(process.pid, "SIGKILL");
        },
      );
    });
  }
}

/** Number of seconds after which a main thread that does not respond ends the process, if the process is stopping. */
const STALL_SECONDS = 10;

/** Runs in a thread of its own. The main thread cannot run a timer while it waits for a disk. */
const STALL_GUARD = `
const { workerData: { beats, limit } } = require("node:worker_threads");
let [last, missed] = [-1, 0];
setInterval(() => {
  const beat = Atomics.load(beats, 0);
  missed = beat === last ? missed + 1 : 0;
  last = beat;
  if (missed < limit) return;
  const text = "assent: stopping failed: the process did not respond for " + limit + " s, probably because a disk does not respond; nothing that was acknowledged is lost\\n";
  require("node:fs").writeSync(2, text);
  process.kill(process.pid, "SIGKILL");
}, 1000);`;

/**
 * Kills the process if its main thread does not respond for some seconds, for example because a disk does not complete a
 * sync. The process can be killed at any time without loss.
 */
function endIfStalled(): void {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(beats, 0, 1), 500).unref();
  const guard = new Worker(STALL_GUARD, { eval: true, workerData: { beats, limit: STALL_SECONDS } });
  guard.on("error", () => undefined);
  guard.unref();
}
