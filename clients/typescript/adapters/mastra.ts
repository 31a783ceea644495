/** Mastra: wraps the `execute` of a tool definition. */
import { checkFramework } from "./framework.ts";
import { createGate, ToolNotRunError, type GateOptions } from "./gate.ts";

checkFramework("@mastra/core");

/** The members of Mastra's tool definition that the adapter wraps. */
interface ToolDefinition {
  id: string;
  // The adapter passes input and output through unchanged; Mastra's own types describe them.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  execute?: ((input: any, context: any) => any) | undefined;
}

interface ExecutionContext {
  abortSignal?: AbortSignal;
  agent?: { toolCallId?: string; threadId?: string; suspend?: (payload: unknown) => Promise<void> };
}

/**
 * Returns the definition of a tool, wrapped so that each call needs a decision.
 * Use as `createTool(governTool({ id, description, inputSchema, execute }, gate))`. A call that requires approval
 * suspends its run. `resumeStream` and `resumeGenerate` request a decision again and ignore the resume data. The run
 * cannot be suspended outside an agent, or without a `suspendSchema` and storage. Then the call throws an Error with a
 * message for the model.
 * @example
 * const refund = createTool(governTool({ id: "refund", description, inputSchema, execute }, { tool: "stripe" }));
 */
export function governTool<Definition extends ToolDefinition>(
  definition: Definition,
  options: GateOptions,
): Definition {
  const gate = createGate(options);
  const { id, execute } = definition;
  if (execute === undefined)
    throw new TypeError(`the tool ${id} has no execute function, so its calls cannot be governed`);
  return {
    ...definition,
    async execute(input: unknown, context: ExecutionContext = {}) {
      const { agent, abortSignal: signal } = context;
      const meta = {
        framework: "mastra",
        ...(agent?.toolCallId === undefined ? {} : { tool_call_id: agent.toolCallId }),
      };
      try {
        return await gate.run({ name: id, args: input, meta, signal, approvalTimeout: 0 }, (params) =>
          execute(params, context),
        );
      } catch (error) {
        if (!(error instanceof ToolNotRunError) || error.state !== "pending" || agent?.suspend === undefined)
          throw error;
        return await agent.suspend({ action_id: error.action?.id, message: error.message });
      }
    },
  };
}
