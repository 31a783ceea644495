/** An Assent storage that keeps all state in memory and appends every transaction to one file. */
import { join } from "node:path";
import { definePlugin, Type } from "assent/plugin";
import { journalStorage } from "./journal.ts";

export default definePlugin({
  name: "storage-journal",
  options: Type.Object({ file: Type.Optional(Type.String({ minLength: 1 })) }, { additionalProperties: false }),
  storage: (host, options) => journalStorage(options.file ?? join(host.data, "journal.jsonl")),
});
