/** The executor of one transaction. It rejects every statement after the transaction ended or a statement failed. */
import { StorageError } from "../../src/storage/index.ts";
import type { InsertStatement, SqlDialect } from "./dialect.ts";
import type { SqlEngine, SqlTransaction } from "./engine.ts";
import type { WrittenHead } from "./statement.ts";
import type { FindPrefetchedRows } from "./lock-reads.ts";
import { bindValues as bindTo, type SqlExecutor, type SqlRow, type SqlValue, type Statement } from "./statement.ts";

/** Maximum number of characters and bytes of the rows in one statement. A larger row gets a separate statement. */
const MOST_AT_ONCE = 4_000_000;

const OVER = "the transaction has ended; await everything within the work of `write`";

/**
 * Runs the statements of one transaction.
 * @param own the statements that write the head, and the statements that erase data
 * @param known the rows that were read together with the lock
 */
export class TransactionScope implements SqlExecutor {
  private readonly engine: Pick<SqlEngine, "pipelined" | "toStorageError">;
  private readonly dialect: Pick<SqlDialect, "insertRows" | "types">;
  private readonly tx: SqlTransaction;
  private readonly own: { moveHead: Statement; eraseAction: Statement; erasePart: Record<string, Statement> };
  private readonly known: FindPrefetchedRows;
  private failure: Error | null = null;
  private over = false;
  private movedHead: WrittenHead | null = null;
  private hasErased = false;
  /** False once the transaction has appended, because `known` is then outdated. */
  private isAsLocked = true;
  private readonly pending: Promise<void>[] = [];
  /** The statement that was accepted last; null if none was accepted. */
  private last: Promise<void> | null = null;
  /** Buffered rows. All rows of a table are inserted together before the next statement. */
  private held = new Map<InsertStatement, SqlValue[][]>();

  constructor(
    engine: Pick<SqlEngine, "pipelined" | "toStorageError">,
    dialect: Pick<SqlDialect, "insertRows" | "types">,
    tx: SqlTransaction,
    ownStatements: { moveHead: Statement; eraseAction: Statement; erasePart: Record<string, Statement> },
    prefetched: FindPrefetchedRows,
  ) {
    this.engine = engine;
    this.dialect = dialect;
    this.tx = tx;
    this.own = ownStatements;
    this.known = prefetched;
  }

  all(statement: Statement, values: object): Promise<SqlRow[]> {
    return this.attempt(
      async () =>
        (this.isAsLocked ? this.known(statement, values) : null) ??
        (await this.query(statement.sql, this.bind(statement, values))).rows,
    );
  }

  run(statement: Statement, values: object): Promise<number> {
    return this.attempt(() => this.runNow(statement, values));
  }

  async send(statement: Statement, values: object, last?: SqlValue): Promise<void> {
    if (this.dialect.insertRows !== undefined && isInsert(statement)) return this.hold(statement, values, last);
    await this.attempt(async () => {
      const bound = this.bind(statement, values, last);
      const answer = this.query(statement.sql, bound).then(() => undefined);
      if (this.engine.pipelined === true) this.pending.push(answer.catch((error: unknown) => void this.failed(error)));
      else await answer;
    });
  }

  runMany(statement: Statement, rows: readonly object[]): Promise<void> {
    return this.attempt(() => {
      if (this.dialect.insertRows === undefined || !isInsert(statement))
        return this.unlessPipelined(this.everyOne(rows, (row) => this.runNow(statement, row)));
      const values = rows.map((row) => this.bind(statement, row));
      return this.unlessPipelined(this.insertAll(statement, values));
    });
  }

  moveHead(values: WrittenHead, refusal: string): Promise<void> {
    return this.attempt(() => {
      this.isAsLocked = false;
      this.movedHead = { size: values.size, epoch: values.epoch, root: values.root.slice() };
      return this.unlessPipelined(
        this.runNow(this.own.moveHead, values).then((changes) => {
          if (changes !== 1) throw this.failed(new StorageError("unavailable", refusal));
        }),
      );
    });
  }

  fail(error: Error): never {
    this.failure ??= error;
    throw error;
  }

  /**
   * Stops accepting statements, but still runs the accepted statements. Returns the error that doomed the transaction;
   * null if there is none.
   */
  end(): Error | null {
    this.release();
    this.over = true;
    return this.failure;
  }

  /**
   * Stops running statements, including accepted statements. Returns the earlier error that doomed the transaction;
   * null if there is none.
   */
  abandon(): Error | null {
    this.over = true;
    const lost = this.failure;
    this.failure ??= new StorageError("unavailable", OVER);
    return lost;
  }

  /** Resolves when every accepted statement has a response; rejects with the error that doomed the transaction. */
  async answered(): Promise<void> {
    while (this.last !== null) await this.last;
    await Promise.all(this.pending);
    if (this.failure !== null) throw this.failure;
  }

  /** The head that the transaction has written; null if it did not write the head. */
  get moved(): WrittenHead | null {
    return this.movedHead;
  }

  /** True if the transaction has erased data. */
  get erased(): boolean {
    return this.hasErased;
  }

  private bind(statement: Statement, values: object, last?: SqlValue): SqlValue[] {
    const bound = bindTo(statement, values, this.dialect.types.packed !== null, last);
    // Copy the bytes, because a pipelined statement might be sent after the caller has continued and changed them.
    return this.engine.pipelined === true ? bound.map(copyOfBytes) : bound;
  }

  private failed(error: unknown): Error {
    return (this.failure ??= this.engine.toStorageError(error, "write to the store"));
  }

  /** Runs the statement. If several pipelined statements fail, only the first error states the cause. */
  private query(sql: string, values: SqlValue[]): Promise<{ rows: SqlRow[]; changes: number }> {
    return this.tx.query(sql, values).catch((error: unknown) => {
      throw this.failed(error);
    });
  }

  /** Buffers a row, to insert it together with later rows. */
  private hold(insert: InsertStatement, values: object, last?: SqlValue): void {
    if (this.over) throw new StorageError("unavailable", OVER);
    if (this.failure !== null) throw this.failure;
    const row = this.bound(insert, values, last);
    const rows = this.held.get(insert);
    if (rows === undefined) this.held.set(insert, [row]);
    else rows.push(row);
  }

  private async attempt<T>(run: () => Promise<T>): Promise<T> {
    if (this.over) throw new StorageError("unavailable", OVER);
    this.release();
    return this.engine.pipelined === true ? this.begin(run) : this.inTurn(run);
  }

  /**
   * Runs statements one at a time. A failed statement can make the database roll back the transaction. A statement that
   * was sent at the same time would then take effect outside the transaction.
   */
  private inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.last === null ? this.begin(run) : this.last.then(() => this.begin(run));
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    this.last = settled;
    void settled.then(() => {
      if (this.last === settled) this.last = null;
    });
    return result;
  }

  private async begin<T>(run: () => Promise<T>): Promise<T> {
    if (this.failure !== null) throw this.failure;
    try {
      return await run();
    } catch (error) {
      throw this.failed(error);
    }
  }

  private async runNow(statement: Statement, values: object): Promise<number> {
    const bound = this.bind(statement, values);
    const { eraseAction, erasePart } = this.own;
    this.hasErased ||= statement === eraseAction || Object.values(erasePart).includes(statement);
    return (await this.query(statement.sql, bound)).changes;
  }

  /** Waits for the response, unless statements are pipelined. In that case, `answered` reports a failure. */
  private async unlessPipelined(answer: Promise<unknown>): Promise<void> {
    if (this.engine.pipelined !== true) await answer;
    else
      this.pending.push(
        answer.then(
          () => undefined,
          (error: unknown) => void this.failed(error),
        ),
      );
  }

  /** Binds the values of a statement. A value that cannot be stored dooms the transaction. */
  private bound(statement: Statement, values: object, last?: SqlValue): SqlValue[] {
    try {
      return this.bind(statement, values, last);
    } catch (error) {
      throw this.failed(error);
    }
  }

  /** Sends the buffered rows, one statement for each table. */
  private release(): void {
    if (this.held.size === 0) return;
    const tables = this.held;
    this.held = new Map();
    for (const [insert, rows] of tables) {
      const send = (): Promise<unknown> => this.insertAll(insert, rows);
      this.pending.push(
        (this.engine.pipelined === true ? this.begin(send) : this.inTurn(send)).then(
          () => undefined,
          () => undefined,
        ),
      );
    }
  }

  private async insertAll(insert: InsertStatement, rows: readonly SqlValue[][]): Promise<void> {
    const { insertRows } = this.dialect;
    if (insertRows === undefined || rows.length === 1) {
      await this.everyOne(rows, (row) => this.query(insert.sql, row));
      return;
    }
    await this.everyOne(splitRows(rows), (part) => {
      const { sql, values } = insertRows(insert, part);
      return this.query(sql, values);
    });
  }

  /** Runs the work for all items: concurrently if statements are pipelined, otherwise sequentially. */
  private async everyOne<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
    if (this.engine.pipelined === true) await Promise.all(all.map(work));
    else
      for (const row of all) {
        if (this.failure !== null) throw this.failure;
        await work(row);
      }
  }
}

const copyOfBytes = (value: SqlValue): SqlValue => (value instanceof Uint8Array ? value.slice() : value);

const isInsert = (statement: Statement): statement is InsertStatement => statement.into !== undefined;

/** Splits the rows into parts that are small enough for one statement. */
function splitRows(rows: readonly SqlValue[][]): SqlValue[][][] {
  const all: SqlValue[][][] = [];
  let size = Infinity;
  for (const row of rows) {
    const rowSize = row.reduce<number>((sum, value) => sum + sizeOf(value), 0);
    if (size + rowSize > MOST_AT_ONCE) {
      all.push([]);
      size = 0;
    }
    size += rowSize;
    all.at(-1)?.push(row);
  }
  return all;
}

function sizeOf(value: SqlValue): number {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : 8;
}
