/**
 * Requests a decision on a call and waits for approval. A call runs only after the service has confirmed the start
 * while the client is still connected. Every other outcome is a refusal.
 */
import type { Action } from "../../typescript/api.ts";
import {
  AssentError,
  newAttempt,
  openQuestion,
  RequestRefused,
  type ActionRecord,
  type Assent,
  type Inspection,
} from "../../typescript/index.ts";
import { clipText } from "../../../src/domain/text.ts";
import type { Caller } from "../clients/caller.ts";
import { AUTHORITY_KEY } from "./call-meta.ts";
import { markText } from "./mark.ts";
import { isObject, type JsonObject } from "../transport/rpc-message.ts";
import {
  callRefusal,
  proxyRefusal,
  serverDisconnectedRefusal,
  serviceErrorRefusal,
  type ToolRefusal,
} from "./refusal-result.ts";
import type { Upstream } from "../upstreams/upstream.ts";

export interface ToolCall {
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  meta: JsonObject;
  /** The authority that the client names. Undefined if it names none. */
  authority?: unknown;
  /** Whether the caller can send the arguments that an approver changed. */
  appliesEdits?: boolean;
}

type CallDecision =
  | {
      mayRun: true;
      id: string;
      /** The credential that the service issued at the start of the action; null if no issuer covers the action. */
      secret: JsonObject | null;
      /** The parameters after an approver or obligations changed them; null if they were not changed. */
      editedParams: JsonObject | null;
      /**
       * Lets the service inspect the output before the client gets it; null if no rule applies. Rejects with AssentError
       * if there is no verdict.
       */
      inspect: ((output: JsonObject) => Promise<Inspection>) | null;
      report(success: boolean, error?: string): void;
    }
  | { mayRun: false; refusal: ToolRefusal };

/**
 * Checks, immediately before the start, that the call still matches the decision. Resolves to null if it does,
 * otherwise to a refusal. `needsApproval` is true if the action required approval.
 */
export type RecheckCall = (needsApproval: boolean) => Promise<ToolRefusal | null>;

interface DecideOptions {
  recheck?: RecheckCall | undefined;
  /** The server of the call. If it disconnects, the call cannot run any more and does not wait for approval. */
  server?: Pick<Upstream, "config" | "whenClosed">;
}

interface CallGateOptions {
  assent: Assent;
  /** Resolves to the agent id with which calls are submitted. @throws AssentError */
  agentId(): Promise<string>;
  /** The authority of all calls. Default: each call may name one. */
  authority?: string | null;
  /** Returns the approval timeout of this client's calls in seconds. */
  maxWait(client: JsonObject): number;
  /** Interval between progress notifications. Milliseconds. */
  progressIntervalMs?: number;
  /** Returns the address of an action's approval page; null if there is none. */
  approvalPage: ((id: string) => string) | null;
  log(line: string): void;
}

/** Maximum number of submissions of a call. A call is submitted again if another call has started its action first. */
const MAX_SUBMISSIONS = 4;
const PROGRESS_INTERVAL_MS = 10_000;
const MAX_SHOWN_PAGES = 10_000;

export class CallGate {
  private readonly options: CallGateOptions;
  private readonly progressIntervalMs: number;
  /** Ids of actions whose approval page was shown, so that a repeated call does not show the page again. */
  private readonly shownPages = new Set<string>();

  constructor(options: CallGateOptions) {
    this.options = options;
    this.progressIntervalMs = this.options.progressIntervalMs ?? PROGRESS_INTERVAL_MS;
  }

  /** Answers an approver's question about a pending action. @throws AssentError */
  answer(id: string, text: string, signal: AbortSignal): Promise<Action> {
    return this.options.assent.answer(id, text, { signal });
  }

  /** Describes what the agent may do. @throws AssentError */
  async authority(
    query: { tool?: string; operation?: string },
    signal: AbortSignal,
  ): Promise<Record<string, unknown> & { text: string }> {
    return this.options.assent.authority({ agent_id: await this.options.agentId(), ...query }, { signal });
  }

  /** Proposes a rule for the agent. The model chooses `terms`, so only members of a rule are copied. @throws AssentError */
  async propose({ tool, operation, most, reason }: JsonObject, signal: AbortSignal): Promise<unknown> {
    const agent_id = await this.options.agentId();
    return this.options.assent.proposeRule({ tool, operation, most, reason, agent_id }, { signal });
  }

  /**
   * Resolves to true if the policies deny the tool with any arguments. If the service does not respond, resolves to
   * false. This is safe, because each call still requires a decision before it runs.
   */
  async isNeverAllowed(tool: string, operation: string, signal: AbortSignal): Promise<boolean> {
    try {
      const names = { agent_id: await this.options.agentId(), tool, operation, params: {}, context: {} };
      return (
        (await this.options.assent.gate(names, { authority: this.options.authority ?? null, signal })).never_allowed ===
        true
      );
    } catch (error) {
      if (!(error instanceof AssentError)) throw error;
      this.options.log(`the service did not say whether "${operation}" is always denied: ${error.message}`);
      return false;
    }
  }

  /**
   * Submits the call, waits for approval, and starts it.
   * @throws AbortError if the client disconnects, or the server ends, before the call starts. The call has then not run.
   */
  async decide(call: ToolCall, caller: Caller, options: DecideOptions = {}): Promise<CallDecision> {
    const fault = this.authorityFault(call.authority);
    if (fault !== null) return { mayRun: false, refusal: proxyRefusal(fault, "AUTHORITY") };
    const deadline = performance.now() + (caller.maxWait ?? this.options.maxWait(caller.info)) * 1000;
    const { server } = options;
    const ended = new AbortController();
    const end = (): void => ended.abort();
    for (const signal of [caller.signal, server?.whenClosed]) {
      signal?.addEventListener("abort", end);
      if (signal?.aborted === true) end();
    }
    try {
      for (let attempt = 0; attempt < MAX_SUBMISSIONS; attempt++) {
        const decision = await this.submitAndStart(call, caller, deadline, ended.signal, options);
        if (decision !== "started elsewhere") return decision;
      }
    } finally {
      for (const signal of [caller.signal, server?.whenClosed]) signal?.removeEventListener("abort", end);
    }
    return {
      mayRun: false,
      refusal: proxyRefusal(
        "The same call is running several times at once, and each decision covers one run. Call again when the others have finished.",
        "TAKEN",
      ),
    };
  }

  /** Returns why a call must not name this authority; null if it may. */
  private authorityFault(named: unknown): string | null {
    const { authority = null } = this.options;
    if (named === undefined) return null;
    if (typeof named !== "string" || named === "") return `_meta["${AUTHORITY_KEY}"] must be the id of an authority.`;
    // The operator's choice holds: another authority could be wider.
    if (authority === null || authority === named) return null;
    return `The proxy acts under the authority ${authority}, so a call cannot name another one.`;
  }

  /**
   * Waits until the action is decided, an approver asks a question, `deadline` passes, or `signal` aborts. Sends
   * progress to the client.
   */
  private async waitForApproval(
    action: ActionRecord,
    caller: Caller,
    deadline: number,
    signal: AbortSignal,
  ): Promise<ActionRecord> {
    const startedAt = performance.now();
    // A client that supports tasks need not keep its connection open.
    const taskSeconds = caller.continueAsTask?.() ?? null;
    const page = taskSeconds === null ? null : (this.options.approvalPage?.(action.id) ?? null);
    const sendProgress = (): void => {
      const waitedSeconds = Math.round((performance.now() - startedAt) / 1000);
      // MCP requires increasing progress values. Values close to 0 leave room for the server's own progress, which
      // follows.
      caller.sendProgress({
        progress: waitedSeconds / 1e6,
        message: markText(
          `waiting for approval ${action.id} (${waitedSeconds} s)${page === null ? "" : `; approvers decide at ${page}`}`,
        ),
      });
    };
    if (caller.wantsProgress) sendProgress();
    const timer = caller.wantsProgress ? setInterval(sendProgress, this.progressIntervalMs) : undefined;
    try {
      // Do not wait for the client's answer, because an approval can arrive before it or without it.
      const pageShown = taskSeconds === null && this.showApprovalPage(action, caller);
      const timeout = taskSeconds ?? Math.max(0, (deadline - performance.now()) / 1000);
      const decision = await this.options.assent.wait(action.id, { timeout, signal });
      if (pageShown && decision.status !== "pending_approval") {
        this.shownPages.delete(action.id);
        caller.notify("notifications/elicitation/complete", { elicitationId: action.id });
      }
      return decision;
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * Asks the client to open the approval page, if the client supports that. The client's answer only means that the
   * page was opened.
   */
  private showApprovalPage({ id, reason }: ActionRecord, caller: Caller): boolean {
    const { elicitation } = caller.capabilities;
    if (
      this.options.approvalPage === null ||
      !isObject(elicitation) ||
      !isObject(elicitation["url"]) ||
      this.shownPages.has(id)
    )
      return false;
    if (this.shownPages.size >= MAX_SHOWN_PAGES) this.shownPages.clear();
    this.shownPages.add(id);
    const params = {
      mode: "url",
      elicitationId: id,
      url: this.options.approvalPage(id),
      message: markText(`A call waits for approval: ${reason}. The page shows it to its approvers.`),
    };
    caller.askClient({ method: "elicitation/create", params }).catch(() => {});
    return true;
  }

  private async submitAndStart(
    call: ToolCall,
    caller: Caller,
    deadline: number,
    ended: AbortSignal,
    { recheck, server }: DecideOptions,
  ): Promise<CallDecision | "started elsewhere"> {
    const { meta, appliesEdits = false, authority: named, ...request } = call;
    const authority = (named as string | undefined) ?? this.options.authority ?? null;
    let id: string | null = null;
    let action: ActionRecord;
    try {
      const agent = await this.options.agentId();
      action = await this.options.assent.submit(
        { agent_id: agent, ...request },
        { join: true, meta, authority, signal: ended },
      );
      id = action.id;
      const needsApproval = action.status === "pending_approval";
      if (needsApproval && openQuestion(action) === null)
        action = await this.waitForApproval(action, caller, deadline, ended);
      // An action that was already started belongs to another call, because each action runs only once.
      if (["executing", "unknown", "succeeded", "failed"].includes(action.status)) return "started elsewhere";
      if ((action.status !== "allowed" && action.status !== "approved") || (action.proposed != null && !appliesEdits))
        return { mayRun: false, refusal: callRefusal(action) };
      await caller.whenAttached();
      // Also recheck an action that was approved earlier, because the tool may have changed since the approval.
      const refusal = await recheck?.(needsApproval || action.status === "approved");
      if (refusal != null) return { mayRun: false, refusal };
      caller.signal.throwIfAborted();
    } catch (error) {
      if (!caller.signal.aborted && server?.whenClosed.aborted === true)
        return {
          mayRun: false,
          refusal: serverDisconnectedRefusal(server.config.name, "disconnected while the call waited"),
        };
      if (caller.signal.aborted)
        this.options.log(
          `the client${id === null ? "" : ` that waited for action ${id}`} disconnected; the call does not run`,
        );
      if (!(error instanceof AssentError)) throw error;
      return { mayRun: false, refusal: serviceErrorRefusal(error, id) };
    }
    const attempt = newAttempt();
    let secret: JsonObject | null;
    let inspects: boolean;
    try {
      // Do not pass the caller's signal, because the proxy must learn whether the start was recorded.
      const edited = action.proposed == null ? {} : { requestHash: action.request_hash ?? undefined };
      const how = { permit: action.permit ?? undefined, attempt, inspects: true, ...edited };
      const started = await this.options.assent.start(id, how);
      secret = (started.credential?.secret as JsonObject | undefined) ?? null;
      inspects = started.inspect === true || action.inspect === true;
    } catch (error) {
      if (!(error instanceof AssentError)) throw error;
      if (error instanceof RequestRefused && RETRYABLE_START_ERRORS.has(error.code)) return "started elsewhere";
      // The start may have been recorded even though its response was lost, so report that the call did not run. If
      // another call started the action, the attempt differs, and the report has no effect.
      if (!(error instanceof RequestRefused))
        this.report(id, attempt, false, "the start was not confirmed, so the call did not run");
      return { mayRun: false, refusal: serviceErrorRefusal(error, id) };
    }
    const started = id;
    if (caller.signal.aborted) {
      this.report(started, attempt, false, "the client disconnected before the call ran");
      caller.signal.throwIfAborted();
    }
    const editedParams = action.proposed == null ? null : (action.params as JsonObject);
    const startedAt = performance.now();
    return {
      mayRun: true,
      id: started,
      editedParams,
      secret,
      inspect: inspects ? (output) => this.options.assent.inspect(started, output) : null,
      report: (success, error) => this.report(started, attempt, success, error, performance.now() - startedAt),
    };
  }

  /** Sends the report in the background. Logs a failure, which does not change what has run. */
  private report(id: string, attempt: string, success: boolean, error?: string, ranMs?: number): void {
    // Limits can sum the duration.
    const usage = ranMs === undefined ? {} : { usage: { seconds: Math.round(ranMs) / 1000 } };
    this.options.assent
      .result(id, { success, attempt, ...usage, ...(error === undefined ? {} : { error: clipText(error, 9_999) }) })
      .catch((failure: unknown) =>
        this.options.log(
          `the result of action ${id} could not be reported: ${failure instanceof Error ? failure.message : String(failure)}`,
        ),
      );
  }
}

/**
 * If a start fails with one of these errors, the same call is submitted again, because its action has changed since the
 * decision.
 */
const RETRYABLE_START_ERRORS = new Set([
  "ACTION_NOT_STARTABLE",
  "NO_LONGER_ALLOWED",
  "PERMIT_EXPIRED",
  "APPROVAL_EXPIRED",
]);
