/** The executor of one transaction. It rejects every statement after the transaction ended or a statement failed. */
import { StorageError } from "../../contract/storage.ts";
import type { Insert, SqlDialect } from "./dialect.ts";
import type { SqlEngine, SqlTransaction } from "./engine.ts";
import type { MovedHead } from "./statement.ts";
import type { KnownRows } from "./lock-reads.ts";
import { bind as bindTo, type SqlExecutor, type SqlValue, type Statement } from "./statement.ts";

interface TransactionScope {
  executor: SqlExecutor;
  /** Accepts no more statements; accepted ones still run. Returns the error that doomed the transaction, or null. */
  end(): Error | null;
  /** Runs no more statements, not even accepted ones. Returns the earlier error that doomed the transaction, or null. */
  abandon(): Error | null;
  /** Resolves when every accepted statement has a response; rejects with the error that doomed the transaction. */
  answered(): Promise<void>;
  /** The head that the transaction has written; null if none. */
  readonly moved: MovedHead | null;
  /** True if the transaction has erased data. */
  readonly erased: boolean;
}

/** Maximum characters and bytes of rows in one statement. A larger row gets a statement of its own. */
const MOST_AT_ONCE = 4_000_000;

const OVER = "the transaction is over: await everything inside the work of `write`";

/**
 * Creates the executor of a transaction.
 * @param own the statements that move the head and that erase
 * @param known rows that were read together with the lock
 */
export function transactionScope(
  engine: Pick<SqlEngine, "pipelined" | "toStorageError">,
  { insertRows, packed }: Pick<SqlDialect, "insertRows" | "packed">,
  tx: SqlTransaction,
  own: { moveHead: Statement; eraseAction: Statement },
  known: KnownRows,
): TransactionScope {
  let failure: Error | null = null;
  let over = false;
  let moved: MovedHead | null = null;
  let erased = false;
  const bind = (statement: Statement, values: object, last?: SqlValue): SqlValue[] => {
    const bound = bindTo(statement, values, packed !== null, last);
    // A pipelined statement may be sent after the caller continues, so later changes to the caller's bytes must not affect
    // it.
    return engine.pipelined === true ? bound.map(copyOfBytes) : bound;
  };
  /** False once the transaction has appended: `known` is then outdated. */
  let isAsLocked = true;
  const pending: Promise<void>[] = [];
  /** The most recently accepted statement; null if there is none. */
  let last: Promise<void> | null = null;
  /** Accepted rows. They are inserted together with others of their table ahead of the next statement. */
  let held = new Map<Insert, SqlValue[][]>();

  const failed = (error: unknown): Error => (failure ??= engine.toStorageError(error, "write to the store"));

  /** Runs the statement. If several pipelined statements fail together, only the first has the cause. */
  const query: SqlTransaction["query"] = (sql, values) =>
    tx.query(sql, values).catch((error: unknown) => {
      throw failed(error);
    });

  async function attempt<T>(run: () => Promise<T>): Promise<T> {
    if (over) throw new StorageError("unavailable", OVER);
    release();
    return engine.pipelined === true ? begin(run) : inTurn(run);
  }

  /**
   * Runs statements one at a time. A failed statement may have rolled everything back, and a concurrent one would then commit
   * by itself.
   */
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const mine = last === null ? begin(run) : last.then(() => begin(run));
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    last = settled;
    void settled.then(() => {
      if (last === settled) last = null;
    });
    return mine;
  }

  async function begin<T>(run: () => Promise<T>): Promise<T> {
    if (failure !== null) throw failure;
    try {
      return await run();
    } catch (error) {
      throw failed(error);
    }
  }

  async function run(statement: Statement, values: object): Promise<number> {
    const bound = bind(statement, values);
    erased ||= statement === own.eraseAction;
    return (await query(statement.sql, bound)).changes;
  }

  /** Waits for the response unless statements are pipelined: then `answered` reports a failure. */
  async function unlessPipelined(answer: Promise<unknown>): Promise<void> {
    if (engine.pipelined !== true) await answer;
    else
      pending.push(
        answer.then(
          () => undefined,
          (error: unknown) => void failed(error),
        ),
      );
  }

  /** A value that cannot be stored dooms the transaction. */
  function bound(statement: Statement, values: object, last?: SqlValue): SqlValue[] {
    try {
      return bind(statement, values, last);
    } catch (error) {
      throw failed(error);
    }
  }

  /** Sends the buffered rows, one statement for each table. */
  function release(): void {
    if (held.size === 0) return;
    const tables = held;
    held = new Map();
    for (const [insert, rows] of tables) {
      const send = (): Promise<unknown> => insertAll(insert, rows);
      pending.push(
        (engine.pipelined === true ? begin(send) : inTurn(send)).then(
          () => undefined,
          () => undefined,
        ),
      );
    }
  }

  async function insertAll(insert: Insert, rows: readonly SqlValue[][]): Promise<void> {
    if (insertRows === undefined || rows.length === 1) {
      await everyOne(rows, (row) => query(insert.sql, row));
      return;
    }
    await everyOne(parts(rows), (part) => {
      const { sql, values } = insertRows(insert, part);
      return query(sql, values);
    });
  }

  /** Runs the work for all items: at once if statements are pipelined, else one after another. */
  async function everyOne<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
    if (engine.pipelined === true) await Promise.all(all.map(work));
    else
      for (const one of all) {
        if (failure !== null) throw failure;
        await work(one);
      }
  }

  return {
    executor: {
      all: (statement, values) =>
        attempt(
          async () =>
            (isAsLocked ? known(statement, values) : null) ??
            (await query(statement.sql, bind(statement, values))).rows,
        ),
      run: (statement, values) => attempt(() => run(statement, values)),
      async send(statement, values, last) {
        if (insertRows !== undefined && isInsert(statement)) {
          if (over) throw new StorageError("unavailable", OVER);
          if (failure !== null) throw failure;
          const row = bound(statement, values, last);
          const rows = held.get(statement);
          if (rows === undefined) held.set(statement, [row]);
          else rows.push(row);
          return;
        }
        await attempt(async () => {
          const bound = bind(statement, values, last);
          const answer = query(statement.sql, bound).then(() => undefined);
          if (engine.pipelined === true) pending.push(answer.catch((error: unknown) => void failed(error)));
          else await answer;
        });
      },
      runMany: (statement, rows) =>
        attempt(() => {
          if (insertRows === undefined || !isInsert(statement))
            return unlessPipelined(everyOne(rows, (row) => run(statement, row)));
          const values = rows.map((row) => bind(statement, row));
          return unlessPipelined(insertAll(statement, values));
        }),
      moveHead: (values, refusal) =>
        attempt(() => {
          isAsLocked = false;
          moved = { size: values.size, epoch: values.epoch, root: values.root.slice() };
          return unlessPipelined(
            run(own.moveHead, values).then((changes) => {
              if (changes !== 1) throw failed(refusal);
            }),
          );
        }),
      fail(error) {
        failure ??= error;
        throw error;
      },
    },
    end() {
      release();
      over = true;
      return failure;
    },
    abandon() {
      over = true;
      const lost = failure;
      failure ??= new StorageError("unavailable", OVER);
      return lost;
    },
    async answered() {
      while (last !== null) await last;
      await Promise.all(pending);
      if (failure !== null) throw failure;
    },
    get moved() {
      return moved;
    },
    get erased() {
      return erased;
    },
  };
}

const copyOfBytes = (value: SqlValue): SqlValue => (value instanceof Uint8Array ? value.slice() : value);

const isInsert = (statement: Statement): statement is Insert => statement.into !== undefined;

/** Splits the rows into parts that one statement can hold. */
function parts(rows: readonly SqlValue[][]): SqlValue[][][] {
  const all: SqlValue[][][] = [];
  let size = Infinity;
  for (const row of rows) {
    const own = row.reduce<number>((sum, value) => sum + sizeOf(value), 0);
    if (size + own > MOST_AT_ONCE) {
      all.push([]);
      size = 0;
    }
    size += own;
    all.at(-1)?.push(row);
  }
  return all;
}

function sizeOf(value: SqlValue): number {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : 8;
}
