/** Starts an action once, on behalf of its submitter or the holder of a permit. */
import {
  actionEntryFields,
  canSee,
  effectiveRequestHash,
  type CoreHost,
  type ExecutionEntry,
  type LedgerTransaction,
  type Prefetch,
  readCheckedPermit,
  sha256Hex,
  type StartPreparation,
  toActor,
  utf8,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  requireMoreApprovals,
  reevaluateAction,
  recordDenial,
  isDeniedByRedecision,
  resolveRedecision,
  type Redecision,
} from "./redecision.ts";
import { toCountedVotes } from "./approver-plans.ts";
import { assertBeforeStartDeadline, assertStartable, isPermitGenuine } from "./grant-permit.ts";
import { findPinChanges } from "./pins.ts";
import { assertClaimsOf } from "./self-approval.ts";
import { verifyAgainstLedger, type VerifiedHistory } from "./verify-record.ts";
import { assertNotErased, isOverdue, actionNotFoundError } from "./visible-action.ts";

/** What a step created for a start that has not been recorded yet. */
export interface Prepared {
  readonly value: unknown;
}

/** A request to start an action. */
interface StartCall {
  id: string;
  permit: string | null;
  /** SHA-256 of the caller's `attempt`, hex. */
  attempt: string | null;
  /** What was created for this start; null if nothing has been created. */
  prepared: Prepared | null;
  /** Hash of the request that the caller is going to run; null if the caller did not send a hash. */
  requestHash: string | null;
  /** Whether the caller lets the service inspect the output. */
  inspects: boolean;
}

export interface StartResult {
  /** The action: executing, or denied or pending if the redecision prevented the start. */
  row: ActionRow;
  /** Whether this request had already started the action. */
  isRetry: boolean;
  /** What must be created before the start can be recorded; absent if nothing. If present, nothing was recorded. */
  needs?: { readonly value: unknown };
  /** Paths of the pinned facts whose change made the action pending again. Absent if there are none. */
  changedPins?: readonly string[];
}

/**
 * Starts the action. The key that submitted the action does not need a permit, because it could get one from the
 * service. A valid permit also authorizes a key that cannot otherwise see the action.
 *
 * A client that lost the response can repeat a start with the same `attempt`. It gets the same response while the
 * action could still start. An action that was denied or stopped since the first response must not run.
 * @param caller the caller's credential, checked again under the ledger's lock
 */
export async function recordStart(
  host: CoreHost,
  tx: LedgerTransaction,
  caller: Credential,
  { id, permit, attempt, requestHash, inspects, prepared }: StartCall,
): Promise<StartResult> {
  const call = { permit: hashOptionalText(permit), attempt };
  const preparation = findPreparation(host);
  const row = await tx.action(id);
  const isGenuine = row !== null && permit !== null && isPermitGenuine(host, row, permit, tx.now);
  if (row === null || !canAccessAction(caller, row, isGenuine)) throw actionNotFoundError(id);
  assertNotErased(row);
  const votes = row.quorum === null ? [] : await tx.approvals(id);
  const history = await verifyAgainstLedger(host, tx, row, votes);
  const { newest, grounds, start } = history;
  const refusedEarlier = attempt !== null && wasRefusedEarlier(row, newest, caller, tx.now);
  if (row.approved_until === null && !refusedEarlier) assertStartable(row, tx.now);
  if (permit === null && row.submitted_by !== caller.key.id)
    throw new Refusal(
      "PERMIT_REQUIRED",
      "another key submitted the action; send a `permit` of the action, or get one from POST /v1/actions/{id}/permit",
    );
  if (permit !== null && !isGenuine)
    throw new Refusal(
      "PERMIT_INVALID",
      "the permit was not issued for this action by this log; get one from POST /v1/actions/{id}/permit",
    );
  if (permit === null) assertClaimsOf(history.basis, row, caller);
  if (refusedEarlier) return { row, isRetry: false };
  const repeated = row.status === "executing" && isSameStart(start, caller, call);
  if (repeated) assertBeforeStartDeadline(row.approved_until ?? 0, tx.now);
  else assertStartable(row, tx.now);
  if (permit !== null) assertPermitInForce(permit, grounds, tx.now);
  assertRunsEffective(row, requestHash);
  const by = toActor(caller.key, caller.principal);
  const approvals = await host.guard.selectApprovals(host, tx, row, history.approvals);
  const redecision = await reevaluateAction(host, tx, row, history.basis);
  const outcome = resolveRedecision(row, redecision, history, toCountedVotes(host, approvals), tx.now);
  const cause = { occasion: "start", by } as const;
  if (repeated) {
    if (outcome !== "confirmed") throw startRevokedError(outcome, redecision);
    const needed = preparation?.find(row, caller) ?? null;
    if (needed === null) return { row, isRetry: repeated };
    if (prepared === null) return { row, isRetry: repeated, needs: { value: needed } };
    await preparation?.record(tx, row, caller, prepared.value);
    return { row, isRetry: repeated };
  }
  if (outcome === "denied") return { row: await recordDenial(tx, row, redecision, cause), isRetry: repeated };
  if (outcome === "pending_approval") {
    const changedPins = findPinChanges(redecision, history, row).map(({ path }) => path);
    const pending = await requireMoreApprovals(tx, row, redecision, cause, history);
    return { row: pending, isRetry: repeated, changedPins };
  }
  const needed = preparation?.find(row, caller) ?? null;
  if (needed !== null && prepared === null) return { row, isRetry: repeated, needs: { value: needed } };
  const { row: started } = tx.recordChange(row, null, {
    type: "execution",
    v: 1,
    ...actionEntryFields(row, tx.now),
    phase: "start",
    by,
    ...call,
    success: null,
    result: null,
    comment: null,
    // The values are those that approvers saw, or the action would have returned to them.
    ...(history.pins === null ? {} : { pins: history.pins }),
    status: "executing",
  });
  for (const reaction of host.reactions)
    await reaction.actionStarted?.(tx, row, { by, facts: history.first.facts, inspects });
  if (prepared !== null) await preparation?.record(tx, row, caller, prepared.value);
  await tx.movePastAction(id, tx.now);
  return { row: started, isRetry: repeated };
}

/** Returns what prepares starts; null if no plugin does. */
export function findPreparation({ steps }: Pick<CoreHost, "steps">): StartPreparation | null {
  const [first, second] = steps.flatMap(({ preparation }) => preparation ?? []);
  if (second !== undefined) throw new Error("two plugins prepare starts; load one of them");
  return first ?? null;
}

/** Returns true if the key can see the action, or has a genuine permit for it and is bound to no agent. */
export const canAccessAction = ({ key, visibility }: Credential, row: ActionRow, hasPermit: boolean): boolean =>
  canSee(visibility, row) || (hasPermit && key.agent_id === null);

/**
 * Throws PERMIT_INVALID if the action returned to pending after the permit was issued, and PERMIT_EXPIRED if it has
 * expired. Computes its expiry from the time of the entry that it is based on, because the times in the permit are by
 * the clock of the machine that signed it.
 */
function assertPermitInForce(permit: string, grounds: VerifiedHistory["grounds"], now: number): void {
  const { decision_hash, valid_ms } = readCheckedPermit(permit);
  const issuedAt = grounds.get(decision_hash);
  if (issuedAt === undefined)
    throw new Refusal(
      "PERMIT_INVALID",
      "the action returned to pending after this permit was issued; get a new one from POST /v1/actions/{id}/permit",
    );
  if (now >= Math.floor(issuedAt / 1000) * 1000 + valid_ms)
    throw new Refusal("PERMIT_EXPIRED", "the permit has expired; get a new one from POST /v1/actions/{id}/permit");
}

export const prefetchStart =
  ({ id }: StartCall): Prefetch =>
  () => ({ history: id });

/**
 * Throws REQUEST_EDITED unless the caller runs the effective request. A caller that does not know of a change would run
 * the submitted parameters.
 */
function assertRunsEffective(row: ActionRow, requestHash: string | null): void {
  const hash = effectiveRequestHash(row);
  if (requestHash === hash || (requestHash === null && row.effective === null)) return;
  throw new Refusal(
    "REQUEST_EDITED",
    requestHash === null
      ? "an approver or a policy changed the request; send the `request_hash` of the action's record with the start, and run `params` of its response"
      : `the action's request has the hash ${hash}, not the one that was sent; read the action again`,
  );
}

/**
 * Returns true if the caller repeats the recorded start: the same key sends the same `attempt`, and the same permit or
 * again no permit.
 */
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
    start.by?.key_id === key.id
  );
}

/**
 * Returns true if the action's newest decision refused an earlier start by this key, and is still in effect. A retry
 * then gets the same response.
 */
function wasRefusedEarlier(
  row: ActionRow,
  newest: VerifiedHistory["newest"],
  { key }: Credential,
  now: number,
): boolean {
  const byStart = newest.type === "redecision" && newest.occasion === "start" && newest.by?.key_id === key.id;
  return byStart && (isDeniedByRedecision(row) || (row.status === "pending_approval" && !isOverdue(row, now)));
}

/**
 * Reports that the action was started but must no longer run. It stays `executing` until the caller reports the result.
 */
function startRevokedError(outcome: "denied" | "pending_approval", { decision }: Redecision): Refusal {
  const reason = `${decision.reason}; this attempt started it, but it must not run now: report a failure as its result`;
  return outcome === "denied"
    ? new Refusal("NO_LONGER_ALLOWED", `the current policies deny the action: ${reason}`)
    : new Refusal("MORE_APPROVALS_NEEDED", `the current policies require more approvals: ${reason}`);
}

export function hashOptionalText(text: string | null): string | null {
  return text === null ? null : sha256Hex(utf8(text));
}
