/**
 * Tables that map keys to rows, and a transaction's view of a table. The changes of a transaction become visible when
 * it commits.
 */

export interface Table<Row> {
  get(key: string): Row | undefined;
  set(key: string, row: Row): void;
  delete(key: string): void;
  values(): Iterable<Row>;
}

/** Committed rows. Writes replace rows and never mutate them. */
export class StoredTable<Row> implements Table<Row> {
  readonly rows = new Map<string, Row>();

  get(key: string): Row | undefined {
    return this.rows.get(key);
  }

  set(key: string, row: Row): void {
    this.rows.set(key, row);
  }

  delete(key: string): void {
    this.rows.delete(key);
  }

  values(): Iterable<Row> {
    return this.rows.values();
  }
}

/** A transaction's view of a table: the committed rows with the transaction's own changes. */
export class TransactionTable<Row> implements Table<Row> {
  private readonly below: StoredTable<Row>;
  /** Changed rows, keyed like the table; null for a deleted row. */
  private readonly changed = new Map<string, Row | null>();

  constructor(below: StoredTable<Row>) {
    this.below = below;
  }

  get(key: string): Row | undefined {
    const changed = this.changed.get(key);
    return changed === undefined ? this.below.get(key) : (changed ?? undefined);
  }

  set(key: string, row: Row): void {
    this.changed.set(key, row);
  }

  delete(key: string): void {
    this.changed.set(key, null);
  }

  *values(): Iterable<Row> {
    for (const key of this.below.rows.keys()) {
      const row = this.get(key);
      if (row !== undefined) yield row;
    }
    for (const [key, row] of this.changed) if (row !== null && !this.below.rows.has(key)) yield row;
  }

  /** Returns the changes of this transaction; null for a deleted row. */
  changes(): Iterable<[key: string, row: Row | null]> {
    return this.changed;
  }

  commit(): void {
    for (const [key, row] of this.changed) {
      if (row === null) this.below.delete(key);
      else this.below.set(key, row);
    }
  }
}

export function selectRows<Row>(
  table: Table<Row>,
  test: (row: Row) => boolean,
  order: (a: Row, b: Row) => number,
): Row[] {
  return [...table.values()].filter(test).sort(order);
}

/** Returns a string key for a list of values. Different lists have different keys. */
export function compositeKey(...parts: (string | number)[]): string {
  return JSON.stringify(parts);
}

/**
 * Returns a deep copy. Throws for values that a database could not return: a string that is not well-formed, a number
 * that is not a safe integer, an undefined member.
 */
export function copyRow<T>(value: T, name = "value"): T {
  if (typeof value === "string" && /\p{Cs}/u.test(value))
    throw new TypeError(`${name} contains a lone surrogate, which has no UTF-8 form`);
  if (typeof value === "number" && !Number.isSafeInteger(value))
    throw new TypeError(`${name} must be a safe integer, not ${value}`);
  if (value === undefined) throw new TypeError(`${name} is missing`);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value) as T;
  if (Array.isArray(value)) return value.map((item, i) => copyRow(item as unknown, `${name}[${i}]`)) as T;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyRow(member as unknown, key)])) as T;
}

/** Returns the change without undefined members, which have no effect. */
export function omitUndefined<T extends object>(change: T): Partial<T> {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as Partial<T>;
}
