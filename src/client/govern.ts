/** A function that runs only when it may. */
import { admit, type Admission } from "./admit.ts";
import { createAssent, type Assent } from "./client.ts";
import { refuseUnknownOptions } from "./options.ts";
import type { RefusalOutcome } from "./refusal.ts";
import { snapshotObject } from "./snapshot.ts";
import type { ActionRecord, ActionResult } from "./types.ts";

/** The action may not run. Its message says why and what to do next. */
export class ActionRefused extends Error {
  readonly action: ActionRecord;
  /** `denied` by policy, `rejected` by a person, `stopped`, `expired`, `cancelled`, or `taken` by another call. */
  readonly outcome: RefusalOutcome;
  constructor(action: ActionRecord, outcome: RefusalOutcome, message: string) {
    super(message);
    this.name = "ActionRefused";
    this.action = action;
    this.outcome = outcome;
  }
}

/** The action waits for longer than its caller. Nothing has run. */
export class Pending<T> {
  readonly action: ActionRecord;
  /** In words for a model: not refused, come back with the same arguments. */
  readonly message: string;
  /** Seconds before it is worth asking again. */
  readonly retryAfter = 5;
  /**
   * Asks for the same again, and runs it once it may. A call of the governed function with the same arguments and context
   * does the same, in another process and after a restart too.
   */
  readonly resume: (how?: GovernedCallOptions) => Promise<T | Pending<T>>;

  constructor({ action, message }: Admission, resume: Pending<T>["resume"]) {
    this.action = action;
    this.message = message;
    this.resume = resume;
  }
}

type Json = Record<string, unknown>;

/** Of one call. */
export interface GovernedCallOptions {
  /** Seconds to wait for an approval before the call gives Pending. */
  approvalTimeout?: number | undefined;
  /** Kept and shown beside the request: session, tool call. */
  meta?: Json | undefined;
  signal?: AbortSignal | undefined;
}

export interface GovernOptions<P, T> extends GovernedCallOptions {
  tool: string;
  operation: string;
  /** Default: the agent that the API key is bound to. */
  agent?: string | undefined;
  /** Why and for whom. Part of what is asked: calls that should be one need the same. */
  context?: Json | ((params: P) => Json) | undefined;
  /** Default: `createAssent()`. */
  assent?: Assent | undefined;
  /** What to record of a result: ids, amounts. Default: nothing. */
  record?: ((value: T) => Json) | undefined;
  /** Told when it has run and the service could not be told how it went. Default: a warning on the console. */
  onUnreported?: ((error: unknown, action: ActionRecord) => void) | undefined;
}

const OPTIONS: Readonly<Record<keyof GovernOptions<never, never>, true>> = {
  tool: true,
  operation: true,
  agent: true,
  context: true,
  assent: true,
  record: true,
  onUnreported: true,
  approvalTimeout: true,
  meta: true,
  signal: true,
};

export interface RunContext {
  action: ActionRecord;
  signal: AbortSignal | undefined;
}

/**
 * Wraps `run`: each call asks the service, waits for an approval for `approvalTimeout` seconds, starts, and only then runs, with
 * a copy of the arguments as they were when it asked; then reports how it went. Gives what `run` gives, or Pending.
 * Throws ActionRefused when it may not run, AssentError when the service cannot say, TypeError for arguments that JSON
 * cannot hold and for a generator in place of a value, the reason of an aborted signal, and what `run` throws. In all cases
 * but the last nothing has run.
 */
export function govern<P extends object, T>(
  run: (params: P, how: RunContext) => T | Promise<T>,
  options: GovernOptions<P, T>,
): (params: P, how?: GovernedCallOptions) => Promise<T | Pending<T>> {
  refuseUnknownOptions("govern", options, OPTIONS);
  if (typeof options.tool !== "string" || typeof options.operation !== "string")
    throw new TypeError("govern needs a tool and an operation: policies know the function by them");
  let shared: Assent | undefined;
  return async function governed(given, how = {}) {
    const assent = options.assent ?? (shared ??= createAssent());
    const params = snapshotObject(given);
    const { context } = options;
    const request = {
      agent_id: options.agent ?? (await assent.agent({ signal: how.signal ?? options.signal })),
      tool: options.tool,
      operation: options.operation,
      params,
      context: snapshotObject(typeof context === "function" ? context(copyOf<P>(params)) : context, "the context"),
    };
    const call = async (again: GovernedCallOptions): Promise<T | Pending<T>> => {
      const signal = again.signal ?? options.signal;
      const admission = await admit(assent, request, {
        meta: snapshotObject({ ...options.meta, ...again.meta }, "meta"),
        approvalTimeout: again.approvalTimeout ?? options.approvalTimeout,
        signal,
      });
      if (admission.state === "pending") return new Pending<T>(admission, (later = {}) => call({ ...again, ...later }));
      const { action, outcome, message } = admission;
      if (outcome !== null) throw new ActionRefused(action, outcome, message);
      return await runAdmitted(assent, admission.action, options, () =>
        run(copyOf<P>(params), { action: admission.action, signal }),
      );
    };
    return await call(how);
  };
}

/** Nobody else has what it gives. */
const copyOf = <P>(params: Json): P => structuredClone(params) as P;

/** Runs what was started, and reports it. */
export async function runAdmitted<T>(
  assent: Assent,
  action: ActionRecord,
  { record, onUnreported }: Pick<GovernOptions<never, T>, "record" | "onUnreported">,
  run: () => T | Promise<T>,
): Promise<T> {
  const unreported = (error: unknown): void => (onUnreported ?? warn)(error, action);
  const report = (result: ActionResult): Promise<unknown> => assent.result(action.id, result).catch(unreported);
  let value: T;
  try {
    value = await run();
    // Its body would run later, in parts or never, after it was reported as done.
    if (/^\[object (?:Async)?Generator\]$/.test(Object.prototype.toString.call(value)))
      throw new TypeError("not run: it gave a generator; govern what takes its values, too");
  } catch (error) {
    await report({ success: false, error: errorText(error) });
    throw error;
  }
  let meta: Json | undefined;
  try {
    meta = record?.(value);
  } catch (error) {
    unreported(error);
  }
  await report({ success: true, ...(meta === undefined ? {} : { meta }) });
  return value;
}

/** At most 10,000 characters, without halves of surrogate pairs: the service refuses both. */
export function errorText(error: unknown): string {
  let text = "it threw what has no text";
  try {
    text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    // An object without a prototype, or one that throws again: it must not hide what is reported.
  }
  return new TextDecoder().decode(new TextEncoder().encode(text.slice(0, 9000)));
}

function warn(error: unknown, { id, tool, operation }: ActionRecord): void {
  // eslint-disable-next-line no-console -- a library has no log, and silence would hide an action that hangs
  console.warn(`assent: ${tool} ${operation} has run, and its result could not be reported [action ${id}]`, error);
}
