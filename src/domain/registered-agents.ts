/** Registered agents, as the ledger records them. */
import type { AgentEntry } from "./entries.ts";
import type { Fold } from "./fold.ts";
import { sha256Hex, utf8 } from "./hash.ts";
import { foldName } from "./names.ts";
import { PersistentMap } from "./persistent-map.ts";

/** An agent after the newest entry about it. */
export interface RegisteredAgent {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly allowed_tools: readonly string[] | null;
  /** SHA-256 of the metadata, hex. */
  readonly metadata: string;
  readonly suspended: boolean;
  readonly suspended_reason: string | null;
  readonly version: number;
}

/** The agents, keyed by their case-folded names. All spellings of a name refer to the same agent. */
export const registeredAgentState: Fold<PersistentMap<string, RegisteredAgent>> = {
  name: "registered_agents",
  initial: PersistentMap.of(),
  on: {
    agent: (agents, { agent }: AgentEntry) =>
      agents.with(foldName(agent["id"] as string), agent as unknown as RegisteredAgent),
  },
};

/** The members of a stored agent that its entries contain. */
type StoredAgent = Omit<RegisteredAgent, "suspended"> & { suspended_at: number | null };

/** Returns the columns in which a stored agent differs from its entries. */
export function findAlteredColumns(row: StoredAgent, recorded: RegisteredAgent | undefined): string[] {
  if (recorded === undefined) return ["id"];
  const { metadata, allowed_tools, suspended_at } = row;
  const columns = (["id", "name", "description", "suspended_reason", "version"] as const).filter(
    (column) => row[column] !== recorded[column],
  );
  return [
    ...columns,
    ...(sha256Hex(utf8(metadata)) === recorded.metadata ? [] : ["metadata"]),
    ...(JSON.stringify(allowed_tools) === JSON.stringify(recorded.allowed_tools) ? [] : ["allowed_tools"]),
    ...((suspended_at !== null) === recorded.suspended ? [] : ["suspended_at"]),
  ];
}
