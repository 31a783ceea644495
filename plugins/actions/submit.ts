/** Decides and records a submission, from the validated request to the ledger entry. */
import {
  type ActionRequest,
  type AgentFacts,
  canAdministerAgent,
  CHANGED_BY_POLICIES,
  commitDigest,
  commitFacts,
  type CoreHost,
  type DecisionEntry,
  encodeAuthority,
  encodeEdit,
  encodeRequest,
  Evaluation,
  type Facts,
  findCreatedResource,
  findDeniedBy,
  findMatchedLimits,
  findMemberships,
  idempotencyConflict,
  listUses,
  toIdempotencyLookup,
  type IdempotentCall,
  type JsonObject,
  type LedgerTransaction,
  type Prefetch,
  recordCreatedResource,
  type SessionFact,
  type SubmittedAction,
  toActor,
} from "../../src/core.ts";
import { type Credential, isTraceparent, Refusal, type RequestTrace, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { findAuthority, isUnderAuthority } from "./authority-inputs.ts";
import { type DecidedAction, decideAction } from "./decide-action.ts";
import { commitMeta, countMetaBytes, MAX_META_BYTES } from "./meta.ts";
import { recordResubmission } from "./wait-tracker.ts";
import { findJoinableAction } from "./find-joinable-action.ts";
import { limitSpan, pruneLimitUses, writeLimitUses } from "./limit-usage.ts";
import { listHistorySpans, prunePastActions, writePastActions } from "./past-actions.ts";
import { pinsForEntry } from "./pins.ts";
import { prefetchFacts } from "./read-inputs.ts";
import { assertNotErased, rereadAction } from "./visible-action.ts";
import { newSalt } from "./salt.ts";
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
  // People choose their display names, so a condition must not take one for the name of a key.
  const isUser = signedIn !== undefined || (workload?.user_id ?? null) !== null;
  const submitter = { agent_id, key_id: id, name: isUser ? principal : name, owner };
  return Object.assign(
    { principal: workload === undefined ? submitter : { ...submitter, claims: workload.claims } },
    agent,
    agent === null ? null : { attributes: { ...agent.attributes, groups: [...groups], roles: [...roles] } },
    session === null ? null : { session },
  );
}

export function assertAgentBinding(
  { config }: Pick<CoreHost, "config">,
  credential: Credential,
  agentId: string,
): void {
  const bound = credential.key.agent_id;
  if (bound === agentId) return;
  if (bound === null && config.agents === "any") {
    if (canAdministerAgent(credential, agentId)) return;
    throw new Refusal(
      "AGENT_MISMATCH",
      `the groups of this key or user do not cover the agent "${agentId}", so it cannot submit as this agent`,
    );
  }
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
  if (await tx.isBelow(`pending ${key.id}`, limit, () => tx.pendingCount({ key_id: key.id }, tx.now))) return;
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
  /** The new decision; absent if the action existed before. */
  decided?: DecidedAction;
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
  /** Id of the authority that the request names; null if it names none. */
  authority: string | null;
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
    authority: body.authority ?? null,
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
  const { id, request, sealed, call, join, session, authority } = submission;
  assertAgentBinding(host, credential, request.agent_id);
  const earlier = await findCreatedResource(tx, credential, call);
  if (call !== null && earlier !== null) {
    const row = await rereadAction(tx, earlier);
    // Reject an erased request: it cannot be compared with the new request, and an idempotency key must never create
    // two actions.
    assertNotErased(row);
    if (row.request_hash !== sealed.hash || !isUnderAuthority(row, authority)) throw idempotencyConflict(call, earlier);
    return { row, origin: "replayed" };
  }
  const open = join ? await findJoinableAction(host, tx, credential, sealed.hash, submission) : null;
  if (open !== null) {
    await recordCreatedResource(tx, credential, call, open.id, open.created_at);
    return { row: await recordResubmission(tx, open), origin: "joined" };
  }
  const actionFields = Object.assign(
    submitterFacts(credential, await tx.agentFacts(request.agent_id), session),
    findAuthority(host, tx, authority, request.agent_id),
  );
  const subject = { policies: tx.activePolicies, request, id, facts: actionFields, counted: null };
  const submitter = submittedAction(request, credential, actionFields);
  const decided = await decideAction(host, tx, subject, { submitter, isNew: true });
  const { decision, facts, evaluation, needs } = decided;
  const records =
    decision.effect === "require_approval" ? await assertMayWait(host, tx, credential, submission, facts) : [];
  const uses = listUses(evaluation, decided, needs);
  const memberships = findMemberships(evaluation, decision.effect);
  if (uses.length > 0) await pruneLimitUses(tx);
  if (memberships.length > 0) await prunePastActions(tx);
  const row = recordDecision(host, tx, credential, submission, decided);
  for (const record of records) record();
  if (uses.length > 0) await writeLimitUses(tx, uses, id);
  if (memberships.length > 0) await writePastActions(tx, memberships, id);
  await recordCreatedResource(tx, credential, call, id);
  return { row, origin: "created", decided };
}

/**
 * Throws a refusal if the submission must not be added to the pending actions: TOO_MANY_PENDING or the refusal of a
 * feature's step, for the key itself or the key of a delegator. Returns what the steps record after the decision.
 */
async function assertMayWait(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  { id, request: { agent_id } }: PreparedSubmission,
  { authority }: Pick<Facts, "authority">,
): Promise<(() => void)[]> {
  await assertPendingLimit(host, tx, credential);
  const records: (() => void)[] = [];
  for (const step of host.steps) {
    const record = (await step.tighten?.(tx, { credential, id, agent_id })) ?? null;
    if (record !== null) records.push(record);
  }
  for (const link of authority?.links ?? []) {
    const giver = await host.keys.rightsOf(tx, link.key_id);
    if (giver === null) throw new Error(`the key ${link.key_id} ended after the decision`);
    for (const step of host.steps) await step.tighten?.(tx, { credential: giver, id, agent_id: link.agent_id });
  }
  return records;
}

export function submittedAction(
  { agent_id, tool, operation }: ActionRequest,
  { key }: Credential,
  facts: Pick<Facts, "authority">,
): SubmittedAction {
  return {
    authority: encodeAuthority(facts),
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

function recordDecision(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  { id, salt, request, sealed, sealedMeta, plan }: PreparedSubmission,
  decided: DecidedAction,
): ActionRow {
  const { decision, obliged } = decided;
  const { facts, past } = commitFacts(decided.facts, newSalt);
  const status = STATUS_OF[decision.effect];
  const expiresAt = decision.approval === null ? null : tx.now + decision.approval.expires_in_ms;
  const edit = obliged && { at: tx.now, by: CHANGED_BY_POLICIES, comment: null, request: obliged, salt };
  const effectiveHash = obliged && encodeRequest(obliged).hash;
  const approvedUntil = status === "allowed" ? tx.now + host.config.permits.valid_seconds * 1000 : null;
  const entry: DecisionEntry = {
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
    ...pinsForEntry({ decision, facts, past }, { salt }),
    plan,
    policy_set: tx.activePolicies.digest,
    status,
    submitted_by: toActor(credential.key, credential.principal),
    tool: request.tool,
    type: "decision",
    v: 1,
  };
  return tx.recordDecision(entry, {
    // Keep the member order of the client for requests that approvers see.
    request: decision.approval === null ? sealed.text : JSON.stringify(request),
    request_hash: sealed.hash,
    salt,
    past,
    meta: sealedMeta.text,
    effective: edit && encodeEdit(edit),
    effective_hash: effectiveHash,
  });
}
