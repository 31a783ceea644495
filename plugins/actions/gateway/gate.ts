/**
 * Decides for a facade whether a call may run now. Submits and starts the action in one step, so that an allow can be
 * used only once and the start is recorded before the call runs.
 */
import { explainRefusal, type ExplainedAction } from "../../../clients/typescript/refusal.ts";
import type { ApiResponse, FacadeCall, JsonObject } from "../../../src/plugin.ts";

/** An action that was requested through another protocol. */
export interface GateRequest {
  /** The agent, for a key that is not bound to an agent. A bound key always submits for its own agent. */
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context?: JsonObject;
  meta?: JsonObject;
}

export type GateOutcome =
  /** The action is allowed and was started: the caller may run it once. */
  | { kind: "go"; action: GateAction }
  /** The action requires approval. The client can send the same request again to check. */
  | { kind: "wait"; action: GateAction }
  /**
   * The action is refused. `reason` explains why, and `next` states what the agent can do, both in the words of the
   * client library.
   */
  | { kind: "no"; action: GateAction; code: string; reason: string; next: string }
  /** There is no decision. */
  | { kind: "fault"; status: number; code: string; detail: string; retryAfter: string | null };

/** The members of an action's record that facades use. */
export interface GateAction extends ExplainedAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  decision: string;
  created_at: string;
  expires_at: string | null;
  approvals: { approve: boolean; created_at: string }[];
  /** Present if the request names an authority. */
  chain?: { act: Actor };
}

/** The claim `act` of RFC 8693: an agent, and the agent that it acts for. */
interface Actor {
  sub: string;
  act?: Actor;
}

type GateCall = Pick<FacadeCall, "callApi" | "request">;
type Fault = Extract<GateOutcome, { kind: "fault" }>;

/** Returns the agent that the caller's key is bound to, null for an unbound key, or the fault of the lookup. */
async function boundAgent(call: GateCall): Promise<string | null | Fault> {
  const me = await call.callApi("GET", "/v1/me");
  return me.status === 200 ? (me.json as { key: { agent_id: string | null } }).key.agent_id : readApiFault(me);
}

/** Header with the authority under which the agent acts. The protocols of facades have no member for it. */
const AUTHORITY_HEADER = "assent-authority";

type Submit = (path: string) => Promise<ApiResponse>;

function createSubmit(call: GateCall, bound: string | null, request: GateRequest, waitSeconds: number): Submit {
  const authority = call.request.headers.get(AUTHORITY_HEADER);
  // An empty header names no valid authority, so the service refuses it.
  const json = { ...request, agent_id: bound ?? request.agent_id, ...(authority === null ? {} : { authority }) };
  const headers: Record<string, string> = waitSeconds > 0 ? { Prefer: `wait=${waitSeconds}` } : {};
  return (path) => call.callApi("POST", path, { json, headers });
}

/**
 * Submits and starts one action.
 * @param waitSeconds the maximum time to wait for approvals; the service might wait for a shorter time
 */
export async function submitAndStart(call: GateCall, request: GateRequest, waitSeconds = 0): Promise<GateOutcome> {
  const bound = await boundAgent(call);
  return bound !== null && typeof bound === "object" ? bound : submitAndStartAs(call, bound, request, waitSeconds);
}

async function submitAndStartAs(
  call: GateCall,
  bound: string | null,
  request: GateRequest,
  waitSeconds: number,
): Promise<GateOutcome> {
  const submit = createSubmit(call, bound, request, waitSeconds);
  const first = await startOf(call, await submit("/v1/actions?join=open"));
  // Two clients that send the same request at the same time share one action until it starts. An approval permits only
  // one of them to run it. If the policy allows the action, the other client submits a second action.
  const lostRace = first.kind === "no" && first.code === "ACTION_NOT_STARTABLE" && first.action.decision === "allow";
  return lostRace ? startOf(call, await submit("/v1/actions")) : first;
}

/**
 * Submits and starts several different actions, of which either all or none must run. Submits all of them before it
 * starts the first. Resolves to the outcome of each action, or only to the outcomes that prevent the others from
 * running.
 * @param waitSeconds the maximum time to wait for the approvals of all actions together
 */
export async function submitAndStartAll(
  call: GateCall,
  requests: readonly GateRequest[],
  waitSeconds = 0,
): Promise<{ passed: boolean; outcomes: GateOutcome[] }> {
  if (requests.length === 0) return { passed: true, outcomes: [] };
  const startedAt = performance.now();
  const bound = await boundAgent(call);
  if (bound !== null && typeof bound === "object") return { passed: false, outcomes: requests.map(() => bound) };
  const obstacles: GateOutcome[] = [];
  for (const request of requests) {
    // All actions share one timeout. Do not wait if one of them cannot run.
    const remaining = obstacles.length > 0 ? 0 : Math.round(waitSeconds - (performance.now() - startedAt) / 1000);
    const outcome = readDecision(await createSubmit(call, bound, request, remaining)("/v1/actions?join=open"));
    if (outcome.kind !== "may") obstacles.push(outcome);
  }
  if (obstacles.length > 0) return { passed: false, outcomes: obstacles };
  const started: GateAction[] = [];
  for (const request of requests) {
    const outcome = await submitAndStartAs(call, bound, request, 0);
    if (outcome.kind === "go") {
      started.push(outcome.action);
      continue;
    }
    const json = { success: false, error: "not run: another call of the same batch could not be started" };
    for (const { id } of started) await call.callApi("POST", `/v1/actions/${id}/result`, { json });
    return { passed: false, outcomes: [outcome] };
  }
  return { passed: true, outcomes: started.map((action) => ({ kind: "go", action })) };
}

/** Returns `may` if the submitted action can be started; otherwise the outcome. */
function readDecision(
  submitted: ApiResponse,
): Exclude<GateOutcome, { kind: "go" }> | { kind: "may"; action: GateAction } {
  if (submitted.status !== 200 && submitted.status !== 202) return readApiFault(submitted);
  const action = submitted.json as GateAction;
  if (action.status === "pending_approval") return { kind: "wait", action };
  if (action.status !== "allowed" && action.status !== "approved") return refusal(action, codeOf(action));
  // Refuse an edited request, because gateways forward the call as they received it.
  if (action.proposed != null) return refusal(action, "REQUEST_EDITED");
  return { kind: "may", action };
}

async function startOf(call: GateCall, submitted: ApiResponse): Promise<GateOutcome> {
  const decision = readDecision(submitted);
  if (decision.kind !== "may") return decision;
  const { action } = decision;
  // Do not use up an approval for a caller that has disconnected.
  if (call.request.signal.aborted)
    return { kind: "fault", status: 503, code: "NOT_READY", detail: "the caller has disconnected", retryAfter: null };
  const started = await call.callApi("POST", `/v1/actions/${action.id}/start`, { json: {} });
  if (started.status === 200) return { kind: "go", action: started.json as GateAction };
  const fault = readApiFault(started);
  // Another client started the action, or it was evaluated again, so this caller must not run it.
  return started.status < 500 && started.status !== 429 ? refusal(action, fault.code, fault.detail) : fault;
}

/**
 * Returns the code of a refusal. If a person denied the action, this is `REJECTED`; for another denial, the reason code
 * of the decision; otherwise, the action's status.
 */
function codeOf({ status, denied_by, reason_code }: GateAction): string {
  if (status !== "denied") return status.toUpperCase();
  return denied_by === "person" ? "REJECTED" : reason_code;
}

/** @param detail the reason why the action could not be started, if a start was attempted */
function refusal(action: GateAction, code: string, detail?: string): Extract<GateOutcome, { kind: "no" }> {
  const { why, next } = explainRefusal(action, detail === undefined ? undefined : { code, message: detail });
  return { kind: "no", action, code, reason: why, next };
}

/** Explains to a model why its call does not run. */
export function describeRefusal(outcome: Exclude<GateOutcome, { kind: "go" }>): { code: string; message: string } {
  switch (outcome.kind) {
    case "wait":
      return {
        code: "APPROVAL_REQUIRED",
        message: `Not run yet: it waits for approval [action ${outcome.action.id}]. It was not denied. Call again later with exactly the same arguments; other arguments are a new request.`,
      };
    case "no":
      return {
        code: outcome.code,
        message: `Not run: ${outcome.reason} [action ${outcome.action.id}]. ${outcome.next}`,
      };
    case "fault":
      return describeRetryableFault(outcome.code);
  }
}

/** Returns a message that tells a model to try again later, without details of the failure. */
export const describeRetryableFault = (code: string): { code: string; message: string } => ({
  code,
  message: `Not run: the approval service could not decide (${code}). It was not denied; try again later.`,
});

/** Reads the problem details of an unexpected response. */
export function readApiFault({ status, json, headers }: ApiResponse): Fault {
  const { code = "INTERNAL", detail = "the service returned no details" } = (json ?? {}) as {
    code?: string;
    detail?: string;
  };
  return { kind: "fault", status: status < 400 ? 500 : status, code, detail, retryAfter: headers.get("retry-after") };
}
