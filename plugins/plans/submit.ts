/** Submits a plan: one transaction evaluates each of its actions separately, or records nothing. */
import {
  commitDigest,
  type CoreHost,
  findCreatedResource,
  idempotencyConflict,
  toIdempotencyLookup,
  type IdempotentCall,
  type LedgerTransaction,
  recordCreatedResource,
  toActor,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  assertAgentBinding,
  assertNotErased,
  isUnderAuthority,
  prefetchSubmissionFacts,
  type PreparedSubmission,
  prepareSubmission,
  readMeta,
  readSession,
  recordSubmission,
} from "../actions/api.ts";
import type { PlanBody } from "./schemas.ts";
import { readRowsOfVisiblePlan, verifyPlan } from "./state.ts";

const PLAN_ROUTE = "POST /v1/plans";

interface PlanResult {
  /** In the order of the plan. */
  rows: ActionRow[];
  /** `replayed` means that the idempotency key already created this plan. */
  origin: "created" | "replayed";
}

/** A plan, prepared before the lock is acquired. */
interface SealedPlan {
  id: string;
  agent_id: string;
  ordered: boolean;
  stop_on_failure: boolean;
  submissions: PreparedSubmission[];
  call: IdempotentCall | null;
}

/** Submits a plan. If an action cannot be submitted, records nothing and throws the refusal of that action. */
export async function submitPlan(
  host: CoreHost,
  credential: Credential,
  body: PlanBody,
  { headers, idempotencyKey }: { headers: Headers; idempotencyKey: string | null },
): Promise<PlanResult> {
  const session = readSession(host, headers, credential);
  const plan = await sealPlan(host, body, { headers, idempotencyKey, session });
  const { call } = plan;
  await prefetchSubmissionFacts(host, credential, plan.submissions);
  return host.ledger.transact(
    async (tx) => recordPlan(host, tx, await tx.confirm(credential), plan),
    () => (call === null ? {} : { idempotency: toIdempotencyLookup(credential, call) }),
  );
}

async function sealPlan(
  host: CoreHost,
  body: PlanBody,
  {
    headers,
    idempotencyKey,
    session,
  }: Pick<PreparedSubmission, "session"> & { headers: Headers; idempotencyKey: string | null },
): Promise<SealedPlan> {
  const id = host.newId();
  const { actions, ordered = false, stop_on_failure = false } = body;
  const agent_id = actions[0]?.agent_id ?? "";
  const sealed = actions.map((action, i) =>
    withActionPosition(i, async () => {
      if (action.agent_id !== agent_id)
        throw new Refusal("VALIDATION_FAILED", "all actions of a plan must have the same agent", {
          errors: [{ pointer: "/agent_id", detail: `must be ${agent_id}, as in the first action` }],
        });
      const plan = { id, position: i + 1 };
      return prepareSubmission(host, action, {
        meta: readMeta(action, headers, host.trace()),
        idempotencyKey: null,
        join: false,
        plan,
        session,
      });
    }),
  );
  const call = idempotencyKey === null ? null : { key: idempotencyKey, route: PLAN_ROUTE, bodyHash: "" };
  return { id, agent_id, ordered, stop_on_failure, submissions: await Promise.all(sealed), call };
}

async function recordPlan(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  plan: SealedPlan,
): Promise<PlanResult> {
  const { id, agent_id, ordered, stop_on_failure, submissions, call } = plan;
  assertAgentBinding(host, credential, agent_id);
  const earlier = await findCreatedResource(tx, credential, call);
  if (earlier !== null && call !== null)
    return { rows: await readEarlier(host, tx, credential, plan, earlier, call), origin: "replayed" };
  const actions = submissions.map(({ id: action_id, salt, sealed }) => ({
    action_id,
    commitment: commitDigest(salt, sealed.hash),
  }));
  const by = toActor(credential.key, credential.principal);
  const listed = { id, ordered, stop_on_failure, actions };
  tx.record({ type: "plan", v: 1, at: toRfc3339(tx.now), agent_id, plan: listed, by }, credential.key.id);
  const rows: ActionRow[] = [];
  for (const [i, submission] of submissions.entries())
    rows.push((await withActionPosition(i, () => recordSubmission(host, tx, credential, submission))).row);
  await recordCreatedResource(tx, credential, call, id);
  return { rows, origin: "created" };
}

/**
 * Returns the actions of the plan that an earlier request created. Throws IDEMPOTENCY_CONFLICT if this request differs.
 */
async function readEarlier(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  { ordered, stop_on_failure, submissions }: SealedPlan,
  id: string,
  call: IdempotentCall,
): Promise<ActionRow[]> {
  const rows = await readRowsOfVisiblePlan(tx, id, credential);
  rows.forEach(assertNotErased);
  const { terms } = await verifyPlan(host, tx, rows, tx.now);
  const isSame =
    terms.ordered === ordered &&
    terms.stop_on_failure === stop_on_failure &&
    rows.length === submissions.length &&
    rows.every(
      (row, i) =>
        row.request_hash === submissions[i]?.sealed.hash && isUnderAuthority(row, submissions[i]?.authority ?? null),
    );
  if (!isSame) throw idempotencyConflict(call, id);
  return rows;
}

/**
 * Runs `work`. If it throws a refusal, adds the position of the action to the refusal.
 * @param i index of the action in the plan
 */
export async function withActionPosition<T>(i: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw addActionPosition(i, error);
  }
}

/** Adds the position of an action to a refusal. Returns other errors unchanged. */
export function addActionPosition(i: number, error: unknown): unknown {
  if (!(error instanceof Refusal)) return error;
  const errors = error.errors.map(({ pointer, ...fault }) =>
    pointer === undefined ? fault : { ...fault, pointer: `/actions/${i}${pointer}` },
  );
  return new Refusal(error.kind, `action ${i + 1}: ${error.message}`, { errors, headers: error.headers });
}
