/**
 * Facades for MCP gateways that request a decision before they forward a call: Docker's interceptor, and ToolHive's
 * validating webhook.
 */
import { Type } from "@sinclair/typebox";
import { isJsonObject, readJsonObject, UnreadableRequest } from "../../src/core.ts";
import { definePlugin, type Facade, type FacadeCall, type Reply } from "../../src/plugin.ts";
import { readDockerCall, readJsonRpcCall, type ToolCall } from "./read-call.ts";
import { describeRefusal, describeRetryableFault, type GateRequest, submitAndStart } from "../actions/api.ts";

const Options = Type.Object(
  {
    enabled: Type.Boolean({ default: false, description: "Enables both endpoints." }),
    tool: Type.Union([Type.Null(), Type.String({ minLength: 1, maxLength: 256 })], {
      default: null,
      description: "The tool of the submitted actions. Default: `docker-mcp`, or the name of the server with ToolHive.",
    }),
    wait_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 300,
      description: "Maximum wait for approvals. Must be less than ToolHive's `timeout`.",
    }),
  },
  { additionalProperties: false },
);

interface AnsweredCall {
  allowed: boolean;
  code: string;
  /** Message for the model. */
  message: string;
}

export default definePlugin({
  name: "mcp-webhooks",
  needs: ["actions"],
  options: Options,
  setup: (_, { enabled, tool, wait_seconds }) =>
    enabled ? { facades: [docker(tool ?? "docker-mcp", wait_seconds), toolhive(tool, wait_seconds)] } : {},
});

/**
 * Docker runs `--interceptor before:http:<url>`. A response without a body lets the call through, whatever its status.
 * A JSON body becomes the result of the call. Therefore every response except an allow has a body.
 */
function docker(tool: string, wait: number): Facade {
  const reply = (answered: AnsweredCall, status = 200): Reply =>
    answered.allowed
      ? { status: 200, text: "" }
      : { status, json: { content: [{ type: "text", text: answered.message }], isError: true } };
  return {
    path: "/mcp-webhooks/docker",
    title: "Docker MCP gateway",
    methods: ["POST"],
    acceptsBasicAuth: true,
    async serve(call) {
      return reply(
        await answerTo(call, wait, () => ({
          agent_id: "docker-mcp",
          tool,
          ...requestOf(readDockerCall(readJsonObject(call.body))),
          meta: { via: "docker-mcp" },
        })),
      );
    },
    fault: ({ status, code }) => reply({ allowed: false, ...describeRetryableFault(code) }, status),
  };
}

/** ToolHive reads `allowed` only if the status is 200. For any other status, it applies its `failure_policy`. */
function toolhive(tool: string | null, wait: number): Facade {
  const reply = ({ allowed, code, message }: AnsweredCall, uid: unknown = ""): Reply => ({
    status: 200,
    json: {
      version: "v0.1.0",
      uid: typeof uid === "string" ? uid.slice(0, 256) : "",
      allowed,
      ...(allowed ? {} : { code: 403, reason: code, message }),
    },
  });
  return {
    path: "/mcp-webhooks/toolhive",
    title: "ToolHive validating webhook",
    methods: ["POST"],
    acceptsBasicAuth: true,
    async serve(call) {
      let uid: unknown;
      const answered = await answerTo(call, wait, () => {
        const body = readJsonObject(call.body);
        uid = body["uid"];
        const { principal, context, mcp_request } = body;
        const toolCall = readJsonRpcCall(mcp_request);
        if (toolCall === null) return null;
        const server = isJsonObject(context) ? context["server_name"] : null;
        const subject = isJsonObject(principal) && typeof principal["sub"] === "string" ? principal["sub"] : null;
        if (tool === null && (typeof server !== "string" || server === ""))
          throw new UnreadableRequest("it names no server");
        // The caller is part of the request, so that an approval for one caller is not valid for another.
        const caller: GateRequest["params"] = subject === null ? {} : { principal: subject };
        return {
          agent_id: subject ?? "toolhive",
          tool: tool ?? (server as string),
          ...requestOf(toolCall, caller),
          meta: { via: "toolhive" },
        };
      });
      return reply(answered, uid);
    },
    fault: ({ code }) => reply({ allowed: false, ...describeRetryableFault(code) }),
  };
}

function requestOf({ name, args, more }: ToolCall, caller = {}): Pick<GateRequest, "operation" | "params" | "context"> {
  const context = { ...caller, ...(Object.keys(more).length === 0 ? {} : { mcp: more }) };
  return { operation: name, params: args, ...(Object.keys(context).length === 0 ? {} : { context }) };
}

/**
 * Submits the call, and returns whether the gateway may forward it. Permits every message that does not call a tool.
 * @param read a function that reads the call; it returns null for a message that does not call a tool
 */
async function answerTo(call: FacadeCall, wait: number, read: () => GateRequest | null): Promise<AnsweredCall> {
  let request: GateRequest | null;
  try {
    request = read();
  } catch (error) {
    if (!(error instanceof UnreadableRequest)) throw error;
    return {
      allowed: false,
      code: "REQUEST_UNREADABLE",
      message: `Not run: the call cannot be decided; ${error.message}.`,
    };
  }
  const verdict = request === null ? null : await submitAndStart(call, request, wait);
  return verdict === null || verdict.kind === "go"
    ? { allowed: true, code: "", message: "" }
    : { allowed: false, ...describeRefusal(verdict) };
}
