/** Routes that submit an action, or preview its decision. README.md describes the path of a decision. */
import { Type } from "@sinclair/typebox";
import {
  type ActionRequest,
  listAuthorityUses,
  type Alternative,
  findAlternative,
  type CoreHost,
  type Decision,
  encodeRequest,
  Evaluation,
  readIdempotencyKey,
  REPLAYED_HEADERS,
  rightsReader,
  type Snapshot,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, type RequestContext } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { BarredError } from "./barred.ts";
import { decideAction, type DecidedAction, type DecisionReader, findRejection } from "./decide-action.ts";
import { scheduleExpiry } from "./expiry.ts";
import { issueFirstPermit, grantPermit, type Permit } from "./grant-permit.ts";
import { buildActionReply, ACTION_RESPONSE } from "./action-record.ts";
import { isNeverAllowed } from "./never-allowed.ts";
import { withCurrentStatus } from "./visible-action.ts";
import * as schema from "./schemas.ts";
import { SESSION_HEADER } from "./schemas.ts";
import { readSession } from "./agent-sessions.ts";
import { findAuthority } from "./authority-inputs.ts";
import { createFactReadingHost } from "./read-inputs.ts";
import {
  assertAgentBinding,
  recordSubmission,
  submitterFacts,
  prefetchSubmissionFacts,
  readMeta,
  prefetchSubmission,
  requestFromBody,
  prepareSubmission,
  submittedAction,
  type PreparedSubmission,
  type SubmissionResult,
} from "./submit.ts";
import type { ActionWaits } from "./wait.ts";

const PREFER = Type.Object({
  Prefer: Type.Optional(
    Type.String({
      description:
        "`wait=N` waits up to N seconds while the action is pending. `permit` asks for a permit in the response (RFC 7240).",
    }),
  ),
  [SESSION_HEADER]: Type.Optional(
    Type.String({ description: "Token of the agent's session, from `POST /v1/agent-sessions`." }),
  ),
  traceparent: Type.Optional(
    Type.String({ description: "W3C Trace Context. Stored as `meta.traceparent` unless the body has that member." }),
  ),
});

const GATE_HEADERS = Type.Pick(PREFER, [SESSION_HEADER, "traceparent"]);

const JOIN = Type.Object(
  {
    join: Type.Optional(
      Type.Literal("open", {
        description:
          "Returns the open action of this key with the same request, if there is one, with the header `Action-Joined: true`. An action is open while it is pending, or allowed or approved and not started. Of allowed actions, only the key's 1,000 newest are searched. The action keeps the `meta` that it was created with.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** Response headers that tell an existing action from a new action. A new action has no such header. */
const ORIGIN_HEADERS = { created: {}, replayed: REPLAYED_HEADERS, joined: { "Action-Joined": "true" } } as const;

const JOINED = { "Action-Joined": "`true` if `join=open` returned an existing action." };

const SUBMISSION_ERRORS = [
  "AGENT_MISMATCH",
  "AGENT_UNBOUND",
  "IDEMPOTENCY_CONFLICT",
  "ACTION_ERASED",
  "RECORD_ALTERED",
  "TOO_MANY_PENDING",
  "FACTS_UNAVAILABLE",
  "INVALID_SESSION_TOKEN",
] as const;

export function submissionRoutes(host: CoreHost, tag: string, waiters: ActionWaits) {
  return [submitRoute(host, tag, waiters), gateRoute(host, tag)];
}

function submitRoute(host: CoreHost, tag: string, waiters: ActionWaits) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions",
    tag,
    summary: "Submit an action",
    scope: "actions:submit",
    body: schema.ActionBody,
    query: JOIN,
    queued: true,
    confirmsCredential: true,
    idempotent: true,
    headers: PREFER,
    description:
      "Responds after the decision is recorded. `Prefer: wait=N` waits up to N seconds while the action is pending. `Prefer: permit` adds a permit if the action may start and the key may execute it. `Preference-Applied` names the preferences that were applied. If there is no permit, `POST …/permit` issues one or returns the reason.",
    responses: {
      200: { ...ACTION_RESPONSE, description: "Allowed or denied.", headers: JOINED },
      202: {
        ...ACTION_RESPONSE,
        description: "Requires approval. `Location` is the URL of the action.",
        headers: JOINED,
      },
    },
    errors: [...SUBMISSION_ERRORS, ...host.stepErrors],
    async handle(context) {
      const { body, credential, headers, query } = context;
      const factHost = createFactReadingHost(host, context);
      const submission = prepareSubmission(host, body, {
        meta: readMeta(body, headers, host.trace()),
        idempotencyKey: readIdempotencyKey(headers),
        join: query.join === "open",
        session: readSession(host, headers, credential),
      });
      const result = await submitAction(factHost, credential, submission);
      const waited = await waitIfPreferred(host, waiters, result.row, context);
      const isNew = result.origin === "created" && waited.row === result.row;
      // The permit is a separate decision, which must not use facts from before the wait.
      const permitHost = createFactReadingHost(host, context);
      const { row, permit } = await permitIfPreferred(permitHost, waited, headers, isNew);
      const shown = withCurrentStatus(row, host.clock());
      const applied = [
        ...(waited.grantedMs === null ? [] : [`wait=${waited.grantedMs / 1000}`]),
        ...(permit === null ? [] : ["permit"]),
      ];
      const responseHeaders = {
        ...ORIGIN_HEADERS[result.origin],
        ...(applied.length === 0 ? {} : { "Preference-Applied": applied.join(", ") }),
        Location: `/v1/actions/${row.id}`,
      };
      const alternative = await describeAlternative(host, result.decided);
      const reply = await buildActionReply(host, shown, waited.credential, {
        headers: responseHeaders,
        permit,
        isCompared: false,
        ...(isNew ? { votes: [] } : {}),
        ...(alternative === null ? {} : { alternative }),
      });
      return { ...reply, status: shown.status === "pending_approval" ? 202 : 200 };
    },
  });
}

function gateRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/gate/decide",
    tag,
    summary: "Preview a decision without recording it",
    scope: "actions:submit",
    body: schema.ActionBody,
    query: schema.GateQuery,
    headers: GATE_HEADERS,
    queued: true,
    idempotent: true,
    description:
      "The response does not permit the action to run. If the rules allow the action but a limit or an effect key applies to it, the outcome is ABSTAIN (`LIMIT_APPLIES`), because a preview counts nothing. With `record=true` the action is submitted and counted.",
    responses: { 200: { description: "The decision.", schema: schema.GateResponse } },
    errors: [...SUBMISSION_ERRORS, ...host.stepErrors],
    async handle(context) {
      const { body, credential, headers, query } = context;
      const factHost = createFactReadingHost(host, context);
      const request = requestFromBody(body);
      const meta = readMeta(body, headers, host.trace());
      assertAgentBinding(host, credential, request.agent_id);
      const session = readSession(host, headers, credential);
      const { authority = null } = body;
      if (query.record !== true) return previewDecision(factHost, credential, request, { session, authority });
      const submission = prepareSubmission(host, body, {
        meta,
        idempotencyKey: readIdempotencyKey(headers),
        join: false,
        session,
      });
      const { row, origin, decided } = await submitAction(factHost, credential, submission);
      const alternative = await describeAlternative(host, decided);
      const reply = gateReply(row, {
        action_id: row.id,
        policy_hash: row.policy_hash,
        request_hash: row.request_hash,
        never_allowed: await isNeverAllowedNow(host, credential, request),
        ...(alternative === null ? {} : { alternative }),
        ...(row.effective === null ? {} : changedAbstention(row.decision)),
      });
      return { ...reply, headers: ORIGIN_HEADERS[origin] };
    },
  });
}

/** Decides and records the submission under the ledger's lock. Resolves after the entry is durable. */
async function submitAction(
  host: CoreHost,
  credential: Credential,
  submission: PreparedSubmission,
): Promise<SubmissionResult> {
  await prefetchSubmissionFacts(host, credential, [submission]);
  const result = await host.ledger.transact(
    async (tx) => recordSubmission(host, tx, await tx.confirm(credential), submission),
    prefetchSubmission(credential, submission),
  );
  scheduleExpiry(host, result.row);
  return result;
}

interface WaitResult {
  row: ActionRow;
  /** The credential, authenticated again after the wait. */
  credential: Credential;
  /** The wait that the service granted; null if the request did not wait. */
  grantedMs: number | null;
}

/**
 * Waits while the action is pending if the client prefers that. Throws if the credential ended or its rights changed
 * during the wait.
 */
async function waitIfPreferred(
  host: CoreHost,
  waiters: ActionWaits,
  row: ActionRow,
  context: Omit<RequestContext<unknown, unknown, unknown, Credential>, "params" | "query" | "body">,
): Promise<WaitResult> {
  const { credential, headers } = context;
  const seconds = preferredWait(headers.get("prefer"));
  // `wait` is a preference: if the service cannot wait, it responds immediately instead of rejecting the submission.
  if (row.status !== "pending_approval" || seconds === null || !waiters.hasCapacity(credential))
    return { row, credential, grantedMs: null };
  context.releaseQueueSlot();
  const grantedMs = waiters.grantedMs(seconds);
  const started = performance.now();
  const latest = await waiters.waitWhilePending(row, grantedMs, context);
  host.trace()?.addStage("wait_for_approval", started, performance.now());
  return { row: latest ?? row, credential: await context.reauthenticate(), grantedMs };
}

/** Issues a permit if the client prefers one and the key may execute actions. */
async function permitIfPreferred(
  host: CoreHost,
  { row, credential }: WaitResult,
  headers: Headers,
  isNew: boolean,
): Promise<{ row: ActionRow; permit: Permit | null }> {
  if (!prefersPermit(headers.get("prefer")) || !credential.hasScope("actions:execute")) return { row, permit: null };
  return tryPermit(host, row, credential, isNew);
}

/** Returns true if no parameters let the current policies allow or hold an action with these names. */
async function isNeverAllowedNow(host: CoreHost, credential: Credential, request: ActionRequest): Promise<boolean> {
  const { compiled } = await host.policies.current();
  return isNeverAllowed(new Evaluation(compiled, request, submitterFacts(credential, null, null), host.clock()));
}

/** Returns the decision without recording it or counting it against limits. */
async function previewDecision(
  host: CoreHost,
  credential: Credential,
  request: ActionRequest,
  { session, authority }: Pick<PreparedSubmission, "session" | "authority">,
): Promise<Reply> {
  const { digest, ...policies } = await host.policies.current();
  const snapshot = await host.snapshot();
  const facts = {
    ...submitterFacts(credential, await host.agents.facts(request.agent_id), session),
    ...findAuthority(host, snapshot, authority, request.agent_id),
  };
  const { hash } = encodeRequest(request);
  const decided = await decideAction(
    host,
    snapshotReader(host, snapshot),
    { policies, request, id: "", facts, counted: null },
    { submitter: submittedAction(request, credential, facts), isNew: true },
    (calls) => host.factSources.read(calls),
  );
  const { decision, evaluation, obliged } = decided;
  const alternative = await describeAlternative(host, decided);
  return gateReply(
    { ...decision, decision: decision.effect },
    {
      action_id: null,
      policy_hash: digest,
      request_hash: hash,
      never_allowed: isNeverAllowed(evaluation),
      ...(alternative === null ? {} : { alternative }),
      ...(obliged === null ? countAbstention(decided) : changedAbstention(decision.effect)),
    },
  );
}

/** Returns the reads of a decision outside a transaction. */
function snapshotReader(host: CoreHost, snapshot: Snapshot): DecisionReader {
  const { storage } = host;
  return {
    ...rightsReader(host, snapshot),
    agentFacts: (id) => host.agents.facts(id),
    limitUsed: (policy, limit, subject, since) => storage.limitUsed(policy, limit, subject, since),
    action: (id) => storage.action(id),
    pastActions: (span) => storage.pastActions(span),
    rejectedAction: (hash, now) => storage.rejectedAction(hash, now),
    entriesOfAction: (id) => storage.entriesOfAction(id),
  };
}

/**
 * Returns members that replace an allow in a preview, if later decisions count the action: a preview counts nothing.
 */
function countAbstention({ decision, facts: { effects, grant }, evaluation, needs }: DecidedAction): object {
  if (decision.effect !== "allow") return {};
  const isEnforced = (policy: string): boolean =>
    evaluation.compiled.policies.some(({ name, shadow }) => name === policy && !shadow);
  const limit = needs.find(({ policy }) => isEnforced(policy));
  const effect = effects?.find(({ policy }) => isEnforced(policy));
  const counted = listAuthorityUses(evaluation).length > 0;
  if (limit === undefined && effect === undefined && grant === undefined && !counted) return {};
  const subject =
    limit !== undefined
      ? `the limit "${limit.limit}" of policy "${limit.policy}" applies`
      : effect !== undefined
        ? `the effect key of rule "${effect.rule}" of policy "${effect.policy}" applies`
        : grant !== undefined
          ? `the grant ${grant.id} covers the action`
          : "a limit of its authority, or of an agent that gave it, applies";
  return {
    outcome: "ABSTAIN",
    decision: null,
    reason: `${subject}, and a preview counts nothing; submit the action, or send record=true`,
    reason_code: "LIMIT_APPLIES",
  };
}

/**
 * Returns members that replace an allow in a preview, if obligations change the request: the caller would run the
 * request that it sent. Empty for other decisions.
 */
function changedAbstention(effect: Decision["effect"]): object {
  return effect === "allow"
    ? {
        outcome: "ABSTAIN",
        decision: null,
        reason: "obligations of rules change the request: submit the action, and run `params` of its record",
        reason_code: "REQUEST_CHANGED",
      }
    : {};
}

/**
 * Returns the nearest alternative to a denied action, as the API renders it; null if there is none, or if a person
 * rejected the same request.
 */
async function describeAlternative(
  host: CoreHost,
  decided: DecidedAction | undefined,
): Promise<(Pick<Alternative, "path" | "value" | "decision"> & { text: string }) | null> {
  if (decided?.decision.effect !== "deny") return null;
  const found = findAlternative(decided.evaluation, decided.given, decided.decision.reason_code);
  if (found === null) return null;
  const { path, value, decision } = found;
  if (decision === "require_approval" && (await mayBeRejected(host, found, decided))) return null;
  const outcome = decision === "allow" ? "be allowed" : "need approval";
  return { path, value, decision, text: `with ${path} = ${value}, this action would ${outcome}` };
}

/**
 * Returns true if a person rejected the request. Returns true if the service cannot tell: the denial is recorded
 * already, and an error would suggest that it was not.
 */
async function mayBeRejected(
  host: CoreHost,
  { request, obliged }: Alternative,
  { facts }: Pick<DecidedAction, "facts">,
): Promise<boolean> {
  try {
    const reader = snapshotReader(host, await host.snapshot());
    return (await findRejection(host, reader, request, { obliged, facts })) !== null;
  } catch (error) {
    host.log.warn("could not check an alternative to a denied action", { error: String(error) });
    return true;
  }
}

type RecordedDecision = Pick<
  ActionRow,
  "decision" | "reason" | "reason_code" | "risk_level" | "policy" | "rule" | "policy_version"
>;

function gateReply(recorded: RecordedDecision, members: object): Reply {
  const { decision, reason, reason_code, risk_level, policy, rule, policy_version } = recorded;
  const outcome = schema.GATE_OUTCOMES[decision];
  const answer = { outcome, decision, reason, reason_code, risk_level, policy, rule, policy_version };
  return { status: 200, json: { is_permission: false, ...answer, ...members } };
}

/** Errors after which the response omits the preferred permit, although the submission succeeds. */
const OPTIONAL_PERMIT_ERRORS = [
  "ACTION_NOT_STARTABLE",
  "START_EXPIRED",
  "FACTS_UNAVAILABLE",
  "TOO_MANY_PERMITS",
  "PERMIT_KEY_RETIRED",
];

/**
 * Issues a permit. Evaluates the policies again for an action that this request did not create. If the service cannot
 * issue a permit, even because of an internal error, returns the action without one: an error would suggest that the
 * action was not recorded.
 */
async function tryPermit(
  host: CoreHost,
  row: ActionRow,
  credential: Credential,
  isNew: boolean,
): Promise<{ row: ActionRow; permit: Permit | null }> {
  if (row.status !== "allowed" && row.status !== "approved") return { row, permit: null };
  try {
    return isNew ? { row, permit: await issueFirstPermit(host, row) } : await grantPermit(host, credential, row.id);
  } catch (error) {
    const isFault = !(error instanceof Refusal) || error.kind.status >= 500;
    const isOptional = (code: string): boolean =>
      OPTIONAL_PERMIT_ERRORS.includes(code) || host.guard.startErrors.some((kind) => kind.code === code);
    if (!isFault && !(error instanceof BarredError) && !isOptional(error.code)) throw error;
    if (isFault)
      host.log.warn("could not issue a permit for a submitted action", { action: row.id, error: String(error) });
    return { row: (await host.storage.action(row.id).catch(() => null)) ?? row, permit: null };
  }
}

function prefersPermit(prefer: string | null): boolean {
  return prefer?.split(",").some((preference) => /^\s*permit\s*$/i.test(preference)) === true;
}

/** Returns the seconds of `wait=N` (RFC 7240 section 4.3). Ignores a malformed preference, as the RFC requires. */
function preferredWait(prefer: string | null): number | null {
  for (const preference of prefer?.split(",") ?? []) {
    const match = /^\s*wait\s*=\s*"?(\d{1,6})"?\s*$/i.exec(preference);
    if (match !== null) return Number(match[1]);
  }
  return null;
}
