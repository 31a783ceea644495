/** One client's conversation with the servers behind the proxy. */
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
import { createUpstreamPool, listKindsOf } from "../upstreams/upstream-pool.ts";
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
} from "../transport/message.ts";
import { createLogLevel } from "../upstreams/log-level.ts";
import { AnswerLostError } from "../transport/peer.ts";
import { refusalToolResult, proxyRefusal } from "../decisions/refusal.ts";
import { GOVERNED_METHODS, type GovernedMethod, type ServerConfig } from "../config/server-config.ts";
import { createRequestRouter } from "./request-routing.ts";
import { createTaskStore } from "./tasks.ts";
import { createToolCatalog, type Tool } from "../tools/tool-catalog.ts";
import type { AskClient, ServerQuestion, Upstream } from "../upstreams/upstream.ts";
import { mergeServerInfo } from "../upstreams/merged-server-info.ts";

/** The client as a whole; what belongs to one request goes to its caller. */
export interface SessionClient {
  notify(method: string, params: JsonObject | undefined): void;
  /** Null where a client is asked in the course of a request only (since 2026-07-28). */
  askClient: AskClient | null;
  /** The only server is gone. */
  ended(why: string): void;
}

export interface SessionOptions extends DecisionOptions {
  servers: readonly ServerConfig[];
  store: DefinitionStore;
  log(line: string): void;
}

/** What is told of requests that have ended, or of tasks and subscriptions that are the proxy's and not the client's. */
const PROXY_NOTIFICATIONS = new Set([
  "notifications/cancelled",
  "notifications/progress",
  "notifications/tasks/status",
  "notifications/subscriptions/acknowledged",
]);

/** What a server may ask of a client without a decision: besides its roots, for an answer that it has begun. */
const UNDECIDED_METHODS = /^(?:roots\/list|tasks\/(?:get|list|result|cancel))$/;

/** The only revision that has tasks of its own; later they are an extension. */
const TASKS_VERSION = "2025-11-25";

export type ClientSession = ReturnType<typeof createClientSession>;

export function createClientSession(options: SessionOptions, client: SessionClient) {
  const { servers, log } = options;
  const listChanged = (kind: string): void => client.notify(`notifications/${kind}/list_changed`, undefined);
  const toolbox = createToolCatalog(options.store, () => listChanged("tools"), log);
  const level = createLogLevel(log);
  const inFlight = new WeakMap<Upstream, Set<Caller>>();
  const fleet = createUpstreamPool(servers, {
    askClient: (upstream, question, signal) => askClient(upstream, question, signal, null),
    onnotification: handleNotification,
    changed(upstream) {
      toolbox.invalidate(upstream);
      if (upstream.closed === null) level.applyTo(upstream);
      for (const kind of listKindsOf(upstream)) listChanged(kind);
    },
    ended: (why) => client.ended(why),
    log,
  });
  const { live } = fleet;

  /** The one request that a message of a server can belong to; null where there are none or several. */
  const onlyCaller = (upstream: Upstream): Caller | null => {
    const callers = inFlight.get(upstream);
    return callers?.size === 1 ? ([...callers][0] as Caller) : null;
  };

  function handleNotification(upstream: Upstream, { method, params }: Notification): void {
    if (method === "notifications/tools/list_changed") toolbox.invalidate(upstream);
    if (PROXY_NOTIFICATIONS.has(method)) return;
    const caller = method === "notifications/message" ? onlyCaller(upstream) : null;
    if (caller !== null) caller.notify(method, params ?? {});
    else client.notify(method, params);
  }

  /** What a server wants of the client: decided like a call, unless it is open. */
  async function askClient(
    upstream: Upstream,
    question: ServerQuestion,
    signal: AbortSignal,
    of: Caller | null,
  ): Promise<Reply> {
    const caller = of ?? onlyCaller(upstream);
    const pass = (what: ServerQuestion): Promise<Reply> => {
      if (caller !== null) return caller.askClient(what);
      if (client.askClient !== null) return client.askClient(what, signal);
      return Promise.resolve(
        errorReply(
          ERROR_CODE.internal,
          `"${what.method}" cannot be told to belong to one request, and is not passed on`,
        ),
      );
    };
    const { method, params } = question;
    if (!isGovernedMethod(method) && !UNDECIDED_METHODS.test(method))
      return errorReply(ERROR_CODE.methodNotFound, `"${method}" is not passed on`);
    if (!isGovernedMethod(method) || upstream.config.open.includes(method)) return pass(question);
    const asking: Caller = caller ?? {
      signal,
      info: fleet.facts.info,
      capabilities: {},
      wantsProgress: false,
      sendProgress() {},
      notify() {},
      whenAttached: () => Promise.resolve(),
      askClient: pass,
    };
    const { _meta, ...subject } = params;
    const call = { upstream, method, params, id: 0, operation: method, decidedParams: subject, context: {} };
    const verdict = await options.gate.decide(toToolCall(call, asking, options), asking);
    if (!verdict.mayRun)
      return method === "elicitation/create"
        ? { result: { action: "decline" } }
        : errorReply(-1, verdict.refusal.text, { ...verdict.refusal.facts });
    try {
      const { sent } = readCallMeta(readMeta(params), upstream.config.meta);
      const reply = await pass({ method, params: withMeta(params, sent) });
      verdict.report("result" in reply, "error" in reply ? reply.error.message : undefined);
      return reply;
    } catch (error) {
      verdict.report(false, `the client gave no answer: ${error instanceof Error ? error.message : String(error)}`);
      throw error;
    }
  }

  /** Keeps the caller while a server works for it. */
  async function trackCaller<T>(upstream: Upstream, caller: Caller, work: () => Promise<T>): Promise<T> {
    const callers = inFlight.get(upstream) ?? new Set();
    inFlight.set(upstream, callers.add(caller));
    try {
      return await work();
    } finally {
      callers.delete(caller);
    }
  }

  /** A request that is decided, unless it is open or nothing that is decided about. */
  function send(call: UpstreamCall, caller: Caller): Promise<Reply> {
    const ask: AskClient = (question, signal) => askClient(call.upstream, question, signal, caller);
    const { open, meta } = call.upstream.config;
    return trackCaller(call.upstream, caller, () => {
      if (!isGovernedMethod(call.method)) return forwardCall(call, caller, ask, []);
      return open.includes(call.method)
        ? forwardCall(call, caller, ask, meta)
        : runGovernedCall(call, caller, ask, null, options);
    });
  }

  function callTool(call: UpstreamCall, tool: Tool, caller: Caller): Promise<Reply> {
    const ask: AskClient = (question, signal) => askClient(tool.upstream, question, signal, caller);
    return trackCaller(tool.upstream, caller, () => runGovernedCall(call, caller, ask, tool, options));
  }

  const { askClient: ask } = client;
  const tasks = ask === null ? null : createTaskStore(ask);
  const hasTasks = (): boolean => fleet.facts.version === TASKS_VERSION;
  const isHidden = (tool: Tool, signal: AbortSignal): Promise<boolean> =>
    options.hideDenied
      ? options.gate.isNeverAllowed(tool.upstream.config.tool, tool.name, signal)
      : Promise.resolve(false);
  const route = createRequestRouter({
    live,
    listChanged,
    log,
    isHidden,
    toolbox,
    tasks: () => (hasTasks() ? tasks : null),
    send,
    setLevel: level.set,
    tool: callTool,
  });

  return {
    open: fleet.open,
    get facts() {
      return fleet.facts;
    },
    /** What `tools/call` would call. */
    tool: (name: string) => toolbox.find(name, live(), false),
    /** What the servers say of themselves, together. */
    serverInfo: () =>
      mergeServerInfo(live(), servers.length, hasTasks(), (upstream) =>
        toolbox.instructions(upstream, servers.length === 1),
      ),
    async handle(request: Request, caller: Caller): Promise<Reply> {
      try {
        return await route(request, caller);
      } catch (error) {
        if (caller.signal.aborted) throw error;
        if (error instanceof ListError) return error.reply;
        if (error instanceof AnswerLostError) return errorReply(ERROR_CODE.internal, error.message);
        log(
          `"${request.method}" failed in the proxy: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        );
        const why = proxyRefusal("The proxy that decides about calls failed; tell the user.", "PROXY_FAILED");
        return request.method === "tools/call"
          ? { result: refusalToolResult(why, false) }
          : errorReply(ERROR_CODE.internal, why.text, { ...why.facts });
      }
    },
    /** What the client tells: for all servers. */
    forwardNotification({ method }: Notification): void {
      if (method === "notifications/roots/list_changed") for (const upstream of live()) void upstream.notify(method);
    },
    close(): Promise<void> {
      tasks?.close();
      return fleet.close();
    },
  };
}

function isGovernedMethod(method: string): method is GovernedMethod {
  return (GOVERNED_METHODS as readonly string[]).includes(method);
}
