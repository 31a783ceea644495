/** OpenAI Agents SDK: wraps the options of a function tool. */
import { checkFramework } from "./framework.ts";
import { createGate, ToolNotRunError, evaluateNeedsApproval, type GateOptions } from "./gate.ts";

checkFramework("@openai/agents");

/** The options of `tool()` that the adapter wraps. `parameters` is the schema of an object. */
interface ToolOptions {
  name: string;
  // The adapter passes input and output through unchanged; the SDK's own types describe them.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  execute: (input: any, context?: any, details?: any) => any;
  needsApproval?: unknown;
}

interface Details {
  toolCall?: { callId?: string };
  signal?: AbortSignal;
}

/**
 * Returns the options of a tool, wrapped so that each call needs a decision.
 * Use as `tool(governTool({ name, description, parameters, execute }, gate))`. A call that requires approval interrupts
 * the run. Save the run state. After a person has approved the action, approve the interruption in that state: the SDK
 * then repeats the call, and the service evaluates it again. Approving the interruption without the service's approval
 * does not run the tool.
 * @example
 * const refund = tool(governTool({ name: "refund", description, parameters, execute }, { tool: "stripe" }));
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
        // Replaces the SDK's error text, which does not tell the model what to do.
        if (error instanceof ToolNotRunError) return error.message;
        throw error;
      }
    },
  };
}
