/** Stays resident for a user's hooks, so that each of them need not load and connect anew. Ends when it is idle. */
import { rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { isOwn, makeFolder } from "./place.ts";
import { LARGEST_REQUEST, serve } from "./wire.ts";

export interface HookdOptions {
  path: string;
  version: string;
  /** Milliseconds without a call until it ends. */
  idle?: number;
}

const IDLE_MS = 15 * 60_000;
/** Between two signs of life. The starter looks elsewhere when they stop. */
export const BEAT_MS = 1_000;

/** Resolves when it has ended; to false when another one listens there already. */
export async function runHookd({ path, version, idle = IDLE_MS }: HookdOptions): Promise<boolean> {
  makeFolder(path);
  if (await isAnswered(path)) return false;
  rmSync(path, { force: true });
  let open = 0;
  let timer: NodeJS.Timeout | undefined;
  // What an idle end meets has connected already, and is served.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    clearTimeout(timer);
    open++;
    void attend(socket, version).finally(() => {
      if (--open === 0) timer = setTimeout(end, idle);
    });
  });
  const end = (): void => void server.close();
  timer = setTimeout(end, idle);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, end);
  const umask = process.umask(0o177);
  try {
    await listen(server, path);
  } finally {
    process.umask(umask);
  }
  if (!isOwn(path)) {
    server.close();
    throw new Error(`${path} is not safe: it, or its folder, can be written by others`);
  }
  await new Promise<void>((done) => server.once("close", () => done()));
  clearTimeout(timer);
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
    socket.once("connect", () => {
      socket.destroy();
      done(true);
    });
    socket.once("error", () => done(false));
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
