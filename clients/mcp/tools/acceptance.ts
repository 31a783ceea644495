/** Accepts the tool definitions of a server: computes the changes, and records the acceptance as an action. */
import type { ActionRecord, Assent } from "../../typescript/index.ts";
import {
  diffDefinitions,
  digestServerDefinitions,
  type DefinitionChange,
  type Definition,
  type DefinitionStore,
} from "./accepted-definitions.ts";
import { LIST_TIMEOUT_MS } from "../upstreams/slow-upstreams.ts";
import { listAllPages } from "../upstreams/merged-lists.ts";
import { ERROR_CODE, LEGACY_VERSIONS, errorReply, isObject, type JsonObject } from "../transport/rpc-message.ts";
import type { ServerConfig } from "../config/server-config.ts";
import { connectUpstream } from "../upstreams/upstream.ts";

/**
 * Number of characters of a tool's description (or of the server's instructions) to include in the acceptance action,
 * so that approvers can recognize it.
 */
const MAX_TEXT_LENGTH = 500;

export interface DefinitionReview {
  server: ServerConfig;
  now: ReadonlyMap<string, Definition>;
  changes: DefinitionChange[];
}

/**
 * Compares the current definitions of a server with the accepted definitions.
 * @throws Error whose message can be shown to the user
 */
export async function reviewDefinitions(
  server: ServerConfig,
  store: DefinitionStore,
  log: (line: string) => void,
): Promise<DefinitionReview> {
  const now = await fetchDefinitions(server, log);
  return { server, now, changes: diffDefinitions(store.read(server), now) };
}

/** Fetches the current definitions from a server. @throws Error whose message can be shown to the user */
export async function fetchDefinitions(
  server: ServerConfig,
  log: (line: string) => void,
): Promise<ReadonlyMap<string, Definition>> {
  const refuseQuestion = () =>
    Promise.resolve(errorReply(ERROR_CODE.methodNotFound, "a reader of definitions does not answer questions"));
  const client = {
    version: LEGACY_VERSIONS[0] as string,
    info: { name: "assent-mcp-accept", version: "1" },
    capabilities: {},
  };
  const upstream = await connectUpstream(
    server,
    client,
    { askClient: refuseQuestion, onnotification() {}, onclose() {} },
    log,
  );
  try {
    const tools = isObject(upstream.capabilities["tools"])
      ? await listAllPages(
          upstream,
          "tools/list",
          "tools",
          { signal: AbortSignal.timeout(LIST_TIMEOUT_MS), capabilities: {} },
          log,
        )
      : [];
    return digestServerDefinitions(
      upstream.instructions,
      tools.filter(({ name }) => typeof name === "string" && name !== ""),
    );
  } finally {
    await upstream.close();
  }
}

/** Returns the action that records the acceptance. Policies decide on it like on any other action. */
function acceptanceAction({ server, changes }: DefinitionReview): {
  tool: string;
  operation: string;
  params: JsonObject;
} {
  return {
    tool: "assent-mcp",
    operation: "accept",
    params: {
      server: server.name,
      where: serverLocation(server),
      changes: changes.map(({ name, kind, before, now }) => ({
        name: name === "" ? "(instructions)" : name,
        kind,
        before: before?.digest ?? null,
        now: now?.digest ?? null,
        text: definitionText(now).slice(0, MAX_TEXT_LENGTH),
      })),
    },
  };
}

/**
 * Returns the server's command without its arguments, or its URL without user info and query. The omitted parts may
 * contain credentials.
 */
function serverLocation({ target: reach }: ServerConfig): string {
  if ("command" in reach) return reach.command;
  const { origin, pathname } = new URL(reach.url);
  return origin + pathname;
}

/** Returns a tool's description, or a server's instructions; an empty string if the definition contains neither. */
export function definitionText(definition: Definition | null): string {
  const { description, instructions } = definition?.definition ?? {};
  return typeof description === "string" ? description : typeof instructions === "string" ? instructions : "";
}

/**
 * Submits the acceptance. Stores the accepted definitions once it is allowed. Resolves to the action in its final
 * state.
 */
export async function acceptDefinitions(
  examined: DefinitionReview,
  { assent, agentId, store, wait }: { assent: Assent; agentId: string; store: DefinitionStore; wait: number },
): Promise<ActionRecord> {
  let action = await assent.submit({ agent_id: agentId, ...acceptanceAction(examined) }, { join: true });
  if (action.status === "pending_approval" && wait > 0) action = await assent.wait(action.id, { timeout: wait });
  if (action.status !== "allowed" && action.status !== "approved") return action;
  await assent.start(action.id, { permit: action.permit ?? undefined });
  try {
    store.write(examined.server, {
      server: examined.server.name,
      accepted_at: new Date().toISOString(),
      action_id: action.id,
      tools: Object.fromEntries(examined.now),
    });
  } catch (error) {
    await assent.result(action.id, { success: false, error: String(error).slice(0, 1000) });
    throw error;
  }
  return assent.result(action.id, { success: true });
}
