/**
 * Policies that somebody sends are parsed, compiled and tried on a thread of their own, so that what they cost stops
 * nobody's decision. It starts when it is needed and ends when it is idle. One that is lost, or does not answer, takes
 * its jobs with it; they are refused, and the next job starts another.
 */
import type { Worker } from "node:worker_threads";
import type { BacktestRange } from "../contract/backtest.ts";
import { Refusal } from "../contract/errors.ts";
import type { Logger } from "../contract/host.ts";
import type { PolicyTrials, SerializedPolicySet } from "../contract/trials.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { PolicySetDocument } from "../domain/policy/types.ts";
import { startThread } from "../threads.ts";
import type { BacktestReader } from "./backtest.ts";
import type { MessageFromThread, JobName, Jobs, ReaderCall, MessageToThread } from "./trial-protocol.ts";

export interface TrialOptions {
  storage: BacktestReader;
  log: Logger;
  /** Most milliseconds that a job works, where it has pieces. */
  budgetMs?: number;
  /** How often the thread is asked whether it is there, and how many times in a row it may say nothing. */
  pingMs?: number;
  mostSilent?: number;
  /** How long a thread without work is kept. */
  idleMs?: number;
  /** Most jobs that are under way. */
  most?: number;
  startThread?(): Worker;
}

export interface TrialService extends PolicyTrials {
  close(): Promise<void>;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Of a backtest. */
  range?: BacktestRange;
}

/** What a job may hold in memory. The parser of YAML takes some hundred times its text. */
const MOST_HEAP_MB = 1024;

export const startTrialThread = (): Worker =>
  startThread(import.meta.url, "trial-thread", { resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB } });

export function createTrials({
  storage,
  log,
  budgetMs = 20_000,
  pingMs = 1000,
  mostSilent = 30,
  idleMs = 60_000,
  most = 32,
  startThread = startTrialThread,
}: TrialOptions): TrialService {
  let thread: Worker | null = null;
  let closed = false;
  let lastId = 0;
  /** The job that the thread said it is at. */
  let at = 0;
  let silent = 0;
  let pings: NodeJS.Timeout | undefined;
  let idle: NodeJS.Timeout | undefined;
  const waiting = new Map<number, Waiting>();

  function start(): Worker {
    const started = startThread();
    started.on("message", (message: MessageFromThread) => {
      if (thread === started) hear(message);
    });
    started.on("error", (error) => lose(started, String(error)));
    started.on("exit", (code) => lose(started, `it ended with ${code}`));
    at = silent = 0;
    return started;
  }

  const send = (message: MessageToThread): void => thread?.postMessage(message);

  function lose(gone: Worker, why: string): void {
    if (thread !== gone) return;
    thread = null;
    log.warn("the thread that tries policies out was lost", { why, jobs: waiting.size });
    refuseAll(() => lost("the thread that tries policies out was lost; try again"));
  }

  function refuseAll(refusal: (id: number) => Refusal): void {
    const refused = [...waiting];
    waiting.clear();
    rest();
    for (const [id, { reject }] of refused) reject(refusal(id));
  }

  function ping(): void {
    if (++silent <= mostSilent) return send({ kind: "ping" });
    const stuck = thread;
    thread = null;
    log.warn("the thread that tries policies out did not answer and was ended", { jobs: waiting.size });
    stuck?.terminate().catch(() => undefined);
    const seconds = Math.round((pingMs * mostSilent) / 1000);
    refuseAll((id) =>
      id === at
        ? new Refusal("TRIAL_TOO_LONG", `trying this out did not get anywhere in ${seconds} s; send less at once`)
        : lost("another request's policies held up the thread that tries policies out; try again"),
    );
  }

  function hear(message: MessageFromThread): void {
    silent = 0;
    if (message.kind === "pong") return;
    if (message.kind === "at") {
      at = message.id;
      return;
    }
    const job = waiting.get(message.id);
    if (job === undefined) return;
    switch (message.kind) {
      case "call":
        void answer(message.id, message.call, message.wanted, job);
        return;
      case "progress":
        job.range?.progress?.(message.counts);
        return;
      case "done":
        job.resolve(message.value);
        break;
      case "refused":
        job.reject(new Refusal(message.code, message.detail, { errors: message.errors }));
        break;
      case "failed":
        job.reject(new Error(`a trial of policies failed: ${message.message}`));
    }
    waiting.delete(message.id);
    rest();
  }

  /** What a backtest reads: whoever's it is sees what they may see. */
  async function answer(id: number, call: number, wanted: ReaderCall, job: Waiting): Promise<void> {
    try {
      const { visibility } = job.range as BacktestRange;
      const value =
        wanted.method === "decisionSpan"
          ? await storage.decisionSpan(...wanted.args)
          : await storage.decisions({ ...wanted.args[0], visibility });
      if (waiting.get(id) === job) send({ kind: "answer", call, value });
    } catch (error) {
      waiting.delete(id);
      send({ kind: "abort", id });
      // An empty answer ends what nobody waits for.
      send({ kind: "answer", call, value: wanted.method === "decisions" ? [] : null });
      rest();
      job.reject(error);
    }
  }

  /** Nothing holds the process, and after a while the thread ends. */
  function rest(): void {
    if (waiting.size > 0) return;
    clearInterval(pings);
    pings = undefined;
    thread?.unref();
    clearTimeout(idle);
    if (thread === null) return;
    idle = setTimeout(() => void stop(), idleMs);
    idle.unref();
  }

  async function stop(): Promise<void> {
    const ending = thread;
    thread = null;
    await ending?.terminate();
  }

  function run<Name extends JobName>(
    name: Name,
    input: Jobs[Name]["input"],
    { signal, range }: { signal: AbortSignal | undefined; range?: BacktestRange },
  ): Promise<Jobs[Name]["output"]> {
    if (closed || signal?.aborted === true) return Promise.reject(left());
    if (waiting.size >= most)
      return Promise.reject(
        new Refusal(
          "TOO_MANY_TRIALS",
          `${waiting.size} requests have policies read or tried out, as many as this process takes; try again`,
          { headers: { "Retry-After": "1" } },
        ),
      );
    clearTimeout(idle);
    try {
      thread ??= start();
    } catch (error) {
      log.error("the thread that tries policies out does not start", { error: String(error) });
      return Promise.reject(lost("the thread that tries policies out does not start; see the service's log"));
    }
    const id = ++lastId;
    if (waiting.size === 0) silent = 0;
    thread.ref();
    pings ??= setInterval(ping, pingMs);
    return new Promise<unknown>((resolve, reject) => {
      const onAbort = (): void => send({ kind: "abort", id });
      signal?.addEventListener("abort", onAbort, { once: true });
      const settled = (): void => signal?.removeEventListener("abort", onAbort);
      waiting.set(id, {
        resolve(value) {
          settled();
          resolve(value);
        },
        reject(error) {
          settled();
          reject(error);
        },
        ...(range === undefined ? {} : { range }),
      });
      send({ kind: "job", id, name, input, budgetMs } as MessageToThread);
    }) as Promise<Jobs[Name]["output"]>;
  }

  return {
    read: (candidates, signal) => run("read", candidates, { signal }),
    withCandidates: (active, candidates, alone, signal) =>
      run("withCandidates", { active: written(active), candidates, alone }, { signal }),
    decide: (sets, cases, signal) => run("decide", { sets: sets.map(written), cases }, { signal }),
    backtest(set, range) {
      const { signal, progress: _, ...plain } = range;
      return run("backtest", { set: written(set), range: plain }, { signal, range });
    },
    async close() {
      closed = true;
      refuseAll(left);
      clearTimeout(idle);
      await stop();
    },
  };
}

function lost(detail: string): Refusal {
  return new Refusal("TRIAL_LOST", detail, { headers: { "Retry-After": "1" } });
}

function left(): Refusal {
  return new Refusal("SHUTTING_DOWN", "the service is stopping, or whoever asked has left");
}

/** A text crosses to the thread far faster than what it says. */
const texts = new WeakMap<PolicySetDocument, string>();

function written(set: CompiledPolicySet | SerializedPolicySet): SerializedPolicySet {
  if ("text" in set) return set;
  let text = texts.get(set.document);
  if (text === undefined) texts.set(set.document, (text = JSON.stringify(set.document)));
  return { digest: set.digest, text };
}
