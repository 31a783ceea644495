/** LangChain agents on LangGraph: a middleware around every tool call. */
import { checkFramework } from "./framework.ts";
import { createGate, NotRun, type GateOptions } from "./gate.ts";

checkFramework("langchain");

interface ToolCall {
  id?: string;
  name: string;
  args: Record<string, unknown>;
}

/** The members of LangChain's request that the middleware uses. */
interface Request {
  toolCall: ToolCall;
  runtime: { signal?: AbortSignal; configurable?: { thread_id?: unknown } };
}

export interface LangChainOptions<Message> extends GateOptions {
  /** Creates the refusal message with your LangChain's class: `(fields) => new ToolMessage(fields)`. */
  message: (fields: { tool_call_id: string; name: string; status: "error"; content: string }) => Message;
  /**
   * LangGraph's `interrupt`, which requires a checkpointer. A call that requires approval stops the graph, and resuming
   * it requests a decision again, whatever the resume value. Without it, the model is told to retry later.
   */
  interrupt?: ((value: { action_id: string; message: string }) => unknown) | undefined;
}

/** Use as `createMiddleware({ name: "assent", wrapToolCall: wrapToolCall({ … }) })`. */
export function wrapToolCall<Message>(options: LangChainOptions<Message>) {
  const gate = createGate(options, { message: true, interrupt: true });
  // The handler's own types are LangChain's.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  return async function governed(request: any, handler: (request: any) => any): Promise<any> {
    const { toolCall, runtime } = request as Request;
    const { id = "", name, args } = toolCall;
    const thread = runtime.configurable?.thread_id;
    const meta = { framework: "langchain", tool_call_id: id, ...(typeof thread === "string" ? { thread } : {}) };
    const approvalTimeout = options.interrupt === undefined ? 30 : 0;
    for (;;) {
      try {
        return await gate.run({ name, args, meta, signal: runtime.signal, approvalTimeout }, (params) =>
          handler({ ...request, toolCall: { ...toolCall, args: params } }),
        );
      } catch (error) {
        if (!(error instanceof NotRun)) throw error;
        if (error.state !== "pending" || error.action === null || options.interrupt === undefined)
          return options.message({ tool_call_id: id, name, status: "error", content: error.message });
        // Throws at first; in a resumed graph it returns a value that anyone could have supplied, so request a decision
        // again.
        options.interrupt({ action_id: error.action.id, message: error.message });
      }
    }
  };
}
