/** Private documents of plugins. They can be written in the same transaction as a decision. */

export interface DocumentRow {
  /** The plugin that owns the document. The core sets this member, so plugins can access only their own documents. */
  plugin: string;
  /** Key of the document, unique within the plugin. */
  key: string;
  /** JSON text, which the store does not parse. */
  value: string;
  /**
   * Version of the document. Increases with every write to any document, and is never reused, even after a deletion.
   */
  version: number;
  /** Seal of `plugin`, `key` and `value` (`RowSeals`). The store does not interpret it. */
  seal: string;
}

export interface DocumentFilter {
  plugin: string;
  /** Restricts the list to keys with this prefix; empty for all keys. */
  prefix: string;
  /** Restricts the list to keys after this key: the cursor. */
  after?: string;
  limit: number;
}

export interface DocumentReads {
  document(plugin: string, key: string): Promise<DocumentRow | null>;
  /** Lists documents sorted by key in ascending order of Unicode code points. */
  documents(filter: DocumentFilter): Promise<DocumentRow[]>;
}

export interface DocumentWrites {
  /**
   * Compare-and-set. Writes the document if its stored version is `ifVersion` (null: the document does not exist) and
   * resolves to the new version. Otherwise changes nothing and resolves to null.
   */
  putDocument(document: Omit<DocumentRow, "version">, ifVersion: number | null): Promise<number | null>;
  /** Compare-and-set. Deletes the document if its stored version is `ifVersion`; otherwise resolves to false. */
  deleteDocument(plugin: string, key: string, ifVersion: number): Promise<boolean>;
}
