/** OPA's data API (`POST /v1/data/<path>` with an `input`), for clients of an Open Policy Agent. */
import { Type } from "@sinclair/typebox";
import { isJsonObject, type JsonValue, readJsonObject, UnreadableRequest } from "../../src/core.ts";
import { definePlugin, type FacadeCall, type Reply } from "../../src/plugin.ts";
import { type GateOutcome, type GateRequest, submitAndStart } from "../actions/api.ts";

const Options = Type.Object(
  {
    enabled: Type.Boolean({ default: false, description: "Enables `/v1/data`." }),
    tool: Type.String({
      default: "opa",
      minLength: 1,
      maxLength: 256,
      description: "The tool of the submitted actions, for an input that names only a function.",
    }),
    wait_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 300,
      description: "Maximum wait for approvals.",
    }),
  },
  { additionalProperties: false },
);

const MEMBERS = ["tool", "operation", "params", "context", "agent_id"];
const TOOL_CALL_MEMBERS = ["tool", "args", "messages", "runtimeContext", "context", "agent_id"];

export default definePlugin({
  name: "opa-data",
  needs: ["actions"],
  options: Options,
  setup: (_, { enabled, tool, wait_seconds }) =>
    enabled
      ? {
          facades: [
            {
              path: "/v1/data",
              includesSubpaths: true,
              title: "OPA data API",
              methods: ["POST"],
              serve: async (call) => answer(call, tool, wait_seconds),
              fault: ({ status, code, detail }) => problemReply(status, code.toLowerCase(), detail),
            },
          ],
        }
      : {},
});

async function answer(call: FacadeCall, tool: string, wait: number): Promise<Reply> {
  const rule = ruleOf(call.request.url);
  const request = requestIn(call.body, tool);
  if (request === null)
    return problemReply(
      400,
      "invalid_parameter",
      "the body must be JSON with an `input` that has either `tool` and `operation`, optionally with `params`, `context` and `agent_id`, or `tool.name` and `args`",
    );
  if (rule === null || (rule === "allow" && request.isToolCall))
    return problemReply(
      400,
      "invalid_parameter",
      request.isToolCall
        ? "the path must end in /decision, because the AI SDK reads every result but an object as no objection"
        : "the path must end in /allow, whose result is true or false, or in /decision, whose result is an object",
    );
  const verdict = await submitAndStart(call, request.action, wait);
  if (verdict.kind === "fault") return problemReply(verdict.status, verdict.code.toLowerCase(), verdict.detail);
  const allow = verdict.kind === "go";
  if (rule === "allow") return { status: 200, json: { result: allow } };
  const actionMember = verdict.action === null ? {} : { action_id: verdict.action.id };
  // Report a pending action as a deny, because a client that reads "needs approval" would ask its own user.
  return {
    status: 200,
    json: { result: { decision: allow ? "allow" : "deny", allow, reason: reasonOf(verdict), ...actionMember } },
  };
}

/**
 * Returns the rule that the path names, parsed like OPA does. Returns null for a package, and for a rule with another
 * name: its client might treat an object, or a result for a rule such as `deny`, as an allow.
 */
function ruleOf(url: string): "allow" | "decision" | null {
  try {
    const name = decodeURIComponent(new URL(url).pathname.replace(/\/+$/, "").split("/").at(-1) ?? "");
    return name === "allow" || name === "decision" ? name : null;
  } catch {
    return null;
  }
}

function reasonOf(verdict: Exclude<GateOutcome, { kind: "fault" }>): string {
  if (verdict.kind === "wait")
    return `not run: waits for approval (${verdict.action.id}); call again with exactly the same arguments; it is not refused`;
  return verdict.kind === "go" ? verdict.action.reason : verdict.reason;
}

interface OpaRequest {
  action: GateRequest;
  /** Whether the input is in the form of the AI SDK. */
  isToolCall: boolean;
}

/**
 * Reads `{tool, operation, params?, context?, agent_id?}`, or the input of the package `@ai-sdk/policy-opa`, which is
 * `{tool: {name}, args, messages?, runtimeContext?}`, with `context` and `agent_id`. Rejects other members, because the
 * client might run arguments in them that the decision did not cover.
 */
function requestIn(body: Uint8Array, ownTool: string): OpaRequest | null {
  let input: JsonValue | undefined;
  try {
    input = readJsonObject(body)["input"];
  } catch (error) {
    if (error instanceof UnreadableRequest) return null;
    throw error;
  }
  if (!isJsonObject(input)) return null;
  const isToolCall = isJsonObject(input["tool"]);
  const { tool, operation, agent_id, context } = input;
  const name = isJsonObject(tool) ? tool["name"] : operation;
  const params = isToolCall ? input["args"] : (input["params"] ?? {});
  const hasOthers =
    Object.keys(input).some((member) => !(isToolCall ? TOOL_CALL_MEMBERS : MEMBERS).includes(member)) ||
    (isJsonObject(tool) && Object.keys(tool).length > 1);
  if (hasOthers || typeof name !== "string" || !isJsonObject(params)) return null;
  if (!(isToolCall || typeof tool === "string")) return null;
  if (!(agent_id === undefined || typeof agent_id === "string")) return null;
  if (!(context === undefined || isJsonObject(context))) return null;
  return {
    isToolCall,
    action: {
      agent_id: agent_id ?? "opa",
      tool: typeof tool === "string" ? tool : ownTool,
      operation: name,
      params,
      ...(context === undefined ? {} : { context }),
      meta: { via: "opa" },
    },
  };
}

const problemReply = (status: number, code: string, message: string): Reply => ({ status, json: { code, message } });
