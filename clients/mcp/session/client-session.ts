/** A client's session with the servers behind the proxy. */
import { readCallMeta } from "../decisions/call-meta.ts";
import type { Caller } from "../clients/caller.ts";
import {
  forwardCall,
  runGovernedCall,
  toToolCall,
  type UpstreamCall,
  type DecisionOptions,
} from "../decisions/governed-call.ts";
import type { DefinitionStore } from "../tools/accepted-definitions.ts";
import { UpstreamPool, supportedListKinds } from "../upstreams/upstream-pool.ts";
import { ListError } from "../upstreams/merged-lists.ts";
import {
  ERROR_CODE,
  errorReply,
  readMeta,
  withMeta,
  type JsonObject,
  type Notification,
  type Reply,
  type Request,
} from "../transport/rpc-message.ts";
import { refusesWithQuestion, callAnswerTool } from "../decisions/answer-tool.ts";
import { createLogLevel } from "../upstreams/log-level.ts";
import { ResponseLostError } from "../transport/peer.ts";
import { MARK, markText } from "../decisions/mark.ts";
import { refusalToolResult, proxyRefusal } from "../decisions/refusal-result.ts";
import { GOVERNED_METHODS, type GovernedMethod, type ServerConfig } from "../config/server-config.ts";
import { RequestRouter } from "./request-routing.ts";
import { TaskStore } from "./tasks.ts";
import { ToolCatalog, type Tool } from "../tools/tool-catalog.ts";
import type { AnswerQuestions, ClientInfo, RequestFromServer, SendToClient, Upstream } from "../upstreams/upstream.ts";
import { BUILT_IN_TASKS_VERSION, mergeServerInfo, type ServerInfo } from "../upstreams/merged-server-info.ts";

/** The session's client. Messages that belong to a request go to the request's `Caller` instead. */
interface SessionClient {
  notify(method: string, params: JsonObject | undefined): void;
  /**
   * Asks the client outside of a request. Null since revision 2026-07-28, which allows questions only as part of a
   * request.
   */
  askClient: SendToClient | null;
  /** Called when the session's only server is a process and has exited. */
  ended(reason: string): void;
}

export interface SessionOptions extends DecisionOptions {
  servers: readonly ServerConfig[];
  store: DefinitionStore;
  log(line: string): void;
}

/**
 * Notifications that the proxy does not forward, because they concern the proxy's own requests, tasks and
 * subscriptions.
 */
const PROXY_NOTIFICATIONS = new Set([
  "notifications/cancelled",
  "notifications/progress",
  "notifications/tasks/status",
  "notifications/subscriptions/acknowledged",
]);

/**
 * Methods of server requests that require no decision. With them, a server reads the client's roots, or accesses the
 * client's tasks that the server started.
 */
const UNDECIDED_METHODS = /^(?:roots\/list|tasks\/(?:get|list|result|cancel))$/;

export class ClientSession {
  private readonly options: SessionOptions;
  private readonly client: SessionClient;
  private readonly toolCatalog: ToolCatalog;
  private readonly logLevel: {
    set({ level }: JsonObject, live: readonly Upstream[]): Promise<Reply>;
    applyTo(upstream: Upstream): void;
  };
  private readonly inFlight = new WeakMap<Upstream, Set<Caller>>();
  private readonly pool: UpstreamPool;
  private hasOfferedAnswers = false;
  private readonly tasks: TaskStore | null;
  private readonly router: RequestRouter;

  constructor(options: SessionOptions, client: SessionClient) {
    this.options = options;
    this.client = client;
    this.toolCatalog = new ToolCatalog(options.store, () => this.listChanged("tools"), options.log);
    this.logLevel = createLogLevel(options.log);
    this.pool = new UpstreamPool(options.servers, {
      askClient: (upstream, question, signal) => this.askClient(upstream, question, signal, null),
      onnotification: (upstream, notification) => this.handleNotification(upstream, notification),
      changed: (upstream) => {
        this.toolCatalog.invalidate(upstream);
        if (upstream.closed === null) this.logLevel.applyTo(upstream);
        for (const kind of supportedListKinds(upstream)) this.listChanged(kind);
      },
      ended: (reason) => client.ended(reason),
      log: options.log,
    });
    this.tasks = client.askClient === null ? null : new TaskStore(client.askClient);
    this.router = new RequestRouter({
      live: () => this.live(),
      listChanged: (kind) => this.listChanged(kind),
      log: options.log,
      isHidden: (tool, signal) => this.isHidden(tool, signal),
      toolCatalog: this.toolCatalog,
      tasks: () => (this.supportsTasks() ? this.tasks : null),
      send: (call, caller) => this.send(call, caller),
      setLevel: this.logLevel.set,
      tool: (call, tool, caller) => this.callTool(call, tool, caller),
      offersAnswers: () => this.hasOfferedAnswers,
      authority: options.offerAuthority ? options.gate : null,
      answer: (input, signal) =>
        callAnswerTool((id, text, aborted) => options.gate.answer(id, text, aborted), input, signal),
    });
  }

  open(facts: ClientInfo): Promise<void> {
    return this.pool.open(facts);
  }

  get facts(): ClientInfo {
    return this.pool.facts;
  }

  /** Returns the tool that `tools/call` would run. */
  tool(name: string): Promise<Tool | undefined> {
    return this.toolCatalog.find(name, this.live(), false);
  }

  /** Returns the merged capabilities and instructions of the servers. */
  serverInfo(): Promise<ServerInfo> {
    return mergeServerInfo(this.live(), this.options.servers.length, this.pool.facts.version, (upstream) =>
      this.toolCatalog.instructions(upstream, this.options.servers.length === 1),
    );
  }

  async handle(request: Request, caller: Caller): Promise<Reply> {
    try {
      return await this.router.route(request, caller);
    } catch (error) {
      if (caller.signal.aborted) throw error;
      if (error instanceof ListError) return error.reply;
      if (error instanceof ResponseLostError) return errorReply(ERROR_CODE.internal, markText(error.message));
      this.options.log(
        `"${request.method}" failed in the proxy: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      const reason = proxyRefusal("The proxy failed with an internal error; tell the user.", "PROXY_FAILED");
      return request.method === "tools/call"
        ? { result: refusalToolResult(reason, false) }
        : errorReply(ERROR_CODE.internal, markText(reason.text), { mark: MARK, ...reason.facts });
    }
  }

  /** Forwards a client's notification to all servers. */
  forwardNotification({ method }: Notification): void {
    if (method === "notifications/roots/list_changed") for (const upstream of this.live()) void upstream.notify(method);
  }

  close(): Promise<void> {
    this.tasks?.close();
    return this.pool.close();
  }

  private listChanged(kind: string): void {
    this.client.notify(`notifications/${kind}/list_changed`, undefined);
  }

  private live(): Upstream[] {
    return this.pool.live();
  }

  /** Returns the caller of the server's running request; null unless there is exactly one. */
  private onlyCaller(upstream: Upstream): Caller | null {
    const callers = this.inFlight.get(upstream);
    return callers?.size === 1 ? ([...callers][0] as Caller) : null;
  }

  private handleNotification(upstream: Upstream, { method, params }: Notification): void {
    if (method === "notifications/tools/list_changed") this.toolCatalog.invalidate(upstream);
    if (PROXY_NOTIFICATIONS.has(method)) return;
    const caller = method === "notifications/message" ? this.onlyCaller(upstream) : null;
    if (caller !== null) caller.notify(method, params ?? {});
    else this.client.notify(method, params);
  }

  /** Handles a server's request to the client. */
  private async askClient(
    upstream: Upstream,
    question: RequestFromServer,
    signal: AbortSignal,
    of: Caller | null,
  ): Promise<Reply> {
    const forward = await this.decideQuestion(upstream, question, signal, of);
    return forward();
  }

  /** Returns a function that handles a server's questions during a request of this caller. */
  private answerQuestions(upstream: Upstream, caller: Caller): AnswerQuestions {
    return async (questions, signal) => {
      // Decide on all questions before forwarding any, so that the client gets them together.
      const decisions = questions.map((question) => this.decideQuestion(upstream, question, signal, caller));
      await Promise.allSettled(decisions);
      return Promise.all(decisions.map(async (decision) => (await decision)()));
    };
  }

  /**
   * Requests a decision on a server's request to the client, unless the configuration lists its method in `open`. Resolves
   * to a function that forwards the request, or that returns the refusal.
   */
  private async decideQuestion(
    upstream: Upstream,
    question: RequestFromServer,
    signal: AbortSignal,
    of: Caller | null,
  ): Promise<() => Promise<Reply>> {
    const answer = (reply: Reply) => () => Promise.resolve(reply);
    const caller = of ?? this.onlyCaller(upstream);
    const forwardQuestion = (forwarded: RequestFromServer): Promise<Reply> => {
      if (caller !== null) return caller.askClient(forwarded);
      if (this.client.askClient !== null) return this.client.askClient(forwarded, signal);
      return Promise.resolve(
        errorReply(
          ERROR_CODE.internal,
          `"${forwarded.method}" cannot be assigned to a request of the client, so it is not forwarded`,
        ),
      );
    };
    const { method, params } = question;
    if (!isGovernedMethod(method) && !UNDECIDED_METHODS.test(method))
      return answer(errorReply(ERROR_CODE.methodNotFound, `"${method}" is not supported by the proxy`));
    if (!isGovernedMethod(method) || upstream.config.open.includes(method)) return () => forwardQuestion(question);
    const questionCaller: Caller = caller ?? {
      signal,
      info: this.pool.facts.info,
      capabilities: {},
      wantsProgress: false,
      sendProgress() {},
      notify() {},
      whenAttached: () => Promise.resolve(),
      askClient: forwardQuestion,
    };
    const { _meta, ...decidedParams } = params;
    const call = { upstream, method, params, id: 0, operation: method, decidedParams, context: {} };
    const decision = await this.options.gate.decide(toToolCall(call, questionCaller, this.options), questionCaller, {
      server: upstream,
    });
    if (!decision.mayRun)
      return answer(
        method === "elicitation/create"
          ? { result: { action: "decline" } }
          : errorReply(-1, decision.refusal.text, { ...decision.refusal.facts }),
      );
    return async () => {
      try {
        const { sent } = readCallMeta(readMeta(params), upstream.config.meta);
        const reply = await forwardQuestion({ ...question, params: withMeta(params, sent) });
        decision.report("result" in reply, "error" in reply ? reply.error.message : undefined);
        return reply;
      } catch (error) {
        decision.report(false, `the client did not answer: ${error instanceof Error ? error.message : String(error)}`);
        throw error;
      }
    };
  }

  /** Records the caller as active on this server until `work` is done. */
  private async trackCaller<T>(upstream: Upstream, caller: Caller, work: () => Promise<T>): Promise<T> {
    const callers = this.inFlight.get(upstream) ?? new Set();
    this.inFlight.set(upstream, callers.add(caller));
    try {
      return await work();
    } finally {
      callers.delete(caller);
    }
  }

  /** Forwards a request. Requests a decision first if the method requires a decision. */
  private send(call: UpstreamCall, caller: Caller): Promise<Reply> {
    const ask = this.answerQuestions(call.upstream, caller);
    const { open, meta } = call.upstream.config;
    return this.trackCaller(call.upstream, caller, () => {
      if (!isGovernedMethod(call.method)) return forwardCall(call, caller, ask, []);
      return open.includes(call.method)
        ? forwardCall(call, caller, ask, meta)
        : runGovernedCall(call, caller, ask, null, this.options);
    });
  }

  private async callTool(call: UpstreamCall, tool: Tool, caller: Caller): Promise<Reply> {
    const ask = this.answerQuestions(tool.upstream, caller);
    const reply = await this.trackCaller(tool.upstream, caller, () =>
      runGovernedCall(call, caller, ask, tool, this.options),
    );
    if (!this.hasOfferedAnswers && refusesWithQuestion(reply)) {
      this.hasOfferedAnswers = true;
      this.listChanged("tools");
    }
    return reply;
  }

  private supportsTasks(): boolean {
    return this.pool.facts.version === BUILT_IN_TASKS_VERSION;
  }

  private isHidden(tool: Tool, signal: AbortSignal): Promise<boolean> {
    return this.options.hideDenied
      ? this.options.gate.isNeverAllowed(tool.upstream.config.tool, tool.name, signal)
      : Promise.resolve(false);
  }
}

function isGovernedMethod(method: string): method is GovernedMethod {
  return (GOVERNED_METHODS as readonly string[]).includes(method);
}
