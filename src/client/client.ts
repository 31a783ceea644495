/** A method for each API call. */
import { RequestRefused, ServiceUnavailable, timeoutError, unreadableAnswer } from "./client-errors.ts";
import { refuseUnknownOptions } from "./unknown-options.ts";
import { openQuestion } from "./open-question.ts";
import { equalJson } from "./snapshot.ts";
import { createTransport, deadline, isObject, pause, computeBackoff, type Call } from "./transport.ts";
import { isHttpUrl } from "./url.ts";
import type {
  AnswerOptions,
  ActionPage,
  ActionQuery,
  ActionRecord,
  ActionRequest,
  ActionResult,
  CallOptions,
  EventQuery,
  LedgerEvent,
  PlanQuery,
  PlanRecord,
  PlanSummary,
  PlanVoteOptions,
  StartOptions,
  SubmitPlanOptions,
  SubmitOptions,
  ApproveOptions,
  VoteOptions,
  WaitOptions,
} from "./action-types.ts";

export interface AssentOptions {
  /** Default: ASSENT_URL, or http://127.0.0.1:8000. */
  url?: string | undefined;
  /** Default: ASSENT_API_KEY. Null sends no key. */
  apiKey?: string | null | undefined;
  fetch?: typeof fetch | undefined;
  /** Ends every call of this client. */
  signal?: AbortSignal | undefined;
  /** Seconds for one attempt, in addition to the requested wait. Default 30. */
  timeout?: number | undefined;
  /** Maximum retries of calls that are safe to repeat. Default 5. */
  retries?: number | undefined;
  /**
   * Name of the agent's session. The client requests its token, with a key that has `sessions:issue`, and sends it with
   * each action.
   */
  session?: string | undefined;
  /** Token of the agent's session, if another process requested it. */
  sessionToken?: string | undefined;
  /** Verifier key of the log, read once from GET /v1/provenance/keys. Every proof is verified against it. */
  logKey?: string | undefined;
  /** Called with the new key to pin, if a proof shows that a key signed by `logKey` replaced it. */
  onLogKey?: ((vkey: string) => void) | undefined;
}

const OPTIONS: Readonly<Record<keyof AssentOptions, true>> = {
  url: true,
  apiKey: true,
  fetch: true,
  signal: true,
  timeout: true,
  retries: true,
  session: true,
  sessionToken: true,
  logKey: true,
  onLogKey: true,
};

export type Assent = ReturnType<typeof createAssent>;

/** Seconds of one waiting request. Proxies close connections that are silent for a minute. */
const LONGEST_WAIT = 30;

/** Seconds after a wait in which the service's answer may still arrive. */
const GRACE = 5;

/** Milliseconds after which a session token is requested again. It is valid for a day. */
const SESSION_TOKEN_AGE = 3_600_000;

/** Seconds in which a start without an answer is retried; a later start is of little use to the caller. */
const START_AGAIN = 20;

/** Creates a client for one service and one key. Every call throws AssentError, or the reason of an aborted signal. */
export function createAssent(options: AssentOptions = {}) {
  refuseUnknownOptions("createAssent", options, OPTIONS);
  const url = options.url ?? (environment("ASSENT_URL") || "http://127.0.0.1:8000");
  if (!isHttpUrl(url)) throw new TypeError(`the service's address is an http or https URL, not "${url}"`);
  const transport = createTransport({
    url,
    apiKey: options.apiKey === undefined ? environment("ASSENT_API_KEY") || null : options.apiKey,
    fetch: options.fetch ?? ((...request) => fetch(...request)),
    signal: options.signal,
    timeout: options.timeout ?? 30,
    retries: options.retries ?? 5,
  });

  async function call<T>(method: string, path: string, body?: unknown, details: Call = {}): Promise<T> {
    return (await transport.send(method, path, { ...details, body })).json as T;
  }

  /** Returns the action `id`, or any action if `id` is null. */
  async function record(id: string | null, method: string, verb: string, details: Call): Promise<ActionRecord> {
    const path = id === null ? "" : `/${encodeURIComponent(id)}`;
    const { json } = await transport.send(method, `/v1/actions${path}${verb}`, details);
    if (!isObject(json) || typeof json["id"] !== "string" || typeof json["status"] !== "string")
      throw unreadableAnswer(200, "it is no action");
    if (id !== null && json["id"] !== id) throw unreadableAnswer(200, `it is about ${json["id"]}, not ${id}`);
    return json as unknown as ActionRecord;
  }

  let token = options.sessionToken;
  let tokenFrom = -Infinity;

  /** Returns the header of the agent's session. */
  async function sessionHeader(signal: AbortSignal | undefined): Promise<Record<string, string>> {
    if (options.session !== undefined && performance.now() - tokenFrom > SESSION_TOKEN_AGE) {
      const name = options.session;
      const issued = await call<{ token?: string }>(
        "POST",
        "/v1/agent-sessions",
        { name },
        { signal, repeatable: true },
      );
      if (typeof issued?.token !== "string") throw unreadableAnswer(200, "it has no session token");
      [token, tokenFrom] = [issued.token, performance.now()];
    }
    return token === undefined ? {} : { "assent-session": token };
  }

  let boundTo: string | undefined;

  const action = (id: string, { wait, signal }: CallOptions & { wait?: number | undefined } = {}) =>
    record(id, "GET", "", { query: { wait }, wait, signal });

  /** Returns the caller's approval token. Throws RequestRefused if it gets none. */
  async function readToken(id: string, signal: AbortSignal | undefined): Promise<string> {
    const { approval_token: token, status } = await action(id, { signal });
    if (token !== undefined) return token;
    throw new RequestRefused(
      `this key gets no approval token for ${id}: it is ${status}, or the key may not decide on it, or it has already`,
      { status: 403, code: "NO_TOKEN" },
    );
  }

  /** Votes with the caller's approval token, which it reads first. */
  async function vote(
    id: string,
    approve: boolean,
    { reason, grant, signal }: ApproveOptions = {},
  ): Promise<ActionRecord> {
    const token = await readToken(id, signal);
    return record(id, "POST", "/approval", { body: { token, approve, reason, grant }, signal });
  }

  /** @param name the member of the answer that has the items */
  async function* listOf<Item = ActionRecord>(
    path: string,
    query: { cursor?: string | undefined },
    { signal }: CallOptions = {},
    name = "actions",
  ): AsyncGenerator<Item, void, undefined> {
    for (let cursor = query.cursor; ;) {
      const page = await call<Record<string, unknown> | undefined>("GET", path, undefined, {
        query: { ...query, cursor },
        signal,
      });
      const items = page?.[name];
      if (!Array.isArray(items)) throw unreadableAnswer(200, "it is no list");
      yield* items as Item[];
      if (typeof page?.["next_cursor"] !== "string") return;
      if (page["next_cursor"] === cursor) throw unreadableAnswer(200, "its pages have no end");
      cursor = page["next_cursor"];
    }
  }

  return {
    /** Makes any other API call with JSON. */
    call,
    action,
    vote,
    /**
     * Submits an action. Retries if the answer is missing and the call has `join` or `idempotencyKey`, so that it
     * cannot create two actions. Throws ServiceUnavailable if the answer is about another request, because an
     * intermediary can mix up answers.
     */
    async submit({ agent_id, tool, operation, params, context }: ActionRequest, how: SubmitOptions = {}) {
      const { join, meta, wait, permit, idempotencyKey, signal } = how;
      const prefer = [...(wait === undefined ? [] : [`wait=${wait}`]), ...(permit === true ? ["permit"] : [])];
      const body = { agent_id, tool, operation, params, context, meta };
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
      // An approver may have changed the parameters of the action that this request joins.
      const { params: asked } = action.proposed ?? action;
      const answered = [action.agent_id, action.tool, action.operation, asked, action.context];
      if (equalJson([whom.agent_id, whom.tool, whom.operation, ran, why], answered)) return action;
      throw unreadableAnswer(200, `${action.id} is not the action that was asked for`);
    },
    /**
     * Waits until the action is no longer pending, or an approver asks the agent a question. Continues to wait while the
     * service is unavailable.
     */
    async wait(id: string, { timeout = Infinity, signal }: WaitOptions = {}): Promise<ActionRecord> {
      const end = performance.now() + timeout * 1000;
      const limit = deadline(timeout + GRACE, [options.signal, signal]);
      try {
        for (let failures = 0; ;) {
          const begun = performance.now();
          const left = Math.max(0, (end - begun) / 1000);
          try {
            const now = await action(id, { wait: Math.min(LONGEST_WAIT, Math.ceil(left)), signal: limit.signal });
            if (now.status !== "pending_approval" || openQuestion(now) !== null || performance.now() >= end) return now;
            failures = 0;
            // An immediate answer that is still pending means that the service does not support waiting.
            if (performance.now() - begun < 1000) await pause(Math.min(left, 1), [limit.signal]);
          } catch (error) {
            if (!(error instanceof ServiceUnavailable) || performance.now() >= end) throw error;
            await pause(Math.min(left, computeBackoff(++failures, error.retryAfter)), [limit.signal]);
          }
        }
      } catch (error) {
        if (!limit.isOver()) throw error;
        throw timeoutError(`there was no answer about ${id} within ${timeout} seconds`);
      } finally {
        limit.end();
      }
    },
    /** Requests a permit. The service first decides the action again with the current policies. */
    permit: (id: string, { signal }: CallOptions = {}) =>
      record(id, "POST", "/permit", { body: {}, signal, repeatable: true }),
    /**
     * Starts the action for this call only. Retries if the answer is missing. A caller without an answer must not run
     * the action.
     */
    async start(
      id: string,
      { permit, attempt = newAttempt(), requestHash, signal }: StartOptions = {},
    ): Promise<ActionRecord> {
      const started = await record(id, "POST", "/start", {
        body: { permit, attempt, request_hash: requestHash },
        signal,
        repeatable: true,
        repeatFor: START_AGAIN,
      });
      if (started.status !== "executing")
        throw unreadableAnswer(200, `${id} is ${started.status} after it was started`);
      return started;
    },
    /** Reports the result. Retries if the answer is missing; the service keeps the first result. */
    async result(id: string, { success, error, meta, attempt }: ActionResult, { signal }: CallOptions = {}) {
      const details = { body: { success, error, meta, attempt }, signal, repeatable: true };
      try {
        return await record(id, "POST", "/result", details);
      } catch (failure) {
        if (!(failure instanceof RequestRefused) || failure.code !== "ACTION_NOT_STARTED") throw failure;
        const now = await action(id, { signal });
        if (now.status !== (success ? "succeeded" : "failed")) throw failure;
        return now;
      }
    },
    /** Asks the agent of a pending action a question. With a key that may approve the action. */
    ask: (id: string, question: string, { signal }: CallOptions = {}) =>
      record(id, "POST", "/questions", { body: { question }, signal, repeatable: true }),
    /**
     * Answers an approver's question about a pending action of this agent: question `number`, or the first one without
     * an answer. `ActionRecord.questions` lists them.
     */
    answer: (id: string, answer: string, { number, signal }: AnswerOptions = {}) =>
      record(id, "POST", "/answers", { body: { answer, number }, signal, repeatable: true }),
    /**
     * Changes parameters of a pending action, where its rules allow it. With the caller's approval token, which it reads
     * first. Someone else has to approve the changed request.
     */
    async edit(
      id: string,
      changes: Record<string, string | number | boolean>,
      { reason, signal }: VoteOptions = {},
    ): Promise<ActionRecord> {
      const token = await readToken(id, signal);
      return record(id, "POST", "/edit", { body: { token, changes, reason }, signal });
    },
    /** Submits several requests of one agent as a plan, which people approve as one list. */
    async submitPlan(requests: readonly ActionRequest[], how: SubmitPlanOptions = {}): Promise<PlanRecord> {
      const session = await sessionHeader(how.signal);
      return (await import("./plans.ts")).submitPlan(transport, requests, how, session);
    },
    /** Reads a plan. With a key that may see every action of it. */
    async plan(id: string, { signal }: CallOptions = {}): Promise<PlanRecord> {
      return (await import("./plans.ts")).readPlanRecord(transport, id, signal);
    },
    /** Approves the actions of a plan that are not struck out, or rejects all that are pending. */
    async votePlan(id: string, approve: boolean, how: PlanVoteOptions = {}): Promise<PlanRecord> {
      return (await import("./plans.ts")).votePlan(transport, id, approve, how);
    },
    /** Yields all matching plans, newest first. Reads pages as needed. */
    plans: (query: PlanQuery = {}, how?: CallOptions) => listOf<PlanSummary>("/v1/plans", query, how, "plans"),
    /** Cancels the pending actions of a plan; with an admin key also those that may start. */
    async cancelPlan(id: string, how: VoteOptions = {}): Promise<PlanRecord> {
      return (await import("./plans.ts")).cancelPlan(transport, id, how);
    },
    cancel: (id: string, { reason, signal }: VoteOptions = {}) =>
      record(id, "POST", "/cancel", { body: { reason }, signal }),
    approve: (id: string, how?: ApproveOptions) => vote(id, true, how),
    deny: (id: string, how?: VoteOptions) => vote(id, false, how),
    /** The same request requires approval again. With a key that may approve the action. */
    liftRejection: (id: string, { reason, signal }: VoteOptions = {}) =>
      record(id, "POST", "/lift-rejection", { body: { reason }, signal }),
    replay: (request: Record<string, unknown>, { signal }: CallOptions = {}) =>
      call<{ equal: boolean; fields: { field: string; equal: boolean }[]; now: { changed: boolean } | null }>(
        "POST",
        "/v1/replay",
        request,
        { signal, repeatable: true },
      ),
    /** Returns a proof. With a pinned `logKey`, verifies it and throws ProofInvalid if it is invalid. */
    async proof(hash: string, { signal }: CallOptions = {}): Promise<Record<string, unknown>> {
      const path = `/v1/provenance/${encodeURIComponent(hash)}/proof`;
      const proof = await call<Record<string, unknown>>("GET", path, undefined, { signal });
      const pin = options.logKey;
      if (pin === undefined) return proof;
      const { vkey } = await (await import("./proof.ts")).verifyProof(proof, hash, pin);
      if (vkey !== pin) options.onLogKey?.(vkey);
      return proof;
    },
    logKeys: ({ signal }: CallOptions = {}) =>
      call<{ origin: string; keys: { vkey: string }[] }>("GET", "/v1/provenance/keys", undefined, { signal }),
    /** Yields all matching actions, newest first. Reads pages as needed. */
    actions: (query: ActionQuery = {}, how?: CallOptions) => listOf("/v1/actions", query, how),
    /** Yields all pending actions, earliest expiry first. */
    approvals: (how?: CallOptions) => listOf("/v1/approvals", {}, how),
    /** Yields the ledger's events as they happen; never ends by itself. */
    async *events(query: EventQuery = {}): AsyncGenerator<LedgerEvent, never, undefined> {
      const { followEvents } = await import("./events.ts");
      return yield* followEvents(transport, query);
    },
    /** Returns the agent that this key is bound to. Throws RequestRefused if there is none. */
    async agent(how: CallOptions = {}): Promise<string> {
      if (boundTo !== undefined) return boundTo;
      const me = await call<{ key?: { agent_id?: unknown } } | undefined>("GET", "/v1/me", undefined, how);
      const agent = me?.key?.agent_id;
      if (typeof agent === "string") return (boundTo = agent);
      throw new RequestRefused("this key is bound to no agent; say for which agent it asks", {
        status: 403,
        code: "AGENT_UNBOUND",
      });
    },
    /** Returns one page of actions, newest first. */
    actionsPage: (query: ActionQuery = {}, { signal }: CallOptions = {}) =>
      call<ActionPage>("GET", "/v1/actions", undefined, { query, signal }),
    /**
     * Returns the decision that a request would get. Records nothing. The answer is no permission to run the action.
     */
    gate: async ({ agent_id, tool, operation, params, context }: ActionRequest, { signal }: CallOptions = {}) =>
      call<{
        is_permission: false;
        outcome: "EXECUTE" | "ABSTAIN" | "HALT";
        /** Null if a limit applies, because limits count only recorded decisions. */
        decision: ActionRecord["decision"] | null;
        reason: string;
        never_allowed?: boolean;
      }>(
        "POST",
        "/v1/gate/decide",
        { agent_id, tool, operation, params, context },
        { signal, repeatable: true, headers: await sessionHeader(signal) },
      ),
  };
}

/** Returns an id for a start: 128 random bits in hex. */
export function newAttempt(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Reads the environment only if an option is missing, because Deno asks for permission and browsers have none. */
function environment(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
}
