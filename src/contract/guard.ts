/** Conditions of features for approving and starting actions, beyond what the policies require. */
import type { RecordedApproval } from "../domain/action-history.ts";
import type { ErrorKind, Refusal } from "./errors.ts";
import type { ActionRow, StorageReader } from "./storage.ts";

/** The reads of a guard: of a ledger transaction. */
export type GuardReader = Pick<StorageReader, "actions" | "entries" | "entriesOfAction"> & { readonly now: number };

export interface Guard<Host = never> {
  /** The errors of `findApprovalBlock`. */
  readonly approvalErrors: readonly ErrorKind[];
  /** The errors of `selectApprovals`. */
  readonly startErrors: readonly ErrorKind[];
  /**
   * Returns a refusal if people cannot approve this action by itself, for example because it is part of a plan; null if
   * they can. They can always reject it.
   */
  findApprovalBlock(action: ActionRow): Refusal | null;
  /**
   * Returns the approvals that count for a start or a permit. Throws a refusal if the action cannot start now. Called
   * under the ledger's lock.
   * @param action an action that matches its entries
   * @param approvals the approvals of the action that previous guards returned
   */
  selectApprovals(
    host: Host,
    reader: GuardReader,
    action: ActionRow,
    approvals: readonly RecordedApproval[],
  ): Promise<readonly RecordedApproval[]>;
}

/** The guards of all plugins as one. */
export function combineGuards<Host>(guards: readonly Guard<Host>[]): Guard<Host> {
  return {
    approvalErrors: guards.flatMap(({ approvalErrors }) => approvalErrors),
    startErrors: guards.flatMap(({ startErrors }) => startErrors),
    findApprovalBlock(action) {
      for (const guard of guards) {
        const block = guard.findApprovalBlock(action);
        if (block !== null) return block;
      }
      return null;
    },
    async selectApprovals(host, reader, action, approvals) {
      let counted = approvals;
      for (const guard of guards) counted = await guard.selectApprovals(host, reader, action, counted);
      return counted;
    },
  };
}
