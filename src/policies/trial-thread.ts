/**
 * The thread for policy trials. Jobs run concurrently and yield to each other every 20 ms between their steps. If a
 * step that does not yield, such as parsing YAML, takes too long, the main thread terminates this thread.
 */
import { setImmediate } from "node:timers/promises";
import { parentPort } from "node:worker_threads";
import { Refusal, type ErrorCode } from "../contract/errors.ts";
import type { SerializedPolicySet, TrialWork } from "../contract/trials.ts";
import { compilePolicySet, precompilePolicySet, type CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { findRedactedReadOfPolicy } from "../domain/policy/check/redacted-reads.ts";
import { decide } from "../domain/policy/decide/decide.ts";
import { withGivenInputs } from "../domain/policy/test/given-facts.ts";
import type { Decision, PolicySetDocument } from "../domain/policy/policy-types.ts";
import { checkPolicyText } from "./check-text.ts";
import { parseCandidatePolicies, buildCandidateSet } from "./candidates.ts";
import type { MessageFromThread, JobName, Jobs, MessageToThread } from "./trial-protocol.ts";

const TURN_MS = 20;
/** Minimum interval between two reports that the same job is running. Milliseconds. */
const REPORT_INTERVAL_MS = 250;
const MAX_CACHED_SETS = 8;

if (parentPort === null) throw new Error("this file only runs as a worker thread of the service");
const port = parentPort;
const send = (message: MessageFromThread): void => port.postMessage(message);

let lastReport = { id: 0, at: 0 };
/** Calls to the main thread that wait for its answer, keyed by the number of the call. */
const calls = new Map<number, { resolve(value: unknown): void; reject(error: Refusal): void }>();
let lastCall = 0;
const turns = new Map<number, Turn>();
const compiled = new Map<string | null, CompiledPolicySet>();

/** Measures the CPU time of one job, and lets other jobs run. */
class Turn {
  readonly id: number;
  readonly aborted = new AbortController();
  private readonly budgetMs: number;
  private spent = 0;
  private since = performance.now();

  constructor(id: number, budgetMs: number) {
    this.id = id;
    this.budgetMs = budgetMs;
  }

  /**
   * Called between two steps. Returns null if the last yield was less than 20 ms ago, else a promise to await. Throws
   * the Refusal `TRIAL_TOO_LONG` if the job has used up its budget; rejects with `SHUTTING_DOWN` if the job was
   * aborted.
   */
  readonly yieldIfSlow = (): Promise<void> | null => {
    const worked = performance.now() - this.since;
    if (this.spent + worked > this.budgetMs)
      throw new Refusal(
        "TRIAL_TOO_LONG",
        `the trial of the policies takes longer than ${this.budgetMs / 1000} s, the limit of one request; send fewer actions, or cheaper conditions`,
      );
    return worked < TURN_MS ? null : this.yieldOrAbort();
  };

  /** Like `yieldIfSlow`, but checks neither a CPU budget nor a cancellation. For jobs that limit their own time. */
  readonly yieldWithoutLimit = (): Promise<void> | null =>
    performance.now() - this.since < TURN_MS ? null : this.yieldThread();

  async yieldOrAbort(): Promise<void> {
    await this.yieldThread();
    if (this.aborted.signal.aborted) throw callerGoneRefusal();
  }

  /** Reads through the main thread. The time does not count towards the budget. */
  async read(query: unknown): Promise<unknown> {
    this.spent += performance.now() - this.since;
    const call = ++lastCall;
    const value = await new Promise<unknown>((resolve, reject) => {
      calls.set(call, { resolve, reject });
      send({ kind: "call", id: this.id, call, query });
    });
    this.resume();
    return value;
  }

  private async yieldThread(): Promise<void> {
    this.spent += performance.now() - this.since;
    await setImmediate();
    this.resume();
  }

  private resume(): void {
    this.since = performance.now();
    if (lastReport.id === this.id && this.since - lastReport.at < REPORT_INTERVAL_MS) return;
    lastReport = { id: this.id, at: this.since };
    send({ kind: "at", id: this.id });
  }
}

function callerGoneRefusal(): Refusal {
  return new Refusal("SHUTTING_DOWN", "the client no longer waits for this request");
}

/** Compiles a policy set, yielding after each policy. Caches sets by digest. */
async function compileSet({ digest, text }: SerializedPolicySet, turn: Turn): Promise<CompiledPolicySet> {
  const cached = compiled.get(digest);
  if (cached !== undefined) return cached;
  const { format, policies } = JSON.parse(text) as PolicySetDocument;
  for (const policy of policies) {
    precompilePolicySet({ policies: [policy] });
    await turn.yieldIfSlow();
  }
  const set = compilePolicySet({ format, policies });
  compiled.set(digest, set);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= MAX_CACHED_SETS) break;
    compiled.delete(oldest);
  }
  return set;
}

const JOBS: { [Name in JobName]: (input: Jobs[Name]["input"], turn: Turn) => Promise<Jobs[Name]["output"]> } = {
  async read(candidates) {
    return parseCandidatePolicies(candidates);
  },

  check: (texts, turn) => checkPolicyText(texts, turn.yieldIfSlow),

  async withCandidates({ active, candidates, alone }, turn) {
    const policies = parseCandidatePolicies(candidates);
    await turn.yieldIfSlow();
    const set = buildCandidateSet((await compileSet(active, turn)).document, policies, alone);
    return { digest: set.digest, text: JSON.stringify(set.document) };
  },

  async findRedactedRead({ active, candidates }, turn) {
    const set = await compileSet(active, turn);
    for (const { document } of parseCandidatePolicies(candidates)) {
      await turn.yieldIfSlow();
      const path = findRedactedReadOfPolicy(set, document);
      if (path !== null) return { policy: document.policy, path };
    }
    return null;
  },

  async decide({ sets, cases }, turn) {
    const decisions: Decision[][] = [];
    for (const serialized of sets) {
      const set = await compileSet(serialized, turn);
      const decisionsOfSet: Decision[] = [];
      for (const { request, facts, now, given } of cases) {
        decisionsOfSet.push(decide(set, request, withGivenInputs(set, request, facts, now, { facts: given }), now));
        await turn.yieldIfSlow();
      }
      decisions.push(decisionsOfSet);
    }
    return decisions;
  },

  async plugin({ sets, module, input }, turn) {
    const { default: work } = (await import(module)) as { default: TrialWork<unknown, unknown, unknown, unknown> };
    const compiledSets: CompiledPolicySet[] = [];
    for (const set of sets) compiledSets.push(await compileSet(set, turn));
    return work({
      sets: compiledSets as [CompiledPolicySet, ...CompiledPolicySet[]],
      input,
      read: (query) => turn.read(query),
      yieldIfSlow: turn.yieldIfSlow,
      yieldWithoutLimit: turn.yieldWithoutLimit,
      signal: turn.aborted.signal,
    });
  },
};

async function run<Name extends JobName>(id: number, name: Name, input: Jobs[Name]["input"], budgetMs: number) {
  const turn = new Turn(id, budgetMs);
  turns.set(id, turn);
  try {
    // Read pending messages first, because one of them might abort this job.
    await turn.yieldOrAbort();
    send({ kind: "done", id, value: await JOBS[name](input, turn) });
  } catch (error) {
    if (error instanceof Refusal)
      send({ kind: "refused", id, code: error.code as ErrorCode, detail: error.message, errors: error.errors });
    else send({ kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  } finally {
    turns.delete(id);
  }
}

port.on("message", (message: MessageToThread) => {
  switch (message.kind) {
    case "ping":
      send({ kind: "pong" });
      break;
    case "abort":
      turns.get(message.id)?.aborted.abort();
      break;
    case "answer":
      calls.get(message.call)?.resolve(message.value);
      calls.delete(message.call);
      break;
    case "unanswered":
      calls.get(message.call)?.reject(callerGoneRefusal());
      calls.delete(message.call);
      break;
    case "job":
      void run(message.id, message.name, message.input, message.budgetMs);
  }
});
