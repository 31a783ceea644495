/**
 * The only path of a decision: bars and facts, then the rules, then the steps of features. Submissions, previews,
 * edits, votes, permits and starts use it. Replays, backtests and tests call `decide` with the recorded facts instead.
 */
import {
  type ActionRequest,
  applyStepFacts,
  type CompiledPolicySet,
  type CoreHost,
  type CountedDecision,
  decideForEntry,
  type DecisionForEntry,
  encodeRequest,
  Evaluation,
  type Facts,
  type LedgerTransaction,
  type MatchedLimit,
  type RejectionFact,
  type StepReader,
  type SubmittedAction,
  userState,
} from "../../src/core.ts";
import type { StorageReader } from "../../src/storage/index.ts";
import { readLimitUses } from "./limit-usage.ts";
import { readAuthorityInputs } from "./authority-inputs.ts";
import { type LookUpFacts, readEvaluationInputs } from "./read-inputs.ts";
import { findActiveRejection } from "./rejection.ts";

type RuleFacts = Pick<Facts, "labels" | "suggested">;

/** The reads of a decision, within a ledger transaction or at a snapshot. */
export type DecisionReader = StepReader &
  Pick<LedgerTransaction, "agentFacts"> &
  Pick<StorageReader, "action" | "pastActions" | "rejectedAction" | "entriesOfAction">;

/** What is decided, and the facts about the submitter. */
export interface DecisionSubject {
  policies: Pick<LedgerTransaction["activePolicies"], "compiled" | "source">;
  request: ActionRequest;
  /** Id of the action; empty for a preview. */
  id: string;
  facts: Facts;
  /** For an open action, the decision that counted it against limits; null for a new request. */
  counted: CountedDecision | null;
}

export interface DecidedAction extends DecisionForEntry {
  evaluation: Evaluation;
  /** All facts for the rules. `facts` omits those that the entry does not record. */
  given: Facts;
  /** The limits that apply. */
  needs: readonly MatchedLimit[];
}

/**
 * Decides by bars, rules and limits, for the agent and for each delegator of its authority.
 * @param lookUp reads the values of fact sources; see `readEvaluationInputs`
 */
export async function decideByRules(
  host: CoreHost,
  reader: DecisionReader,
  subject: DecisionSubject,
  lookUp?: LookUpFacts,
): Promise<DecidedAction> {
  const read = (of: DecisionSubject): Promise<RuleInputs> => readRuleInputs(host, reader, of, lookUp);
  const agentInputs = await read(subject);
  const { evaluation, facts, needs } = await readAuthorityInputs(host, reader, subject, agentInputs, read);
  const { decision, obliged, facts: recorded } = decideForEntry(evaluation, facts);
  return { decision, obliged, facts: recorded, evaluation, given: facts, needs };
}

type RuleInputs = Pick<DecidedAction, "evaluation" | "needs"> & { facts: Facts };

async function readRuleInputs(
  host: CoreHost,
  reader: DecisionReader,
  { policies: { compiled, source }, request, id, facts: about, counted }: DecisionSubject,
  lookUp: LookUpFacts | undefined,
): Promise<RuleInputs> {
  const commit = source?.["commit"];
  // In each decision, Object.assign takes a tenth of the time of a spread of several objects.
  const factsSoFar: Facts = Object.assign(
    {},
    about,
    reader.barFacts(request),
    findRuleFacts(host, reader, compiled, { agent_id: request.agent_id, ...about }),
    commit === undefined ? null : { policy_commit: commit },
  );
  const first = new Evaluation(compiled, request, factsSoFar, reader.now);
  const { evaluation, facts } = await readEvaluationInputs(host, reader, first, factsSoFar, id, lookUp);
  const uses = compiled.hasLimits ? await readLimitUses(reader, evaluation, facts, counted) : { facts, needs: [] };
  return { evaluation, facts: uses.facts, needs: uses.needs };
}

/** Returns the facts that features contribute to the rules. */
function findRuleFacts(
  { steps }: CoreHost,
  reader: DecisionReader,
  policies: CompiledPolicySet,
  subject: Pick<ActionRequest, "agent_id"> & Pick<Facts, "session">,
): RuleFacts {
  return Object.assign({}, ...steps.map((step) => step.ruleFacts?.(reader, policies, subject))) as RuleFacts;
}

/**
 * Decides by bars, rules, limits and steps. If the rules require approval of a new request, an earlier rejection of it
 * denies it. Otherwise, the first step with facts that suffice allows it.
 * @param submitter the submitter, for steps
 * @param isNew whether the request is new; earlier rejections do not affect an open action
 */
export async function decideAction(
  host: CoreHost,
  reader: DecisionReader,
  subject: DecisionSubject,
  { submitter, isNew }: { submitter: SubmittedAction; isNew: boolean },
  lookUp?: LookUpFacts,
): Promise<DecidedAction> {
  const decided = await decideByRules(host, reader, subject, lookUp);
  const { evaluation } = decided;
  if (decided.decision.effect !== "require_approval") return decided;
  const rejection = isNew ? await findRejection(host, reader, subject.request, decided) : null;
  if (rejection !== null) return { ...decided, ...applyStepFacts(decided, evaluation, { rejection }) };
  for (const step of host.steps) {
    const candidates = step.relax?.({
      reader,
      action: submitter,
      evaluation,
      decided,
      counted: subject.counted,
    });
    for await (const facts of candidates ?? []) {
      const relaxed = applyStepFacts(decided, evaluation, facts);
      if (relaxed.decision.effect === "allow") return { ...decided, ...relaxed };
    }
  }
  return decided;
}

/**
 * Returns the active rejection of a request, or of the request after its obligations. The rejected action was submitted
 * by the agent or by one that gave its authority.
 */
export async function findRejection(
  host: CoreHost,
  reader: DecisionReader,
  request: ActionRequest,
  { obliged, facts }: Pick<DecisionForEntry, "obliged" | "facts">,
): Promise<RejectionFact | null> {
  const agents = new Set([request.agent_id, ...(facts.authority?.links ?? []).map(({ agent_id }) => agent_id)]);
  for (const agent_id of agents)
    for (const each of obliged === null ? [request] : [request, obliged]) {
      const { hash } = encodeRequest({ ...each, agent_id });
      const rejection = await findActiveRejection(host, reader, hash, reader.now, reader.state(userState));
      if (rejection !== null) return rejection;
    }
  return null;
}
