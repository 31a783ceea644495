/** Google ADK: a callback of an agent, in the place of every tool call. */
import { errorText } from "../client/govern.ts";
import { checkFramework } from "./framework.ts";
import { createGate, NotRun, type GateOptions } from "./gate.ts";

checkFramework("@google/adk");

/** Of ADK's callback parameters, what is read. */
interface Before {
  tool: {
    name: string;
    // ADK's own types say what goes in; it is passed through as it is.
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    runAsync: (request: { args: Record<string, unknown>; toolContext: any }) => Promise<unknown>;
  };
  args: Record<string, unknown>;
  context: object & { functionCallId?: string; invocationId?: string };
}

/**
 * `new LlmAgent({ …, ...assentCallbacks({ … }) })`. Runs the tool itself, behind the gate, and answers in its place: so it
 * runs with what was asked, whatever other callbacks change, and it is known how it went. What may not run is answered
 * with words for the model. ADK's own confirmations are the user's word and are not looked at.
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
        // Always an object: after any other answer ADK would run the tool.
        if (Array.isArray(value)) return { results: value };
        return typeof value === "object" && value !== null
          ? (value as Record<string, unknown>)
          : { result: value ?? null };
      } catch (error) {
        if (error instanceof NotRun) return { status: "not_run", message: error.message };
        return { error: error instanceof Error ? error.message : errorText(error) };
      }
    },
  };
}
