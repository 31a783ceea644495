/** Start once, as the submitter or with a permit. */
import {
  toActor,
  type Credential,
  type Host,
  type LedgerTransaction,
  canSee,
  Refusal,
  sha256Hex,
  utf8,
} from "../../src/plugin.ts";
import {
  actionEntryFields,
  principalsBehindVote,
  countPeople,
  type ExecutionEntry,
  permitDecisionHash,
  type Prefetch,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  requireMoreApprovals,
  reevaluateAction,
  recordDenial,
  isDeniedByRedecision,
  resolveOutcome,
  type Redecision,
} from "./redecision.ts";
import { assertBeforeStartDeadline, assertStartable, findPermitFault } from "./permits.ts";
import { verifyAgainstLedger, type VerifiedHistory } from "./verify-record.ts";
import { assertNotErased, isOverdue, actionNotFound } from "./rows.ts";

/** A start as it is decided under the lock. */
export interface StartCall {
  id: string;
  permit: string | null;
  /** SHA-256 of the text that the caller named it by, hex. */
  attempt: string | null;
}

export interface StartResult {
  /** Executing; or, where it was decided again and did not start, denied or pending. */
  row: ActionRow;
  /** This very call had started it before. */
  isRetry: boolean;
}

/**
 * The key that submitted the action needs no permit: it would be given one. A tool that holds a permit may start an
 * action it could not otherwise see: the permit is the proof.
 *
 * A start that names its attempt may be sent again: whoever did not hear the answer gets it then, as long as the action
 * could still start now. What was denied or stopped since must not run, whoever was promised that it may.
 * @param who as the lock confirmed it
 */
export async function decideStart(
  host: Host,
  tx: LedgerTransaction,
  who: Credential,
  { id, permit, attempt }: StartCall,
): Promise<StartResult> {
  const call = { permit: hashText(permit), attempt };
  const row = await tx.action(id);
  const fault = row === null || permit === null ? null : findPermitFault(host, row, permit, tx.now);
  const genuine = permit !== null && (fault === null || fault === "expired");
  const reachable = row !== null && (canSee(who.visibility, row) || (genuine && who.key.agent_id === null));
  if (!reachable) throw actionNotFound(id);
  assertNotErased(row);
  const votes = row.quorum === null ? [] : await tx.approvals(id);
  const { first, newest, grounds, start } = await verifyAgainstLedger(host, tx, row, votes);
  const turnedDown = attempt !== null && wasRefusedEarlier(row, newest, who, tx.now);
  if (row.approved_until === null && !turnedDown) assertStartable(row, tx.now);
  if (permit === null && row.submitted_by !== who.key.id)
    throw new Refusal(
      "PERMIT_REQUIRED",
      "another key submitted the action; send the `permit` that it was given, or take one from POST /v1/actions/{id}/permit",
    );
  if (permit !== null && !genuine)
    throw new Refusal(
      "PERMIT_INVALID",
      "the permit was not made for this action by this log; take one from POST /v1/actions/{id}/permit",
    );
  if (turnedDown) return { row, isRetry: false };
  const repeated = row.status === "executing" && isSameStart(start, who, call);
  if (repeated) assertBeforeStartDeadline(row.approved_until ?? 0, tx.now);
  else assertStartable(row, tx.now);
  if (fault === "expired")
    throw new Refusal("PERMIT_EXPIRED", "the permit has ended; take another from POST /v1/actions/{id}/permit");
  if (permit !== null && !grounds.has(permitDecisionHash(permit)))
    throw new Refusal(
      "PERMIT_INVALID",
      "the action waited for approval again after this permit was made; take another from POST /v1/actions/{id}/permit",
    );
  const by = toActor(who.key, who.principal);
  const again = await reevaluateAction(tx, row, first);
  const approvals = countPeople(votes.filter(({ approve }) => approve).map((vote) => principalsBehindVote(host, vote)));
  const outcome = resolveOutcome(again, approvals);
  const cause = { occasion: "start", by } as const;
  if (repeated) {
    if (outcome !== "stands") throw startRevokedError(outcome, again);
    return { row, isRetry: repeated };
  }
  if (outcome === "denied") return { row: await recordDenial(tx, row, again, cause), isRetry: repeated };
  if (outcome === "pending_approval")
    return { row: await requireMoreApprovals(tx, row, again, cause), isRetry: repeated };
  tx.record(
    {
      type: "execution",
      v: 3,
      ...actionEntryFields(row, tx.now),
      phase: "start",
      by,
      ...call,
      success: null,
      result: null,
      status: "executing",
    },
    row.submitted_by,
  );
  const change = { status: "executing", started_at: tx.now, started_by: who.key.id, updated_at: tx.now } as const;
  tx.expectChange(tx.updateAction(id, { status: row.status, approved_after: tx.now }, change));
  return { row: { ...row, ...change }, isRetry: repeated };
}

export const prefetchStart =
  ({ id }: StartCall): Prefetch =>
  () => ({ history: id });

/** By the key that made it, under the attempt that it named, and with the same permit or none. */
function isSameStart(
  start: ExecutionEntry | null,
  { key }: Credential,
  call: { permit: string | null; attempt: string | null },
): boolean {
  return (
    start !== null &&
    call.attempt !== null &&
    start.attempt === call.attempt &&
    start.permit === call.permit &&
    start.by.key_id === key.id
  );
}

/** A start by this key had it decided again, and that is how it still stands. Whoever did not hear it is told the same. */
function wasRefusedEarlier(
  row: ActionRow,
  newest: VerifiedHistory["newest"],
  { key }: Credential,
  now: number,
): boolean {
  const byStart = newest.type === "redecision" && newest.occasion === "start" && newest.by?.key_id === key.id;
  return byStart && (isDeniedByRedecision(row) || (row.status === "pending_approval" && !isOverdue(row, now)));
}

/** It was started, and the answer was not heard. The action runs nowhere, and stays as it is: its result says so. */
function startRevokedError(outcome: "denied" | "pending_approval", { decision }: Redecision): Refusal {
  const because = `${decision.reason}; it was started with this attempt and must not run any more: report that as its result`;
  return outcome === "denied"
    ? new Refusal("NO_LONGER_ALLOWED", `it was decided again, and is denied: ${because}`)
    : new Refusal("MORE_APPROVALS_NEEDED", `it was decided again, and more people have to approve it: ${because}`);
}

export function hashText(text: string | null): string | null {
  return text === null ? null : sha256Hex(utf8(text));
}
