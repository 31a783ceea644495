/** SQL statements for the reads of the contract, for any executor. */
import { sql, type Kysely } from "kysely";
import {
  foldName,
  authorityPrefix,
  StorageError,
  type ActionRow,
  type DecisionFilter,
  type DecisionInput,
  type AgentRow,
  type ApprovalRow,
  type KeyRow,
  type LedgerHead,
  type StoredHead,
  type PolicyRow,
  type PolicySetRow,
  type PolicyVersionRow,
  type StorageReader,
  type StoredVisibility,
} from "../../src/storage/index.ts";
import { containsValues } from "./contained-text.ts";
import type { SqlDialect } from "./dialect.ts";
import * as schema from "./table-schema.ts";
import { prepareDeliveryReads, createDeliveryReader } from "./deliveries.ts";
import { prepareDocumentReads, createDocumentReader } from "./documents.ts";
import { prepareActionsById, createActionsByIdReader } from "./actions-by-id.ts";
import { prepareIdempotencyReads, createIdempotencyReader } from "./idempotency.ts";
import { readCounts } from "./counts.ts";
import { findDecisionsByRequest, prepareHashIndexReads } from "./hash-index.ts";
import { prepareLimitReads, createLimitReader } from "./limits.ts";
import { createPastActionReader, preparePastActionReads } from "./past-actions.ts";
import { prepareAgentNames, prepareOpenActions } from "./open-actions.ts";
import {
  prepareActionLists,
  splitGivenSeqs,
  prepareAgentListQueries,
  prepareDecisionLists,
  prepareOpenLists,
  prepareRejectedAction,
  PENDING_CONDITION,
  preparePendingLists,
  prepareApprovalRequests,
  prepareApprovedList,
  type StoredDecision,
} from "./lists.ts";
import type { BundleReader } from "./bundles.ts";
import { prepareLedgerReads, createLedgerReader } from "./ledger-reads.ts";
import { prepareSums } from "./sum-statements.ts";
import type { Tables } from "./table-schema.ts";
import { param, toPlainRow, prepare, type SqlReader, type SqlRow, type Statement } from "./statement.ts";

export const HASH_BYTES = 32;

/** All compiled reads of a dialect. */
export type ReadStatements = ReturnType<typeof prepareReads>;

/**
 * Compiles every read of the contract for a dialect. Call it once.
 * @example
 * const reads = prepareReads(postgresSqlBuilder, postgresDialect);
 */
export function prepareReads(db: Kysely<Tables>, dialect: SqlDialect) {
  const actions = db.selectFrom("actions").select(schema.ACTION_COLUMNS);
  return {
    head: prepare(() =>
      db
        .selectFrom("ledger_head")
        .select(["size", "root", "edge", "policy_set", "epoch", "followed_digest", "seal"])
        .select(
          dialect.server === null
            ? []
            : [dialect.server.incarnation.as("incarnation"), dialect.server.settled.as("settled")],
        )
        .where("id", "=", sql.lit(1)),
    ),
    checkpoint: prepare(() =>
      db.selectFrom("checkpoint").select(["size", "note"]).where("id", "=", sql.lit(1)).where("note", "is not", null),
    ),
    ...prepareLedgerReads(db),
    ...prepareHashIndexReads(db),
    action: prepare(() => actions.where("id", "=", param("id", "uuid"))),
    ...prepareActionsById(db, dialect),
    openAction: prepareOpenLists(db, dialect),
    rejectedAction: {
      submitted: prepareRejectedAction(db, "request_hash"),
      edited: prepareRejectedAction(db, "effective_hash"),
    },
    actions: prepareActionLists(db, dialect),
    decisionSpan: prepare(() =>
      db
        .selectFrom("actions")
        .select([(eb) => eb.fn.min("decision_seq").as("first"), (eb) => eb.fn.max("decision_seq").as("last")])
        .where("created_at", ">=", param("since"))
        .where("created_at", "<", param("until")),
    ),
    decisions: {
      all: prepareDecisionLists(db, "all"),
      agent_id: prepareDecisionLists(db, "agent_id"),
      key_id: prepareDecisionLists(db, "key_id"),
    },
    overdueActions: prepare(() =>
      actions
        .where(PENDING_CONDITION)
        .where("expires_at", "<=", param("now"))
        .orderBy("expires_at")
        .orderBy("decision_seq")
        .limit(param<number>("limit")),
    ),
    pendingActions: {
      all: preparePendingLists(db, dialect, "all"),
      agent_id: preparePendingLists(db, dialect, "agent_id"),
      key_id: preparePendingLists(db, dialect, "key_id"),
    },
    approvedActions: prepareApprovedList(db),
    openActionsOf: prepareOpenActions(db),
    agentNames: prepareAgentNames(db),
    approvalRequests: prepareApprovalRequests(db),
    oldestPending: prepare(() =>
      db
        .selectFrom("actions")
        .select((eb) => eb.fn.min("created_at").as("at"))
        .where(PENDING_CONDITION)
        .where("expires_at", ">", param("now")),
    ),
    nextExpiry: prepare(() =>
      db
        .selectFrom("actions")
        .select((eb) => eb.fn.min("expires_at").as("at"))
        .where(PENDING_CONDITION)
        .where("expires_at", "is not", null),
    ),
    sums: prepareSums(db, dialect),
    ...prepareDeliveryReads(db),
    ...prepareLimitReads(db, dialect),
    ...preparePastActionReads(db, dialect),
    ...prepareDocumentReads(db),
    ...prepareIdempotencyReads(db, dialect),
    approvals: prepare(() =>
      db
        .selectFrom("approvals")
        .select(schema.APPROVAL_COLUMNS)
        .where("action_id", "=", param("action_id", "uuid"))
        .orderBy("seq"),
    ),
    ...prepareIdentityReads(db),
    ...preparePolicyReads(db),
    meta: prepare(() => db.selectFrom("meta").select("value").where("name", "=", param("name"))),
  };
}

/** Statements that read keys and agents. */
function prepareIdentityReads(db: Kysely<Tables>) {
  const keys = db.selectFrom("api_keys").select(schema.KEY_COLUMNS);
  return {
    keyByHash: prepare(() => keys.where("hash", "=", param("hash"))),
    key: prepare(() => keys.where("id", "=", param("id"))),
    keys: prepare(() => keys.orderBy("created_at", "desc").orderBy("id", "desc")),
    agent: prepare(() => db.selectFrom("agents").select(schema.AGENT_COLUMNS).where("id", "=", param("id"))),
    agents: prepareAgentListQueries(db),
  };
}

function preparePolicyReads(db: Kysely<Tables>) {
  const policies = db.selectFrom("policies").select(schema.POLICY_COLUMNS);
  return {
    policy: prepare(() => policies.where("id", "=", param("id"))),
    policyByName: prepare(() => policies.where("name", "=", param("name"))),
    policies: prepare(() => policies.orderBy("name")),
    policyVersion: prepare(() =>
      db
        .selectFrom("policy_versions")
        .select(schema.POLICY_VERSION_COLUMNS)
        .where("policy_id", "=", param("policy_id"))
        .where("version", "=", param("version")),
    ),
    policyVersions: prepare(() =>
      db
        .selectFrom("policy_versions")
        .select(schema.POLICY_VERSION_COLUMNS)
        .where("policy_id", "=", param("policy_id"))
        .orderBy("version", "desc"),
    ),
    policySet: prepare(() =>
      db.selectFrom("policy_sets").select(schema.POLICY_SET_COLUMNS).where("digest", "=", param("digest")),
    ),
  };
}

/**
 * `snapshot` runs reads on one snapshot. Absent if statements that start in the same turn of the event loop read the
 * same snapshot.
 */
interface Readable extends SqlReader {
  snapshot?<T>(work: (db: SqlReader) => Promise<T>): Promise<T>;
}

/**
 * Creates the reads of the contract.
 * @param bundles a reader of the bytes of entries
 * @example
 * const head = await createReader(reads, executor, createBundleReader(reads)).head();
 */
export function createReader(reads: ReadStatements, db: Readable, bundles: BundleReader): StorageReader {
  async function readOne<T>(
    statement: Statement,
    values: object,
    decode: (row: SqlRow) => T = toPlainRow,
  ): Promise<T | null> {
    const row = (await db.all(statement, values))[0];
    return row === undefined ? null : decode(row);
  }
  async function many<T>(statement: Statement, values: object, decode: (row: SqlRow) => T = toPlainRow): Promise<T[]> {
    return (await db.all(statement, values)).map((row) => decode(row));
  }
  return {
    async head() {
      const head = await readOne(reads.head, {}, decodeHead);
      if (head === null) throw new StorageError("corrupt", "the store has no ledger head");
      return head;
    },
    checkpoint: () => readOne(reads.checkpoint, {}),
    ...createLedgerReader(reads, db, bundles),
    action: (id) => readOne<ActionRow>(reads.action, { id }),
    ...createActionsByIdReader(reads, db, decodeApproval),
    async openAction(submitted_by, request_hash, now) {
      const values = { submitted_by, request_hash, now };
      const allowed = await readOne<ActionRow>(reads.openAction.allowed, values);
      const approved = await readOne<ActionRow>(reads.openAction.approved, values);
      if (allowed !== null && approved !== null) return endsLater(allowed, approved) ? allowed : approved;
      return allowed ?? approved ?? (await readOne<ActionRow>(reads.openAction.waiting, values));
    },
    async rejectedAction(hash, now) {
      const submitted = await readOne<ActionRow>(reads.rejectedAction.submitted, { hash, now });
      const edited = await readOne<ActionRow>(reads.rejectedAction.edited, { hash, now });
      return (edited?.rejection_until ?? 0) > (submitted?.rejection_until ?? 0) ? edited : submitted;
    },
    async actions(filter) {
      const { limit, offset = 0, request_hash } = filter;
      const values = { ...filter, offset, ...visibleTo(filter.visibility), ...containsValues(filter.contains) };
      const statement = reads.actions(filter);
      if (request_hash === undefined) return many<ActionRow>(statement, values);
      const rows: ActionRow[] = [];
      const end = offset + limit;
      for await (const seqs of findDecisionsByRequest(reads, db, request_hash))
        for (const given of splitGivenSeqs(seqs)) {
          const page = { ...values, ...given, offset: 0, limit: end - rows.length };
          rows.push(...(await many<ActionRow>(statement, page)));
          if (rows.length >= end) return rows.slice(offset);
        }
      return rows.slice(offset);
    },
    async decisionSpan(since, until) {
      const row = await readOne<{ first: number | null; last: number | null }>(reads.decisionSpan, { since, until });
      return row === null || row.first === null || row.last === null ? null : { first: row.first, last: row.last };
    },
    async decisions(filter: DecisionFilter) {
      const { visibility } = filter;
      const kind = "agent_id" in visibility ? "agent_id" : "key_id" in visibility ? "key_id" : "all";
      const rows = await many<StoredDecision>(reads.decisions[kind], { ...filter, ...visibleTo(visibility) });
      return (await bundles.withBytes(db, rows)).map(decisionOf);
    },
    overdueActions: (now, limit) => many<ActionRow>(reads.overdueActions, { now, limit }),
    pendingActions(visibility, after, limit, contains) {
      const { page, found } = pendingOf(reads, visibility);
      const values = { ...after, limit, ...visibleTo(visibility), ...containsValues(contains) };
      return many<ActionRow>(contains === undefined ? page : found, values);
    },
    approvedActions: (after, limit) => many<ActionRow>(reads.approvedActions, { ...after, limit }),
    openActionsOf(owner, now, limit) {
      if ("key_id" in owner) return many<ActionRow>(reads.openActionsOf.key_id, { owner: owner.key_id, now, limit });
      const agent = { owner: foldName(owner.agent_id), now, limit };
      if (owner.authority === undefined) return many<ActionRow>(reads.openActionsOf.agent_id, agent);
      const prefix = authorityPrefix(owner.authority);
      return many<ActionRow>(reads.openActionsOf.authority, { ...agent, prefix, size: prefix.length });
    },
    pendingCount: async (visibility, now) =>
      Number(
        (await readOne<{ count: number }>(pendingOf(reads, visibility).count, { now, ...visibleTo(visibility) }))
          ?.count,
      ),
    async approvalRequests(key_id, since, until, most) {
      const row = await readOne<{ requests: number; hours: number }>(reads.approvalRequests, {
        key_id,
        since,
        until,
        limit: most,
      });
      return { requests: Number(row?.requests ?? 0), hours: Number(row?.hours ?? 0) };
    },
    oldestPending: async (now) => (await readOne<{ at: number | null }>(reads.oldestPending, { now }))?.at ?? null,
    nextExpiry: async () => (await readOne<{ at: number | null }>(reads.nextExpiry, {}))?.at ?? null,
    analytics: (query) =>
      db.snapshot === undefined
        ? readCounts(reads.sums, db, query)
        : db.snapshot((view) => readCounts(reads.sums, view, query)),
    approvals: (action_id) => many(reads.approvals, { action_id }, decodeApproval),
    ...createIdempotencyReader(reads, db),
    keyByHash: (hash) => readOne(reads.keyByHash, { hash }, decodeKey),
    key: (id) => readOne(reads.key, { id }, decodeKey),
    keys: () => many(reads.keys, {}, decodeKey),
    agent: (id) => readOne(reads.agent, { id }, decodeAgent),
    agents: (filter) => many(reads.agents(filter), { ...filter, offset: filter.offset ?? 0 }, decodeAgent),
    policy: (id) => readOne<PolicyRow>(reads.policy, { id }),
    policyByName: (name) => readOne<PolicyRow>(reads.policyByName, { name }),
    policies: () => many<PolicyRow>(reads.policies, {}),
    policyVersion: (policy_id, version) => readOne<PolicyVersionRow>(reads.policyVersion, { policy_id, version }),
    policyVersions: (policy_id) => many<PolicyVersionRow>(reads.policyVersions, { policy_id }),
    policySet: (digest) => readOne<PolicySetRow>(reads.policySet, { digest }),
    ...createDeliveryReader(reads, db),
    ...createLimitReader(reads, db),
    ...createPastActionReader(reads, db),
    ...createDocumentReader(reads, db),
    meta: async (name) => (await readOne<{ value: string }>(reads.meta, { name }))?.value ?? null,
  };
}

/** Returns true if `a` has the later deadline or, with the same deadline, is newer. */
function endsLater(a: ActionRow, b: ActionRow): boolean {
  const [endOfA, endOfB] = [a.approved_until ?? 0, b.approved_until ?? 0];
  return endOfA === endOfB ? a.decision_seq > b.decision_seq : endOfA > endOfB;
}

function decisionOf({ seq, action_id, created_at, request, past, bytes }: StoredDecision): DecisionInput {
  return { seq, action_id, created_at, request, past, bytes };
}

function visibleTo(visibility: StoredVisibility): { visible_agent: string | null; visible_key: string | null } {
  return {
    visible_agent: "agent_id" in visibility ? visibility.agent_id : null,
    visible_key: "key_id" in visibility ? visibility.key_id : null,
  };
}

function pendingOf(reads: ReadStatements, visibility: StoredVisibility): ReturnType<typeof preparePendingLists> {
  if ("all" in visibility) return reads.pendingActions.all;
  return "agent_id" in visibility ? reads.pendingActions.agent_id : reads.pendingActions.key_id;
}

/**
 * Decodes the row of the ledger's head.
 * @example
 * const [row] = await query("select * from ledger_head", []);
 * const { size } = decodeHead(row);
 */
export function decodeHead(row: SqlRow): StoredHead {
  const { edge, incarnation, settled, ...head } = toPlainRow<
    Omit<LedgerHead, "edge"> & { edge: Uint8Array; incarnation?: string; settled?: string | null }
  >(row);
  const hashes: Uint8Array[] = [];
  for (let at = 0; at < edge.length; at += HASH_BYTES) hashes.push(edge.slice(at, at + HASH_BYTES));
  return {
    ...head,
    edge: hashes,
    ...(incarnation === undefined ? {} : { server: { incarnation, isSettled: settled === incarnation } }),
  };
}

function decodeApproval(row: SqlRow): ApprovalRow {
  const approval = toPlainRow<Tables["approvals"]>(row);
  return {
    ...approval,
    approve: approval.approve === 1,
    self_approval: approval.self_approval === 1,
    break_glass: approval.break_glass === 1,
    signed: approval.signed === 1,
  };
}

function decodeKey(row: SqlRow): KeyRow {
  const key = toPlainRow<Tables["api_keys"]>(row);
  return { ...key, scopes: JSON.parse(key.scopes) as string[] };
}

function decodeAgent(row: SqlRow): AgentRow {
  const agent = toPlainRow<Tables["agents"]>(row);
  return {
    ...agent,
    allowed_tools: agent.allowed_tools === null ? null : (JSON.parse(agent.allowed_tools) as string[]),
  };
}
