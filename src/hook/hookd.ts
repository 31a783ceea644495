/** Stays resident for a user's hooks, so that each of them need not load and connect anew. Ends when it is idle. */
import { lstatSync, renameSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { isOwn } from "./hookd-socket.ts";
import { LARGEST_REQUEST, serve } from "./hookd-protocol.ts";

export interface HookdOptions {
  path: string;
  version: string;
  /** Milliseconds without a call until it ends. */
  idle?: number;
}

const IDLE_MS = 15 * 60_000;
/** Between two signs of life. The starter looks elsewhere when they stop. */
const BEAT_MS = 1_000;
/** Until one that listens and says nothing, such as a stopped one, is replaced. */
const SILENCE_MS = 2_000;

/**
 * Resolves when it has ended; to false when another one listens there already. It makes no folder: one that is gone by now
 * was taken away, and this ends. @throws what the system says then
 */
export async function runHookd({ path, version, idle = IDLE_MS }: HookdOptions): Promise<boolean> {
  if (await isAnswered(path)) return false;
  // Bound under a name of its own and then moved, so that of two that start at once the path leads to one, whole.
  const bound = `${path}.${process.pid}`;
  rmSync(bound, { force: true });
  let open = 0;
  let timer: NodeJS.Timeout | undefined;
  // What an idle end meets has connected already, and is served.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    clearTimeout(timer);
    open++;
    void attend(socket, version).finally(() => {
      // Behind the end, a timer would keep the process for nothing.
      if (--open === 0 && server.listening) timer = setTimeout(end, idle);
    });
  });
  const end = (): void => void server.close();
  timer = setTimeout(end, idle);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, end);
  const umask = process.umask(0o177);
  try {
    await listen(server, bound);
  } finally {
    process.umask(umask);
  }
  let ino: number;
  try {
    if (!isOwn(bound)) throw new Error(`${bound} is not safe: it, or its folder, can be written by others`);
    ({ ino } = lstatSync(bound));
    renameSync(bound, path);
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
  }, BEAT_MS);
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

function isAnswered(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection(path);
    const end = (answered: boolean): void => {
      socket.destroy();
      done(answered);
    };
    socket.setTimeout(SILENCE_MS, () => end(false));
    socket.once("data", () => end(true));
    socket.once("error", () => end(false));
    socket.once("end", () => end(false));
  });
}

async function attend(socket: Socket, version: string): Promise<void> {
  const gone = new AbortController();
  socket.on("error", () => socket.destroy());
  socket.once("close", () => gone.abort(new Error("the caller is gone")));
  const beat = setInterval(() => socket.write("\n"), BEAT_MS);
  socket.write("\n");
  try {
    const request = await read(socket);
    const answer = request === null ? null : await serve(request, version, gone.signal);
    if (!socket.destroyed) await new Promise<void>((done) => socket.end(`${JSON.stringify(answer)}\n`, () => done()));
  } finally {
    clearInterval(beat);
    socket.destroy();
  }
}

/** Null when it is too large, or the caller went away. */
function read(socket: Socket): Promise<Buffer | null> {
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    let size = 0;
    socket.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > LARGEST_REQUEST) done(null);
      else chunks.push(chunk);
    });
    socket.once("end", () => done(Buffer.concat(chunks)));
    socket.once("close", () => done(null));
  });
}
