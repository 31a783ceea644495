/** The executor of one transaction, which is of no use once its work is over or a statement has failed. */
import { StorageError } from "../../src/contract/storage.ts";
import type { SqlEngine, SqlTransaction } from "./engine.ts";
import { bind, type SqlExecutor, type SqlRow, type Statement } from "./statement.ts";

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
  readonly moved: boolean;
  /** Something was taken out that nobody may find again. */
  readonly erased: boolean;
}

const OVER = "the transaction is over: await everything inside the work of `write`";

/** `own`: the statements that read and move the head, and the one that erases. */
export function transactionScope(
  engine: Pick<SqlEngine, "pipelined" | "toStorageError">,
  tx: SqlTransaction,
  own: { head: Statement; moveHead: Statement; eraseAction: Statement },
): TransactionScope {
  let failure: Error | null = null;
  let over = false;
  let moved = false;
  let erased = false;
  /** As the lock brought it, until something may have moved it. */
  let head: SqlRow[] | null = tx.head ?? null;
  const pending: Promise<void>[] = [];
  /** The statement that runs, and those that wait for it; null where there is none. */
  let last: Promise<void> | null = null;

  const failed = (error: unknown): Error => (failure ??= engine.toStorageError(error, "write to the store"));

  async function attempt<T>(run: () => Promise<T>): Promise<T> {
    if (over) throw new StorageError("unavailable", OVER);
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
    if (statement === own.moveHead) {
      head = null;
      moved = true;
    }
    erased ||= statement === own.eraseAction;
    return (await tx.query(statement.sql, bound)).changes;
  }

  return {
    executor: {
      all: (statement, values) =>
        attempt(async () =>
          statement === own.head && head !== null
            ? head
            : (await tx.query(statement.sql, bind(statement, values))).rows,
        ),
      run: (statement, values) => attempt(() => run(statement, values)),
      send: (statement, values) =>
        attempt(async () => {
          const bound = bind(statement, values);
          const answer = tx.query(statement.sql, bound).then(() => undefined);
          if (engine.pipelined === true) pending.push(answer.catch((error: unknown) => void failed(error)));
          else await answer;
        }),
      runMany: (statement, rows) =>
        attempt(async () => {
          if (engine.pipelined === true) await Promise.all(rows.map((row) => run(statement, row)));
          else
            for (const row of rows) {
              if (failure !== null) throw failure;
              await run(statement, row);
            }
        }),
      fail(error) {
        failure ??= error;
        throw error;
      },
    },
    end() {
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
