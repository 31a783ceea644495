/** What a plugin keeps for itself: JSON under keys of its own, in the transaction of a decision where it wishes. */
import type { JsonValue } from "../domain/json.ts";
import type { LedgerTransaction } from "./host.ts";

export interface Document {
  readonly key: string;
  readonly value: JsonValue;
  /** Grows with every write; never given twice, also not after a deletion. */
  readonly version: number;
}

export interface DocumentReader {
  get(key: string): Promise<Document | null>;
  /** Ascending by key. @param after only keys behind this one. @param limit 100 when absent */
  list(filter?: { prefix?: string; after?: string; limit?: number }): Promise<Document[]>;
}

export interface DocumentWriter extends DocumentReader {
  /**
   * Compare-and-set: the new version, or null, and nothing changed, unless the stored document has the version
   * `ifVersion`; null stands for a document that is not there. Throws RangeError for a key that is empty or longer
   * than 256 characters, and for a value of more than 256 KiB as JSON.
   */
  put(key: string, value: JsonValue, ifVersion: number | null): Promise<number | null>;
  /** Compare-and-set: false, and nothing changed, unless the stored document has this version. */
  delete(key: string, ifVersion: number): Promise<boolean>;
}

export interface Documents extends DocumentReader {
  /** The documents inside a job of the ledger: written with it, or not at all. */
  within(tx: LedgerTransaction): DocumentWriter;
}
