/** An Assent storage that keeps everything in memory and a journal of every transaction in one file. */
import { join } from "node:path";
import { definePlugin, Type } from "assent/plugin";
import { journalStorage } from "./storage.ts";

export default definePlugin({
  name: "storage-journal",
  options: Type.Object({ file: Type.Optional(Type.String({ minLength: 1 })) }, { additionalProperties: false }),
  setup: (host, options) => ({ storage: journalStorage(options.file ?? join(host.config.data, "journal.jsonl")) }),
});
