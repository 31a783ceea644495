/**
 * What a facade asks: may this happen now? Asked and started in one go, so that "yes" is said once for one action, and
 * the ledger has it as started before anybody acts on it.
 */
import type { ApiResponse, FacadeCall } from "../../contract/facade.ts";
import type { JsonObject } from "../../domain/json.ts";

/** An action as another protocol asked for it. */
export interface GateRequest {
  /** Whom a key that is bound to no agent asks for; a bound key asks for its own agent. */
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context?: JsonObject;
  meta?: JsonObject;
}

export type GateOutcome =
  /** It was allowed, and is started: this answer is good for one run. */
  | { kind: "go"; action: GateAction }
  /** A person is asked. The same request asks again for the same action. */
  | { kind: "wait"; action: GateAction }
  | { kind: "no"; action: GateAction | null; code: string; reason: string }
  /** Nothing was decided. */
  | { kind: "fault"; status: number; code: string; detail: string; retryAfter: string | null };

/** What of the action's record a facade speaks of. */
export interface GateAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  status: string;
  decision: string;
  reason: string;
  reason_code: string;
  created_at: string;
  expires_at: string | null;
  approved_until: string | null;
  approvals: { approve: boolean; created_at: string }[];
}

type GateCall = Pick<FacadeCall, "callApi" | "request">;
type Fault = Extract<GateOutcome, { kind: "fault" }>;

/** The agent that the caller's key is bound to; null where it is bound to none. */
async function boundAgent(call: GateCall): Promise<string | null | Fault> {
  const me = await call.callApi("GET", "/v1/me");
  return me.status === 200 ? (me.json as { key: { agent_id: string | null } }).key.agent_id : readFault(me);
}

type Submit = (path: string) => Promise<ApiResponse>;

function submitter(call: GateCall, bound: string | null, request: GateRequest, waitSeconds: number): Submit {
  const json = { ...request, agent_id: bound ?? request.agent_id };
  const headers: Record<string, string> = waitSeconds > 0 ? { Prefer: `wait=${waitSeconds}` } : {};
  return (path) => call.callApi("POST", path, { json, headers });
}

/** @param waitSeconds how long to wait for people; the service may wait less */
export async function submitAndStart(call: GateCall, request: GateRequest, waitSeconds = 0): Promise<GateOutcome> {
  const bound = await boundAgent(call);
  return bound !== null && typeof bound === "object" ? bound : passAs(call, bound, request, waitSeconds);
}

async function passAs(
  call: GateCall,
  bound: string | null,
  request: GateRequest,
  waitSeconds: number,
): Promise<GateOutcome> {
  const submit = submitter(call, bound, request, waitSeconds);
  const first = await startOf(call, await submit("/v1/actions?join=open"));
  // The same request of two clients at the same moment is one action until it starts. An approval is good for one of
  // them; what policy allows, it allows to both, each as an action of its own.
  const lost = first.kind === "no" && first.code === "ACTION_NOT_STARTABLE" && first.action?.decision === "allow";
  return lost ? startOf(call, await submit("/v1/actions")) : first;
}

/**
 * For several that happen together or not at all, no two of them the same: every one is asked before the first starts. Gives
 * a verdict for each, or those that keep the others from happening.
 * @param waitSeconds how long to wait for people, for all of them together
 */
export async function submitAndStartAll(
  call: GateCall,
  requests: readonly GateRequest[],
  waitSeconds = 0,
): Promise<{ passed: boolean; outcomes: GateOutcome[] }> {
  if (requests.length === 0) return { passed: true, outcomes: [] };
  const begun = performance.now();
  const bound = await boundAgent(call);
  if (bound !== null && typeof bound === "object") return { passed: false, outcomes: requests.map(() => bound) };
  const against: GateOutcome[] = [];
  for (const request of requests) {
    // One wait for all of them, and none once it is clear that they do not happen.
    const left = against.length > 0 ? 0 : Math.round(waitSeconds - (performance.now() - begun) / 1000);
    const verdict = standingOf(await submitter(call, bound, request, left)("/v1/actions?join=open"));
    if (verdict.kind !== "may") against.push(verdict);
  }
  if (against.length > 0) return { passed: false, outcomes: against };
  const started: GateAction[] = [];
  for (const request of requests) {
    const verdict = await passAs(call, bound, request, 0);
    if (verdict.kind === "go") {
      started.push(verdict.action);
      continue;
    }
    const json = { success: false, error: "not run: another call beside it could not be started" };
    for (const { id } of started) await call.callApi("POST", `/v1/actions/${id}/result`, { json });
    return { passed: false, outcomes: [verdict] };
  }
  return { passed: true, outcomes: started.map((action) => ({ kind: "go", action })) };
}

/** Whether it may start. */
function standingOf(
  submitted: ApiResponse,
): Exclude<GateOutcome, { kind: "go" }> | { kind: "may"; action: GateAction } {
  if (submitted.status !== 200 && submitted.status !== 202) return readFault(submitted);
  const action = submitted.json as GateAction;
  if (action.status === "pending_approval") return { kind: "wait", action };
  if (action.status !== "allowed" && action.status !== "approved")
    return { kind: "no", action, code: action.reason_code, reason: action.reason };
  return { kind: "may", action };
}

async function startOf(call: GateCall, submitted: ApiResponse): Promise<GateOutcome> {
  const standing = standingOf(submitted);
  if (standing.kind !== "may") return standing;
  const { action } = standing;
  // An approval must not be used up for a caller that nobody answers.
  if (call.request.signal.aborted)
    return { kind: "fault", status: 503, code: "NOT_READY", detail: "the caller has left", retryAfter: null };
  const started = await call.callApi("POST", `/v1/actions/${action.id}/start`, { json: {} });
  if (started.status === 200) return { kind: "go", action: started.json as GateAction };
  const fault = readFault(started);
  // Somebody else started it, or it was decided again: this caller has no permission, whatever comes of a new request.
  return started.status < 500 && started.status !== 429
    ? { kind: "no", action, code: fault.code, reason: fault.detail }
    : fault;
}

/** Why it does not run, in words for a model. */
export function describeRefusal(verdict: Exclude<GateOutcome, { kind: "go" }>): { code: string; message: string } {
  switch (verdict.kind) {
    case "wait":
      return {
        code: "APPROVAL_REQUIRED",
        message: `Not run yet: it waits for approval [action ${verdict.action.id}]. It was not refused. Call again later with exactly the same arguments; other arguments would be another request.`,
      };
    case "no":
      return { code: verdict.code, message: `Not run: ${verdict.reason} (${verdict.code})` };
    case "fault":
      return describeFault(verdict.code);
  }
}

/** Nothing of it is the model's to know but that it may try again. */
export const describeFault = (code: string): { code: string; message: string } => ({
  code,
  message: `Not run: the approval service could not decide (${code}). It was not refused; try again later.`,
});

/** The problem in an answer that is none of the expected ones. */
export function readFault({ status, json, headers }: ApiResponse): Fault {
  const { code = "INTERNAL", detail = "the service gave no answer" } = (json ?? {}) as {
    code?: string;
    detail?: string;
  };
  return { kind: "fault", status: status < 400 ? 500 : status, code, detail, retryAfter: headers.get("retry-after") };
}
