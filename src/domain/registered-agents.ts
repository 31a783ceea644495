/** Registered agents, as the ledger records them. */
import type { Actor, AgentEntry } from "./entries.ts";
import type { Fold } from "./fold.ts";
import { sha256Hex, utf8 } from "./hash.ts";
import type { JsonObject } from "./json.ts";
import { foldName } from "./names.ts";
import { PersistentMap } from "./persistent-map.ts";
import { parseEntryTime, toRfc3339 } from "./time.ts";

/**
 * An agent after the newest entry about it. The members are the columns of its row, except that the row contains the
 * metadata instead of its digest.
 */
export interface RegisteredAgent {
  /** The `agent_id` of the agent's actions. */
  id: string;
  name: string;
  description: string | null;
  /** Globs of the tools that the agent can use; null for every tool. */
  allowed_tools: string[] | null;
  /** SHA-256 of the metadata, hex. */
  metadata: string;
  suspended_at: number | null;
  suspended_reason: string | null;
  /** Starts at 1 and increases with every change. */
  version: number;
  /** Sequence number of the entry that registered the agent, which determines the order of lists. Unique. */
  registered_seq: number;
  created_by: string | null;
  created_at: number;
  updated_at: number;
}

/** The members of an agent that its entries contain. */
type EntryAgent = Pick<
  RegisteredAgent,
  "id" | "name" | "description" | "allowed_tools" | "metadata" | "suspended_reason" | "version"
>;

/** The agents, keyed by their case-folded names. All spellings of a name refer to the same agent. */
export const registeredAgentState: Fold<PersistentMap<string, RegisteredAgent>> = {
  name: "registered_agents",
  initial: PersistentMap.of(),
  on: {
    agent(agents, { agent, by, at, seq }: AgentEntry & { seq: number }) {
      const { suspended, ...recorded } = agent as unknown as EntryAgent & { suspended: boolean };
      const time = parseEntryTime(at);
      const earlier = agents.get(foldName(recorded.id));
      return agents.with(foldName(recorded.id), {
        ...recorded,
        suspended_at: suspended ? (earlier?.suspended_at ?? time) : null,
        registered_seq: earlier?.registered_seq ?? seq,
        created_by: earlier === undefined ? (by?.key_id ?? null) : earlier.created_by,
        created_at: earlier?.created_at ?? time,
        updated_at: time,
      });
    },
  },
};

/** Returns the row of an agent with the digest of its metadata, in the form of the state. */
export function digestMetadata<Row extends { metadata: string }>(row: Row): Row {
  return { ...row, metadata: sha256Hex(utf8(row.metadata)) };
}

/**
 * Returns the entry that records a change of an agent.
 * @param row the agent after the change
 */
export function buildAgentEntry(
  change: AgentEntry["change"],
  row: EntryAgent & Pick<RegisteredAgent, "suspended_at">,
  at: number,
  by: Actor | null,
): AgentEntry {
  const { id, name, description, allowed_tools, metadata, suspended_reason, version } = digestMetadata(row);
  const suspended = row.suspended_at !== null;
  const agent: JsonObject = {
    id,
    name,
    description,
    allowed_tools,
    metadata,
    suspended,
    suspended_reason,
    version,
  };
  return { type: "agent", v: 1, at: toRfc3339(at), change, agent, by };
}
