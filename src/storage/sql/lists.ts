/** Lists: a statement for each combination of filters that is asked for. */
import { sql, type Kysely, type RawBuilder, type SelectQueryBuilder } from "kysely";
import type { ActionFilter, AgentFilter, DecisionInput, FollowedType } from "../../contract/storage.ts";
import type { SqlDialect } from "./dialect.ts";
import { fromActions, ofActions } from "./kinds.ts";
import * as schema from "./schema.ts";
import type { Tables } from "./schema.ts";
import { param, prepare, type Statement } from "./statement.ts";

/** A literal, so that the planner may use the index over pending actions alone. */
export const pending = sql<boolean>`status = 'pending_approval'`;

/** The same for what may start. */
const startable = sql<boolean>`status in ('allowed', 'approved')`;

type Own = Pick<SqlDialect, "expectsRows" | "packed" | "unindexed">;

/** What the index of requests holds of a hash, and that of keys of a key's id; the whole is to be compared as well. */
const hashPart = (hash: RawBuilder<unknown>, { packed }: Own) =>
  packed === null ? sql`substr(${hash}, 1, 12)` : sql`substr(${hash}, 1, 6)`;
const keyPart = (id: RawBuilder<unknown>, { packed }: Own) =>
  packed === null ? sql`substr(${id}, 29)` : sql`substr(${id}, 13)`;
/** A parameter in its own form, or as the text that it is: an engine may not know what it is given. */
const given = (value: RawBuilder<unknown>, { packed }: Own) => (packed === null ? sql`cast(${value} as text)` : value);
const sameHash = (own: Own) =>
  sql<boolean>`${hashPart(sql`request_hash`, own)} = ${hashPart(given(param("request_hash", "hash"), own), own)}`;
const sameKey = (id: string, own: Own) =>
  sql<boolean>`${keyPart(sql`submitted_by`, own)} = ${keyPart(given(param(id, "uuid"), own), own)}`;

/** One statement for each combination of filters, written when it is first asked for. */
export function actionLists(db: Kysely<Tables>, own: Own): (filter: ActionFilter) => Statement {
  const { expectsRows } = own;
  const columns = ofActions(schema.ACTION_COLUMNS, own);
  const statements = new Map<string, Statement>();
  const optional = ["status", "agent_id", "tool", "operation", "request_hash", "since", "until", "before_seq"] as const;
  return (filter) => {
    const visible = "all" in filter.visibility ? "all" : "agent_id" in filter.visibility ? "agent" : "key";
    const { status } = filter;
    const timed = filter.as_of !== undefined && (status === "expired" || status === "pending_approval") ? status : "";
    const shape = [visible, timed, ...optional.filter((name) => filter[name] !== undefined)].join(" ");
    let statement = statements.get(shape);
    if (statement === undefined) {
      const newest = fromActions(db, own).orderBy("decision_seq", "desc");
      // Few actions have one hash: no other index is looked at then.
      const hashed = filter.request_hash !== undefined;
      // The actions of a span are found by time and sorted: only their numbers, before the rows of one page are read.
      const span = filter.since !== undefined && filter.until !== undefined && !hashed;
      const numbered = span || timed === "expired";
      let query = (numbered ? db.selectFrom("actions") : fromActions(db, own)).select("decision_seq");
      const text = (column: "agent_id" | "submitted_by" | "tool" | "operation" | "status") =>
        hashed ? own.unindexed(column) : sql<string>`${sql.ref(column)}`;
      const created = hashed ? sql<number>`created_at + 0` : sql<number>`created_at`;
      if (hashed) query = query.where("request_hash", "=", param("request_hash", "hash"));
      if (hashed && !expectsRows) query = query.where(sameHash(own));
      if (visible === "agent") query = query.where(text("agent_id"), "=", param("visible_agent"));
      if (visible === "key") query = query.where(text("submitted_by"), "=", param("visible_key", "uuid"));
      if (visible === "key" && !hashed && !expectsRows) query = query.where(sameKey("visible_key", own));
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
      statement = prepare(
        numbered ? newest.select(columns).where("decision_seq", "in", page) : page.clearSelect().select(columns),
      );
      statements.set(shape, statement);
    }
    return statement;
  };
}

/** A decision as it is stored, with what its bytes are held against. */
export type StoredDecision = DecisionInput & { leaf_hash: Uint8Array };

/** By sequence, the entry beside the action: `+ 0` keeps the time's index out of it. */
export function decisionLists(db: Kysely<Tables>, visible: "all" | "agent_id" | "key_id", own: Own): Statement {
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
    return prepare(rows.where(sql<boolean>`${own.unindexed("actions.agent_id")} = ${param("visible_agent")}`));
  if (visible === "key_id")
    return prepare(
      rows.where(sql<boolean>`${own.unindexed("actions.submitted_by")} = ${param("visible_key", "uuid")}`),
    );
  return prepare(rows);
}

/** By expiry. */
export function pendingLists(
  db: Kysely<Tables>,
  visible: "all" | "agent_id" | "key_id",
  own: Own,
): { page: Statement; count: Statement } {
  let rows = fromActions(db, own).where(pending);
  const counted = (query: typeof rows) => query.select((eb) => eb.fn.countAll<number>().as("count"));
  if (visible === "agent_id") rows = rows.where(sql<boolean>`${own.unindexed("agent_id")} = ${param("visible_agent")}`);
  if (visible === "key_id")
    rows = rows.where(sql<boolean>`${own.unindexed("submitted_by")} = ${param("visible_key", "uuid")}`);
  return {
    page: prepare(
      rows
        .select(ofActions(schema.ACTION_COLUMNS, own))
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
            .where("submitted_by", "=", param("visible_key", "uuid"))
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
export function startableLists(db: Kysely<Tables>, status: "allowed" | "approved", own: Own): Statement {
  return prepare(
    fromActions(db, own)
      .select(ofActions(schema.ACTION_COLUMNS, own))
      // Literal, or the planner does not see that the index holds what is asked for.
      .where("status", "=", sql.lit(status))
      .where(sql<boolean>`(approved_until, decision_seq) > (${param("approved_until")}, ${param("decision_seq")})`)
      .orderBy("approved_until")
      .orderBy("decision_seq")
      .limit(param<number>("limit")),
  );
}

/** What may start, or what waits, of one key and one request: the one whose time ends last. */
export function openLists(db: Kysely<Tables>, own: Own): { startable: Statement; waiting: Statement } {
  const actions = fromActions(db, own).select(ofActions(schema.ACTION_COLUMNS, own));
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
    // No other index: of what is not open there may be very much.
    startable: last(
      actions
        .where(sameHash(own))
        .where(sameKey("submitted_by", own))
        .where(sql<boolean>`${own.unindexed("submitted_by")} = ${param("submitted_by", "uuid")}`)
        .where(sql<boolean>`${own.unindexed("request_hash")} = ${param("request_hash", "hash")}`),
      startable,
      "approved_until",
    ),
    waiting: own.expectsRows
      ? waitingInOrder(actions)
      : last(
          actions
            .where("submitted_by", "=", param("submitted_by", "uuid"))
            .where("request_hash", "=", param("request_hash", "hash")),
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

/**
 * The rejection of a request that holds longest. A stretch of the one index in this order: asked for each column by itself,
 * a planner can choose an index over all actions of the request, of which there may be very many.
 */
export function rejectedAction(db: Kysely<Tables>, own: Own): Statement {
  const hash = sql`${param("request_hash", "hash")}`;
  return prepare(
    fromActions(db, own)
      .select(ofActions(schema.ACTION_COLUMNS, own))
      .where("rejection_until", "is not", null)
      .where(sql<boolean>`(request_hash, rejection_until) > (${hash}, ${param("now")})`)
      .where(sql<boolean>`request_hash <= ${hash}`)
      .orderBy("request_hash", "desc")
      .orderBy("rejection_until", "desc")
      .limit(sql.lit(1)),
  );
}
