/** What runs the statements of one transaction on the one connection that it has. */
import { StorageError } from "../../src/contract/storage.ts";
import { bind, type SqlExecutor, type SqlRow, type Statement } from "../storage-sql/statement.ts";
import { afterItsEnd, execute, type Client } from "./client.ts";
import { losesConnection, toStorageError } from "./errors.ts";

/** What becomes of the connection of the running transaction. */
export class Fate {
  /** Why it is gone, once it is. */
  lost: StorageError | null = null;
  /** It has ended, and the transaction with it. Lost and not closed, it may be there still, with the transaction open. */
  closed = false;
  private readonly patience: number;
  private readonly gone: Promise<never>;
  private tell: (error: StorageError) => void = () => {};

  /** @param patience longest wait for an answer, in milliseconds */
  constructor(patience: number) {
    this.patience = patience;
    this.gone = new Promise((_, reject) => (this.tell = reject));
    this.gone.catch(() => undefined);
  }

  lose(error: StorageError): void {
    if (this.lost !== null) return;
    this.lost = error;
    this.tell(error);
  }

  /** The query's answer; rejects at once when the connection is lost meanwhile, whatever postgres.js does with the query. */
  async answer<T>(query: PromiseLike<T>): Promise<T> {
    const timer = setTimeout(() => this.lose(new StorageError("unavailable", `Postgres gave no answer in ${this.patience} ms`)), this.patience);
    try {
      return await Promise.race([query, this.gone]);
    } catch (error) {
      if (losesConnection(error)) this.lose(toStorageError(error, "write to Postgres"));
      return await afterItsEnd(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * The executor of one transaction, which is of no use once the work is over or its connection is gone.
 *
 * @param locked the head's row, as the lock brought it
 */
export function transactionScope(writer: Client, fate: Fate, locked: SqlRow[], own: { head: Statement; moveHead: Statement }): { executor: SqlExecutor; sent(): Promise<void>; end(): Error | null } {
  let failure: Error | null = null;
  let over = false;
  /** The head as the lock brought it, until something may have moved it. */
  let head: SqlRow[] | null = locked;
  const pending: Promise<void>[] = [];

  async function attempt<T>(run: () => Promise<T>): Promise<T> {
    if (over) throw new StorageError("unavailable", "the transaction is over: await everything inside the work of `write`");
    failure ??= fate.lost;
    // After a failed statement Postgres refuses every other.
    if (failure !== null) throw failure;
    try {
      const result = await run();
      if (fate.lost !== null) throw fate.lost;
      return result;
    } catch (error) {
      failure ??= toStorageError(error, "write to Postgres");
      throw failure;
    }
  }

  return {
    executor: {
      all: (statement, values) => attempt(async () => (statement === own.head && head !== null ? head : (await fate.answer(execute(writer, statement, values))).rows)),
      run: (statement, values) =>
        attempt(async () => {
          if (statement === own.moveHead) head = null;
          return (await fate.answer(execute(writer, statement, values))).count;
        }),
      // Postgres takes it in order with what is sent after it; refused, it fails every later statement and the commit.
      send: (statement, values) =>
        attempt(async () => {
          bind(statement, values);
          pending.push(
            fate.answer(execute(writer, statement, values)).then(
              () => undefined,
              (error: unknown) => void (failure ??= toStorageError(error, "write to Postgres")),
            ),
          );
        }),
      // Sent together; Postgres takes them in order and the answers come together too.
      runMany: (statement, rows) => attempt(async () => void (await fate.answer(Promise.all(rows.map((row) => execute(writer, statement, row)))))),
      fail(error) {
        failure ??= error;
        throw error;
      },
    },
    async sent() {
      await Promise.all(pending);
      const lost = failure ?? fate.lost;
      if (lost !== null) throw lost;
    },
    end() {
      over = true;
      return failure ?? fate.lost;
    },
  };
}
