/**
 * Access requests and their tasks (Access Request and Approval Profile, draft 1). Both are represented by the pending
 * action.
 */
import { type GateAction, readApiFault } from "../actions/api.ts";
import type { FacadeCall, Reply } from "../../src/plugin.ts";
import { readActors, readBody, readEvaluation, readObject, requestsSameAccess } from "./read-evaluations.ts";

const ERROR = "urn:openid:authzen:access-request:error:";

const STATUS: Readonly<Record<string, string>> = {
  pending_approval: "pending",
  allowed: "approved",
  approved: "approved",
  executing: "approved",
  unknown: "approved",
  succeeded: "approved",
  failed: "approved",
  denied: "denied",
  expired: "expired",
  cancelled: "cancelled",
};

/**
 * Handles an access request. The evaluation already created the action, so this only checks that the request refers to
 * it.
 */
export async function requestAccess(call: FacadeCall, requests: string): Promise<Reply> {
  const body = readBody(call.request, call.body);
  if (body["items"] !== undefined)
    return problemReply(400, "not_requestable", "items are not supported; send one request for each");
  const { request } = readEvaluation(body);
  const id = readObject(body, "denial")["evaluation_id"];
  const action = typeof id === "string" ? await actionOf(call, id) : null;
  if (action === null || !requestsSameAccess(request, action))
    return problemReply(
      400,
      "invalid_denial_binding",
      "denial.evaluation_id must belong to an evaluation of this subject, action, resource and context",
    );
  const actors = readActors(body);
  if (actors !== null && JSON.stringify(actors) !== JSON.stringify(listActors(action)))
    return problemReply(
      400,
      "invalid_denial_binding",
      "client.actor must be the agent of the evaluation, with the agents of its authority in `act`",
    );
  if (action.status === "expired")
    return problemReply(410, "expired_denial", "the time to approve has expired; evaluate again");
  return { ...taskReply(action, requests), status: 202 };
}

/** Returns the agent of the action and those that gave its authority. */
function listActors({ agent_id, chain }: GateAction): string[] {
  const actors: string[] = [];
  for (let act = chain?.act; act !== undefined; act = act.act) actors.push(act.sub);
  return actors.length === 0 ? [agent_id] : actors;
}

export async function readTask(call: FacadeCall, requests: string): Promise<Reply> {
  const action = await actionOf(call, call.params["id"] ?? "");
  return action === null ? unknownTask() : taskReply(action, requests);
}

export async function cancelTask(call: FacadeCall, requests: string): Promise<Reply> {
  const id = call.params["id"] ?? "";
  const answer = await call.callApi("POST", `/v1/actions/${encodeURIComponent(id)}/cancel`, { json: {} });
  if (answer.status === 200) return taskReply(answer.json as GateAction, requests);
  if (answer.status === 404) return unknownTask();
  const { status, detail } = readApiFault(answer);
  return status === 409 ? problemReply(409, "invalid_task_state", detail) : { status, json: { error: detail } };
}

/** Returns the action, or null if it does not exist or this key cannot see it. */
async function actionOf(call: FacadeCall, id: string): Promise<GateAction | null> {
  const answer = await call.callApi("GET", `/v1/actions/${encodeURIComponent(id)}`);
  return answer.status === 200 ? (answer.json as GateAction) : null;
}

function taskReply(action: GateAction, requests: string): Reply {
  const { id, approved_until, approvals, expires_at } = action;
  const status = STATUS[action.status] ?? "failed";
  const endpoint = `${requests}/${id}`;
  const approved_at = approvals.filter(({ approve }) => approve).at(-1)?.created_at;
  return {
    status: 200,
    headers: { Location: endpoint },
    json: {
      task: {
        id,
        status,
        status_endpoint: endpoint,
        ...(expires_at === null ? {} : { expires_at }),
        ...(status === "pending" ? { links: { cancel: `${endpoint}/cancel` } } : {}),
      },
      ...(status === "approved" && approved_until !== null
        ? {
            result: {
              mode: "reevaluate",
              approval: { id, ...(approved_at === undefined ? {} : { approved_at }), approved_until },
            },
          }
        : {}),
    },
  };
}

const unknownTask = (): Reply => problemReply(404, "unknown_task", "there is no such task that this key may see");

function problemReply(status: number, name: string, detail: string): Reply {
  return {
    status,
    headers: { "Content-Type": "application/problem+json" },
    text: JSON.stringify({ type: `${ERROR}${name}`, title: name.replaceAll("_", " "), status, detail }),
  };
}
