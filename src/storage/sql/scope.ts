/** The executor of one transaction, which is of no use once its work is over or a statement has failed. */
import { StorageError } from "../../contract/storage.ts";
import type { Insert, SqlDialect } from "./dialect.ts";
import type { SqlEngine, SqlTransaction } from "./engine.ts";
import type { MovedHead } from "./statement.ts";
import type { KnownRows } from "./lock-reads.ts";
import { bind as bindTo, type SqlExecutor, type SqlValue, type Statement } from "./statement.ts";

export interface TransactionScope {
  executor: SqlExecutor;
  /**
   * Takes no more statements; those that were given still run. Returns what has lost the transaction so far, or null.
   */
  end(): Error | null;
  /** Runs nothing more, not even what was given. Returns what had lost the transaction before, or null. */
  abandon(): Error | null;
  /** Resolves when everything that was given is answered; rejects with what lost the transaction. */
  answered(): Promise<void>;
  /** The head that was written; null where none was. */
  readonly moved: MovedHead | null;
  /** Something was taken out that nobody may find again. */
  readonly erased: boolean;
}

/** Characters and bytes that go together in one statement. A row that has more goes by itself. */
const MOST_AT_ONCE = 4_000_000;

const OVER = "the transaction is over: await everything inside the work of `write`";

/**
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
    // Nobody waits until a pipelined statement is sent: what the caller changes afterwards must not change what is stored.
    return engine.pipelined === true ? bound.map(copyOfBytes) : bound;
  };
  /** False once the transaction has appended: `known` is then outdated. */
  let isAsLocked = true;
  const pending: Promise<void>[] = [];
  /** The statement that runs, and those that wait for it; null where there is none. */
  let last: Promise<void> | null = null;
  /** Rows that were given and go in with others of their table, before whatever comes next. */
  let held = new Map<Insert, SqlValue[][]>();

  const failed = (error: unknown): Error => (failure ??= engine.toStorageError(error, "write to the store"));

  /** Where it is answered: of statements that fail together it is the first that says why, and the rest that it failed. */
  const query: SqlTransaction["query"] = (sql, values) =>
    tx.query(sql, values).catch((error: unknown) => {
      throw failed(error);
    });

  async function attempt<T>(run: () => Promise<T>): Promise<T> {
    if (over) throw new StorageError("unavailable", OVER);
    release();
    return engine.pipelined === true ? begin(run) : inTurn(run);
  }

  /** A failed statement may have rolled everything back: one that was given beside it would then stand alone. */
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

  /** Waits for the answer, except where statements are pipelined: there `answered` tells of a failure. */
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

  /** Sends what is held, one statement for each table. */
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

  /** Together where statements are taken in order, and else one after another. */
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

/** The rows in pieces that a statement can hold. */
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
