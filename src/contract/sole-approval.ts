/**
 * Lets one person approve an action without its other approvers (the member `break_glass` of a vote's body). The vote's
 * entry records this, and another person reviews it later.
 */
import type { TBoolean } from "@sinclair/typebox";
import type { Actor } from "../domain/entries.ts";
import type { SelfRelation } from "../domain/approval.ts";
import type { ErrorKind, Refusal } from "./errors.ts";
import type { Credential } from "./host.ts";
import type { LedgerTransaction } from "./ledger.ts";
import type { StatesReader } from "./states.ts";
import type { ActionRow } from "./storage.ts";

/** At most one plugin declares it. */
export interface SoleApproval {
  /** Schema of the member `break_glass` of a vote's body. */
  readonly body: TBoolean;
  /** Errors of a vote with this member. */
  readonly errors: readonly ErrorKind[];
  /** Throws VALIDATION_FAILED unless a vote with these members can be a sole approval. */
  assertForm(vote: { approve: boolean; reason?: string; grant?: unknown }): void;
  /**
   * Returns a refusal if the voter cannot approve alone; null if they can.
   * @param caller null for a vote by link
   * @param self why the voter is the person behind the agent; null if they are not
   */
  findRefusal(
    caller: Pick<Credential, "session" | "hasScope"> | null,
    action: ActionRow,
    self: SelfRelation | null,
  ): Refusal | null;
  /** Records the approval. Called directly after the entry of its vote. */
  record(tx: LedgerTransaction, action: ActionRow, approval: { id: string; by: Actor; reason: string }): void;
  /** Lists the approvals that no one has reviewed, oldest first. */
  listUnreviewed(states: StatesReader): readonly { id: string; agent_id: string; tool: string }[];
}
