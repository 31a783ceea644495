/**
 * Keys that represent workloads. Each configured workload has an API key whose value no one knows. Therefore
 * revocation, rate limits, permits, audits and access reviews work as they do for every other key.
 */
import {
  type CoreHost,
  findReferredUser,
  type LedgerTransaction,
  principalOfUser,
  SCOPE_PRESETS,
  userState,
} from "../../src/core.ts";
import type { IssuerOptions, WorkloadOptions } from "./issuer-options.ts";
import { invalidToken } from "./verify-token.ts";

export class WorkloadKeys {
  private readonly host: CoreHost;
  private readonly ids = new Map<string, Promise<string>>();

  constructor(host: CoreHost) {
    this.host = host;
  }

  /**
   * Returns the id of the workload's key. The workload's first token creates it. Throws INVALID_CREDENTIAL if it was
   * revoked or its configured owner is not valid.
   */
  async find(issuer: IssuerOptions, workload: WorkloadOptions): Promise<string> {
    const name = `workload ${issuer.id}/${workload.id}`;
    let id = this.ids.get(name);
    if (id === undefined) {
      id = this.host.ledger.transact((tx) => this.findOrCreate(tx, name, workload));
      this.ids.set(name, id);
      // Evict a failed creation. This handler also prevents an unhandled rejection. The caller awaits the original
      // promise.
      id.catch(() => this.ids.delete(name));
    }
    return id;
  }

  /** Finds the key in the ledger, because anyone with write access to the database can change the rows of keys. */
  private async findOrCreate(tx: LedgerTransaction, name: string, workload: WorkloadOptions): Promise<string> {
    const { agent } = workload;
    const owner = workload.owner === undefined ? null : findOwner(tx, workload.id, workload.owner);
    const existing = this.host.keys
      .recordedKeysNamed(name)
      // Ignore keys with the same name that another key created. They do not belong to the workload.
      .filter((key) => key.created_by === null && key.agent_id === agent);
    // Do not compare owners, because the configured reference may refer to another user by now.
    if (existing.some((key) => key.revoked_at !== null))
      throw invalidToken(`the key "${name}" was revoked, and with it the workload`);
    const current = existing.find((key) => key.owner === owner);
    if (current !== undefined) return current.id;
    const { key } = this.host.keys.mint({ name, scopes: SCOPE_PRESETS.agent, agent_id: agent, owner });
    return tx.recordKey("created", key, null).id;
  }
}

/** Returns the owner of the key. Throws INVALID_CREDENTIAL if the configured owner is not an active user. */
function findOwner({ state }: LedgerTransaction, workload: string, configured: string): string {
  const found = findReferredUser(state(userState), configured);
  if ("fault" in found)
    throw invalidToken(`the configured owner of the workload "${workload}" is not valid: ${found.fault}`);
  return principalOfUser(found.user.id);
}
