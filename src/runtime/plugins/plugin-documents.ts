/** Documents of one plugin. The store separates them by the plugin's name. */
import type { Documents } from "../../contract/core-host.ts";
import type { Document, DocumentReader, DocumentWriter } from "../../contract/plugin-documents.ts";
import type { RowSeals } from "../../contract/row-seals.ts";
import type { DocumentReads, DocumentRow } from "../../contract/storage.ts";
import type { JobTransaction } from "../../ledger/commit/job-transaction.ts";
import { canonicalText } from "../../domain/canonical.ts";
import { utf8 } from "../../domain/hash.ts";
import type { JsonValue } from "../../domain/json.ts";

const MAX_KEY = 256;
const MAX_VALUE = 256 * 1024;
const PAGE_SIZE = 100;

export function createDocuments(plugin: string, parts: () => { storage: DocumentReads; seals: RowSeals }): Documents {
  const reader = (): DocumentReader => {
    const { storage, seals } = parts();
    return readerOf(plugin, storage, seals);
  };
  return {
    // Not async, so that a use before the start throws at once.
    get: (key) => reader().get(key),
    list: (filter) => reader().list(filter),
    // The type of transactions hides these methods, because a job could pass the name of another plugin to them.
    within: (tx) => writerOf(plugin, tx as JobTransaction),
  };
}

function readerOf(plugin: string, storage: DocumentReads, seals: RowSeals): DocumentReader {
  const opened = ({ key, value, version }: DocumentRow): Document => ({
    key,
    value: JSON.parse(value) as JsonValue,
    version,
  });
  return {
    async get(key) {
      const row = await storage.document(plugin, key);
      if (row === null) return null;
      seals.assertMatches("documents", row);
      return opened(row);
    },
    async list({ prefix = "", after, limit = PAGE_SIZE } = {}) {
      // Skip altered documents, so that one of them does not make the others unreadable.
      const found: Document[] = [];
      for (let last = after; found.length < limit;) {
        const most = limit - found.length;
        const filter = { plugin, prefix, limit: most, ...(last === undefined ? {} : { after: last }) };
        const rows = await storage.documents(filter);
        found.push(...rows.filter((row) => seals.matches("documents", row)).map(opened));
        if (rows.length < most) break;
        last = rows.at(-1)?.key;
      }
      return found;
    },
  };
}

function writerOf(plugin: string, tx: JobTransaction): DocumentWriter {
  const { seals } = tx;
  return {
    ...readerOf(plugin, tx, seals),
    async put(key, value, ifVersion) {
      if (key === "" || key.length > MAX_KEY)
        throw new RangeError(`a document's key takes 1 to ${MAX_KEY} characters, and this has ${key.length}`);
      const text = canonicalText(value);
      const size = utf8(text).length;
      if (size > MAX_VALUE)
        throw new RangeError(`a document takes at most ${MAX_VALUE} bytes as JSON, and "${key}" has ${size}`);
      const document = { plugin, key, value: text };
      return tx.putDocument({ ...document, seal: seals.seal("documents", document) }, ifVersion);
    },
    delete: (key, ifVersion) => tx.deleteDocument(plugin, key, ifVersion),
  };
}
