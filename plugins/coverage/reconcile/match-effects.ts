/**
 * Matches effects that other systems recorded to started actions, one to one. An effect that contains an action's id
 * matches the action only if operation, parameters and time also agree, because agents control such ids. An effect
 * without an id is paired by operation, parameters and time. Such a pair is a guess, so both sides count as unknown.
 */
import { canonicalText, foldName, type JsonObject, type JsonValue, sha256Hex, utf8 } from "../../../src/core.ts";
import type { EffectMapping, SourceEvent } from "../../../src/plugin.ts";
import { readPointer } from "../sources/record-members.ts";

/** An action that was started, as the ledger records it. */
export interface StartedAction {
  readonly id: string;
  readonly tool: string;
  readonly operation: string;
  /** The parameters that ran; null if they were erased. */
  readonly params: JsonObject | null;
  readonly started_at: number;
  /** Time of the result; null if no result was reported. */
  readonly ended_at: number | null;
  /** Reported success; null without a result. */
  readonly success: boolean | null;
}

/** Why no action explains an effect. */
type UnmatchedReason =
  | "unknown_action"
  | "other_operation"
  | "parameters_differ"
  | "outside_action"
  | "already_matched"
  | "erased"
  | "not_read"
  | "no_action";

interface UnmatchedEffect {
  readonly id: string;
  readonly at: number;
  readonly event: string;
  readonly actor: string;
  readonly action_id: string | null;
  readonly reason: UnmatchedReason;
}

/** Result of matching the actions and effects of a window. */
export interface Reconciliation {
  /** Number of effects in the window. The other three numbers add up to `total`. */
  readonly effects: { total: number; matched: number; unmatched: number; unknown: number };
  /** Number of actions whose success was reported in the window. The other three numbers add up to `total`. */
  readonly actions: { total: number; matched: number; missing: number; unknown: number };
  readonly unmatched: readonly UnmatchedEffect[];
  readonly missing: readonly { id: string; at: number }[];
  /** Pairs of an effect and an action that were matched without an id, which is a guess. */
  readonly likely: readonly { effect: string; action_id: string }[];
  readonly skipped: { duplicates: number; outside: number; unmapped: number; no_effect: number };
}

interface MatchOptions {
  readonly mappings: readonly EffectMapping[];
  /** Start (inclusive) and end (exclusive) of the window. Milliseconds. */
  readonly from: number;
  readonly to: number;
  /** Maximum time by which an effect can precede the start or follow the result of its action. Milliseconds. */
  readonly tolerance: number;
}

interface EffectMatcher {
  /**
   * Adds an event of the source. Events can be in any order. Throws RangeError if an event with the same id and
   * different content was added earlier.
   */
  add(event: SourceEvent): void;
  /** Returns the result. Call it once, after the last event. */
  finish(): Reconciliation;
}

interface Candidate {
  readonly action: Omit<StartedAction, "params">;
  /**
   * The digest of an action's parameters under each mapping, keyed by the mapping's index. Null if the parameters were
   * erased.
   */
  readonly digests: ReadonlyMap<number, string> | null;
  match: "exact" | "likely" | null;
}

type EffectOutcome = "matched" | "unknown" | UnmatchedReason;

interface PendingEffect {
  readonly event: Omit<SourceEvent, "record">;
  readonly mapping: number;
  readonly digest: string;
}

/**
 * Creates a matcher for one source and window.
 * @param actions the started actions of all tools
 */
export function createEffectMatcher(actions: Iterable<StartedAction>, options: MatchOptions): EffectMatcher {
  return new SourceMatcher(actions, options);
}

class SourceMatcher implements EffectMatcher {
  private readonly options: MatchOptions;
  /** Maps the kind of an event to the index of its mapping. */
  private readonly byEvent: ReadonlyMap<string, number>;
  /** Maps an operation to the indexes of its mappings. */
  private readonly targets: ReadonlyMap<string, readonly number[]>;
  private readonly candidates: ReadonlyMap<string, Candidate>;
  /** Maps the id of each added event to the event's digest. */
  private readonly seen = new Map<string, string>();
  /** The counted parts of operations. */
  private readonly parts = new Set<string>();
  private readonly named: PendingEffect[] = [];
  private readonly unnamed: PendingEffect[] = [];
  /** Time of the first event of the files. */
  private earliest = Infinity;
  private readonly unmatched: UnmatchedEffect[] = [];
  private readonly likely: { effect: string; action_id: string }[] = [];
  private readonly counts = { matched: 0, unknown: 0 };
  private readonly skipped = { duplicates: 0, outside: 0, unmapped: 0, no_effect: 0 };

  constructor(actions: Iterable<StartedAction>, options: MatchOptions) {
    const { mappings } = options;
    this.options = options;
    this.byEvent = new Map(mappings.map((mapping, i) => [mapping.event, i]));
    this.targets = groupByTarget(mappings);
    this.candidates = listCandidates(actions, mappings, this.targets);
  }

  add(event: SourceEvent): void {
    const { from, to, tolerance } = this.options;
    this.earliest = Math.min(this.earliest, event.at);
    const content = sha256Hex(utf8(JSON.stringify(event.record)));
    const earlier = this.seen.get(event.id);
    if (earlier !== undefined && earlier !== content)
      throw new RangeError(`the event ${JSON.stringify(event.id)} occurs twice with different content`);
    if (earlier !== undefined) return void this.skipped.duplicates++;
    this.seen.set(event.id, content);
    const mapping = this.byEvent.get(event.event);
    if (mapping === undefined) return void this.skipped.unmapped++;
    const digest = digestEvent(this.mappingAt(mapping), event);
    if (event.part_of !== undefined) {
      const part = JSON.stringify([event.part_of, targetKey(this.mappingAt(mapping)), digest]);
      if (this.parts.has(part)) return void this.skipped.no_effect++;
      this.parts.add(part);
    }
    if (!this.isInWindow(event.at)) this.skipped.outside++;
    const { record: _, ...rest } = event;
    const effect = { event: rest, mapping, digest };
    // An effect outside the window can belong to an action whose success was recorded in the window. An effect with an
    // id can be from any time of the action's run. Consider effects without an id only just outside the window, because
    // more distant pairs would be poor guesses.
    if (event.action_id !== null) this.named.push(effect);
    else if (event.at >= from - tolerance && event.at < to + tolerance) this.unnamed.push(effect);
  }

  finish(): Reconciliation {
    const { counts, unmatched, likely, skipped } = this;
    // An action explains its first effect, whatever the order of the files is.
    for (const effect of this.named.sort((a, b) => compareByTime(a.event, b.event)))
      this.settle(effect.event, this.matchNamed(effect));
    this.settleUnnamed();
    unmatched.sort(compareByTime);
    const inWindow = [...this.candidates.values()].filter(({ action }) => this.isCounted(action));
    const missing = inWindow.filter(({ match, digests }) => match === null && digests !== null);
    const matched = inWindow.filter(({ match }) => match === "exact").length;
    const unknown = inWindow.length - matched - missing.length;
    return {
      effects: {
        total: counts.matched + counts.unknown + unmatched.length,
        unmatched: unmatched.length,
        ...counts,
      },
      actions: { total: inWindow.length, matched, missing: missing.length, unknown },
      unmatched,
      missing: missing.map(({ action }) => ({ id: action.id, at: action.ended_at as number })).sort(compareByTime),
      likely,
      skipped,
    };
  }

  private isInWindow(at: number): boolean {
    return at >= this.options.from && at < this.options.to;
  }

  private isDuring({ started_at, ended_at }: Candidate["action"], at: number): boolean {
    const { tolerance } = this.options;
    return at >= started_at - tolerance && at <= (ended_at ?? Infinity) + tolerance;
  }

  /** Returns true if the action reported success within the window and a mapping contains its operation. */
  private isCounted(action: Candidate["action"]): boolean {
    return (
      action.success === true &&
      action.ended_at !== null &&
      this.isInWindow(action.ended_at) &&
      this.targets.has(targetKey(action))
    );
  }

  private mappingAt(index: number): EffectMapping {
    return this.options.mappings[index] as EffectMapping;
  }

  private matchNamed({ event, mapping, digest }: PendingEffect): EffectOutcome {
    const candidate = this.candidates.get(event.action_id ?? "");
    if (candidate === undefined) return "unknown_action";
    const { action, digests } = candidate;
    if (targetKey(action) !== targetKey(this.mappingAt(mapping))) return "other_operation";
    // An action that starts after the window can explain an effect of the next window. It must not also explain an
    // effect before its start.
    const startsLater = action.started_at >= this.options.to && event.at < action.started_at;
    if (startsLater || !this.isDuring(action, event.at)) return "outside_action";
    if (candidate.match !== null) return "already_matched";
    if (digests === null) {
      // The erased action could have had other parameters. Mark it, so that it explains no other effect.
      candidate.match = "likely";
      return "erased";
    }
    if (digests.get(mapping) !== digest) return "parameters_differ";
    // The action's effect may be from an earlier window, whose files were not given.
    if (this.isInWindow(event.at) && action.started_at < Math.min(this.options.from, this.earliest)) return "not_read";
    candidate.match = "exact";
    return "matched";
  }

  private settleUnnamed(): void {
    const pairs = pairUnnamed(this.unnamed, this.options.mappings, this.candidates.values(), (action, at) =>
      this.isDuring(action, at),
    );
    for (const { event, candidate } of pairs) {
      if (candidate !== null) {
        candidate.match = "likely";
        this.likely.push({ effect: event.id, action_id: candidate.action.id });
      }
      this.settle(event, candidate === null ? "no_action" : candidate.digests === null ? "erased" : "unknown");
    }
  }

  private settle({ id, at, event, actor, action_id }: PendingEffect["event"], outcome: EffectOutcome): void {
    if (!this.isInWindow(at)) return;
    if (outcome === "matched" || outcome === "unknown") this.counts[outcome]++;
    else this.unmatched.push({ id, at, event, actor, action_id, reason: outcome });
  }
}

/** Returns the indexes of the mappings of each operation. */
function groupByTarget(mappings: readonly EffectMapping[]): ReadonlyMap<string, readonly number[]> {
  const targets = new Map<string, number[]>();
  mappings.forEach((mapping, i) => {
    const key = targetKey(mapping);
    targets.set(key, [...(targets.get(key) ?? []), i]);
  });
  return targets;
}

function listCandidates(
  actions: Iterable<StartedAction>,
  mappings: readonly EffectMapping[],
  targets: ReadonlyMap<string, readonly number[]>,
): Map<string, Candidate> {
  const candidates = new Map<string, Candidate>();
  for (const { params, ...action } of actions) {
    const indexes = targets.get(targetKey(action));
    const digests =
      params === null || indexes === undefined
        ? null
        : new Map(
            indexes.map(
              (i) =>
                [i, digestParams(mappings[i] as EffectMapping, (name) => params[name]) ?? "unreadable action"] as const,
            ),
          );
    candidates.set(action.id, { action, digests: indexes === undefined ? new Map() : digests, match: null });
  }
  return candidates;
}

/** Compares by time, then by id. */
function compareByTime(a: { id: string; at: number }, b: { id: string; at: number }): number {
  return a.at - b.at || (a.id < b.id ? -1 : 1);
}

/**
 * Pairs effects without an id with unmatched actions. Processes the effects in the order of time, and pairs each with
 * the possible action that ended first, which finds the largest number of pairs. If no action is possible, uses an
 * erased action, whose parameters cannot be compared.
 */
function* pairUnnamed(
  effects: readonly PendingEffect[],
  mappings: readonly EffectMapping[],
  candidates: Iterable<Candidate>,
  isDuring: (action: Candidate["action"], at: number) => boolean,
): Iterable<{ event: PendingEffect["event"]; candidate: Candidate | null }> {
  const groups = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    if (candidate.match !== null) continue;
    const { action, digests } = candidate;
    const keys = digests === null ? [targetKey(action)] : [...digests].map(([i, digest]) => `${i} ${digest}`);
    for (const key of keys) {
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [candidate]);
      else group.push(candidate);
    }
  }
  const end = ({ action }: Candidate): number => action.ended_at ?? Infinity;
  for (const group of groups.values()) group.sort((a, b) => (end(a) < end(b) ? -1 : end(a) > end(b) ? 1 : 0));
  for (const { event, mapping, digest } of [...effects].sort((a, b) => a.event.at - b.event.at)) {
    const find = (key: string): Candidate | undefined => {
      const group = groups.get(key) ?? [];
      // Effects are ordered by time, so an action that ended before this effect cannot explain a later effect.
      const ahead = group.findIndex(
        (each) => each.match === null && (end(each) >= event.at || isDuring(each.action, event.at)),
      );
      group.splice(0, ahead < 0 ? group.length : ahead);
      return group.find(({ action, match }) => match === null && isDuring(action, event.at));
    };
    const candidate = find(`${mapping} ${digest}`) ?? find(targetKey(mappings[mapping] as EffectMapping)) ?? null;
    yield { event, candidate };
  }
}

/** Returns the key that actions and mappings of the same operation share. */
function targetKey({ tool, operation }: { tool: string; operation: string }): string {
  return JSON.stringify([foldName(tool), foldName(operation)]);
}

function digestEvent(mapping: EffectMapping, { record }: SourceEvent): string {
  return digestParams(mapping, (name) => readPointer(record, mapping.params[name] as string)) ?? "unreadable effect";
}

/** Returns null if a value cannot be compared. */
function digestParams(mapping: EffectMapping, read: (name: string) => JsonValue | undefined): string | null {
  const values = Object.keys(mapping.params)
    .sort()
    .map((name) => [name, comparable(read(name) ?? null)] as const);
  return values.some(([, value]) => value === false) ? null : sha256Hex(utf8(JSON.stringify(values)));
}

/**
 * Returns the string that represents a value in comparisons; false if the value equals no other. `5` and `"5"` are
 * equal, because some logs write numbers as strings, and others write strings as numbers.
 */
function comparable(value: JsonValue): string | false | null {
  if (value === null) return null;
  // The bytes that the log has instead of U+FFFD, and the digits of a number beyond 2^53, are unknown.
  if (typeof value === "string") return value.includes("\uFFFD") ? false : value;
  if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  if (typeof value !== "object") return String(value);
  try {
    return canonicalText(value);
  } catch {
    // A value without canonical JSON is in no action.
    return false;
  }
}
