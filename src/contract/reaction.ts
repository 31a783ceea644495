/**
 * Reactions of features to a failed action, a person who loses trust, or a change of policies, in the transaction that
 * records it.
 */
import type { Actor } from "../domain/entries.ts";
import type { PolicySetDocument, RecordedFacts } from "../domain/policy/policy-types.ts";
import type { User } from "../domain/users.ts";
import type { BarCoverage } from "./bar.ts";
import type { ErrorKind } from "./errors.ts";
import type { LedgerTransaction } from "./ledger.ts";
import type { PolicyActivation } from "./policies.ts";
import type { ActionRow } from "./storage.ts";

export type ReactionTransaction = Pick<LedgerTransaction, "record" | "now" | "state" | "placedBar">;

/** A reaction is called after the entry that it reacts to was recorded, under the ledger's lock. */
export interface Reaction {
  /** The action was started. Not called for a repeated start. */
  actionStarted?(tx: LedgerTransaction, action: ActionRow, start: ActionStart): Promise<void>;
  /** The result of the action was reported. Called before `actionFailed`. */
  resultReported?(tx: LedgerTransaction, action: ActionRow, result: ActionOutcome): Promise<void>;
  /**
   * Called when no result was reported in time, so that the outcome is unknown. `facts` are those of the action's first
   * decision.
   */
  resultMissing?(tx: LedgerTransaction, action: ActionRow, facts: RecordedFacts): Promise<void>;
  /** A bar was placed. */
  barPlaced?(tx: ReactionTransaction, bar: NewBar): void;
  /**
   * Called before policies are activated over the API; `edits` contains them by name. Throws a `Refusal` with one of
   * `activationErrors` to prevent it. Not called for policies of sources, because people review them there.
   */
  activatingPolicies?(tx: LedgerTransaction, edits: ReadonlyMap<string, PolicyActivation>): void;
  readonly activationErrors?: readonly ErrorKind[];
  /** A different policy set was activated. @param by null if a policy source did it */
  policiesActivated?(tx: LedgerTransaction, set: Pick<PolicySetDocument, "policies">, by: Actor | null): Promise<void>;
  /** A person rejected the action. */
  actionRejected?(tx: ReactionTransaction, action: ActionRow, by: Actor): void;
  /** A person withdrew their approval of the action. */
  approvalWithdrawn?(tx: ReactionTransaction, action: ActionRow, by: Actor): void;
  /** The result of the action reports failure. */
  actionFailed?(tx: ReactionTransaction, action: ActionRow, by: Actor): void;
  agentSuspended?(tx: ReactionTransaction, agentId: string, by: Actor): void;
  /** A user is being deactivated, whose keys `keyIds` were revoked. The entry of the user follows. */
  userDeactivated?(
    tx: ReactionTransaction,
    user: Pick<User, "id" | "name">,
    keyIds: readonly string[],
    by: Actor,
  ): void;
}

export interface ActionStart {
  by: Actor;
  /** The facts of the action's first decision. */
  facts: RecordedFacts;
  /** Whether the caller lets the service inspect the output before the agent gets it. */
  inspects: boolean;
}

export interface ActionOutcome {
  success: boolean;
  by: Actor;
  /** The facts of the action's first and newest decision. */
  facts: readonly RecordedFacts[];
}

export interface NewBar {
  id: string;
  reason: string;
  by: Actor;
  covers: BarCoverage;
}
