/** Turns a framework's tool call into a request to the service. All adapters use this. */
import { runStarted } from "../govern.ts";
import {
  submitAndStart,
  AssentError,
  createAssent,
  type ActionRecord,
  type Assent,
  type RefusalOutcome,
} from "../index.ts";
import { refuseUnknownOptions } from "../unknown-options.ts";
import { copyJsonObject } from "../copy-json.ts";

type Json = Record<string, unknown>;

export interface GateOptions {
  /**
   * The tool that policies see. A string is the tool of every call, and the call's name is the operation. A function
   * returns both for each call's name.
   */
  tool: string | ((name: string) => { tool: string; operation: string });
  /** Default: the agent that the API key is bound to. */
  agent?: string | undefined;
  /** Default: `createAssent()`. */
  assent?: Assent | undefined;
  /**
   * Purpose and beneficiary of the call. Part of the request and so equal when a call is resumed: omit session and run
   * ids.
   */
  context?: Json | undefined;
  /** Seconds that a call waits for approval. Default 0 if the framework can suspend calls, else 30. */
  approvalTimeout?: number | undefined;
  /**
   * Returns the usage of a call, such as `{ cost_usd: 0.02 }`, from its result and name. Limits count it. Default:
   * none.
   */
  usage?: ((value: unknown, name: string) => Record<string, number>) | undefined;
  /** Called for each call that waits for approval. `assent.wait(action.id)` resolves when the call can be resumed. */
  onPending?: ((action: ActionRecord) => void) | undefined;
}

const OPTIONS: Readonly<Record<keyof GateOptions, true>> = {
  tool: true,
  agent: true,
  assent: true,
  context: true,
  usage: true,
  approvalTimeout: true,
  onPending: true,
};

/**
 * A tool call of the framework. The ids of the run, the thread and the call go into `meta`, which is not part of the
 * request.
 */
interface FrameworkCall {
  name: string;
  args: unknown;
  meta?: Json | undefined;
  signal?: AbortSignal | undefined;
  approvalTimeout?: number | undefined;
}

/** Thrown when the tool did not run. The message tells the model why, and whether to retry. */
export class ToolNotRunError extends Error {
  readonly state: "pending" | "refused" | "unavailable";
  /** Kind of refusal; null unless `state` is "refused". */
  readonly outcome: RefusalOutcome | null;
  readonly action: ActionRecord | null;
  constructor(
    state: ToolNotRunError["state"],
    message: string,
    { action = null, outcome = null }: { action?: ActionRecord | null; outcome?: RefusalOutcome | null } = {},
    cause?: unknown,
  ) {
    super(message, { cause });
    this.name = "ToolNotRunError";
    this.state = state;
    this.outcome = outcome;
    this.action = action;
  }
}

/** Evaluates the `needsApproval` that the tool's author set. The adapter requests approval if it returns true. */
export async function evaluateNeedsApproval(ownNeedsApproval: unknown, ...given: unknown[]): Promise<boolean> {
  return Boolean(
    typeof ownNeedsApproval === "function"
      ? await (ownNeedsApproval as (...all: unknown[]) => unknown)(...given)
      : ownNeedsApproval,
  );
}

/**
 * Creates the functions with which an adapter requests decisions on tool calls and runs the tools.
 * @param more names of the options that only this adapter has
 */
export function createGate(options: GateOptions, more: Readonly<Record<string, true>> = {}) {
  refuseUnknownOptions("the adapter", options, { ...OPTIONS, ...more });
  if (typeof options.tool !== "string" && typeof options.tool !== "function")
    throw new TypeError("the adapter needs the option `tool`, which policies match");
  const assent = options.assent ?? createAssent();

  async function requestOf({ name, args, signal }: FrameworkCall) {
    const { tool, operation } =
      typeof options.tool === "function" ? options.tool(name) : { tool: options.tool, operation: name };
    return {
      agent_id: options.agent ?? (await assent.agent({ signal })),
      tool,
      operation,
      params: copyJsonObject(args),
      context: copyJsonObject(options.context),
    };
  }

  /**
   * Starts the action and returns the arguments to run with. Throws ToolNotRunError if the tool must not run, or the
   * reason of an aborted signal.
   * @param runs whether the gate runs the tool: with the returned arguments, which an approver may have changed, and with
   *   an inspection of the output
   */
  async function start(call: FrameworkCall, runs = false): Promise<{ action: ActionRecord; params: Json }> {
    try {
      const request = await requestOf(call);
      const { state, action, outcome, message } = await submitAndStart(assent, request, {
        meta: copyJsonObject(call.meta, "meta"),
        approvalTimeout: options.approvalTimeout ?? call.approvalTimeout,
        appliesEdits: runs,
        inspects: runs,
        signal: call.signal,
      });
      // Run with the parameters that an approver changed, not with the proposed parameters.
      const params = action.proposed == null ? request.params : action.params;
      if (state === "started") return { action, params: structuredClone(params) };
      if (state === "pending") options.onPending?.(action);
      throw new ToolNotRunError(state, message, { action, outcome });
    } catch (error) {
      if (error instanceof ToolNotRunError) throw error;
      call.signal?.throwIfAborted();
      const reason =
        error instanceof AssentError ? `the approval service gave no usable response (${error.code})` : String(error);
      throw new ToolNotRunError("unavailable", `Not run: ${reason}. It was not refused; try again later.`, {}, error);
    }
  }

  /**
   * Submits the calls that the model made in one turn as a plan, so that people decide on all of them together. Each
   * call then runs as one action of the plan. If the plan cannot be submitted, each call is submitted separately when
   * it runs.
   * @param idempotencyKey a key that stays the same for these calls whenever the run is resumed
   */
  async function plan(calls: readonly FrameworkCall[], idempotencyKey: string): Promise<void> {
    const [first] = calls;
    try {
      const requests = await Promise.all(calls.map(requestOf));
      const meta = copyJsonObject(first?.meta, "meta");
      await assent.submitPlan(requests, { meta, idempotencyKey, signal: first?.signal });
    } catch {
      first?.signal?.throwIfAborted();
    }
  }

  return {
    assent,
    plan,
    start,
    /**
     * Resolves to true if the call requires approval. False does not permit the call: `run` requests a decision again.
     */
    async needsApproval(call: FrameworkCall): Promise<boolean> {
      try {
        const action = await assent.submit(await requestOf(call), {
          join: true,
          meta: copyJsonObject(call.meta, "meta"),
          signal: call.signal,
        });
        if (action.status !== "pending_approval") return false;
        options.onPending?.(action);
        return true;
      } catch {
        // Return false: `run` fails in the same way, with a message for the model.
        return false;
      }
    },
    /**
     * Cancels the action of a call that the framework's user denied. Finds it by the call's `meta`, so that an action of
     * another call with the same request stays pending. Returns the cancelled action; null if none is pending.
     */
    async cancel(call: FrameworkCall, reason?: string): Promise<ActionRecord | null> {
      const { agent_id, tool, operation } = await requestOf(call);
      const meta = JSON.stringify(copyJsonObject(call.meta, "meta"));
      for await (const action of assent.actions({ agent_id, tool, operation, status: "pending_approval" }))
        if (JSON.stringify(action.meta) === meta) return assent.cancel(action.id, { reason });
      return null;
    },
    /**
     * Starts the action, calls `run` and reports the result. Throws ToolNotRunError if the tool did not run, or the
     * error of `run`.
     */
    async run<T>(call: FrameworkCall, run: (params: Json) => T | Promise<T>): Promise<T> {
      const { action, params } = await start(call, true);
      const usage = options.usage && ((value: T) => options.usage?.(value, call.name) ?? {});
      return await runStarted(assent, action, { usage }, () => run(params));
    },
  };
}
