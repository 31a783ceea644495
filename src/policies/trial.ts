/**
 * Parses, compiles and tests submitted policies on a separate thread, so that expensive policies do not delay
 * decisions. The thread starts on demand and ends when it is idle. If it crashes or does not respond, its jobs are
 * refused and the next job starts another thread.
 */
import type { Worker } from "node:worker_threads";
import { Refusal } from "../contract/errors.ts";
import type { Logger } from "../contract/host.ts";
import type {
  CandidatePolicies,
  CheckedText,
  ParsedPolicy,
  PolicyTexts,
  PolicyTrials,
  RedactedRead,
  SerializedPolicySet,
  TrialCase,
  TrialJob,
} from "../contract/trials.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { Decision, PolicySetDocument } from "../domain/policy/policy-types.ts";
import { startThread } from "./worker-thread.ts";
import type { MessageFromThread, JobName, Jobs, MessageToThread } from "./trial-protocol.ts";

export interface TrialOptions {
  log: Logger;
  /** Maximum CPU time of a job, checked between its steps. Milliseconds. */
  budgetMs?: number;
  /** Interval at which the thread is pinged. Milliseconds. */
  pingMs?: number;
  /** Number of unanswered pings after which the thread is terminated. */
  maxUnansweredPings?: number;
  /** Idle timeout: a thread without jobs ends after it. Milliseconds. */
  idleMs?: number;
  /** Maximum number of concurrent jobs. */
  maxJobs?: number;
  startThread?(): Worker;
}

export interface TrialService extends PolicyTrials {
  close(): Promise<void>;
}

interface RunningJob {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** The read of a plugin's job; absent for other jobs. */
  read?: (query: never) => Promise<unknown>;
}

/** Heap limit of the thread. The YAML parser uses several hundred times the size of its source. */
const MAX_HEAP_MB = 1024;

export const startTrialThread = (): Worker =>
  startThread(import.meta.url, "trial-thread", { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } });

export function createTrialService(options: TrialOptions): TrialService {
  return new ThreadedTrials(options);
}

class ThreadedTrials implements TrialService {
  private readonly options: Required<TrialOptions>;
  private thread: Worker | null = null;
  private closed = false;
  private lastId = 0;
  /** Id of the job that the thread is running. */
  private current = 0;
  private unansweredPings = 0;
  private pingTimer: NodeJS.Timeout | undefined;
  private idleTimer: NodeJS.Timeout | undefined;
  private readonly jobs = new Map<number, RunningJob>();

  constructor(options: TrialOptions) {
    this.options = {
      budgetMs: 20_000,
      pingMs: 1000,
      maxUnansweredPings: 30,
      idleMs: 60_000,
      maxJobs: 32,
      startThread: startTrialThread,
      ...options,
    };
  }

  read(candidates: CandidatePolicies, signal?: AbortSignal): Promise<ParsedPolicy[]> {
    return this.start("read", candidates, { signal });
  }

  withCandidates(
    active: CompiledPolicySet | SerializedPolicySet,
    candidates: CandidatePolicies,
    alone: boolean,
    signal?: AbortSignal,
  ): Promise<SerializedPolicySet> {
    return this.start("withCandidates", { active: serializePolicySet(active), candidates, alone }, { signal });
  }

  findRedactedRead(
    active: CompiledPolicySet,
    candidates: CandidatePolicies,
    signal?: AbortSignal,
  ): Promise<RedactedRead | null> {
    return this.start("findRedactedRead", { active: serializePolicySet(active), candidates }, { signal });
  }

  check(texts: PolicyTexts, signal?: AbortSignal): Promise<CheckedText> {
    return this.start("check", texts, { signal });
  }

  decide(
    sets: readonly (CompiledPolicySet | SerializedPolicySet)[],
    cases: readonly TrialCase[],
    signal?: AbortSignal,
  ): Promise<Decision[][]> {
    return this.start("decide", { sets: sets.map(serializePolicySet), cases }, { signal });
  }

  run<Input, Output, Query, Page>(
    sets: readonly (CompiledPolicySet | SerializedPolicySet)[],
    { module, input, read }: TrialJob<Input, Query, Page>,
    signal?: AbortSignal,
  ): Promise<Output> {
    const work = { sets: sets.map(serializePolicySet), module: module.href, input };
    return this.start("plugin", work, { signal, read }) as Promise<Output>;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.rejectAll(callerGoneRefusal);
    clearTimeout(this.idleTimer);
    await this.stopThread();
  }

  private start<Name extends JobName>(
    name: Name,
    input: Jobs[Name]["input"],
    { signal, ...reads }: { signal: AbortSignal | undefined } & Pick<RunningJob, "read">,
  ): Promise<Jobs[Name]["output"]> {
    const { maxJobs, budgetMs, pingMs, log } = this.options;
    if (this.closed || signal?.aborted === true) return Promise.reject(callerGoneRefusal());
    if (this.jobs.size >= maxJobs)
      return Promise.reject(
        new Refusal(
          "TOO_MANY_TRIALS",
          `this process already checks or tries out the policies of ${this.jobs.size} requests, which is its limit; try again`,
          { headers: { "Retry-After": "1" } },
        ),
      );
    clearTimeout(this.idleTimer);
    try {
      this.thread ??= this.startThread();
    } catch (error) {
      log.error("the thread for policy trials does not start", { error: String(error) });
      return Promise.reject(
        trialLostRefusal("the thread for policy trials does not start; see the log of the service"),
      );
    }
    const id = ++this.lastId;
    if (this.jobs.size === 0) this.unansweredPings = 0;
    this.thread.ref();
    this.pingTimer ??= setInterval(() => this.ping(), pingMs);
    return new Promise<unknown>((resolve, reject) => {
      const onAbort = (): void => this.send({ kind: "abort", id });
      signal?.addEventListener("abort", onAbort, { once: true });
      const unsubscribe = (): void => signal?.removeEventListener("abort", onAbort);
      this.jobs.set(id, {
        resolve(value) {
          unsubscribe();
          resolve(value);
        },
        reject(error) {
          unsubscribe();
          reject(error);
        },
        ...reads,
      });
      this.send({ kind: "job", id, name, input, budgetMs } as MessageToThread);
    }) as Promise<Jobs[Name]["output"]>;
  }

  private startThread(): Worker {
    const thread = this.options.startThread();
    thread.on("message", (message: MessageFromThread) => {
      if (this.thread === thread) this.receive(message);
    });
    thread.on("error", (error) => this.onThreadLost(thread, String(error)));
    thread.on("exit", (code) => this.onThreadLost(thread, `it ended with ${code}`));
    this.current = this.unansweredPings = 0;
    return thread;
  }

  private send(message: MessageToThread): void {
    this.thread?.postMessage(message);
  }

  private onThreadLost(thread: Worker, cause: string): void {
    if (this.thread !== thread) return;
    this.thread = null;
    this.options.log.warn("the thread for policy trials was lost", { cause, jobs: this.jobs.size });
    this.rejectAll(() => trialLostRefusal("the thread for policy trials was lost; try again"));
  }

  private rejectAll(refusal: (id: number) => Refusal): void {
    const rejected = [...this.jobs];
    this.jobs.clear();
    this.startIdling();
    for (const [id, { reject }] of rejected) reject(refusal(id));
  }

  private ping(): void {
    const { maxUnansweredPings, pingMs, log } = this.options;
    if (++this.unansweredPings <= maxUnansweredPings) return this.send({ kind: "ping" });
    const stuck = this.thread;
    this.thread = null;
    log.warn("the thread for policy trials did not respond and was terminated", { jobs: this.jobs.size });
    stuck?.terminate().catch(() => undefined);
    const seconds = Math.round((pingMs * maxUnansweredPings) / 1000);
    this.rejectAll((id) =>
      id === this.current
        ? new Refusal(
            "TRIAL_TOO_LONG",
            `the trial of the policies could not be completed within ${seconds} s; send less at once`,
          )
        : trialLostRefusal("policies of another request blocked the thread for policy trials; try again"),
    );
  }

  private receive(message: MessageFromThread): void {
    this.unansweredPings = 0;
    if (message.kind === "pong") return;
    if (message.kind === "at") {
      this.current = message.id;
      return;
    }
    const job = this.jobs.get(message.id);
    if (job === undefined) return;
    switch (message.kind) {
      case "call":
        void this.answerCall(message.id, message.call, message.query, job);
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
    this.jobs.delete(message.id);
    this.startIdling();
  }

  /** Answers a read of a plugin's job. */
  private async answerCall(id: number, call: number, query: unknown, job: RunningJob): Promise<void> {
    try {
      const value = await (job.read as (query: unknown) => Promise<unknown>)(query);
      if (this.jobs.get(id) === job) this.send({ kind: "answer", call, value });
    } catch (error) {
      this.jobs.delete(id);
      this.send({ kind: "abort", id });
      this.send({ kind: "unanswered", call });
      this.startIdling();
      job.reject(error);
    }
  }

  /** If no job is left, lets the process exit, and ends the thread after `idleMs`. */
  private startIdling(): void {
    if (this.jobs.size > 0) return;
    clearInterval(this.pingTimer);
    this.pingTimer = undefined;
    this.thread?.unref();
    clearTimeout(this.idleTimer);
    if (this.thread === null) return;
    this.idleTimer = setTimeout(() => void this.stopThread(), this.options.idleMs);
    this.idleTimer.unref();
  }

  private async stopThread(): Promise<void> {
    const thread = this.thread;
    this.thread = null;
    await thread?.terminate();
  }
}

function trialLostRefusal(detail: string): Refusal {
  return new Refusal("TRIAL_LOST", detail, { headers: { "Retry-After": "1" } });
}

function callerGoneRefusal(): Refusal {
  return new Refusal("SHUTTING_DOWN", "the service is stopping, or the client has disconnected");
}

/** Serialized policy sets. A string can be passed to the thread much faster than the object, which would be cloned. */
const texts = new WeakMap<PolicySetDocument, string>();

function serializePolicySet(set: CompiledPolicySet | SerializedPolicySet): SerializedPolicySet {
  if ("text" in set) return set;
  let text = texts.get(set.document);
  if (text === undefined) texts.set(set.document, (text = JSON.stringify(set.document)));
  return { digest: set.digest, text };
}
