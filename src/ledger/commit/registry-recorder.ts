/**
 * Records changes of API keys, agents and policies, and writes their rows. The columns that entries determine are those
 * of the folds with which every process and the audit compute them, so that no caller can write a row that differs from
 * the ledger.
 */
import type { RecordedWrites, RegistryEntry, RegistryRecorder } from "../../contract/ledger.ts";
import { Refusal } from "../../contract/errors.ts";
import type { AppendedEntry } from "../../contract/host.ts";
import type { StatesReader } from "../../contract/states.ts";
import type { StorageWrites } from "../../contract/storage.ts";
import { foldName } from "../../domain/names.ts";
import { buildKeyEntry, type KeyColumns, keyState } from "../../domain/recorded-keys.ts";
import {
  findActivatedSet,
  policySetSourceMeta,
  type PolicyVersionColumns,
  type RecordedPolicy,
  recordedPolicyState,
} from "../../domain/recorded-policies.ts";
import { buildAgentEntry, type RegisteredAgent, registeredAgentState } from "../../domain/registered-agents.ts";

interface RecorderOptions extends StatesReader {
  record(entry: RegistryEntry): AppendedEntry;
  expectChange(write: Promise<boolean>, row: string): void;
  writes: RecordedWrites & Pick<StorageWrites, "putMeta">;
}

export function createRegistryRecorder({
  now,
  state,
  record,
  expectChange,
  writes,
}: RecorderOptions): RegistryRecorder {
  const expect = (row: string, write: Promise<boolean | void>): void =>
    expectChange(
      write.then((changed) => changed !== false),
      row,
    );

  return {
    recordKey(change, key, by) {
      if (change === "revoked" && !state(keyState).has(key.id))
        throw new Refusal(
          "KEY_ALTERED",
          `the key ${key.id} in the store is not in the ledger; nothing was done, and the operator has to look at the store with assent audit`,
        );
      record(buildKeyEntry(change, key, now, by));
      const columns = state(keyState).get(key.id) as KeyColumns;
      const row = { last_used_at: null, ...key, ...columns };
      expect(`the API key ${key.id}`, change === "created" ? writes.insertKey(row) : writes.revokeKey(row.id, now));
      return row;
    },
    recordAgent(change, agent, by) {
      record(buildAgentEntry(change, agent, now, by));
      const columns = state(registeredAgentState).get(foldName(agent.id)) as RegisteredAgent;
      const row = { ...columns, metadata: agent.metadata };
      expect(`the agent ${agent.id}`, change === "registered" ? writes.insertAgent(row) : writes.updateAgent(row));
      return row;
    },
    recordPolicies(entry, texts, document) {
      if (new Set(entry.changes.map(({ id }) => id)).size < entry.changes.length)
        throw new TypeError("an entry changes each policy once");
      const earlier = state(recordedPolicyState);
      record(entry);
      for (const { id, version, digest } of entry.changes) {
        const { row, versions } = state(recordedPolicyState).get(id) as RecordedPolicy;
        expect(`the policy ${row.name}`, earlier.has(id) ? writes.updatePolicy(row) : writes.insertPolicy(row));
        if (digest === null) continue;
        const columns = versions.get(version) as PolicyVersionColumns;
        const text = texts.get(id);
        if (text === undefined) throw new TypeError(`the definition of version ${version} of "${row.name}" is missing`);
        expect(`the policy ${row.name}`, writes.insertPolicyVersion({ policy_id: id, version, ...columns, ...text }));
      }
      const set = findActivatedSet(entry);
      if (set === null) return;
      expect(
        `the policy set ${set.digest}`,
        writes.putPolicySet({ digest: set.digest, document, created_at: set.created_at }),
      );
      expect(`the policy set ${set.digest}`, writes.putMeta(policySetSourceMeta(set.digest), set.source));
    },
  };
}
