/** Runs a store's transactions, one at a time, and its reads outside transactions. */
import { StorageError } from "../../src/storage/index.ts";
import { retryConflicts } from "./conflicts.ts";
import type { SqlDialect } from "./dialect.ts";
import { getDialectStatements, type DialectStatements } from "./dialect-statements.ts";
import type { SqlEngine, SqlPurpose, SqlQuery } from "./engine.ts";
import { createPrefetchedRows, listLockReads } from "./lock-reads.ts";
import { TransactionScope } from "./scope.ts";
import { bindValues, type SqlExecutor, type SqlReader, type Statement } from "./statement.ts";

export class StoreAccess {
  state: "closed" | "open" | "read only" = "closed";
  readonly engine: SqlEngine;
  readonly dialect: SqlDialect;
  readonly statements: DialectStatements;
  /** Runs reads outside transactions. */
  readonly outside: SqlReader;
  private last: Promise<unknown> = Promise.resolve();

  constructor(engine: SqlEngine, dialect: SqlDialect) {
    this.engine = engine;
    this.dialect = dialect;
    this.statements = getDialectStatements(dialect);
    const unchecked = this.readerOver((text, values) => engine.query(text, values));
    this.outside = { all: (statement, values) => this.read(() => unchecked.all(statement, values)) };
  }

  readerOver(query: SqlQuery): SqlReader {
    const isPacked = this.dialect.types.packed !== null;
    return {
      all: (statement: Statement, values: object) => query(statement.sql, bindValues(statement, values, isPacked)),
    };
  }

  assertOpen(): void {
    if (this.state === "closed") throw new StorageError("unavailable", `the store of ${this.engine.name} is not open`);
  }

  assertWritable(): void {
    this.assertOpen();
    if (this.state === "read only") throw new StorageError("readonly", "the store was opened to be read only");
  }

  /** Runs the job after all earlier jobs, so that opening, transactions and closing run one at a time. */
  enqueue<T>(job: () => Promise<T>): Promise<T> {
    const result = this.last.then(job);
    this.last = result.catch(() => undefined);
    return result;
  }

  /** Runs reads outside transactions. Retries them after a conflict. */
  read<T>(work: () => Promise<T>): Promise<T> {
    return retryConflicts(() => {
      this.assertOpen();
      return this.orStorageError("read from the store", work);
    });
  }

  /**
   * Runs a transaction that does not write the ledger's head. Retries it after a conflict; other transactions can run
   * before the retry.
   */
  aside<T>(work: (db: SqlExecutor) => Promise<T>): Promise<T> {
    return retryConflicts(() => this.enqueue(() => this.transact("aside", work)));
  }

  /**
   * Runs the work in one transaction, and resolves when it is durable.
   *
   * @param readFrom the sequence number from which the work probably reads the ledger. These reads are sent together
   * with the lock
   */
  async transact<T>(purpose: SqlPurpose, work: (db: SqlExecutor) => Promise<T>, readFrom?: number): Promise<T> {
    const { engine, dialect } = this;
    const { reads, writes, lockReads } = this.statements;
    this.assertWritable();
    const tx = await this.orStorageError("write to the store", () =>
      engine.begin(purpose, readFrom === undefined ? [] : listLockReads(lockReads, readFrom)),
    );
    const prefetched = createPrefetchedRows(tx, reads, readFrom ?? null);
    const scope = new TransactionScope(engine, dialect, tx, writes, prefetched);
    let result: T;
    try {
      result = await work(scope);
    } catch (thrown) {
      const failure = scope.abandon();
      await scope.answered().catch(() => undefined);
      await tx.rollback(failure ?? thrown);
      // Nothing was committed, so rethrow the error of `work`.
      throw thrown;
    }
    let failure: Error;
    try {
      const lost = scope.end();
      if (lost !== null) throw lost;
      if (engine.pipelined !== true) await scope.answered();
      // Earlier statements get their responses before the commit does.
      const committed = tx.commit(scope.moved);
      committed.catch(() => undefined);
      await scope.answered();
      await committed;
      if (scope.erased) await engine.scrub?.();
      return result;
    } catch (error) {
      failure = engine.toStorageError(error, "write to the store");
    }
    await tx.rollback(failure);
    throw failure;
  }

  /** Converts errors of the engine to `StorageError`. `doing` completes "cannot …". */
  async orStorageError<T>(doing: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.engine.toStorageError(error, doing);
    }
  }
}
