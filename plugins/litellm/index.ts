/**
 * Facades for LiteLLM. LiteLLM requests a decision about each response of a model (`guardrail: generic_guardrail_api`,
 * `mode: post_call`), and logs the usage of each model call (`callback_type: generic_api`).
 */
import { Type } from "@sinclair/typebox";
import { readJsonObject, UnreadableRequest } from "../../src/core.ts";
import { definePlugin, type FacadeCall, type Reply } from "../../src/plugin.ts";
import { readToolCalls } from "./read-calls.ts";
import { recordUsage } from "./usage.ts";
import { describeRefusal, describeRetryableFault, type GateRequest, submitAndStartAll } from "../actions/api.ts";

const Options = Type.Object(
  {
    enabled: Type.Boolean({ default: false, description: "Enables the endpoint." }),
    tool: Type.String({
      default: "litellm",
      minLength: 1,
      maxLength: 256,
      description: "The tool of the submitted actions.",
    }),
    wait_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 300,
      description:
        "Maximum wait for approvals, for all calls of a response together. Must be less than LiteLLM's own timeout.",
    }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "litellm",
  needs: ["actions"],
  options: Options,
  setup: (_, { enabled, tool, wait_seconds }) =>
    enabled
      ? {
          facades: [
            {
              // LiteLLM appends everything after the first segment to its `api_base`.
              path: "/litellm/beta/litellm_basic_guardrail_api",
              title: "LiteLLM generic guardrail",
              methods: ["POST"],
              serve: (call) => answer(call, tool, wait_seconds),
              fault: ({ code }) => blocked(describeRetryableFault(code).message),
            },
            {
              path: "/litellm/usage",
              title: "LiteLLM usage",
              methods: ["POST"],
              serve: (call) => recordUsage(call, tool),
              fault: ({ status, code, detail }) => ({ status, json: { error: detail, code } }),
            },
          ],
        }
      : {},
});

async function answer(call: FacadeCall, tool: string, wait: number): Promise<Reply> {
  let requests: GateRequest[];
  try {
    requests = readToolCalls(readJsonObject(call.body), tool);
  } catch (error) {
    if (!(error instanceof UnreadableRequest)) throw error;
    return blocked(`Not run: the tool calls in the model's response cannot be decided; ${error.message}.`);
  }
  const { passed, outcomes: verdicts } = await submitAndStartAll(call, requests, wait);
  if (passed) return { status: 200, json: { action: "NONE" } };
  return blocked(
    verdicts.flatMap((verdict) => (verdict.kind === "go" ? [] : describeRefusal(verdict).message)).join("\n"),
  );
}

/** Returns 200 even for a refusal, because LiteLLM can be configured to continue after any other status. */
const blocked = (reason: string): Reply => ({ status: 200, json: { action: "BLOCKED", blocked_reason: reason } });
