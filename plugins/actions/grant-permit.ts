/** Issues and verifies permits, which prove that an action may start. */
import { randomBytes } from "node:crypto";
import {
  canSee,
  computeActionDigest,
  confirmCredential,
  type CoreHost,
  decodeAuthority,
  type DecisionEntry,
  effectiveRequestHash,
  effectiveRequest,
  encodeRequest,
  type PermitSubject,
  type PermitTerms,
  type RedecisionEntry,
  toActor,
  toActorClaim,
  toBase64Url,
} from "../../src/core.ts";
import { toCountedVotes } from "./approver-plans.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { computePermitTimes, shiftPermitTimes } from "./permit-times.ts";
import { findPinChanges } from "./pins.ts";
import { prefetchRedecision } from "./prefetch-redecision.ts";
import {
  requireMoreApprovals,
  recordConfirmation,
  reevaluateAction,
  recordDenial,
  resolveRedecision,
  type Redecision,
} from "./redecision.ts";
import { assertClaimsOf } from "./self-approval.ts";
import { verifyAgainstLedger } from "./verify-record.ts";
import { assertNotErased, visibleAction } from "./visible-action.ts";

/** Maximum number of permits of one action. Each adds an entry to the ledger. */
const MAX_PERMITS = 100;

/**
 * Maximum number of characters of past data that the decisions on an action may have read. Beyond it, the service
 * issues no more permits, because each permit can add to this data.
 */
const MAX_PAST = 1_048_576;

/** Result of a request for a permit: the action after its redecision. */
export interface PermitOutcome {
  row: ActionRow;
  /** Null unless the action may start. */
  permit: Permit | null;
  previous: Pick<DecisionEntry | RedecisionEntry, "decision" | "policy_set">;
  current: Pick<Redecision, "decision" | "policySet">;
  /** Paths of the pinned facts because of which the action is pending again. */
  changedPins: readonly string[];
}

export interface Permit {
  text: string;
  expires_at: number;
}

/**
 * Evaluates the policies again for an action, records the redecision and issues a permit if the action may still start.
 * Throws for example ACTION_NOT_STARTABLE, START_EXPIRED or TOO_MANY_PERMITS. The permit is signed after the commit.
 */
export async function grantPermit(host: CoreHost, credential: Credential, id: string): Promise<PermitOutcome> {
  await prefetchRedecision(host, [id], (row) => canSee(credential.visibility, row));
  const granted = await host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "actions:execute");
    const row = await visibleAction(tx, id, caller);
    assertNotErased(row);
    const votes = row.quorum === null ? [] : await tx.approvals(id);
    const history = await verifyAgainstLedger(host, tx, row, votes);
    const { newest: before, permits } = history;
    assertClaimsOf(history.basis, row, caller);
    const until = assertStartable(row, tx.now);
    const times = computePermitTimes(tx.now, host.config.permits.valid_seconds, until);
    if (times.expires_at <= tx.now) throw startExpiredError(until);
    host.permits.assertSigns(times.expires_at);
    if (permits >= MAX_PERMITS)
      throw new Refusal(
        "TOO_MANY_PERMITS",
        `${MAX_PERMITS} permits were issued for the action ${id}, which is the limit; start it with one of them, or submit it again`,
      );
    if (permits > 0 && (row.past?.length ?? 0) > MAX_PAST)
      throw new Refusal(
        "TOO_MANY_PERMITS",
        `the decisions on the action ${id} read more past data than one action can store; start it with one of its permits, or submit it again`,
      );
    const approvals = await host.guard.selectApprovals(host, tx, row, history.approvals);
    const redecision = await reevaluateAction(host, tx, row, history.basis);
    const cause = { occasion: "permit", by: toActor(caller.key, caller.principal) } as const;
    const now = { decision: redecision.decision, policySet: redecision.policySet };
    const outcome = resolveRedecision(row, redecision, history, toCountedVotes(host, approvals), tx.now);
    if (outcome === "denied") return { row: await recordDenial(tx, row, redecision, cause), grant: null, before, now };
    if (outcome === "pending_approval") {
      const changedPins = findPinChanges(redecision, history, row).map(({ path }) => path);
      const pending = await requireMoreApprovals(tx, row, redecision, cause, history);
      return { row: pending, grant: null, before, now, changedPins };
    }
    const { row: confirmed, hash: decision_hash } = await recordConfirmation(tx, row, redecision, cause);
    const machineTimes = shiftPermitTimes(times, host.ledger.clockAhead());
    return { row: confirmed, grant: { decision_hash, ...machineTimes }, before, now };
  });
  const { row, grant, before, now, changedPins = [] } = granted;
  const permit = grant === null ? null : await issuePermit(host, row, grant);
  return { row, permit, previous: before, current: now, changedPins };
}

/**
 * Issues the permit for an action that was just created with an allowing decision; null if the decision did not allow
 * it.
 */
export function issueFirstPermit(host: CoreHost, row: ActionRow): Promise<Permit | null> {
  if (row.approved_until === null) return Promise.resolve(null);
  const times = computePermitTimes(row.created_at, host.config.permits.valid_seconds, row.approved_until);
  const machineTimes = shiftPermitTimes(times, host.ledger.clockAhead());
  return issuePermit(host, row, { decision_hash: row.decision_hash, ...machineTimes });
}

/** Returns the deadline of the start. Throws ACTION_NOT_STARTABLE or START_EXPIRED. */
export function assertStartable({ status, approved_until }: ActionRow, now: number): number {
  if (status === "expired" && approved_until !== null) throw startExpiredError(approved_until);
  if ((status !== "allowed" && status !== "approved") || approved_until === null)
    throw new Refusal(
      "ACTION_NOT_STARTABLE",
      `the action is ${status}; only an allowed or approved action can start, and only once`,
    );
  return assertBeforeStartDeadline(approved_until, now);
}

/** Returns the deadline. Throws START_EXPIRED if it has passed. */
export function assertBeforeStartDeadline(until: number, now: number): number {
  if (until <= now) throw startExpiredError(until);
  return until;
}

function startExpiredError(until: number): Refusal {
  return new Refusal("START_EXPIRED", `the time to start the action ended at ${toRfc3339(until)}; submit it again`);
}

async function issuePermit(host: CoreHost, row: ActionRow, grant: Omit<PermitTerms, "id">): Promise<Permit | null> {
  const text = await mintPermit(host, row, grant);
  return text === null ? null : { text, expires_at: grant.expires_at };
}

/**
 * Returns the claims about the action that the permit contains. Returns null if the request was erased or does not
 * match its hash, because altered parameters must not be signed.
 */
function subjectOf(host: CoreHost, row: ActionRow): PermitSubject | null {
  const request = effectiveRequest(row);
  const hash = effectiveRequestHash(row);
  if (request === null || encodeRequest(request).hash !== hash) return null;
  const authority = decodeAuthority(row.authority);
  return {
    ...(authority && { authority: { id: authority.id, act: toActorClaim(row.agent_id, authority) } }),
    issuer: host.ledger.origin,
    action_id: row.id,
    agent_id: row.agent_id,
    tool: row.tool,
    operation: row.operation,
    action_digest: computeActionDigest(request),
    request_hash: hash,
  };
}

/**
 * Signs a new permit. Returns null if the request was erased or altered.
 * @param grant terms of the permit, with times of this machine's clock. With times of a ledger's clock that is ahead,
 * verifiers would reject the permit now and accept it long after its end
 */
function mintPermit(host: CoreHost, row: ActionRow, grant: Omit<PermitTerms, "id">): Promise<string | null> {
  const subject = subjectOf(host, row);
  if (subject === null) return Promise.resolve(null);
  return host.permits.make(subject, { ...grant, id: toBase64Url(randomBytes(16)) });
}

/** Returns true if this log issued the permit for the action, even if the permit has expired. */
export function isPermitGenuine(host: CoreHost, row: ActionRow, permit: string, now: number): boolean {
  const subject = subjectOf(host, row);
  return subject !== null && host.permits.check(permit, subject, now) === null;
}
