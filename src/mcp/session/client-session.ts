/** One client's conversation with the servers behind the proxy. */
import { readCallMeta } from "../decisions/call-meta.ts";
import type { Caller } from "../clients/caller.ts";
import { forward, govern, wishOf, type Call, type CallOptions } from "../decisions/governed-call.ts";
import type { DefinitionStore } from "../tools/accepted-definitions.ts";
import { createFleet, kindsOf } from "../upstreams/upstream-pool.ts";
import { ListFault } from "../upstreams/merged-lists.ts";
import {
  CODE,
  failure,
  metaOf,
  withMeta,
  type JsonObject,
  type Notification,
  type Reply,
  type Request,
} from "../transport/message.ts";
import { createLevel } from "../upstreams/log-level.ts";
import { RequestLost } from "../transport/peer.ts";
import { asToolResult, refusalBecause } from "../decisions/refusal.ts";
import { DECIDED_METHODS, type OpenMethod, type ServerConfig } from "../config/server-config.ts";
import { createRoutes } from "./request-routing.ts";
import { createTasks } from "./tasks.ts";
import { createToolbox, type Tool } from "../tools/tool-catalog.ts";
import type { Ask, Question, Upstream } from "../upstreams/upstream.ts";
import { mergedGreeting } from "../upstreams/merged-server-info.ts";

/** The client as a whole; what belongs to one request goes to its caller. */
export interface Client {
  notify(method: string, params: JsonObject | undefined): void;
  /** Null where a client is asked in the course of a request only (since 2026-07-28). */
  ask: Ask | null;
  /** The only server is gone. */
  ended(why: string): void;
}

export interface SessionOptions extends CallOptions {
  servers: readonly ServerConfig[];
  store: DefinitionStore;
  log(line: string): void;
}

/** What is told of requests that have ended, or of tasks and subscriptions that are the proxy's and not the client's. */
const OF_PROXY = new Set([
  "notifications/cancelled",
  "notifications/progress",
  "notifications/tasks/status",
  "notifications/subscriptions/acknowledged",
]);

/** What a server may ask of a client without a decision: besides its roots, for an answer that it has begun. */
const PASSED = /^(?:roots\/list|tasks\/(?:get|list|result|cancel))$/;

/** The only revision that has tasks of its own; later they are an extension. */
const TASKS_SINCE = "2025-11-25";

export type Session = ReturnType<typeof createSession>;

export function createSession(options: SessionOptions, client: Client) {
  const { servers, log } = options;
  const listChanged = (kind: string): void => client.notify(`notifications/${kind}/list_changed`, undefined);
  const toolbox = createToolbox(options.store, () => listChanged("tools"), log);
  const level = createLevel(log);
  const inFlight = new WeakMap<Upstream, Set<Caller>>();
  const fleet = createFleet(servers, {
    ask: (upstream, question, signal) => askClient(upstream, question, signal, null),
    onnotification: heard,
    changed(upstream) {
      toolbox.forget(upstream);
      if (upstream.closed === null) level.greeted(upstream);
      for (const kind of kindsOf(upstream)) listChanged(kind);
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

  function heard(upstream: Upstream, { method, params }: Notification): void {
    if (method === "notifications/tools/list_changed") toolbox.forget(upstream);
    if (OF_PROXY.has(method)) return;
    const caller = method === "notifications/message" ? onlyCaller(upstream) : null;
    if (caller !== null) caller.notify(method, params ?? {});
    else client.notify(method, params);
  }

  /** What a server wants of the client: decided like a call, unless it is open. */
  async function askClient(
    upstream: Upstream,
    question: Question,
    signal: AbortSignal,
    of: Caller | null,
  ): Promise<Reply> {
    const caller = of ?? onlyCaller(upstream);
    const pass = (what: Question): Promise<Reply> => {
      if (caller !== null) return caller.ask(what);
      if (client.ask !== null) return client.ask(what, signal);
      return Promise.resolve(
        failure(CODE.internal, `"${what.method}" cannot be told to belong to one request, and is not passed on`),
      );
    };
    const { method, params } = question;
    if (!isDecided(method) && !PASSED.test(method)) return failure(CODE.methodNotFound, `"${method}" is not passed on`);
    if (!isDecided(method) || upstream.config.open.includes(method)) return pass(question);
    const asking: Caller = caller ?? {
      signal,
      info: fleet.facts.info,
      capabilities: {},
      wantsProgress: false,
      progress() {},
      notify() {},
      attached: () => Promise.resolve(),
      ask: pass,
    };
    const { _meta, ...subject } = params;
    const call = { upstream, method, params, id: 0, operation: method, subject, context: {} };
    const verdict = await options.gate.decide(wishOf(call, asking, options), asking);
    if (!verdict.runs)
      return method === "elicitation/create"
        ? { result: { action: "decline" } }
        : failure(-1, verdict.refusal.text, { ...verdict.refusal.facts });
    try {
      const { sent } = readCallMeta(metaOf(params), upstream.config.meta);
      const reply = await pass({ method, params: withMeta(params, sent) });
      verdict.report("result" in reply, "error" in reply ? reply.error.message : undefined);
      return reply;
    } catch (error) {
      verdict.report(false, `the client gave no answer: ${error instanceof Error ? error.message : String(error)}`);
      throw error;
    }
  }

  /** Keeps the caller while a server works for it. */
  async function during<T>(upstream: Upstream, caller: Caller, work: () => Promise<T>): Promise<T> {
    const callers = inFlight.get(upstream) ?? new Set();
    inFlight.set(upstream, callers.add(caller));
    try {
      return await work();
    } finally {
      callers.delete(caller);
    }
  }

  /** A request that is decided, unless it is open or nothing that is decided about. */
  function send(call: Call, caller: Caller): Promise<Reply> {
    const ask: Ask = (question, signal) => askClient(call.upstream, question, signal, caller);
    const { open, meta } = call.upstream.config;
    return during(call.upstream, caller, () => {
      if (!isDecided(call.method)) return forward(call, caller, ask, []);
      return open.includes(call.method) ? forward(call, caller, ask, meta) : govern(call, caller, ask, null, options);
    });
  }

  function callTool(call: Call, tool: Tool, caller: Caller): Promise<Reply> {
    const ask: Ask = (question, signal) => askClient(tool.upstream, question, signal, caller);
    return during(tool.upstream, caller, () => govern(call, caller, ask, tool, options));
  }

  const { ask } = client;
  const tasks = ask === null ? null : createTasks(ask);
  const hasTasks = (): boolean => fleet.facts.version === TASKS_SINCE;
  const isHidden = (tool: Tool, signal: AbortSignal): Promise<boolean> =>
    options.hideDenied
      ? options.gate.isNeverAllowed(tool.upstream.config.tool, tool.name, signal)
      : Promise.resolve(false);
  const route = createRoutes({
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
    tool: (name: string) => toolbox.named(name, live(), false),
    /** What the servers say of themselves, together. */
    greeting: () =>
      mergedGreeting(live(), servers.length, hasTasks(), (upstream) =>
        toolbox.instructions(upstream, servers.length === 1),
      ),
    async handle(request: Request, caller: Caller): Promise<Reply> {
      try {
        return await route(request, caller);
      } catch (error) {
        if (caller.signal.aborted) throw error;
        if (error instanceof ListFault) return error.reply;
        if (error instanceof RequestLost) return failure(CODE.internal, error.message);
        log(
          `"${request.method}" failed in the proxy: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        );
        const why = refusalBecause("The proxy that decides about calls failed; tell the user.", "PROXY_FAILED");
        return request.method === "tools/call"
          ? { result: asToolResult(why, false) }
          : failure(CODE.internal, why.text, { ...why.facts });
      }
    },
    /** What the client tells: for all servers. */
    tell({ method }: Notification): void {
      if (method === "notifications/roots/list_changed") for (const upstream of live()) void upstream.notify(method);
    },
    close(): Promise<void> {
      tasks?.close();
      return fleet.close();
    },
  };
}

function isDecided(method: string): method is OpenMethod {
  return (DECIDED_METHODS as readonly string[]).includes(method);
}
