/** Google ADK: callbacks of an agent, or of a plugin of a runner, around every tool call. */
import { errorText } from "../client/govern.ts";
import type { ActionRecord } from "../client/index.ts";
import { createGate, NotRun, type GateOptions } from "./gate.ts";

/** Of ADK's callback parameters, what is read. */
interface Before {
  tool: { name: string };
  args: Record<string, unknown>;
  context: object & { functionCallId?: string; invocationId?: string };
}

/**
 * `new LlmAgent({ …, ...assentCallbacks({ … }) })`. What may not run is answered in the tool's place, with words for the
 * model. ADK's own confirmations are the user's word and are not looked at. The arguments are put back to what was asked.
 */
export function assentCallbacks(options: GateOptions) {
  const gate = createGate(options);
  const started = new WeakMap<object, ActionRecord>();
  return {
    async beforeToolCallback({ tool, args, context }: Before): Promise<Record<string, unknown> | undefined> {
      const { functionCallId, invocationId } = context;
      const meta = { framework: "google-adk", tool_call_id: functionCallId ?? "", run: invocationId ?? "" };
      try {
        const { action, params } = await gate.enter({ name: tool.name, args, meta });
        for (const name of Object.keys(args)) if (!Object.hasOwn(params, name)) delete args[name];
        Object.assign(args, params);
        started.set(context, action);
        return undefined;
      } catch (error) {
        return { status: "not_run", message: error instanceof NotRun ? error.message : errorText(error) };
      }
    },
    async afterToolCallback({ context, response }: Pick<Before, "context"> & { response: unknown }) {
      const action = started.get(context);
      started.delete(context);
      const error =
        typeof response === "object" && response !== null && "error" in response ? response.error : undefined;
      if (action !== undefined)
        await gate.assent
          .result(action.id, error === undefined ? { success: true } : { success: false, error: errorText(error) })
          .catch(() => {});
      return undefined;
    },
  };
}
