/** Access Evaluation and Access Evaluations (Authorization API 1.0, sections 6 and 7). */
import { type JsonObject, UnreadableRequest } from "../../src/core.ts";
import type { FacadeCall, Reply } from "../../src/plugin.ts";
import { readBody, readEvaluation, readEvaluations } from "./read-evaluations.ts";
import { type GateOutcome, submitAndStart } from "../actions/api.ts";

interface Decision {
  decision: boolean;
  context: JsonObject;
}

interface EvaluationOptions {
  /** URL of the endpoint for access requests. */
  requests: string;
  /** `decision` omits the `context` of a response. */
  answers: "full" | "decision";
}

type Fault = Extract<GateOutcome, { kind: "fault" }>;

export async function evaluate(call: FacadeCall, options: EvaluationOptions): Promise<Reply> {
  return evaluateOne(call, readBody(call.request, call.body), options);
}

export async function evaluateAll(call: FacadeCall, options: EvaluationOptions): Promise<Reply> {
  const body = readBody(call.request, call.body);
  const batch = readEvaluations(body);
  if (batch === null) return evaluateOne(call, body, options);
  const evaluations: Decision[] = [];
  for (const item of batch.items) {
    const decision = await decisionOn(call, item, options.requests).catch((error: unknown) => {
      if (error instanceof UnreadableRequest) return failedDecision(400, error.message);
      throw error;
    });
    // The key is invalid or the service is unavailable, so the other evaluations would also fail.
    if (isFault(decision) && decision.status !== 400 && decision.status !== 422) return faultReply(decision);
    const one = isFault(decision) ? failedDecision(400, decision.detail) : decision;
    evaluations.push(one);
    if (batch.semantic === "deny_on_first_deny" && !one.decision) break;
    if (batch.semantic === "permit_on_first_permit" && one.decision) break;
  }
  return { status: 200, json: { evaluations: evaluations.map((evaluation) => renderDecision(evaluation, options)) } };
}

async function evaluateOne(call: FacadeCall, body: JsonObject, options: EvaluationOptions): Promise<Reply> {
  const decision = await decisionOn(call, body, options.requests);
  return isFault(decision) ? faultReply(decision) : { status: 200, json: renderDecision(decision, options) };
}

const renderDecision = ({ decision, context }: Decision, { answers }: EvaluationOptions): Partial<Decision> =>
  answers === "full" ? { decision, context } : { decision };

async function decisionOn(call: FacadeCall, body: JsonObject, requests: string): Promise<Decision | Fault> {
  const { request, approval } = readEvaluation(body);
  const verdict = await submitAndStart(call, request);
  if (verdict.kind === "fault") return { ...verdict, detail: inProtocolTerms(verdict.detail) };
  const id = verdict.action?.id;
  const about: JsonObject = id === undefined ? {} : { evaluation_id: id };
  switch (verdict.kind) {
    case "go": {
      const until = verdict.action.approved_until;
      const used =
        approval === null || until === null ? {} : { approval: { id: verdict.action.id, approved_until: until } };
      return { decision: true, context: { ...about, ...used } };
    }
    case "wait": {
      const { created_at, expires_at, reason } = verdict.action;
      const access_request: JsonObject = { endpoint: requests, expires_at };
      // The caller sent an approval that is not valid for this request: it was used, has expired, or is for another
      // request.
      const next = approval === null ? {} : { next_action: "request" };
      return {
        decision: false,
        context: {
          ...about,
          evaluated_at: created_at,
          reason: "approval_required",
          reason_text: reason,
          access_request,
          ...next,
        },
      };
    }
    case "no":
      return {
        decision: false,
        context: {
          ...about,
          reason: approval === null ? verdict.code.toLowerCase() : "policy_denied",
          reason_text: verdict.reason,
          ...(approval === null ? {} : { next_action: "none" }),
        },
      };
  }
}

const MEMBERS: Readonly<Record<string, string>> = {
  "/agent_id": "subject.id",
  "/tool": "resource.type",
  "/operation": "action.name",
};

/** Replaces names of API members with the protocol's names, because the caller did not send the API members. */
const inProtocolTerms = (detail: string): string =>
  detail.replace(/\/(?:agent_id|tool|operation)\b/g, (pointer) => MEMBERS[pointer] as string);

const isFault = (given: Decision | Fault): given is Fault => "kind" in given;

const failedDecision = (status: number, message: string): Decision => ({
  decision: false,
  context: { error: { status, message } },
});

/**
 * Returns the response for a fault. Validation errors have the status 400, as the protocol requires. Errors about the
 * key and rate limits keep their status.
 */
function faultReply({ status, code, detail, retryAfter }: Fault): Reply {
  return {
    status: status === 422 || status === 413 || status === 415 ? 400 : status,
    json: { error: detail, code },
    ...(retryAfter === null ? {} : { headers: { "Retry-After": retryAfter } }),
  };
}
