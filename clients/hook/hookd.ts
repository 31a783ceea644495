/**
 * Background process that decides for all hooks of a user, so that the hooks do not have to load the client and connect
 * each time. It exits when it is idle.
 */
import { lstatSync, renameSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { isPrivateSocket } from "./hookd-socket.ts";
import { MAX_REQUEST_BYTES, serveRequest } from "./hookd-protocol.ts";

interface HookdOptions {
  path: string;
  version: string;
  /** Idle time before the process exits. Milliseconds. */
  idle?: number;
}

const DEFAULT_IDLE_MS = 15 * 60_000;
/** Interval between heartbeats. The launcher uses a worker if they stop. Milliseconds. */
const HEARTBEAT_MS = 1_000;
/**
 * Timeout for the response of a running hookd. A hookd that does not respond, for example because it is suspended, is
 * replaced. Milliseconds.
 */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Runs hookd. Resolves to true when it has ended, and to false if another hookd already serves the socket. The folder
 * must exist: hookd does not create it, so that deleting the folder ends hookd.
 * @throws the system's error
 */
export async function runHookd({ path, version, idle = DEFAULT_IDLE_MS }: HookdOptions): Promise<boolean> {
  if (await isServed(path)) return false;
  // Bind a temporary name and rename it. The path then always leads to one complete socket, even if two processes start
  // at the same time.
  const temporaryPath = `${path}.${process.pid}`;
  rmSync(temporaryPath, { force: true });
  let openConnections = 0;
  let timer: NodeJS.Timeout | undefined;
  // The server still serves connections that exist when it closes.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    clearTimeout(timer);
    openConnections++;
    void handleConnection(socket, version).finally(() => {
      // Do not set a timer after the server has closed, because it would keep the process alive.
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
  let inode: number;
  try {
    if (!isPrivateSocket(temporaryPath))
      throw new Error(`${temporaryPath} is not safe: other users can write to it or to its folder`);
    ({ ino: inode } = lstatSync(temporaryPath));
    renameSync(temporaryPath, path);
  } catch (error) {
    clearTimeout(timer);
    // Closing also deletes the socket file.
    server.close();
    throw error;
  }
  const isReplaced = (): boolean => lstatSync(path, { throwIfNoEntry: false })?.ino !== inode;
  // Exit if the socket was replaced or deleted, because launchers can then no longer connect.
  const watchTimer = setInterval(() => {
    if (isReplaced()) end();
  }, HEARTBEAT_MS);
  await new Promise<void>((resolve) => server.once("close", () => resolve()));
  clearTimeout(timer);
  clearInterval(watchTimer);
  if (!isReplaced()) rmSync(path, { force: true });
  return true;
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    const end = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
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
  socket.once("close", () => disconnected.abort(new Error("the caller disconnected")));
  const heartbeat = setInterval(() => socket.write("\n"), HEARTBEAT_MS);
  socket.write("\n");
  try {
    const request = await readRequest(socket);
    const answer = request === null ? null : await serveRequest(request, version, disconnected.signal);
    if (!socket.destroyed)
      await new Promise<void>((resolve) => socket.end(`${JSON.stringify(answer)}\n`, () => resolve()));
  } finally {
    clearInterval(heartbeat);
    socket.destroy();
  }
}

/** Resolves to null if the request is too large or the caller disconnected. */
function readRequest(socket: Socket): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    socket.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_REQUEST_BYTES) resolve(null);
      else chunks.push(chunk);
    });
    socket.once("end", () => resolve(Buffer.concat(chunks)));
    socket.once("close", () => resolve(null));
  });
}
