/** Documents of one plugin. The store separates them by the plugin's name. */
import type { Documents } from "../../contract/core-host.ts";
import type { Document, DocumentReader, DocumentWriter } from "../../contract/plugin-documents.ts";
import type { DocumentReads, DocumentRow, DocumentWrites } from "../../contract/storage.ts";
import type { JobTransaction } from "../../ledger/commit/job-transaction.ts";
import { canonicalText } from "../../domain/canonical.ts";
import { utf8 } from "../../domain/hash.ts";
import type { JsonValue } from "../../domain/json.ts";

const MAX_KEY = 256;
const MAX_VALUE = 256 * 1024;
const PAGE = 100;

export function createDocuments(plugin: string, storage: () => DocumentReads): Documents {
  return {
    get: (key) => readerOf(plugin, storage()).get(key),
    list: (filter) => readerOf(plugin, storage()).list(filter),
    // The type of transactions omits these methods, because their parameter is the plugin's name, and a job could pass
    // the name of another plugin.
    within: (tx) => writerOf(plugin, tx as JobTransaction),
  };
}

function readerOf(plugin: string, storage: DocumentReads): DocumentReader {
  return {
    async get(key) {
      const row = await storage.document(plugin, key);
      return row === null ? null : opened(row);
    },
    async list({ prefix = "", after, limit = PAGE } = {}) {
      const rows = await storage.documents({ plugin, prefix, limit, ...(after === undefined ? {} : { after }) });
      return rows.map(opened);
    },
  };
}

function writerOf(plugin: string, tx: DocumentReads & DocumentWrites): DocumentWriter {
  return {
    ...readerOf(plugin, tx),
    async put(key, value, ifVersion) {
      if (key === "" || key.length > MAX_KEY)
        throw new RangeError(`a document's key takes 1 to ${MAX_KEY} characters, and this has ${key.length}`);
      const text = canonicalText(value);
      const size = utf8(text).length;
      if (size > MAX_VALUE)
        throw new RangeError(`a document takes at most ${MAX_VALUE} bytes as JSON, and "${key}" has ${size}`);
      return tx.putDocument(plugin, key, text, ifVersion);
    },
    delete: (key, ifVersion) => tx.deleteDocument(plugin, key, ifVersion),
  };
}

function opened({ key, value, version }: DocumentRow): Document {
  return { key, value: JSON.parse(value) as JsonValue, version };
}
