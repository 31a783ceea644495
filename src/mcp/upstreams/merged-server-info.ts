/** Several servers introduced as one. */
import { VERSION } from "../../version.ts";
import { LIST_KINDS } from "./upstream-pool.ts";
import { isObject, type JsonObject } from "../transport/message.ts";
import { TASKS_CAPABILITY } from "../session/tasks.ts";
import type { Upstream } from "./upstream.ts";

/** Capabilities that are not passed on for several servers at once. */
const SINGLE_SERVER_CAPABILITIES = new Set(["experimental", "extensions"]);

export interface ServerInfo {
  version: string;
  capabilities: JsonObject;
  info: JsonObject;
  instructions: string | undefined;
}

export async function mergeServerInfo(
  upstreams: readonly Upstream[],
  configured: number,
  hasTasks: boolean,
  instructionsOf: (upstream: Upstream) => Promise<string | null>,
): Promise<ServerInfo> {
  const single = configured === 1;
  const capabilities: JsonObject = {};
  for (const upstream of upstreams)
    for (const [name, value] of Object.entries(upstream.capabilities)) {
      if (!isObject(value) || (!single && SINGLE_SERVER_CAPABILITIES.has(name)) || name === "tasks") continue;
      const before = capabilities[name];
      capabilities[name] = { ...(isObject(before) ? before : {}), ...value };
    }
  // Of several, each may go and come back; what a missing one has is not known.
  if (!single)
    for (const kind of LIST_KINDS) {
      const before = capabilities[kind];
      if (isObject(before) || upstreams.length < configured)
        capabilities[kind] = { ...(isObject(before) ? before : {}), listChanged: true };
    }
  if (hasTasks && isObject(capabilities["tools"])) capabilities["tasks"] = TASKS_CAPABILITY;
  const texts = await Promise.all(
    upstreams.map(async (upstream) => {
      const text = await instructionsOf(upstream);
      return text === null ? [] : [single ? text : `${upstream.config.name}:\n${text}`];
    }),
  );
  const [first] = upstreams;
  return {
    version: upstreams.map((upstream) => upstream.version).sort()[0] ?? "",
    capabilities,
    info: single && first !== undefined ? first.info : { name: "assent-mcp-proxy", version: VERSION },
    instructions: texts.flat().length === 0 ? undefined : texts.flat().join("\n\n"),
  };
}
