import { EXIT_CODES, parseArguments, printJson, usageError, type Command } from "./command.ts";
import { loadServeConfig } from "./load-config.ts";
import { withStore } from "./with-store.ts";

export const migrate: Command = {
  help: `usage: assent migrate [--config FILE] [--check] [--json]

The service also migrates its store when it starts; use this command to migrate earlier, for example before a rolling
update. If several processes start at once, one of them migrates and the others wait.

  --config FILE   configuration file that names the store
  --json          print the schema of the store and of this version as JSON
  --check         change nothing; exit with 1 if migrations are pending or a newer version migrated the store

examples:
  assent migrate --check
  DATABASE_URL=postgres://... assent migrate
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      config: { type: "string" },
      check: { type: "boolean" },
      json: { type: "boolean" },
    });
    if (positionals.length > 0) throw usageError("assent migrate takes no arguments");
    const config = loadServeConfig(process.env, values.config);
    if (values.check !== true) {
      await withStore(config, {}, async (storage) => {
        const { applied, known } = await storage.schema();
        if (values.json === true) printJson(io, { applied, known });
        else io.out(`the store has schema ${applied}`);
      });
      return EXIT_CODES.ok;
    }
    return withStore(config, { readOnly: true }, async (storage) => {
      const { applied, known: newest } = await storage.schema();
      if (values.json === true) printJson(io, { applied, known: newest });
      else if (applied === newest) io.out(`the store has schema ${applied}: no migration is pending`);
      else if (applied < newest)
        io.out(
          `the store has schema ${applied}, this version ${newest}: ${newest - applied} ${newest - applied === 1 ? "migration is pending" : "migrations are pending"}`,
        );
      else io.out(`the store has schema ${applied}, this version knows ${newest}: a newer version migrated it`);
      return applied === newest ? EXIT_CODES.ok : EXIT_CODES.failure;
    });
  },
};
