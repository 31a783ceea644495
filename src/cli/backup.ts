import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { isLogKeyFile } from "../identity/log-keyring.ts";
import { PERMIT_KEY_FILES } from "../identity/permit-keys.ts";
import { CommandError, EXIT_CODES, parseArguments, printJson, usageError, type Command } from "./command.ts";
import { loadServeConfig } from "./load-config.ts";
import { withStore } from "./with-store.ts";

/**
 * Files of the data folder that a backup includes: the secret of approval tokens, and the keys that sign permits. The
 * backup also includes the log's keys, which `isLogKeyFile` finds.
 */
const SECRET_FILES: readonly string[] = ["secret", ...PERMIT_KEY_FILES];

export const backup: Command = {
  help: `usage: assent backup FOLDER [--config FILE] [--json]

Writes a consistent copy of assent.db and the secrets of the data folder into a new folder. The service may be running.
To restore, stop the service, replace the files in the data folder with the copies, and run "assent audit".
For a store on Postgres use Postgres's own tools (docs/operations.md).

  --config FILE   configuration file that names the store
  --json          print the files and the number of entries as JSON

examples:
  assent backup /backups/assent-$(date +%F)
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { config: { type: "string" }, json: { type: "boolean" } });
    const [given, ...more] = positionals;
    if (given === undefined || more.length > 0) throw usageError("assent backup takes one folder");
    const folder = resolve(given);
    const config = loadServeConfig(process.env, values.config);
    const size = await withStore(config, { readOnly: true }, async (storage) => {
      if (storage.backup === undefined)
        throw new CommandError(
          `${storage.name} cannot be backed up by this command: use the database's own tools, as docs/operations.md describes`,
        );
      createEmptyFolder(folder);
      // Rename the file only when it is complete, so that an interrupted backup does not look like a complete backup.
      const part = join(folder, "assent.db.part");
      await storage.backup(part);
      sync(part);
      renameSync(part, join(folder, "assent.db"));
      return (await storage.head()).size;
    });
    const secretFiles = existsSync(config.data)
      ? readdirSync(config.data).filter((name) => SECRET_FILES.includes(name) || isLogKeyFile(name))
      : [];
    for (const name of secretFiles) {
      copyFileSync(join(config.data, name), join(folder, name));
      chmodSync(join(folder, name), 0o600);
      sync(join(folder, name));
    }
    const files = ["assent.db", ...secretFiles];
    if (values.json === true) printJson(io, { folder, files, entries: size });
    else io.out(`wrote ${files.join(", ")} to ${folder}: about ${size} entries`);
    if (secretFiles.length > 0)
      io.err("the folder contains the service's secrets: store it where only you can read it");
    return EXIT_CODES.ok;
  },
};

function createEmptyFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (readdirSync(folder).length > 0) throw new CommandError(`the folder ${folder} is not empty; give a new one`);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      `the folder ${folder} cannot be created: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function sync(path: string): void {
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
