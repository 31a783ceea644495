/** Merges the capabilities and instructions of all servers into one description of the proxy. */
import { MARK_INSTRUCTIONS } from "../decisions/mark.ts";
import { VERSION } from "../../../src/version.ts";
import { LIST_KINDS } from "./upstream-pool.ts";
import {
  isObject,
  MODERN_VERSION,
  TASKS_EXTENSION_CAPABILITY,
  withoutTaskExtension,
  type JsonObject,
} from "../transport/rpc-message.ts";
import { TASKS_CAPABILITY } from "../session/tasks.ts";
import type { Upstream } from "./upstream.ts";

/** Capabilities that the proxy declares only if it has a single server. */
const SINGLE_SERVER_CAPABILITIES = new Set(["experimental", "extensions"]);

export interface ServerInfo {
  version: string;
  capabilities: JsonObject;
  info: JsonObject;
  instructions: string;
}

/** The only revision with built-in tasks. In later revisions, tasks are an extension. */
export const BUILT_IN_TASKS_VERSION = "2025-11-25";

export async function mergeServerInfo(
  upstreams: readonly Upstream[],
  configured: number,
  clientVersion: string,
  instructionsOf: (upstream: Upstream) => Promise<string | null>,
): Promise<ServerInfo> {
  const isSingle = configured === 1;
  let capabilities: JsonObject = {};
  for (const upstream of upstreams)
    for (const [name, value] of Object.entries(upstream.capabilities)) {
      if (!isObject(value) || (!isSingle && SINGLE_SERVER_CAPABILITIES.has(name)) || name === "tasks") continue;
      const merged = capabilities[name];
      capabilities[name] = { ...(isObject(merged) ? merged : {}), ...value };
    }
  // With several servers, any list can change, because a server may disconnect or connect later.
  if (!isSingle)
    for (const kind of LIST_KINDS) {
      const merged = capabilities[kind];
      if (isObject(merged) || upstreams.length < configured)
        capabilities[kind] = { ...(isObject(merged) ? merged : {}), listChanged: true };
    }
  // Tasks belong to the proxy, whether or not the servers support them.
  capabilities = withoutTaskExtension(capabilities);
  if (isObject(capabilities["tools"])) {
    if (clientVersion === BUILT_IN_TASKS_VERSION) capabilities["tasks"] = TASKS_CAPABILITY;
    if (clientVersion === MODERN_VERSION) {
      const { extensions } = capabilities;
      capabilities["extensions"] = { ...(isObject(extensions) ? extensions : {}), ...TASKS_EXTENSION_CAPABILITY };
    }
  }
  const instructions = await Promise.all(
    upstreams.map(async (upstream) => {
      const text = await instructionsOf(upstream);
      return text === null ? [] : [isSingle ? text : `${upstream.config.name}:\n${text}`];
    }),
  );
  const [first] = upstreams;
  return {
    version: upstreams.map((upstream) => upstream.version).sort()[0] ?? "",
    capabilities,
    info: isSingle && first !== undefined ? first.info : { name: "assent-mcp-proxy", version: VERSION },
    instructions: [MARK_INSTRUCTIONS, ...instructions.flat()].join("\n\n"),
  };
}
