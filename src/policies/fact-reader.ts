/**
 * Reads fact sources and caches their answers for a short time. A decision uses only cached answers, because it must
 * not wait for a source under the ledger's lock. Failures are also cached, so that the preparation of a decision that
 * needs them ends.
 */
import { rejectOnAbort } from "../cluster/reject-on-abort.ts";
import type { FactSources, FactSourceCounts } from "../contract/core-host.ts";
import { DEFAULT_FACT_AGE_MS, DEFAULT_FACT_TIMEOUT_MS, type FactSource } from "../contract/fact-source.ts";
import type { Logger } from "../contract/host.ts";
import { canonicalText } from "../domain/canonical.ts";
import type { JsonValue } from "../domain/json.ts";
import type { FactAnswer, FactCall } from "../domain/policy/decide/fact-reads.ts";

const MAX_TIMEOUT_MS = 10_000;
/** Minimum time for which an answer is cached, because a decision waits for its turn after the read. Milliseconds. */
const MIN_AGE_MS = 2_000;
/** Maximum characters of one answer, and of all answers in memory. */
const MAX_ANSWER = 65_536;
const MAX_MEMORY = 16 * 1024 * 1024;
/** Memory that an answer uses in addition to its characters. */
const OVERHEAD = 256;
/** Maximum number of concurrent reads of one source. More reads wait, within their timeout. */
const MAX_CONCURRENT_READS = 32;

interface Kept {
  answer: FactAnswer;
  /** Time of the read by `performance.now()`, which does not go back when the machine's clock does. */
  readAt: number;
  usableMs: number;
  size: number;
}

/** A source with its reads in progress. */
interface SourceState extends Required<Pick<FactSource, "timeoutMs" | "maxAgeMs">> {
  source: FactSource;
  inputs: string;
  running: number;
  waiting: (() => void)[];
  counts: FactSourceCounts;
}

export function createFactReader(options: {
  sources: readonly FactSource[];
  log: Logger;
  clock(): number;
}): FactSources {
  const states = new Map(options.sources.map((source) => [source.name, createState(source)]));
  const kept = new Map<string, Kept>();
  const reading = new Map<string, Promise<FactAnswer>>();
  let memory = 0;

  function forget(key: string): void {
    memory -= kept.get(key)?.size ?? 0;
    kept.delete(key);
  }

  /** Caches an answer until `usableMs` after `readAt`, and at least for MIN_AGE_MS from now. */
  function keep(key: string, answer: FactAnswer, size: number, usableMs = 0, readAt = performance.now()): FactAnswer {
    forget(key);
    const leastMs = performance.now() - readAt + MIN_AGE_MS;
    kept.set(key, { answer, readAt, usableMs: Math.max(leastMs, usableMs), size });
    memory += size;
    for (const oldest of kept.keys()) {
      if (memory <= MAX_MEMORY) break;
      forget(oldest);
    }
    return answer;
  }

  function recent({ source, inputs }: FactCall): FactAnswer | null {
    const found = kept.get(keyOf(source, inputs));
    if (found === undefined) return null;
    const { answer, readAt, usableMs } = found;
    const age = Math.max(performance.now() - readAt, options.clock() - answer.at);
    return age <= usableMs ? answer : null;
  }

  async function readFrom(state: SourceState, key: string, { inputs }: FactCall): Promise<FactAnswer> {
    const { source, counts } = state;
    counts.reads += 1;
    // Use the time before the read, because the source can determine its value immediately and return it late.
    const at = options.clock();
    const readAt = performance.now();
    try {
      const value = await readOnce(state, inputs);
      const text = canonicalText(value);
      if (text.length <= MAX_ANSWER) {
        // Use a copy, because the source could change its value later.
        const answer = { value: JSON.parse(text) as JsonValue, fault: null, at };
        return keep(key, answer, key.length + text.length + OVERHEAD, state.maxAgeMs, readAt);
      }
      counts.failures += 1;
      options.log.warn("the answer of a fact source is too large", { source: source.name, characters: text.length });
      return keep(key, fault("too_large"), key.length + OVERHEAD);
    } catch (error) {
      counts.failures += 1;
      options.log.warn("a fact source did not answer", { source: source.name, error: messageOf(error) });
      return keep(key, fault("no_answer"), key.length + OVERHEAD);
    }
  }

  const fault = (code: "no_source" | "no_answer" | "too_large"): FactAnswer => ({
    value: null,
    fault: code,
    at: options.clock(),
  });

  function readOne(call: FactCall): Promise<FactAnswer> {
    const known = recent(call);
    if (known !== null) return Promise.resolve(known);
    const key = keyOf(call.source, call.inputs);
    const state = states.get(call.source);
    if (state === undefined || state.inputs !== listNames(Object.keys(call.inputs)))
      return Promise.resolve(keep(key, fault("no_source"), key.length + OVERHEAD));
    let running = reading.get(key);
    if (running === undefined) {
      running = readFrom(state, key, call).finally(() => reading.delete(key));
      reading.set(key, running);
    }
    return running;
  }

  return {
    list: () => options.sources.map(({ name, inputs }) => ({ name, inputs })),
    recent,
    read: (calls) => Promise.all(calls.map(readOne)),
    counts: () => [...states].map(([source, { counts }]) => ({ source, ...counts })),
  };
}

function createState(source: FactSource): SourceState {
  return {
    source,
    timeoutMs: Math.min(source.timeoutMs ?? DEFAULT_FACT_TIMEOUT_MS, MAX_TIMEOUT_MS),
    maxAgeMs: source.maxAgeMs ?? DEFAULT_FACT_AGE_MS,
    inputs: listNames(source.inputs),
    running: 0,
    waiting: [],
    counts: { reads: 0, failures: 0 },
  };
}

/**
 * Reads a source. Settles within the timeout, even if the source ignores the signal. Does not abort when the service
 * stops, because a stopping service still decides requests, and would deny them without the read.
 */
async function readOnce(state: SourceState, inputs: FactCall["inputs"]): Promise<JsonValue> {
  const over = AbortSignal.timeout(state.timeoutMs);
  try {
    await acquire(state, over);
    // Do not release the slot until the source returns, so that reads cannot accumulate if a source ignores the signal.
    const answered = Promise.resolve()
      .then(() => state.source.read(inputs, over))
      .finally(() => release(state));
    return await rejectOnAbort(answered, over);
  } catch (error) {
    throw over.aborted ? new Error(`no answer within ${state.timeoutMs} ms`, { cause: error }) : error;
  }
}

/** Waits for a slot of the source. A read that times out leaves the queue, because it could not use a slot later. */
async function acquire(state: SourceState, over: AbortSignal): Promise<void> {
  if (state.running < MAX_CONCURRENT_READS) {
    state.running += 1;
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const start = (): void => {
      over.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = (): void => {
      state.waiting.splice(state.waiting.indexOf(start), 1);
      reject(over.reason as Error);
    };
    over.addEventListener("abort", giveUp, { once: true });
    state.waiting.push(start);
  });
}

/** Passes the slot to the next waiting read, if there is one. */
function release(state: SourceState): void {
  const next = state.waiting.shift();
  if (next === undefined) state.running -= 1;
  else next();
}

const keyOf = (source: string, inputs: FactCall["inputs"]): string => canonicalText([source, inputs]);

const listNames = (names: readonly string[]): string => [...names].sort().join(" ");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
