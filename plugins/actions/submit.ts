/** From a request to a recorded decision. */
import {
  toActor,
  findCreatedResource,
  type Credential,
  type Host,
  type LedgerTransaction,
  Refusal,
  recordCreatedResource,
  toRfc3339,
} from "../../src/plugin.ts";
import {
  type ActionRequest,
  type AgentFacts,
  commitDigest,
  decideForEntry,
  type Decision,
  findDeniedBy,
  Evaluation,
  type Facts,
  type IdempotentCall,
  isTraceparent,
  type JsonObject,
  findMatchedLimits,
  MAX_META_BYTES,
  countMetaBytes,
  idempotencyLookup,
  type Prefetch,
  type RecordedFacts,
  commitFacts,
  commitMeta,
  encodeRequest,
  selectCountedLimits,
  idempotencyConflict,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { recordResubmission } from "./wait-tracker.ts";
import { findJoinableAction } from "./join.ts";
import { readUses, limitSpan, writeUses } from "./limits.ts";
import { findActiveRejection } from "./rejection.ts";
import { assertNotErased, rereadAction } from "./rows.ts";
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
 * What is kept beside the request: the body's `meta`, and the header `traceparent` where that names none. Throws
 * VALIDATION_FAILED.
 */
export function readMeta({ meta = {} }: ActionBody, headers: Headers): JsonObject {
  const bytes = countMetaBytes(meta as JsonObject);
  if (bytes > MAX_META_BYTES)
    throw new Refusal(
      "VALIDATION_FAILED",
      "`meta` is too large; what policies and people must see belongs in `context`",
      {
        errors: [
          { pointer: "/meta", detail: `at most ${MAX_META_BYTES} bytes of canonical JSON, and these are ${bytes}` },
        ],
      },
    );
  const traceparent = headers.get("traceparent");
  // A header that cannot be read is none (Trace Context, section 4.3): the action is not refused for it.
  if (traceparent === null || !isTraceparent(traceparent) || Object.hasOwn(meta, "traceparent"))
    return meta as JsonObject;
  return { ...(meta as JsonObject), traceparent };
}

export function credentialFacts(credential: Credential, agent: AgentFacts): Facts {
  const { id, name, agent_id, owner } = credential.key;
  return { principal: { agent_id, key_id: id, name, owner }, ...agent };
}

export function assertBinding({ config }: Pick<Host, "config">, credential: Credential, agentId: string): void {
  const bound = credential.key.agent_id;
  if (bound === agentId || (bound === null && config.agents === "any")) return;
  if (bound === null)
    throw new Refusal(
      "AGENT_UNBOUND",
      `the key "${credential.key.name}" is bound to no agent and cannot submit as "${agentId}"; make a key with \`agent_id\`, or set \`agents: any\` in the configuration`,
    );
  throw new Refusal(
    "AGENT_MISMATCH",
    `the key "${credential.key.name}" is bound to the agent "${bound}" and cannot submit as "${agentId}"`,
  );
}

/** People look at what waits one by one: a key that asks without end would hide the others' actions. */
async function assertPendingLimit(host: Host, tx: LedgerTransaction, { key }: Credential): Promise<void> {
  const most = host.config.approvals.max_pending_per_key;
  if ((await tx.pendingCount({ key_id: key.id }, tx.now)) < most) return;
  throw new Refusal(
    "TOO_MANY_PENDING",
    `${most} actions of the key "${key.name}" wait for approval already; wait until some are decided, or cancel some`,
    { headers: { "Retry-After": "60" } },
  );
}

export interface SubmissionResult {
  row: ActionRow;
  /** `replayed`: an idempotency key answers with what it made. `joined`: the same was asked for already, and is open. */
  origin: "made" | "replayed" | "joined";
}

/** A submission as it is decided under the lock: whatever is made of it has its id. */
export interface SealedSubmission {
  id: string;
  /** 32 random bytes, hex. */
  salt: string;
  request: ActionRequest;
  /** Its canonical form and the hash of that. */
  sealed: { text: string; hash: string };
  /** Its `meta`. */
  sealedMeta: { commitment: string | null; text: string | null };
  call: IdempotentCall | null;
  join: boolean;
}

export function sealSubmission(
  host: Pick<Host, "newId">,
  body: ActionBody,
  { meta, idempotencyKey, join }: { meta: JsonObject; idempotencyKey: string | null; join: boolean },
): SealedSubmission {
  const request = requestFromBody(body);
  return {
    id: host.newId(),
    salt: newSalt(),
    request,
    sealed: encodeRequest(request),
    sealedMeta: commitMeta(meta, newSalt),
    call: idempotencyKey === null ? null : { key: idempotencyKey, route: SUBMIT_ROUTE, bodyHash: "" },
    join,
  };
}

/**
 * Decides under the ledger's lock, so that the policy set and the key are those of this very moment.
 * @param who as the lock confirmed it
 */
export async function decideSubmission(
  host: Host,
  tx: LedgerTransaction,
  who: Credential,
  submission: SealedSubmission,
): Promise<SubmissionResult> {
  const { id, request, sealed, call, join } = submission;
  assertBinding(host, who, request.agent_id);
  const earlier = await findCreatedResource(tx, who, call);
  if (call !== null && earlier !== null) {
    const row = await rereadAction(tx, earlier);
    // Whether it is the same request nobody can tell any more: nothing is decided twice under one key.
    assertNotErased(row);
    if (row.request_hash !== sealed.hash) throw idempotencyConflict(call, earlier);
    return { row, origin: "replayed" };
  }
  const open = join ? await findJoinableAction(host, tx, who, sealed.hash) : null;
  if (open !== null) {
    await recordCreatedResource(tx, who, call, open.id, open.created_at);
    return { row: await recordResubmission(tx, open), origin: "joined" };
  }
  const { compiled, source } = tx.activePolicies;
  const commit = source?.["commit"];
  const baseFacts: Facts = {
    ...credentialFacts(who, await tx.agentFacts(request.agent_id)),
    ...tx.stopFacts(request),
    ...(commit === undefined ? {} : { policy_commit: commit }),
  };
  const evaluation = new Evaluation(compiled, request, baseFacts, tx.now);
  const { facts: read, needs } = await readUses(tx, evaluation, baseFacts);
  let { decision, facts } = decideForEntry(evaluation, read);
  if (decision.effect === "require_approval") {
    const rejection = await findActiveRejection(host, tx, sealed.hash, tx.now);
    if (rejection === null) await assertPendingLimit(host, tx, who);
    else ({ decision, facts } = decideForEntry(evaluation, { ...read, rejection }));
  }
  const row = recordDecision(host, tx, who, { ...submission, ...commitFacts(facts, newSalt), decision });
  await writeUses(tx, selectCountedLimits(decision, needs), id);
  await tx.insertAction(row);
  await recordCreatedResource(tx, who, call, id);
  return { row, origin: "made" };
}

/** By what is known before the lock; agents' rows are not, so that a limit that asks for them is read later. */
export function prefetchSubmission(credential: Credential, { request, call }: SealedSubmission): Prefetch {
  return ({ now, activePolicies: { compiled } }) => ({
    ...(call === null ? {} : { idempotency: idempotencyLookup(credential, call) }),
    ...(compiled.hasLimits
      ? {
          limits: findMatchedLimits(new Evaluation(compiled, request, credentialFacts(credential, {}), now)).map(
            limitSpan,
          ),
        }
      : {}),
  });
}

interface Decided extends SealedSubmission {
  facts: RecordedFacts;
  past: string | null;
  decision: Decision;
}

function recordDecision(host: Host, tx: LedgerTransaction, who: Credential, it: Decided): ActionRow {
  const { id, salt, request, sealed, sealedMeta: beside, facts, past, decision } = it;
  const status = STATUS_OF[decision.effect];
  const expiresAt = decision.approval === null ? null : tx.now + decision.approval.expires_in_ms;
  const approvedUntil = status === "allowed" ? tx.now + host.config.permits.valid_seconds * 1000 : null;
  const { seq, hash } = tx.record(
    {
      // In the order of canonical JSON, in which it is written.
      action_id: id,
      agent_id: request.agent_id,
      approved_until: approvedUntil === null ? null : toRfc3339(approvedUntil),
      at: toRfc3339(tx.now),
      commitment: commitDigest(salt, sealed.hash),
      decision,
      denied_by: findDeniedBy({ status, decision: decision.effect, reason_code: decision.reason_code }),
      expires_at: expiresAt === null ? null : toRfc3339(expiresAt),
      facts,
      meta: beside.commitment,
      operation: request.operation,
      policy_set: tx.activePolicies.digest,
      status,
      submitted_by: toActor(who.key, who.principal),
      tool: request.tool,
      type: "decision",
      v: 5,
    },
    who.key.id,
  );
  return {
    id,
    agent_id: request.agent_id,
    tool: request.tool,
    operation: request.operation,
    // Whoever is asked reads it in the order that its author gave it.
    request: decision.approval === null ? sealed.text : JSON.stringify(request),
    request_hash: sealed.hash,
    salt,
    past,
    meta: beside.text,
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
    submitted_by: who.key.id,
    submitted_agent: who.key.agent_id,
    submitted_owner: who.key.owner,
    quorum: decision.approval?.quorum ?? null,
    expires_at: expiresAt,
    approved_until: approvedUntil,
    rejection_until: null,
    started_at: null,
    started_by: null,
    result: null,
    waited_ms: null,
    erased_at: null,
    created_at: tx.now,
    updated_at: tx.now,
  };
}
