/**
 * Reads the facts about an agent that a decision needs. The cache is valid for one epoch of the ledger. Every change of
 * an agent increases the epoch, so a suspension applies to the next request.
 */
import type { Agents, Groups } from "../contract/core-host.ts";
import type { AgentFacts } from "../contract/ledger.ts";
import { DEFAULT_REJECTION_HOLDS_MS } from "../domain/policy/parse/bounds.ts";
import { principalOfAgent } from "../domain/groups.ts";
import type { JsonObject } from "../domain/json.ts";
import { foldName } from "../domain/names.ts";
import { NO_USERS } from "../domain/users.ts";
import type { AgentRow, LedgerHead, StorageReader } from "../contract/storage.ts";
import type { Directory } from "./directory.ts";

const CACHE_LIMIT = 10_000;

export interface AgentService extends Agents {
  /** Reads the facts within a batch. `committed` is true if a commit has this epoch; the result can then be cached. */
  within(tx: StorageReader, agentId: string, epoch: number, committed: boolean): Promise<AgentFacts>;
}

export function createAgentService(options: {
  storage: StorageReader;
  directory: Directory;
  head(): Promise<LedgerHead>;
  requireRegistered: boolean;
  rejectionHoldsMs: number;
  groups: Pick<Groups, "of">;
}): AgentService {
  const { rejectionHoldsMs } = options;
  let cache = new Map<string, AgentFacts>();
  let cachedEpoch = -1;

  async function read(reader: StorageReader, agentId: string): Promise<AgentFacts> {
    // All spellings of a registered name refer to the same agent, so a suspension applies to all spellings.
    const name = foldName(agentId);
    const rows: AgentRow[] = [];
    for (const id of new Set([agentId, name, ...options.directory.spellings(name)])) {
      const row = await reader.agent(id);
      if (row !== null) rows.push(row);
    }
    const row = rows[0] ?? null;
    const suspended = rows.some(({ suspended_at }) => suspended_at !== null);
    return {
      attributes: {
        agent_groups: [...options.groups.of(principalOfAgent(agentId), NO_USERS)],
        agent_metadata: row === null ? {} : (JSON.parse(row.metadata) as JsonObject),
      },
      ...(row === null ? {} : { agent: { suspended, allowed_tools: row.allowed_tools } }),
      ...(options.requireRegistered ? { require_registered_agents: true } : {}),
      ...(rejectionHoldsMs === DEFAULT_REJECTION_HOLDS_MS ? {} : { rejection_holds_ms: rejectionHoldsMs }),
    };
  }

  async function cached(reader: StorageReader, agentId: string, epoch: number): Promise<AgentFacts> {
    if (epoch > cachedEpoch || cache.size >= CACHE_LIMIT) {
      cache = new Map();
      cachedEpoch = epoch;
    }
    const cachedAgent = epoch === cachedEpoch ? cache.get(agentId) : undefined;
    if (cachedAgent !== undefined) return cachedAgent;
    const facts = await read(reader, agentId);
    if (epoch === cachedEpoch) cache.set(agentId, facts);
    return facts;
  }

  return {
    // Read the head first, so that the row is at least as new as the epoch. A newer row can be cached under an older
    // epoch, because the next read of the head evicts the cache of that epoch.
    async facts(agentId) {
      const head = await options.head();
      await options.directory.follow(options.storage, head);
      return cached(options.storage, agentId, head.epoch);
    },
    registeredIds: (agentId) => options.directory.spellings(foldName(agentId)),
    within: (tx, agentId, epoch, committed) => (committed ? cached(tx, agentId, epoch) : read(tx, agentId)),
  };
}
