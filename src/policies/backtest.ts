/**
 * Past decisions made again with other policies: which would flip, and how. Each is made with its own recorded
 * request, facts and clock; only the policies differ. Reads pages, newest first, and lets the event loop run in between.
 */
import type {
  BacktestCounts,
  BacktestRange,
  BacktestReport,
  FlipExample,
  FlipGroup,
  DecisionOutcome,
} from "../contract/backtest.ts";
import type { DecisionInput, StorageReader } from "../contract/storage.ts";
import type { VisibleReads } from "../contract/visible-reads.ts";
import { decodeEntry, type DecisionEntry } from "../domain/entries.ts";
import { restoreFacts } from "../domain/past.ts";
import { rejectionHoldMs, approvalValidityMs } from "../domain/policy/decide/validity.ts";
import { decide } from "../domain/policy/decide/decide.ts";
import { withAssumedUsage } from "../domain/policy/decide/limit-facts.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { Decision, Effect, ShadowOutcome } from "../domain/policy/types.ts";
import { createYieldIfSlow, type YieldIfSlow } from "./yield-if-slow.ts";
import { createLimitSimulation, findUnrecordedLimits, type UnrecordedLimit } from "./backtest-limits.ts";
import { toHex } from "../domain/hash.ts";
import { hashLeaf } from "../domain/merkle.ts";
import { parseCompleteRequest } from "../domain/request.ts";
import { parseRfc3339 } from "../domain/time.ts";

const PAGE = 200;
/** Kinds of flips that are told apart; the rest is counted. */
const MOST_GROUPS = 500;

interface Judged {
  to: DecisionOutcome;
  otherwise: boolean;
  /** Limits that concern it and whose use nobody recorded. */
  uses?: readonly UnrecordedLimit[];
  /** Milliseconds. */
  at?: number;
}

/** Null for what is not looked at, "erased" for what cannot be any more. */
type Judge = (entry: DecisionEntry, input: DecisionInput) => Judged | "erased" | null;

export type BacktestReader = Pick<StorageReader, "decisionSpan"> & Pick<VisibleReads, "decisions">;

/** What these policies would have decided. */
export function backtest(
  reader: BacktestReader,
  compiled: CompiledPolicySet,
  range: BacktestRange,
  breath = createYieldIfSlow(),
): Promise<BacktestReport> {
  return scan(reader, range, breath, (entry, input) => {
    const request = parseCompleteRequest(input);
    if (request === null) return "erased";
    const at = parseRfc3339(entry.at) ?? input.created_at;
    const facts = restoreFacts(entry.facts, input.past);
    const now = decide(compiled, request, withAssumedUsage(compiled, request, facts, at), at);
    const uses = now.effect === "deny" ? [] : findUnrecordedLimits(compiled, request, facts, at);
    return { to: now, otherwise: termsOf(now) !== termsOf(entry.decision), uses, at };
  });
}

/** What a policy in shadow mode said at the time, had it been enforced. Decisions that it had no say in are left out. */
export function reportShadowPolicy(
  reader: BacktestReader,
  policy: string,
  range: BacktestRange,
): Promise<BacktestReport> {
  return scan(reader, range, createYieldIfSlow(), ({ decision }) => {
    const said = decision.shadow.find((outcome) => outcome.policy === policy);
    return said === undefined ? null : { to: withShadow(decision, said), otherwise: false };
  });
}

const STRICTNESS: Readonly<Record<Effect, number>> = { allow: 0, require_approval: 1, deny: 2 };
/** Nobody had a rule: then any policy's word is the first. */
const UNMATCHED = ["NO_MATCHING_RULE", "NO_ACTIVE_POLICY"];

function withShadow(decision: Decision, said: ShadowOutcome): DecisionOutcome {
  const heard = UNMATCHED.includes(decision.reason_code) || STRICTNESS[said.effect] > STRICTNESS[decision.effect];
  return heard ? said : decision;
}

async function scan(
  reader: BacktestReader,
  range: BacktestRange,
  breath: YieldIfSlow,
  judge: Judge,
): Promise<BacktestReport> {
  const counts: BacktestCounts = { evaluated: 0, flipped: 0, otherwise: 0, erased: 0, altered: 0 };
  const groups = new Map<string, FlipGroup>();
  let unlisted = 0;
  const waiting: Waiting[] = [];

  function tally(from: DecisionOutcome, { to, otherwise }: Judged, example: () => FlipExample): void {
    if (to.effect === from.effect) {
      if (otherwise) counts.otherwise++;
      return;
    }
    counts.flipped++;
    const key = JSON.stringify([from, outcomeOf(to)]);
    let group = groups.get(key);
    if (group === undefined && groups.size < MOST_GROUPS)
      groups.set(key, (group = { from, to: outcomeOf(to), count: 0, examples: [] }));
    if (group === undefined) unlisted++;
    else {
      group.count++;
      if (group.examples.length < range.examples) group.examples.push(example());
    }
  }

  async function report(next: number | null): Promise<BacktestReport> {
    const counted = await countUses(waiting, breath, tally);
    return { ...counts, flips: [...groups.values()].sort((a, b) => b.count - a.count), unlisted, counted, next };
  }
  const span = await reader.decisionSpan(range.since, range.until);
  if (span === null) return report(null);
  const end = performance.now() + range.budgetMs;
  let before = Math.min(span.last + 1, range.before_seq ?? Infinity);
  const isOver = (): boolean => performance.now() > end || range.signal?.aborted === true;
  while (before > span.first) {
    const wanted = Math.min(PAGE, range.limit - counts.evaluated);
    if (wanted <= 0 || isOver()) return report(before);
    const rows = await reader.decisions({
      visibility: range.visibility,
      from_seq: span.first,
      before_seq: before,
      since: range.since,
      until: range.until,
      limit: wanted,
    });
    for (const input of rows) {
      // One decision may cost as much as a page of others.
      const due = breath();
      if (due !== null) await due;
      // The first of a page is made in any case: whoever goes on from the answer gets further.
      if (input !== rows[0] && isOver()) return report(before);
      before = input.seq;
      const result = judgeRow(judge, input);
      if (result === "altered" || result === "erased") counts[result]++;
      if (result === null || result === "altered" || result === "erased") continue;
      const { entry, judged } = result;
      counts.evaluated++;
      const from = outcomeOf(entry.decision);
      const { uses = [], at = 0 } = judged;
      if (uses.length === 0) tally(from, judged, () => exampleOf(entry, input));
      else
        waiting.push({
          from,
          judged: { ...judged, to: outcomeOf(judged.to) },
          uses,
          at,
          example: exampleOf(entry, input),
        });
    }
    if (rows.length < wanted) return report(null);
    range.progress?.({ ...counts });
  }
  return report(null);
}

/** One altered row must not cost the whole backtest: reading it, or deciding on what it holds, may throw anything. */
function judgeRow(
  judge: Judge,
  input: DecisionInput,
): { entry: DecisionEntry; judged: Judged } | "erased" | "altered" | null {
  try {
    const entry = decodeEntry<DecisionEntry>(input.bytes);
    const judged = judge(entry, input);
    return judged === null || judged === "erased" ? judged : { entry, judged };
  } catch {
    return "altered";
  }
}

/** A decision that limits without a recorded use concern: it is counted when those before it are known. */
interface Waiting {
  from: DecisionOutcome;
  judged: Judged;
  uses: readonly UnrecordedLimit[];
  at: number;
  example: FlipExample;
}

/** @param waiting newest first */
async function countUses(
  waiting: readonly Waiting[],
  breath: YieldIfSlow,
  tally: (from: DecisionOutcome, judged: Judged, example: () => FlipExample) => void,
): Promise<BacktestReport["counted"]> {
  const count = createLimitSimulation();
  const concerned = new Map<string, BacktestReport["counted"][number]>();
  for (const { from, judged, uses, at, example } of waiting.toReversed()) {
    const due = breath();
    if (due !== null) await due;
    for (const { policy, limit } of uses) {
      const key = JSON.stringify([policy, limit]);
      const subtotal = concerned.get(key) ?? { policy, limit, decisions: 0 };
      concerned.set(key, { ...subtotal, decisions: subtotal.decisions + 1 });
    }
    tally(from, { ...judged, to: count(judged.to, uses, at) }, () => example);
  }
  return [...concerned.values()];
}

function outcomeOf({ effect, policy, rule }: DecisionOutcome): DecisionOutcome {
  return { effect, policy, rule };
}

function termsOf({ policy, rule, approval }: Decision): string {
  const { quorum, expires_in_ms, notify } = approval ?? {};
  return JSON.stringify([
    policy,
    rule,
    quorum,
    expires_in_ms,
    approvalValidityMs(approval),
    rejectionHoldMs(approval),
    notify,
  ]);
}

function exampleOf(entry: DecisionEntry, input: DecisionInput): FlipExample {
  return {
    action_id: input.action_id,
    hash: toHex(hashLeaf(input.bytes)),
    at: entry.at,
    agent_id: entry.agent_id,
    tool: entry.tool,
    operation: entry.operation,
  };
}
