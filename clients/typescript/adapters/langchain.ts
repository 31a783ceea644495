/** LangChain agents on LangGraph: a middleware around every tool call. */
import { checkFramework } from "./framework.ts";
import { createGate, ToolNotRunError, type GateOptions } from "./gate.ts";

checkFramework("langchain");

interface ToolCall {
  id?: string;
  name: string;
  args: Record<string, unknown>;
}

/** The members of LangChain's request that the middleware uses. */
interface Request {
  toolCall: ToolCall;
  /** The agent's state. The last message of the model contains all calls that the model made together. */
  state?: { messages?: readonly { tool_calls?: readonly ToolCall[] }[] };
  runtime: { signal?: AbortSignal; configurable?: { thread_id?: unknown } };
}

export interface LangChainOptions<Message> extends GateOptions {
  /** Creates the refusal message with your LangChain's class: `(fields) => new ToolMessage(fields)`. */
  message: (fields: { tool_call_id: string; name: string; status: "error"; content: string }) => Message;
  /**
   * LangGraph's `interrupt`, which requires a checkpointer. A call that requires approval stops the graph. Resuming the
   * graph requests a decision again and ignores the resume value. Without `interrupt`, the model gets a message to
   * retry later.
   */
  interrupt?: ((value: { action_id: string; message: string }) => unknown) | undefined;
  /**
   * Whether the calls that the model makes in one turn are submitted as one plan. Default true. If false, people decide
   * on each call separately.
   */
  plans?: boolean | undefined;
}

/**
 * Returns middleware that governs every tool call of an agent.
 * Use as `createMiddleware({ name: "assent", wrapToolCall: wrapToolCall({ … }) })`.
 * @example
 * createMiddleware({ name: "assent", wrapToolCall: wrapToolCall({ tool: "stripe", message: (fields) => new ToolMessage(fields) }) });
 */
export function wrapToolCall<Message>(options: LangChainOptions<Message>) {
  const gate = createGate(options, { message: true, interrupt: true, plans: true });
  const submitPlan = createPlanner(gate);
  // The handler's own types are LangChain's.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  return async function governed(request: any, handler: (request: any) => any): Promise<any> {
    const { toolCall, state, runtime } = request as Request;
    const { id = "", name, args } = toolCall;
    const thread = runtime.configurable?.thread_id;
    const meta = { framework: "langchain", tool_call_id: id, ...(typeof thread === "string" ? { thread } : {}) };
    if (options.plans !== false) await submitPlan(callsOfTurn(state, id), thread, runtime.signal);
    const approvalTimeout = options.interrupt === undefined ? 30 : 0;
    for (;;) {
      try {
        return await gate.run({ name, args, meta, signal: runtime.signal, approvalTimeout }, (params) =>
          handler({ ...request, toolCall: { ...toolCall, args: params } }),
        );
      } catch (error) {
        if (!(error instanceof ToolNotRunError)) throw error;
        if (error.state !== "pending" || error.action === null || options.interrupt === undefined)
          return options.message({ tool_call_id: id, name, status: "error", content: error.message });
        // `interrupt` throws on the first run. In a resumed graph it returns a value that anyone could have supplied,
        // so request a decision again.
        options.interrupt({ action_id: error.action.id, message: error.message });
      }
    }
  };
}

/**
 * Returns the calls that the model made in the same turn as this call, in the model's order; an empty list if the state
 * does not contain them.
 */
function callsOfTurn(state: Request["state"], id: string): readonly ToolCall[] {
  const turn = state?.messages?.findLast(({ tool_calls: calls }) => calls?.some((call) => call.id === id) === true);
  return turn?.tool_calls ?? [];
}

/** Maximum number of plans that are remembered, so that the calls of one turn submit their plan only once. */
const MAX_PLANS = 100;

/** Returns a function that submits the calls of a turn as a plan. Only the first call for a turn has an effect. */
function createPlanner(gate: ReturnType<typeof createGate>) {
  const submitted = new Map<string, Promise<void>>();
  return async (calls: readonly ToolCall[], thread: unknown, signal: AbortSignal | undefined): Promise<void> => {
    // Calls without ids cannot be a plan, because a resumed run would submit them again as a second plan.
    if (calls.length < 2 || calls.some(({ id }) => id === undefined)) return;
    const key = await digestOf([typeof thread === "string" ? thread : null, ...calls.map(({ id }) => id)]);
    const meta = { framework: "langchain", ...(typeof thread === "string" ? { thread } : {}) };
    const plan =
      submitted.get(key) ??
      gate.plan(
        calls.map(({ name, args }) => ({ name, args, meta, signal })),
        `langchain-${key}`,
      );
    submitted.set(key, plan);
    const [oldest] = submitted.keys();
    if (submitted.size > MAX_PLANS && oldest !== undefined) submitted.delete(oldest);
    await plan;
  };
}

/** Returns the SHA-256 of the value's JSON, in hex. */
async function digestOf(value: unknown): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(value)));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
