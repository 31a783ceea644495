/** The reads and writes of deliveries as SQL. */
import { sql, type Kysely, type RawBuilder } from "kysely";
import type {
  DeliveryBacklog,
  DeliveryChange,
  DeliveryFilter,
  DeliveryRow,
  StorageReader,
  StorageTransaction,
} from "../../src/storage/index.ts";
import type { SqlDialect } from "./dialect.ts";
import { toStoredActionId } from "./packed-columns.ts";
import * as schema from "./table-schema.ts";
import type { Tables } from "./table-schema.ts";
import { param, params, prepare, readRows, type SqlExecutor, type SqlReader, type Statement } from "./statement.ts";

type Reads = ReturnType<typeof prepareDeliveryReads>;
type Writes = ReturnType<typeof prepareDeliveryWrites>;
type ReadMethods = Pick<
  StorageReader,
  "delivery" | "deliveries" | "deliveriesOfAction" | "dueDeliveries" | "deliveryBacklog" | "nextScheduledDelivery"
>;
type WriteMethods = Pick<
  StorageTransaction,
  "insertDelivery" | "updateDelivery" | "deferDeliveries" | "hastenDeliveries" | "releaseDeliveries" | "pruneDeliveries"
>;

// Use a literal, so that the planner can use the partial indexes over these states.
const WAITING = sql<boolean>`state = 'waiting'`;
const SCHEDULED = sql<boolean>`state = 'scheduled'`;
const OVER = sql<boolean>`state in ('delivered', 'dead', 'obsolete')`;

const orderByUrgency = (attempts: string) => sql`(
    select position from deliveries
    where ${WAITING} and deliveries.destination = waiting.destination and attempts ${sql.raw(attempts)} and next_at <= ${param("now")}
      and (kind <> 'event' or position = (select first.position from deliveries as first where first.state = 'waiting' and first.kind = 'event' and first.destination = waiting.destination order by first.give_up_at, first.position limit 1))
    order by give_up_at, position limit 1
  )`;
// Uses one index to find the destinations, and another index to find the most urgent delivery of each destination.
const DUE = sql<boolean>`position in (
  with recursive waiting (destination) as (
    select min(destination) from deliveries where ${WAITING}
    union all
    select (select min(destination) from deliveries where ${WAITING} and deliveries.destination > waiting.destination) from waiting where waiting.destination is not null
  )
  select coalesce(${orderByUrgency("= 0")}, ${orderByUrgency("> 0")}) from waiting where waiting.destination is not null)`;
const selectDecided = ({ types }: Pick<SqlDialect, "types">) =>
  sql<boolean>`not exists (select 1 from actions where actions.id = ${toStoredActionId(types, "deliveries.action_id")} and actions.status = 'pending_approval')`;
export function prepareDeliveryReads(db: Kysely<Tables>) {
  const rows = db.selectFrom("deliveries").select(schema.DELIVERY_COLUMNS);
  return {
    delivery: prepare(() => rows.where("id", "=", param("id"))),
    deliveryLists: deliveryLists(db),
    deliveriesOfAction: prepare(() => rows.where("action_id", "=", param("action_id")).orderBy("position")),
    dueDeliveries: prepare(() => rows.where(DUE).orderBy("position").limit(param<number>("limit"))),
    deliveryBacklog: {
      scheduled: prepareBacklog(db, SCHEDULED),
      waiting: prepareBacklog(db, WAITING),
      dead: prepareBacklog(db, sql<boolean>`state = 'dead'`),
    },
    nextScheduled: prepare(() =>
      db
        .selectFrom("deliveries")
        .select((eb) => eb.fn.min("next_at").as("at"))
        .where(SCHEDULED),
    ),
  };
}

function prepareBacklog(db: Kysely<Tables>, of: RawBuilder<boolean>): Statement {
  return prepare(() =>
    db
      .selectFrom("deliveries")
      .select([(eb) => eb.fn.countAll<number>().as("count"), (eb) => eb.fn.min("created_at").as("oldest")])
      .where(of),
  );
}

function deliveryLists(db: Kysely<Tables>): (filter: DeliveryFilter) => Statement {
  const statements = new Map<string, Statement>();
  return (filter) => {
    const filters = (["state", "destination", "action_id", "before_position"] as const).filter(
      (name) => filter[name] !== undefined,
    );
    const shape = [...filters, filter.state].join(" ");
    let statement = statements.get(shape);
    if (statement === undefined) {
      let query = db.selectFrom("deliveries").select(schema.DELIVERY_COLUMNS).orderBy("position", "desc");
      for (const name of filters) {
        if (name === "before_position") query = query.where("position", "<", param("before_position"));
        else query = query.where(name, "=", name === "state" ? sql.lit(filter.state as never) : param<never>(name));
      }
      statement = prepare(() => query.limit(param<number>("limit")).offset(param<number>("offset")));
      statements.set(shape, statement);
    }
    return statement;
  };
}

export function createDeliveryReader(reads: Reads, db: SqlReader): ReadMethods {
  const many = (statement: Statement, values: object): Promise<DeliveryRow[]> => readRows(db, statement, values);
  return {
    delivery: async (id) => (await many(reads.delivery, { id }))[0] ?? null,
    deliveries: (filter) => many(reads.deliveryLists(filter), { ...filter, offset: filter.offset ?? 0 }),
    deliveriesOfAction: (action_id) => many(reads.deliveriesOfAction, { action_id }),
    dueDeliveries: (now, limit) => many(reads.dueDeliveries, { now, limit }),
    async deliveryBacklog() {
      const readBacklog = async (statement: Statement): Promise<DeliveryBacklog> =>
        (await readRows<DeliveryBacklog>(db, statement, {}))[0] as DeliveryBacklog;
      const { scheduled, waiting, dead } = reads.deliveryBacklog;
      return {
        scheduled: await readBacklog(scheduled),
        waiting: await readBacklog(waiting),
        dead: await readBacklog(dead),
      };
    },
    async nextScheduledDelivery() {
      const at = (await db.all(reads.nextScheduled, {}))[0]?.["at"] ?? null;
      return at === null ? null : Number(at);
    },
  };
}

const CHANGES = [
  "state",
  "updated_at",
  "attempts",
  "next_at",
  "give_up_at",
  "last_error",
  "reference",
  "delivered_at",
  "seal",
] as const;

export function prepareDeliveryWrites(db: Kysely<Tables>, dialect: Pick<SqlDialect, "types">) {
  const old = db
    .selectFrom("deliveries")
    .select("position")
    .where(OVER)
    .where("updated_at", "<", param("before"))
    .where(selectDecided(dialect))
    .orderBy("updated_at")
    .limit(param<number>("max"));
  const last = sql<number>`(select coalesce(max(position), 0) + 1 from deliveries)`;
  const insertedColumns = schema.DELIVERY_COLUMNS.filter((column) => column !== "position");
  const until = sql<number>`case when kind = 'event' then cast(${param("events")} as bigint) else cast(${param("others")} as bigint) end`;
  return {
    insertDelivery: prepare(() =>
      db.insertInto("deliveries").values({ ...params<Tables["deliveries"]>(insertedColumns), position: last }),
    ),
    updateDelivery: deliveryUpdates(db),
    deferDeliveries: prepare(() =>
      db
        .updateTable("deliveries")
        .set({
          next_at: until,
          last_error: sql<string>`case when attempts = 0 then ${param("last_error")} else last_error end`,
          updated_at: param<number>("updated_at"),
        })
        .where(WAITING)
        .where("destination", "=", param("destination"))
        .where("id", "!=", param("except"))
        .where("next_at", "<", until)
        // Implied by the condition above, but lets the planner use the index over `next_at`.
        .where("next_at", "<", param("latest")),
    ),
    hastenDeliveries: prepare(() =>
      db
        .updateTable("deliveries")
        .set({ next_at: param<number>("now") })
        .where(WAITING)
        .where("destination", "=", param("destination"))
        .where("attempts", "<=", param("attempts"))
        .where("next_at", ">", param("now")),
    ),
    releaseDeliveries: prepare(() =>
      db
        .updateTable("deliveries")
        .set({ state: sql.lit("waiting") })
        .where(SCHEDULED)
        .where("next_at", "<=", param("now")),
    ),
    pruneDeliveries: prepare(() => db.deleteFrom("deliveries").where("position", "in", old)),
  };
}

/** Returns the statement for a combination of changes. Prepares it on first use. */
function deliveryUpdates(db: Kysely<Tables>): (change: DeliveryChange) => Statement {
  const statements = new Map<string, Statement>();
  return (change) => {
    const changed = CHANGES.filter((name) => change[name] !== undefined);
    const shape = changed.join(" ");
    const statement =
      statements.get(shape) ??
      prepare(() =>
        db
          .updateTable("deliveries")
          .set(params<object>(changed))
          .where("id", "=", param("id"))
          .where("state", "=", param("if_state"))
          .where("attempts", "=", param("if_attempts")),
      );
    statements.set(shape, statement);
    return statement;
  };
}

export function createDeliveryWriter(writes: Writes, db: SqlExecutor): WriteMethods {
  return {
    async insertDelivery(row) {
      await db.send(writes.insertDelivery, row);
    },
    updateDelivery: async (id, guard, change) =>
      (await db.run(writes.updateDelivery(change), {
        ...change,
        id,
        if_state: guard.state,
        if_attempts: guard.attempts,
      })) === 1,
    deferDeliveries: (destination, deferral) =>
      db.run(writes.deferDeliveries, {
        destination,
        ...deferral,
        latest: Math.max(deferral.events, deferral.others),
      }),
    hastenDeliveries: (destination, attempts, now) => db.run(writes.hastenDeliveries, { destination, attempts, now }),
    releaseDeliveries: (now) => db.run(writes.releaseDeliveries, { now }),
    pruneDeliveries: (before, max) => db.run(writes.pruneDeliveries, { before, max }),
  };
}
