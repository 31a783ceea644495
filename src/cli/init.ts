/** `assent init` creates a folder with a configuration and example policies. */
import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError, ENVIRONMENT_VARIABLES, loadConfig } from "../config/index.ts";
import { standardOptions } from "../runtime/plugins/loader.ts";
import { renderEditorSchema, type EditorSchema } from "../config/editor-schemas.ts";
import {
  CommandError,
  EXIT_CODES,
  parseArguments,
  printJson,
  usageError,
  type Command,
  type Output,
} from "./command.ts";
import { programCommand } from "./invocation.ts";
import { assertStorageUsable } from "./with-store.ts";

/** Folder of the package's example policies. */
const POLICIES = fileURLToPath(new URL("../../policies/", import.meta.url));

const CONFIG = `# yaml-language-server: $schema=./.assent/config.schema.json
# All settings: docs/configuration.md. Environment variables take precedence over this file.
server:
  host: 127.0.0.1
  port: 8000
# The store and its secrets. Keep it out of version control.
data: ./data
policies: ./policies
`;

const SCHEMA_LINE = /^# yaml-language-server:.*\n/;

export const init: Command = {
  help: `usage: assent init [FOLDER] [--json]

Writes assent.yaml, policies/ with example policies and their tests, and .assent/ with the schemas that editors check
them with, into FOLDER (the working folder). Fails if one of the files already exists: it overwrites nothing.

  --json   print the names of the files as JSON

examples:
  assent init && assent serve
  assent init approvals`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { json: { type: "boolean" } });
    if (positionals.length > 1) throw usageError("assent init takes one folder");
    const folder = positionals[0] ?? ".";
    const files = (await write(folder)).map((path) => join(folder, path));
    if (values.json === true) printJson(io, { files });
    else for (const file of files) io.out(file);
    const at = relative(process.cwd(), resolve(folder));
    const cd = at === "" ? "" : `cd ${at} && `;
    const program = programCommand(resolve(folder));
    io.err(`\nNext: ${cd}${program} policy test policies\n      ${cd}${program} serve`);
    const obstacle = await storageFault(folder);
    if (obstacle !== null) io.err(`\nBefore "serve" works here: ${obstacle}`);
    return EXIT_CODES.ok;
  },
};

/**
 * Returns why the configured storage does not work on this runtime; null if it works. For example, Node 20 has no
 * SQLite.
 */
async function storageFault(folder: string): Promise<string | null> {
  try {
    await assertStorageUsable(loadConfig({ cwd: resolve(folder), env: process.env, file: "assent.yaml" }).config);
    return null;
  } catch (error) {
    if (error instanceof CommandError || error instanceof ConfigError) return error.message;
    throw error;
  }
}

/**
 * Returns true if the working folder contains no files of Assent, and no environment variable configures anything but
 * `server`.
 */
export function isWorkingFolderUninitialized(env: Record<string, string | undefined>): boolean {
  const isConfigured = ENVIRONMENT_VARIABLES.some(({ name, path }) => path[0] !== "server" && (env[name] ?? "") !== "");
  if (isConfigured || (env["ASSENT_CONFIG"] ?? "") !== "") return false;
  return !["assent.yaml", "policies", "data"].some((name) => existsSync(name));
}

/** Writes the files of `assent init` into the working folder, for the first start of the service. */
export async function initializeWorkingFolder(io: Output): Promise<void> {
  await write(".");
  io.out(
    `There was no assent.yaml and no policies folder here. Created both; edit the example policies in ./policies.`,
  );
}

/** Writes all files, or none if one cannot be written. Returns their paths relative to the folder. */
async function write(folder: string): Promise<string[]> {
  const files = await contents();
  const existing = [...files.keys()].find((path) => existsSync(join(folder, path)));
  if (existing !== undefined)
    throw usageError(`${join(folder, existing)} already exists; init does not overwrite files`);
  const paths: string[] = [];
  try {
    for (const [path, text] of files) {
      await mkdir(join(folder, path, ".."), { recursive: true });
      const file = await open(join(folder, path), "wx");
      paths.push(path);
      try {
        await file.writeFile(text);
      } finally {
        await file.close();
      }
    }
  } catch (error) {
    for (const path of paths) await rm(join(folder, path), { force: true });
    throw new CommandError(`no file was written to ${resolve(folder)}: ${(error as Error).message}`);
  }
  return paths;
}

async function contents(): Promise<Map<string, string>> {
  const files = new Map([["assent.yaml", CONFIG]]);
  for (const name of (await readdir(POLICIES)).filter((candidate) => candidate.endsWith(".yaml")).sort()) {
    const schema: EditorSchema = name.endsWith("_test.yaml") ? "policy-test" : "policy";
    const text = (await readFile(join(POLICIES, name), "utf8")).replace(SCHEMA_LINE, "");
    files.set(`policies/${name}`, `# yaml-language-server: $schema=../.assent/${schema}.schema.json\n${text}`);
  }
  const sections = await standardOptions();
  for (const name of ["config", "policy", "policy-test"] as const)
    files.set(`.assent/${name}.schema.json`, renderEditorSchema(name, sections));
  return files;
}
