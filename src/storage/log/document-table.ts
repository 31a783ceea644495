/** Plugin documents in the logged storage. */
import type { DocumentFilter, DocumentRow } from "../../contract/storage.ts";
import { SINGLE_ROW_KEY, type Tables } from "./row-types.ts";
import { copyRow, compositeKey } from "./tables.ts";

type DocumentTables = Pick<Tables, "documents" | "documentCounter">;

/** Compares by code point, which is the order of UTF-8 bytes. */
const byKey = (a: { key: string }, b: { key: string }): number =>
  Buffer.compare(Buffer.from(a.key), Buffer.from(b.key));

export function createDocumentReads(t: DocumentTables) {
  return {
    document: (plugin: string, key: string) => t.documents.get(compositeKey(plugin, key)),
    documents: ({ plugin, prefix, after, limit }: DocumentFilter) =>
      [...t.documents.values()]
        .filter((row) => row.plugin === plugin && row.key.startsWith(prefix))
        .filter((row) => after === undefined || byKey(row, { key: after }) > 0)
        .sort(byKey)
        .slice(0, limit),
  };
}

export function createDocumentWrites(t: DocumentTables) {
  return {
    putDocument(document: Omit<DocumentRow, "version">, ifVersion: number | null) {
      const at = compositeKey(document.plugin, document.key);
      if ((t.documents.get(at)?.version ?? null) !== ifVersion) return null;
      const version = (t.documentCounter.get(SINGLE_ROW_KEY)?.last ?? 0) + 1;
      t.documentCounter.set(SINGLE_ROW_KEY, { last: version });
      t.documents.set(at, copyRow({ ...document, version }));
      return version;
    },
    deleteDocument(plugin: string, key: string, ifVersion: number) {
      const at = compositeKey(plugin, key);
      if (t.documents.get(at)?.version !== ifVersion) return false;
      t.documents.delete(at);
      return true;
    },
  };
}
