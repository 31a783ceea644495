/**
 * The schema as ordered steps. A step that was released is never edited: a change is a new step.
 * Each runs in its own transaction together with the row that records it.
 */
import { sql, type Compilable, type CreateTableBuilder, type Kysely, type RawBuilder } from "kysely";

/** What the databases do differently. */
export interface SqlKit {
  readonly db: Kysely<never>;
  readonly bytes: RawBuilder<unknown>;
  /** Holds every integer up to 2^53. */
  readonly integer: RawBuilder<unknown>;
  /** Compares by code unit, so that order does not depend on the machine's locale. */
  readonly text: RawBuilder<unknown>;
  bytesOf(hex: string): RawBuilder<unknown>;
  /** `clustered`: rows are small and only ever found by primary key. */
  finish(table: CreateTableBuilder<string, string>, clustered?: boolean): Compilable;
  /** Refuses UPDATE and DELETE, and an INSERT that would replace a row: with an error, or by keeping the old row. */
  appendOnly(table: string, key: readonly string[], known: "refuse" | "keep"): string[];
  /** For the table's one row: refuses DELETE, a second row, and an UPDATE that lowers the column. */
  neverShrinks(table: string, column: string): string[];
}

export interface Migration {
  /** From 1, without a gap. */
  readonly version: number;
  readonly name: string;
  statements(kit: SqlKit): string[];
}

/** RFC 6962, section 2.1: SHA-256 of nothing. */
const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "ledger, actions, keys, policies", statements: initial },
  { version: 2, name: "agents, last use of keys, deleted policies", statements: agents },
  { version: 3, name: "sums for analytics", statements: sums },
  { version: 4, name: "leases", statements: leases },
  { version: 5, name: "deliveries, uses of limits", statements: deliveries },
];

function deliveries(kit: SqlKit): string[] {
  const { integer, text } = kit;
  const make = (name: string, nullable: readonly string[], columns: Record<string, RawBuilder<unknown>>): CreateTableBuilder<string, string> => {
    let builder: CreateTableBuilder<string, string> = kit.db.schema.createTable(name);
    for (const [column, type] of Object.entries(columns)) builder = builder.addColumn(column, type as RawBuilder<never>, (c) => (nullable.includes(column) ? c : c.notNull()));
    return builder;
  };
  const table = make("deliveries", ["action_id", "person", "channel", "last_error", "reference", "delivered_at"], {
    position: integer, id: text, destination: text, notifier: text, recipient: text, kind: text, seq: integer, action_id: text, person: text, channel: text,
    state: text, attempts: integer, next_at: integer, give_up_at: integer, last_error: text, reference: text, delivered_at: integer, created_at: integer, updated_at: integer,
  });
  const uses = make("limit_uses", [], { policy: text, limit_name: text, subject: text, at: integer, action_id: text, amount: integer, until: integer });
  const index = (name: string, on: string, columns: string[], where?: string): string => {
    const made = kit.db.schema.createIndex(name).on(on).columns(columns);
    return (where === undefined ? made : made.where(sql.raw<boolean>(where))).compile().sql;
  };
  return [
    kit.finish(table.addPrimaryKeyConstraint("deliveries_key", ["position"]).addUniqueConstraint("deliveries_id", ["id"])).compile().sql,
    // What is over costs the courier's looks nothing.
    index("deliveries_waiting", "deliveries", ["destination", "position"], "state = 'waiting'"),
    index("deliveries_scheduled", "deliveries", ["next_at"], "state = 'scheduled'"),
    index("deliveries_by_action", "deliveries", ["action_id", "position"], "action_id is not null"),
    index("deliveries_dead", "deliveries", ["position"], "state = 'dead'"),
    index("deliveries_by_destination", "deliveries", ["destination", "position"]),
    index("deliveries_over", "deliveries", ["updated_at"], "state in ('delivered', 'dead', 'obsolete')"),
    kit.finish(uses.addPrimaryKeyConstraint("limit_uses_key", ["policy", "limit_name", "subject", "at", "action_id"]), true).compile().sql,
    index("limit_uses_by_action", "limit_uses", ["action_id"]),
    index("limit_uses_over", "limit_uses", ["until"]),
  ];
}

function leases(kit: SqlKit): string[] {
  const { integer, text } = kit;
  const required = (c: { notNull(): unknown }): never => c.notNull() as never;
  const table = kit.db.schema
    .createTable("leases")
    .addColumn("name", text as RawBuilder<never>, required)
    .addColumn("holder", text as RawBuilder<never>, required)
    .addColumn("until", integer as RawBuilder<never>, required);
  return [kit.finish(table.addPrimaryKeyConstraint("leases_key", ["name"]) as never, true).compile().sql];
}

function sums(kit: SqlKit): string[] {
  const { integer, text } = kit;
  const schema = kit.db.schema;
  const columns = { grain: integer, visible: text, dimension: text, start: integer, counts: text };
  let table: CreateTableBuilder<string, string> = schema.createTable("action_sums");
  for (const [column, type] of Object.entries(columns)) table = table.addColumn(column, type as RawBuilder<never>, (c) => c.notNull());
  const state = schema.createTable("sums_state").addColumn("id", integer as RawBuilder<never>, (c) => c.notNull()).addColumn("folded", integer as RawBuilder<never>, (c) => c.notNull());
  return [
    schema.alterTable("actions").addColumn("waited_ms", integer as RawBuilder<never>),
    // Only what a person has decided: an action that is decided at once costs this index nothing.
    schema.createIndex("actions_waited").on("actions").columns(["created_at", "waited_ms", "agent_id", "submitted_by"]).where(sql<boolean>`waited_ms is not null`),
    kit.finish(table.addPrimaryKeyConstraint("action_sums_key", ["grain", "visible", "dimension", "start"]), true),
    kit.finish(state.addPrimaryKeyConstraint("sums_state_key", ["id"]).addCheckConstraint("sums_state_single", sql`id = 1`)),
    sql`insert into sums_state (id, folded) values (1, -1)`.compile(kit.db),
  ].map((statement) => ("sql" in statement ? statement.sql : statement.compile().sql));
}

function agents(kit: SqlKit): string[] {
  const { integer, text } = kit;
  const columns = {
    id: text, name: text, description: text, allowed_tools: text, metadata: text, suspended_at: integer, suspended_reason: text,
    version: integer, registered_seq: integer, created_by: text, created_at: integer, updated_at: integer,
  };
  const nullable = ["description", "allowed_tools", "suspended_at", "suspended_reason", "created_by"];
  let table: CreateTableBuilder<string, string> = kit.db.schema.createTable("agents");
  for (const [column, type] of Object.entries(columns)) {
    table = table.addColumn(column, type as RawBuilder<never>, (c) => (nullable.includes(column) ? c : c.notNull()));
  }
  return [
    kit.finish(table.addPrimaryKeyConstraint("agents_key", ["id"]).addUniqueConstraint("agents_registered", ["registered_seq"])),
    kit.db.schema.alterTable("api_keys").addColumn("last_used_at", integer as RawBuilder<never>),
    kit.db.schema.alterTable("policies").addColumn("deleted_at", integer as RawBuilder<never>),
  ].map((statement) => statement.compile().sql);
}

function initial(kit: SqlKit): string[] {
  const { bytes, integer, text } = kit;
  const table = (name: string, nullable: readonly string[], columns: Record<string, RawBuilder<unknown>>): CreateTableBuilder<string, string> => {
    let builder: CreateTableBuilder<string, string> = kit.db.schema.createTable(name);
    for (const [column, type] of Object.entries(columns)) {
      builder = builder.addColumn(column, type as RawBuilder<never>, (c) => (nullable.includes(column) ? c : c.notNull()));
    }
    return builder;
  };
  const key = (builder: CreateTableBuilder<string, string>, name: string, ...columns: string[]): CreateTableBuilder<string, string> =>
    builder.addPrimaryKeyConstraint(`${name}_key`, columns);
  const single = (builder: CreateTableBuilder<string, string>, name: string): CreateTableBuilder<string, string> =>
    key(builder, name, "id").addCheckConstraint(`${name}_single`, sql`id = 1`);
  const index = (name: string, on: string, ...columns: string[]): Compilable => kit.db.schema.createIndex(name).on(on).columns(columns);

  const statements: (Compilable | string)[] = [
    // Hashes stand before the bytes: reading a range of hashes then touches no overflow page.
    kit.finish(key(table("entries", ["action_id", "agent_id", "submitted_by"], {
      seq: integer, leaf_hash: bytes, type: text, action_id: text, agent_id: text, submitted_by: text, created_at: integer, bytes,
    }), "entries", "seq")),
    index("entries_by_leaf_hash", "entries", "leaf_hash"),
    kit.db.schema.createIndex("entries_by_action").on("entries").columns(["action_id", "seq"]).where(sql<boolean>`action_id is not null`),

    kit.finish(key(table("tiles", [], { level: integer, index: integer, root: bytes, hashes: bytes }), "tiles", "level", "index")),
    kit.finish(single(table("ledger_head", ["policy_set"], { id: integer, size: integer, root: bytes, edge: bytes, policy_set: text, epoch: integer }), "ledger_head")),
    kit.finish(single(table("checkpoint", ["note"], { id: integer, size: integer, note: text }), "checkpoint")),

    kit.finish(key(table("actions", [
      "risk_level", "policy", "rule", "policy_version", "policy_hash", "submitted_agent", "submitted_owner", "quorum",
      "expires_at", "permit_issued_at", "permit_expires_at", "started_at", "started_by", "result",
    ], {
      decision_seq: integer, id: text, agent_id: text, tool: text, operation: text, status: text, submitted_by: text, created_at: integer,
      updated_at: integer, expires_at: integer, permit_issued_at: integer, permit_expires_at: integer, started_at: integer, started_by: text,
      quorum: integer, decision: text, reason: text, reason_code: text, risk_level: text, policy: text, rule: text, policy_version: integer,
      policy_hash: text, decision_hash: text, submitted_agent: text, submitted_owner: text, request_hash: text, salt: text, result: text, request: text,
    }), "actions", "decision_seq")),
    kit.db.schema.createIndex("actions_by_id").on("actions").column("id").unique(),
    index("actions_by_agent", "actions", "agent_id", "decision_seq"),
    index("actions_by_submitter", "actions", "submitted_by", "decision_seq"),
    index("actions_by_status", "actions", "status", "decision_seq"),
    index("actions_by_tool", "actions", "tool", "decision_seq"),
    index("actions_by_operation", "actions", "operation", "decision_seq"),
    index("actions_by_time", "actions", "created_at"),
    // Only what can expire: an action that is decided at once costs this index nothing. The status comes
    // first, or the planner takes the index over all statuses and sorts.
    kit.db.schema.createIndex("actions_pending").on("actions").columns(["status", "expires_at", "decision_seq"]).where(sql<boolean>`status = 'pending_approval'`),

    kit.finish(key(table("approvals", ["reason"], {
      action_id: text, principal: text, key_id: text, approve: integer, reason: text, self_approval: integer, seq: integer, created_at: integer,
    }), "approvals", "action_id", "principal").addForeignKeyConstraint("approvals_action", ["action_id"], "actions", ["id"]), true),

    kit.finish(key(table("idempotency", [], {
      key_id: text, route: text, idempotency_key: text, body_hash: text, resource_id: text, created_at: integer,
    }), "idempotency", "key_id", "route", "idempotency_key"), true),

    kit.finish(key(table("api_keys", ["agent_id", "owner", "created_by", "expires_at", "revoked_at"], {
      id: text, name: text, hash: text, prefix: text, scopes: text, agent_id: text, owner: text, created_by: text,
      created_at: integer, expires_at: integer, revoked_at: integer,
    }), "api_keys", "id").addUniqueConstraint("api_keys_hash", ["hash"])),

    kit.finish(key(table("policies", ["managed_by", "active_version"], {
      id: text, name: text, managed_by: text, latest_version: integer, active_version: integer, created_at: integer, updated_at: integer,
    }), "policies", "id").addUniqueConstraint("policies_name", ["name"])),
    kit.finish(key(table("policy_versions", ["created_by"], {
      policy_id: text, version: integer, digest: text, created_by: text, created_at: integer, definition: text,
    }), "policy_versions", "policy_id", "version").addForeignKeyConstraint("policy_versions_policy", ["policy_id"], "policies", ["id"])),
    kit.finish(key(table("policy_sets", [], { digest: text, created_at: integer, document: text }), "policy_sets", "digest")),

    kit.finish(key(table("meta", [], { name: text, value: text }), "meta", "name")),
    kit.finish(single(table("liveness", [], { id: integer, pings: integer }), "liveness")),

    sql`insert into ledger_head (id, size, root, edge, epoch) values (1, 0, ${kit.bytesOf(EMPTY_ROOT)}, ${kit.bytesOf("")}, 0)`.compile(kit.db).sql,
    sql`insert into checkpoint (id, size) values (1, 0)`.compile(kit.db).sql,
    sql`insert into liveness (id, pings) values (1, 0)`.compile(kit.db).sql,

    ...kit.appendOnly("entries", ["seq"], "refuse"),
    ...kit.appendOnly("tiles", ["level", "index"], "refuse"),
    ...kit.appendOnly("policy_versions", ["policy_id", "version"], "refuse"),
    ...kit.appendOnly("policy_sets", ["digest"], "keep"),
    ...kit.neverShrinks("ledger_head", "size"),
    ...kit.neverShrinks("checkpoint", "size"),
  ];
  return statements.map((statement) => (typeof statement === "string" ? statement : statement.compile().sql));
}
