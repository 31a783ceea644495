/** Decides and records a submission, from the validated request to the ledger entry. */
import {
  suggestedRuleState,
  type ActionRequest,
  type AgentFacts,
  CHANGED_BY_POLICIES,
  commitDigest,
  commitFacts,
  commitMeta,
  type CoreHost,
  countMetaBytes,
  decideForEntry,
  type Decision,
  type DecisionEntry,
  type DecisionForEntry,
  encodeEdit,
  encodeRequest,
  Evaluation,
  type Facts,
  findCreatedResource,
  findDeniedBy,
  computeGrantUse,
  findMatchedLimits,
  findSuggestedFacts,
  idempotencyConflict,
  toIdempotencyLookup,
  type IdempotentCall,
  type JsonObject,
  type LedgerTransaction,
  MAX_META_BYTES,
  type Prefetch,
  recordCreatedResource,
  type RecordedFacts,
  selectCountedLimits,
  type SessionFact,
  toActor,
  userState,
} from "../../src/core.ts";
import { type Credential, isTraceparent, Refusal, type RequestTrace, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { recordResubmission } from "./wait-tracker.ts";
import { findJoinableAction } from "./find-joinable-action.ts";
import { readLimitUses, limitSpan, writeLimitUses } from "./limit-usage.ts";
import { listHistorySpans, writePastAction } from "./past-actions.ts";
import { prefetchFacts, readEvaluationInputs } from "./read-inputs.ts";
import { findGrantedDecision } from "./grant-use.ts";
import { findActiveRejection } from "./rejection.ts";
import { assertNotErased, rereadAction } from "./visible-action.ts";
import { newSalt } from "./salt.ts";
import { checkRequestRate, recordThrottle } from "./throttle.ts";
import type { SubmittedAction } from "./self-approval.ts";
import type { ActionBody } from "./schemas.ts";

const SUBMIT_ROUTE = "POST /v1/actions";

const STATUS_OF = { allow: "allowed", deny: "denied", require_approval: "pending_approval" } as const;

export function requestFromBody(body: ActionBody): ActionRequest {
  return {
    agent_id: body.agent_id,
    tool: body.tool,
    operation: body.operation,
    params: (body.params ?? {}) as JsonObject,
    context: (body.context ?? {}) as JsonObject,
  };
}

/**
 * Returns the body's `meta`, and adds `traceparent` if `meta` has none: from the header, or else from the service's own
 * trace. Later requests about the action link to this trace. Throws VALIDATION_FAILED if `meta` is too large.
 */
export function readMeta(
  { meta = {} }: ActionBody,
  headers: Headers,
  trace: Pick<RequestTrace, "traceparent"> | null,
): JsonObject {
  const bytes = countMetaBytes(meta as JsonObject);
  if (bytes > MAX_META_BYTES)
    throw new Refusal(
      "VALIDATION_FAILED",
      "`meta` is too large; put data that policies and approvers need into `context`",
      {
        errors: [{ pointer: "/meta", detail: `at most ${MAX_META_BYTES} bytes of canonical JSON; got ${bytes}` }],
      },
    );
  const sent = headers.get("traceparent");
  // Trace Context (section 4.3) treats a malformed header as absent, so it does not cause a rejection.
  const traceparent = sent !== null && isTraceparent(sent) ? sent : trace?.traceparent;
  if (traceparent === undefined || Object.hasOwn(meta, "traceparent")) return meta as JsonObject;
  return { ...(meta as JsonObject), traceparent };
}

/**
 * Returns the facts about the agent and its credential.
 * @param agent null if the agent is not known yet
 */
export function submitterFacts(
  credential: Pick<Credential, "key" | "groups" | "principal" | "roles" | "session" | "workload">,
  agent: AgentFacts | null,
  session: SessionFact | null,
): Facts {
  const { id, name, agent_id, owner } = credential.key;
  const { groups, principal, roles = [], session: signedIn, workload } = credential;
  // People choose their display names, so a condition must not read one as the name of a key.
  const isUser = signedIn !== undefined || (workload?.user_id ?? null) !== null;
  const claims = workload === undefined ? {} : { claims: workload.claims };
  return {
    principal: { agent_id, ...claims, key_id: id, name: isUser ? principal : name, owner },
    ...(agent === null
      ? {}
      : { ...agent, attributes: { ...agent.attributes, groups: [...groups], roles: [...roles] } }),
    ...(session === null ? {} : { session }),
  };
}

export function assertAgentBinding(
  { config }: Pick<CoreHost, "config">,
  credential: Credential,
  agentId: string,
): void {
  const bound = credential.key.agent_id;
  if (bound === agentId || (bound === null && config.agents === "any")) return;
  if (bound === null)
    throw new Refusal(
      "AGENT_UNBOUND",
      `the key "${credential.key.name}" is bound to no agent and cannot submit as "${agentId}"; create a key with \`agent_id\`, or set \`agents: any\` in the configuration`,
    );
  throw new Refusal(
    "AGENT_MISMATCH",
    `the key "${credential.key.name}" is bound to the agent "${bound}" and cannot submit as "${agentId}"`,
  );
}

/** Caps pending actions per key, so that one agent cannot flood the approvers' queue. */
async function assertPendingLimit(host: CoreHost, tx: LedgerTransaction, { key }: Credential): Promise<void> {
  const limit = host.config.approvals.max_pending_per_key;
  if (await tx.hasFewerPending(key.id, limit)) return;
  throw new Refusal(
    "TOO_MANY_PENDING",
    `${limit} actions of the key "${key.name}" already wait for approval, which is the limit; wait until approvers have voted on some of them, or cancel some`,
    { headers: { "Retry-After": "60" } },
  );
}

export interface SubmissionResult {
  row: ActionRow;
  /**
   * `replayed` means that the idempotency key already created this action, `joined` that an open action has the same
   * request.
   */
  origin: "created" | "replayed" | "joined";
}

/** A submission, prepared before the lock is acquired. */
export interface PreparedSubmission {
  id: string;
  /** 32 random bytes, hex. */
  salt: string;
  request: ActionRequest;
  /** Canonical JSON of the request, and its SHA-256. */
  sealed: { text: string; hash: string };
  /** Canonical JSON of `meta`, and the commitment to it. */
  sealedMeta: { commitment: string | null; text: string | null };
  call: IdempotentCall | null;
  join: boolean;
  /** The plan that contains the action, and the action's position in it; null without a plan. */
  plan: DecisionEntry["plan"];
  /** The agent's session; null if the request has none. */
  session: SessionFact | null;
}

export function prepareSubmission(
  host: Pick<CoreHost, "newId">,
  body: ActionBody,
  {
    meta,
    idempotencyKey,
    join,
    plan = null,
    session,
  }: {
    meta: JsonObject;
    idempotencyKey: string | null;
    join: boolean;
    plan?: DecisionEntry["plan"];
    session: SessionFact | null;
  },
): PreparedSubmission {
  const request = requestFromBody(body);
  return {
    id: host.newId(),
    salt: newSalt(),
    request,
    sealed: encodeRequest(request),
    sealedMeta: commitMeta(meta, newSalt),
    call: idempotencyKey === null ? null : { key: idempotencyKey, route: SUBMIT_ROUTE, bodyHash: "" },
    join,
    plan,
    session,
  };
}

/**
 * Decides and records a submission. Runs under the ledger's lock, so the policy set and the key are current.
 * Returns the earlier action if the idempotency key was used before, or if the request joins an open action.
 * @param credential the key, checked again under the lock
 */
export async function recordSubmission(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  submission: PreparedSubmission,
): Promise<SubmissionResult> {
  const { id, request, sealed, call, join, session } = submission;
  assertAgentBinding(host, credential, request.agent_id);
  const earlier = await findCreatedResource(tx, credential, call);
  if (call !== null && earlier !== null) {
    const row = await rereadAction(tx, earlier);
    // Reject an erased request: it cannot be compared with the new request, and an idempotency key must never create
    // two actions.
    assertNotErased(row);
    if (row.request_hash !== sealed.hash) throw idempotencyConflict(call, earlier);
    return { row, origin: "replayed" };
  }
  const open = join ? await findJoinableAction(host, tx, credential, sealed.hash, session) : null;
  if (open !== null) {
    await recordCreatedResource(tx, credential, call, open.id, open.created_at);
    return { row: await recordResubmission(tx, open), origin: "joined" };
  }
  const { compiled, source } = tx.activePolicies;
  const commit = source?.["commit"];
  const baseFacts: Facts = {
    ...submitterFacts(credential, await tx.agentFacts(request.agent_id), session),
    ...tx.barFacts(request),
    ...findSuggestedFacts(tx.state(suggestedRuleState), compiled),
    ...(commit === undefined ? {} : { policy_commit: commit }),
  };
  const base = new Evaluation(compiled, request, baseFacts, tx.now);
  const { evaluation, facts: known } = await readEvaluationInputs(host, tx, base, baseFacts, id);
  const uses = await readLimitUses(tx, evaluation, known);
  const { decision, facts, obliged } = await applyVotes(host, tx, credential, sealed.hash, evaluation, uses.facts);
  const throttling = decision.effect === "require_approval" ? await checkRequestRate(host, tx, credential) : null;
  const row = recordDecision(host, tx, credential, {
    ...submission,
    ...commitFacts(facts, newSalt),
    decision,
    obliged,
  });
  if (throttling !== null) recordThrottle(host, tx, credential, row, throttling);
  const grantUse = facts.grant === undefined ? null : computeGrantUse(facts.grant, evaluation);
  const counted = selectCountedLimits(decision, uses.needs);
  await writeLimitUses(tx, grantUse === null ? counted : [...counted, grantUse], id);
  await writePastAction(tx, evaluation, decision.effect, id);
  await tx.insertAction(row);
  await recordCreatedResource(tx, credential, call, id);
  return { row, origin: "created" };
}

/**
 * Decides on the facts. If the policies require approval, these steps follow:
 * - An active rejection of the submitted or the changed request denies the action.
 * - Otherwise, a grant that covers the action allows it.
 * - Otherwise, the key must be below its limit of pending actions. Throws TOO_MANY_PENDING.
 */
async function applyVotes(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  requestHash: string,
  evaluation: Evaluation,
  facts: Facts,
): Promise<DecisionForEntry> {
  const decided = decideForEntry(evaluation, facts);
  const { obliged } = decided;
  if (decided.decision.effect !== "require_approval") return decided;
  const rejection =
    (await findActiveRejection(host, tx, requestHash, tx.now, tx.state(userState))) ??
    (obliged && (await findActiveRejection(host, tx, encodeRequest(obliged).hash, tx.now, tx.state(userState))));
  if (rejection !== null) {
    const more = { ...facts, rejection };
    // Use a new evaluation: a second pass would share the step limit of the first pass, and its result could then
    // differ from a replay.
    return decideForEntry(new Evaluation(evaluation.compiled, evaluation.request, more, tx.now), more);
  }
  const granted = await findGrantedDecision(
    host,
    tx,
    submittedAction(evaluation.request, credential),
    evaluation,
    decided,
  );
  if (granted !== null) return { ...granted, obliged };
  await assertPendingLimit(host, tx, credential);
  return decided;
}

function submittedAction({ agent_id, tool, operation }: ActionRequest, { key }: Credential): SubmittedAction {
  return {
    agent_id,
    tool,
    operation,
    submitted_by: key.id,
    submitted_agent: key.agent_id,
    submitted_owner: key.owner,
  };
}

/**
 * Prefetches the rows that the decision will read, as far as they are known before the lock is acquired. The agent is
 * not known yet, so limits that depend on the agent's row are read under the lock.
 */
export function prefetchSubmission(credential: Credential, { request, call, session }: PreparedSubmission): Prefetch {
  return ({ now, activePolicies: { compiled } }) => {
    const evaluation = new Evaluation(compiled, request, submitterFacts(credential, null, session), now);
    return {
      ...(call === null ? {} : { idempotency: toIdempotencyLookup(credential, call) }),
      ...(compiled.hasLimits ? { limits: findMatchedLimits(evaluation).map(limitSpan) } : {}),
      ...(compiled.withHistory.length > 0 ? { pastActions: listHistorySpans(evaluation) } : {}),
    };
  };
}

/**
 * Prefetches the facts that the latest policies need for the submissions of one transaction. If the transaction needs
 * other facts, for example because the policies have changed, the service reads them and runs the transaction again.
 */
export async function prefetchSubmissionFacts(
  host: CoreHost,
  credential: Credential,
  submissions: readonly PreparedSubmission[],
): Promise<void> {
  const { compiled } = host.policies.latest();
  if (!compiled.hasFacts) return;
  const evaluations = submissions.map(async ({ request, session }) => {
    assertAgentBinding(host, credential, request.agent_id);
    const facts = submitterFacts(credential, await host.agents.facts(request.agent_id), session);
    return new Evaluation(compiled, request, facts, host.clock());
  });
  await prefetchFacts(host, await Promise.all(evaluations));
}

interface DecidedSubmission extends PreparedSubmission {
  facts: RecordedFacts;
  past: string | null;
  decision: Decision;
  /** The request after the obligations changed it; null if they did not change it. */
  obliged: ActionRequest | null;
}

function recordDecision(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  submission: DecidedSubmission,
): ActionRow {
  const { id, salt, request, sealed, sealedMeta, facts, past, plan, decision, obliged } = submission;
  const status = STATUS_OF[decision.effect];
  const expiresAt = decision.approval === null ? null : tx.now + decision.approval.expires_in_ms;
  const edit = obliged && { at: tx.now, by: CHANGED_BY_POLICIES, comment: null, request: obliged, salt };
  const effectiveHash = obliged && encodeRequest(obliged).hash;
  const approvedUntil = status === "allowed" ? tx.now + host.config.permits.valid_seconds * 1000 : null;
  const { seq, hash } = tx.record(
    {
      // Keep the members sorted, so that encoding the entry as canonical JSON does not need a copy.
      action_id: id,
      agent_id: request.agent_id,
      approved_until: approvedUntil === null ? null : toRfc3339(approvedUntil),
      at: toRfc3339(tx.now),
      commitment: commitDigest(salt, sealed.hash),
      decision,
      denied_by: findDeniedBy({ status, decision: decision.effect, reason_code: decision.reason_code }),
      ...(effectiveHash && { effective: commitDigest(salt, effectiveHash) }),
      expires_at: expiresAt === null ? null : toRfc3339(expiresAt),
      facts,
      meta: sealedMeta.commitment,
      operation: request.operation,
      plan,
      policy_set: tx.activePolicies.digest,
      status,
      submitted_by: toActor(credential.key, credential.principal),
      tool: request.tool,
      type: "decision",
      v: 1,
    },
    credential.key.id,
  );
  return {
    id,
    agent_id: request.agent_id,
    tool: request.tool,
    operation: request.operation,
    // Keep the member order of the client for requests that approvers see.
    request: decision.approval === null ? sealed.text : JSON.stringify(request),
    request_hash: sealed.hash,
    salt,
    past,
    meta: sealedMeta.text,
    questions: null,
    effective: edit && encodeEdit(edit),
    effective_hash: effectiveHash,
    asked_at: null,
    waits: null,
    status,
    decision: decision.effect,
    reason: decision.reason,
    reason_code: decision.reason_code,
    risk_level: decision.risk_level,
    policy: decision.policy,
    rule: decision.rule,
    policy_version: decision.policy_version,
    policy_hash: tx.activePolicies.digest,
    decision_seq: seq,
    decision_hash: hash,
    submitted_by: credential.key.id,
    submitted_agent: credential.key.agent_id,
    submitted_owner: credential.key.owner,
    quorum: decision.approval?.quorum ?? null,
    expires_at: expiresAt,
    approved_until: approvedUntil,
    rejection_until: null,
    grant_id: facts.grant?.id ?? null,
    plan_id: plan?.id ?? null,
    plan_position: plan?.position ?? null,
    started_at: null,
    started_by: null,
    result: null,
    waited_ms: null,
    erased_at: null,
    created_at: tx.now,
    updated_at: tx.now,
  };
}
