/** Plans: several actions that people decide on together. Loaded on first use. */
import { RequestRefused, unreadableResponse } from "./client-errors.ts";
import { equalJson } from "./copy-json.ts";
import { isObject, type Transport } from "./transport.ts";
import type {
  ActionRecord,
  ActionRequest,
  PlanRecord,
  PlanVoteOptions,
  SubmitPlanOptions,
  VoteOptions,
} from "./action-types.ts";

/**
 * Submits the requests as one plan. Throws ServiceUnavailable if the response is about other requests.
 * @param sent the header of the agent's session (empty without a session), and the authority of each action
 * @example
 * const { id, actions } = await assent.submitPlan([backup, migrate], { ordered: true, stopOnFailure: true });
 */
export async function submitPlan(
  transport: Transport,
  requests: readonly ActionRequest[],
  { ordered, stopOnFailure, meta, idempotencyKey, signal }: SubmitPlanOptions,
  { headers, authority }: { headers: Record<string, string>; authority?: string },
): Promise<PlanRecord> {
  const actions = requests.map(({ agent_id, tool, operation, params, context }) => ({
    agent_id,
    tool,
    operation,
    params,
    context,
    meta,
    authority,
  }));
  const plan = readPlan(
    await transport.send("POST", "/v1/plans", {
      body: { actions, ordered, stop_on_failure: stopOnFailure },
      headers: { ...headers, ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }) },
      signal,
      repeatable: idempotencyKey !== undefined,
    }),
  );
  const requestedActions = JSON.parse(JSON.stringify(actions)) as ActionRequest[];
  const answered = plan.actions.map(({ agent_id, tool, operation, proposed, params, context, chain }: ActionRecord) => [
    agent_id,
    tool,
    operation,
    (proposed ?? { params }).params,
    context,
    chain?.authority ?? null,
  ]);
  const requested = requestedActions.map(({ agent_id, tool, operation, params = {}, context = {} }) => [
    agent_id,
    tool,
    operation,
    params,
    context,
    authority ?? null,
  ]);
  if (equalJson(requested, answered)) return plan;
  throw unreadableResponse(200, `${plan.id} is not the requested plan`);
}

export async function readPlanRecord(
  transport: Transport,
  id: string,
  signal: AbortSignal | undefined,
): Promise<PlanRecord> {
  return readPlan(await transport.send("GET", `/v1/plans/${encodeURIComponent(id)}`, { signal }));
}

/**
 * Votes on the plan with the caller's approval token. Reads the plan first if there is no `token`. Throws
 * RequestRefused if the service does not return a token.
 */
export async function votePlan(
  transport: Transport,
  id: string,
  approve: boolean,
  { reason, strikes, token: given, signal }: PlanVoteOptions,
): Promise<PlanRecord> {
  const token = given ?? (await readPlanRecord(transport, id, signal)).approval_token;
  if (token === undefined)
    throw new RequestRefused(
      `this key cannot vote on ${id}: no action is pending, or the key is not an approver of it`,
      {
        status: 403,
        code: "NO_TOKEN",
      },
    );
  const body = { token, approve, reason, strikes };
  return readPlan(await transport.send("POST", `/v1/plans/${encodeURIComponent(id)}/approval`, { body, signal }));
}

/** Cancels the actions of the plan that the key can cancel. */
export async function cancelPlan(
  transport: Transport,
  id: string,
  { reason, signal }: VoteOptions,
): Promise<PlanRecord> {
  const body = { reason };
  return readPlan(await transport.send("POST", `/v1/plans/${encodeURIComponent(id)}/cancel`, { body, signal }));
}

function readPlan({ json }: { json: unknown }): PlanRecord {
  if (!isObject(json) || typeof json["id"] !== "string" || !Array.isArray(json["actions"]))
    throw unreadableResponse(200, "it is not a plan");
  return json as unknown as PlanRecord;
}
