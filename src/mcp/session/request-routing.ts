/** Which server a request of the client is for, and what it is sent. */
import type { Caller } from "../clients/caller.ts";
import { refuse, type Call } from "../decisions/governed-call.ts";
import { paramHeaders } from "../transport/http-headers.ts";
import { createStandIn, PATIENCE } from "../upstreams/slow-upstreams.ts";
import {
  listAll,
  listEach,
  shownItem,
  withOwnNames,
  type Asking,
  type Listed,
  type Seen,
} from "../upstreams/merged-lists.ts";
import { CODE, failure, isObject, metaOf, type JsonObject, type Reply, type Request } from "../transport/message.ts";
import { clipText } from "../../domain/text.ts";
import { asToolResult, goneRefusal, heldRefusal, refusalBecause } from "../decisions/refusal.ts";
import { taskSupportOf, type Tasks } from "./tasks.ts";
import { shownTool, type Tool, type Toolbox } from "../tools/tool-catalog.ts";
import type { Upstream } from "../upstreams/upstream.ts";

/** What a session lets its routes do. */
export interface Servers {
  live(): Upstream[];
  /** Tells the client that a list of this kind is another one now. */
  listChanged(kind: string): void;
  log(line: string): void;
  /** Whether a tool is left out of lists, because policies always deny it. */
  isHidden(tool: Tool, signal: AbortSignal): Promise<boolean>;
  toolbox: Toolbox;
  /** Null where the client knows of none. */
  tasks(): Tasks | null;
  send(call: Call, caller: Caller): Promise<Reply>;
  setLevel(params: JsonObject, live: readonly Upstream[]): Promise<Reply>;
  /** A tool's call: decided, whatever is open. */
  tool(call: Call, tool: Tool, caller: Caller): Promise<Reply>;
}

const LISTS: Readonly<Record<string, string>> = {
  "prompts/list": "prompts",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
};
const CAPABILITY: Readonly<Record<string, string>> = {
  prompts: "prompts",
  resources: "resources",
  resourceTemplates: "resources",
};

/** How long a task is kept, and nothing else that could stand there. */
const lifeOf = ({ ttl }: JsonObject): JsonObject => (typeof ttl === "number" ? { ttl } : {});

/** A list that is asked for on a client's behalf: a server that hangs holds it up no longer than this. */
const patiently = ({ signal, capabilities }: Caller): Asking => ({
  signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]),
  capabilities,
});

/** @returns what deals with one request. It throws ListFault and RequestLost. */
export function createRoutes({
  live,
  listChanged,
  log,
  isHidden,
  toolbox,
  tasks: tasksOf,
  send,
  setLevel,
  tool: governed,
}: Servers): (request: Request, caller: Caller) => Promise<Reply> {
  const prompts: Seen = new Map();

  async function callTool({ id, params = {} }: Request, caller: Caller): Promise<Reply> {
    const { name, arguments: given = {}, task } = params;
    const tasks = tasksOf();
    if (isObject(task) && tasks !== null && caller.patience === undefined)
      return tasks.begin(task, caller, (of) => callTool({ id, params } as Request, of));
    if (typeof name !== "string" || !isObject(given))
      return failure(CODE.invalidParams, "tools/call has a name, which is a text, and arguments, which are an object");
    const find = (fresh: boolean) => toolbox.named(name, live(), fresh);
    const tool = (await find(false)) ?? (await find(true));
    if (tool === undefined) return missing(name);
    if (tool.held !== null) return refuse(heldRefusal(tool), { ...tool, item: {} });
    const { annotations } = tool.item;
    const call: Call = {
      upstream: tool.upstream,
      method: "tools/call",
      params: {
        name: tool.name,
        ...(params["arguments"] === undefined ? {} : { arguments: given }),
        ...(isObject(task) && taskSupportOf(tool.item) === "required" ? { task: lifeOf(task) } : {}),
        _meta: metaOf(params),
      },
      id,
      operation: tool.name,
      subject: given,
      headers: tool.upstream.era === "modern" ? paramHeaders(tool.item["inputSchema"], given) : {},
      context: { mcp: { ...(isObject(annotations) ? { annotations } : {}), definition: tool.digest } },
      async stands(held) {
        // Meanwhile the server may have said otherwise, and to nobody.
        const now = await find(held).catch(() => undefined);
        if (now?.upstream !== tool.upstream || now.upstream.closed !== null)
          return goneRefusal(tool.upstream.config.name, "was lost while the call waited");
        return now.digest === tool.digest && now.held === null
          ? null
          : heldRefusal({ ...now, held: now.held ?? "changed" });
      },
    };
    return governed(call, tool, caller);
  }

  /** Of a name that no tool has now. One that was there is told to be gone, and not to have never been. */
  function missing(name: string): Reply {
    const owner = toolbox.ownerOf(name);
    // As a result: clients show a model the errors of tools, and not those of the protocol.
    if (owner === undefined) {
      const why = `There is no tool "${clipText(name, 200)}"; list the tools to see which there are.`;
      return { result: asToolResult(refusalBecause(why, "TOOL_UNKNOWN"), false) };
    }
    const isThere = live().some(({ config }) => config.name === owner);
    return {
      result: asToolResult(
        isThere
          ? refusalBecause(`The server "${owner}" does not have this tool any more; list the tools again.`, "TOOL_GONE")
          : goneRefusal(owner, "is not there now"),
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
      result: { tools: all.filter((_, i) => hidden[i] === false).map((tool) => shownTool(tool, withTasks)) },
    };
  }

  const standIns = new Map(
    Object.entries(LISTS).map(([method, key]) => [
      method,
      createStandIn<Listed>(
        ({ item }) => JSON.stringify(item),
        () => listChanged(CAPABILITY[key] as string),
        log,
      ),
    ]),
  );

  /** Whose a name or an address is, every server is asked for; a list that is only shown waits for no slow one. */
  async function listed(method: string, caller: Asking, isShown = false): Promise<Listed[]> {
    const key = LISTS[method] as string;
    const having = live().filter(({ capabilities }) => isObject(capabilities[CAPABILITY[key] as string]));
    const list = async (upstream: Upstream, asking: Asking): Promise<Listed[]> =>
      (await listAll(upstream, method, key, asking)).map((item) => ({ upstream, item }));
    const standIn = isShown && having.length > 1 ? standIns.get(method) : undefined;
    if (standIn === undefined) return listEach(having, (upstream) => list(upstream, caller), log);
    // Not the client's signal: what comes late serves its next request.
    const asking = { signal: AbortSignal.timeout(PATIENCE), capabilities: caller.capabilities };
    return listEach(having, (upstream) => standIn(upstream, list(upstream, asking)), log);
  }

  /** The server that an address is of: the one that lists it, or whose template begins like it. */
  async function serverOf(uri: string, of: Caller): Promise<Upstream | null> {
    const caller = patiently(of);
    const having = live().filter(({ capabilities }) => isObject(capabilities["resources"]));
    if (having.length <= 1) return having[0] ?? null;
    const exact = (await listed("resources/list", caller)).filter(({ item }) => item["uri"] === uri);
    const begins = (template: unknown): boolean =>
      typeof template === "string" && uri.startsWith(template.split("{")[0] as string);
    const owners =
      exact.length > 0
        ? exact
        : (await listed("resources/templates/list", caller)).filter(({ item }) => begins(item["uriTemplate"]));
    const distinct = new Set(owners.map(({ upstream }) => upstream));
    return distinct.size === 1 ? ([...distinct][0] as Upstream) : null;
  }

  async function ofResource({ id, method, params = {} }: Request, caller: Caller): Promise<Reply> {
    const { uri } = params;
    if (typeof uri !== "string") return failure(CODE.invalidParams, "the uri is a text");
    const upstream = await serverOf(uri, caller);
    if (upstream === null) return failure(CODE.invalidParams, `no server, or more than one, has the resource "${uri}"`);
    return send(
      {
        upstream,
        method,
        params: { uri, _meta: metaOf(params) },
        id,
        operation: method,
        subject: { uri },
        context: {},
      },
      caller,
    );
  }

  async function ofPrompt(
    request: Request,
    name: unknown,
    caller: Caller,
    rename: (name: string) => JsonObject,
  ): Promise<Reply> {
    const prompt = withOwnNames(await listed("prompts/list", patiently(caller)), prompts, log).find(
      ({ shown }) => shown === name,
    );
    if (prompt === undefined) return failure(CODE.invalidParams, `there is no prompt "${String(name)}"`);
    const subject = rename(prompt.name);
    const { id, method } = request;
    return send(
      {
        upstream: prompt.upstream,
        method,
        params: { ...subject, _meta: metaOf(request.params) },
        id,
        operation: method,
        subject,
        context: {},
      },
      caller,
    );
  }

  async function complete(request: Request, caller: Caller): Promise<Reply> {
    const { ref, argument, context } = request.params ?? {};
    const rest = { ...(argument === undefined ? {} : { argument }), ...(context === undefined ? {} : { context }) };
    if (!isObject(ref)) return failure(CODE.invalidParams, "ref is an object");
    if (ref["type"] === "ref/prompt")
      return ofPrompt(request, ref["name"], caller, (name) => ({ ...rest, ref: { ...ref, name } }));
    const upstream = typeof ref["uri"] === "string" ? await serverOf(ref["uri"], caller) : null;
    if (upstream === null) return failure(CODE.invalidParams, "there is nothing of this reference");
    return send(
      {
        upstream,
        method: request.method,
        params: { ref, ...rest, _meta: metaOf(request.params) },
        id: request.id,
        operation: request.method,
        subject: {},
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
      return { result: { prompts: withOwnNames(await listed(method, caller, true), prompts, log).map(shownItem) } };
    if (Object.hasOwn(LISTS, method))
      return { result: { [LISTS[method] as string]: (await listed(method, caller, true)).map(({ item }) => item) } };
    if (method === "tools/call") return callTool(request, caller);
    if (/^resources\/(?:read|subscribe|unsubscribe)$/.test(method)) return ofResource(request, caller);
    if (method === "prompts/get")
      return ofPrompt(request, params?.["name"], caller, (name) => ({
        name,
        ...(params?.["arguments"] === undefined ? {} : { arguments: params["arguments"] }),
      }));
    if (method === "completion/complete") return complete(request, caller);
    if (method === "logging/setLevel") return setLevel(params ?? {}, live());
    const tasks = tasksOf();
    if (method.startsWith("tasks/") && tasks !== null) return tasks.handle(method, params ?? {}, caller);
    return failure(CODE.methodNotFound, `"${method}" is not passed on`);
  }

  return route;
}
