/** Vercel AI SDK 6 and 7: tools that ask. */
import { checkFramework } from "./framework.ts";
import { createGate, evaluateNeedsApproval, type GateOptions } from "./gate.ts";

checkFramework("ai");

interface ExecutionOptions {
  toolCallId: string;
  messages?: readonly { content: unknown }[] | undefined;
  abortSignal?: AbortSignal | undefined;
}

/** Of the SDK's `Tool`, what is wrapped. */
interface SdkTool {
  // The SDK's own types say what goes in and out; they are passed through as they are.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  execute?: ((input: any, options: any) => any) | undefined;
  needsApproval?: unknown;
}

/**
 * The same tools, each behind a start of its own. A call that needs a person ends the run with a tool-approval-request;
 * to resume, append a tool-approval-response and generate again: the tool asks anew then, whatever the response says. The
 * SDK's `toolApproval` is no place for this: an approval in the history, which a client can write, passes there unless
 * the function says "denied". Tools without `execute` run elsewhere and are refused.
 */
export function governTools<Tools extends Record<string, SdkTool>>(tools: Tools, options: GateOptions): Tools {
  const gate = createGate(options);
  const governed = Object.entries(tools).map(([name, tool]) => {
    const { execute, needsApproval } = tool;
    if (execute === undefined)
      throw new TypeError(`the tool ${name} has no execute: it runs where nothing can be asked`);
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

/** SDK 6 looks again when a run is resumed, and denies a call that needs no approval any more. */
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

/** A tool that streams has run when its last part is there, which is its result. */
async function finished(output: unknown): Promise<unknown> {
  const value: unknown = await output;
  if (typeof value !== "object" || value === null || !(Symbol.asyncIterator in value)) return value;
  let last: unknown;
  for await (const part of value as AsyncIterable<unknown>) last = part;
  return last;
}
