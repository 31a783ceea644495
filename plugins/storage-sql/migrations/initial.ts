/** The first migration: the whole schema of 0.1.0. */
import { toHex, NO_FOLLOWED_ENTRIES } from "../../../src/storage/index.ts";
import type { SqlDialect } from "../dialect.ts";
import { createTable, type Table } from "./table.ts";

/** The root of an empty tree (RFC 6962, section 2.1), which is the SHA-256 of zero bytes. */
const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Expressions of partial indexes. Statements must repeat them exactly, because planners match partial indexes by their
// expressions.
export const IS_OPEN = "status in ('pending_approval', 'allowed', 'approved')";
export const OPEN_UNTIL = "(case status when 'pending_approval' then expires_at else approved_until end)";
/** The case-folded name of the agent. Lookups by name compare this expression. */
export const FOLDED_AGENT_NAME = "(coalesce(agent_fold, agent_id))";

const LEDGER: Readonly<Record<string, Table>> = {
  entries: {
    // Hashes precede the bytes, so that a read of a range of hashes does not read overflow pages.
    columns: {
      seq: "integer",
      leaf_hash: "bytes",
      type: "text",
      action_id: "text?",
      agent_id: "text?",
      submitted_by: "text?",
      followed: "integer",
      created_at: "integer",
      bytes: "bytes",
    },
    primaryKey: ["seq"],
    indexes: {
      // Excludes decisions. Reads find the decision of an action through `actions.decision_seq`.
      entries_of_action: ["action_id, seq", "type <> 'decision' and action_id is not null"],
      entries_followed: ["seq", "followed = 1"],
    },
    appendOnly: "refuse",
  },
  // Compressed bytes of 256 entries; see ../bundles.ts.
  entry_bundles: { columns: { start: "integer", bytes: "bytes" }, primaryKey: ["start"], appendOnly: "refuse" },
  tiles: {
    columns: { level: "integer", index: "integer", root: "bytes", hashes: "bytes" },
    primaryKey: ["level", "index"],
    appendOnly: "refuse",
  },
  // Leaf hashes of entries and request hashes of actions; see ../hash-index.ts.
  hash_index: {
    columns: { kind: "text", bucket: "integer", span: "integer", bytes: "bytes" },
    primaryKey: ["kind", "bucket", "span"],
    clustered: true,
  },
  ledger_head: {
    columns: {
      id: "integer",
      size: "integer",
      root: "bytes",
      edge: "bytes",
      policy_set: "text?",
      epoch: "integer",
      followed_digest: "bytes",
      seal: "text",
    },
    primaryKey: ["id"],
    singleRow: true,
    neverShrinks: "size",
  },
  checkpoint: {
    columns: { id: "integer", size: "integer", note: "text?" },
    primaryKey: ["id"],
    singleRow: true,
    neverShrinks: "size",
  },
};

const ACTIONS: Readonly<Record<string, Table>> = {
  actions: {
    columns: {
      decision_seq: "integer",
      id: "uuid",
      agent_id: "text",
      // The folded name; null if it equals agent_id.
      agent_fold: "text?",
      tool: "text",
      operation: "text",
      status: "text",
      submitted_by: "uuid",
      created_at: "integer",
      updated_at: "integer",
      expires_at: "integer?",
      approved_until: "integer?",
      rejection_until: "integer?",
      allowed_by: "text?",
      plan_id: "text?",
      plan_position: "integer?",
      authority: "text?",
      started_at: "integer?",
      started_by: "text?",
      quorum: "integer?",
      decision: "text",
      reason: "text",
      reason_code: "text",
      risk_level: "text?",
      policy: "text?",
      rule: "text?",
      policy_version: "integer?",
      policy_hash: "hash?",
      decision_hash: "hash",
      submitted_agent: "text?",
      submitted_owner: "text?",
      request_hash: "hash",
      salt: "hash",
      result: "text?",
      request: "text",
      waited_ms: "integer?",
      past: "text?",
      erased_at: "integer?",
      meta: "text?",
      questions: "text?",
      effective: "text?",
      effective_hash: "hash?",
      asked_at: "integer?",
      waits: "text?",
    },
    primaryKey: ["decision_seq"],
    unique: { actions_by_id: ["id"] },
    indexes: {
      actions_by_agent: "agent_id, decision_seq",
      actions_by_submitter: "submitted_by, decision_seq",
      actions_by_status: "status, decision_seq",
      actions_by_tool: "tool, decision_seq",
      actions_by_operation: "operation, decision_seq",
      actions_by_time: "created_at",
      // Partial indexes. An action that is decided at once is never pending, so it needs no write to the indexes over
      // pending actions. Their first column is the status. Otherwise the planner would use the index over all statuses
      // and sort.
      actions_pending: ["status, expires_at, decision_seq", "status = 'pending_approval'"],
      actions_open_waiting: [
        "status, submitted_by, request_hash, expires_at, decision_seq",
        "status = 'pending_approval'",
      ],
      actions_asked: ["submitted_by, created_at", "decision = 'require_approval'"],
      actions_approved: ["status, approved_until, decision_seq", "status = 'approved'"],
      actions_open_approved: [
        "status, submitted_by, request_hash, approved_until, decision_seq",
        "status = 'approved'",
      ],
      actions_open_of_agent: [`${FOLDED_AGENT_NAME}, ${OPEN_UNTIL}`, IS_OPEN],
      // Sorted by time instead of hash, because a random order would write a separate page for each allowed action.
      actions_open_of_key: [`submitted_by, status, ${OPEN_UNTIL}, request_hash`, IS_OPEN],
      actions_rejected: ["request_hash, rejection_until", "rejection_until is not null"],
      actions_rejected_edits: [
        "effective_hash, rejection_until",
        "effective_hash is not null and rejection_until is not null",
      ],
      actions_allowed_by: ["allowed_by, decision_seq", "allowed_by is not null"],
      actions_of_plan: ["plan_id, decision_seq", "plan_id is not null"],
      actions_first_of_plan: ["plan_position, decision_seq", "plan_position = 1"],
      actions_waited: ["created_at, waited_ms, approved_until, agent_id, submitted_by", "waited_ms is not null"],
    },
  },
  approvals: {
    columns: {
      action_id: "uuid",
      principal: "text",
      key_id: "text",
      approve: "integer",
      reason: "text?",
      self_approval: "integer",
      on_behalf_of: "text?",
      break_glass: "integer",
      signed: "integer",
      seq: "integer",
      created_at: "integer",
    },
    primaryKey: ["action_id", "principal"],
    references: { action_id: ["actions", "id"] },
    clustered: true,
  },
  idempotency: {
    columns: {
      key_id: "text",
      route: "text",
      idempotency_key: "text",
      body_hash: "text",
      resource_id: "text",
      created_at: "integer",
      seal: "text",
    },
    primaryKey: ["key_id", "route", "idempotency_key"],
    indexes: { idempotency_by_age: "created_at, key_id, route, idempotency_key" },
    clustered: true,
  },
  limit_uses: {
    columns: {
      policy: "text",
      limit_name: "text",
      subject: "text",
      at: "integer",
      action_id: "text",
      amount: "integer",
      until: "integer",
    },
    primaryKey: ["policy", "limit_name", "subject", "at", "action_id"],
    indexes: { limit_uses_by_action: "action_id", limit_uses_over: "until" },
    clustered: true,
  },
  // Running totals of limit_uses; see ../limits.ts.
  limit_totals: {
    columns: {
      policy: "text",
      limit_name: "text",
      subject: "text",
      from_at: "integer",
      to_at: "integer",
      uses: "integer",
      amount: "integer",
    },
    primaryKey: ["policy", "limit_name", "subject", "from_at"],
    clustered: true,
  },
  // The past actions in the histories of policies; see ../past-actions.ts.
  past_actions: {
    columns: {
      policy: "text",
      basis: "text",
      subject: "text",
      at: "integer",
      action_id: "text",
      until: "integer",
    },
    primaryKey: ["policy", "basis", "subject", "at", "action_id"],
    indexes: { past_actions_by_action: "action_id", past_actions_over: "until" },
    clustered: true,
  },
  // Counts of actions for analytics; see ../sums.ts.
  action_sums: {
    columns: { grain: "integer", visible: "text", dimension: "text", start: "integer", counts: "text" },
    primaryKey: ["grain", "visible", "dimension", "start"],
    clustered: true,
  },
  sums_state: { columns: { id: "integer", folded: "integer" }, primaryKey: ["id"], singleRow: true },
};

const DIRECTORY: Readonly<Record<string, Table>> = {
  api_keys: {
    columns: {
      id: "text",
      name: "text",
      hash: "text",
      prefix: "text",
      scopes: "text",
      agent_id: "text?",
      owner: "text?",
      created_by: "text?",
      created_at: "integer",
      expires_at: "integer?",
      revoked_at: "integer?",
      last_used_at: "integer?",
    },
    primaryKey: ["id"],
    unique: { api_keys_hash: ["hash"] },
  },
  agents: {
    columns: {
      id: "text",
      name: "text",
      description: "text?",
      allowed_tools: "text?",
      metadata: "text",
      suspended_at: "integer?",
      suspended_reason: "text?",
      version: "integer",
      registered_seq: "integer",
      created_by: "text?",
      created_at: "integer",
      updated_at: "integer",
    },
    primaryKey: ["id"],
    unique: { agents_registered: ["registered_seq"] },
  },
};

const POLICIES: Readonly<Record<string, Table>> = {
  policies: {
    columns: {
      id: "text",
      name: "text",
      managed_by: "text?",
      latest_version: "integer",
      active_version: "integer?",
      created_at: "integer",
      updated_at: "integer",
      deleted_at: "integer?",
    },
    primaryKey: ["id"],
    unique: { policies_name: ["name"] },
  },
  policy_versions: {
    columns: {
      policy_id: "text",
      version: "integer",
      digest: "text",
      created_by: "text?",
      created_at: "integer",
      definition: "text",
      yaml: "text?",
    },
    primaryKey: ["policy_id", "version"],
    references: { policy_id: ["policies", "id"] },
    appendOnly: "refuse",
  },
  policy_sets: {
    columns: { digest: "text", created_at: "integer", document: "text" },
    primaryKey: ["digest"],
    appendOnly: "keep",
  },
};

const DELIVERIES: Readonly<Record<string, Table>> = {
  deliveries: {
    columns: {
      position: "integer",
      id: "text",
      destination: "text",
      notifier: "text",
      recipient: "text",
      kind: "text",
      seq: "integer",
      action_id: "text?",
      person: "text?",
      channel: "text?",
      state: "text",
      attempts: "integer",
      next_at: "integer",
      give_up_at: "integer",
      last_error: "text?",
      reference: "text?",
      delivered_at: "integer?",
      created_at: "integer",
      updated_at: "integer",
      seal: "text",
    },
    primaryKey: ["position"],
    unique: { deliveries_id: ["id"] },
    indexes: {
      deliveries_waiting: ["destination, position", "state = 'waiting'"],
      // Contains every column of the query for the most urgent delivery of a destination (a covering index).
      deliveries_urgent: ["destination, give_up_at, position, next_at, attempts, kind", "state = 'waiting'"],
      deliveries_next: ["destination, next_at", "state = 'waiting'"],
      deliveries_scheduled: ["next_at", "state = 'scheduled'"],
      deliveries_by_action: ["action_id, position", "action_id is not null"],
      deliveries_dead: ["position", "state = 'dead'"],
      deliveries_by_destination: "destination, position",
      deliveries_over: ["updated_at", "state in ('delivered', 'dead', 'obsolete')"],
    },
  },
};

const HOUSEKEEPING: Readonly<Record<string, Table>> = {
  // Documents of plugins, and the counter of their versions.
  documents: {
    columns: { plugin: "text", key: "text", version: "integer", value: "text", seal: "text" },
    primaryKey: ["plugin", "key"],
  },
  document_counter: { columns: { id: "integer", last: "integer" }, primaryKey: ["id"], singleRow: true },
  meta: { columns: { name: "text", value: "text" }, primaryKey: ["name"] },
  leases: {
    columns: { name: "text", holder: "text", until: "integer" },
    primaryKey: ["name"],
    clustered: true,
    unguarded: true,
  },
  // The processes that share the store.
  processes: {
    columns: {
      instance: "text",
      incarnation: "text",
      size: "integer",
      root: "bytes",
      since: "integer",
      reported_at: "integer",
    },
    primaryKey: ["instance"],
    clustered: true,
    unguarded: true,
  },
  liveness: { columns: { id: "integer", pings: "integer" }, primaryKey: ["id"], singleRow: true, unguarded: true },
};

const TABLES: Readonly<Record<string, Table>> = {
  ...LEDGER,
  ...ACTIONS,
  ...DIRECTORY,
  ...POLICIES,
  ...DELIVERIES,
  ...HOUSEKEEPING,
};

export function initialSchema(dialect: SqlDialect): string[] {
  const guarded = Object.keys(TABLES).filter((name) => TABLES[name]?.unguarded !== true);
  return [
    ...Object.entries(TABLES).flatMap(([name, table]) => createTable(name, table, dialect)),
    `insert into ledger_head (id, size, root, edge, epoch, followed_digest, seal) values (1, 0, ${dialect.types.bytesLiteral(EMPTY_ROOT)}, ${dialect.types.bytesLiteral("")}, 0, ${dialect.types.bytesLiteral(toHex(NO_FOLLOWED_ENTRIES))}, '')`,
    "insert into checkpoint (id, size) values (1, 0)",
    "insert into sums_state (id, folded) values (1, -1)",
    "insert into liveness (id, pings) values (1, 0)",
    ...dialect.finishSchema(guarded),
  ];
}
