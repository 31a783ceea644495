/**
 * Audits a whole store: the ledger for consistency, and every table against what the entries imply. The service may run
 * meanwhile. Memory: one page of rows, and about 200 bytes for each key, agent, policy version and policy set, independent of
 * the number of actions.
 */
import type { Vault } from "../contract/core-host.ts";
import type { EntryRow } from "../contract/storage.ts";
import { parseEntryTime } from "../domain/action-history.ts";
import { FOLLOWED_TYPES, decodeEntry, type DecisionEntry, type PlanEntry } from "../domain/entries.ts";
import type { JsonObject } from "../domain/json.ts";
import type { LogKeys } from "../domain/log-keys.ts";
import { tilesBetween } from "../domain/tiles.ts";
import { auditActions, type LedgerTotals } from "./actions.ts";
import { createCoverageAudit } from "./coverage.ts";
import { createCredentialsAudit } from "./credentials.ts";
import { DirectoryAudit } from "./directory.ts";
import { createKeysAudit } from "./log-keys.ts";
import { PoliciesAudit } from "./policies.ts";
import { createFaultCollector, retryWhileFaulty, type AuditedStore, type EntryBody } from "./report.ts";
import { auditRows } from "./audit-rows.ts";
import { createThrottlesAudit } from "./throttles.ts";
import { createExceptionalVotesAudit } from "./exceptional-votes.ts";
import { createGrantsAudit } from "./grants.ts";
import { createLegalHoldsAudit } from "./legal-holds.ts";
import { createPlansAudit } from "./plans.ts";
import { createStopsAudit } from "./stops.ts";
import { createSuggestedRulesAudit } from "./suggested-rules.ts";
import { createUsersAudit } from "./users.ts";
import { auditLedger, reportUnreadable, type AuditReport } from "./ledger.ts";

const PAGE = 256;

interface StoreAuditOptions {
  verify: Vault["verify"];
  /**
   * A current or former key of the log, with which the checkpoint signatures are verified. If absent, they are not
   * verified.
   */
  vkey?: string;
  progress?(part: "entries" | "actions" | "policy sets", done: number, total: number): void;
}

export interface StoreAuditReport extends AuditReport {
  actions: number;
  /** Number of actions whose requests were erased, so that they could not be compared. */
  erased: number;
  policySets: number;
  keys: number;
  agents: number;
  users: number;
  /** At most 40 observations that are not faults. */
  warnings: string[];
  /** All keys of the log, if `vkey` was given. */
  logKeys: LogKeys;
}

/** Returns the name of the log: from the pinned key if there is one, else from the store. */
async function readOrigin(store: AuditedStore, vkey: string | undefined): Promise<string> {
  return vkey?.split("+")[0] ?? (await store.meta("log_origin")) ?? "";
}

/** Returns the key that an entry is stored with, as far as the entry itself determines it. */
function submitterOf({ type }: EntryRow, body: EntryBody): string | null {
  if (type === "decision") return (body as unknown as DecisionEntry).submitted_by.key_id;
  return type === "plan" ? (body as unknown as PlanEntry).by.key_id : null;
}

/** Audits the store. `faults` is empty if it is valid, and has at most 20 faults of each kind. */
export async function auditStore(store: AuditedStore, options: StoreAuditOptions): Promise<StoreAuditReport> {
  const faults: string[] = [];
  const directory = new DirectoryAudit(store);
  const policies = new PoliciesAudit(store);
  const stops = createStopsAudit();
  const holds = createLegalHoldsAudit();
  const grants = createGrantsAudit(() => stops.stops());
  const suggested = createSuggestedRulesAudit();
  const plans = createPlansAudit();
  const users = createUsersAudit(await readOrigin(store, options.vkey));
  const exceptional = createExceptionalVotesAudit(users.users);
  const coverage = createCoverageAudit();
  const credentials = createCredentialsAudit();
  const throttles = createThrottlesAudit();
  const signing = createKeysAudit(store, options.vkey ?? null, options.verify);
  const totals: LedgerTotals = { size: 0, decisions: 0, actionEntries: 0, unread: 0, latest: 0 };
  let changes = 0;
  let erased = 0;
  let folded = 0;
  const entryFault = createFaultCollector(faults);

  function fold(row: EntryRow, body: EntryBody): void {
    folded = row.seq + 1;
    try {
      const at = parseEntryTime(String(body["at"]));
      if (at !== row.created_at) entryFault(`entry ${row.seq} is stored with a different time than it contains`);
      totals.latest = Math.max(totals.latest, at);
      if ((FOLLOWED_TYPES as readonly string[]).includes(row.type)) changes++;
      const submitter = submitterOf(row, body);
      // Votes, starts and results name the submitter of their decision, which is checked with the action.
      if (row.submitted_by !== submitter && (row.type === "decision" || row.action_id === null))
        entryFault(`entry ${row.seq} is stored with a different submitter than it contains`);
      directory.fold(row, body);
      policies.fold(row, body);
      stops.fold(body);
      holds.fold(body);
      exceptional.fold(body);
      users.fold(body);
      grants.fold(body);
      suggested.fold(body);
      coverage.fold(body);
      credentials.fold(body);
      throttles.fold(body);
      plans.fold(body);
      signing.fold(row, body);
    } catch (error) {
      entryFault(
        `entry ${row.seq} contradicts earlier entries: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  /** Reads entries that were recorded meanwhile, for example the one of a key that was created during the audit. */
  async function catchUp(): Promise<void> {
    for (;;) {
      const rows = await store.entries(folded, folded + PAGE);
      if (rows.length === 0) return;
      for (const row of rows) fold(row, decodeEntry<JsonObject>(row.bytes));
    }
  }

  const ledger = await auditLedger(store, {
    from: 0,
    verify: options.verify,
    ...(options.vkey === undefined ? {} : { keys: signing.logKeys }),
    progress: (done, total) => options.progress?.("entries", done, total),
    onEntry(row, body) {
      if (row.type === "decision") totals.decisions++;
      if (row.type === "erasure") erased++;
      if (row.action_id !== null) totals.actionEntries++;
      if (body === null) folded = row.seq + 1;
      else fold(row, body);
    },
    onUnread(seq) {
      totals.unread++;
      folded = seq + 1;
    },
  });
  totals.size = ledger.size;

  const actionFault = createFaultCollector(faults);
  let actions = 0;
  await reportUnreadable("the actions", actionFault, async () => {
    actions = await auditActions({
      store,
      totals,
      compiled: (digest) => policies.compiled(digest),
      grants,
      exceptional,
      progress: (done) => options.progress?.("actions", done, totals.decisions),
      fault: actionFault,
    });
    grants.checkAll(actionFault);
  });
  await retryWhileFaulty(
    "the API keys and agents",
    createFaultCollector(faults),
    (fault) => directory.check(fault),
    catchUp,
  );
  await retryWhileFaulty(
    "the coverage statements",
    createFaultCollector(faults),
    (fault) => coverage.check(store, fault),
    catchUp,
  );
  await retryWhileFaulty(
    "the legal holds",
    createFaultCollector(faults),
    (fault) => holds.check(store, fault),
    catchUp,
  );
  await retryWhileFaulty("the keys that sign", createFaultCollector(faults), (fault) => signing.check(fault), catchUp);
  await retryWhileFaulty(
    "the policies",
    createFaultCollector(faults),
    (fault) => policies.check(fault, (done, total) => options.progress?.("policy sets", done, total)),
    catchUp,
  );
  await retryWhileFaulty(
    "the suggested rules",
    createFaultCollector(faults),
    async (fault) => {
      const active = await policies.compiled((await store.head()).policy_set);
      if (active !== null) await suggested.check(store, active.document, fault);
    },
    catchUp,
  );
  const own = createFaultCollector(faults);
  await reportUnreadable("the integrity of the store", own, async () => (await store.inspect?.())?.forEach(own));
  const { copying } = store;
  if (copying !== undefined) {
    const rowFault = createFaultCollector(faults);
    const rows = {
      store,
      policies,
      stops,
      holds,
      grants,
      suggested,
      plans,
      keys: options.vkey === undefined ? null : signing.logKeys,
      verify: options.verify,
    };
    await reportUnreadable("the rows about actions", rowFault, () => auditRows(rows, copying, rowFault));
    await retryWhileFaulty("the head", createFaultCollector(faults), async (fault) => {
      const { size, epoch } = await store.head();
      // While the service runs there may be newer entries. A head that is too large was reported already.
      if (size === ledger.entries) {
        const tiles = tilesBetween(0, size).length;
        const stored = { tiles: await copying.count("tiles"), entries: await copying.count("entries") };
        if (stored.tiles !== tiles)
          fault(`the store has ${stored.tiles} tiles, but a ledger of size ${size} has ${tiles}`);
        if (stored.entries !== size) fault(`the store has ${stored.entries} entries, but its head has size ${size}`);
      }
      if (epoch < changes)
        fault(`the head's epoch ${epoch} is less than the ${changes} changes of keys, agents and stops`);
    });
  }
  return {
    ...ledger,
    actions,
    erased,
    policySets: policies.sets.size,
    keys: directory.keys(),
    agents: directory.agents(),
    users: users.count(),
    warnings: [...directory.warnings().slice(0, 20), ...credentials.warnings(Math.max(Date.now(), totals.latest))],
    logKeys: signing.logKeys(),
    faults: [...ledger.faults, ...faults],
  };
}
