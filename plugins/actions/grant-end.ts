/** Ends grants. The transaction of the cause records each end as an entry. */
import {
  grantState,
  type Actor,
  buildGrantEndEntry,
  findOpenGrants,
  type Grant,
  type GrantEntry,
  type GrantTarget,
  type LedgerTransaction,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";

type Tx = Pick<LedgerTransaction, "record" | "now" | "state" | "placedBar">;
type End = Pick<GrantEntry, "cause" | "related_action" | "comment"> & { by: Actor };

/** Ends the grants for the agent, tool and operation of a rejected action. */
export function endGrantsOnRejection(tx: Tx, row: GrantTarget & Pick<ActionRow, "id">, by: Actor): void {
  for (const grant of findOpenGrants(tx.state(grantState), row, tx.placedBar, tx.now))
    endGrant(tx, grant, { cause: "rejection", related_action: row.id, comment: null, by });
}

/** Ends the grant with `ends_on_failure` that covered an action, because the action has failed. */
export function endGrantOnFailure(tx: Tx, { id, grant_id }: Pick<ActionRow, "id" | "grant_id">, by: Actor): void {
  const grant = tx.state(grantState).all.get(grant_id ?? "");
  if (grant === undefined || !grant.ends_on_failure || grant.ended !== null) return;
  endGrant(tx, grant, { cause: "failure", related_action: id, comment: null, by });
}

/** Records the end of an open grant in the ledger. After the commit, every process applies the end. */
export function endGrant(tx: Tx, grant: Grant, end: End): void {
  tx.record(buildGrantEndEntry(grant, end, tx.now));
}
