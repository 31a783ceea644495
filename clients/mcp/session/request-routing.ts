/** Chooses the server for each request of a client, and forwards the request. */
import type { Caller } from "../clients/caller.ts";
import { refusalReply, type UpstreamCall } from "../decisions/governed-call.ts";
import { ANSWER_TOOL, ANSWER_TOOL_DEFINITION } from "../decisions/answer-tool.ts";
import {
  annotateTools,
  AUTHORITY_TOOL_DEFINITIONS,
  type AuthorityCalls,
  callAuthorityTool,
  isAuthorityTool,
} from "../decisions/authority-tools.ts";
import { paramHeaders } from "../transport/http-headers.ts";
import { createListCache, LIST_TIMEOUT_MS } from "../upstreams/slow-upstreams.ts";
import {
  listAllPages,
  listFromAllServers,
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
} from "../transport/rpc-message.ts";
import { clipText } from "../../../src/domain/text.ts";
import {
  refusalToolResult,
  serverDisconnectedRefusal,
  withheldToolRefusal,
  proxyRefusal,
} from "../decisions/refusal-result.ts";
import { readTaskSupport, type TaskStore } from "./tasks.ts";
import { toClientTool, type Tool, type ToolCatalog } from "../tools/tool-catalog.ts";
import type { Upstream } from "../upstreams/upstream.ts";

/** The functions of `ClientSession` that the router calls. */
interface RoutingDependencies {
  live(): Upstream[];
  /** Notifies the client that a list of this kind has changed. */
  listChanged(kind: string): void;
  log(line: string): void;
  /** Resolves to true if lists must omit the tool, because policies always deny it. */
  isHidden(tool: Tool, signal: AbortSignal): Promise<boolean>;
  toolCatalog: ToolCatalog;
  /** Null if the client does not support tasks. */
  tasks(): TaskStore | null;
  send(call: UpstreamCall, caller: Caller): Promise<Reply>;
  setLevel(params: JsonObject, live: readonly Upstream[]): Promise<Reply>;
  /** Runs a tool call. A tool call always requires a decision; `open` has no effect on it. */
  tool(call: UpstreamCall, tool: Tool, caller: Caller): Promise<Reply>;
  /** Whether clients see the proxy's tool for answering approvers. */
  offersAnswers(): boolean;
  /** The requests of the proxy's tools about authority; null if the configuration does not offer them. */
  authority: AuthorityCalls | null;
  /** Calls the proxy's tool for answering approvers. Resolves to its result. */
  answer(input: JsonObject, signal: AbortSignal): Promise<JsonObject>;
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

/** Copies only the member `ttl` of a task request. */
const taskLifetime = ({ ttl }: JsonObject): JsonObject => (typeof ttl === "number" ? { ttl } : {});

/** Adds a timeout for lists that the proxy itself needs, so that a hanging server does not block the request. */
const withListTimeout = ({ signal, capabilities }: Caller): ListRequester => ({
  signal: AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]),
  capabilities,
});

/** Handles requests. Throws ListError and ResponseLostError. */
export class RequestRouter {
  private readonly dependencies: RoutingDependencies;
  private readonly promptNames: NameAssignments = new Map();
  private readonly listCaches: Map<string, (upstream: Upstream, list: Promise<ListedItem[]>) => Promise<ListedItem[]>>;

  constructor(dependencies: RoutingDependencies) {
    this.dependencies = dependencies;
    this.listCaches = new Map(
      Object.entries(LIST_METHODS).map(([method, key]) => [
        method,
        createListCache<ListedItem>(
          ({ item }) => JSON.stringify(item),
          () => dependencies.listChanged(CAPABILITY_OF_LIST[key] as string),
          dependencies.log,
        ),
      ]),
    );
  }

  async route(request: Request, caller: Caller): Promise<Reply> {
    const { method, params } = request;
    if (method === "ping") return { result: {} };
    if (method === "tools/list") return this.listTools(caller);
    if (method === "prompts/list")
      return {
        result: {
          prompts: assignUniqueNames(
            await this.listItems(method, caller, true),
            this.promptNames,
            this.dependencies.log,
          ).map(toClientItem),
        },
      };
    if (Object.hasOwn(LIST_METHODS, method))
      return {
        result: {
          [LIST_METHODS[method] as string]: (await this.listItems(method, caller, true)).map(({ item }) => item),
        },
      };
    if (method === "tools/call") return this.callTool(request, caller);
    if (/^resources\/(?:read|subscribe|unsubscribe)$/.test(method)) return this.routeResource(request, caller);
    if (method === "prompts/get")
      return this.routePrompt(request, params?.["name"], caller, (name) => ({
        name,
        ...(params?.["arguments"] === undefined ? {} : { arguments: params["arguments"] }),
      }));
    if (method === "completion/complete") return this.routeCompletion(request, caller);
    if (method === "logging/setLevel") return this.dependencies.setLevel(params ?? {}, this.dependencies.live());
    const tasks = this.dependencies.tasks();
    if (method.startsWith("tasks/") && tasks !== null) return tasks.handle(method, params ?? {}, caller);
    return errorReply(ERROR_CODE.methodNotFound, `"${method}" is not supported by the proxy`);
  }

  private async callTool({ id, params = {} }: Request, caller: Caller): Promise<Reply> {
    const { name, arguments: toolArguments = {}, task } = params;
    const tasks = this.dependencies.tasks();
    if (isObject(task) && tasks !== null && caller.maxWait === undefined)
      return tasks.begin(task, caller, (of) => this.callTool({ id, params } as Request, of));
    if (typeof name !== "string" || !isObject(toolArguments))
      return errorReply(ERROR_CODE.invalidParams, "tools/call needs name, a string, and arguments, an object");
    const { authority } = this.dependencies;
    if (authority !== null && isAuthorityTool(name))
      return { result: await callAuthorityTool(authority, name, toolArguments, caller.signal) };
    if (name === ANSWER_TOOL && this.dependencies.offersAnswers())
      return { result: await this.dependencies.answer(toolArguments, caller.signal) };
    const findTool = (fresh: boolean) => this.dependencies.toolCatalog.find(name, this.dependencies.live(), fresh);
    const tool = (await findTool(false)) ?? (await findTool(true));
    if (tool === undefined) return this.unknownToolReply(name);
    if (tool.withheld !== null) return refusalReply(withheldToolRefusal(tool), { ...tool, item: {} });
    const { annotations } = tool.item;
    const call: UpstreamCall = {
      upstream: tool.upstream,
      method: "tools/call",
      params: {
        name: tool.name,
        ...(params["arguments"] === undefined ? {} : { arguments: toolArguments }),
        ...(isObject(task) && readTaskSupport(tool.item) === "required" ? { task: taskLifetime(task) } : {}),
        _meta: readMeta(params),
      },
      id,
      operation: tool.name,
      decidedParams: toolArguments,
      headers: tool.upstream.era === "modern" ? paramHeaders(tool.item["inputSchema"], toolArguments) : {},
      withArguments: (changed) => ({
        params: { ...call.params, arguments: changed },
        headers: tool.upstream.era === "modern" ? paramHeaders(tool.item["inputSchema"], changed) : {},
      }),
      context: { mcp: { ...(isObject(annotations) ? { annotations } : {}), definition: tool.digest } },
      async recheck(refresh) {
        // The server may have changed the tool since it was found, without a notification.
        const current = await findTool(refresh).catch(() => undefined);
        if (current?.upstream !== tool.upstream || current.upstream.closed !== null)
          return serverDisconnectedRefusal(tool.upstream.config.name, "disconnected while the call waited");
        return current.digest === tool.digest && current.withheld === null
          ? null
          : withheldToolRefusal({ ...current, withheld: current.withheld ?? "changed" });
      },
    };
    return this.dependencies.tool(call, tool, caller);
  }

  /** Refuses a call of an unknown tool. If the tool existed earlier, the reply states that it no longer exists. */
  private unknownToolReply(name: string): Reply {
    const serverName = this.dependencies.toolCatalog.serverOf(name);
    // Reply with a tool result, because clients show tool errors to models, but not protocol errors.
    if (serverName === undefined) {
      const reason = `There is no tool "${clipText(name, 200)}"; call tools/list to see the available tools.`;
      return { result: refusalToolResult(proxyRefusal(reason, "TOOL_UNKNOWN"), false) };
    }
    const isThere = this.dependencies.live().some(({ config }) => config.name === serverName);
    return {
      result: refusalToolResult(
        isThere
          ? proxyRefusal(`The server "${serverName}" no longer has this tool; call tools/list again.`, "TOOL_GONE")
          : serverDisconnectedRefusal(serverName, "is not connected"),
        false,
      ),
    };
  }

  /**
   * Lists the tools, except tools that policies always deny. A call of an omitted tool by its name is decided like any
   * other call.
   */
  private async listTools(caller: Caller): Promise<Reply> {
    const tools = await this.dependencies.toolCatalog.list(this.dependencies.live());
    const hidden = await Promise.all(tools.map((tool) => this.dependencies.isHidden(tool, caller.signal)));
    const withTasks = isObject(caller.capabilities["tasks"]);
    const visible = tools.filter((_, i) => hidden[i] === false);
    const { authority } = this.dependencies;
    const shown = visible.map((tool) => ({
      item: toClientTool(tool, withTasks),
      tool: tool.upstream.config.tool,
      operation: tool.name,
    }));
    const annotated =
      authority === null ? shown.map(({ item }) => item) : await annotateTools(authority, shown, caller.signal);
    const own = [
      ...(authority === null ? [] : AUTHORITY_TOOL_DEFINITIONS),
      ...(this.dependencies.offersAnswers() ? [ANSWER_TOOL_DEFINITION] : []),
    ];
    return { result: { tools: [...annotated, ...own] } };
  }

  /**
   * Lists the items of all servers. A list for display (`isShown`) does not wait for slow servers. Other lists wait for
   * every server, to find the owner of a name or URI.
   */
  private async listItems(method: string, caller: ListRequester, isShown: boolean = false): Promise<ListedItem[]> {
    const key = LIST_METHODS[method] as string;
    const capable = this.dependencies
      .live()
      .filter(({ capabilities }) => isObject(capabilities[CAPABILITY_OF_LIST[key] as string]));
    const list = async (upstream: Upstream, requester: ListRequester): Promise<ListedItem[]> =>
      (await listAllPages(upstream, method, key, requester, this.dependencies.log)).map((item) => ({ upstream, item }));
    const listCache = isShown && capable.length > 1 ? this.listCaches.get(method) : undefined;
    if (listCache === undefined)
      return listFromAllServers(capable, (upstream) => list(upstream, caller), this.dependencies.log);
    // Do not use the client's signal: a late list is cached for the client's next request.
    const requester = { signal: AbortSignal.timeout(LIST_TIMEOUT_MS), capabilities: caller.capabilities };
    return listFromAllServers(
      capable,
      (upstream) => listCache(upstream, list(upstream, requester)),
      this.dependencies.log,
    );
  }

  /**
   * Returns the server of a resource: the server whose list contains the URI, or whose list has a template with the
   * same beginning. Null unless exactly one server matches. If only one server has resources, returns it without a
   * check.
   */
  private async findResourceServer(uri: string, of: Caller): Promise<Upstream | null> {
    const caller = withListTimeout(of);
    const capable = this.dependencies.live().filter(({ capabilities }) => isObject(capabilities["resources"]));
    if (capable.length <= 1) return capable[0] ?? null;
    const exact = (await this.listItems("resources/list", caller)).filter(({ item }) => item["uri"] === uri);
    const matchesTemplate = (template: unknown): boolean =>
      typeof template === "string" && uri.startsWith(template.split("{")[0] as string);
    const owners =
      exact.length > 0
        ? exact
        : (await this.listItems("resources/templates/list", caller)).filter(({ item }) =>
            matchesTemplate(item["uriTemplate"]),
          );
    const distinct = new Set(owners.map(({ upstream }) => upstream));
    return distinct.size === 1 ? ([...distinct][0] as Upstream) : null;
  }

  private async routeResource({ id, method, params = {} }: Request, caller: Caller): Promise<Reply> {
    const { uri } = params;
    if (typeof uri !== "string") return errorReply(ERROR_CODE.invalidParams, "uri must be a string");
    const upstream = await this.findResourceServer(uri, caller);
    if (upstream === null)
      return errorReply(ERROR_CODE.invalidParams, `no server, or more than one, has the resource "${uri}"`);
    return this.dependencies.send(
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

  private async routePrompt(
    request: Request,
    name: unknown,
    caller: Caller,
    rename: (name: string) => JsonObject,
  ): Promise<Reply> {
    const prompt = assignUniqueNames(
      await this.listItems("prompts/list", withListTimeout(caller)),
      this.promptNames,
      this.dependencies.log,
    ).find(({ exposedName: shown }) => shown === name);
    if (prompt === undefined) return errorReply(ERROR_CODE.invalidParams, `there is no prompt "${String(name)}"`);
    const subject = rename(prompt.name);
    const { id, method } = request;
    return this.dependencies.send(
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

  private async routeCompletion(request: Request, caller: Caller): Promise<Reply> {
    const { ref, argument, context } = request.params ?? {};
    const rest = { ...(argument === undefined ? {} : { argument }), ...(context === undefined ? {} : { context }) };
    if (!isObject(ref)) return errorReply(ERROR_CODE.invalidParams, "ref must be an object");
    if (ref["type"] === "ref/prompt")
      return this.routePrompt(request, ref["name"], caller, (name) => ({ ...rest, ref: { ...ref, name } }));
    const upstream = typeof ref["uri"] === "string" ? await this.findResourceServer(ref["uri"], caller) : null;
    if (upstream === null) return errorReply(ERROR_CODE.invalidParams, "no server has the resource of ref");
    return this.dependencies.send(
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
}
