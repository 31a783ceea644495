/** API keys and registered agents. */

/** A stored API key. */
export interface KeyRow {
  id: string;
  name: string;
  /** SHA-256 of the key's value, hex. The value itself is never stored. */
  hash: string;
  /** First characters of the value, so that people can recognise the key. */
  prefix: string;
  scopes: string[];
  agent_id: string | null;
  owner: string | null;
  created_by: string | null;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  /** Time of the last use, accurate to a few minutes; null if the key was never used. */
  last_used_at: number | null;
}

/** A registered agent. `metadata` is canonical JSON. */
export interface AgentRow {
  /** The `agent_id` of the agent's actions. */
  id: string;
  name: string;
  description: string | null;
  /** Globs of the tools that the agent can use; null for every tool. */
  allowed_tools: string[] | null;
  metadata: string;
  suspended_at: number | null;
  suspended_reason: string | null;
  /** Version of the row. Starts at 1 and increases with every change. */
  version: number;
  /** Sequence number of the entry that registered the agent, which determines the order of lists. Unique. */
  registered_seq: number;
  created_by: string | null;
  created_at: number;
  updated_at: number;
}

export type AgentChange = Partial<
  Pick<AgentRow, "name" | "description" | "allowed_tools" | "metadata" | "suspended_at" | "suspended_reason">
> & { updated_at: number };

export interface AgentFilter {
  suspended?: boolean;
  /** Restricts the list to agents with a smaller `registered_seq`: the cursor. */
  before_seq?: number;
  offset?: number;
  limit: number;
}

export interface DirectoryReads {
  keyByHash(hash: string): Promise<KeyRow | null>;
  key(id: string): Promise<KeyRow | null>;
  /** Lists keys, newest first, including revoked keys. */
  keys(): Promise<KeyRow[]>;
  agent(id: string): Promise<AgentRow | null>;
  /** Lists agents, newest first (descending `registered_seq`). */
  agents(filter: AgentFilter): Promise<AgentRow[]>;
}

export interface DirectoryWrites {
  insertKey(row: KeyRow): Promise<void>;
  /** Revokes a key. Resolves to false if the key does not exist or was already revoked. */
  revokeKey(id: string, at: number): Promise<boolean>;
  /** Moves `last_used_at` forward, never back. Does nothing if the key does not exist. */
  touchKey(id: string, at: number): Promise<void>;
  insertAgent(row: AgentRow): Promise<void>;
  /**
   * Compare-and-set: resolves to false and changes nothing unless the stored version is `version`. The change increases
   * the version by one.
   */
  updateAgent(id: string, version: number, change: AgentChange): Promise<boolean>;
}
