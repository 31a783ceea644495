/** Which server a request of the client is for, and what it is sent. */
import type { Caller } from "../clients/caller.ts";
import { refusalReply, type UpstreamCall } from "../decisions/governed-call.ts";
import { paramHeaders } from "../transport/http-headers.ts";
import { createListCache, LIST_TIMEOUT_MS } from "../upstreams/slow-upstreams.ts";
import {
  listAllPages,
  listFromEach,
  toClientItem,
  assignUniqueNames,
  type ListRequester,
  type ListedItem,
  type NameAssignments,
} from "../upstreams/merged-lists.ts";
import {
  ERROR_CODE,
  errorReply,
  isObject,
  readMeta,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/message.ts";
import { clipText } from "../../domain/text.ts";
import { refusalToolResult, serverGoneRefusal, withheldToolRefusal, proxyRefusal } from "../decisions/refusal.ts";
import { readTaskSupport, type TaskStore } from "./tasks.ts";
import { toClientTool, type Tool, type ToolCatalog } from "../tools/tool-catalog.ts";
import type { Upstream } from "../upstreams/upstream.ts";

/** What a session lets its routes do. */
export interface RoutingDependencies {
  live(): Upstream[];
  /** Tells the client that a list of this kind is another one now. */
  listChanged(kind: string): void;
  log(line: string): void;
  /** Whether a tool is left out of lists, because policies always deny it. */
  isHidden(callTool: Tool, signal: AbortSignal): Promise<boolean>;
  toolbox: ToolCatalog;
  /** Null where the client knows of none. */
  tasks(): TaskStore | null;
  send(call: UpstreamCall, caller: Caller): Promise<Reply>;
  setLevel(params: JsonObject, live: readonly Upstream[]): Promise<Reply>;
  /** A tool's call: decided, whatever is open. */
  tool(call: UpstreamCall, tool: Tool, caller: Caller): Promise<Reply>;
}

const LIST_METHODS: Readonly<Record<string, string>> = {
  "prompts/list": "prompts",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
};
const CAPABILITY_OF_LIST: Readonly<Record<string, string>> = {
  prompts: "prompts",
  resources: "resources",
  resourceTemplates: "resources",
};

/** How long a task is kept, and nothing else that could stand there. */
const taskLifetime = ({ ttl }: JsonObject): JsonObject => (typeof ttl === "number" ? { ttl } : {});

/** A list that is asked for on a client's behalf: a server that hangs holds it up no longer than this. */
const withListTimeout = ({ signal, capabilities }: Caller): ListRequester => ({
  signal: AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]),
  capabilities,
});

/** @returns what deals with one request. It throws ListFault and RequestLost. */
export function createRequestRouter({
  live,
  listChanged,
  log,
  isHidden,
  toolbox,
  tasks: tasksOf,
  send,
  setLevel,
  tool: governed,
}: RoutingDependencies): (request: Request, caller: Caller) => Promise<Reply> {
  const prompts: NameAssignments = new Map();

  async function callTool({ id, params = {} }: Request, caller: Caller): Promise<Reply> {
    const { name, arguments: given = {}, task } = params;
    const tasks = tasksOf();
    if (isObject(task) && tasks !== null && caller.maxWait === undefined)
      return tasks.begin(task, caller, (of) => callTool({ id, params } as Request, of));
    if (typeof name !== "string" || !isObject(given))
      return errorReply(
        ERROR_CODE.invalidParams,
        "tools/call has a name, which is a text, and arguments, which are an object",
      );
    const find = (fresh: boolean) => toolbox.find(name, live(), fresh);
    const tool = (await find(false)) ?? (await find(true));
    if (tool === undefined) return unknownToolReply(name);
    if (tool.withheld !== null) return refusalReply(withheldToolRefusal(tool), { ...tool, item: {} });
    const { annotations } = tool.item;
    const call: UpstreamCall = {
      upstream: tool.upstream,
      method: "tools/call",
      params: {
        name: tool.name,
        ...(params["arguments"] === undefined ? {} : { arguments: given }),
        ...(isObject(task) && readTaskSupport(tool.item) === "required" ? { task: taskLifetime(task) } : {}),
        _meta: readMeta(params),
      },
      id,
      operation: tool.name,
      decidedParams: given,
      headers: tool.upstream.era === "modern" ? paramHeaders(tool.item["inputSchema"], given) : {},
      context: { mcp: { ...(isObject(annotations) ? { annotations } : {}), definition: tool.digest } },
      async recheck(held) {
        // Meanwhile the server may have said otherwise, and to nobody.
        const now = await find(held).catch(() => undefined);
        if (now?.upstream !== tool.upstream || now.upstream.closed !== null)
          return serverGoneRefusal(tool.upstream.config.name, "was lost while the call waited");
        return now.digest === tool.digest && now.withheld === null
          ? null
          : withheldToolRefusal({ ...now, withheld: now.withheld ?? "changed" });
      },
    };
    return governed(call, tool, caller);
  }

  /** Of a name that no tool has now. One that was there is told to be gone, and not to have never been. */
  function unknownToolReply(name: string): Reply {
    const owner = toolbox.serverOf(name);
    // As a result: clients show a model the errors of tools, and not those of the protocol.
    if (owner === undefined) {
      const why = `There is no tool "${clipText(name, 200)}"; list the tools to see which there are.`;
      return { result: refusalToolResult(proxyRefusal(why, "TOOL_UNKNOWN"), false) };
    }
    const isThere = live().some(({ config }) => config.name === owner);
    return {
      result: refusalToolResult(
        isThere
          ? proxyRefusal(`The server "${owner}" does not have this tool any more; list the tools again.`, "TOOL_GONE")
          : serverGoneRefusal(owner, "is not there now"),
        false,
      ),
    };
  }

  /** What is left out here can be called by its name all the same, and is decided then. */
  async function listTools(caller: Caller): Promise<Reply> {
    const all = await toolbox.shown(live());
    const hidden = await Promise.all(all.map((tool) => isHidden(tool, caller.signal)));
    const withTasks = isObject(caller.capabilities["tasks"]);
    return {
      result: { tools: all.filter((_, i) => hidden[i] === false).map((tool) => toClientTool(tool, withTasks)) },
    };
  }

  const standIns = new Map(
    Object.entries(LIST_METHODS).map(([method, key]) => [
      method,
      createListCache<ListedItem>(
        ({ item }) => JSON.stringify(item),
        () => listChanged(CAPABILITY_OF_LIST[key] as string),
        log,
      ),
    ]),
  );

  /** Whose a name or an address is, every server is asked for; a list that is only shown waits for no slow one. */
  async function listItems(method: string, caller: ListRequester, isShown = false): Promise<ListedItem[]> {
    const key = LIST_METHODS[method] as string;
    const having = live().filter(({ capabilities }) => isObject(capabilities[CAPABILITY_OF_LIST[key] as string]));
    const list = async (upstream: Upstream, asking: ListRequester): Promise<ListedItem[]> =>
      (await listAllPages(upstream, method, key, asking)).map((item) => ({ upstream, item }));
    const standIn = isShown && having.length > 1 ? standIns.get(method) : undefined;
    if (standIn === undefined) return listFromEach(having, (upstream) => list(upstream, caller), log);
    // Not the client's signal: what comes late serves its next request.
    const asking = { signal: AbortSignal.timeout(LIST_TIMEOUT_MS), capabilities: caller.capabilities };
    return listFromEach(having, (upstream) => standIn(upstream, list(upstream, asking)), log);
  }

  /** The server that an address is of: the one that lists it, or whose template begins like it. */
  async function findResourceServer(uri: string, of: Caller): Promise<Upstream | null> {
    const caller = withListTimeout(of);
    const having = live().filter(({ capabilities }) => isObject(capabilities["resources"]));
    if (having.length <= 1) return having[0] ?? null;
    const exact = (await listItems("resources/list", caller)).filter(({ item }) => item["uri"] === uri);
    const begins = (template: unknown): boolean =>
      typeof template === "string" && uri.startsWith(template.split("{")[0] as string);
    const owners =
      exact.length > 0
        ? exact
        : (await listItems("resources/templates/list", caller)).filter(({ item }) => begins(item["uriTemplate"]));
    const distinct = new Set(owners.map(({ upstream }) => upstream));
    return distinct.size === 1 ? ([...distinct][0] as Upstream) : null;
  }

  async function routeResource({ id, method, params = {} }: Request, caller: Caller): Promise<Reply> {
    const { uri } = params;
    if (typeof uri !== "string") return errorReply(ERROR_CODE.invalidParams, "the uri is a text");
    const upstream = await findResourceServer(uri, caller);
    if (upstream === null)
      return errorReply(ERROR_CODE.invalidParams, `no server, or more than one, has the resource "${uri}"`);
    return send(
      {
        upstream,
        method,
        params: { uri, _meta: readMeta(params) },
        id,
        operation: method,
        decidedParams: { uri },
        context: {},
      },
      caller,
    );
  }

  async function routePrompt(
    request: Request,
    name: unknown,
    caller: Caller,
    rename: (name: string) => JsonObject,
  ): Promise<Reply> {
    const prompt = assignUniqueNames(await listItems("prompts/list", withListTimeout(caller)), prompts, log).find(
      ({ exposedName: shown }) => shown === name,
    );
    if (prompt === undefined) return errorReply(ERROR_CODE.invalidParams, `there is no prompt "${String(name)}"`);
    const subject = rename(prompt.name);
    const { id, method } = request;
    return send(
      {
        upstream: prompt.upstream,
        method,
        params: { ...subject, _meta: readMeta(request.params) },
        id,
        operation: method,
        decidedParams: subject,
        context: {},
      },
      caller,
    );
  }

  async function routeCompletion(request: Request, caller: Caller): Promise<Reply> {
    const { ref, argument, context } = request.params ?? {};
    const rest = { ...(argument === undefined ? {} : { argument }), ...(context === undefined ? {} : { context }) };
    if (!isObject(ref)) return errorReply(ERROR_CODE.invalidParams, "ref is an object");
    if (ref["type"] === "ref/prompt")
      return routePrompt(request, ref["name"], caller, (name) => ({ ...rest, ref: { ...ref, name } }));
    const upstream = typeof ref["uri"] === "string" ? await findResourceServer(ref["uri"], caller) : null;
    if (upstream === null) return errorReply(ERROR_CODE.invalidParams, "there is nothing of this reference");
    return send(
      {
        upstream,
        method: request.method,
        params: { ref, ...rest, _meta: readMeta(request.params) },
        id: request.id,
        operation: request.method,
        decidedParams: {},
        context: {},
      },
      caller,
    );
  }

  async function route(request: Request, caller: Caller): Promise<Reply> {
    const { method, params } = request;
    if (method === "ping") return { result: {} };
    if (method === "tools/list") return listTools(caller);
    if (method === "prompts/list")
      return {
        result: { prompts: assignUniqueNames(await listItems(method, caller, true), prompts, log).map(toClientItem) },
      };
    if (Object.hasOwn(LIST_METHODS, method))
      return {
        result: { [LIST_METHODS[method] as string]: (await listItems(method, caller, true)).map(({ item }) => item) },
      };
    if (method === "tools/call") return callTool(request, caller);
    if (/^resources\/(?:read|subscribe|unsubscribe)$/.test(method)) return routeResource(request, caller);
    if (method === "prompts/get")
      return routePrompt(request, params?.["name"], caller, (name) => ({
        name,
        ...(params?.["arguments"] === undefined ? {} : { arguments: params["arguments"] }),
      }));
    if (method === "completion/complete") return routeCompletion(request, caller);
    if (method === "logging/setLevel") return setLevel(params ?? {}, live());
    const tasks = tasksOf();
    if (method.startsWith("tasks/") && tasks !== null) return tasks.handle(method, params ?? {}, caller);
    return errorReply(ERROR_CODE.methodNotFound, `"${method}" is not passed on`);
  }

  return route;
}
