/**
 * Threads that speak HTTP, beside the one that decides: sockets, parsing and writing are theirs; what a request may, and
 * what is recorded, is decided in one place as it is without them. The kernel spreads connections over them.
 */
import { createServer, type AddressInfo } from "node:net";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import type { Logger } from "../../contract/host.ts";
import type { FetchHandler } from "../../http/handler.ts";
import { startThread } from "../../threads.ts";
import { explainBinding, serve, ServerResponse, type Listening, type ServeOptions } from "../index.ts";
import { createBehind } from "./behind.ts";
import { CarriedResponse } from "./carried.ts";
import type { FrontOrder, FrontState, Upward } from "./messages.ts";

export interface ThreadsOptions extends Pick<ServeOptions, "host" | "port"> {
  /** How many in all: one decides, and so many fewer speak HTTP. */
  threads: number;
  log: Logger;
  /** How often a front is asked whether it is there. Milliseconds. */
  pingMs?: number;
  /** For tests. */
  startFront?(at: ServeOptions): Worker;
}

/** Beyond the grace that connections have, for a thread to end. Milliseconds. */
const MARGIN = 1000;
/** Pings in a row that a front may leave unanswered. A busy machine may take long to begin one. */
const MOST_SILENT = 30;
/** Before a front that was lost is begun again: longer each time, unless it stood for longer than the longest. Milliseconds. */
const [SHORTEST, LONGEST] = [100, 10_000];

/** The response class for `createRuntime`. */
export const responseFor = (threads: number): typeof Response => (threads > 1 ? CarriedResponse : ServerResponse);

/** As `serve`, with so many threads. The handler's responses are of the class of `responseFor`. */
export function serveWith(fetch: FetchHandler, options: ThreadsOptions): Promise<Listening> {
  return options.threads > 1 ? serveInThreads(fetch, options) : serve(fetch, options);
}

async function serveInThreads(fetch: FetchHandler, options: ThreadsOptions): Promise<Listening> {
  const { log } = options;
  const shared = options.threads > 2;
  const fault = threadsFault(options.threads);
  if (fault !== null) throw new Error(fault);
  const at: ServeOptions = { host: options.host, port: await freePort(options), shared };
  const start = options.startFront ?? startFront;
  const fronts = new Map<Worker, Promise<unknown>>();
  let stopping: Promise<void> | null = null;

  /** One front. `listening` rejects where it does not come to that; `ended` resolves with why. */
  function begin(): { listening: Promise<string>; ended: Promise<string> } {
    const thread = start(at);
    const behind = createBehind(fetch, (message) => thread.postMessage(message));
    let why = "it ended";
    let silent = 0;
    const tell = (order: FrontOrder): void => thread.postMessage(order);
    const pings = setInterval(() => {
      if (++silent <= MOST_SILENT) return tell({ order: "ping" });
      why = "it did not answer";
      void thread.terminate();
    }, options.pingMs ?? 1000);
    pings.unref?.();
    const ended = new Promise<string>((resolve) => {
      thread.on("error", (error) => (why = String(error)));
      thread.on("exit", () => {
        clearInterval(pings);
        fronts.delete(thread);
        behind.lost();
        resolve(why);
      });
    });
    fronts.set(thread, ended);
    const listening = new Promise<string>((resolve, reject) => {
      thread.on("message", (message: Upward | FrontState) => {
        silent = 0;
        if (!("state" in message)) behind.heard(message);
        else if (message.state === "listening") resolve(message.url);
        else if (message.state !== "here") {
          if (message.state === "failed") reject(new Error(message.message));
          // It does not end by itself on every runtime.
          void thread.terminate();
        }
      });
      void ended.then((why) => reject(new Error(`a thread that speaks HTTP was lost: ${why}`)));
    });
    return { listening, ended };
  }

  /** Begins another whenever one is lost. Its connections are cut; nobody is told a verdict that is none. */
  async function keep(front: ReturnType<typeof begin>): Promise<void> {
    let pause = SHORTEST;
    for (let current = front; ; current = begin()) {
      const began = performance.now();
      const why = await current.listening.then(
        () => current.ended,
        (error: Error) => error.message,
      );
      if (stopping !== null) return;
      pause = performance.now() - began > LONGEST ? SHORTEST : Math.min(2 * pause, LONGEST);
      log.error("a thread that speaks HTTP ended, and its connections with it; another one is begun", { why });
      await setTimeout(pause);
      if (stopping !== null) return;
    }
  }

  async function stop(graceMs: number): Promise<void> {
    const ending = [...fronts].map(async ([thread, ended]) => {
      thread.postMessage({ order: "stop", graceMs } satisfies FrontOrder);
      await Promise.race([ended, setTimeout(graceMs + MARGIN, undefined, { ref: false })]);
      await thread.terminate();
    });
    await Promise.all(ending);
  }

  const begun = Array.from({ length: options.threads - 1 }, begin);
  try {
    const [url = ""] = await Promise.all(begun.map(({ listening }) => listening));
    for (const front of begun) void keep(front);
    return { url, port: at.port, stop: (graceMs = 10_000) => (stopping ??= stop(graceMs)) };
  } catch (error) {
    await stop(0);
    throw error;
  }
}

export const startFront = (at: ServeOptions): Worker =>
  startThread(import.meta.url, "front-thread", { workerData: at });

/** Why so many threads cannot be had here, or null: Node before 22.12 shares no port, and only Linux spreads connections. */
export function threadsFault(threads: number): string | null {
  const isLinux = process.platform === "linux";
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isOther = "deno" in process.versions || "bun" in process.versions;
  if (threads <= 2 || (isLinux && (isOther || major > 22 || (major === 22 && minor >= 12)))) return null;
  return `${threads} threads need Linux, and Node 22.12 or later, Deno or Bun, for ${threads - 1} of them to listen at one port; 2 are the most here`;
}

/** Asked for alone first: a shared port is had though another service listens there, which would get half of the requests. */
function freePort(at: Pick<ServeOptions, "host" | "port">): Promise<number> {
  const { host, port } = at;
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) => reject(explainBinding(error, at)));
    server.listen({ host, port, exclusive: true }, () => {
      const { port: free } = server.address() as AddressInfo;
      server.close(() => resolve(free));
    });
  });
}
