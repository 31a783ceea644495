/** Vercel AI SDK 6 and 7: wraps tools so that each call needs a decision. */
import { checkFramework } from "./framework.ts";
import { createGate, evaluateNeedsApproval, type GateOptions } from "./gate.ts";

checkFramework("ai");

interface ExecutionOptions {
  toolCallId: string;
  messages?: readonly { content: unknown }[] | undefined;
  abortSignal?: AbortSignal | undefined;
}

/** The members of the SDK's `Tool` that the adapter wraps. */
interface SdkTool {
  // The adapter passes input and output through unchanged; the SDK's own types describe them.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  execute?: ((input: any, options: any) => any) | undefined;
  needsApproval?: unknown;
}

/**
 * Returns the tools, wrapped so that each call needs a decision. A call that requires approval ends the run with a
 * tool-approval-request. To resume, append a tool-approval-response and generate again. The adapter then requests a
 * decision again and ignores the response's value. The SDK's own `toolApproval` is not sufficient, because it accepts
 * an approval in the message history, which a client can write. Throws TypeError for tools without `execute`, because
 * they run elsewhere.
 * @example
 * const tools = governTools({ refund, search }, { tool: "stripe" });
 * const result = await generateText({ model, tools, messages });
 */
export function governTools<Tools extends Record<string, SdkTool>>(tools: Tools, options: GateOptions): Tools {
  const gate = createGate(options);
  const governed = Object.entries(tools).map(([name, tool]) => {
    const { execute, needsApproval } = tool;
    if (execute === undefined)
      throw new TypeError(`the tool ${name} has no execute function, so its calls cannot be governed`);
    const callOf = (args: unknown, { toolCallId, abortSignal }: ExecutionOptions) => ({
      name,
      args,
      meta: { framework: "ai-sdk", tool_call_id: toolCallId },
      signal: abortSignal,
      approvalTimeout: 0,
    });
    return [
      name,
      {
        ...tool,
        needsApproval: async (input: unknown, how: ExecutionOptions) =>
          wasRequested(how) ||
          (await evaluateNeedsApproval(needsApproval, input, how)) ||
          (await gate.needsApproval(callOf(input, how))),
        execute: (input: unknown, how: ExecutionOptions) =>
          gate.run(callOf(input, how), (params) => finished(execute(params, how))),
      },
    ];
  });
  return Object.fromEntries(governed) as Tools;
}

/**
 * Returns true if the SDK has already requested approval of this call. When a run resumes, SDK 6 evaluates
 * `needsApproval` again, and would deny the call if the result were now false.
 */
function wasRequested({ toolCallId, messages = [] }: ExecutionOptions): boolean {
  return messages.some(
    ({ content }) =>
      Array.isArray(content) &&
      content.some(
        (part: { type?: unknown; toolCallId?: unknown }) =>
          part.type === "tool-approval-request" && part.toolCallId === toolCallId,
      ),
  );
}

/** Waits for a streaming tool to finish and returns its last part, which is its result. */
async function finished(output: unknown): Promise<unknown> {
  const value: unknown = await output;
  if (typeof value !== "object" || value === null || !(Symbol.asyncIterator in value)) return value;
  let last: unknown;
  for await (const part of value as AsyncIterable<unknown>) last = part;
  return last;
}
