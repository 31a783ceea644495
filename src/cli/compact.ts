import { CommandError, EXIT_CODES, parseArguments, printJson, usageError, type Command } from "./command.ts";
import { loadServeConfig } from "./load-config.ts";
import { withStore } from "./with-store.ts";

export const compact: Command = {
  help: `usage: assent compact [--config FILE] [--json]

Rewrites assent.db while the service is stopped. SQLite can keep copies of erased data in unused parts of its file; after this
command there are none, and free space is returned to the file system. Needs free disk space of twice the size of the store. If
it is interrupted, the store is unchanged. For a store on Postgres, run VACUUM FULL in the database instead
(docs/erasure.md).

  --config FILE   configuration file that names the store
  --json          print the result as JSON

examples:
  assent compact
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { config: { type: "string" }, json: { type: "boolean" } });
    if (positionals.length > 0) throw usageError("assent compact takes no arguments");
    const config = loadServeConfig(process.env, values.config);
    // SQLite writes a temporary file with the whole store, so put it on the same disk, in the same private folder.
    // SQLite reads this variable when the first database is opened.
    process.env["SQLITE_TMPDIR"] ??= config.data;
    await withStore(config, {}, async (storage) => {
      if (storage.compact === undefined)
        throw new CommandError(
          `${storage.name} cannot be compacted by this command: use the database's own tools, as docs/erasure.md describes`,
        );
      await storage.compact();
    });
    if (values.json === true) printJson(io, { compacted: true });
    else io.out("the store was rewritten: its file contains no copies of erased data");
    return EXIT_CODES.ok;
  },
};
