/** Selects the ledger entries for a subscriber, and renders them as events. */
import { canSee, type CoreHost, decodeEntry, type JsonObject, toHex } from "../../src/core.ts";
import { type Credential, toRfc3339 } from "../../src/plugin.ts";
import type { EntryRow } from "../../src/storage/index.ts";
import type { Event, EventsQuery } from "./schemas.ts";

const KNOWN_TOOLS = 10_000;

export interface EventFilter {
  /** Resolves to true if the subscriber receives the entry. */
  passes(row: EntryRow): Promise<boolean>;
}

export function toEvent(row: EntryRow): Event {
  const { seq, leaf_hash, type, created_at, action_id, bytes } = row;
  return {
    seq,
    hash: toHex(leaf_hash),
    type,
    at: toRfc3339(created_at),
    action_id,
    entry: decodeEntry<JsonObject>(bytes),
  };
}

const texts = new WeakMap<EntryRow, string>();

/**
 * Returns the event as JSON. Caches the JSON for each entry object, because all streams share the objects of the newest
 * entries.
 */
export function toEventJson(row: EntryRow): string {
  let text = texts.get(row);
  if (text === undefined) {
    text = JSON.stringify(toEvent(row));
    texts.set(row, text);
  }
  return text;
}

/** Resolves to the tool of an action, which only its decision entry contains. */
type ToolOf = (actionId: string) => Promise<string | null>;

export function createToolLookup(host: CoreHost): ToolOf {
  const tools = new Map<string, string>();
  return async (actionId) => {
    const tool = tools.get(actionId);
    if (tool !== undefined) return tool;
    const action = await host.storage.action(actionId);
    if (action === null) return null;
    if (tools.size >= KNOWN_TOOLS) tools.clear();
    tools.set(actionId, action.tool);
    return action.tool;
  };
}

export function createFilter(query: EventsQuery, { visibility }: Credential, toolOf: ToolOf): EventFilter {
  const types = query.type === undefined ? null : new Set(query.type.split(","));
  const agent = query.agent_id ?? query.agent;
  const toolOfEntry = async (row: EntryRow): Promise<string | null> =>
    row.action_id === null
      ? null
      : ((decodeEntry(row.bytes)["tool"] as string | undefined) ?? (await toolOf(row.action_id)));
  const isVisible = async (row: EntryRow): Promise<boolean> =>
    canSee(visibility, "within" in visibility ? { ...row, tool: await toolOfEntry(row) } : row);
  return {
    async passes(row) {
      if (!(await isVisible(row))) return false;
      if (types !== null && !types.has(row.type)) return false;
      if (agent !== undefined && row.agent_id !== agent) return false;
      if (query.action_id !== undefined && row.action_id !== query.action_id) return false;
      if (query.tool === undefined) return true;
      return (await toolOfEntry(row)) === query.tool;
    },
  };
}
