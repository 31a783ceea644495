/** Records changes of delegations within a ledger transaction. */
import { delegationState } from "../../src/core.ts";
import type { Delegation, DelegationEntry, LedgerTransaction, User } from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";

/** Ends all delegations from and to a user who is being deactivated, within a ledger transaction. */
export function endDelegationsOf(tx: LedgerTransaction, { id, name }: User, by: DelegationEntry["by"]): void {
  for (const delegation of tx.state(delegationState).values()) {
    const isOver = delegation.ended !== null || delegation.until <= tx.now;
    if (isOver || (delegation.from !== id && delegation.to !== id)) continue;
    recordDelegationEnd(tx, by, delegation, "user_ended", `the user "${name}" was deactivated`);
  }
}

/** Records the end of a delegation. */
export function recordDelegationEnd(
  tx: LedgerTransaction,
  by: DelegationEntry["by"],
  { id, from, to, groups, agents, tools, starts_at, until }: Delegation,
  cause: DelegationEntry["cause"],
  comment: string | null,
): void {
  const list = (names: readonly string[] | null): string[] | null => (names === null ? null : [...names]);
  const limits = { groups: list(groups), agents: list(agents), tools: list(tools) };
  const period = { starts_at: toRfc3339(starts_at), until: toRfc3339(until) };
  recordDelegation(tx, by, "ended", cause, comment, { id, from, to, ...limits, ...period });
}

/** Records a change of a delegation. */
export function recordDelegation(
  tx: LedgerTransaction,
  by: DelegationEntry["by"],
  change: DelegationEntry["change"],
  cause: DelegationEntry["cause"],
  comment: string | null,
  delegation: DelegationEntry["delegation"],
): void {
  tx.record({ type: "delegation", v: 1, at: toRfc3339(tx.now), change, delegation, cause, comment, by });
}
