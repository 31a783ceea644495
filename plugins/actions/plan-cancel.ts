/** Cancels a plan: one transaction cancels all of its actions that the caller can cancel. */
import { type CoreHost, withoutDelegations } from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { cancelVisibleAction } from "./cast-vote.ts";
import { readRowsOfVisiblePlan } from "./plan-state.ts";
import { isOverdue, isStartable } from "./visible-action.ts";

/**
 * Cancels the pending actions of the plan. For an admin, also cancels the actions that may start and have not started.
 * Returns all actions of the plan. Throws NOT_THE_SUBMITTER, and ACTION_NOT_PENDING if there is nothing to cancel.
 */
export function cancelPlan(
  host: CoreHost,
  credential: Credential,
  id: string,
  reason: string | null,
): Promise<ActionRow[]> {
  return host.ledger.transact(async (tx) => {
    const caller = withoutDelegations(await tx.confirm(credential));
    const rows = await readRowsOfVisiblePlan(tx, id, caller);
    const isOpen = (row: ActionRow): boolean =>
      row.status === "pending_approval"
        ? !isOverdue(row, tx.now)
        : caller.hasScope("admin") && isStartable(row, tx.now);
    const open = rows.filter(isOpen);
    if (open.length === 0)
      throw new Refusal(
        "ACTION_NOT_PENDING",
        `no action of the plan ${id} is pending; an admin can also cancel actions that may start`,
      );
    for (const row of open) await cancelVisibleAction(tx, caller, row, reason);
    return readRowsOfVisiblePlan(tx, id, caller);
  });
}
