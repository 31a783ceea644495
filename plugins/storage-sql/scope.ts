/** The executor of one transaction, which is of no use once its work is over or a statement has failed. */
import { StorageError } from "../../src/contract/storage.ts";
import type { SqlEngine, SqlTransaction } from "./engine.ts";
import { bind, type SqlExecutor, type SqlRow, type Statement } from "./statement.ts";

export interface TransactionScope {
  executor: SqlExecutor;
  /** Ends it. Answers what has lost the transaction, or null. */
  end(): Error | null;
  /** Resolves when what was only sent is answered; rejects with what lost the transaction. */
  sent(): Promise<void>;
  readonly moved: boolean;
}

/** `own`: the statements that read and move the head. */
export function transactionScope(
  engine: Pick<SqlEngine, "pipelined" | "toStorageError">,
  tx: SqlTransaction,
  own: { head: Statement; moveHead: Statement },
): TransactionScope {
  let failure: Error | null = null;
  let over = false;
  let moved = false;
  /** As the lock brought it, until something may have moved it. */
  let head: SqlRow[] | null = tx.head ?? null;
  const pending: Promise<void>[] = [];

  const failed = (error: unknown): Error => (failure ??= engine.toStorageError(error, "write to the store"));

  async function attempt<T>(run: () => Promise<T>): Promise<T> {
    if (over)
      throw new StorageError("unavailable", "the transaction is over: await everything inside the work of `write`");
    // After a failed statement the database may have rolled back: another one would stand alone.
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
          else for (const row of rows) await run(statement, row);
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
    async sent() {
      await Promise.all(pending);
      if (failure !== null) throw failure;
    },
    get moved() {
      return moved;
    },
  };
}
