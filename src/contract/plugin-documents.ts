/** A plugin's private JSON documents. A plugin can write them in the same transaction as a decision. */
import type { JsonValue } from "../domain/json.ts";

export interface Document {
  readonly key: string;
  readonly value: JsonValue;
  /** Version of the document. Increases with every write, and is never reused, even after a deletion. */
  readonly version: number;
}

export interface DocumentReader {
  /** Throws STORE_ALTERED if someone changed the document in the store. */
  get(key: string): Promise<Document | null>;
  /**
   * Lists documents in ascending order of their keys. Omits documents that someone changed in the store.
   * @param filter lists only keys after `after`, and at most `limit` documents (default 100)
   */
  list(filter?: { prefix?: string; after?: string; limit?: number }): Promise<Document[]>;
}

export interface DocumentWriter extends DocumentReader {
  /**
   * Compare-and-set. Writes the document if its stored version is `ifVersion` (null: the document does not exist) and
   * resolves to the new version. Otherwise changes nothing and resolves to null. Throws RangeError if the key is empty
   * or longer than 256 characters, or the value exceeds 256 KiB as JSON.
   */
  put(key: string, value: JsonValue, ifVersion: number | null): Promise<number | null>;
  /** Compare-and-set. Deletes the document if its stored version is `ifVersion`; otherwise resolves to false. */
  delete(key: string, ifVersion: number): Promise<boolean>;
}
