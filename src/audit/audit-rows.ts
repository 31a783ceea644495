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
  type ActionRow,
  type CopiedRow,
  type DeliveryRow,
  type IdempotencyRow,
  type LimitUseRow,
  type PastActionRef,
  type StorageCopying,
} from "../contract/storage.ts";
import { buildActionHistory, findHistoryTime, type ActionEntry, type ActionHistory } from "../domain/action-history.ts";
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
import { restoreEntry } from "../domain/salted-facts.ts";
import { recomputeMemberships } from "../domain/policy/decide/effect-keys.ts";
import { recomputeLimitUses } from "../domain/limit-uses.ts";
import { effectiveRequest } from "../domain/edited-request.ts";
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

export async function auditRows(audit: RowsAudit, copying: StorageCopying, fault: ReportFault): Promise<void> {
  await checkEachRow(copying, "limit_uses", fault, (row, report) =>
    checkUse(audit, row as unknown as LimitUseRow, prefixFaults("a use of a limit", report)),
  );
  await checkEachRow(copying, "past_actions", fault, (row, report) =>
    checkPastAction(audit, row as unknown as PastActionRef, prefixFaults("an action of a history", report)),
  );
  await checkEachRow(copying, "idempotency", fault, (row, report) =>
    checkIdempotency(audit, row as unknown as IdempotencyRow, prefixFaults("an idempotency key", report)),
  );
  await checkEachRow(copying, "deliveries", fault, (row, report) =>
    checkDelivery(audit, row as unknown as DeliveryRow, prefixFaults(`the message ${String(row["id"])}`, report)),
  );
  await checkEachRow(copying, "meta", fault, (row, report) => checkMeta(audit, row, report));
  const { seals } = audit;
  if (seals === null) return;
  for (const table of SEALED_TABLES)
    await checkEachRow(copying, table, fault, async (row, report) => {
      if (!seals.matches(table, row as never))
        report(`${describeSealedRow(table, row as never)} was changed outside the service: its seal does not match`);
    });
}

/**
 * Checks a row of limit uses: the action must count against the limit, and the row's subject, amount, time and expiry
 * must equal the values recomputed from the action's request and the policy set of the action's decision. For an erased
 * request, checks only the time.
 */
async function checkUse(audit: RowsAudit, row: LimitUseRow, fault: ReportFault): Promise<void> {
  const found = await findDecidedAction(audit, row.action_id);
  if (found === null) return fault(`there is no action ${row.action_id}`);
  const { action, entry, history } = found;
  const set = await audit.policies.compiled(entry.policy_set);
  if (set === null) return;
  const request = effectiveRequest(action);
  // The amount came from the erased request, so only the time can be compared: that of the decision, or of the report.
  if (request === null) {
    const at = row.at === history?.usage?.at ? row.at : parseEntryTime(entry.at);
    return reportDifferences({ at }, row, prefixFaults(`action ${row.action_id}`, fault));
  }
  const uses = history === null ? [] : recomputeLimitUses(set, request, entry, parseEntryTime(entry.at), history);
  const ofLimit = uses.filter(({ policy, limit }) => policy === row.policy && limit === row.limit_name);
  const use = ofLimit.find(({ subject }) => subject === row.subject) ?? ofLimit[0];
  if (use === undefined)
    return fault(`the action ${row.action_id} does not count against "${row.limit_name}" of "${row.policy}"`);
  const { subject, amount, until, at } = use;
  reportDifferences({ subject, amount, until, at }, row, prefixFaults(`action ${row.action_id}`, fault));
}

/** Checks that the action of a history row belongs to that history. */
async function checkPastAction(audit: RowsAudit, row: PastActionRef, fault: ReportFault): Promise<void> {
  const found = await findDecidedAction(audit, row.action_id);
  if (found === null) return fault(`there is no action ${row.action_id}`);
  const { action, entry, history } = found;
  const set = await audit.policies.compiled(entry.policy_set);
  if (set === null) return;
  const report = prefixFaults(`action ${row.action_id}`, fault);
  const request = effectiveRequest(action);
  const decidedAt = parseEntryTime(entry.at);
  const at = history === null ? decidedAt : findHistoryTime(history);
  // The owner may have come from the erased request, so only the time can be compared.
  if (request === null) return reportDifferences({ at }, row, report);
  const places = recomputeMemberships(set, request, entry, decidedAt, at);
  const place =
    places.find(({ policy, subject }) => policy === row.policy && subject === row.subject) ??
    places.find(({ policy }) => policy === row.policy);
  if (place === undefined)
    return fault(`the action ${row.action_id} does not belong to the history of "${row.policy}"`);
  reportDifferences({ ...place, at }, row, report);
}

/**
 * Returns an action with the entry that decided its current request, and its history; null if the action is not stored.
 */
async function findDecidedAction(
  { store }: RowsAudit,
  id: string,
): Promise<{ action: ActionRow; entry: DecisionEntry | RedecisionEntry; history: ActionHistory | null } | null> {
  const action = await store.action(id);
  const [stored] = action === null ? [] : await store.entries(action.decision_seq, action.decision_seq + 1);
  if (action === null || stored === undefined) return null;
  const first = decodeEntry<DecisionEntry>(stored.bytes);
  const entries = (await store.entriesOfAction(action.id)).filter(({ type }) => !type.includes(":"));
  const history = buildActionHistory(
    entries.map(({ bytes }) => decodeEntry<ActionEntry>(bytes)),
    action.decision_hash,
  );
  // Once an approver has changed the request, the changed request counts.
  return { action, entry: restoreEntry(history?.edit?.entry ?? first, action.past), history };
}

/** Checks that the resource of an idempotency key was created by the same API key at the same time. */
async function checkIdempotency(
  { store, policies, states, created }: RowsAudit,
  row: IdempotencyRow,
  fault: ReportFault,
): Promise<void> {
  const { key_id, route, resource_id, created_at } = row;
  const report = prefixFaults(`${route} ${resource_id}`, fault);
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
async function checkDelivery({ store, notices }: RowsAudit, row: DeliveryRow, fault: ReportFault): Promise<void> {
  const [entry] = await store.entries(row.seq, row.seq + 1);
  if (entry === undefined) return fault(`there is no entry ${row.seq}`);
  reportDifferences({ action_id: entry.action_id, created_at: entry.created_at }, row, fault);
  const notice = notices.find(({ name }) => name === row.kind);
  if (notice !== undefined) {
    if (entry.type !== notice.entry) fault(`entry ${row.seq} does not cause a message of kind ${row.kind}`);
    return;
  }
  if (!(CORE_DELIVERY_KINDS as readonly string[]).includes(row.kind))
    fault(`the message kind ${row.kind} does not exist`);
  if (row.kind === "event") return;
  const body = decodeEntry<DecisionEntry | ApprovalEntry | RedecisionEntry | ExecutionEntry>(entry.bytes);
  const { type, status } = body;
  if (row.kind === "outcome_unknown") {
    if (type !== "execution" || status !== "unknown") fault(`entry ${row.seq} does not make an outcome unknown`);
    return;
  }
  if (row.kind === "break_glass") {
    if (type !== "approval" || !(body as ApprovalEntry).break_glass) fault(`entry ${row.seq} is no emergency approval`);
    return;
  }
  const asks = (type === "decision" || type === "redecision") && status === "pending_approval";
  const over = (type === "redecision" && status === "denied") || (type === "approval" && status !== "pending_approval");
  if (row.kind === "approval_closed" ? !over : !asks)
    fault(`entry ${row.seq} does not cause a message of kind ${row.kind}`);
}

async function checkMeta(
  { store, policies, auditors, keys, verify }: RowsAudit,
  row: CopiedRow,
  fault: ReportFault,
): Promise<void> {
  const [name, value] = [String(row["name"]), String(row["value"])];
  const report = prefixFaults(`the fact ${name}`, fault);
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
