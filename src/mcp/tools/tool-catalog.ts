/** The tools of all servers: as they were accepted, under names of their own. */
import { matchesAny } from "../../domain/policy/compile/glob.ts";
import {
  diffDefinitions,
  toDefinition,
  toDefinitions,
  INSTRUCTIONS_KEY,
  type AcceptedDefinitions,
  type DefinitionStore,
} from "./accepted-definitions.ts";
import { createListCache, LIST_TIMEOUT_MS, settlesWithin } from "../upstreams/slow-upstreams.ts";
import {
  ListError,
  listAllPages,
  listFromEach,
  toClientItem,
  assignUniqueNames,
  type ListedItem,
  type NamedItem,
  type NameAssignments,
} from "../upstreams/merged-lists.ts";
import { isObject, type JsonObject } from "../transport/message.ts";
import { GOVERNED_METHODS, type ServerConfig } from "../config/server-config.ts";
import { readTaskSupport } from "../session/tasks.ts";
import type { Upstream } from "../upstreams/upstream.ts";

export interface Tool extends NamedItem<ListedItem> {
  /** Of its definition as the server gives it. */
  digest: string;
  /** Why it is not to be called; null when it may be asked about. */
  withheld: "new" | "changed" | null;
}

type CheckedTool = Omit<Tool, "name" | "exposedName">;

export type ToolCatalog = ReturnType<typeof createToolCatalog>;

/** @param changed is called when a list that was shown without a slow server's tools would be another one now */
export function createToolCatalog(
  store: DefinitionStore,
  changed: (upstream: Upstream) => void,
  log: (line: string) => void,
) {
  const standIn = createListCache<CheckedTool>(({ digest, withheld: held }) => `${digest} ${held}`, changed, log);
  const lists = new WeakMap<Upstream, Promise<JsonObject[]>>();
  /** What was made of a list, as long as the same is accepted. */
  const comparisons = new WeakMap<JsonObject[], { accepted: AcceptedDefinitions | null; tools: CheckedTool[] }>();
  const seen: NameAssignments = new Map();

  /** One request serves all who ask meanwhile, and so it is not bound to one of them. */
  async function fetchTools(upstream: Upstream, fresh: boolean): Promise<JsonObject[]> {
    if (!isObject(upstream.capabilities["tools"])) return [];
    const kept = fresh ? undefined : lists.get(upstream);
    if (kept !== undefined) return kept;
    const list = listAllPages(upstream, "tools/list", "tools", { signal: AbortSignal.timeout(LIST_TIMEOUT_MS) }).then(
      (tools) =>
        // A name that stands for two things would be decided as one and run as the other.
        tools.filter(
          ({ name }) =>
            typeof name === "string" &&
            name !== INSTRUCTIONS_KEY &&
            !(GOVERNED_METHODS as readonly string[]).includes(name),
        ),
    );
    lists.set(upstream, list);
    // A list that did not come is asked for again.
    list.catch(() => lists.get(upstream) === list && lists.delete(upstream));
    return list;
  }

  function readAccepted(config: ServerConfig): AcceptedDefinitions | null {
    try {
      return store.read(config);
    } catch (error) {
      throw new ListError(null, (error as Error).message);
    }
  }

  /** What is accepted of a server. What is seen first is, unless it is configured otherwise. */
  function readOrAcceptFirst({ config, instructions }: Upstream, tools: JsonObject[]): AcceptedDefinitions | null {
    const accepted = readAccepted(config);
    if (accepted !== null || config.definitions === "accepted") return accepted;
    const first: AcceptedDefinitions = {
      server: config.name,
      accepted_at: new Date().toISOString(),
      action_id: null,
      tools: Object.fromEntries(toDefinitions(instructions, tools)),
    };
    store.write(config, first);
    log(
      `the ${tools.length} tools of the server "${config.name}" are seen for the first time, and accepted as they are`,
    );
    return first;
  }

  async function checkedTools(upstream: Upstream, fresh: boolean): Promise<CheckedTool[]> {
    const listed = await fetchTools(upstream, fresh);
    const accepted = readOrAcceptFirst(upstream, listed);
    const kept = comparisons.get(listed);
    if (kept !== undefined && kept.accepted === accepted) return kept.tools;
    const changes = diffDefinitions(accepted, toDefinitions(null, listed));
    const kinds = new Map(changes.map(({ name, kind }) => [name, kind]));
    const tools = listed
      .filter(({ name }) => !matchesAny(upstream.config.hide, name as string))
      .map((item) => ({
        upstream,
        item,
        digest: toDefinition(item).digest,
        withheld: (kinds.get(item["name"] as string) ?? null) as Tool["withheld"],
      }));
    comparisons.set(listed, { accepted, tools });
    return tools;
  }

  async function all(
    upstreams: readonly Upstream[],
    list: (upstream: Upstream) => Promise<CheckedTool[]>,
  ): Promise<Tool[]> {
    return assignUniqueNames(await listFromEach(upstreams, list, log), seen, log);
  }

  return {
    invalidate: (upstream: Upstream): void => void lists.delete(upstream),
    /** What a client is shown: the servers are asked, and a slow one holds up no other. */
    shown: (upstreams: readonly Upstream[]): Promise<Tool[]> =>
      all(upstreams, (upstream) =>
        upstreams.length === 1 ? checkedTools(upstream, true) : standIn(upstream, checkedTools(upstream, true)),
      ),
    /**
     * What a name stands for: since a client has seen it, always the same. Undefined when it is not there. A name that
     * nobody has seen yet waits for every server: it may be the slow one's.
     * @param fresh whether the servers are asked, and not only read from what they said last
     */
    async find(shown: string, upstreams: readonly Upstream[], fresh: boolean): Promise<Tool | undefined> {
      if (!seen.has(shown)) await all(upstreams, (upstream) => checkedTools(upstream, fresh));
      const thing = seen.get(shown);
      const upstream = upstreams.find(({ config }) => config.name === thing?.server);
      if (thing === undefined || upstream === undefined) return undefined;
      const [tool, ...others] = (await checkedTools(upstream, fresh)).filter(({ item }) => item["name"] === thing.name);
      return tool === undefined || others.length > 0 ? undefined : { ...tool, name: thing.name, exposedName: shown };
    },
    /** The server whose tool was last seen under this name; it may be gone, or have it no more. */
    serverOf: (shown: string): string | undefined => seen.get(shown)?.server,
    /** The instructions of a server's greeting, where they are what was accepted. Those of a server that is slow to list its tools are left out, unless it is the only one. */
    async instructions(upstream: Upstream, isOnly: boolean): Promise<string | null> {
      if (upstream.instructions === null) return null;
      let accepted: AcceptedDefinitions | null;
      try {
        if (!isOnly && !(await settlesWithin(fetchTools(upstream, false))))
          throw new Error(`the server "${upstream.config.name}" is slow to give its list`);
        accepted = readOrAcceptFirst(upstream, await fetchTools(upstream, false));
      } catch (error) {
        log(`${error instanceof Error ? error.message : String(error)}; its instructions are left out`);
        return null;
      }
      const now = toDefinitions(upstream.instructions, []).get(INSTRUCTIONS_KEY);
      if (accepted?.tools[INSTRUCTIONS_KEY]?.digest === now?.digest) return upstream.instructions;
      log(
        `the instructions of the server "${upstream.config.name}" have changed, and are left out until they are accepted`,
      );
      return null;
    },
  };
}

/** What a client is shown of a tool. Of one that is held back it reads nothing that the server has written. */
export function toClientTool(tool: Tool, withTasks: boolean): JsonObject {
  const { exposedName: shown, withheld: held } = tool;
  if (held === null) {
    // Whatever the server says: it is the proxy's task that waits.
    const { execution } = tool.item;
    if (!withTasks || readTaskSupport(tool.item) === "required") return toClientItem(tool);
    return { ...toClientItem(tool), execution: { ...(isObject(execution) ? execution : {}), taskSupport: "optional" } };
  }
  return {
    name: shown,
    description:
      held === "changed"
        ? "Not available: its definition has changed since it was accepted. Calls are refused until someone accepts it."
        : "Not available: it is new, and nobody has accepted its definition yet. Calls are refused until someone does.",
    inputSchema: { type: "object" },
  };
}
