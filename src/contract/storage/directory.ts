/** API keys and registered agents. */
export interface KeyRow {
  id: string;
  name: string;
  /** SHA-256 of the key's value, hex. The value itself is never stored. */
  hash: string;
  /** First characters of the value, to recognise it by. */
  prefix: string;
  scopes: string[];
  agent_id: string | null;
  owner: string | null;
  created_by: string | null;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  /** When it was last used, to within the minutes between two writes; null when never. */
  last_used_at: number | null;
}

/** A registered agent. `metadata` is canonical JSON. */
export interface AgentRow {
  /** The `agent_id` of the agent's actions. */
  id: string;
  name: string;
  description: string | null;
  /** Globs; null for every tool. */
  allowed_tools: string[] | null;
  metadata: string;
  suspended_at: number | null;
  suspended_reason: string | null;
  /** From 1; grows with every change. */
  version: number;
  /** Sequence of the entry that registered it: the order of lists. Unique. */
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
  /** Only agents whose `registered_seq` is smaller: the cursor. */
  before_seq?: number;
  offset?: number;
  limit: number;
}

export interface DirectoryReads {
  keyByHash(hash: string): Promise<KeyRow | null>;
  key(id: string): Promise<KeyRow | null>;
  /** Newest first, revoked ones included. */
  keys(): Promise<KeyRow[]>;
  agent(id: string): Promise<AgentRow | null>;
  /** Newest first (descending `registered_seq`). */
  agents(filter: AgentFilter): Promise<AgentRow[]>;
}

export interface DirectoryWrites {
  insertKey(row: KeyRow): Promise<void>;
  /** False when there is no such key or it is revoked already. */
  revokeKey(id: string, at: number): Promise<boolean>;
  /** Moves `last_used_at` forward; never back. Nothing happens for a key that is not there. */
  touchKey(id: string, at: number): Promise<void>;
  insertAgent(row: AgentRow): Promise<void>;
  /** Compare-and-set: false, and nothing changed, unless the stored version is `version`, which grows by one. */
  updateAgent(id: string, version: number, change: AgentChange): Promise<boolean>;
}
