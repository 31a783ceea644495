/** OpenAI Agents SDK: the options of a function tool, with the gate around what they run. */
import { checkFramework } from "./framework.ts";
import { createGate, NotRun, evaluateNeedsApproval, type GateOptions } from "./gate.ts";

checkFramework("@openai/agents");

/** Of the options of `tool()`, what is wrapped. `parameters` is a schema of an object. */
interface ToolOptions {
  name: string;
  // The SDK's own types say what goes in and out; they are passed through as they are.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  execute: (input: any, context?: any, details?: any) => any;
  needsApproval?: unknown;
}

interface Details {
  toolCall?: { callId?: string };
  signal?: AbortSignal;
}

/**
 * `tool(governTool({ name, description, parameters, execute }, gate))`. A call that needs a person is an interruption:
 * keep the state, and approve it there only to have the call made again, which asks anew. A state that says "approved"
 * runs nothing by itself.
 */
export function governTool<Options extends ToolOptions>(options: Options, gateOptions: GateOptions): Options {
  const gate = createGate(gateOptions);
  const { name, execute, needsApproval } = options;
  const callOf = (args: unknown, callId: string | undefined, signal?: AbortSignal) => ({
    name,
    args,
    meta: { framework: "openai-agents", ...(callId === undefined ? {} : { tool_call_id: callId }) },
    signal,
    approvalTimeout: 0,
  });
  return {
    ...options,
    needsApproval: async (context: unknown, input: unknown, callId?: string) =>
      (await evaluateNeedsApproval(needsApproval, context, input, callId)) ||
      (await gate.needsApproval(callOf(input, callId))),
    async execute(input: unknown, context: unknown, details?: Details) {
      const call = callOf(input, details?.toolCall?.callId, details?.signal);
      try {
        return await gate.run(call, (params) => execute(params, context, details));
      } catch (error) {
        // The SDK's own words for an error do not say what the model has to do.
        if (error instanceof NotRun) return error.message;
        throw error;
      }
    },
  };
}
