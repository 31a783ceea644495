/** Lifts a rejection, so that it no longer denies duplicate requests. */
import {
  actionEntryFields,
  confirmCredential,
  type CoreHost,
  type LedgerTransaction,
  NON_VOTE_FIELDS,
  toActor,
  withoutDelegations,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow, ApprovalRow } from "../../src/storage/index.ts";
import { verifyAgainstLedger } from "./verify-record.ts";
import { readRejection } from "./rejection.ts";
import { visibleAction } from "./visible-action.ts";
import { findSelfApproval } from "./self-approval.ts";
import { assertNotSelf } from "./voter.ts";

/** The columns of an erased action after its rejection was lifted. */
const NO_REJECTION_DIGESTS = { request_hash: "", effective_hash: null, salt: "" } as const;

/**
 * Lifts the rejection, so that the policies decide again on the same request. Available to everyone who can vote on the
 * action for themselves.
 */
export function liftRejection(
  host: CoreHost,
  credential: Credential,
  id: string,
  reason: string | null,
): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    // The person behind the agent could otherwise have a delegate lift the rejection.
    const current = withoutDelegations(await confirmCredential(tx, credential, "approvals:decide"));
    const row = await visibleAction(tx, id, current);
    assertNotSelf(findSelfApproval(host, row, current));
    const votes = await tx.approvals(id);
    const { commitment } = await verifyAgainstLedger(host, tx, row, votes);
    if (row.rejection_until === null || row.rejection_until <= tx.now)
      throw await rejectionNotHeldError(tx, row, votes);
    const entry = {
      type: "approval",
      v: 1,
      ...actionEntryFields(row, tx.now),
      // The row of an erased action no longer has the salt of its commitment.
      commitment,
      verdict: "rejection_lifted",
      by: toActor(current.key, current.principal),
      comment: reason,
      ...NON_VOTE_FIELDS,
      approvals: votes.filter(({ approve }) => approve).length,
      quorum: row.quorum ?? 1,
      status: "denied",
      approved_until: null,
      rejection_until: null,
    } as const;
    return tx.recordChange(row, null, entry, row.erased_at === null ? {} : NO_REJECTION_DIGESTS).row;
  });
}

async function rejectionNotHeldError(
  tx: LedgerTransaction,
  row: ActionRow,
  votes: readonly ApprovalRow[],
): Promise<Refusal> {
  const rejection = await readRejection(tx, row, votes, tx.now);
  const isEarlier = rejection !== null && rejection.action_id !== row.id;
  const detail = isEarlier
    ? `the action ${row.id} was denied because of the rejection of ${rejection.action_id}; lift that rejection instead`
    : `the action ${row.id} has no active rejection; the same request can be submitted again`;
  return new Refusal("REJECTION_NOT_HELD", detail);
}
