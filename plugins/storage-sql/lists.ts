/** Lists: a statement for each combination of filters that is asked for. */
import { sql, type Kysely, type RawBuilder, type SelectQueryBuilder } from "kysely";
import type { ActionFilter, AgentFilter, DecisionInput, FollowedType } from "../../src/contract/storage.ts";
import type { SqlDialect } from "./dialect.ts";
import * as schema from "./schema.ts";
import type { Tables } from "./schema.ts";
import { param, prepare, type Statement } from "./statement.ts";

/** A literal, so that the planner may use the index over pending actions alone. */
export const pending = sql<boolean>`status = 'pending_approval'`;

/** The same for what may start. */
const startable = sql<boolean>`status in ('allowed', 'approved')`;

/** What the index of requests holds of a hash, and that of keys of a key's id; the whole is to be compared as well. */
const sameHash = sql<boolean>`substr(request_hash, 1, 12) = substr(cast(${param("request_hash")} as text), 1, 12)`;
const sameKey = (id: string) => sql<boolean>`substr(submitted_by, 29) = substr(cast(${param(id)} as text), 29)`;

/** One statement for each combination of filters, written when it is first asked for. */
export function actionLists(
  db: Kysely<Tables>,
  { expectsRows }: Pick<SqlDialect, "expectsRows">,
): (filter: ActionFilter) => Statement {
  const statements = new Map<string, Statement>();
  const optional = ["status", "agent_id", "tool", "operation", "request_hash", "since", "until", "before_seq"] as const;
  return (filter) => {
    const visible = "all" in filter.visibility ? "all" : "agent_id" in filter.visibility ? "agent" : "key";
    const { status } = filter;
    const timed = filter.as_of !== undefined && (status === "expired" || status === "pending_approval") ? status : "";
    const shape = [visible, timed, ...optional.filter((name) => filter[name] !== undefined)].join(" ");
    let statement = statements.get(shape);
    if (statement === undefined) {
      const newest = db.selectFrom("actions").orderBy("decision_seq", "desc");
      let query = db.selectFrom("actions").select("decision_seq");
      // Few actions have one hash: no other index is looked at then.
      const hashed = filter.request_hash !== undefined;
      const text = (column: "agent_id" | "submitted_by" | "tool" | "operation" | "status") =>
        hashed ? sql<string>`${sql.ref(column)} || ''` : sql<string>`${sql.ref(column)}`;
      const created = hashed ? sql<number>`created_at + 0` : sql<number>`created_at`;
      if (hashed) query = query.where("request_hash", "=", param("request_hash"));
      if (hashed && !expectsRows) query = query.where(sameHash);
      if (visible === "agent") query = query.where(text("agent_id"), "=", param("visible_agent"));
      if (visible === "key") query = query.where(text("submitted_by"), "=", param("visible_key"));
      if (visible === "key" && !hashed && !expectsRows) query = query.where(sameKey("visible_key"));
      for (const name of ["agent_id", "tool", "operation"] as const) {
        if (filter[name] !== undefined) query = query.where(text(name), "=", param<never>(name));
      }
      if (filter.since !== undefined) query = query.where(created, ">=", param("since"));
      if (filter.until !== undefined) query = query.where(created, "<", param("until"));
      if (filter.before_seq !== undefined) query = query.where("decision_seq", "<", param("before_seq"));
      const overdue = query
        .where(hashed ? sql<boolean>`${text("status")} = 'pending_approval'` : pending)
        .where("expires_at", "<=", param("as_of"));
      if (status !== undefined) query = query.where(text("status"), "=", param<never>("status"));
      if (timed === "pending_approval") query = query.where("expires_at", ">", param("as_of"));
      // Two lists that are in order, merged: an `or` would sort all that ever expired.
      const numbers = timed === "expired" ? query.unionAll(overdue) : query;
      const page = numbers
        .orderBy("decision_seq", "desc")
        .limit(param<number>("limit"))
        .offset(param<number>("offset"));
      // The actions of a span are found by time and sorted: only their numbers, before the rows of one page are read.
      const span = filter.since !== undefined && filter.until !== undefined && !hashed;
      statement = prepare(
        span || timed === "expired"
          ? newest.select(schema.ACTION_COLUMNS).where("decision_seq", "in", page)
          : page.clearSelect().select(schema.ACTION_COLUMNS),
      );
      statements.set(shape, statement);
    }
    return statement;
  };
}

/** A decision as it is stored, with what its bytes are held against. */
export type StoredDecision = DecisionInput & { leaf_hash: Uint8Array };

/** By sequence, the entry beside the action: `+ 0` keeps the time's index out of it. */
export function decisionLists(db: Kysely<Tables>, visible: "all" | "agent_id" | "key_id"): Statement {
  const rows = db
    .selectFrom("actions")
    .innerJoin("entries", "entries.seq", "actions.decision_seq")
    .select([
      "actions.decision_seq as seq",
      "actions.id as action_id",
      "actions.created_at as created_at",
      "actions.request as request",
      "actions.past as past",
      "entries.leaf_hash as leaf_hash",
      "entries.bytes as bytes",
    ])
    .where("actions.decision_seq", ">=", param("from_seq"))
    .where("actions.decision_seq", "<", param("before_seq"))
    .where(sql<boolean>`actions.created_at + 0 >= ${param("since")}`)
    .where(sql<boolean>`actions.created_at + 0 < ${param("until")}`)
    .orderBy("actions.decision_seq", "desc")
    .limit(param<number>("limit"));
  if (visible === "agent_id")
    return prepare(rows.where(sql<boolean>`actions.agent_id || '' = ${param("visible_agent")}`));
  if (visible === "key_id")
    return prepare(rows.where(sql<boolean>`actions.submitted_by || '' = ${param("visible_key")}`));
  return prepare(rows);
}

/** By expiry. `|| ''` keeps the indexes of agents and keys out of it. */
export function pendingLists(
  db: Kysely<Tables>,
  visible: "all" | "agent_id" | "key_id",
): { page: Statement; count: Statement } {
  let rows = db.selectFrom("actions").where(pending);
  const counted = (query: typeof rows) => query.select((eb) => eb.fn.countAll<number>().as("count"));
  if (visible === "agent_id") rows = rows.where(sql<boolean>`agent_id || '' = ${param("visible_agent")}`);
  if (visible === "key_id") rows = rows.where(sql<boolean>`submitted_by || '' = ${param("visible_key")}`);
  return {
    page: prepare(
      rows
        .select(schema.ACTION_COLUMNS)
        .where(sql<boolean>`(expires_at, decision_seq) > (${param("expires_at")}, ${param("decision_seq")})`)
        .orderBy("expires_at")
        .orderBy("decision_seq")
        .limit(param<number>("limit")),
    ),
    // Asked with every question of a key, under the ledger's lock: by an index that knows whose they are and their time,
    // and without a look at the rows.
    count: prepare(
      visible === "key_id"
        ? counted(db.selectFrom("actions").where(pending))
            .where("submitted_by", "=", param("visible_key"))
            .where(sql<boolean>`expires_at + 0 > ${param("now")}`)
        : counted(rows).where("expires_at", ">", param("now")),
    ),
  };
}

export function entriesOfType(db: Kysely<Tables>, type: FollowedType): Statement {
  return prepare(
    db
      .selectFrom("entries")
      .select(schema.ENTRY_COLUMNS)
      // Literal, or the planner does not see that the index holds what is asked for.
      .where("type", "=", sql.lit(type))
      .where("seq", ">=", param("from"))
      .orderBy("seq")
      .limit(param<number>("limit")),
  );
}

/** By the end of the permit. */
export function startableLists(db: Kysely<Tables>, status: "allowed" | "approved"): Statement {
  return prepare(
    db
      .selectFrom("actions")
      .select(schema.ACTION_COLUMNS)
      // Literal, or the planner does not see that the index holds what is asked for.
      .where("status", "=", sql.lit(status))
      .where(sql<boolean>`(approved_until, decision_seq) > (${param("approved_until")}, ${param("decision_seq")})`)
      .orderBy("approved_until")
      .orderBy("decision_seq")
      .limit(param<number>("limit")),
  );
}

/** What may start, or what waits, of one key and one request: the one whose time ends last. */
export function openLists(
  db: Kysely<Tables>,
  { expectsRows }: Pick<SqlDialect, "expectsRows">,
): { startable: Statement; waiting: Statement } {
  const actions = db.selectFrom("actions").select(schema.ACTION_COLUMNS);
  const last = (from: typeof actions, open: RawBuilder<boolean>, ends: "approved_until" | "expires_at"): Statement =>
    prepare(
      from
        .where(open)
        .where(ends, ">", param("now"))
        .orderBy(ends, "desc")
        .orderBy("decision_seq", "desc")
        .limit(sql.lit(1)),
    );
  return {
    // `|| ''` keeps other indexes out of it: of what is not open there may be very much.
    startable: last(
      actions
        .where(sameHash)
        .where(sameKey("submitted_by"))
        .where(sql<boolean>`submitted_by || '' = ${param("submitted_by")}`)
        .where(sql<boolean>`request_hash || '' = ${param("request_hash")}`),
      startable,
      "approved_until",
    ),
    waiting: expectsRows
      ? waitingInOrder(actions)
      : last(
          actions.where("submitted_by", "=", param("submitted_by")).where("request_hash", "=", param("request_hash")),
          pending,
          "expires_at",
        ),
  };
}

/**
 * As a stretch of the one index that is in this order. A planner that is asked for each column by itself, and does not know
 * the values yet, takes it that few actions have one request: it reads all of them, under the ledger's lock.
 */
function waitingInOrder(actions: SelectQueryBuilder<Tables, "actions", object>): Statement {
  const place = sql`'pending_approval', ${param("submitted_by")}, ${param("request_hash")}`;
  return prepare(
    actions
      .where(pending)
      .where(sql<boolean>`(status, submitted_by, request_hash, expires_at) > (${place}, ${param("now")})`)
      .where(sql<boolean>`(status, submitted_by, request_hash) <= (${place})`)
      .orderBy("status", "desc")
      .orderBy("submitted_by", "desc")
      .orderBy("request_hash", "desc")
      .orderBy("expires_at", "desc")
      .orderBy("decision_seq", "desc")
      .limit(sql.lit(1)),
  );
}

export function agentLists(db: Kysely<Tables>): (filter: AgentFilter) => Statement {
  const statements = new Map<string, Statement>();
  return ({ suspended, before_seq }) => {
    const shape = `${suspended} ${before_seq === undefined}`;
    let statement = statements.get(shape);
    if (statement === undefined) {
      let query = db.selectFrom("agents").select(schema.AGENT_COLUMNS).orderBy("registered_seq", "desc");
      if (suspended !== undefined) query = query.where("suspended_at", suspended ? "is not" : "is", null);
      if (before_seq !== undefined) query = query.where("registered_seq", "<", param("before_seq"));
      statement = prepare(query.limit(param<number>("limit")).offset(param<number>("offset")));
      statements.set(shape, statement);
    }
    return statement;
  };
}
