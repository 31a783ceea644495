/**
 * Audits a whole store: the ledger for consistency, and every table against what the entries imply. The service may run
 * during the audit. Uses memory for one page of rows, and about 200 bytes for each key, agent, policy version and
 * policy set. Memory grows with the number of actions only for actions of plans, and for actions that a grant or a
 * suggested rule allowed.
 */
import type { AuditedFeatures, AuditStates } from "../contract/audit.ts";
import type { Vault } from "../contract/core-host.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import type { StorageCopying } from "../contract/storage.ts";
import type { LogKeys } from "../domain/log-keys.ts";
import { tilesBetween } from "../domain/tiles.ts";
import { keyState } from "../domain/recorded-keys.ts";
import { registeredAgentState } from "../domain/registered-agents.ts";
import { userState } from "../domain/users.ts";
import { auditActions } from "./actions.ts";
import { auditRows, type Created } from "./audit-rows.ts";
import { auditDirectory, listKeyWarnings } from "./directory.ts";
import { ExpectedRows } from "./expected-rows.ts";
import { auditLedger, type AuditReport } from "./ledger.ts";
import { createKeysAuditor } from "./log-keys.ts";
import {
  createFaultCollector,
  reportUnreadableData,
  retryWhileFaulty,
  type AuditedStore,
  type ReportFault,
} from "./report.ts";

const MAX_WARNINGS = 20;

interface StoreAuditOptions {
  /** The declarations of the loaded plugins. Entries of other features are not checked. */
  features: AuditedFeatures;
  verify: Vault["verify"];
  /**
   * A current or former key of the log that verifies the signatures of checkpoints. If absent, signatures are not
   * verified.
   */
  vkey?: string;
  /** Compares rows with their seals. If absent, seals are not verified, because that needs the service's secret. */
  seals?: RowSeals;
  progress?(part: "entries" | "actions" | "policy sets", done: number, total: number): void;
}

export interface StoreAuditReport extends AuditReport {
  actions: number;
  /** Number of actions that could not be compared because their requests were erased. */
  erased: number;
  policySets: number;
  keys: number;
  agents: number;
  users: number;
  /** Observations that are not faults, at most 20 of each part. */
  warnings: string[];
  /** All keys of the log, if `vkey` was given. */
  logKeys: LogKeys;
}

/** Audits the store. `faults` is empty if the store is valid, and has at most 20 faults of each kind. */
export async function auditStore(store: AuditedStore, options: StoreAuditOptions): Promise<StoreAuditReport> {
  const faults: string[] = [];
  const signing = createKeysAuditor(store, options.vkey ?? null, options.verify);
  const origin = await readOrigin(store, options.vkey);
  const entries = new ExpectedRows(store, options.features, signing, origin, createFaultCollector(faults));
  const ledger = await auditLedger(store, {
    from: 0,
    verify: options.verify,
    ...(options.vkey === undefined ? {} : { keys: signing.logKeys }),
    ...(options.seals === undefined ? {} : { seals: options.seals }),
    progress: (done, total) => options.progress?.("entries", done, total),
    onEntry: (row, body) => entries.add(row, body),
    onUnread: (seq) => entries.skip(seq),
  });
  entries.totals.size = ledger.size;
  const audit: TablesAudit = { store, entries, options, faults };
  const actions = await checkActions(audit);
  await checkDirectory(audit);
  await checkPolicies(audit);
  const fault = createFaultCollector(faults);
  await reportUnreadableData("the integrity of the store", fault, async () =>
    (await store.inspect?.())?.forEach(fault),
  );
  if (store.copying !== undefined) await checkCopiedTables(audit, store.copying, ledger.entries);
  const { policies, auditors, totals, erased } = entries;
  const now = Math.max(Date.now(), totals.latest);
  const states = entries.statesAt(now);
  return {
    ...ledger,
    actions,
    erased,
    policySets: policies.sets.size,
    keys: states.state(keyState).size,
    agents: states.state(registeredAgentState).size,
    users: states.state(userState).size,
    warnings: [listKeyWarnings(states), ...auditors.map((auditor) => auditor.warnings?.(now) ?? [])].flatMap((list) =>
      list.slice(0, MAX_WARNINGS),
    ),
    logKeys: signing.logKeys(),
    faults: [...ledger.faults, ...faults],
  };
}

interface TablesAudit {
  store: AuditedStore;
  /** All entries of the ledger. */
  entries: ExpectedRows;
  options: StoreAuditOptions;
  /** Receives the faults. */
  faults: string[];
}

/** Returns the name of the log, from the pinned key if there is one, else from the store. */
async function readOrigin(store: AuditedStore, vkey: string | undefined): Promise<string> {
  return vkey?.split("+")[0] ?? (await store.meta("log_origin")) ?? "";
}

/**
 * Runs a check that compares the store with the newest entries. Before each attempt, reads the entries that were added.
 */
function checkCurrent(
  { entries, faults }: TablesAudit,
  subject: string,
  check: (reportFault: ReportFault) => Promise<void>,
): Promise<void> {
  return retryWhileFaulty(subject, createFaultCollector(faults), check, () => entries.catchUp());
}

/** Audits all actions. Resolves to the number of actions. */
async function checkActions({ store, entries, options, faults }: TablesAudit): Promise<number> {
  const { totals, policies, auditors } = entries;
  const fault = createFaultCollector(faults);
  let actions = 0;
  await reportUnreadableData("the actions", fault, async () => {
    actions = await auditActions({
      store,
      totals,
      compiled: (digest) => policies.compiled(digest),
      auditors,
      progress: (done) => options.progress?.("actions", done, totals.decisions),
      fault,
    });
    for (const auditor of auditors) auditor.finish?.(fault);
  });
  return actions;
}

async function checkDirectory(audit: TablesAudit): Promise<void> {
  const { signing, auditors } = audit.entries;
  const currentStates = (): AuditStates => audit.entries.statesAt(audit.entries.totals.latest);
  await checkCurrent(audit, "the API keys and agents", (fault) => auditDirectory(audit.store, currentStates(), fault));
  for (const auditor of auditors)
    await checkCurrent(audit, "the data of features", async (fault) =>
      auditor.compare?.(audit.store, fault, currentStates()),
    );
  await checkCurrent(audit, "the keys that sign", (fault) => signing.check(fault));
}

async function checkPolicies(audit: TablesAudit): Promise<void> {
  const { options } = audit;
  const { policies } = audit.entries;
  await checkCurrent(audit, "the policies", (fault) =>
    policies.check(audit.entries.statesAt(audit.entries.totals.latest), fault, (done, total) =>
      options.progress?.("policy sets", done, total),
    ),
  );
}

/** @param size the number of entries that the ledger audit has read */
async function checkCopiedTables(
  { store, entries, options, faults }: TablesAudit,
  copying: StorageCopying,
  size: number,
): Promise<void> {
  const { policies, auditors, signing, changes } = entries;
  const states = entries.statesAt(entries.totals.latest);
  const created = Object.assign({}, ...entries.auditors.map((auditor) => auditor.created ?? {})) as Created;
  const keys = options.vkey === undefined ? null : signing.logKeys;
  const { verify, seals = null } = options;
  const rows = {
    store,
    policies,
    states,
    created,
    notices: options.features.notices,
    auditors,
    keys,
    verify,
    seals,
  };
  const rowFault = createFaultCollector(faults);
  await reportUnreadableData("the rows about actions", rowFault, () => auditRows(rows, copying, rowFault));
  await retryWhileFaulty("the head", createFaultCollector(faults), async (fault) => {
    const head = await store.head();
    // While the service runs, the store may have newer entries. The ledger audit already reports a head that is too
    // large.
    if (head.size === size) {
      const tiles = tilesBetween(0, size).length;
      const stored = { tiles: await copying.count("tiles"), entries: await copying.count("entries") };
      if (stored.tiles !== tiles)
        fault(`the store has ${stored.tiles} tiles, but a ledger of size ${size} has ${tiles}`);
      if (stored.entries !== size) fault(`the store has ${stored.entries} entries, but its head has size ${size}`);
    }
    if (head.epoch < changes)
      fault(`the head's epoch ${head.epoch} is less than the ${changes} changes of keys, agents and features`);
  });
}
