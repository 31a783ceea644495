/** `assent policy fmt`: one layout for all policy files. */
import { randomUUID } from "node:crypto";
import { open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { decodeUtf8 } from "../../domain/json.ts";
import { formatYaml } from "../../domain/policy/parse/format.ts";
import { parsePolicies, parsePolicyTests, type TextFault } from "../../domain/policy/parse/parse.ts";
import { isTestFile, listPolicyFiles } from "../../policies/folder.ts";
import { CommandError, EXIT, parse, safe, type Verb } from "../command.ts";
import { withStatus } from "../status.ts";
import { folderOf, tellFaults } from "./folder.ts";
import { invocation } from "../invocation.ts";

interface Outcome {
  changed: boolean;
  faults: TextFault[];
}

export const fmt: Verb = {
  summary: "gives policy and test files one layout, and keeps their comments",
  help: `usage: assent policy fmt [FOLDER] [--check] [--recursive]

Writes every policy and test file of FOLDER (./policies) in one layout and prints the names of those that changed: two
spaces a level, lists indented below their key, { a: 1 } and [a], one line for what stands in brackets, long text without
quotes folded at 140 characters. Comments, empty lines between parts, quotes and the order of keys stay.

A file is replaced as a whole, and only by one that means the same. A file with faults is left alone and named; so is one
that could not be kept the same. Exits with 1 then, and with --check when a file would change.

  --check      changes nothing, and names the files that would change
  --recursive  takes the folders inside it too

examples:
  assent policy fmt
  assent policy fmt deploy/policies --check`,
  async run(args, io) {
    const { values, positionals } = parse(args, { check: { type: "boolean" }, recursive: { type: "boolean" } });
    const folder = folderOf("fmt", positionals);
    let names: string[];
    try {
      names = await listPolicyFiles(folder, { recursive: values.recursive === true });
    } catch (error) {
      throw new CommandError(`${folder} cannot be read: ${(error as Error).message}`, EXIT.usage);
    }
    const outcomes = await withStatus(io, async (say) => {
      const all: [string, Outcome][] = [];
      for (const name of names) {
        say(`${all.length} of ${names.length} files`);
        all.push([name, await formatFile(folder, name, values.check !== true)]);
      }
      return all;
    });
    const changed = outcomes.filter(([, outcome]) => outcome.changed).map(([name]) => name);
    const faults = outcomes.flatMap(([, outcome]) => outcome.faults);
    for (const name of changed) io.out(safe(join(folder, name)));
    tellFaults(faults, io);
    if (values.check === true && changed.length > 0)
      io.err(
        `assent: ${changed.length} of ${names.length} files would change; "${invocation()} policy fmt" writes them`,
      );
    return faults.length > 0 || (values.check === true && changed.length > 0) ? EXIT.failure : EXIT.ok;
  },
};

async function formatFile(folder: string, name: string, write: boolean): Promise<Outcome> {
  const left = (message: string): Outcome => ({
    changed: false,
    faults: [{ file: name, line: null, column: null, message }],
  });
  try {
    const path = await realpath(join(folder, name));
    const source = decodeUtf8(await readFile(path));
    if (source === null) return left("the file is not UTF-8");
    const { faults } = (isTestFile(name) ? parsePolicyTests : parsePolicies)(source, name);
    if (faults.length > 0) return { changed: false, faults };
    const formatted = formatYaml(source);
    if (!formatted.ok) return left(formatted.message);
    if (formatted.text === source) return { changed: false, faults: [] };
    if (write) await replace(path, formatted.text);
    return { changed: true, faults: [] };
  } catch (error) {
    return left(`the file cannot be read or written: ${(error as Error).message}`);
  }
}

/** By a new file beside it: whoever reads sees the old text or the new one. Hidden, so that no folder of policies takes it. */
async function replace(path: string, text: string): Promise<void> {
  const { mode } = await stat(path);
  const fresh = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    const file = await open(fresh, "wx", mode & 0o777);
    try {
      await file.chmod(mode & 0o777);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
