/** Stays resident for a user's hooks, so that each of them need not load and connect anew. Ends when it is idle. */
import { lstatSync, renameSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { isPrivateSocket } from "./hookd-socket.ts";
import { MAX_REQUEST_BYTES, serveRequest } from "./hookd-protocol.ts";

export interface HookdOptions {
  path: string;
  version: string;
  /** Milliseconds without a call until it ends. */
  idle?: number;
}

const DEFAULT_IDLE_MS = 15 * 60_000;
/** Between two signs of life. The starter looks elsewhere when they stop. */
const HEARTBEAT_MS = 1_000;
/** Until one that listens and says nothing, such as a stopped one, is replaced. */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Resolves when it has ended; to false when another one listens there already. It makes no folder: one that is gone by now
 * was taken away, and this ends. @throws what the system says then
 */
export async function runHookd({ path, version, idle = DEFAULT_IDLE_MS }: HookdOptions): Promise<boolean> {
  if (await isServed(path)) return false;
  // Bound under a name of its own and then moved, so that of two that start at once the path leads to one, whole.
  const temporaryPath = `${path}.${process.pid}`;
  rmSync(temporaryPath, { force: true });
  let openConnections = 0;
  let timer: NodeJS.Timeout | undefined;
  // What an idle end meets has connected already, and is served.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    clearTimeout(timer);
    openConnections++;
    void handleConnection(socket, version).finally(() => {
      // Behind the end, a timer would keep the process for nothing.
      if (--openConnections === 0 && server.listening) timer = setTimeout(end, idle);
    });
  });
  const end = (): void => void server.close();
  timer = setTimeout(end, idle);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, end);
  const umask = process.umask(0o177);
  try {
    await listen(server, temporaryPath);
  } finally {
    process.umask(umask);
  }
  let ino: number;
  try {
    if (!isPrivateSocket(temporaryPath))
      throw new Error(`${temporaryPath} is not safe: it, or its folder, can be written by others`);
    ({ ino } = lstatSync(temporaryPath));
    renameSync(temporaryPath, path);
  } catch (error) {
    clearTimeout(timer);
    // Takes what it is bound to away, too.
    server.close();
    throw error;
  }
  const isReplaced = (): boolean => lstatSync(path, { throwIfNoEntry: false })?.ino !== ino;
  // Nobody finds the way to one that was replaced, or whose socket was taken away.
  const watch = setInterval(() => {
    if (isReplaced()) end();
  }, HEARTBEAT_MS);
  await new Promise<void>((done) => server.once("close", () => done()));
  clearTimeout(timer);
  clearInterval(watch);
  if (!isReplaced()) rmSync(path, { force: true });
  return true;
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once("error", fail);
    server.listen(path, () => {
      server.off("error", fail);
      done();
    });
  });
}

function isServed(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection(path);
    const end = (answered: boolean): void => {
      socket.destroy();
      done(answered);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => end(false));
    socket.once("data", () => end(true));
    socket.once("error", () => end(false));
    socket.once("end", () => end(false));
  });
}

async function handleConnection(socket: Socket, version: string): Promise<void> {
  const disconnected = new AbortController();
  socket.on("error", () => socket.destroy());
  socket.once("close", () => disconnected.abort(new Error("the caller is gone")));
  const heartbeat = setInterval(() => socket.write("\n"), HEARTBEAT_MS);
  socket.write("\n");
  try {
    const request = await readRequest(socket);
    const answer = request === null ? null : await serveRequest(request, version, disconnected.signal);
    if (!socket.destroyed) await new Promise<void>((done) => socket.end(`${JSON.stringify(answer)}\n`, () => done()));
  } finally {
    clearInterval(heartbeat);
    socket.destroy();
  }
}

/** Null when it is too large, or the caller went away. */
function readRequest(socket: Socket): Promise<Buffer | null> {
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    let size = 0;
    socket.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_REQUEST_BYTES) done(null);
      else chunks.push(chunk);
    });
    socket.once("end", () => done(Buffer.concat(chunks)));
    socket.once("close", () => done(null));
  });
}
