/**
 * The decision about one call, and the wait for it. A call runs only after the service has said `executing` for it, while
 * the client that made it is still there: every other way out of here is a refusal.
 */
import { AssentError, newAttempt, RequestRefused, type ActionRecord, type Assent } from "../../client/index.ts";
import { clipText } from "../../domain/text.ts";
import type { Caller } from "../clients/caller.ts";
import { isObject, type JsonObject } from "../transport/message.ts";
import { callRefusal, proxyRefusal, serviceErrorRefusal, type Refusal } from "./refusal.ts";

export interface ToolCall {
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  meta: JsonObject;
}

export type CallDecision =
  | { mayRun: true; id: string; report(success: boolean, error?: string): void }
  | { mayRun: false; refusal: Refusal };

/** Why a call cannot be made any more as it was decided; null when it can. `held`: whether a person had to approve it. */
export type Recheck = (held: boolean) => Promise<Refusal | null>;

export interface CallGateOptions {
  assent: Assent;
  /** As whom calls are submitted. @throws AssentError */
  agentId(): Promise<string>;
  /** How long a call of a client is held for an approval. Seconds. */
  maxWait(client: JsonObject): number;
  /** Between two signs of life to a client that wants them. Milliseconds. */
  progressIntervalMs?: number;
  /** Of a page where an action can be approved; null where none is known. */
  approvalPage: ((id: string) => string) | null;
  log(line: string): void;
}

/** An action that somebody else started first is not this call's: it asks again, this often. */
const MAX_SUBMISSIONS = 4;
const PROGRESS_INTERVAL_MS = 10_000;
const MAX_SHOWN_PAGES = 10_000;

export type CallGate = ReturnType<typeof createCallGate>;

export function createCallGate({
  assent,
  agentId,
  maxWait: budget,
  progressIntervalMs: beat = PROGRESS_INTERVAL_MS,
  approvalPage,
  log,
}: CallGateOptions) {
  /** Actions whose page was shown: a call that comes again does not open it again. */
  const shownPages = new Set<string>();

  /** Holds the call until there is a verdict, the budget is spent, or the client is gone. */
  async function waitForApproval(action: ActionRecord, caller: Caller, end: number): Promise<ActionRecord> {
    const begun = performance.now();
    const sign = (): void => {
      const waited = Math.round((performance.now() - begun) / 1000);
      // Progress has to grow, and the server will begin at its own.
      caller.sendProgress({ progress: waited / 1e6, message: `waiting for approval ${action.id} (${waited} s)` });
    };
    if (caller.wantsProgress) sign();
    const timer = caller.wantsProgress ? setInterval(sign, beat) : undefined;
    try {
      // Not waited for: somebody may approve before the client has answered, or without it.
      const invited = showApprovalPage(action, caller);
      const timeout = Math.max(0, (end - performance.now()) / 1000);
      const verdict = await assent.wait(action.id, { timeout, signal: caller.signal });
      if (invited && verdict.status !== "pending_approval") {
        shownPages.delete(action.id);
        caller.notify("notifications/elicitation/complete", { elicitationId: action.id });
      }
      return verdict;
    } finally {
      clearInterval(timer);
    }
  }

  /** Shows the approval's page, where the client says that it can. Its answer means only that the page was opened. */
  function showApprovalPage({ id, reason }: ActionRecord, caller: Caller): boolean {
    const { elicitation } = caller.capabilities;
    if (approvalPage === null || !isObject(elicitation) || !isObject(elicitation["url"]) || shownPages.has(id))
      return false;
    if (shownPages.size >= MAX_SHOWN_PAGES) shownPages.clear();
    shownPages.add(id);
    const params = {
      mode: "url",
      elicitationId: id,
      url: approvalPage(id),
      message: `A call waits for approval: ${reason}. The page shows it to those who may approve it.`,
    };
    caller.askClient({ method: "elicitation/create", params }).catch(() => {});
    return true;
  }

  async function submitAndStart(
    wish: ToolCall,
    caller: Caller,
    end: number,
    stands: Recheck,
  ): Promise<CallDecision | "taken"> {
    const { meta, ...request } = wish;
    let id: string | null = null;
    let action: ActionRecord;
    try {
      const agent = await agentId();
      action = await assent.submit({ agent_id: agent, ...request }, { join: true, meta, signal: caller.signal });
      id = action.id;
      const held = action.status === "pending_approval";
      if (held) action = await waitForApproval(action, caller, end);
      // What is executing already is another call's: an action runs once.
      if (action.status === "executing" || action.status === "succeeded" || action.status === "failed") return "taken";
      if (action.status !== "allowed" && action.status !== "approved")
        return { mayRun: false, refusal: callRefusal(action) };
      await caller.whenAttached();
      // Approved while nobody waited, it may be as old.
      const fallen = await stands(held || action.status === "approved");
      if (fallen !== null) return { mayRun: false, refusal: fallen };
      caller.signal.throwIfAborted();
    } catch (error) {
      if (caller.signal.aborted)
        log(`the client${id === null ? "" : ` that waited for action ${id}`} is gone, and the call is not made`);
      if (!(error instanceof AssentError)) throw error;
      return { mayRun: false, refusal: serviceErrorRefusal(error, id) };
    }
    const attempt = newAttempt();
    try {
      // Without the caller's signal: whether it has begun has to be known.
      await assent.start(id, { permit: action.permit ?? undefined, attempt });
    } catch (error) {
      if (!(error instanceof AssentError)) throw error;
      if (error instanceof RequestRefused && RETRYABLE_START_ERRORS.has(error.code)) return "taken";
      // It may have begun where only the answer is missing. It is not run, and the record is told so; where another call
      // began it, that one's attempt is another.
      if (!(error instanceof RequestRefused))
        report(id, attempt, false, "the start was not confirmed, so nothing was run");
      return { mayRun: false, refusal: serviceErrorRefusal(error, id) };
    }
    const started = id;
    if (caller.signal.aborted) {
      report(started, attempt, false, "the client was gone before the call was made; nothing was run");
      caller.signal.throwIfAborted();
    }
    return { mayRun: true, id: started, report: (success, error) => report(started, attempt, success, error) };
  }

  /** No client waits for it: the tool has run, whatever becomes of the report. */
  function report(id: string, attempt: string, success: boolean, error?: string): void {
    assent
      .result(id, { success, attempt, ...(error === undefined ? {} : { error: clipText(error, 9_999) }) })
      .catch((failure: unknown) =>
        log(
          `the result of action ${id} could not be reported: ${failure instanceof Error ? failure.message : String(failure)}`,
        ),
      );
  }

  return {
    /** Whether policies deny a tool whatever is in the call. What cannot be said is not: then its calls are decided. */
    async isNeverAllowed(tool: string, operation: string, signal: AbortSignal): Promise<boolean> {
      try {
        const names = { agent_id: await agentId(), tool, operation, params: {}, context: {} };
        return (await assent.gate(names, { signal })).never_allowed === true;
      } catch (error) {
        if (!(error instanceof AssentError)) throw error;
        log(`whether "${operation}" is denied cannot be asked: ${error.message}`);
        return false;
      }
    },
    /** @throws the reason of the caller's signal, when it is gone: then nothing was run. */
    async decide(wish: ToolCall, caller: Caller, stands: Recheck = () => Promise.resolve(null)): Promise<CallDecision> {
      const end = performance.now() + (caller.maxWait ?? budget(caller.info)) * 1000;
      for (let attempt = 0; attempt < MAX_SUBMISSIONS; attempt++) {
        const verdict = await submitAndStart(wish, caller, end, stands);
        if (verdict !== "taken") return verdict;
      }
      return {
        mayRun: false,
        refusal: proxyRefusal(
          "The same call is being made many times at once, and each approval or decision is for one. Call again when the others are done.",
          "TAKEN",
        ),
      };
    },
  };
}

/** Refusals of a start that come from a change since it was decided: the same call is asked about again. */
const RETRYABLE_START_ERRORS = new Set([
  "ACTION_NOT_STARTABLE",
  "NO_LONGER_ALLOWED",
  "PERMIT_EXPIRED",
  "APPROVAL_EXPIRED",
]);
