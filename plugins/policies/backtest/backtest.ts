/**
 * Replays past decisions with other policies, and reports which decisions would change, and how. Replays each decision
 * with its recorded request, facts and time. Reads pages, newest first, and yields to the event loop between decisions.
 */
import {
  type ActionRequest,
  approvalValidityMs,
  type CompiledPolicySet,
  type CoreHost,
  createYieldIfSlow,
  decide,
  type Decision,
  type DecisionEntry,
  decodeEntry,
  Evaluation,
  type Facts,
  hashLeaf,
  hasUnrecordedInputs,
  listDelegators,
  parseCompleteRequest,
  rejectionHoldMs,
  restoreFacts,
  toHex,
  withAssumedActivation,
} from "../../../src/core.ts";
import { parseRfc3339 } from "../../../src/plugin.ts";
import type { DecisionInput, StorageReader } from "../../../src/storage/index.ts";
import { createLimitSimulation, findUnrecordedLimits, STRICTNESS, type UnrecordedLimit } from "./limit-simulation.ts";
import type {
  BacktestCounts,
  BacktestRange,
  BacktestReport,
  DecisionOutcome,
  FlipExample,
  FlipGroup,
} from "./report.ts";

type YieldIfSlow = ReturnType<typeof createYieldIfSlow>;
/** The recorded outcome of a policy in shadow mode. */
type ShadowOutcome = Decision["shadow"][number];

const PAGE_SIZE = 200;
/** Maximum number of flip groups. Changed decisions of other groups are only counted. */
const MAX_GROUPS = 500;

interface ReplayedDecision {
  /** Outcome to compare with. Default: the recorded decision. */
  from?: DecisionOutcome;
  to: DecisionOutcome;
  otherwise: boolean;
  /**
   * Limits that apply and have no recorded usage: the limits of the previous policies, and the limits of the new
   * policies.
   */
  usesBefore?: readonly UnrecordedLimit[];
  uses?: readonly UnrecordedLimit[];
  /** Time of the decision. Milliseconds. */
  at?: number;
}

/** The reason why a decision cannot be replayed. */
type Unplayable = "erased" | "unrecorded";

/** Replays a decision. Returns null for a decision that the backtest ignores. */
type Replay = (entry: DecisionEntry, input: DecisionInput) => ReplayedDecision | Unplayable | null;

export type BacktestReader = Pick<CoreHost["storage"], "decisionSpan" | "decisions">;

/** Returns the reads of a backtest over a store, with all decisions. */
export function readAllDecisions(storage: Pick<StorageReader, "decisionSpan" | "decisions">): BacktestReader {
  return {
    decisionSpan: (since, until) => storage.decisionSpan(since, until),
    decisions: (filter) => storage.decisions({ ...filter, visibility: { all: true } }),
  };
}

/**
 * Reports the decisions that these policies would have made.
 * @param previous the policies whose decisions are compared; null to compare with the recorded decisions
 */
export function backtest(
  reader: BacktestReader,
  compiled: CompiledPolicySet,
  range: BacktestRange,
  yieldIfSlow = createYieldIfSlow(),
  previous: CompiledPolicySet | null = null,
): Promise<BacktestReport> {
  return scan(reader, range, yieldIfSlow, (entry, input) => {
    const request = parseCompleteRequest(input);
    if (request === null) return "erased";
    const at = parseRfc3339(entry.at) ?? input.created_at;
    const facts = restoreFacts(entry.facts, input.past);
    const before =
      previous === null ? { decision: entry.decision, uses: [] } : decideAgain(previous, request, facts, at);
    const after = decideAgain(compiled, request, facts, at);
    if (before === null || after === null) return "unrecorded";
    return {
      from: before.decision,
      usesBefore: before.uses,
      to: after.decision,
      uses: after.uses,
      otherwise: differs(after.decision, before.decision),
      at,
    };
  });
}

/** Evaluates a past request with other policies. Returns null if they read inputs that were not recorded. */
function decideAgain(
  set: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  at: number,
): { decision: Decision; uses: readonly UnrecordedLimit[] } | null {
  const evaluation = new Evaluation(set, request, facts, at);
  const delegators = listDelegators(evaluation);
  const all = [{ evaluation, facts }, ...delegators];
  if (all.some((each) => hasUnrecordedInputs(each.evaluation, each.facts))) return null;
  const [assumed, ...ofDelegators] = all.map((each) =>
    withAssumedActivation(set, each.evaluation.request, each.facts, at),
  );
  const given = { ...assumed, ...(delegators.length === 0 ? {} : { delegators: ofDelegators }) } as Facts;
  const decision = decide(set, request, given, at);
  return { decision, uses: decision.effect === "deny" ? [] : findUnrecordedLimits(set, request, facts, at) };
}

/**
 * Reports which recorded decisions would change if a policy in shadow mode were enforced. Ignores decisions that have
 * no recorded result of the policy.
 * @param inPlaceOf the rule in whose place the policy allows actions; null unless the policy was suggested
 */
export function reportShadowPolicy(
  reader: BacktestReader,
  policy: string,
  inPlaceOf: { policy: string; rule: string } | null,
  range: BacktestRange,
): Promise<BacktestReport> {
  return scan(reader, range, createYieldIfSlow(), ({ decision }) => {
    const shadow = decision.shadow.find((outcome) => outcome.policy === policy);
    if (shadow === undefined) return null;
    const to = inPlaceOf === null ? withShadow(decision, shadow) : withSuggestion(decision, shadow, inPlaceOf);
    return { to, otherwise: false };
  });
}

/**
 * Reason codes of decisions without a matching rule. An enforced version of a shadow policy would replace such a
 * decision, whatever its effect.
 */
const UNMATCHED = ["NO_MATCHING_RULE", "NO_ACTIVE_POLICY"];

function withShadow(decision: Decision, shadow: ShadowOutcome): DecisionOutcome {
  const decides = UNMATCHED.includes(decision.reason_code) || STRICTNESS[shadow.effect] > STRICTNESS[decision.effect];
  return decides ? shadow : decision;
}

/**
 * Returns the decision as it would be if a suggested policy were enforced. The policy's `allow` replaces a decision of
 * the given rule that requires approval. Ignores other rules that also required approval, because decisions do not
 * record them.
 */
function withSuggestion(
  decision: Decision,
  shadow: ShadowOutcome,
  { policy, rule }: { policy: string; rule: string },
): DecisionOutcome {
  const replaces =
    decision.effect === "require_approval" &&
    decision.reason_code === "POLICY_RULE" &&
    decision.policy === policy &&
    decision.rule === rule;
  return replaces && shadow.effect === "allow" ? shadow : decision;
}

async function scan(
  reader: BacktestReader,
  range: BacktestRange,
  yieldIfSlow: YieldIfSlow,
  replay: Replay,
): Promise<BacktestReport> {
  const counts: BacktestCounts = { evaluated: 0, flipped: 0, otherwise: 0, erased: 0, unrecorded: 0, altered: 0 };
  const groups = new Map<string, FlipGroup>();
  let unlisted = 0;
  const deferred: DeferredDecision[] = [];

  function tally(from: DecisionOutcome, { to, otherwise }: ReplayedDecision, example: () => FlipExample): void {
    if (to.effect === from.effect) {
      if (otherwise) counts.otherwise++;
      return;
    }
    counts.flipped++;
    const key = JSON.stringify([from, outcomeOf(to)]);
    let group = groups.get(key);
    if (group === undefined && groups.size < MAX_GROUPS)
      groups.set(key, (group = { from, to: outcomeOf(to), count: 0, examples: [] }));
    if (group === undefined) unlisted++;
    else {
      group.count++;
      if (group.examples.length < range.examples) group.examples.push(example());
    }
  }

  async function report(next: number | null): Promise<BacktestReport> {
    const counted = await applyLimits(deferred, yieldIfSlow, tally);
    return { ...counts, flips: [...groups.values()].sort((a, b) => b.count - a.count), unlisted, counted, next };
  }
  const span = await reader.decisionSpan(range.since, range.until);
  if (span === null) return report(null);
  const end = performance.now() + range.budgetMs;
  let before = Math.min(span.last + 1, range.before_seq ?? Infinity);
  const isOver = (): boolean => performance.now() > end || range.signal?.aborted === true;
  while (before > span.first) {
    const pageSize = Math.min(PAGE_SIZE, range.limit - counts.evaluated);
    if (pageSize <= 0 || isOver()) return report(before);
    const rows = await reader.decisions({
      visibility: range.visibility,
      from_seq: span.first,
      before_seq: before,
      since: range.since,
      until: range.until,
      limit: pageSize,
    });
    for (const input of rows) {
      // Yield between decisions, because one decision can take as long as a whole page of other decisions.
      const pause = yieldIfSlow();
      if (pause !== null) await pause;
      // Always replay the first row of a page, so that a client that continues from the report makes progress.
      if (input !== rows[0] && isOver()) return report(before);
      before = input.seq;
      const result = replayRow(replay, input);
      if (typeof result === "string") counts[result]++;
      if (result === null || typeof result === "string") continue;
      const { entry, replayed } = result;
      counts.evaluated++;
      const from = outcomeOf(replayed.from ?? entry.decision);
      const { usesBefore = [], uses = [], at = 0 } = replayed;
      if (usesBefore.length + uses.length === 0) tally(from, replayed, () => exampleOf(entry, input));
      else
        deferred.push({
          from,
          replayed: { to: outcomeOf(replayed.to), otherwise: replayed.otherwise },
          usesBefore,
          uses,
          at,
          example: exampleOf(entry, input),
        });
    }
    if (rows.length < pageSize) return report(null);
    await range.progress?.({ ...counts });
  }
  return report(null);
}

/** Replays one row. Returns "altered" on any error, so that one altered row does not make the whole backtest fail. */
function replayRow(
  replay: Replay,
  input: DecisionInput,
): { entry: DecisionEntry; replayed: ReplayedDecision } | Unplayable | "altered" | null {
  try {
    const entry = decodeEntry<DecisionEntry>(input.bytes);
    const replayed = replay(entry, input);
    return replayed === null || typeof replayed === "string" ? replayed : { entry, replayed };
  } catch {
    return "altered";
  }
}

/** A decision whose outcome depends on earlier decisions, because it has limits without a recorded usage. */
interface DeferredDecision {
  from: DecisionOutcome;
  replayed: ReplayedDecision;
  usesBefore: readonly UnrecordedLimit[];
  uses: readonly UnrecordedLimit[];
  at: number;
  example: FlipExample;
}

/**
 * Simulates the limits, and counts for each limit the decisions to which it applies.
 * @param deferred the decisions, newest first
 */
async function applyLimits(
  deferred: readonly DeferredDecision[],
  yieldIfSlow: YieldIfSlow,
  tally: (from: DecisionOutcome, replayed: ReplayedDecision, example: () => FlipExample) => void,
): Promise<BacktestReport["counted"]> {
  const [simulateBefore, simulate] = [createLimitSimulation(), createLimitSimulation()];
  const totals = new Map<string, BacktestReport["counted"][number]>();
  for (const { from, replayed, usesBefore, uses, at, example } of deferred.toReversed()) {
    const pause = yieldIfSlow();
    if (pause !== null) await pause;
    for (const { policy, limit } of uses) {
      const key = JSON.stringify([policy, limit]);
      const subtotal = totals.get(key) ?? { policy, limit, decisions: 0 };
      totals.set(key, { ...subtotal, decisions: subtotal.decisions + 1 });
    }
    const to = simulate(replayed.to, uses, at);
    tally(simulateBefore(from, usesBefore, at), { ...replayed, to }, () => example);
  }
  return [...totals.values()];
}

function outcomeOf({ effect, policy, rule }: DecisionOutcome): DecisionOutcome {
  return { effect, policy, rule };
}

/** Returns true if a different rule decided, or if the approval has different terms. */
function differs(a: Decision, b: Decision): boolean {
  if (a.policy !== b.policy || a.rule !== b.rule) return true;
  return (a.approval !== null || b.approval !== null) && approvalTerms(a.approval) !== approvalTerms(b.approval);
}

function approvalTerms(approval: Decision["approval"]): string {
  const { quorum, expires_in_ms, notify } = approval ?? {};
  return JSON.stringify([quorum, expires_in_ms, approvalValidityMs(approval), rejectionHoldMs(approval), notify]);
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
