/** The facade of a gateway that asks about each request, and passes on at 200 alone. */
import { Type } from "@sinclair/typebox";
import type { ApiResponse, Facade, FacadeCall, FacadeFault } from "../../contract/facade.ts";
import type { Reply } from "../../contract/resource.ts";
import { fromBase64Url } from "../../domain/hash.ts";
import { decodeUtf8, isJsonObject, parseJson, type JsonObject } from "../../domain/json.ts";
import { readFault, submitAndStart, type GateOutcome } from "./gate.ts";
import { toGateRequest, assertUnambiguous, actionDigestOf, type GatewayRequest } from "./gateway.ts";
import { UnreadableRequest } from "./json-body.ts";

/** Where the gateway's own key stands: `Authorization` is the client's, and meant for what stands behind the gateway. */
const KEY_HEADER = "Assent-Key";
const PERMIT_HEADER = "Assent-Permit";
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const GATEWAY_OPTIONS = {
  enabled: Type.Boolean({ default: false, description: "Opens the address." }),
  tool: Type.String({ default: "http", minLength: 1, maxLength: 256, description: "The actions' tool." }),
  mode: Type.Union([Type.Literal("gate"), Type.Literal("permit")], {
    default: "gate",
    description: "`gate` decides on the whole request. `permit` takes one that was given before, and uses it up.",
  }),
  covers: Type.Union([Type.Literal("request"), Type.Literal("tool")], {
    default: "request",
    description:
      "What a permit must name: this very request, or the tool alone, where what stands behind the gateway compares the permit with what it runs.",
  }),
  wait_seconds: Type.Integer({ default: 0, minimum: 0, maximum: 300, description: "How long people are waited for." }),
  agent_header: Type.Union([Type.Null(), Type.String({ pattern: "^[A-Za-z0-9-]{1,64}$" })], {
    default: null,
    description: "Header in which the gateway names the agent that it has made sure of; the key says it when absent.",
  }),
};

export interface GatewayOptions {
  tool: string;
  mode: "gate" | "permit";
  covers: "request" | "tool";
  wait_seconds: number;
  agent_header: string | null;
}

/** @param see reads the original request */
export function createGatewayFacade(
  where: Pick<Facade, "path" | "title" | "includesSubpaths">,
  options: GatewayOptions,
  see: (call: FacadeCall) => GatewayRequest,
): Facade {
  return {
    ...where,
    methods: "any",
    keyHeader: KEY_HEADER,
    async serve(call) {
      try {
        if (options.mode === "permit") return await usePermit(call, see(call), options);
        const agent = options.agent_header === null ? "gateway" : call.request.headers.get(options.agent_header);
        if (agent === null || agent === "") throw new UnreadableRequest("the gateway names no agent");
        return replyTo(await submitAndStart(call, toGateRequest(see(call), options.tool, agent), options.wait_seconds));
      } catch (error) {
        if (!(error instanceof UnreadableRequest)) throw error;
        return refused("REQUEST_UNREADABLE", error.message);
      }
    },
    fault: (fault) => broken(fault),
  };
}

/** Starts the permit's action, so that it is good for this one request. */
async function usePermit(call: FacadeCall, seen: GatewayRequest, { tool, covers }: GatewayOptions): Promise<Reply> {
  assertUnambiguous(seen);
  const permit = call.request.headers.get(PERMIT_HEADER);
  if (permit === null) return refused("PERMIT_MISSING", `send the permit as \`${PERMIT_HEADER}\``);
  const claims = claimsOf(permit);
  const { sub: id = null, agent_id = null } = claims ?? {};
  if (claims === null || typeof id !== "string" || !UUID.test(id) || typeof agent_id !== "string")
    return refused("PERMIT_INVALID", "that is no permit");
  if (claims["aud"] !== tool) return refused("PERMIT_INVALID", `the permit is not for "${tool}"`);
  if (covers === "request" && claims["action_digest"] !== actionDigestOf(seen, tool, agent_id))
    return refused("PERMIT_INVALID", "the permit is for another request");
  // What was read of it so far is what it says; the start proves it, once.
  return startedBy(await call.callApi("POST", `/v1/actions/${id}/start`, { json: { permit } }));
}

function startedBy(answer: ApiResponse): Reply {
  if (answer.status === 200) return passed(String((answer.json as { id: unknown }).id));
  const fault = readFault(answer);
  return fault.status >= 500 || fault.status === 429 ? broken(fault) : refused(fault.code, fault.detail);
}

function claimsOf(permit: string): JsonObject | null {
  try {
    const value = parseJson(decodeUtf8(fromBase64Url(permit.split(".")[1] ?? "")) ?? "");
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

function replyTo(verdict: GateOutcome): Reply {
  switch (verdict.kind) {
    case "go":
      return passed(verdict.action.id);
    case "wait":
      return refused("APPROVAL_REQUIRED", "a person is asked; send the same request again", verdict.action.id, "5");
    case "no":
      return refused(verdict.code, verdict.reason, verdict.action?.id);
    case "fault":
      return verdict.status === 422 || verdict.status === 400
        ? refused(verdict.code, verdict.detail)
        : broken(verdict, verdict.retryAfter);
  }
}

const passed = (id: string): Reply => ({ status: 200, headers: { "Assent-Action-Id": id }, text: "" });

/** 403: the gateways' word for no. */
function refused(code: string, detail: string, id?: string, retryAfter?: string): Reply {
  const about = id === undefined ? {} : { action_id: id };
  return {
    status: 403,
    headers: {
      "Content-Type": "application/problem+json",
      ...(id === undefined ? {} : { "Assent-Action-Id": id }),
      ...(retryAfter === undefined ? {} : { "Retry-After": retryAfter }),
    },
    text: JSON.stringify({ title: "Not permitted", status: 403, code, detail, ...about }),
  };
}

/** Nothing was decided. What is wrong with the gateway's own key is not the client's to hear as 401. */
function broken({ code }: Pick<FacadeFault, "code">, retryAfter: string | null = null): Reply {
  return {
    status: 503,
    headers: { "Content-Type": "application/problem+json", "Retry-After": retryAfter ?? "5" },
    text: JSON.stringify({ title: "Nothing could be decided", status: 503, code, detail: "the gate is out of order" }),
  };
}
