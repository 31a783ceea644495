/** Google ADK: an agent callback that runs every tool call instead of the framework. */
import { errorText } from "../govern.ts";
import { checkFramework } from "./framework.ts";
import { createGate, ToolNotRunError, type GateOptions } from "./gate.ts";

checkFramework("@google/adk");

/** The members of ADK's callback parameters that the adapter reads. */
interface Before {
  tool: {
    name: string;
    // The adapter passes the input through unchanged; ADK's own types describe it.
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    runAsync: (request: { args: Record<string, unknown>; toolContext: any }) => Promise<unknown>;
  };
  args: Record<string, unknown>;
  context: object & { functionCallId?: string; invocationId?: string };
}

/**
 * Returns a callback that governs every tool call of an agent.
 * Use as `new LlmAgent({ …, ...assentCallbacks({ … }) })`. The callback runs the tool itself and returns its result. So
 * the tool runs with the decided arguments even if other callbacks change them, and the adapter can report the result.
 * A refused call returns a message for the model. Ignores ADK's own confirmations.
 * @example
 * new LlmAgent({ name: "support", model, tools, ...assentCallbacks({ tool: "stripe" }) });
 */
export function assentCallbacks(options: GateOptions) {
  const gate = createGate(options);
  return {
    async beforeToolCallback({ tool, args, context }: Before): Promise<Record<string, unknown>> {
      const { functionCallId, invocationId } = context;
      const meta = { framework: "google-adk", tool_call_id: functionCallId ?? "", run: invocationId ?? "" };
      try {
        const value = await gate.run({ name: tool.name, args, meta }, (params) =>
          tool.runAsync({ args: params, toolContext: context }),
        );
        // Return an object. After any other result, ADK would run the tool itself.
        if (Array.isArray(value)) return { results: value };
        return typeof value === "object" && value !== null
          ? (value as Record<string, unknown>)
          : { result: value ?? null };
      } catch (error) {
        if (error instanceof ToolNotRunError) return { status: "not_run", message: error.message };
        return { error: error instanceof Error ? error.message : errorText(error) };
      }
    },
  };
}
