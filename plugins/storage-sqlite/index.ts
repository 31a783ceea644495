import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { definePlugin } from "../../src/plugin.ts";
import { loadSqlite } from "./load-library.ts";
import { sqliteStorage } from "./sqlite-storage.ts";

export { sqliteStorage, type SqliteStorageOptions } from "./sqlite-storage.ts";

export default definePlugin({
  name: "storage-sqlite",
  options: Type.Object({
    path: Type.Optional(
      Type.String({ minLength: 1, description: "The database file. Default: `assent.db` in the data folder." }),
    ),
    busy_timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 60_000,
        description:
          "Timeout for the lock of another program that writes to the file. The process is blocked while it waits. Default 2000.",
      }),
    ),
  }),
  async storage(host, options) {
    // Load the library first, so that a missing library is reported before anything is written.
    await loadSqlite();
    return sqliteStorage({
      path: options.path ?? join(host.data, "assent.db"),
      log: host.log,
      ...(options.busy_timeout_ms === undefined ? {} : { busyTimeoutMs: options.busy_timeout_ms }),
    });
  },
});
