/**
 * Past decisions made again with other policies: which would flip, and how. Each is made with its own recorded
 * request, facts and clock; only the policies differ. Reads pages, newest first, and lets the event loop run between them.
 */
import { setImmediate } from "node:timers";
import type { DecisionInput, StorageReader, Visibility } from "../contract/storage.ts";
import type { ActionRequest } from "../domain/actions.ts";
import type { DecisionEntry } from "../domain/entries.ts";
import { decide } from "../domain/policy/decide.ts";
import { assumingUnused } from "../domain/policy/limits.ts";
import type { Compiled } from "../domain/policy/compile.ts";
import type { Decision, Effect, ShadowOutcome } from "../domain/policy/types.ts";
import { toHex } from "../domain/hash.ts";
import { hashLeaf } from "../domain/merkle.ts";
import { parseRfc3339 } from "../domain/time.ts";

const PAGE = 200;
/** Kinds of flips that are told apart; the rest is counted. */
const MOST_GROUPS = 500;

export interface BacktestRange {
  visibility: Visibility;
  /** Milliseconds; of the actions' creation. Inclusive. */
  since: number;
  /** Exclusive. */
  until: number;
  /** Only decisions with a smaller sequence: the cursor of an earlier answer. */
  before_seq?: number;
  /** Most decisions. */
  limit: number;
  /** Most milliseconds. */
  budgetMs: number;
  /** Examples of each kind of flip. */
  examples: number;
  signal?: AbortSignal;
  progress?(done: BacktestCounts): void;
}

export interface Outcome {
  effect: Effect;
  policy: string | null;
  rule: string | null;
}

export interface FlipExample {
  action_id: string;
  hash: string;
  at: string;
  agent_id: string;
  tool: string;
  operation: string;
}

/** Decisions that go from one outcome to another. */
export interface FlipGroup {
  from: Outcome;
  to: Outcome;
  count: number;
  examples: FlipExample[];
}

export interface BacktestCounts {
  evaluated: number;
  /** Another effect. */
  flipped: number;
  /** The same effect by another rule, or on other terms of approval. */
  otherwise: number;
}

export interface BacktestReport extends BacktestCounts {
  /** Most frequent first. */
  flips: FlipGroup[];
  /** Flips of kinds beyond those listed. */
  unlisted: number;
  /** Sequence to go on before; null when the range is done. */
  next: number | null;
}

type Judge = (entry: DecisionEntry, input: DecisionInput) => { to: Outcome; otherwise: boolean } | null;

/** What these policies would have decided. */
export function backtest(reader: StorageReader, compiled: Compiled, range: BacktestRange): Promise<BacktestReport> {
  return scan(reader, range, (entry, input) => {
    const request = JSON.parse(input.request) as ActionRequest;
    const at = parseRfc3339(entry.at) ?? input.created_at;
    // A limit that was not in force then has counted nothing: it flips nothing that stayed below it alone.
    const now = decide(compiled, request, assumingUnused(compiled, request, entry.facts, at), at);
    return { to: now, otherwise: termsOf(now) !== termsOf(entry.decision) };
  });
}

/** What a policy in shadow mode said at the time, had it been enforced. Decisions that it had no say in are left out. */
export function shadowReport(reader: StorageReader, policy: string, range: BacktestRange): Promise<BacktestReport> {
  return scan(reader, range, ({ decision }) => {
    const said = decision.shadow.find((outcome) => outcome.policy === policy);
    return said === undefined ? null : { to: withShadow(decision, said), otherwise: false };
  });
}

const STRICTNESS: Readonly<Record<Effect, number>> = { allow: 0, require_approval: 1, deny: 2 };
/** Nobody had a rule: then any policy's word is the first. */
const UNMATCHED = ["NO_MATCHING_RULE", "NO_ACTIVE_POLICY"];

function withShadow(decision: Decision, said: ShadowOutcome): Outcome {
  const heard = UNMATCHED.includes(decision.reason_code) || STRICTNESS[said.effect] > STRICTNESS[decision.effect];
  return heard ? said : decision;
}

async function scan(reader: StorageReader, range: BacktestRange, judge: Judge): Promise<BacktestReport> {
  const counts: BacktestCounts = { evaluated: 0, flipped: 0, otherwise: 0 };
  const groups = new Map<string, FlipGroup>();
  let unlisted = 0;
  const report = (next: number | null): BacktestReport => ({ ...counts, flips: [...groups.values()].sort((a, b) => b.count - a.count), unlisted, next });
  const span = await reader.decisionSpan(range.since, range.until);
  if (span === null) return report(null);
  const end = performance.now() + range.budgetMs;
  let before = Math.min(span.last + 1, range.before_seq ?? Infinity);
  while (before > span.first) {
    const wanted = Math.min(PAGE, range.limit - counts.evaluated);
    if (wanted <= 0 || performance.now() > end || range.signal?.aborted === true) return report(before);
    const rows = await reader.decisions({ visibility: range.visibility, from_seq: span.first, before_seq: before, since: range.since, until: range.until, limit: wanted });
    for (const input of rows) {
      const entry = JSON.parse(decoder.decode(input.bytes)) as DecisionEntry;
      const judged = judge(entry, input);
      if (judged === null) continue;
      counts.evaluated++;
      if (judged.to.effect === entry.decision.effect) {
        if (judged.otherwise) counts.otherwise++;
        continue;
      }
      counts.flipped++;
      const from = outcomeOf(entry.decision);
      const to = outcomeOf(judged.to);
      const key = JSON.stringify([from, to]);
      let group = groups.get(key);
      if (group === undefined && groups.size < MOST_GROUPS) groups.set(key, (group = { from, to, count: 0, examples: [] }));
      if (group === undefined) unlisted++;
      else {
        group.count++;
        if (group.examples.length < range.examples) group.examples.push(exampleOf(entry, input));
      }
    }
    if (rows.length < wanted) return report(null);
    before = (rows.at(-1) as DecisionInput).seq;
    range.progress?.({ ...counts });
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return report(null);
}

const decoder = new TextDecoder();

function outcomeOf({ effect, policy, rule }: Outcome): Outcome {
  return { effect, policy, rule };
}

function termsOf({ policy, rule, approval }: Decision): string {
  return JSON.stringify([policy, rule, approval?.quorum, approval?.expires_in_ms, approval?.notify]);
}

function exampleOf(entry: DecisionEntry, input: DecisionInput): FlipExample {
  return { action_id: input.action_id, hash: toHex(hashLeaf(input.bytes)), at: entry.at, agent_id: entry.agent_id, tool: entry.tool, operation: entry.operation };
}
