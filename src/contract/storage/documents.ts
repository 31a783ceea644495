/** What plugins keep for themselves, each under its own name, in the transaction of a decision where they wish. */

export interface DocumentRow {
  /** Whose it is. Plugins see their own documents only: the core gives them this name. */
  plugin: string;
  /** Unique for the plugin. */
  key: string;
  /** JSON text. The store does not look inside. */
  value: string;
  /** Grows with every write to any document of the store, and is never given twice, also not after a deletion. */
  version: number;
}

export interface DocumentFilter {
  plugin: string;
  /** What the key begins with; empty for all. */
  prefix: string;
  /** Only keys behind this one: the cursor. */
  after?: string;
  limit: number;
}

export interface DocumentReads {
  document(plugin: string, key: string): Promise<DocumentRow | null>;
  /** Ascending by key, in the order of Unicode code points. */
  documents(filter: DocumentFilter): Promise<DocumentRow[]>;
}

export interface DocumentWrites {
  /**
   * Compare-and-set: resolves to the new version, or to null, with nothing changed, unless the stored document has the
   * version `ifVersion`; null stands for a document that is not there.
   */
  putDocument(plugin: string, key: string, value: string, ifVersion: number | null): Promise<number | null>;
  /** Compare-and-set: false, and nothing changed, unless the stored document has this version. */
  deleteDocument(plugin: string, key: string, ifVersion: number): Promise<boolean>;
}
