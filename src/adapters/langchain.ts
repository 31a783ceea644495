/** LangChain agents on LangGraph: a middleware around every tool call. */
import { checkFramework } from "./framework.ts";
import { createGate, NotRun, type GateOptions } from "./gate.ts";

checkFramework("langchain");

interface ToolCall {
  id?: string;
  name: string;
  args: Record<string, unknown>;
}

/** Of LangChain's request to `wrapToolCall`, what is read and changed. */
interface Request {
  toolCall: ToolCall;
  runtime: { signal?: AbortSignal; configurable?: { thread_id?: unknown } };
}

export interface LangChainOptions<Message> extends GateOptions {
  /** Makes a refusal of your own LangChain's class: `(fields) => new ToolMessage(fields)`. */
  message: (fields: { tool_call_id: string; name: string; status: "error"; content: string }) => Message;
  /**
   * LangGraph's `interrupt`: a call that needs a person stops the graph, and resuming it asks anew, whatever it is resumed
   * with. It needs a checkpointer. Absent: the model is told to come back.
   */
  interrupt?: ((value: { action_id: string; message: string }) => unknown) | undefined;
}

/** `createMiddleware({ name: "assent", wrapToolCall: wrapToolCall({ … }) })`. */
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
        // Throws, and in a graph that is resumed returns: what it returns is anybody's word, so it is asked again.
        options.interrupt({ action_id: error.action.id, message: error.message });
      }
    }
  };
}
