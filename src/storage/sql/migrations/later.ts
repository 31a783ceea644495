/** The steps after the first. */
import { sql, type CreateTableBuilder, type RawBuilder } from "kysely";
import type { SchemaKit, SqlDialect } from "../dialect.ts";
import { tablesOf } from "./table.ts";

export function agents(kit: SqlDialect): string[] {
  const { integer, text } = kit;
  const columns = {
    id: text,
    name: text,
    description: text,
    allowed_tools: text,
    metadata: text,
    suspended_at: integer,
    suspended_reason: text,
    version: integer,
    registered_seq: integer,
    created_by: text,
    created_at: integer,
    updated_at: integer,
  };
  const nullable = ["description", "allowed_tools", "suspended_at", "suspended_reason", "created_by"];
  let table: CreateTableBuilder<string, string> = kit.db.schema.createTable("agents");
  for (const [column, type] of Object.entries(columns)) {
    table = table.addColumn(column, type as RawBuilder<never>, (c) => (nullable.includes(column) ? c : c.notNull()));
  }
  return [
    kit.finish(
      table.addPrimaryKeyConstraint("agents_key", ["id"]).addUniqueConstraint("agents_registered", ["registered_seq"]),
    ),
    kit.db.schema.alterTable("api_keys").addColumn("last_used_at", integer as RawBuilder<never>),
    kit.db.schema.alterTable("policies").addColumn("deleted_at", integer as RawBuilder<never>),
  ].map((statement) => statement.compile().sql);
}

function sumsTable(kit: SqlDialect): string {
  const { integer, text } = kit;
  const columns = { grain: integer, visible: text, dimension: text, start: integer, counts: text };
  let table: CreateTableBuilder<string, string> = kit.db.schema.createTable("action_sums");
  for (const [column, type] of Object.entries(columns))
    table = table.addColumn(column, type as RawBuilder<never>, (c) => c.notNull());
  return kit
    .finish(table.addPrimaryKeyConstraint("action_sums_key", ["grain", "visible", "dimension", "start"]), true)
    .compile().sql;
}

export function sums(kit: SqlDialect): string[] {
  const { integer } = kit;
  const schema = kit.db.schema;
  const state = schema
    .createTable("sums_state")
    .addColumn("id", integer as RawBuilder<never>, (c) => c.notNull())
    .addColumn("folded", integer as RawBuilder<never>, (c) => c.notNull());
  return [
    schema.alterTable("actions").addColumn("waited_ms", integer as RawBuilder<never>),
    // Only what a person has decided: an action that is decided at once costs this index nothing.
    schema
      .createIndex("actions_waited")
      .on("actions")
      .columns(["created_at", "waited_ms", "agent_id", "submitted_by"])
      .where(sql<boolean>`waited_ms is not null`),
    sumsTable(kit),
    kit.finish(
      state.addPrimaryKeyConstraint("sums_state_key", ["id"]).addCheckConstraint("sums_state_single", sql`id = 1`),
    ),
    sql`insert into sums_state (id, folded) values (1, -1)`.compile(kit.db),
  ].map((statement) =>
    typeof statement === "string" ? statement : "sql" in statement ? statement.sql : statement.compile().sql,
  );
}

/** For stores whose sums are those of an earlier form of step 3, one row for each value: analytics could not read them. */
export function sumsAnew(kit: SqlDialect): string[] {
  return [
    "drop table action_sums",
    sumsTable(kit),
    "update sums_state set folded = -1 where id = 1",
    ...(kit.guard === undefined ? [] : [kit.guard("action_sums")]),
  ];
}

export function leases(kit: SqlDialect): string[] {
  const { integer, text } = kit;
  const required = (c: { notNull(): unknown }): never => c.notNull() as never;
  const table = kit.db.schema
    .createTable("leases")
    .addColumn("name", text as RawBuilder<never>, required)
    .addColumn("holder", text as RawBuilder<never>, required)
    .addColumn("until", integer as RawBuilder<never>, required);
  return [kit.finish(table.addPrimaryKeyConstraint("leases_key", ["name"]) as never, true).compile().sql];
}

/** The processes that share the store. No guard: each row is written by a single statement. */
export function processes(kit: SchemaKit): string[] {
  if (!kit.shared) return [];
  const { bytes, integer, text } = kit;
  const make = tablesOf(kit);
  const table = make("processes", [], {
    instance: text,
    incarnation: text,
    size: integer,
    root: bytes,
    since: integer,
    reported_at: integer,
  });
  return [kit.finish(table.addPrimaryKeyConstraint("processes_key", ["instance"] as never), true).compile().sql];
}

export function deliveries(kit: SqlDialect): string[] {
  const { integer, text } = kit;
  const make = tablesOf(kit);
  const table = make("deliveries", ["action_id", "person", "channel", "last_error", "reference", "delivered_at"], {
    position: integer,
    id: text,
    destination: text,
    notifier: text,
    recipient: text,
    kind: text,
    seq: integer,
    action_id: text,
    person: text,
    channel: text,
    state: text,
    attempts: integer,
    next_at: integer,
    give_up_at: integer,
    last_error: text,
    reference: text,
    delivered_at: integer,
    created_at: integer,
    updated_at: integer,
  });
  const uses = make("limit_uses", [], {
    policy: text,
    limit_name: text,
    subject: text,
    at: integer,
    action_id: text,
    amount: integer,
    until: integer,
  });
  const index = (name: string, on: string, columns: string[], where?: string): string => {
    const builder = kit.db.schema.createIndex(name).on(on).columns(columns);
    return (where === undefined ? builder : builder.where(sql.raw<boolean>(where))).compile().sql;
  };
  return [
    kit
      .finish(
        table.addPrimaryKeyConstraint("deliveries_key", ["position"]).addUniqueConstraint("deliveries_id", ["id"]),
      )
      .compile().sql,
    // What is over costs the courier's looks nothing.
    index("deliveries_waiting", "deliveries", ["destination", "position"], "state = 'waiting'"),
    index("deliveries_scheduled", "deliveries", ["next_at"], "state = 'scheduled'"),
    index("deliveries_by_action", "deliveries", ["action_id", "position"], "action_id is not null"),
    index("deliveries_dead", "deliveries", ["position"], "state = 'dead'"),
    index("deliveries_by_destination", "deliveries", ["destination", "position"]),
    index("deliveries_over", "deliveries", ["updated_at"], "state in ('delivered', 'dead', 'obsolete')"),
    kit
      .finish(
        uses.addPrimaryKeyConstraint("limit_uses_key", ["policy", "limit_name", "subject", "at", "action_id"]),
        true,
      )
      .compile().sql,
    index("limit_uses_by_action", "limit_uses", ["action_id"]),
    index("limit_uses_over", "limit_uses", ["until"]),
  ];
}

export function past({ db, text }: SqlDialect): string[] {
  return [
    db.schema
      .alterTable("actions")
      .addColumn("past", text as RawBuilder<never>)
      .compile().sql,
  ];
}

export function meta({ db, text }: SqlDialect): string[] {
  return [
    db.schema
      .alterTable("actions")
      .addColumn("meta", text as RawBuilder<never>)
      .compile().sql,
  ];
}

/** An action's own hash is compared in place of the one beside an idempotency key: nothing of an erased one stays there. */
export function erasure({ db, integer }: SqlDialect): string[] {
  return [
    db.schema
      .alterTable("actions")
      .addColumn("erased_at", integer as RawBuilder<never>)
      .compile().sql,
    "update idempotency set body_hash = '' where route = 'POST /v1/actions'",
  ];
}

/** Of a destination the most urgent delivery is found by an index alone, and what waits longer or shorter by another. */
export function urgency(kit: SqlDialect): string[] {
  const index = (name: string, columns: string[]): string =>
    kit.db.schema
      .createIndex(name)
      .on("deliveries")
      .columns(columns)
      .where(sql<boolean>`state = 'waiting'`)
      .compile().sql;
  return [
    index("deliveries_urgent", ["destination", "give_up_at", "position", "next_at", "attempts", "kind"]),
    index("deliveries_next", ["destination", "next_at"]),
  ];
}
