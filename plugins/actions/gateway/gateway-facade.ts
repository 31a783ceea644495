/**
 * A facade for gateways. A gateway requests a decision on each request of its clients, and forwards the request only if
 * the response is 200.
 */
import { Type } from "@sinclair/typebox";
import {
  assertUnambiguous,
  computeActionDigest,
  decodeUtf8,
  fromBase64Url,
  type GatewayRequest,
  isJsonObject,
  type JsonObject,
  toHttpAction,
  UnreadableRequest,
} from "../../../src/core.ts";
import {
  type ApiResponse,
  type Facade,
  type FacadeCall,
  type FacadeFault,
  parseJson,
  type Reply,
} from "../../../src/plugin.ts";
import { type GateOutcome, readApiFault, submitAndStart } from "./gate.ts";

/** Header with the gateway's own key. `Authorization` contains the client's credentials for the upstream server. */
const KEY_HEADER = "Assent-Key";
const PERMIT_HEADER = "Assent-Permit";
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const GATEWAY_OPTIONS = {
  enabled: Type.Boolean({ default: false, description: "Enables the endpoint." }),
  tool: Type.String({
    default: "http",
    minLength: 1,
    maxLength: 256,
    description: "The tool of the submitted actions.",
  }),
  mode: Type.Union([Type.Literal("gate"), Type.Literal("permit")], {
    default: "gate",
    description:
      "`gate` decides on the whole request. `permit` requires a permit that was issued before, and uses it up.",
  }),
  covers: Type.Union([Type.Literal("request"), Type.Literal("tool")], {
    default: "request",
    description:
      "What a permit must be for: exactly this request, or only the tool, if the upstream server compares the permit with the request itself.",
  }),
  wait_seconds: Type.Integer({ default: 0, minimum: 0, maximum: 300, description: "How long to wait for approvals." }),
  agent_header: Type.Union([Type.Null(), Type.String({ pattern: "^[A-Za-z0-9-]{1,64}$" })], {
    default: null,
    description:
      "Header in which the gateway sends the agent that it has authenticated; if null, the key determines the agent.",
  }),
};

interface GatewayOptions {
  tool: string;
  mode: "gate" | "permit";
  covers: "request" | "tool";
  wait_seconds: number;
  agent_header: string | null;
}

/** @param readRequest a function that reads the original request from the gateway's request */
export function createGatewayFacade(
  where: Pick<Facade, "path" | "title" | "includesSubpaths">,
  options: GatewayOptions,
  readRequest: (call: FacadeCall) => GatewayRequest,
): Facade {
  return {
    ...where,
    methods: "any",
    keyHeader: KEY_HEADER,
    async serve(call) {
      try {
        if (options.mode === "permit") return await usePermit(call, readRequest(call), options);
        const agent = options.agent_header === null ? "gateway" : call.request.headers.get(options.agent_header);
        if (agent === null || agent === "") throw new UnreadableRequest("the gateway did not send the agent");
        return replyTo(
          await submitAndStart(call, toHttpAction(readRequest(call), options.tool, agent), options.wait_seconds),
        );
      } catch (error) {
        if (!(error instanceof UnreadableRequest)) throw error;
        return refuseReply("REQUEST_UNREADABLE", error.message);
      }
    },
    fault: (fault) => unavailableReply(fault),
  };
}

/** Starts the permit's action, so that the permit cannot be used again. */
async function usePermit(call: FacadeCall, original: GatewayRequest, { tool, covers }: GatewayOptions): Promise<Reply> {
  assertUnambiguous(original);
  const permit = call.request.headers.get(PERMIT_HEADER);
  if (permit === null) return refuseReply("PERMIT_MISSING", `send the permit as \`${PERMIT_HEADER}\``);
  const claims = claimsOf(permit);
  const { sub: id = null, agent_id = null } = claims ?? {};
  if (claims === null || typeof id !== "string" || !UUID.test(id) || typeof agent_id !== "string")
    return refuseReply("PERMIT_INVALID", "the header is not a permit");
  if (claims["aud"] !== tool) return refuseReply("PERMIT_INVALID", `the permit is not for "${tool}"`);
  if (covers === "request" && claims["action_digest"] !== computeActionDigest(toHttpAction(original, tool, agent_id)))
    return refuseReply("PERMIT_INVALID", "the permit is for another request");
  // The claims are not verified yet. The start verifies the permit, and succeeds only once for each action.
  return startedBy(await call.callApi("POST", `/v1/actions/${id}/start`, { json: { permit } }));
}

function startedBy(answer: ApiResponse): Reply {
  if (answer.status === 200) return allowReply(String((answer.json as { id: unknown }).id));
  const fault = readApiFault(answer);
  return fault.status >= 500 || fault.status === 429 ? unavailableReply(fault) : refuseReply(fault.code, fault.detail);
}

function claimsOf(permit: string): JsonObject | null {
  try {
    const value = parseJson(decodeUtf8(fromBase64Url(permit.split(".")[1] ?? "")) ?? "");
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

function replyTo(outcome: GateOutcome): Reply {
  switch (outcome.kind) {
    case "go":
      return allowReply(outcome.action.id);
    case "wait":
      return refuseReply(
        "APPROVAL_REQUIRED",
        "the request requires approval; send it again later",
        outcome.action.id,
        "5",
      );
    case "no":
      return refuseReply(outcome.code, `${outcome.reason}. ${outcome.next}`, outcome.action.id);
    case "fault":
      return outcome.status === 422 || outcome.status === 400
        ? refuseReply(outcome.code, outcome.detail)
        : unavailableReply(outcome, outcome.retryAfter);
  }
}

const allowReply = (id: string): Reply => ({ status: 200, headers: { "Assent-Action-Id": id }, text: "" });

/** Returns the response for a request that must not run. Gateways treat 403 as a deny. */
function refuseReply(code: string, detail: string, id?: string, retryAfter?: string): Reply {
  const actionHeader = id === undefined ? {} : { action_id: id };
  return {
    status: 403,
    headers: {
      "Content-Type": "application/problem+json",
      ...(id === undefined ? {} : { "Assent-Action-Id": id }),
      ...(retryAfter === undefined ? {} : { "Retry-After": retryAfter }),
    },
    text: JSON.stringify({ title: "Not permitted", status: 403, code, detail, ...actionHeader }),
  };
}

/**
 * Returns the response for a request without a decision. Also hides problems with the gateway's own key, because the
 * gateway's client must not get a 401 for them.
 */
function unavailableReply({ code }: Pick<FacadeFault, "code">, retryAfter: string | null = null): Reply {
  return {
    status: 503,
    headers: { "Content-Type": "application/problem+json", "Retry-After": retryAfter ?? "5" },
    text: JSON.stringify({
      title: "No decision",
      status: 503,
      code,
      detail: "the service could not decide; try again later",
    }),
  };
}
