/** What every adapter stands on: a tool call of a framework, as a request of the service. */
import { runAdmitted } from "../client/govern.ts";
import {
  admit,
  AssentError,
  createAssent,
  type ActionRecord,
  type Assent,
  type RefusalOutcome,
} from "../client/index.ts";
import { refuseUnknownOptions } from "../client/options.ts";
import { snapshotObject } from "../client/snapshot.ts";

type Json = Record<string, unknown>;

export interface GateOptions {
  /**
   * What policies call the tool that a call uses: one name for all, and the call's own name is the operation; or both, for
   * each call.
   */
  tool: string | ((name: string) => { tool: string; operation: string });
  /** Default: the agent that the API key is bound to. */
  agent?: string | undefined;
  /** Default: `createAssent()`. */
  assent?: Assent | undefined;
  /** Why and for whom. Part of what is asked, and so the same when a call is resumed: no session, no run. */
  context?: Json | undefined;
  /** Seconds that a call holds while somebody decides. Default 0, where the framework can wait by itself, else 30. */
  approvalTimeout?: number | undefined;
  /** Told of each call that waits for a person: `assent.wait(action.id)` says when to resume. */
  onPending?: ((action: ActionRecord) => void) | undefined;
}

const OPTIONS: Readonly<Record<keyof GateOptions, true>> = {
  tool: true,
  agent: true,
  assent: true,
  context: true,
  approvalTimeout: true,
  onPending: true,
};

/** A call of the framework. Run, thread and call id are kept beside the request, and are no part of it. */
export interface Call {
  name: string;
  args: unknown;
  meta?: Json | undefined;
  signal?: AbortSignal | undefined;
  approvalTimeout?: number | undefined;
}

/** The tool did not run. Its message is for the model: why, and whether to come back. */
export class NotRun extends Error {
  readonly state: "pending" | "refused" | "unavailable";
  /** Which refusal it is; null unless `state` is "refused". */
  readonly outcome: RefusalOutcome | null;
  readonly action: ActionRecord | null;
  constructor(
    state: NotRun["state"],
    message: string,
    { action = null, outcome = null }: { action?: ActionRecord | null; outcome?: RefusalOutcome | null } = {},
    cause?: unknown,
  ) {
    super(message, { cause });
    this.name = "NotRun";
    this.state = state;
    this.outcome = outcome;
    this.action = action;
  }
}

/** What a tool's own `needsApproval` says: the application's wish to ask its user is no less for the gate. */
export async function evaluateNeedsApproval(own: unknown, ...given: unknown[]): Promise<boolean> {
  return Boolean(typeof own === "function" ? await (own as (...all: unknown[]) => unknown)(...given) : own);
}

export type Gate = ReturnType<typeof createGate>;

/** @param more options of the adapter's own */
export function createGate(options: GateOptions, more: Readonly<Record<string, true>> = {}) {
  refuseUnknownOptions("the adapter", options, { ...OPTIONS, ...more });
  if (typeof options.tool !== "string" && typeof options.tool !== "function")
    throw new TypeError("the adapter needs a tool: policies know the tools by it");
  const assent = options.assent ?? createAssent();

  async function requestOf({ name, args, signal }: Call) {
    const { tool, operation } =
      typeof options.tool === "function" ? options.tool(name) : { tool: options.tool, operation: name };
    return {
      agent_id: options.agent ?? (await assent.agent({ signal })),
      tool,
      operation,
      params: snapshotObject(args),
      context: snapshotObject(options.context),
    };
  }

  /** Starts, and gives the arguments to run with. Throws NotRun for everything else, but the reason of an aborted signal. */
  async function start(call: Call): Promise<{ action: ActionRecord; params: Json }> {
    try {
      const request = await requestOf(call);
      const { state, action, outcome, message } = await admit(assent, request, {
        meta: snapshotObject(call.meta, "meta"),
        approvalTimeout: options.approvalTimeout ?? call.approvalTimeout,
        signal: call.signal,
      });
      if (state === "started") return { action, params: structuredClone(request.params) };
      if (state === "pending") options.onPending?.(action);
      throw new NotRun(state, message, { action, outcome });
    } catch (error) {
      if (error instanceof NotRun) throw error;
      call.signal?.throwIfAborted();
      const why =
        error instanceof AssentError ? `the approval service said nothing usable (${error.code})` : String(error);
      throw new NotRun("unavailable", `Not run: ${why}. It was not refused; try again later.`, {}, error);
    }
  }

  return {
    assent,
    start,
    /** Whether the call would have to wait for a person. Never a reason to run it: `run` asks again. */
    async needsApproval(call: Call): Promise<boolean> {
      try {
        const action = await assent.submit(await requestOf(call), {
          join: true,
          meta: snapshotObject(call.meta, "meta"),
          signal: call.signal,
        });
        if (action.status !== "pending_approval") return false;
        options.onPending?.(action);
        return true;
      } catch {
        // To run it will fail in the same way, with words for the model.
        return false;
      }
    },
    /** Runs behind a start, and reports how it went. Throws NotRun, and what `run` throws. */
    async run<T>(call: Call, run: (params: Json) => T | Promise<T>): Promise<T> {
      const { action, params } = await start(call);
      return await runAdmitted(assent, action, {}, () => run(params));
    },
  };
}
