/** The tools of all servers: as they were accepted, under names of their own. */
import { matchesAny } from "../../domain/policy/compile/glob.ts";
import {
  changesSince,
  definitionOf,
  definitionsOf,
  INSTRUCTIONS,
  type Accepted,
  type DefinitionStore,
} from "./accepted-definitions.ts";
import { createStandIn, PATIENCE, settlesPromptly } from "../upstreams/slow-upstreams.ts";
import {
  ListFault,
  listAll,
  listEach,
  shownItem,
  withOwnNames,
  type Listed,
  type Named,
  type Seen,
} from "../upstreams/merged-lists.ts";
import { isObject, type JsonObject } from "../transport/message.ts";
import { DECIDED_METHODS, type ServerConfig } from "../config/server-config.ts";
import { taskSupportOf } from "../session/tasks.ts";
import type { Upstream } from "../upstreams/upstream.ts";

export interface Tool extends Named<Listed> {
  /** Of its definition as the server gives it. */
  digest: string;
  /** Why it is not to be called; null when it may be asked about. */
  held: "new" | "changed" | null;
}

type Pinned = Omit<Tool, "name" | "shown">;

export type Toolbox = ReturnType<typeof createToolbox>;

/** @param changed is called when a list that was shown without a slow server's tools would be another one now */
export function createToolbox(
  store: DefinitionStore,
  changed: (upstream: Upstream) => void,
  log: (line: string) => void,
) {
  const standIn = createStandIn<Pinned>(({ digest, held }) => `${digest} ${held}`, changed, log);
  const lists = new WeakMap<Upstream, Promise<JsonObject[]>>();
  /** What was made of a list, as long as the same is accepted. */
  const compared = new WeakMap<JsonObject[], { accepted: Accepted | null; tools: Pinned[] }>();
  const seen: Seen = new Map();

  /** One request serves all who ask meanwhile, and so it is not bound to one of them. */
  async function rawTools(upstream: Upstream, fresh: boolean): Promise<JsonObject[]> {
    if (!isObject(upstream.capabilities["tools"])) return [];
    const kept = fresh ? undefined : lists.get(upstream);
    if (kept !== undefined) return kept;
    const list = listAll(upstream, "tools/list", "tools", { signal: AbortSignal.timeout(PATIENCE) }).then((all) =>
      // A name that stands for two things would be decided as one and run as the other.
      all.filter(
        ({ name }) =>
          typeof name === "string" && name !== INSTRUCTIONS && !(DECIDED_METHODS as readonly string[]).includes(name),
      ),
    );
    lists.set(upstream, list);
    // A list that did not come is asked for again.
    list.catch(() => lists.get(upstream) === list && lists.delete(upstream));
    return list;
  }

  function readAccepted(config: ServerConfig): Accepted | null {
    try {
      return store.read(config);
    } catch (error) {
      throw new ListFault(null, (error as Error).message);
    }
  }

  /** What is accepted of a server. What is seen first is, unless it is configured otherwise. */
  function acceptedOf({ config, instructions }: Upstream, tools: JsonObject[]): Accepted | null {
    const accepted = readAccepted(config);
    if (accepted !== null || config.definitions === "accepted") return accepted;
    const first: Accepted = {
      server: config.name,
      accepted_at: new Date().toISOString(),
      action_id: null,
      tools: Object.fromEntries(definitionsOf(instructions, tools)),
    };
    store.write(config, first);
    log(
      `the ${tools.length} tools of the server "${config.name}" are seen for the first time, and accepted as they are`,
    );
    return first;
  }

  async function toolsOf(upstream: Upstream, fresh: boolean): Promise<Pinned[]> {
    const listed = await rawTools(upstream, fresh);
    const accepted = acceptedOf(upstream, listed);
    const kept = compared.get(listed);
    if (kept !== undefined && kept.accepted === accepted) return kept.tools;
    const changes = changesSince(accepted, definitionsOf(null, listed));
    const kinds = new Map(changes.map(({ name, kind }) => [name, kind]));
    const tools = listed
      .filter(({ name }) => !matchesAny(upstream.config.hide, name as string))
      .map((item) => ({
        upstream,
        item,
        digest: definitionOf(item).digest,
        held: (kinds.get(item["name"] as string) ?? null) as Tool["held"],
      }));
    compared.set(listed, { accepted, tools });
    return tools;
  }

  async function all(upstreams: readonly Upstream[], list: (upstream: Upstream) => Promise<Pinned[]>): Promise<Tool[]> {
    return withOwnNames(await listEach(upstreams, list, log), seen, log);
  }

  return {
    forget: (upstream: Upstream): void => void lists.delete(upstream),
    /** What a client is shown: the servers are asked, and a slow one holds up no other. */
    shown: (upstreams: readonly Upstream[]): Promise<Tool[]> =>
      all(upstreams, (upstream) =>
        upstreams.length === 1 ? toolsOf(upstream, true) : standIn(upstream, toolsOf(upstream, true)),
      ),
    /**
     * What a name stands for: since a client has seen it, always the same. Undefined when it is not there. A name that
     * nobody has seen yet waits for every server: it may be the slow one's.
     * @param fresh whether the servers are asked, and not only read from what they said last
     */
    async named(shown: string, upstreams: readonly Upstream[], fresh: boolean): Promise<Tool | undefined> {
      if (!seen.has(shown)) await all(upstreams, (upstream) => toolsOf(upstream, fresh));
      const thing = seen.get(shown);
      const upstream = upstreams.find(({ config }) => config.name === thing?.server);
      if (thing === undefined || upstream === undefined) return undefined;
      const [tool, ...others] = (await toolsOf(upstream, fresh)).filter(({ item }) => item["name"] === thing.name);
      return tool === undefined || others.length > 0 ? undefined : { ...tool, name: thing.name, shown };
    },
    /** The server whose tool was last seen under this name; it may be gone, or have it no more. */
    ownerOf: (shown: string): string | undefined => seen.get(shown)?.server,
    /** The instructions of a server's greeting, where they are what was accepted. Those of a server that is slow to list its tools are left out, unless it is the only one. */
    async instructions(upstream: Upstream, isOnly: boolean): Promise<string | null> {
      if (upstream.instructions === null) return null;
      let accepted: Accepted | null;
      try {
        if (!isOnly && !(await settlesPromptly(rawTools(upstream, false))))
          throw new Error(`the server "${upstream.config.name}" is slow to give its list`);
        accepted = acceptedOf(upstream, await rawTools(upstream, false));
      } catch (error) {
        log(`${error instanceof Error ? error.message : String(error)}; its instructions are left out`);
        return null;
      }
      const now = definitionsOf(upstream.instructions, []).get(INSTRUCTIONS);
      if (accepted?.tools[INSTRUCTIONS]?.digest === now?.digest) return upstream.instructions;
      log(
        `the instructions of the server "${upstream.config.name}" have changed, and are left out until they are accepted`,
      );
      return null;
    },
  };
}

/** What a client is shown of a tool. Of one that is held back it reads nothing that the server has written. */
export function shownTool(tool: Tool, withTasks: boolean): JsonObject {
  const { shown, held } = tool;
  if (held === null) {
    // Whatever the server says: it is the proxy's task that waits.
    const { execution } = tool.item;
    if (!withTasks || taskSupportOf(tool.item) === "required") return shownItem(tool);
    return { ...shownItem(tool), execution: { ...(isObject(execution) ? execution : {}), taskSupport: "optional" } };
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
