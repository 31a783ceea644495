/** The tools of all servers: as they were accepted, under names of their own. */
import { matchesAny } from "../domain/policy/glob.ts";
import {
  changesSince,
  definitionOf,
  definitionsOf,
  INSTRUCTIONS,
  type Accepted,
  type DefinitionStore,
} from "./definitions.ts";
import { listAll, shownItem, withOwnNames, type Asking, type Listed, type Named } from "./lists.ts";
import { isObject, type JsonObject } from "./message.ts";
import { DECIDED_METHODS } from "./server-config.ts";
import type { Upstream } from "./upstream.ts";

export interface Tool extends Named<Listed> {
  /** Of its definition as the server gives it. */
  digest: string;
  /** Why it is not to be called; null when it may be asked about. */
  held: "new" | "changed" | null;
}

export type Toolbox = ReturnType<typeof createToolbox>;

export function createToolbox(store: DefinitionStore, log: (line: string) => void) {
  const lists = new Map<Upstream, Promise<JsonObject[]>>();

  async function rawTools(upstream: Upstream, caller: Asking, fresh: boolean): Promise<JsonObject[]> {
    if (!isObject(upstream.capabilities["tools"])) return [];
    const kept = fresh ? undefined : lists.get(upstream);
    if (kept !== undefined) return kept;
    const list = listAll(upstream, "tools/list", "tools", caller);
    lists.set(upstream, list);
    // A list that did not come is asked for again.
    list.catch(() => lists.get(upstream) === list && lists.delete(upstream));
    return list;
  }

  /** What is accepted of a server. What is seen first is, unless it is configured otherwise. */
  function acceptedOf({ config, instructions }: Upstream, tools: JsonObject[]): Accepted | null {
    const accepted = store.read(config);
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

  return {
    forget: (upstream: Upstream): void => void lists.delete(upstream),
    /** @param fresh whether the servers are asked, and not only read from what they said last */
    async all(upstreams: readonly Upstream[], caller: Asking, fresh: boolean): Promise<Tool[]> {
      const each = await Promise.all(
        upstreams.map(async (upstream) => {
          const raw = await rawTools(upstream, caller, fresh);
          // A name that stands for two tools, or for a method, would be decided as one thing and run as another.
          const tools = raw.filter(
            ({ name }) =>
              typeof name === "string" &&
              name !== INSTRUCTIONS &&
              !(DECIDED_METHODS as readonly string[]).includes(name),
          );
          const accepted = acceptedOf(upstream, tools);
          const changes = changesSince(accepted, definitionsOf(null, tools));
          const kinds = new Map(changes.map(({ name, kind }) => [name, kind]));
          return tools
            .filter(({ name }) => !matchesAny(upstream.config.hide, name as string))
            .map((item) => ({
              upstream,
              item,
              digest: definitionOf(item).digest,
              held: (kinds.get(item["name"] as string) ?? null) as Tool["held"],
            }));
        }),
      );
      return withOwnNames(each.flat(), log);
    },
    /** The instructions of a server's greeting, where they are what was accepted. */
    async instructions(upstream: Upstream, caller: Asking): Promise<string | null> {
      if (upstream.instructions === null) return null;
      const accepted = acceptedOf(upstream, await rawTools(upstream, caller, false));
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
export function shownTool(tool: Tool): JsonObject {
  const { shown, held } = tool;
  if (held === null) return shownItem(tool);
  return {
    name: shown,
    description:
      held === "changed"
        ? "Not available: its definition has changed since it was accepted. Calls are refused until someone accepts it."
        : "Not available: it is new, and nobody has accepted its definition yet. Calls are refused until someone does.",
    inputSchema: { type: "object" },
  };
}
