/** What LiteLLM asks about a model's answer (`guardrail: generic_guardrail_api`, `mode: post_call`). */
import { Type } from "@sinclair/typebox";
import {
  describeFault,
  describeRefusal,
  type GateRequest,
  readJsonObject,
  submitAndStartAll,
  UnreadableRequest,
} from "../../src/core.ts";
import { definePlugin, type FacadeCall, type Reply } from "../../src/plugin.ts";
import { callsIn } from "./read.ts";

const Options = Type.Object(
  {
    enabled: Type.Boolean({ default: false, description: "Opens the address." }),
    tool: Type.String({ default: "litellm", minLength: 1, maxLength: 256, description: "The actions' tool." }),
    wait_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 300,
      description:
        "How long people are waited for, for all calls of an answer together; less than LiteLLM's own time limit.",
    }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "litellm",
  options: Options,
  setup: (_, { enabled, tool, wait_seconds }) =>
    enabled
      ? {
          facades: [
            {
              // LiteLLM puts all but the first part behind its `api_base`.
              path: "/litellm/beta/litellm_basic_guardrail_api",
              title: "LiteLLM generic guardrail",
              methods: ["POST"],
              serve: (call) => answer(call, tool, wait_seconds),
              fault: ({ code }) => blocked(describeFault(code).message),
            },
          ],
        }
      : {},
});

async function answer(call: FacadeCall, tool: string, wait: number): Promise<Reply> {
  let requests: GateRequest[];
  try {
    requests = callsIn(readJsonObject(call.body), tool);
  } catch (error) {
    if (!(error instanceof UnreadableRequest)) throw error;
    return blocked(`Not run: the answer's tool calls cannot be decided; ${error.message}.`);
  }
  const { passed, outcomes: verdicts } = await submitAndStartAll(call, requests, wait);
  if (passed) return { status: 200, json: { action: "NONE" } };
  return blocked(
    verdicts.flatMap((verdict) => (verdict.kind === "go" ? [] : describeRefusal(verdict).message)).join("\n"),
  );
}

/** Always 200: LiteLLM can be configured to go on after every other status, and after none of its answers. */
const blocked = (reason: string): Reply => ({ status: 200, json: { action: "BLOCKED", blocked_reason: reason } });
