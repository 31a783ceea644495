/** What MCP gateways ask before they pass a call on: Docker's interceptor, and ToolHive's validating webhook. */
import { Type } from "@sinclair/typebox";
import {
  describeFault,
  describeRefusal,
  type GateRequest,
  isJsonObject,
  readJsonObject,
  submitAndStart,
  UnreadableRequest,
} from "../../src/core.ts";
import { definePlugin, type Facade, type FacadeCall, type Reply } from "../../src/plugin.ts";
import { callOfDocker, callOfMessage, type ToolCall } from "./read.ts";

const Options = Type.Object(
  {
    enabled: Type.Boolean({ default: false, description: "Opens both addresses." }),
    tool: Type.Union([Type.Null(), Type.String({ minLength: 1, maxLength: 256 })], {
      default: null,
      description: "The actions' tool. Default: `docker-mcp`, and with ToolHive the server's name.",
    }),
    wait_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 300,
      description: "How long people are waited for; less than ToolHive's `timeout`.",
    }),
  },
  { additionalProperties: false },
);

interface Answered {
  allowed: boolean;
  code: string;
  /** In words for a model. */
  message: string;
}

export default definePlugin({
  name: "mcp-webhooks",
  options: Options,
  setup: (_, { enabled, tool, wait_seconds }) =>
    enabled ? { facades: [docker(tool ?? "docker-mcp", wait_seconds), toolhive(tool, wait_seconds)] } : {},
});

/**
 * `--interceptor before:http:<url>`: whatever has no body lets the call through, with any status, and JSON is the call's
 * result. So there is always a body, but for the one answer that means yes.
 */
function docker(tool: string, wait: number): Facade {
  const reply = (answered: Answered, status = 200): Reply =>
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
          ...requestOf(callOfDocker(readJsonObject(call.body))),
          meta: { via: "docker-mcp" },
        })),
      );
    },
    fault: ({ status, code }) => reply({ allowed: false, ...describeFault(code) }, status),
  };
}

/** ToolHive reads `allowed` with status 200 alone; for every other one its own `failure_policy` decides. */
function toolhive(tool: string | null, wait: number): Facade {
  const reply = ({ allowed, code, message }: Answered, uid: unknown = ""): Reply => ({
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
        const toolCall = callOfMessage(mcp_request);
        if (toolCall === null) return null;
        const server = isJsonObject(context) ? context["server_name"] : null;
        const subject = isJsonObject(principal) && typeof principal["sub"] === "string" ? principal["sub"] : null;
        if (tool === null && (typeof server !== "string" || server === ""))
          throw new UnreadableRequest("it names no server");
        // Whose call it is belongs to what is asked: an approval of one is none of another's.
        const who: GateRequest["params"] = subject === null ? {} : { principal: subject };
        return {
          agent_id: subject ?? "toolhive",
          tool: tool ?? (server as string),
          ...requestOf(toolCall, who),
          meta: { via: "toolhive" },
        };
      });
      return reply(answered, uid);
    },
    fault: ({ code }) => reply({ allowed: false, ...describeFault(code) }),
  };
}

function requestOf({ name, args, more }: ToolCall, who = {}): Pick<GateRequest, "operation" | "params" | "context"> {
  const context = { ...who, ...(Object.keys(more).length === 0 ? {} : { mcp: more }) };
  return { operation: name, params: args, ...(Object.keys(context).length === 0 ? {} : { context }) };
}

/** @param read gives null for what calls no tool */
async function answerTo(call: FacadeCall, wait: number, read: () => GateRequest | null): Promise<Answered> {
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
