/**
 * Compares limit uses, past actions, idempotency keys, deliveries and rows of `meta` with the actions, keys and entries
 * that they refer to.
 */
import type { FeatureAuditor } from "../contract/audit.ts";
import type { NoticeKind } from "../contract/notice.ts";
import type { StatesReader } from "../contract/states.ts";
import type { Vault } from "../contract/core-host.ts";
import { describeSealedRow, SEALED_TABLES, type RowSeals } from "../contract/row-seals.ts";
import {
  CORE_DELIVERY_KINDS,
  type CopiedRow,
  type DeliveryRow,
  type IdempotencyRow,
  type LimitUseRow,
  type PastActionRef,
  type StorageCopying,
} from "../contract/storage.ts";
import { findHistoryTime, readActionHistory } from "../domain/action-history.ts";
import { parseEntryTime } from "../domain/time.ts";
import { equalBytes } from "../domain/hash.ts";
import {
  decodeEntry,
  type ApprovalEntry,
  type DecisionEntry,
  type ExecutionEntry,
  type RedecisionEntry,
} from "../domain/entries.ts";
import { openLogCheckpoint, type LogKeys } from "../domain/log-keys.ts";
import { effectiveRequest } from "../domain/edited-request.ts";
import { findCountingPolicies, recomputeCountedRows } from "./counted-rows.ts";
import { prefixFaults, reportDifferences, checkEachRow, type AuditedStore, type ReportFault } from "./report.ts";
import type { PoliciesAuditor } from "./policies.ts";
import { createProofReader } from "../ledger/reader.ts";

/** Names in `meta` whose values the ledger does not record. A name that ends in a colon is a prefix. */
export const UNRECORDED_META_NAMES = [
  "secret_fingerprint",
  "environment",
  "settled_incarnation",
  "permit_key",
  "policy_source:",
  "policy_source_refused:",
  "unfinished_copy",
  "repairs",
] as const;

export type Created = NonNullable<FeatureAuditor["created"]>;

interface RowsAudit {
  store: AuditedStore;
  policies: PoliciesAuditor;
  states: StatesReader;
  /** See `FeatureAuditor.created`, for all features. */
  created: Created;
  notices: readonly NoticeKind[];
  /** Checks of features. */
  auditors: readonly FeatureAuditor[];
  /** Returns the log's keys. The member is null if checkpoints are not verified. */
  keys: (() => LogKeys) | null;
  verify: Vault["verify"];
  /** Null if the secret is not known. Seals are then not verified. */
  seals: RowSeals | null;
}

export async function auditRows(audit: RowsAudit, copying: StorageCopying, reportFault: ReportFault): Promise<void> {
  await checkEachRow(copying, "limit_uses", reportFault, (row, report) =>
    checkCounted(audit, row as unknown as LimitUseRow, prefixFaults("a use of a limit", report)),
  );
  await checkEachRow(copying, "past_actions", reportFault, (row, report) =>
    checkCounted(audit, row as unknown as PastActionRef, prefixFaults("an action of a history", report)),
  );
  await checkEachRow(copying, "idempotency", reportFault, (row, report) =>
    checkIdempotency(audit, row as unknown as IdempotencyRow, prefixFaults("an idempotency key", report)),
  );
  await checkEachRow(copying, "deliveries", reportFault, (row, report) =>
    checkDelivery(audit, row as unknown as DeliveryRow, prefixFaults(`the message ${String(row["id"])}`, report)),
  );
  await checkEachRow(copying, "meta", reportFault, (row, report) => checkMeta(audit, row, report));
  const { seals } = audit;
  if (seals === null) return;
  for (const table of SEALED_TABLES)
    await checkEachRow(copying, table, reportFault, async (row, report) => {
      if (!seals.matches(table, row as never))
        report(`${describeSealedRow(table, row as never)} was changed outside the service: its seal does not match`);
    });
}

type CountedRow = LimitUseRow | PastActionRef;

const describeCounter = (row: CountedRow): string =>
  "limit_name" in row ? `the limit "${row.limit_name}" of "${row.policy}"` : `the history of "${row.policy}"`;

/**
 * Checks a stored row that decisions count. Recomputes the action's rows from its request, entries and policies, and
 * reports differences. If the request was erased, checks only the time.
 */
async function checkCounted({ store, policies }: RowsAudit, row: CountedRow, reportFault: ReportFault): Promise<void> {
  const action = await store.action(row.action_id);
  if (action === null) return reportFault(`there is no action ${row.action_id}`);
  const report = prefixFaults(`action ${row.action_id}`, reportFault);
  const history = readActionHistory(await store.entriesOfAction(action.id));
  if (history === null) return report("its first entry is not a decision");
  const set = await policies.compiled(findCountingPolicies(history));
  if (set === null) return;
  const request = effectiveRequest(action);
  // The other columns depend on the erased request.
  if (request === null) {
    const { first, edit, usage } = history;
    const at = "limit_name" in row ? parseEntryTime((edit?.entry ?? first).at) : findHistoryTime(history);
    return reportDifferences({ at: "limit_name" in row && row.at === usage?.at ? row.at : at }, row, report);
  }
  const { uses, places } = recomputeCountedRows(set, request, history, action.past);
  const counter = describeCounter(row);
  const recorded = [...uses, ...places].filter((candidate) => describeCounter(candidate) === counter);
  const expected = recorded.find(({ subject }) => subject === row.subject) ?? recorded[0];
  if (expected === undefined) report(`it does not count for ${counter}`);
  else reportDifferences(expected, row, report);
}

/** Checks that the resource of an idempotency key was created by the same API key at the same time. */
async function checkIdempotency(
  { store, policies, states, created }: RowsAudit,
  row: IdempotencyRow,
  reportFault: ReportFault,
): Promise<void> {
  const { key_id, route, resource_id, created_at } = row;
  const report = prefixFaults(`${route} ${resource_id}`, reportFault);
  // Returns, for each core route, the values that the row's columns must have; null if the resource does not exist.
  const recordedBy: Record<string, () => Promise<object | null>> = {
    "POST /v1/actions": async () => {
      const action = await store.action(resource_id);
      // The row has no hash of the request. The audit of actions compares that hash.
      return action && { key_id: action.submitted_by, created_at: action.created_at, body_hash: "" };
    },
    "POST /v1/agents": async () => creationOf(await store.agent(resource_id)),
    "POST /v1/api-keys": async () => creationOf(await store.key(resource_id)),
    "POST /v1/policies": async () => {
      if ((await store.policy(resource_id)) === null) return null;
      if (!policies.wasStoredBy(resource_id, key_id, created_at))
        report("that key did not store this policy at that time");
      return {};
    },
    ...Object.fromEntries(Object.entries(created).map(([path, find]) => [path, async () => find(states, resource_id)])),
  };
  if (Object.hasOwn(recordedBy, route)) {
    const recorded = (await recordedBy[route]?.()) ?? null;
    if (recorded === null) return report("the resource was not created by this route");
    return reportDifferences(recorded, row, report);
  }
  // The route belongs to a plugin. A core route must not have created its resource.
  for (const recorded of Object.values(recordedBy))
    if ((await recorded()) !== null) return report("the resource was created by another route");
}

function creationOf(row: { created_by: string | null; created_at: number } | null): object | null {
  return row && { key_id: row.created_by, created_at: row.created_at };
}

/**
 * Checks that a delivery refers to an existing entry and its action, and that the entry causes messages of this kind.
 */
async function checkDelivery({ store, notices }: RowsAudit, row: DeliveryRow, reportFault: ReportFault): Promise<void> {
  const [entry] = await store.entries(row.seq, row.seq + 1);
  if (entry === undefined) return reportFault(`there is no entry ${row.seq}`);
  reportDifferences({ action_id: entry.action_id, created_at: entry.created_at }, row, reportFault);
  const notice = notices.find(({ name }) => name === row.kind);
  if (notice !== undefined) {
    if (entry.type !== notice.entry) reportFault(`entry ${row.seq} does not cause a message of kind ${row.kind}`);
    return;
  }
  if (!(CORE_DELIVERY_KINDS as readonly string[]).includes(row.kind))
    reportFault(`the message kind ${row.kind} does not exist`);
  if (row.kind === "event") return;
  const body = decodeEntry<DecisionEntry | ApprovalEntry | RedecisionEntry | ExecutionEntry>(entry.bytes);
  const { type, status } = body;
  if (row.kind === "outcome_unknown") {
    if (type !== "execution" || status !== "unknown") reportFault(`entry ${row.seq} does not make an outcome unknown`);
    return;
  }
  if (row.kind === "break_glass") {
    if (type !== "approval" || !(body as ApprovalEntry).break_glass)
      reportFault(`entry ${row.seq} is no emergency approval`);
    return;
  }
  const asks = (type === "decision" || type === "redecision") && status === "pending_approval";
  const isOver =
    (type === "redecision" && status === "denied") || (type === "approval" && status !== "pending_approval");
  if (row.kind === "approval_closed" ? !isOver : !asks)
    reportFault(`entry ${row.seq} does not cause a message of kind ${row.kind}`);
}

async function checkMeta(
  { store, policies, auditors, keys, verify }: RowsAudit,
  row: CopiedRow,
  reportFault: ReportFault,
): Promise<void> {
  const [name, value] = [String(row["name"]), String(row["value"])];
  const report = prefixFaults(`the fact ${name}`, reportFault);
  for (const auditor of auditors) {
    const found = auditor.findFactFault?.(name);
    if (found === undefined) continue;
    if (found !== null) report(found);
    return;
  }
  if (UNRECORDED_META_NAMES.some((pattern) => name === pattern || (pattern.endsWith(":") && name.startsWith(pattern))))
    return;
  if (name === "log_vkey") {
    if (keys !== null && keys().first !== value) report("it differs from the log's first key");
  } else if (name === "log_origin") {
    if (!(await store.meta("log_vkey"))?.startsWith(`${value}+`)) report("it differs from the name in the log's key");
  } else if (name.startsWith("policy_set_source:")) {
    if (policies.sets.get(name.slice("policy_set_source:".length))?.source !== value)
      report("it differs from the ledger");
  } else if (name === "cosigned_checkpoint") {
    if (keys === null) return;
    const { size, root } = openLogCheckpoint(value, keys(), verify);
    if (size > (await store.head()).size) report(`it was signed at size ${size}, which is larger than the ledger`);
    else if (!equalBytes(await createProofReader(store).rootAt(size), root))
      report(`the ledger does not contain the tree that was signed at size ${size}`);
  } else report("it is not a known fact");
}
