/**
 * Asks fact sources, and keeps their answers for a short time. A decision takes answers from memory, because it must not wait
 * for a source under the ledger's lock. Failures are kept, too, so that a decision that needs them is not prepared for ever.
 *
 * Each source has its own memory, reads and queue, and the policies that ask it take turns, so that neither a slow source nor
 * the policies of one team keep others from their facts. A failure counts only for the policy whose read failed, because the read
 * may have failed by waiting for the other reads of that policy.
 */
import { rejectOnAbort } from "../cluster/reject-on-abort.ts";
import type { FactSources, FactSourceCounts } from "../contract/core-host.ts";
import { Refusal } from "../contract/errors.ts";
import {
  DEFAULT_FACT_AGE_MS,
  DEFAULT_FACT_TIMEOUT_MS,
  MAX_CONCURRENT_READS,
  MAX_FACT_TIMEOUT_MS,
  type FactSource,
} from "../contract/fact-source.ts";
import type { Logger } from "../contract/host.ts";
import { canonicalText } from "../domain/canonical.ts";
import type { JsonValue } from "../domain/json.ts";
import type { FactResult, FactCall } from "../domain/policy/decide/fact-reads.ts";
import { createFairSlots, type FairSlots } from "./fair-slots.ts";

/** How long an answer is used at least, because a decision waits for its turn. Milliseconds. */
const MIN_AGE_MS = 2_000;
/** Maximum characters of one answer, and of all answers of one source in memory. */
const MAX_ANSWER = 65_536;
const MAX_MEMORY = 16 * 1024 * 1024;
/** Memory that an answer uses in addition to its characters. */
const OVERHEAD = 256;
/** Maximum number of requests of one policy that wait for one source. */
const MAX_WAITING = 1_000;

interface Kept {
  answer: FactResult;
  /** Time of the read by `performance.now()`, which does not go back when the machine's clock does. */
  readAt: number;
  usableMs: number;
  size: number;
}

/** A source with its answers and its reads in progress. */
interface SourceState extends Required<Pick<FactSource, "timeoutMs" | "maxAgeMs">> {
  source: FactSource;
  inputs: string;
  /** Answers by inputs, and failures by policy and inputs, oldest first. */
  kept: Map<string, Kept>;
  /** Characters of the answers. */
  memory: number;
  /** Reads that have not ended, by policy and inputs. */
  reading: Map<string, Promise<FactResult>>;
  turns: FairSlots;
  /** Number of waiting requests, by policy. */
  waiting: Map<string, number>;
  counts: FactSourceCounts;
}

export function createFactReader(options: {
  sources: readonly FactSource[];
  log: Logger;
  clock(): number;
}): FactSources {
  const states = new Map(options.sources.map((source) => [source.name, createState(source)]));

  /** Returns null if no source can answer the call. */
  function stateOf({ source, inputs }: FactCall): SourceState | null {
    const state = states.get(source);
    return state?.inputs === listNames(Object.keys(inputs)) ? state : null;
  }

  const fault = (code: "no_source" | "no_answer" | "too_large"): FactResult => ({
    value: null,
    fault: code,
    at: options.clock(),
  });

  function findRecent(state: SourceState, call: FactCall): FactResult | null {
    const inputs = keyOf(call);
    for (const key of [inputs, policyKeyOf(call, inputs)]) {
      const found = state.kept.get(key);
      if (found === undefined) continue;
      const { answer, readAt, usableMs } = found;
      const age = Math.max(performance.now() - readAt, options.clock() - answer.at);
      if (age <= usableMs) return answer;
    }
    return null;
  }

  async function readFrom(state: SourceState, call: FactCall): Promise<FactResult> {
    const { source, counts } = state;
    counts.reads += 1;
    // The time before the read, because the source can have taken its value at once and answered late.
    const at = options.clock();
    const readAt = performance.now();
    try {
      const value = await readOnce(state, call);
      const text = canonicalText(value);
      if (text.length <= MAX_ANSWER) {
        // A copy, because the source could change its value later.
        const answer = { value: JSON.parse(text) as JsonValue, fault: null, at };
        return keep(state, keyOf(call), answer, { length: text.length, usableMs: state.maxAgeMs, readAt });
      }
      counts.failures += 1;
      options.log.warn("the answer of a fact source is too large", { source: source.name, characters: text.length });
      return keep(state, policyKeyOf(call), fault("too_large"));
    } catch (error) {
      counts.failures += 1;
      options.log.warn("a fact source did not answer", { source: source.name, error: messageOf(error) });
      return keep(state, policyKeyOf(call), fault("no_answer"));
    }
  }

  async function readOne(call: FactCall): Promise<FactResult> {
    const state = stateOf(call);
    if (state === null) return fault("no_source");
    const { policy } = call;
    const recentFact = findRecent(state, call);
    if (recentFact !== null) return recentFact;
    const waiting = state.waiting.get(policy) ?? 0;
    if (waiting >= MAX_WAITING) {
      // A policy in shadow mode must not refuse a request.
      if (call.shadow) return keep(state, policyKeyOf(call), fault("no_answer"));
      throw tooManyReads(call, waiting);
    }
    state.waiting.set(policy, waiting + 1);
    try {
      return await joinRead(state, call);
    } finally {
      const others = (state.waiting.get(policy) ?? 1) - 1;
      if (others > 0) state.waiting.set(policy, others);
      else state.waiting.delete(policy);
    }
  }

  /** Joins the policy's read of the same inputs that is in progress, or begins one. */
  function joinRead(state: SourceState, call: FactCall): Promise<FactResult> {
    const key = policyKeyOf(call);
    const running = state.reading.get(key);
    if (running !== undefined) return running;
    const answer = readFrom(state, call).finally(() => state.reading.delete(key));
    state.reading.set(key, answer);
    return answer;
  }

  return {
    list: () => options.sources.map(({ name, inputs }) => ({ name, inputs })),
    recent(call) {
      const state = stateOf(call);
      return state === null ? fault("no_source") : findRecent(state, call);
    },
    read: (calls) => Promise.all(calls.map(readOne)),
    counts: () => [...states].map(([source, { counts }]) => ({ source, ...counts })),
  };
}

function createState(source: FactSource): SourceState {
  return {
    source,
    timeoutMs: Math.min(source.timeoutMs ?? DEFAULT_FACT_TIMEOUT_MS, MAX_FACT_TIMEOUT_MS),
    maxAgeMs: source.maxAgeMs ?? DEFAULT_FACT_AGE_MS,
    inputs: listNames(source.inputs),
    kept: new Map(),
    memory: 0,
    reading: new Map(),
    turns: createFairSlots(Math.min(source.maxConcurrent ?? MAX_CONCURRENT_READS, MAX_CONCURRENT_READS)),
    waiting: new Map(),
    counts: { reads: 0, failures: 0 },
  };
}

/** Keeps an answer for `usableMs` from `readAt`, and at least for a moment from now. */
function keep(
  state: SourceState,
  key: string,
  answer: FactResult,
  { length = 0, usableMs = 0, readAt = performance.now() } = {},
): FactResult {
  const { kept } = state;
  const forget = (old: string): void => {
    state.memory -= kept.get(old)?.size ?? 0;
    kept.delete(old);
  };
  forget(key);
  const leastMs = performance.now() - readAt + MIN_AGE_MS;
  const size = key.length + length + OVERHEAD;
  kept.set(key, { answer, readAt, usableMs: Math.max(leastMs, usableMs), size });
  state.memory += size;
  for (const oldest of kept.keys()) {
    if (state.memory <= MAX_MEMORY) break;
    forget(oldest);
  }
  return answer;
}

/**
 * Reads a source. Settles within the timeout, even if the source ignores the signal. Does not abort when the service
 * stops, because a stopping service still decides requests, and would deny them without the read.
 */
async function readOnce(state: SourceState, { policy, inputs }: FactCall): Promise<JsonValue> {
  const over = AbortSignal.timeout(state.timeoutMs);
  try {
    const release = await state.turns.acquire(policy, over);
    // The slot stays taken until the source returns, so that a source that ignores the signal cannot pile up reads.
    const answered = Promise.resolve()
      .then(() => state.source.read(inputs, over))
      .finally(release);
    return await rejectOnAbort(answered, over);
  } catch (error) {
    throw over.aborted ? new Error(`no answer within ${state.timeoutMs} ms`, { cause: error }) : error;
  }
}

/** Nothing was decided, so the request can be repeated. */
function tooManyReads({ policy, source }: FactCall, waiting: number): Refusal {
  return new Refusal(
    "OVERLOADED",
    `${waiting} requests already wait for facts of the source "${source}" that policy "${policy}" reads; send the request again after a second, with the same Idempotency-Key`,
    { headers: { "Retry-After": "1" } },
  );
}

const keyOf = ({ inputs }: FactCall): string => canonicalText(inputs);

/** Names contain no spaces, and canonical JSON begins with a brace. */
const policyKeyOf = (call: FactCall, inputs = keyOf(call)): string => `${call.policy} ${inputs}`;

const listNames = (names: readonly string[]): string => [...names].sort().join(" ");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
