/** Vercel AI SDK 6 and 7: wraps tools so that each call needs a decision. */
import type { ActionRecord } from "../index.ts";
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
 * decision again and ignores the approval in the response; after a denial, call `cancelDenied`. The SDK's own
 * `toolApproval` is not sufficient, because it accepts an approval in the message history, which a client can write.
 * Throws TypeError for tools without `execute`, because they run elsewhere.
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
      meta: metaOf(toolCallId),
      signal: abortSignal,
      approvalTimeout: 0,
    });
    return [
      name,
      {
        ...tool,
        needsApproval: async (input: unknown, options: ExecutionOptions) =>
          wasRequested(options) ||
          (await evaluateNeedsApproval(needsApproval, input, options)) ||
          (await gate.needsApproval(callOf(input, options))),
        execute: (input: unknown, options: ExecutionOptions) =>
          gate.run(callOf(input, options), (params) => awaitOutput(execute(params, options))),
      },
    ];
  });
  return Object.fromEntries(governed) as Tools;
}

/** The members of the SDK's messages that `cancelDenied` reads. */
interface SdkMessage {
  role: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  content: any;
}

/**
 * Cancels the actions of calls that the application's user denied, and returns the cancelled actions. The SDK calls no
 * function of a tool for a denial (a tool-approval-response with `approved: false`), so its action would stay pending
 * until it expires, and approvers would still see it. Call this before you generate again.
 * @param options the options of `governTools`
 * @example
 * await cancelDenied(messages, { tool: "stripe" });
 * const result = await generateText({ model, tools, messages });
 */
export async function cancelDenied(messages: readonly SdkMessage[], options: GateOptions): Promise<ActionRecord[]> {
  const gate = createGate(options);
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as MessagePart[]) : []));
  const find = (type: string, member: "approvalId" | "toolCallId", id: unknown): MessagePart | undefined =>
    parts.find((part) => part.type === type && part[member] === id);
  const cancelled: ActionRecord[] = [];
  for (const { type, approved, approvalId, reason } of parts) {
    if (type !== "tool-approval-response" || approved !== false) continue;
    const { toolCallId } = find("tool-approval-request", "approvalId", approvalId) ?? {};
    const { toolName, input } = find("tool-call", "toolCallId", toolCallId) ?? {};
    // A call with a result was answered in an earlier run.
    if (toolCallId === undefined || toolName === undefined || find("tool-result", "toolCallId", toolCallId)) continue;
    const action = await gate.cancel({ name: toolName, args: input, meta: metaOf(toolCallId) }, reason);
    if (action !== null) cancelled.push(action);
  }
  return cancelled;
}

const metaOf = (toolCallId: string) => ({ framework: "ai-sdk", tool_call_id: toolCallId });

/** The members of message parts about tool calls. */
interface MessagePart {
  type: string;
  approvalId?: string;
  approved?: boolean;
  reason?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
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
async function awaitOutput(output: unknown): Promise<unknown> {
  const value: unknown = await output;
  if (typeof value !== "object" || value === null || !(Symbol.asyncIterator in value)) return value;
  let last: unknown;
  for await (const part of value as AsyncIterable<unknown>) last = part;
  return last;
}
