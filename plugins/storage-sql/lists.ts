/** Lists of actions and decisions, with one statement for each combination of filters. */
import { sql, type Kysely, type SelectQueryBuilder } from "kysely";
import {
  MAX_JOINABLE_ALLOWED,
  type ActionFilter,
  type AgentFilter,
  type DecisionInput,
} from "../../src/storage/index.ts";
import { type ContainsDialect, containsText } from "./contained-text.ts";
import type { SqlDialect } from "./dialect.ts";
import * as schema from "./table-schema.ts";
import type { Tables } from "./table-schema.ts";
import { IS_OPEN, OPEN_UNTIL } from "./migrations/initial.ts";
import { param, prepare, type Statement, unindexed } from "./statement.ts";

/** Use a literal, so that the planner can use the partial index over pending actions. */
export const PENDING_CONDITION = sql<boolean>`status = 'pending_approval'`;

/** Use a literal, so that the planner can use the partial index over the first actions of plans. */
const isFirstOfPlan = sql<boolean>`plan_position = 1`;

/** Use a literal, so that the planner can use the partial index over approved actions. */
const APPROVED_CONDITION = sql<boolean>`status = 'approved'`;

/**
 * Sequence numbers of the first action at or after `since`, and of the last action before `until`. A list between these
 * numbers contains exactly the actions of the time span, because the ledger's time never goes back. The list can then
 * use any index that is sorted by sequence number, however long the time span is.
 */
const FIRST_SINCE = sql<number>`(select decision_seq from actions where created_at >= ${param("since")} order by created_at, decision_seq limit 1)`;
const LAST_UNTIL = sql<number>`(select decision_seq from actions where created_at < ${param("until")} order by created_at desc, decision_seq desc limit 1)`;

/** Names of the sequence numbers in which a statement with a request hash searches. */
const SEQ_NAMES = Array.from({ length: 64 }, (_, i) => `seq_${i}`);
const GIVEN_SEQS = sql<number>`(${sql.join(SEQ_NAMES.map((name) => sql`${param(name)}`))})`;
const NO_SEQ = -1;

/** Splits the sequence numbers into values of a statement with a request hash. */
export function splitGivenSeqs(seqs: readonly number[]): Record<string, number>[] {
  const parts: Record<string, number>[] = [];
  for (let at = 0; at < seqs.length; at += SEQ_NAMES.length)
    parts.push(Object.fromEntries(SEQ_NAMES.map((name, i) => [name, seqs[at + i] ?? NO_SEQ])));
  return parts;
}

const NAMES = ["agent_id", "tool", "operation", "decision", "policy", "rule"] as const;

/**
 * Returns the statement for a combination of filters. Prepares it on first use. A statement with a request hash
 * searches only in the values of `splitGivenSeqs`.
 */
export function prepareActionLists(db: Kysely<Tables>, dialect: ContainsDialect): (filter: ActionFilter) => Statement {
  const statements = new Map<string, Statement>();
  const optional = [
    "status",
    ...NAMES,
    "contains",
    "request_hash",
    "allowed_by",
    "plan_id",
    "first_of_plan",
    "since",
    "until",
    "from_seq",
    "before_seq",
  ] as const;
  return (filter) => {
    const visible = "all" in filter.visibility ? "all" : "agent_id" in filter.visibility ? "agent" : "key";
    const { status } = filter;
    const timed = filter.as_of !== undefined && (status === "expired" || status === "pending_approval") ? status : "";
    const shape = [visible, timed, ...optional.filter((name) => filter[name] !== undefined)].join(" ");
    let statement = statements.get(shape);
    if (statement === undefined) {
      const newest = db.selectFrom("actions").orderBy("decision_seq", "desc");
      // Prevent the use of other indexes, because few actions match these conditions: a hash, a grant or a plan, or
      // being first in a plan.
      const hashed = (["request_hash", "allowed_by", "plan_id", "first_of_plan"] as const).some(
        (name) => filter[name] !== undefined,
      );
      let query = db.selectFrom("actions").select("decision_seq");
      const text = (column: "submitted_by" | "status" | (typeof NAMES)[number]) =>
        hashed ? unindexed(column) : sql<string>`${sql.ref(column)}`;
      if (filter.request_hash !== undefined)
        query = query.where("request_hash", "=", param("request_hash", "hash")).where("decision_seq", "in", GIVEN_SEQS);
      if (filter.allowed_by !== undefined) query = query.where("allowed_by", "=", param("allowed_by"));
      if (filter.first_of_plan !== undefined) query = query.where(isFirstOfPlan);
      if (filter.plan_id !== undefined) query = query.where("plan_id", "=", param("plan_id"));
      if (visible === "agent") query = query.where(text("agent_id"), "=", param("visible_agent"));
      if (visible === "key") query = query.where(text("submitted_by"), "=", param("visible_key", "uuid"));
      for (const name of NAMES) {
        if (filter[name] !== undefined) query = query.where(text(name), "=", param<never>(name));
      }
      if (filter.contains !== undefined) query = query.where(containsText(dialect));
      // `+ 0` prevents the planner from using the index over the time, which would need a sort.
      if (filter.since !== undefined) query = query.where(sql<boolean>`created_at + 0 >= ${param("since")}`);
      if (filter.until !== undefined) query = query.where(sql<boolean>`created_at + 0 < ${param("until")}`);
      if (filter.since !== undefined && !hashed) query = query.where("decision_seq", ">=", FIRST_SINCE);
      if (filter.until !== undefined && !hashed) query = query.where("decision_seq", "<=", LAST_UNTIL);
      if (filter.from_seq !== undefined) query = query.where("decision_seq", ">=", param("from_seq"));
      if (filter.before_seq !== undefined) query = query.where("decision_seq", "<", param("before_seq"));
      const overdue = query
        .where(hashed ? sql<boolean>`${text("status")} = 'pending_approval'` : PENDING_CONDITION)
        .where("expires_at", "<=", param("as_of"));
      if (status !== undefined) query = query.where(text("status"), "=", param<never>("status"));
      if (timed === "pending_approval") query = query.where("expires_at", ">", param("as_of"));
      // Merge two ordered lists, because an `or` would sort all actions that ever expired.
      const numbers = timed === "expired" ? query.unionAll(overdue) : query;
      const page = numbers
        .orderBy("decision_seq", "desc")
        .limit(param<number>("limit"))
        .offset(param<number>("offset"));
      statement = prepare(() =>
        timed === "expired"
          ? newest.select(schema.ACTION_COLUMNS).where("decision_seq", "in", page)
          : page.clearSelect().select(schema.ACTION_COLUMNS),
      );
      statements.set(shape, statement);
    }
    return statement;
  };
}

/** A stored decision, with the leaf hash that verifies its bytes. */
export type StoredDecision = DecisionInput & { leaf_hash: Uint8Array };

/**
 * Prepares the list of decisions with their actions, newest first. `+ 0` prevents the planner from using the index over
 * the time.
 */
export function prepareDecisionLists(db: Kysely<Tables>, visible: "all" | "agent_id" | "key_id"): Statement {
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
    return prepare(() => rows.where(sql<boolean>`${unindexed("actions.agent_id")} = ${param("visible_agent")}`));
  if (visible === "key_id")
    return prepare(() =>
      rows.where(sql<boolean>`${unindexed("actions.submitted_by")} = ${param("visible_key", "uuid")}`),
    );
  return prepare(() => rows);
}

/**
 * Prepares the list of pending actions sorted by expiry (`page`), the same list with a text filter (`found`), and their
 * number (`count`).
 */
export function preparePendingLists(
  db: Kysely<Tables>,
  dialect: ContainsDialect,
  visible: "all" | "agent_id" | "key_id",
): { page: Statement; found: Statement; count: Statement } {
  let rows = db.selectFrom("actions").where(PENDING_CONDITION);
  const counted = (query: typeof rows) => query.select((eb) => eb.fn.countAll<number>().as("count"));
  if (visible === "agent_id") rows = rows.where(sql<boolean>`${unindexed("agent_id")} = ${param("visible_agent")}`);
  if (visible === "key_id")
    rows = rows.where(sql<boolean>`${unindexed("submitted_by")} = ${param("visible_key", "uuid")}`);
  const page = rows
    .select(schema.ACTION_COLUMNS)
    .where(sql<boolean>`(expires_at, decision_seq) > (${param("expires_at")}, ${param("decision_seq")})`)
    .orderBy("expires_at")
    .orderBy("decision_seq")
    .limit(param<number>("limit"));
  return {
    page: prepare(() => page),
    found: prepare(() => page.where(containsText(dialect))),
    // The count of one key runs for every action that the key submits, under the ledger's lock, so an index contains
    // all columns that it reads.
    count: prepare(() =>
      visible === "key_id"
        ? counted(db.selectFrom("actions").where(PENDING_CONDITION))
            .where("submitted_by", "=", param("visible_key", "uuid"))
            .where(sql<boolean>`expires_at + 0 > ${param("now")}`)
        : counted(rows).where("expires_at", ">", param("now")),
    ),
  };
}

/** Prepares the list of followed entries, oldest first. */
export function prepareFollowedEntries(db: Kysely<Tables>): Statement {
  return prepare(() =>
    db
      .selectFrom("entries")
      .select(schema.ENTRY_COLUMNS)
      // Use a literal, so that the planner can use the partial index.
      .where("followed", "=", sql.lit(1))
      .where("seq", ">=", param("from"))
      .orderBy("seq")
      .limit(param<number>("limit")),
  );
}

/** Prepares the list of approved actions, earliest deadline first. */
export function prepareApprovedList(db: Kysely<Tables>): Statement {
  return prepare(() =>
    db
      .selectFrom("actions")
      .select(schema.ACTION_COLUMNS)
      // Use a literal, so that the planner can use the partial index.
      .where("status", "=", sql.lit("approved"))
      .where(sql<boolean>`(approved_until, decision_seq) > (${param("approved_until")}, ${param("decision_seq")})`)
      .orderBy("approved_until")
      .orderBy("decision_seq")
      .limit(param<number>("limit")),
  );
}

/**
 * Prepares the statements that find the allowed, approved and pending action of a key with the same request. If there
 * are several, they return the action that expires last.
 */
export function prepareOpenLists(
  db: Kysely<Tables>,
  { usesGenericPlans }: Pick<SqlDialect, "usesGenericPlans">,
): { allowed: Statement; approved: Statement; waiting: Statement } {
  const actions = db.selectFrom("actions").select(schema.ACTION_COLUMNS);
  const list = usesGenericPlans ? lastOfRange : lastOfRequest;
  return {
    allowed: lastAllowed(db),
    approved: list(actions.where(APPROVED_CONDITION), "approved_until", "approved"),
    waiting: list(actions.where(PENDING_CONDITION), "expires_at", "pending_approval"),
  };
}

/** Searches only in the index, among the allowed actions of the key that end last. */
function lastAllowed(db: Kysely<Tables>): Statement {
  const until = sql.raw<number>(OPEN_UNTIL);
  const newest = db
    .selectFrom("actions")
    .select(["decision_seq", "request_hash", until.as("until")])
    .where(sql.raw<boolean>(IS_OPEN))
    .where("submitted_by", "=", SUBMITTED_BY)
    .where(sql<boolean>`status = 'allowed'`)
    .where(sql<boolean>`${until} > ${param("now")}`)
    .orderBy(until, "desc")
    .limit(sql.lit(MAX_JOINABLE_ALLOWED));
  const last = db
    .selectFrom(newest.as("newest"))
    .select("decision_seq")
    .where("request_hash", "=", REQUEST_HASH)
    .orderBy("until", "desc")
    .orderBy("decision_seq", "desc")
    .limit(sql.lit(1));
  return prepare(() => db.selectFrom("actions").select(schema.ACTION_COLUMNS).where("decision_seq", "=", last));
}

type Actions = SelectQueryBuilder<Tables, "actions", object>;
const SUBMITTED_BY = sql<string>`${param("submitted_by", "uuid")}`;
const REQUEST_HASH = sql<string>`${param("request_hash", "hash")}`;

function lastOfRequest(actions: Actions, ends: "approved_until" | "expires_at"): Statement {
  return prepare(() =>
    actions
      .where("submitted_by", "=", SUBMITTED_BY)
      .where("request_hash", "=", REQUEST_HASH)
      .where(ends, ">", param("now"))
      .orderBy(ends, "desc")
      .orderBy("decision_seq", "desc")
      .limit(sql.lit(1)),
  );
}

/**
 * Prepares the same query as `lastOfRequest`, written as a row-value range so that Postgres uses the only index with
 * this order. With one comparison for each column, a generic plan would read every action with the same request, under
 * the ledger's lock.
 */
function lastOfRange(
  actions: Actions,
  ends: "approved_until" | "expires_at",
  status: "approved" | "pending_approval",
): Statement {
  const names = ["status", "submitted_by", "request_hash"] as const;
  const columns = sql.join(names.map((name) => sql.ref(name)));
  const values = sql.join([sql.lit(status), SUBMITTED_BY, REQUEST_HASH]);
  const range = actions
    .where(sql<boolean>`(${columns}, ${sql.ref(ends)}) > (${values}, ${param("now")})`)
    .where(sql<boolean>`(${columns}) <= (${values})`);
  return prepare(() =>
    [...names, ends, "decision_seq" as const]
      .reduce((query, column) => query.orderBy(column, "desc"), range)
      .limit(sql.lit(1)),
  );
}

export function prepareAgentListQueries(db: Kysely<Tables>): (filter: AgentFilter) => Statement {
  const statements = new Map<string, Statement>();
  return ({ suspended, before_seq }) => {
    const shape = `${suspended} ${before_seq === undefined}`;
    let statement = statements.get(shape);
    if (statement === undefined) {
      let query = db.selectFrom("agents").select(schema.AGENT_COLUMNS).orderBy("registered_seq", "desc");
      if (suspended !== undefined) query = query.where("suspended_at", suspended ? "is not" : "is", null);
      if (before_seq !== undefined) query = query.where("registered_seq", "<", param("before_seq"));
      statement = prepare(() => query.limit(param<number>("limit")).offset(param<number>("offset")));
      statements.set(shape, statement);
    }
    return statement;
  };
}

/**
 * Prepares the statement that finds the rejection of a request that ends last. The condition is a range of the only
 * index with this order. With one comparison for each column, a planner could choose an index over all actions of the
 * request, which can be many.
 *
 * @param column the column of the submitted request, or of the request after an approver's changes
 */
export function prepareRejectedAction(db: Kysely<Tables>, column: "request_hash" | "effective_hash"): Statement {
  const hash = sql`${param("hash", "hash")}`;
  return prepare(() =>
    db
      .selectFrom("actions")
      .select(schema.ACTION_COLUMNS)
      .where(column, "is not", null)
      .where("rejection_until", "is not", null)
      .where(sql<boolean>`(${sql.ref(column)}, rejection_until) > (${hash}, ${param("now")})`)
      .where(sql<boolean>`${sql.ref(column)} <= ${hash}`)
      .orderBy(column, "desc")
      .orderBy("rejection_until", "desc")
      .limit(sql.lit(1)),
  );
}

/** Prepares the count of the newest requests for approval of a key. The index contains all columns that it reads. */
export function prepareApprovalRequests(db: Kysely<schema.Tables>): Statement {
  const newest = db
    .selectFrom("actions")
    .select(sql<number>`created_at / 3600000`.as("hour"))
    .where("submitted_by", "=", param("key_id", "uuid"))
    .where(sql<boolean>`decision = 'require_approval'`)
    .where("created_at", ">=", param("since"))
    .where("created_at", "<", param("until"))
    .orderBy("created_at", "desc")
    .limit(param("limit"));
  return prepare(() =>
    db
      .selectFrom(newest.as("newest"))
      .select((eb) => [eb.fn.countAll<number>().as("requests"), eb.fn.count<number>("hour").distinct().as("hours")]),
  );
}
