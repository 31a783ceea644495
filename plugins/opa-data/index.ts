/** OPA's data API (`POST /v1/data/<path>` with an `input`), for clients of an Open Policy Agent. */
import { Type } from "@sinclair/typebox";
import {
  type GateOutcome,
  type GateRequest,
  isJsonObject,
  type JsonValue,
  readJsonObject,
  submitAndStart,
  UnreadableRequest,
} from "../../src/core.ts";
import { definePlugin, type FacadeCall, type Reply } from "../../src/plugin.ts";

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

export default definePlugin({
  name: "opa-data",
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
              fault: ({ status, code, detail }) => problem(status, code.toLowerCase(), detail),
            },
          ],
        }
      : {},
});

async function answer(call: FacadeCall, tool: string, wait: number): Promise<Reply> {
  const request = requestIn(call.body, tool);
  if (request === null)
    return problem(
      400,
      "invalid_parameter",
      "the body must be JSON with an `input` that has either `tool` and `operation`, optionally with `params`, `context` and `agent_id`, or `tool.name` and `args`",
    );
  const verdict = await submitAndStart(call, request, wait);
  if (verdict.kind === "fault") return problem(verdict.status, verdict.code.toLowerCase(), verdict.detail);
  const allow = verdict.kind === "go";
  // A query for a single rule returns only the rule's value. It is never undefined, because clients treat undefined as
  // "no objection".
  if (ruleOf(call.request.url) === "allow") return { status: 200, json: { result: allow } };
  const about = verdict.action === null ? {} : { action_id: verdict.action.id };
  // Report a pending action as a deny, because a client that reads "needs approval" would ask its own user.
  return {
    status: 200,
    json: { result: { decision: allow ? "allow" : "deny", allow, reason: reasonOf(verdict), ...about } },
  };
}

/**
 * Returns the last segment of the path, parsed like OPA does. A client that queries a single rule expects a boolean,
 * and would treat an object as an allow.
 */
function ruleOf(url: string): string | undefined {
  const path = new URL(url).pathname.replace(/\/+$/, "");
  try {
    return decodeURIComponent(path).split("/").at(-1);
  } catch {
    return undefined;
  }
}

function reasonOf(verdict: Exclude<GateOutcome, { kind: "fault" }>): string {
  if (verdict.kind === "wait")
    return `not run: waits for approval (${verdict.action.id}); call again with exactly the same arguments; it is not refused`;
  return verdict.kind === "go" ? verdict.action.reason : verdict.reason;
}

/**
 * Reads `{tool, operation, params?, context?, agent_id?}`, or the input of the package `@ai-sdk/policy-opa`, which is
 * `{tool: {name}, args}`.
 */
function requestIn(body: Uint8Array, ownTool: string): GateRequest | null {
  let input: JsonValue | undefined;
  try {
    input = readJsonObject(body)["input"];
  } catch (error) {
    if (error instanceof UnreadableRequest) return null;
    throw error;
  }
  if (!isJsonObject(input)) return null;
  const { tool, operation, params, args, context, agent_id } = input;
  if (!(agent_id === undefined || typeof agent_id === "string")) return null;
  const agent = agent_id ?? "opa";
  const meta = { via: "opa" };
  if (isJsonObject(tool)) {
    const name = tool["name"];
    if (typeof name !== "string" || !isJsonObject(args)) return null;
    // Reject a mix of both forms, because the client might run the call with the members of the other form.
    if (operation !== undefined || params !== undefined) return null;
    return { agent_id: agent, tool: ownTool, operation: name, params: args, meta };
  }
  // Reject unknown members, because the client might run arguments in them that the decision did not cover.
  if (Object.keys(input).some((member) => !MEMBERS.includes(member))) return null;
  if (typeof tool !== "string" || typeof operation !== "string") return null;
  if (!(params === undefined || isJsonObject(params)) || !(context === undefined || isJsonObject(context))) return null;
  return {
    agent_id: agent,
    tool,
    operation,
    params: params ?? {},
    ...(context === undefined ? {} : { context }),
    meta,
  };
}

const problem = (status: number, code: string, message: string): Reply => ({ status, json: { code, message } });
