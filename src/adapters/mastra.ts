/** Mastra: the definition of a tool, with the gate around what it runs. */
import { checkFramework } from "./framework.ts";
import { createGate, NotRun, type GateOptions } from "./gate.ts";

checkFramework("@mastra/core");

/** Of Mastra's tool definition, what is wrapped. */
interface ToolDefinition {
  id: string;
  // Mastra's own types say what goes in and out; they are passed through as they are.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  execute?: ((input: any, context: any) => any) | undefined;
}

interface ExecutionContext {
  abortSignal?: AbortSignal;
  agent?: { toolCallId?: string; threadId?: string; suspend?: (payload: unknown) => Promise<void> };
}

/**
 * `createTool(governTool({ id, description, inputSchema, execute }, gate))`. A call that needs a person suspends its run;
 * `resumeStream` or `resumeGenerate` makes it ask anew, whatever the data it is resumed with. Outside an agent, and where
 * the tool has no `suspendSchema` or storage to suspend into, it throws with words for the model.
 */
export function governTool<Definition extends ToolDefinition>(
  definition: Definition,
  options: GateOptions,
): Definition {
  const gate = createGate(options);
  const { id, execute } = definition;
  if (execute === undefined) throw new TypeError(`the tool ${id} has no execute: it runs where nothing can be asked`);
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
        if (!(error instanceof NotRun) || error.state !== "pending" || agent?.suspend === undefined) throw error;
        return await agent.suspend({ action_id: error.action?.id, message: error.message });
      }
    },
  };
}
