/** `assent policy fmt` formats policy and test files. */
import { randomUUID } from "node:crypto";
import { open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { decodeUtf8 } from "../../domain/json.ts";
import { formatYaml } from "../../domain/policy/parse/format.ts";
import { parsePolicies, parsePolicyTests, parseSharedData, type TextFault } from "../../domain/policy/parse/parse.ts";
import type { SharedData } from "../../domain/policy/parse/shared-data.ts";
import { isDataFile, isTestFile, listPolicyFiles, loadSharedData } from "../../policies/folder.ts";
import { CommandError, EXIT_CODES, parseArguments, toPrintable, printJson, type Subcommand } from "../command.ts";
import { withStatusLine } from "../status-line.ts";
import { resolvePolicyFolder, printFaults } from "./folder-argument.ts";
import { programCommand } from "../invocation.ts";

interface FormatOutcome {
  changed: boolean;
  faults: TextFault[];
}

export const fmt: Subcommand = {
  summary: "format policy and test files, and keep their comments",
  help: `usage: assent policy fmt [FOLDER] [--check] [--recursive] [--json]

Formats every policy and test file of FOLDER (./policies) and prints the names of changed files. The layout: two
spaces per level, lists indented below their key, { a: 1 } and [a], one line for anything in brackets, long text without
quotes wrapped at 140 characters. Comments, empty lines between parts, quotes and the order of keys stay.

Replaces a file only if the new text means the same. Files with faults are not changed but reported; so are files
whose meaning would change. Exits with 1 in both cases, and with --check if a file would change.

  --check      change nothing; print the files that would change
  --recursive  include subfolders
  --json       print the changed files and the faults as JSON

examples:
  assent policy fmt
  assent policy fmt deploy/policies --check`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      check: { type: "boolean" },
      recursive: { type: "boolean" },
      json: { type: "boolean" },
    });
    const folder = resolvePolicyFolder("fmt", positionals);
    let names: string[];
    try {
      names = await listPolicyFiles(folder, { recursive: values.recursive === true });
    } catch (error) {
      throw new CommandError(`${folder} cannot be read: ${(error as Error).message}`, EXIT_CODES.usage);
    }
    const shared = await loadSharedData(folder, names);
    const outcomes = await withStatusLine(io, async (say) => {
      const results: [string, FormatOutcome][] = [];
      for (const name of names) {
        say(`${results.length} of ${names.length} files`);
        results.push([name, await formatFile(folder, name, shared, values.check !== true)]);
      }
      return results;
    });
    const changed = outcomes.filter(([, outcome]) => outcome.changed).map(([name]) => name);
    const faults = outcomes.flatMap(([, outcome]) => outcome.faults);
    if (values.json === true) printJson(io, { changed: changed.map((name) => join(folder, name)), faults });
    else for (const name of changed) io.out(toPrintable(join(folder, name)));
    printFaults(faults, io);
    if (values.check === true && changed.length > 0)
      io.err(
        `assent: ${changed.length} of ${names.length} files would change; "${programCommand()} policy fmt" writes them`,
      );
    return faults.length > 0 || (values.check === true && changed.length > 0) ? EXIT_CODES.failure : EXIT_CODES.ok;
  },
};

async function formatFile(folder: string, name: string, shared: SharedData, write: boolean): Promise<FormatOutcome> {
  const unchanged = (message: string): FormatOutcome => ({
    changed: false,
    faults: [{ file: name, line: null, column: null, message }],
  });
  try {
    const path = await realpath(join(folder, name));
    const source = decodeUtf8(await readFile(path));
    if (source === null) return unchanged("the file is not UTF-8");
    const parseFile = isTestFile(name) ? parsePolicyTests : isDataFile(name) ? parseSharedData : parsePolicies;
    const { faults } = parseFile(source, name, shared);
    if (faults.length > 0) return { changed: false, faults };
    const formatted = formatYaml(source);
    if (!formatted.ok) return unchanged(formatted.message);
    if (formatted.text === source) return { changed: false, faults: [] };
    if (write) await replace(path, formatted.text);
    return { changed: true, faults: [] };
  } catch (error) {
    return unchanged(`the file cannot be read or written: ${(error as Error).message}`);
  }
}

/** Replaces the file atomically. The temporary file is hidden, so that it is not loaded as a policy. */
async function replace(path: string, text: string): Promise<void> {
  const { mode } = await stat(path);
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    const file = await open(temporary, "wx", mode & 0o777);
    try {
      await file.chmod(mode & 0o777);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
