/**
 * Reads fact sources, and caches their results for a short time. A decision uses cached results, because it must not
 * wait for a source under the ledger's lock. Failures are cached, too, so that a failed source is not called for each
 * request.
 *
 * Each source has a separate cache, a separate set of slots for concurrent reads, and a separate queue. The slots of a
 * source are shared fairly among the policies that read it, and the slots of a policy among the keys whose requests it
 * decides. Therefore a slow source, the policies of one team or a single agent cannot block the reads of others. Votes
 * and the service's own work count as a separate policy. If a read gets no slot within the timeout, only the reader
 * that waited for it gets a failure.
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
import { createSlotCounts, createFairSlots, type Reader, type SlotCounts, type FairSlots } from "./fair-slots.ts";

/** Minimum cache lifetime of a result, because a decision waits for the ledger's lock after the read. Milliseconds. */
const MIN_AGE_MS = 2_000;
/** Maximum size of one result, and of all cached results of one source. Characters. */
const MAX_RESULT_CHARACTERS = 65_536;
const MAX_CACHE_CHARACTERS = 16 * 1024 * 1024;
/** Size of a cached result in addition to the characters of its key and value. */
const RESULT_OVERHEAD = 256;
/**
 * Maximum number of requests of one policy that wait for one source; one key can have at most half of them. Votes on
 * actions of the policy have a separate limit, and count as the requests of one key.
 */
const MAX_WAITING_REQUESTS = 2_000;

interface CachedResult {
  result: FactResult;
  /** Time of the read by `performance.now()`, which never goes back, even if the machine's clock is set back. */
  readAt: number;
  usableMs: number;
  size: number;
}

/** A source with its cached results and its reads in progress. */
interface SourceState extends Required<Pick<FactSource, "timeoutMs" | "maxAgeMs">> {
  source: FactSource;
  inputs: string;
  /**
   * Cached results, oldest first. A result that all readers can use is stored under its inputs (`keys.shared`). A
   * failure that concerns only one reader, such as a read that got no slot, is stored under its reader and inputs
   * (`keys.own`).
   */
  cache: Map<string, CachedResult>;
  /** Total size of the cached results. Characters. */
  cachedSize: number;
  /**
   * Reads in progress, with the times when they began. A read is stored under its reader and inputs (`keys.own`) until it ends. Once it has a slot, it
   * is also stored under its inputs (`keys.shared`), so that any reader can join it.
   */
  readsInProgress: Map<string, { read: Promise<FactResult>; since: number }>;
  slots: FairSlots;
  /** Number of requests of each reader that wait for a result. */
  waiting: SlotCounts;
  counts: FactSourceCounts;
}

export function createFactReader(options: {
  sources: readonly FactSource[];
  log: Logger;
  clock(): number;
}): FactSources {
  const states = new Map(options.sources.map((source) => [source.name, createState(source)]));
  const writes = createWrites();

  /** Returns the state of the call's source; null if the source does not exist or has other inputs. */
  function stateOf({ source, inputs }: FactCall): SourceState | null {
    const state = states.get(source);
    return state?.inputs === listNames(Object.keys(inputs)) ? state : null;
  }

  const fault = (code: NonNullable<FactResult["fault"]>): FactResult => ({
    value: null,
    fault: code,
    at: options.clock(),
  });

  /** Returns the time before which a value of the call must not have been read, by `performance.now()`. */
  function earliestRead({ maxAgeMs }: SourceState, { inputs, source, fresh }: FactCall, since: number): number {
    return Math.max(since - (fresh === true ? 0 : maxAgeMs), writes.newest(source, inputs));
  }

  function findRecent(state: SourceState, keys: readonly string[], earliest: number): FactResult | null {
    for (const key of keys) {
      const found = state.cache.get(key);
      if (found === undefined) continue;
      const { result, readAt, usableMs } = found;
      // Do not call a failed source again for each decision.
      const isFailure = result.fault !== null && result.fault !== "not_found";
      if (readAt < earliest && !isFailure) continue;
      const age = Math.max(performance.now() - readAt, options.clock() - result.at);
      if (age <= usableMs) return result;
    }
    return null;
  }

  async function readOne(call: FactCall, keyId: string | null, since: number): Promise<FactResult> {
    const state = stateOf(call);
    if (state === null) return fault("no_source");
    const reader = readerOf(call, keyId);
    const keys = keysOf(call, reader);
    const earliest = earliestRead(state, call, since);
    const recentResult = findRecent(state, [keys.shared, keys.own], earliest);
    if (recentResult !== null) return recentResult;
    const { waiting } = state;
    // Limit a member to half of the capacity that the others leave, so that no member can fill the queue.
    if (waiting.ofMember(reader) >= MAX_WAITING_REQUESTS - waiting.ofGroup(reader.group)) {
      // Return a failure, because a policy in shadow mode must not cause a refusal of the request.
      if (call.shadow) return cacheResult(state, keys.own, fault("no_answer"));
      throw tooManyReadsRefusal(call, waiting.ofGroup(reader.group));
    }
    waiting.add(reader, 1);
    try {
      // Join a read of the same inputs that has a slot, or the reader's earlier read of them.
      const joined = findReadInProgress(state, keys.shared, earliest) ?? findReadInProgress(state, keys.own, earliest);
      return await (joined ?? trackRead(state, keys.own, () => readWithSlot(state, call, reader, keys, earliest)));
    } finally {
      waiting.add(reader, -1);
    }
  }

  /**
   * Waits for a slot, and reads. If another reader has started or completed a read of the same inputs by then, returns
   * the result of that read instead.
   */
  async function readWithSlot(
    state: SourceState,
    call: FactCall,
    reader: Reader,
    { shared, own }: Keys,
    earliest: number,
  ): Promise<FactResult> {
    let release: () => void;
    try {
      release = await state.slots.acquire(reader, AbortSignal.timeout(state.timeoutMs));
    } catch {
      const other = findRecent(state, [shared], earliest);
      if (other !== null) return other;
      state.counts.failures += 1;
      options.log.warn("a read of a fact source got no slot within the timeout", { source: state.source.name });
      return cacheResult(state, own, fault("no_answer"));
    }
    const other = findRecent(state, [shared], earliest) ?? findReadInProgress(state, shared, earliest);
    if (other === null) return trackRead(state, shared, () => readFrom(state, call, shared, release));
    release();
    return other;
  }

  /** Calls the source, and caches its result or its failure. */
  async function readFrom(
    state: SourceState,
    { inputs }: FactCall,
    key: string,
    release: () => void,
  ): Promise<FactResult> {
    const { source, counts } = state;
    counts.reads += 1;
    // Use the time before the read, because the source may read the value immediately but respond late.
    const at = options.clock();
    const readAt = performance.now();
    try {
      const text = canonicalText(await callSource(state, inputs, release));
      if (text.length <= MAX_RESULT_CHARACTERS) {
        // Cache a copy, because the source could change its value later.
        const result = { value: JSON.parse(text) as JsonValue, fault: null, at };
        return cacheResult(state, key, result, { length: text.length, usableMs: state.maxAgeMs, readAt });
      }
      counts.failures += 1;
      options.log.warn("the result of a fact source is too large", { source: source.name, characters: text.length });
      return cacheResult(state, key, fault("too_large"));
    } catch (error) {
      // An answer of the source, and not a failure: it has no record for the inputs.
      if ((error as { code?: unknown } | null)?.code === "NOT_FOUND")
        return cacheResult(state, key, fault("not_found"));
      counts.failures += 1;
      options.log.warn("a read of a fact source failed", { source: source.name, error: messageOf(error) });
      return cacheResult(state, key, fault("no_answer"));
    }
  }

  function recent(call: FactCall, keyId: string | null, since: number): FactResult | null {
    const state = stateOf(call);
    if (state === null) return fault("no_source");
    const { shared, own } = keysOf(call, readerOf(call, keyId));
    return findRecent(state, [shared, own], earliestRead(state, call, since));
  }

  /**
   * Expires results. If a write has many values, remembers only the calls in the cache that have one of them as an
   * input.
   */
  function expire(calls: readonly WrittenCall[], subjects: readonly (string | number | boolean)[]): void {
    if (subjects.length <= MAX_WRITTEN_VALUES) return writes.add(calls, subjects);
    const values = new Set(subjects.map(String));
    const affected = [...states].flatMap(([source, state]) =>
      listKnownInputs(state)
        .filter((inputs) => Object.values(inputs).some((value) => values.has(String(value))))
        .map((inputs) => ({ source, inputs })),
    );
    writes.add([...calls, ...affected], []);
  }

  return {
    list: () => options.sources.map(({ name, inputs }) => ({ name, inputs })),
    recent: (call, keyId = null, since = -Infinity) => recent(call, keyId, since),
    read: (calls, keyId = null, since = -Infinity) => Promise.all(calls.map((call) => readOne(call, keyId, since))),
    expire,
    counts: () => [...states].map(([source, { counts }]) => ({ source, ...counts })),
  };
}

function createState(source: FactSource): SourceState {
  return {
    source,
    timeoutMs: Math.min(source.timeoutMs ?? DEFAULT_FACT_TIMEOUT_MS, MAX_FACT_TIMEOUT_MS),
    maxAgeMs: source.maxAgeMs ?? DEFAULT_FACT_AGE_MS,
    inputs: listNames(source.inputs),
    cache: new Map(),
    cachedSize: 0,
    readsInProgress: new Map(),
    slots: createFairSlots(Math.min(source.maxConcurrent ?? MAX_CONCURRENT_READS, MAX_CONCURRENT_READS)),
    waiting: createSlotCounts(),
    counts: { reads: 0, failures: 0 },
  };
}

/** Caches a result for `usableMs` from `readAt`, and at least for MIN_AGE_MS from now. */
function cacheResult(
  state: SourceState,
  key: string,
  result: FactResult,
  { length = 0, usableMs = 0, readAt = performance.now() } = {},
): FactResult {
  const { cache } = state;
  const evict = (old: string): void => {
    state.cachedSize -= cache.get(old)?.size ?? 0;
    cache.delete(old);
  };
  // A read that began earlier can end later.
  if ((cache.get(key)?.readAt ?? -Infinity) > readAt) return result;
  evict(key);
  const leastMs = performance.now() - readAt + MIN_AGE_MS;
  const size = key.length + length + RESULT_OVERHEAD;
  cache.set(key, { result, readAt, usableMs: Math.max(leastMs, usableMs), size });
  state.cachedSize += size;
  for (const oldest of cache.keys()) {
    if (state.cachedSize <= MAX_CACHE_CHARACTERS) break;
    evict(oldest);
  }
  return result;
}

/** Starts a read and registers it until it ends, so that later readers can join it. */
function trackRead(
  { readsInProgress }: SourceState,
  key: string,
  start: () => Promise<FactResult>,
): Promise<FactResult> {
  const since = performance.now();
  const read = start().finally(() => {
    // A later read that could not join this one might have replaced it.
    if (readsInProgress.get(key) === tracked) readsInProgress.delete(key);
  });
  const tracked = { read, since };
  readsInProgress.set(key, tracked);
  return read;
}

/** Returns the read in progress if it began late enough; else null. */
function findReadInProgress(
  { readsInProgress }: SourceState,
  key: string,
  earliest: number,
): Promise<FactResult> | null {
  const found = readsInProgress.get(key);
  return found !== undefined && found.since >= earliest ? found.read : null;
}

/** Maximum number of values and calls whose last write is remembered. */
const MAX_WRITES = 10_000;
/** Maximum number of remembered values of one write. Without it, one action could expire all cached results. */
const MAX_WRITTEN_VALUES = 256;

/** A call whose result an action may have changed. */
type WrittenCall = Pick<FactCall, "source" | "inputs">;

/** Returns the inputs whose results are cached or being read. A later read cannot return an earlier value. */
function listKnownInputs({ cache, readsInProgress }: SourceState): FactCall["inputs"][] {
  const shared = [...cache.keys(), ...readsInProgress.keys()].filter((key) => key.startsWith("{"));
  return shared.map((key) => JSON.parse(key) as FactCall["inputs"]);
}

/** Remembers when actions may last have changed what the sources return, by value and by call. */
function createWrites() {
  const times = new Map<string, number>();
  /** Time of the newest write that is no longer remembered. Every earlier result counts as changed. */
  let forgotten = -Infinity;
  const keyOfCall = (source: string, inputs: FactCall["inputs"]): string => canonicalText([source, inputs]);
  return {
    add(calls: readonly WrittenCall[], subjects: readonly (string | number | boolean)[]): void {
      const now = performance.now();
      for (const key of [...subjects.map(String), ...calls.map(({ source, inputs }) => keyOfCall(source, inputs))]) {
        times.delete(key);
        times.set(key, now);
      }
      for (const [key, time] of times) {
        if (times.size <= MAX_WRITES) break;
        times.delete(key);
        forgotten = time;
      }
    },
    /** Returns the time of the newest write that can have changed the result of the call. */
    newest(source: string, inputs: FactCall["inputs"]): number {
      if (times.size === 0) return forgotten;
      const keys = [keyOfCall(source, inputs), ...Object.values(inputs).map(String)];
      return Math.max(forgotten, ...keys.map((key) => times.get(key) ?? -Infinity));
    },
  };
}

/**
 * Calls a source. Settles within the timeout, even if the source ignores the signal. Does not abort when the service
 * stops, because a stopping service still decides requests, and would deny them without the facts.
 */
async function callSource(
  { source, timeoutMs }: SourceState,
  inputs: FactCall["inputs"],
  release: () => void,
): Promise<JsonValue> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    // Hold the slot until the source returns, so that a source that ignores the signal cannot accumulate reads.
    const result = Promise.resolve()
      .then(() => source.read(inputs, timeout))
      .finally(release);
    return await rejectOnAbort(result, timeout);
  } catch (error) {
    throw timeout.aborted ? new Error(`no result within ${timeoutMs} ms`, { cause: error }) : error;
  }
}

/** Returns the error for too many waiting requests. Nothing was decided, so the client can send the request again. */
function tooManyReadsRefusal({ policy, source }: FactCall, waiting: number): Refusal {
  return new Refusal(
    "OVERLOADED",
    `${waiting} requests already wait for facts of the source "${source}" that policy "${policy}" reads; send the request again after a second, with the same Idempotency-Key`,
    { headers: { "Retry-After": "1" } },
  );
}

/**
 * Returns the reader for which a call reads. The group of votes cannot be a policy's name, which contains no spaces.
 */
const readerOf = ({ policy }: FactCall, keyId: string | null): Reader =>
  keyId === null ? { group: `votes on ${policy}`, member: "" } : { group: policy, member: keyId };

/** Keys of cached results and of reads in progress. */
interface Keys {
  /** Key for all readers of the inputs. */
  shared: string;
  /** Key for one reader. Never equals a shared key, because shared keys begin with a brace. */
  own: string;
}

function keysOf({ inputs }: FactCall, { group, member }: Reader): Keys {
  const shared = canonicalText(inputs);
  return { shared, own: JSON.stringify([group, member, shared]) };
}

const listNames = (names: readonly string[]): string => [...names].sort().join(" ");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
