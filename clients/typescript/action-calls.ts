/** The client's methods that submit an action, wait for it, start it and report its result. */
import { RequestRefused, ServiceUnavailable, timeoutError, unreadableResponse } from "./client-errors.ts";
import { openQuestion } from "./open-question.ts";
import { equalJson } from "./copy-json.ts";
import { createTimeout, pause, computeBackoff } from "./transport.ts";
import type { ApiCalls } from "./api-calls.ts";
import type {
  ActionPage,
  ActionQuery,
  ActionRecord,
  ActionRequest,
  ActionResult,
  CallOptions,
  Inspection,
  InspectOptions,
  StartOptions,
  SubmitOptions,
  VoteOptions,
  WaitOptions,
} from "./action-types.ts";

/**
 * Maximum number of seconds that one request waits. Short, because proxies close connections that are idle for a
 * minute.
 */
const LONGEST_WAIT = 30;

/** Seconds after the end of a wait in which the service's response may still arrive. */
const GRACE_SECONDS = 5;

/** Retry period of a start without a response, in seconds. A later start is of little use to the caller. */
const START_AGAIN = 20;

/** Maximum number of actions for which a client remembers the members of outputs to keep. */
const MAX_KEPT = 1000;

/** Returns the methods that submit actions and read their decisions. */
export function submissionCalls({ call, record, listOf, sessionHeader, authorityMember }: ApiCalls) {
  return {
    /**
     * Submits an action. Retries only a call with `join` or `idempotencyKey`, because another retry could create a
     * second action. Throws ServiceUnavailable if the response is about a different request, because an intermediary
     * can mix up responses.
     */
    async submit({ agent_id, tool, operation, params, context }: ActionRequest, options: SubmitOptions = {}) {
      const { join, meta, wait, permit, idempotencyKey, signal } = options;
      const prefer = [...(wait === undefined ? [] : [`wait=${wait}`]), ...(permit === true ? ["permit"] : [])];
      const named = authorityMember(options.authority);
      const body = { agent_id, tool, operation, params, context, meta, ...named };
      const { params: ran = {}, context: why = {}, ...whom } = JSON.parse(JSON.stringify(body)) as ActionRequest;
      const action = await record(null, "POST", "", {
        query: { join: join === true ? "open" : undefined },
        body,
        headers: {
          ...(prefer.length === 0 ? {} : { prefer: prefer.join(", ") }),
          ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
          ...(await sessionHeader(signal)),
        },
        wait,
        signal,
        repeatable: join === true || idempotencyKey !== undefined,
      });
      // Compare with the proposed parameters, because an approver may have changed the parameters of the joined action.
      const { params: asked } = action.proposed ?? action;
      const { agent_id: agent, tool: of, operation: what, chain } = action;
      const answered = [agent, of, what, asked, action.context, chain?.authority ?? null];
      if (equalJson([whom.agent_id, whom.tool, whom.operation, ran, why, named.authority ?? null], answered))
        return action;
      throw unreadableResponse(200, `${action.id} is not the requested action`);
    },
    /**
     * Returns the decision that a request would get. Records nothing. The response does not permit running the action.
     */
    gate: async (
      { agent_id, tool, operation, params, context }: ActionRequest,
      { signal, authority }: CallOptions & Pick<SubmitOptions, "authority"> = {},
    ) =>
      call<{
        is_permission: false;
        outcome: "EXECUTE" | "ABSTAIN" | "HALT";
        /**
         * Null if the rules allow the action but an enforced limit applies, because a preview counts nothing; or if
         * obligations change the request.
         */
        decision: ActionRecord["decision"] | null;
        reason: string;
        never_allowed?: boolean;
      }>(
        "POST",
        "/v1/gate/decide",
        { agent_id, tool, operation, params, context, ...authorityMember(authority) },
        { signal, repeatable: true, headers: await sessionHeader(signal) },
      ),
    /** Describes what the agent of the key may do. `text` is the description for a model. */
    authority: (query: { agent_id?: string; tool?: string; operation?: string } = {}, { signal }: CallOptions = {}) =>
      call<Record<string, unknown> & { text: string }>("GET", "/v1/authority", undefined, { query, signal }),
    /** Proposes a rule, which only a person can write. */
    proposeRule: (terms: Record<string, unknown>, { signal }: CallOptions = {}) =>
      call<Record<string, unknown>>("POST", "/v1/authority/proposals", terms, { signal, repeatable: true }),
    /** Yields all matching actions, newest first. Reads pages as needed. */
    actions: (query: ActionQuery = {}, options?: CallOptions) => listOf("/v1/actions", query, options),
    /** Returns one page of actions, newest first. */
    actionsPage: (query: ActionQuery = {}, { signal }: CallOptions = {}) =>
      call<ActionPage>("GET", "/v1/actions", undefined, { query, signal }),
  };
}

/** Returns the methods that wait for an action, start it and report its result. */
export function executionCalls({ call, record, action, transport }: ApiCalls) {
  /** Members of outputs that histories keep, by action, until the result is reported. */
  const kept = new Map<string, Record<string, unknown>>();
  return {
    action,
    /**
     * Waits until the action is no longer pending, or an approver asks the agent a question. Continues to wait while
     * the service is unavailable.
     */
    async wait(id: string, { timeout = Infinity, signal }: WaitOptions = {}): Promise<ActionRecord> {
      const end = performance.now() + timeout * 1000;
      const limit = createTimeout(timeout + GRACE_SECONDS, [transport.signal, signal]);
      try {
        for (let failures = 0; ;) {
          const begun = performance.now();
          const left = Math.max(0, (end - begun) / 1000);
          try {
            const now = await action(id, { wait: Math.min(LONGEST_WAIT, Math.ceil(left)), signal: limit.signal });
            if (now.status !== "pending_approval" || openQuestion(now) !== null || performance.now() >= end) return now;
            failures = 0;
            // Pause if the service responds at once with a pending action, because it then does not support waiting.
            if (performance.now() - begun < 1000) await pause(Math.min(left, 1), [limit.signal]);
          } catch (error) {
            if (!(error instanceof ServiceUnavailable) || performance.now() >= end) throw error;
            await pause(Math.min(left, computeBackoff(++failures, error.retryAfter)), [limit.signal]);
          }
        }
      } catch (error) {
        if (!limit.isOver()) throw error;
        throw timeoutError(`there was no response about ${id} within ${timeout} seconds`);
      } finally {
        limit.end();
      }
    },
    /** Requests a permit. The service first evaluates the action again with the current policies. */
    permit: (id: string, { signal }: CallOptions = {}) =>
      record(id, "POST", "/permit", { body: {}, signal, repeatable: true }),
    /**
     * Starts the action, so that no other caller can run it. Retries if the response is missing. A caller that gets no
     * response must not run the action.
     */
    async start(
      id: string,
      { permit, attempt = newAttempt(), requestHash, inspects, signal }: StartOptions = {},
    ): Promise<ActionRecord> {
      const started = await record(id, "POST", "/start", {
        body: { permit, attempt, request_hash: requestHash, inspects },
        signal,
        repeatable: true,
        repeatFor: START_AGAIN,
      });
      if (started.status !== "executing")
        throw unreadableResponse(200, `${id} is ${started.status} after it was started`);
      return started;
    },
    /**
     * Lets the service inspect the output of a started action, if the action's record has `inspect`. Pass on only what
     * the response says. If this throws AssentError, there is no verdict: pass nothing on.
     */
    async inspect(id: string, output: unknown, { mediaType, signal }: InspectOptions = {}): Promise<Inspection> {
      const body = { output, ...(mediaType === undefined ? {} : { media_type: mediaType }) };
      const path = `/v1/actions/${encodeURIComponent(id)}/inspect`;
      const inspection = await call<Inspection>("POST", path, body, { signal, repeatable: true });
      const { verdict } = (inspection ?? {}) as Partial<Inspection>;
      const isComplete = verdict === "redact" ? "output" in inspection : verdict === "allow" || verdict === "withhold";
      if (!isComplete) throw unreadableResponse(200, "it has no verdict");
      if (inspection.kept !== undefined) kept.set(id, { ...kept.get(id), ...inspection.kept });
      if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value ?? "");
      return inspection;
    },
    /**
     * Reports the result. Adds the `kept` members that `inspect` returned to `meta`. Retries if the response is missing;
     * the service stores the first result.
     */
    async result(id: string, { success, error, meta, usage, attempt }: ActionResult, { signal }: CallOptions = {}) {
      const reported = kept.has(id) ? { ...kept.get(id), ...meta } : meta;
      kept.delete(id);
      const details = { body: { success, error, meta: reported, usage, attempt }, signal, repeatable: true };
      try {
        return await record(id, "POST", "/result", details);
      } catch (failure) {
        if (!(failure instanceof RequestRefused) || failure.code !== "ACTION_NOT_STARTED") throw failure;
        const now = await action(id, { signal });
        if (now.status !== (success ? "succeeded" : "failed")) throw failure;
        return now;
      }
    },
    cancel: (id: string, { reason, signal }: VoteOptions = {}) =>
      record(id, "POST", "/cancel", { body: { reason }, signal }),
  };
}

/**
 * Returns an id for a start: 128 random bits in hex.
 * @example
 * const attempt = newAttempt();
 * await assent.start(action.id, { attempt });
 */
export function newAttempt(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
