/**
 * Lists and finds the tools of all servers under unique names, and compares each definition with the accepted
 * definition.
 */
import { ANSWER_TOOL } from "../decisions/answer-tool.ts";
import { isAuthorityTool } from "../decisions/authority-tools.ts";
import { matchesAny } from "../../../src/domain/policy/compile/glob.ts";
import {
  diffDefinitions,
  digestDefinition,
  digestServerDefinitions,
  INSTRUCTIONS_KEY,
  type AcceptedDefinitions,
  type DefinitionStore,
} from "./accepted-definitions.ts";
import { headerAnnotationFault } from "../transport/http-headers.ts";
import { createListCache, LIST_TIMEOUT_MS, settlesWithin } from "../upstreams/slow-upstreams.ts";
import {
  ListError,
  listAllPages,
  listFromAllServers,
  toClientItem,
  assignUniqueNames,
  type ListedItem,
  type NamedItem,
  type NameAssignments,
} from "../upstreams/merged-lists.ts";
import { isObject, type JsonObject } from "../transport/rpc-message.ts";
import { GOVERNED_METHODS, type ServerConfig } from "../config/server-config.ts";
import { readTaskSupport } from "../session/tasks.ts";
import type { Upstream } from "../upstreams/upstream.ts";

export interface Tool extends NamedItem<ListedItem> {
  /** Digest of the server's current definition. */
  digest: string;
  /** Why the tool cannot be called; null if it can be called. */
  withheld: "new" | "changed" | null;
}

type CheckedTool = Omit<Tool, "name" | "exposedName">;

/**
 * @param changed called when a slow server's tools arrive and differ from the list that was returned without them
 */
export class ToolCatalog {
  private readonly store: DefinitionStore;
  private readonly log: (line: string) => void;
  private readonly listCache: (upstream: Upstream, list: Promise<CheckedTool[]>) => Promise<CheckedTool[]>;
  private readonly lists = new WeakMap<Upstream, Promise<JsonObject[]>>();
  /** The compared tools of each list, valid until the accepted definitions change. */
  private readonly comparisons = new WeakMap<
    JsonObject[],
    { accepted: AcceptedDefinitions | null; tools: CheckedTool[] }
  >();
  private readonly assignments: NameAssignments = new Map();

  constructor(store: DefinitionStore, changed: (upstream: Upstream) => void, log: (line: string) => void) {
    this.store = store;
    this.log = log;
    this.listCache = createListCache<CheckedTool>(({ digest, withheld }) => `${digest} ${withheld}`, changed, log);
  }

  invalidate(upstream: Upstream): void {
    void this.lists.delete(upstream);
  }

  /**
   * Lists the tools for a client. Requests them from all servers. If there are several servers, does not wait for slow
   * servers.
   */
  list(upstreams: readonly Upstream[]): Promise<Tool[]> {
    return this.listUnique(upstreams, (upstream) =>
      upstreams.length === 1
        ? this.checkedTools(upstream, true)
        : this.listCache(upstream, this.checkedTools(upstream, true)),
    );
  }

  /**
   * Finds a tool by the name that clients see; undefined if there is none. For a name that was never listed, waits for
   * every server, because the tool may belong to a slow server.
   */
  async find(exposedName: string, upstreams: readonly Upstream[], refresh: boolean): Promise<Tool | undefined> {
    if (!this.assignments.has(exposedName))
      await this.listUnique(upstreams, (upstream) => this.checkedTools(upstream, refresh));
    const assignment = this.assignments.get(exposedName);
    const upstream = upstreams.find(({ config }) => config.name === assignment?.server);
    if (assignment === undefined || upstream === undefined) return undefined;
    const [tool, ...duplicates] = (await this.checkedTools(upstream, refresh)).filter(
      ({ item }) => item["name"] === assignment.name,
    );
    return tool === undefined || duplicates.length > 0 ? undefined : { ...tool, name: assignment.name, exposedName };
  }

  /**
   * Returns the name of the server that this tool name is assigned to, even if the tool or the server no longer exists.
   */
  serverOf(exposedName: string): string | undefined {
    return this.assignments.get(exposedName)?.server;
  }

  /**
   * Returns a server's instructions if they equal the accepted instructions, otherwise null. Also returns null if the
   * server lists its tools slowly, unless it is the only server.
   */
  async instructions(upstream: Upstream, isOnly: boolean): Promise<string | null> {
    if (upstream.instructions === null) return null;
    let accepted: AcceptedDefinitions | null;
    try {
      if (!isOnly && !(await settlesWithin(this.fetchTools(upstream, false))))
        throw new Error(`the server "${upstream.config.name}" is slow to list its tools`);
      accepted = this.readOrAcceptFirst(upstream, await this.fetchTools(upstream, false));
    } catch (error) {
      this.log(`${error instanceof Error ? error.message : String(error)}; the proxy leaves out its instructions`);
      return null;
    }
    const current = digestServerDefinitions(upstream.instructions, []).get(INSTRUCTIONS_KEY);
    if (accepted?.tools[INSTRUCTIONS_KEY]?.digest === current?.digest) return upstream.instructions;
    this.log(
      `the instructions of the server "${upstream.config.name}" have changed; the proxy leaves them out until someone accepts them`,
    );
    return null;
  }

  /**
   * Fetches a server's tools. Concurrent callers share one request, so the request has its own timeout instead of a
   * caller's signal.
   */
  private async fetchTools(upstream: Upstream, refresh: boolean): Promise<JsonObject[]> {
    if (!isObject(upstream.capabilities["tools"])) return [];
    const cached = refresh ? undefined : this.lists.get(upstream);
    if (cached !== undefined) return cached;
    const list = listAllPages(
      upstream,
      "tools/list",
      "tools",
      { signal: AbortSignal.timeout(LIST_TIMEOUT_MS) },
      this.log,
    ).then((tools) =>
      // Omit tools with the name of an MCP method, because their calls would be decided as that method, and with the
      // name of the proxy's own tool, which a server could offer instead.
      tools.filter(
        ({ name, inputSchema }) =>
          typeof name === "string" &&
          name !== INSTRUCTIONS_KEY &&
          name !== ANSWER_TOOL &&
          !isAuthorityTool(name) &&
          !(GOVERNED_METHODS as readonly string[]).includes(name) &&
          this.hasValidHeaders(upstream, name, inputSchema),
      ),
    );
    this.lists.set(upstream, list);
    // Evict a failed request, so that the next caller repeats it.
    list.catch(() => this.lists.get(upstream) === list && this.lists.delete(upstream));
    return list;
  }

  /** Clients must not use a tool whose `x-mcp-header` annotations are invalid. */
  private hasValidHeaders({ config }: Upstream, name: string, inputSchema: unknown): boolean {
    const fault = headerAnnotationFault(inputSchema);
    if (fault !== null)
      this.log(`the tool "${name}" of the server "${config.name}" is left out: its x-mcp-header is invalid: ${fault}`);
    return fault === null;
  }

  private readAccepted(config: ServerConfig): AcceptedDefinitions | null {
    try {
      return this.store.read(config);
    } catch (error) {
      throw new ListError(null, (error as Error).message);
    }
  }

  /**
   * Returns the accepted definitions. On first use, accepts the current definitions unless the configuration forbids
   * that.
   */
  private readOrAcceptFirst({ config, instructions }: Upstream, tools: JsonObject[]): AcceptedDefinitions | null {
    const accepted = this.readAccepted(config);
    if (accepted !== null || config.definitions === "accepted") return accepted;
    const first: AcceptedDefinitions = {
      server: config.name,
      accepted_at: new Date().toISOString(),
      action_id: null,
      tools: Object.fromEntries(digestServerDefinitions(instructions, tools)),
    };
    this.store.write(config, first);
    this.log(`the ${tools.length} tools of the server "${config.name}" are new, and were accepted on first use`);
    return first;
  }

  private async checkedTools(upstream: Upstream, refresh: boolean): Promise<CheckedTool[]> {
    const listed = await this.fetchTools(upstream, refresh);
    const accepted = this.readOrAcceptFirst(upstream, listed);
    const cached = this.comparisons.get(listed);
    if (cached !== undefined && cached.accepted === accepted) return cached.tools;
    const changes = diffDefinitions(accepted, digestServerDefinitions(null, listed));
    const changeKinds = new Map(changes.map(({ name, kind }) => [name, kind]));
    const tools = listed
      .filter(({ name }) => !matchesAny(upstream.config.hide, name as string))
      .map((item) => ({
        upstream,
        item,
        digest: digestDefinition(item).digest,
        withheld: (changeKinds.get(item["name"] as string) ?? null) as Tool["withheld"],
      }));
    this.comparisons.set(listed, { accepted, tools });
    return tools;
  }

  private async listUnique(
    upstreams: readonly Upstream[],
    list: (upstream: Upstream) => Promise<CheckedTool[]>,
  ): Promise<Tool[]> {
    return assignUniqueNames(await listFromAllServers(upstreams, list, this.log), this.assignments, this.log);
  }
}

/** Returns the definition that a client sees. For a withheld tool, it contains no text from the server. */
export function toClientTool(tool: Tool, withTasks: boolean): JsonObject {
  const { exposedName, withheld } = tool;
  if (withheld === null) {
    // Declare task support for every tool, because the proxy's task waits for the approval.
    const { execution } = tool.item;
    if (!withTasks || readTaskSupport(tool.item) === "required") return toClientItem(tool);
    return { ...toClientItem(tool), execution: { ...(isObject(execution) ? execution : {}), taskSupport: "optional" } };
  }
  return {
    name: exposedName,
    description:
      withheld === "changed"
        ? "Not available: the definition has changed since it was accepted. Calls are refused until someone accepts it."
        : "Not available: the tool is new. Calls are refused until someone accepts its definition.",
    inputSchema: { type: "object" },
  };
}
