/** Wraps a function so that it runs only after a decision permits it. */
import { submitAndStart, type StartOutcome } from "./submit-and-start.ts";
import { createAssent, type Assent } from "./client.ts";
import { describeValue, refuseUnknownOptions } from "./unknown-options.ts";
import { toSingleLine, type RefusalOutcome } from "./refusal.ts";
import { AssentError } from "./client-errors.ts";
import { copyJson, copyJsonObject } from "./copy-json.ts";
import type { ActionRecord, ActionResult } from "./action-types.ts";

/** Thrown when the action must not run. The message states why and what to do next. */
export class ActionRefused extends Error {
  readonly action: ActionRecord;
  /** Kind of refusal, such as `denied` by policy or `rejected` by a person. See `RefusalOutcome`. */
  readonly outcome: RefusalOutcome;
  constructor(action: ActionRecord, outcome: RefusalOutcome, message: string) {
    super(message);
    this.name = "ActionRefused";
    this.action = action;
    this.outcome = outcome;
  }
}

/**
 * Thrown if the function has run, and a rule withholds its output or the service gave no verdict on it. The message is
 * for the model and contains nothing of the output.
 */
export class OutputWithheld extends Error {
  readonly action: ActionRecord;
  constructor(action: ActionRecord, reason: string) {
    super(
      `the call was made, and its output is withheld: ${toSingleLine(reason)} (action ${action.id}). Do not repeat the call to get the output; tell the user`,
    );
    this.name = "OutputWithheld";
    this.action = action;
  }
}

/** Returned if the action still waits for approval. The function has not run. */
export class Pending<T> {
  readonly action: ActionRecord;
  /** Message for a model: the call was not refused, retry it later with the same arguments. */
  readonly message: string;
  /** Seconds to wait before a retry. */
  readonly retryAfter = 5;
  /**
   * Re-submits the request, and runs the function if the action has been approved. Calling the governed function again
   * with the same arguments and context is equivalent, even from another process or after a restart.
   */
  readonly resume: (options?: GovernedCallOptions) => Promise<T | Pending<T>>;

  constructor({ action, message }: StartOutcome, resume: Pending<T>["resume"]) {
    this.action = action;
    this.message = message;
    this.resume = resume;
  }
}

type Json = Record<string, unknown>;

export interface GovernedCallOptions {
  /**
   * Maximum number of seconds to wait for approval before the call returns Pending. Default: 30. The call returns
   * Pending earlier if an approver asks a question.
   */
  approvalTimeout?: number | undefined;
  /** Metadata that is stored and displayed, for example the session and the tool call. */
  meta?: Json | undefined;
  signal?: AbortSignal | undefined;
}

export interface GovernOptions<P, T> extends GovernedCallOptions {
  tool: string;
  operation: string;
  /** Default: the agent that the API key is bound to. */
  agent?: string | undefined;
  /** Purpose and beneficiary of the call. Part of the request, so a repeated call needs the same context. */
  context?: Json | ((params: P) => Json) | undefined;
  /** Default: `createAssent()`. */
  assent?: Assent | undefined;
  /** Returns the members of a result to record, such as ids and amounts. Default: nothing. */
  record?: ((value: T) => Json) | undefined;
  /** Returns the usage of a call, such as `{ cost_usd: 0.02, tokens: 900 }`. Limits count it. Default: none. */
  usage?: ((value: T) => Record<string, number>) | undefined;
  /**
   * Called if the action ran and its result, or its `record` or `usage`, could not be reported. Default: a warning on the
   * console.
   */
  onUnreported?: ((error: unknown, action: ActionRecord) => void) | undefined;
}

const OPTIONS: Readonly<Record<keyof GovernOptions<never, never>, true>> = {
  tool: true,
  operation: true,
  agent: true,
  context: true,
  assent: true,
  record: true,
  usage: true,
  onUnreported: true,
  approvalTimeout: true,
  meta: true,
  signal: true,
};

const CALL_OPTIONS: Readonly<Record<keyof GovernedCallOptions, true>> = {
  approvalTimeout: true,
  meta: true,
  signal: true,
};

export interface RunContext {
  action: ActionRecord;
  signal: AbortSignal | undefined;
}

/**
 * Wraps `run`. Each call submits a request, waits `approvalTimeout` seconds for approval, and starts the action. It
 * then calls `run` with a copy of the arguments that were decided, and reports the result. Returns the result of `run`,
 * or Pending.
 *
 * In these cases, throws without calling `run`:
 *
 * - ActionRefused if the action must not run
 * - AssentError if a request to the service fails
 * - TypeError for arguments that JSON cannot express
 * - the reason of an aborted signal
 *
 * If rules inspect the output, throws OutputWithheld after `run`, or returns a copy of the result, redacted if necessary.
 * An error of `run` with more than a name and a message is then replaced by one with only these.
 *
 * Also throws any error of `run`, and TypeError if `run` returns a generator, whose body has then not run.
 * @example
 * const refund = govern(({ charge, amount }: Refund) => stripe.refund(charge, amount), { tool: "stripe", operation: "refund" });
 * const result = await refund({ charge: "ch_1", amount: 5 });
 */
export function govern<P extends object, T>(
  run: (params: P, context: RunContext) => T | Promise<T>,
  options: GovernOptions<P, T>,
): (params: P, how?: GovernedCallOptions) => Promise<T | Pending<T>> {
  if (typeof run !== "function")
    throw new TypeError(`govern takes the function first and its options second; got ${describeValue(run)} first`);
  refuseUnknownOptions("govern", options, OPTIONS);
  if ([options.tool, options.operation].some((name: unknown) => typeof name !== "string" || name === ""))
    throw new TypeError("govern needs the options `tool` and `operation`, which policies match");
  let shared: Assent | undefined;
  return async function governed(args, how = {}) {
    if (typeof args !== "object" || args === null || Array.isArray(args))
      throw new TypeError(
        `the function for ${options.tool} ${options.operation} takes one object with named parameters, such as { amount: 5 }; got ${describeValue(args)}. Nothing was submitted`,
      );
    refuseUnknownOptions("a governed call", how, CALL_OPTIONS);
    const assent = options.assent ?? (shared ??= createAssent());
    const params = copyJsonObject(args);
    const { context } = options;
    const request = {
      agent_id: options.agent ?? (await assent.agent({ signal: how.signal ?? options.signal })),
      tool: options.tool,
      operation: options.operation,
      params,
      context: copyJsonObject(typeof context === "function" ? context(copyOf<P>(params)) : context, "the context"),
    };
    const call = async (callOptions: GovernedCallOptions): Promise<T | Pending<T>> => {
      const signal = callOptions.signal ?? options.signal;
      const submission = await submitAndStart(assent, request, {
        meta: copyJsonObject({ ...options.meta, ...callOptions.meta }, "meta"),
        approvalTimeout: callOptions.approvalTimeout ?? options.approvalTimeout,
        appliesEdits: true,
        inspects: true,
        signal,
      });
      if (submission.state === "pending")
        return new Pending<T>(submission, (later = {}) => call({ ...callOptions, ...later }));
      const { action, outcome, message } = submission;
      if (outcome !== null) throw new ActionRefused(action, outcome, message);
      // Run with the parameters that an approver changed, not with the proposed parameters.
      const decided = action.proposed == null ? params : action.params;
      return await runStarted(assent, submission.action, options, () =>
        run(copyOf<P>(decided), { action: submission.action, signal }),
      );
    };
    return await call(how);
  };
}

/** Returns a deep copy, so that no other code can modify the arguments. */
const copyOf = <P>(params: Json): P => structuredClone(params) as P;

/** Runs a started action and reports the result. */
export async function runStarted<T>(
  assent: Assent,
  action: ActionRecord,
  { record, usage, onUnreported }: Pick<GovernOptions<never, T>, "record" | "usage" | "onUnreported">,
  run: () => T | Promise<T>,
): Promise<T> {
  const unreported = (error: unknown): void => (onUnreported ?? warn)(error, action);
  const report = (result: ActionResult): Promise<unknown> => assent.result(action.id, result).catch(unreported);
  let value: T;
  try {
    value = await run();
    // Reject generators, because their bodies would run after success was reported.
    if (/^\[object (?:Async)?Generator\]$/.test(Object.prototype.toString.call(value)))
      throw new TypeError("not run: it returned a generator; govern a function that also consumes its values");
  } catch (error) {
    const text = describeError(error);
    const inspected = await inspectOutput(assent, action, text);
    // The agent can read the report.
    const shown =
      "withheld" in inspected ? "the error is withheld" : String(inspected.isCopy ? inspected.output : text);
    await report({ success: false, error: clipError(shown) });
    if ("withheld" in inspected) throw inspected.withheld;
    if (inspected.isCopy && (shown !== text || hasMore(error))) throw new Error(shown);
    throw error;
  }
  const inspected = await inspectOutput(assent, action, value);
  const compute = <Part>(part: ((value: T) => Part) | undefined): Part | undefined => {
    try {
      return part?.(value);
    } catch (error) {
      unreported(error);
      return undefined;
    }
  };
  const [meta, used] = [compute(record), compute(usage && ((result) => assertReportable(usage(result))))];
  await report({
    success: true,
    ...(meta === undefined ? {} : { meta }),
    ...(used === undefined ? {} : { usage: used }),
  });
  if ("withheld" in inspected) throw inspected.withheld;
  return inspected.isCopy ? (inspected.output as T) : value;
}

/** Returns true if a thrown value can contain more than its inspected text, such as a cause or a response. */
function hasMore(error: unknown): boolean {
  if (!(error instanceof Error)) return (typeof error === "object" && error !== null) || typeof error === "function";
  return Object.getOwnPropertyNames(error).some((name) => !["name", "message", "stack"].includes(name));
}

/**
 * Sends the output to the service if its action has `inspect`, and returns the copy that may be passed on. Withholds an
 * output that cannot be inspected: the service failed, or the value is not JSON or too large.
 */
async function inspectOutput(
  assent: Assent,
  action: ActionRecord,
  value: unknown,
): Promise<{ isCopy: boolean; output?: unknown } | { withheld: OutputWithheld }> {
  if (action.inspect !== true) return { isCopy: false };
  try {
    const output = copyJson(value ?? null, "the output");
    const { verdict, output: redacted, reason } = await assent.inspect(action.id, output);
    if (verdict === "withhold") return { withheld: new OutputWithheld(action, reason ?? "a rule withholds it") };
    // The value itself can have members that JSON does not represent, and can change later.
    return { isCopy: true, output: verdict === "redact" ? redacted : value === undefined ? undefined : output };
  } catch (error) {
    const why =
      error instanceof AssentError
        ? `the service gave no verdict (${error.code})`
        : "it is not plain JSON, so it could not be inspected";
    return { withheld: new OutputWithheld(action, why) };
  }
}

/** Returns the usage. Throws TypeError for a usage with which the service would reject the whole result. */
export function assertReportable(usage: Record<string, number>): Record<string, number> {
  if (typeof usage !== "object" || usage === null || "then" in usage)
    throw new TypeError(`usage must return an object such as { cost_usd: 0.02 }; got ${describeValue(usage)}`);
  const entries = Object.entries(usage);
  if (entries.length > 16) throw new TypeError(`usage has ${entries.length} amounts; at most 16 can be reported`);
  for (const [name, amount] of entries) {
    if (!/^[a-z][a-z0-9_]{0,31}$/.test(name))
      throw new TypeError(`usage has the name ${JSON.stringify(name)}; use a name such as cost_usd`);
    if (typeof amount !== "number" || !(amount >= 0 && amount <= 1_000_000_000))
      throw new TypeError(
        `usage.${name} must be a number from 0 to 1,000,000,000; got ${describeValue(amount)}. The result was reported without usage, so the reserves of limits count`,
      );
  }
  return usage;
}

/**
 * Converts an error to a string of at most 9,000 characters without lone surrogates. The service rejects lone
 * surrogates, and more than 10,000 characters.
 */
export const errorText = (error: unknown): string => clipError(describeError(error));

const toWellFormed = (text: string): string => new TextDecoder().decode(new TextEncoder().encode(text));

const clipError = (text: string): string => toWellFormed(text.slice(0, 9000));

function describeError(error: unknown): string {
  try {
    return toWellFormed(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  } catch {
    // Converting the error to a string can throw, which must not prevent the report.
    return "it threw a value that is not readable";
  }
}

function warn(error: unknown, { id, tool, operation }: ActionRecord): void {
  // A library has no log, and without a message no one would notice an action without a result.
  // eslint-disable-next-line no-console
  console.warn(`assent: ${tool} ${operation} has run, and its result could not be reported [action ${id}]`, error);
}
