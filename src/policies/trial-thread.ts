/**
 * The thread that tries policies out. Jobs run beside each other and give way to each other every 20 ms, wherever one
 * has pieces; what is in one piece, as the parser of YAML is, the main thread bounds by ending the thread.
 */
import { setImmediate } from "node:timers/promises";
import { parentPort } from "node:worker_threads";
import { Refusal, type ErrorCode } from "../contract/errors.ts";
import type { SerializedPolicySet } from "../contract/trials.ts";
import { compilePolicySet, precompilePolicySet, type CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { decide } from "../domain/policy/decide/decide.ts";
import { withAssumedUsage } from "../domain/policy/decide/limit-facts.ts";
import type { Decision, PolicySetDocument } from "../domain/policy/types.ts";
import { backtest, type BacktestReader } from "./backtest.ts";
import { parseCandidatePolicies, buildCandidateSet } from "./candidates.ts";
import type { MessageFromThread, JobName, Jobs, ReaderCall, MessageToThread } from "./trial-protocol.ts";

const TURN_MS = 20;
/** How often one job that works alone says so. */
const SAID_EVERY_MS = 250;
const KEPT_SETS = 8;

if (parentPort === null) throw new Error("this file runs as a thread of the service");
const port = parentPort;
const say = (message: MessageFromThread): void => port.postMessage(message);

let said = { id: 0, at: 0 };
/** What waits for the main thread, by number. */
const calls = new Map<number, (value: unknown) => void>();
let lastCall = 0;
const turns = new Map<number, Turn>();
const compiled = new Map<string | null, CompiledPolicySet>();

/** One job's share of the thread. */
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

  /** Between two pieces of work. Null while this turn is short. Throws TRIAL_TOO_LONG, or SHUTTING_DOWN for an aborted job. */
  readonly breathe = (): Promise<void> | null => {
    const worked = performance.now() - this.since;
    if (this.spent + worked > this.budgetMs)
      throw new Refusal(
        "TRIAL_TOO_LONG",
        `trying this out takes longer than the ${this.budgetMs / 1000} s that one request may take; send fewer actions, or cheaper conditions`,
      );
    return worked < TURN_MS ? null : this.rest();
  };

  /** The same without an end: for what keeps to its own bounds. */
  readonly pause = (): Promise<void> | null => (performance.now() - this.since < TURN_MS ? null : this.giveWay());

  async rest(): Promise<void> {
    await this.giveWay();
    if (this.aborted.signal.aborted) throw new Refusal("SHUTTING_DOWN", "nobody waits for this any more");
  }

  /** Of the store, on the main thread. */
  async ask<T>(wanted: ReaderCall): Promise<T> {
    this.spent += performance.now() - this.since;
    const call = ++lastCall;
    const value = await new Promise<unknown>((resolve) => {
      calls.set(call, resolve);
      say({ kind: "call", id: this.id, call, wanted });
    });
    this.resume();
    return value as T;
  }

  private async giveWay(): Promise<void> {
    this.spent += performance.now() - this.since;
    await setImmediate();
    this.resume();
  }

  private resume(): void {
    this.since = performance.now();
    if (said.id === this.id && this.since - said.at < SAID_EVERY_MS) return;
    said = { id: this.id, at: this.since };
    say({ kind: "at", id: this.id });
  }
}

/** Compiled once, by digest, a policy at a time. */
async function compiledOf({ digest, text }: SerializedPolicySet, turn: Turn): Promise<CompiledPolicySet> {
  const kept = compiled.get(digest);
  if (kept !== undefined) return kept;
  const { format, policies } = JSON.parse(text) as PolicySetDocument;
  for (const policy of policies) {
    precompilePolicySet({ policies: [policy] });
    await turn.breathe();
  }
  const set = compilePolicySet({ format, policies });
  compiled.set(digest, set);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= KEPT_SETS) break;
    compiled.delete(oldest);
  }
  return set;
}

const JOBS: { [Name in JobName]: (input: Jobs[Name]["input"], turn: Turn) => Promise<Jobs[Name]["output"]> } = {
  async read(candidates) {
    return parseCandidatePolicies(candidates);
  },

  async withCandidates({ active, candidates, alone }, turn) {
    const read = parseCandidatePolicies(candidates);
    await turn.breathe();
    const set = buildCandidateSet((await compiledOf(active, turn)).document, read, alone);
    return { digest: set.digest, text: JSON.stringify(set.document) };
  },

  async decide({ sets, cases }, turn) {
    const decisions: Decision[][] = [];
    for (const written of sets) {
      const set = await compiledOf(written, turn);
      const ofSet: Decision[] = [];
      for (const { request, facts, now } of cases) {
        ofSet.push(decide(set, request, withAssumedUsage(set, request, facts, now), now));
        await turn.breathe();
      }
      decisions.push(ofSet);
    }
    return decisions;
  },

  async backtest({ set, range }, turn) {
    const reader: BacktestReader = {
      decisionSpan: (...args) => turn.ask({ method: "decisionSpan", args }),
      decisions: (...args) => turn.ask({ method: "decisions", args }),
    };
    // It has a budget of its own, and answers what it has when that is spent or nobody waits any more.
    return backtest(
      reader,
      await compiledOf(set, turn),
      {
        ...range,
        signal: turn.aborted.signal,
        progress: (counts) => say({ kind: "progress", id: turn.id, counts }),
      },
      turn.pause,
    );
  },
};

async function run<Name extends JobName>(id: number, name: Name, input: Jobs[Name]["input"], budgetMs: number) {
  const turn = new Turn(id, budgetMs);
  turns.set(id, turn);
  try {
    // What else has arrived is read first: it may be that nobody waits for this any more.
    await turn.rest();
    say({ kind: "done", id, value: await JOBS[name](input, turn) });
  } catch (error) {
    if (error instanceof Refusal)
      say({ kind: "refused", id, code: error.code as ErrorCode, detail: error.message, errors: error.errors });
    else say({ kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  } finally {
    turns.delete(id);
  }
}

port.on("message", (message: MessageToThread) => {
  switch (message.kind) {
    case "ping":
      say({ kind: "pong" });
      break;
    case "abort":
      turns.get(message.id)?.aborted.abort();
      break;
    case "answer":
      calls.get(message.call)?.(message.value);
      calls.delete(message.call);
      break;
    case "job":
      void run(message.id, message.name, message.input, message.budgetMs);
  }
});
