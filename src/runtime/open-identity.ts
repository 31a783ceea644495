/** Opens the directory, and the services for callers: permit keys, users, keys, agents. */
import type { Config } from "../config/index.ts";
import type { AuditedFeatures } from "../contract/audit.ts";
import type { Groups } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import { createAgentService, type AgentService } from "../identity/agents.ts";
import { Directory } from "../identity/directory.ts";
import { createKeyUseRecorder } from "../identity/key-use.ts";
import { KeyService } from "../identity/keys.ts";
import { openPermitKeys, type PermitKeyService } from "../identity/permit-keys.ts";
import { createUserService, type UserService } from "../identity/users.ts";
import type { States } from "../ledger/states.ts";
import type { Disposer } from "./disposer.ts";
import { isLogKey, type OpenStore } from "./open-store.ts";

export interface IdentityServices {
  readonly directory: Directory;
  readonly permits: PermitKeyService;
  readonly users: UserService;
  readonly keys: KeyService;
  readonly agents: AgentService;
  /** Returns the states at the newest commit. Rejects with StorageError. */
  states(): Promise<States>;
}

/** Opens the components. Adds a disposer to `opened` for each component that must be closed. */
export async function openIdentityServices(
  store: OpenStore,
  options: {
    config: Config;
    groups: Groups;
    log: Logger;
    clock(): number;
    newId(): string;
    declared: Pick<AuditedFeatures, "folds" | "entryTypes">;
    /** Whether to accept a permit key that does not belong to the store. */
    anyPermitKey: boolean;
  },
  opened: Disposer[],
): Promise<IdentityServices> {
  const { storage, vault, heads } = store;
  const { config, groups, log, clock, newId } = options;
  const head = () => heads.read();
  const keyUse = createKeyUseRecorder(storage, log);
  opened.push({ name: "key use", close: () => keyUse.stop() });
  const directory = new Directory(options.declared, config.ledger.ignored_entries);
  const permits = await openPermitKeys({
    config,
    storage,
    directory,
    vault,
    isLogKey: (publicKey) => isLogKey(store, publicKey),
    head,
    clock,
    log,
    anyKey: options.anyPermitKey,
  });
  opened.push({ name: "permit keys", close: () => permits.close() });
  const users = createUserService({ storage, directory, groups, head, clock });
  const keys = new KeyService({
    storage,
    directory,
    groups,
    users,
    log,
    head,
    clock,
    newId,
    used: (id, now) => keyUse.note(id, now),
  });
  const agents = createAgentService({
    storage,
    directory,
    head,
    requireRegistered: config.require_registered_agents,
    rejectionHoldsMs: config.approvals.rejection_holds_seconds * 1000,
    groups,
  });
  return {
    directory,
    permits,
    users,
    keys,
    agents,
    async states() {
      await directory.follow(storage, await head());
      return directory.current();
    },
  };
}
