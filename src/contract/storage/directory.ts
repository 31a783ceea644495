/** API keys and registered agents. */
import type { KeyColumns } from "../../domain/recorded-keys.ts";
import type { RegisteredAgent } from "../../domain/registered-agents.ts";

/** A stored API key. The key's value is never stored. */
export interface KeyRow extends KeyColumns {
  /** First characters of the value, so that people can recognise the key. */
  prefix: string;
  /** Time of the last use, accurate to a few minutes; null if the key was never used. */
  last_used_at: number | null;
}

export interface AgentRow extends RegisteredAgent {
  /** Canonical JSON, of which entries contain the digest. */
  metadata: string;
}

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
   * Compare-and-set: replaces the row with this id, except for the members that never change. Resolves to false and
   * changes nothing unless the stored version is the one before `row.version`.
   */
  updateAgent(row: AgentRow): Promise<boolean>;
}
