import { EXIT, parse, usage, type Command } from "./command.ts";
import { configFrom } from "./serve.ts";
import { withStore } from "./store.ts";

export const migrate: Command = {
  summary: "bring a store's schema up to date",
  help: `usage: assent migrate [--config FILE] [--check]

Every start of the service does this too; the command does it alone, for instance before a rolling update. With
many processes at once one migrates and the others wait.

  --config FILE   configuration file that names the store
  --check         changes nothing; exits with 1 when migrations wait or a newer version migrated the store

examples:
  assent migrate --check
  DATABASE_URL=postgres://... assent migrate
`,
  async run(args, io) {
    const { values, positionals } = parse(args, { config: { type: "string" }, check: { type: "boolean" } });
    if (positionals.length > 0) throw usage("assent migrate takes no further words");
    const config = configFrom(process.env, values.config);
    if (values.check !== true) {
      await withStore(config, {}, async (storage) =>
        io.out(`the store has schema ${(await storage.schema()).applied}`),
      );
      return EXIT.ok;
    }
    return withStore(config, { readOnly: true }, async (storage) => {
      const { applied, known: newest } = await storage.schema();
      if (applied === newest) io.out(`the store has schema ${applied}: nothing waits`);
      else if (applied < newest)
        io.out(
          `the store has schema ${applied}, this version ${newest}: ${newest - applied} ${newest - applied === 1 ? "migration waits" : "migrations wait"}`,
        );
      else io.out(`the store has schema ${applied}, this version knows ${newest}: a newer version migrated it`);
      return applied === newest ? EXIT.ok : EXIT.failure;
    });
  },
};
