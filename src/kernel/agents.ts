/**
 * What a decision must know of the agent that asks. Cached under the ledger's epoch, which grows
 * with every change of an agent: a suspension holds from the next request on.
 */
import type { AgentFacts, Agents } from "../contract/host.ts";
import type { LedgerHead, StorageReader } from "../contract/storage.ts";

const CACHE_LIMIT = 10_000;

export interface AgentService extends Agents {
  /** Inside a batch. `committed` says that `epoch` is one that a commit has made lasting: only then may what is read be kept. */
  within(tx: StorageReader, agentId: string, epoch: number, committed: boolean): Promise<AgentFacts>;
}

export function createAgents(options: { storage: StorageReader; head(): Promise<LedgerHead>; requireRegistered: boolean }): AgentService {
  let cache = new Map<string, AgentFacts>();
  let cachedEpoch = -1;

  async function read(reader: StorageReader, agentId: string): Promise<AgentFacts> {
    const row = await reader.agent(agentId);
    return {
      ...(row === null ? {} : { agent: { suspended: row.suspended_at !== null, allowed_tools: row.allowed_tools } }),
      ...(options.requireRegistered ? { require_registered_agents: true } : {}),
    };
  }

  async function cached(reader: StorageReader, agentId: string, epoch: number): Promise<AgentFacts> {
    if (epoch > cachedEpoch || cache.size >= CACHE_LIMIT) {
      cache = new Map();
      cachedEpoch = epoch;
    }
    const known = epoch === cachedEpoch ? cache.get(agentId) : undefined;
    if (known !== undefined) return known;
    const facts = await read(reader, agentId);
    if (epoch === cachedEpoch) cache.set(agentId, facts);
    return facts;
  }

  return {
    // The head first: a row read after it is at least as new as its epoch. A newer row may be kept
    // under an older epoch: that epoch's cache is thrown away with the next look at the head.
    facts: async (agentId) => cached(options.storage, agentId, (await options.head()).epoch),
    within: (tx, agentId, epoch, committed) => (committed ? cached(tx, agentId, epoch) : read(tx, agentId)),
  };
}
