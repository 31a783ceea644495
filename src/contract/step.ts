/** Steps that features add to decisions, after the rules. Steps before the rules are bars; see bar.ts. */
import type { DecisionForEntry, StepFacts } from "../domain/policy/decide/decide.ts";
import type { JsonObject } from "../domain/json.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { Evaluation } from "../domain/policy/decide/evaluation.ts";
import type { AuthorityFact, Facts } from "../domain/policy/policy-types.ts";
import type { Credential } from "./host.ts";
import type { LedgerTransaction, Snapshot } from "./ledger.ts";
import type { StatesReader } from "./states.ts";
import type { ActionRow, StorageReader } from "./storage.ts";

/** A step of decisions. */
export interface DecisionStep {
  /** Unique among all plugins. */
  readonly name: string;
  /**
   * Returns facts that the rules read. Called under the ledger's lock for every decision, so it must be fast. The other
   * members are called only for actions that require approval, so other actions do not pay for them.
   */
  ruleFacts?(
    states: StatesReader,
    policies: CompiledPolicySet,
    subject: Pick<ActionRow, "agent_id"> & Pick<Facts, "session">,
  ): Pick<Facts, "labels" | "suggested">;
  /**
   * Returns true if the client that runs the action must let the service inspect the output before the agent receives
   * it. The action's record then has `inspect`.
   */
  inspectsOutput?(
    policies: CompiledPolicySet,
    action: Pick<ActionRow, "agent_id" | "authority" | "tool" | "operation">,
  ): boolean;
  /**
   * Returns the authority that a request of the agent names; null if the step does not know it. An action under an
   * authority that no step knows is denied. Called under the ledger's lock for each decision that names one.
   */
  resolveAuthority?(states: StatesReader, id: string, agentId: string): AuthorityFact | null;
  /**
   * Returns facts with which the policies can allow an action that requires approval, in the order to try them; null if
   * there are none. The service decides with each of them, and records the first facts that lead to an allow, so a
   * replay needs only the record and no code of the step. Called for submissions, previews, votes, permits and starts.
   */
  relax?(action: RelaxableAction): AsyncIterable<StepFacts> | null;
  /**
   * Checks a submission that requires approval. Throws a `Refusal` if it must not be recorded. Otherwise returns a
   * function that records entries after the decision, or null. Called under the ledger's lock, also for the keys of the
   * submission's delegators, for which nothing is recorded.
   */
  tighten?(tx: LedgerTransaction, submission: ApprovalSubmission): Promise<(() => void) | null>;
  /** Creates something, such as a credential, for the start of an action. At most one step has it. */
  readonly preparation?: StartPreparation;
}

/**
 * Creates something for the start of an action, which the caller gets only after the start is recorded:
 * 1. A first transaction decides that the action can start, and calls `find`. It records nothing yet.
 * 2. `create` is called without the ledger's lock. If it fails, the action has not started, and the start can be repeated.
 * 3. A second transaction decides again, and records the start. It calls `record`.
 */
export interface StartPreparation<Needed = unknown, Prepared = unknown> {
  /**
   * Returns what must be created; null if nothing. Throws a `Refusal` if the action must not start.
   * @param action verified against the ledger
   */
  find(action: ActionRow, caller: Credential): Needed | null;
  /** Can take seconds. Rejects with a `Refusal`. */
  create(needed: Needed): Promise<Prepared>;
  record(tx: LedgerTransaction, action: ActionRow, caller: Credential, prepared: Prepared): Promise<void>;
  /** Removes a prepared value that no caller receives because the start was not recorded. Never rejects. */
  discard(prepared: Prepared): Promise<void>;
  /** Returns the member `credential` of the response. */
  render(prepared: Prepared): { issuer: string; expires_at: string; secret: JsonObject };
}

/** The submitter and names of an action that is recorded, or about to be decided. */
export type SubmittedAction = Pick<
  ActionRow,
  "agent_id" | "tool" | "operation" | "submitted_by" | "submitted_agent" | "submitted_owner"
> &
  Partial<Pick<ActionRow, "authority">>;

/** The reads of a step, within a ledger transaction or at a snapshot. */
export type StepReader = Snapshot & Pick<StorageReader, "key" | "limitUsed">;

/** An action for which the policies require approval. */
export interface RelaxableAction {
  reader: StepReader;
  action: SubmittedAction;
  evaluation: Evaluation;
  decided: DecisionForEntry;
  /** For an open action, the decision that counted it against limits; null for a new request. */
  counted: CountedDecision | null;
}

/** The decision that counted an action against limits. */
export interface CountedDecision {
  facts: Facts;
  /** Whether the action has started since. */
  hasStarted: boolean;
}

/** A submission that is about to be recorded as pending. */
export interface ApprovalSubmission {
  credential: Pick<Credential, "key" | "principal">;
  /** Id of the new action. */
  id: string;
  agent_id: string;
}
