/**
 * Records the usage of model calls, from LiteLLM's logging callback (`generic_api`). LiteLLM sends it after the call.
 * So the call is an action that has already run, and limits count its usage for later actions of the same agent.
 */
import { isJsonObject, type JsonObject, type JsonValue, readJson, UnreadableRequest } from "../../src/core.ts";
import type { FacadeCall, Reply } from "../../src/plugin.ts";
import { readApiFault } from "../actions/api.ts";
import { agentOf, readCaller } from "./read-calls.ts";

/** Operation of these actions. It has a space, so no function that a model calls has this name. */
const OPERATION = "model call";
/** Maximum number of logs in one request, because each becomes an action. */
const MAX_LOGS = 100;
const MAX_AMOUNT = 1_000_000_000;

interface ModelCall {
  id: string;
  model: string;
  caller: JsonObject;
  usage: Record<string, number>;
}

/** Returns 503 if the service could not record a call; LiteLLM can then send the logs again, and each call counts once. */
export async function recordUsage(call: FacadeCall, tool: string): Promise<Reply> {
  let calls: ModelCall[];
  try {
    calls = readLogs(call.body);
  } catch (error) {
    if (!(error instanceof UnreadableRequest)) throw error;
    return { status: 400, json: { error: error.message, code: "BAD_REQUEST" } };
  }
  const me = await call.callApi("GET", "/v1/me");
  if (me.status !== 200) return faultReply(readApiFault(me));
  const bound = (me.json as { key: { agent_id: string | null } }).key.agent_id;
  const counts = { recorded: 0, refused: 0 };
  for (const each of calls) {
    const recorded = await recordCall(call, bound, tool, each);
    if (typeof recorded !== "boolean") return recorded;
    counts[recorded ? "recorded" : "refused"]++;
  }
  return { status: 200, json: counts };
}

/** Resolves to whether the usage is recorded, or to the reply to a failure. */
async function recordCall(
  call: FacadeCall,
  bound: string | null,
  tool: string,
  { id, model, caller, usage }: ModelCall,
): Promise<boolean | Reply> {
  const submitted = await call.callApi("POST", "/v1/actions", {
    json: {
      agent_id: bound ?? agentOf(caller),
      tool,
      operation: OPERATION,
      params: { model },
      context: { caller },
      meta: { via: "litellm", litellm_id: id },
    },
    headers: { "Idempotency-Key": `litellm-${id}` },
  });
  if (isFailure(submitted.status)) return faultReply(readApiFault(submitted));
  const action = submitted.json as { id: string; status: string };
  if (submitted.status !== 200 && submitted.status !== 202)
    return refuse(call, `the log ${id}`, readApiFault(submitted).code);
  const path = `/v1/actions/${action.id}`;
  if (action.status === "pending_approval") await call.callApi("POST", `${path}/cancel`, { json: {} });
  if (action.status === "allowed") {
    const started = await call.callApi("POST", `${path}/start`, { json: {} });
    if (isFailure(started.status)) return faultReply(readApiFault(started));
    if (started.status !== 200) return refuse(call, `the log ${id}`, readApiFault(started).code);
  } else if (action.status === "succeeded") return true;
  else if (action.status !== "executing") return refuse(call, `the log ${id}`, action.status);
  // Also after a repeated log, if this process ended between the start and the result.
  const reported = await call.callApi("POST", `${path}/result`, { json: { success: true, usage } });
  if (isFailure(reported.status)) return faultReply(readApiFault(reported));
  return reported.status === 200 || refuse(call, `the log ${id}`, readApiFault(reported).code);
}

const isFailure = (status: number): boolean => status >= 500 || status === 429 || status === 401 || status === 403;

function refuse({ log }: FacadeCall, problem: string, code: string): false {
  log.warn(`LiteLLM's usage was not recorded: ${problem}`, { code });
  return false;
}

function faultReply({ status, code, retryAfter }: ReturnType<typeof readApiFault>): Reply {
  return {
    status: status >= 500 ? 503 : status,
    json: { error: "the usage was not recorded", code },
    ...(retryAfter === null ? {} : { headers: { "Retry-After": retryAfter } }),
  };
}

/** Reads one log, or a list of them. Omits calls that used nothing. Throws UnreadableRequest. */
function readLogs(body: Uint8Array): ModelCall[] {
  const value = readJson(body);
  const logs = Array.isArray(value) ? value : [value];
  if (logs.length > MAX_LOGS)
    throw new UnreadableRequest(`${logs.length} logs at once; at most ${MAX_LOGS}: set log_format to single`);
  return logs.map(readLog).filter(({ usage }) => Object.keys(usage).length > 0);
}

function readLog(log: JsonValue): ModelCall {
  if (!isJsonObject(log)) throw new UnreadableRequest("a log is not an object");
  const { id, model, response_cost, total_tokens, startTime, endTime } = log;
  if (typeof id !== "string" || !/^[\x21-\x7e]{1,200}$/.test(id)) throw new UnreadableRequest("a log has no id");
  if (typeof model !== "string" || model === "") throw new UnreadableRequest(`the log ${id} has no model`);
  const seconds =
    typeof startTime === "number" && typeof endTime === "number"
      ? Math.round((endTime - startTime) * 1000) / 1000
      : null;
  const amounts = { cost_usd: response_cost, tokens: total_tokens, seconds };
  const usage: Record<string, number> = {};
  for (const [name, amount] of Object.entries(amounts)) {
    if (amount === undefined || amount === null) continue;
    if (typeof amount !== "number" || amount < 0 || amount > MAX_AMOUNT)
      throw new UnreadableRequest(`the log ${id} has the ${name} ${JSON.stringify(amount)}`);
    usage[name] = amount;
  }
  return { id, model, caller: readCaller(log["metadata"]), usage };
}
