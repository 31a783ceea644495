/**
 * Reads the facts about an agent that a decision needs. They come from the ledger, because anyone who can write to the
 * database can change the rows of agents. Only the metadata is read from the row, and compared with its digest. The
 * cache is valid for one epoch of the ledger. Every change of an agent increases the epoch, so a suspension applies to
 * the next request.
 */
import type { Agents, Groups } from "../contract/core-host.ts";
import { Refusal } from "../contract/errors.ts";
import type { AgentFacts } from "../contract/ledger.ts";
import type { StatesReader } from "../contract/states.ts";
import type { AgentRow, LedgerHead, StorageReader } from "../contract/storage.ts";
import { findDifferingColumns } from "../domain/differing-columns.ts";
import { principalOfAgent } from "../domain/groups.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { JsonObject } from "../domain/json.ts";
import { foldName } from "../domain/names.ts";
import { DEFAULT_REJECTION_HOLDS_MS } from "../domain/policy/parse/bounds.ts";
import { digestMetadata, registeredAgentState, type RegisteredAgent } from "../domain/registered-agents.ts";
import { NO_USERS } from "../domain/users.ts";
import type { Directory } from "./directory.ts";

const CACHE_LIMIT = 10_000;
/** Maximum number of reads of a row that another process changes at the same time. */
const MAX_READS = 3;

type AgentStates = Pick<StatesReader, "state">;

export interface AgentService extends Agents {
  /**
   * Reads the facts within a batch.
   * @param states the states after the entries of the batch
   * @param committed whether a commit has this epoch; the result can then be cached
   */
  within(
    tx: Pick<StorageReader, "agent">,
    agentId: string,
    states: AgentStates,
    epoch: number,
    committed: boolean,
  ): Promise<AgentFacts>;
}

export function createAgentService(options: {
  storage: StorageReader;
  directory: Directory;
  head(): Promise<LedgerHead>;
  requireRegistered: boolean;
  rejectionHoldsMs: number;
  groups: Pick<Groups, "of">;
}): AgentService {
  const { storage, directory, rejectionHoldsMs } = options;
  let cache = new Map<string, AgentFacts>();
  let cachedEpoch = -1;

  async function read(
    reader: Pick<StorageReader, "agent">,
    agentId: string,
    agent: RegisteredAgent | null,
  ): Promise<AgentFacts> {
    return {
      attributes: {
        agent_groups: [...options.groups.of(principalOfAgent(agentId), NO_USERS)],
        agent_metadata: agent === null ? {} : await readMetadata(reader, agent),
      },
      ...(agent === null
        ? {}
        : { agent: { suspended: agent.suspended_at !== null, allowed_tools: agent.allowed_tools?.slice() ?? null } }),
      ...(options.requireRegistered ? { require_registered_agents: true } : {}),
      ...(rejectionHoldsMs === DEFAULT_REJECTION_HOLDS_MS ? {} : { rejection_holds_ms: rejectionHoldsMs }),
    };
  }

  async function cached(
    reader: Pick<StorageReader, "agent">,
    agentId: string,
    states: AgentStates,
    epoch: number,
  ): Promise<AgentFacts> {
    if (epoch > cachedEpoch || cache.size >= CACHE_LIMIT) {
      cache = new Map();
      cachedEpoch = epoch;
    }
    const cachedAgent = epoch === cachedEpoch ? cache.get(agentId) : undefined;
    if (cachedAgent !== undefined) return cachedAgent;
    const facts = await read(reader, agentId, find(states, agentId));
    if (epoch === cachedEpoch) cache.set(agentId, facts);
    return facts;
  }

  async function current(agentId: string): Promise<AgentFacts> {
    const head = await options.head();
    await directory.follow(storage, head);
    return cached(storage, agentId, directory.current(), head.epoch);
  }

  return {
    async facts(agentId) {
      for (let reads = 1; ; reads++) {
        try {
          return await current(agentId);
        } catch (error) {
          // The row may be newer than the entries that were read.
          if (!(error instanceof Refusal) || reads === MAX_READS) throw error;
        }
      }
    },
    registeredIds(agentId) {
      const id = find(directory.current(), agentId)?.id;
      return id === undefined || id === foldName(agentId) ? [] : [id];
    },
    within: (tx, agentId, states, epoch, committed) =>
      committed ? cached(tx, agentId, states, epoch) : read(tx, agentId, find(states, agentId)),
  };
}

function find(states: AgentStates, agentId: string): RegisteredAgent | null {
  return states.state(registeredAgentState).get(foldName(agentId)) ?? null;
}

const NO_METADATA = sha256Hex(utf8("{}"));

/** Throws STORE_ALTERED if the row is missing, or its metadata differs from the entries. */
async function readMetadata(reader: Pick<StorageReader, "agent">, agent: RegisteredAgent): Promise<JsonObject> {
  if (agent.metadata === NO_METADATA) return {};
  const row = await reader.agent(agent.id);
  if (row === null || sha256Hex(utf8(row.metadata)) !== agent.metadata) throw alteredRefusal(agent.id, ["metadata"]);
  return JSON.parse(row.metadata) as JsonObject;
}

/**
 * Throws STORE_ALTERED unless the row of an agent matches its entries. Ignores times, author and position: a change takes
 * them from the ledger instead of the row.
 */
export function assertAgentUnaltered(states: AgentStates, row: AgentRow): void {
  const agent = find(states, row.id);
  if (agent === null) throw alteredRefusal(row.id, ["id"]);
  const { registered_seq: _, created_by: __, created_at: ___, updated_at: ____, ...columns } = agent;
  const altered = findDifferingColumns(columns, digestMetadata(row));
  if (altered.length > 0) throw alteredRefusal(row.id, altered);
}

function alteredRefusal(id: string, columns: readonly string[]): Refusal {
  return new Refusal(
    "STORE_ALTERED",
    `the agent "${id}" in the store is not the one in the ledger (${columns.join(", ")}), so nothing was done; the operator has to run assent audit`,
  );
}
