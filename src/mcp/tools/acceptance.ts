/** Accepting what a server says of its tools: what has changed, and a record of who took it. */
import type { ActionRecord, Assent } from "../../client/index.ts";
import {
  diffDefinitions,
  toDefinitions,
  type DefinitionChange,
  type Definition,
  type DefinitionStore,
} from "./accepted-definitions.ts";
import { listAllPages } from "../upstreams/merged-lists.ts";
import { ERROR_CODE, LEGACY_VERSIONS, errorReply, isObject, type JsonObject } from "../transport/message.ts";
import type { ServerConfig } from "../config/server-config.ts";
import { connectUpstream } from "../upstreams/upstream.ts";

/** Of texts of a server that go into the record: enough to see what it is about. Characters. */
const MAX_TEXT_LENGTH = 500;

export interface ServerReview {
  server: ServerConfig;
  now: ReadonlyMap<string, Definition>;
  changes: DefinitionChange[];
}

/** Asks a server what it has now. @throws Error with a sentence */
export async function reviewServer(
  server: ServerConfig,
  store: DefinitionStore,
  log: (line: string) => void,
): Promise<ServerReview> {
  const refused = () => Promise.resolve(errorReply(ERROR_CODE.methodNotFound, "nothing is asked here"));
  const client = {
    version: LEGACY_VERSIONS[0] as string,
    info: { name: "assent-mcp-accept", version: "1" },
    capabilities: {},
  };
  const upstream = await connectUpstream(
    server,
    client,
    { askClient: refused, onnotification() {}, onclose() {} },
    log,
  );
  try {
    const tools = isObject(upstream.capabilities["tools"])
      ? await listAllPages(upstream, "tools/list", "tools", { signal: new AbortController().signal, capabilities: {} })
      : [];
    const now = toDefinitions(
      upstream.instructions,
      tools.filter(({ name }) => typeof name === "string" && name !== ""),
    );
    return { server, now, changes: diffDefinitions(store.read(server), now) };
  } finally {
    await upstream.close();
  }
}

/** What stands in the ledger about it: an action, which policies decide about like any other. */
export function acceptanceAction({ server, changes }: ServerReview): {
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
        text: modelText(now).slice(0, MAX_TEXT_LENGTH),
      })),
    },
  };
}

/** Without what may hold credentials: arguments of a command, and names, passwords and queries in an address. */
function serverLocation({ target: reach }: ServerConfig): string {
  if ("command" in reach) return reach.command;
  const { origin, pathname } = new URL(reach.url);
  return origin + pathname;
}

/** What a model would read first of a definition. */
export function modelText(of: Definition | null): string {
  const { description, instructions } = of?.definition ?? {};
  return typeof description === "string" ? description : typeof instructions === "string" ? instructions : "";
}

/** Submits the acceptance, and keeps what was accepted once it may be. Resolves to the action as it stands. */
export async function acceptDefinitions(
  examined: ServerReview,
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
