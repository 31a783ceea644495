/** `assent mcp install` puts the servers of an MCP client behind the proxy. `assent mcp uninstall` undoes that. */
import { createHash } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  colourText,
  CommandError,
  EXIT_CODES,
  isTemporaryInstall,
  type Output,
  parseArguments,
  printJson,
  programArguments,
  programCommand,
  readLogin,
  type StoredLogin,
  toPrintable,
  usageError,
} from "../../../src/command.ts";
import { checkKey } from "../../settings/check-key.ts";
import { lineDiff, readSettings, writeSettings } from "../../settings/settings-files.ts";
import { SettingsError } from "../../settings/jsonc.ts";
import { removeProxy, addProxy, type Backup } from "./clients.ts";
import { checkServers } from "./check-servers.ts";
import { parseClient, settingsOf, writing } from "./client-settings.ts";
import { mcpStateFolder } from "./proxy-flags.ts";

export async function install(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    client: { type: "string" },
    scope: { type: "string" },
    agent: { type: "string" },
    skip: { type: "string", multiple: true },
    "dry-run": { type: "boolean" },
    json: { type: "boolean" },
  });
  if (positionals.length > 0) throw usageError("assent mcp install takes options only");
  const client = parseClient(values.client);
  const { path, text } = settingsOf(client, values.scope);
  const command = {
    program: programOfProxy(),
    options: values.agent === undefined ? [] : ["--agent", values.agent],
  };
  const previous = readBackup(path);
  const backup = editing(path, () => addProxy(text, client, command, values.skip ?? [], previous));
  const login = values["dry-run"] === true ? null : await assertKey(values.agent ?? null);
  const isChanged = display(io, path, text, backup.after, values.json);
  if (!isChanged || login === null) return EXIT_CODES.ok;
  writing(() => {
    writeBackup(path, backup);
    writeSettings(path, text, backup.after);
  });
  for (const name of values.skip ?? [])
    io.err(`"${toPrintable(name)}" is not behind the proxy: its calls are made without a decision`);
  // Keep the proxy even if a server does not start or all its calls are denied.
  await checkServers({ path, text: backup.after, client, login, agent: values.agent ?? null }, (state, finding) =>
    io.err(`${state.padEnd(7)}  ${toPrintable(finding)}`),
  );
  io.err(`restart ${client}; "${programCommand()} mcp doctor --client ${client}" checks it, "mcp uninstall" undoes it`);
  return EXIT_CODES.ok;
}

export function uninstall(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    client: { type: "string" },
    scope: { type: "string" },
    "dry-run": { type: "boolean" },
    json: { type: "boolean" },
  });
  if (positionals.length > 0) throw usageError("assent mcp uninstall takes options only");
  const client = parseClient(values.client);
  const { path, text } = settingsOf(client, values.scope);
  const after = editing(path, () => removeProxy(text, client, readBackup(path)));
  const isChanged = display(io, path, text, after, values.json);
  if (values["dry-run"] !== true) {
    if (isChanged) writing(() => writeSettings(path, text, after));
    rmSync(backupFile(path), { force: true });
  }
  return Promise.resolve(EXIT_CODES.ok);
}

/** Returns the stored login. Throws if no working key is stored, because a client starts the proxy without the variables of this shell. */
async function assertKey(agent: string | null): Promise<StoredLogin> {
  const login = readLogin();
  if (login === null)
    throw new CommandError(
      `the proxy would have no key, and every call would fail: run "${programCommand()} login" with a key of the agent first (assent keys create NAME --preset agent --agent AGENT)`,
    );
  const { faults } = await checkKey({ ...login, agent });
  if (faults.length > 0) throw new CommandError(`the stored key does not work for the proxy: ${faults.join("; ")}`);
  return login;
}

function programOfProxy(): string[] {
  const words = programArguments();
  if (words.some(isTemporaryInstall))
    throw new CommandError(
      'this program is in a cache that can be emptied: install it first ("npm install --global assent"), and run that',
    );
  return words;
}

function display(io: Output, path: string, before: string, after: string, json = false): boolean {
  const lines = lineDiff(before, after);
  if (json) {
    printJson(io, { path, changed: lines.length > 0, lines });
    return lines.length > 0;
  }
  io.out(lines.length === 0 ? `${path}: nothing changes` : `${path}:`);
  for (const line of lines)
    io.out(colourText(io, line.startsWith("+") ? "green" : "red", toPrintable(line.replaceAll("\t", "    "))));
  return lines.length > 0;
}

function editing<T>(path: string, edit: () => T): T {
  try {
    return edit();
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new CommandError(`${path}: ${toPrintable(error.message)}; nothing was changed`);
  }
}

/** Returns the path of the backup. The backup is outside the project, because it can contain secrets of servers. */
function backupFile(path: string): string {
  const state = mcpStateFolder();
  if (state === null) throw new CommandError("there is no folder for the backup: the home folder is unknown; set HOME");
  return join(state, "mcp-install", `${createHash("sha256").update(path).digest("hex").slice(0, 32)}.json`);
}

function readBackup(path: string): Backup | null {
  const text = writing(() => readSettings(backupFile(path)));
  if (text === null) return null;
  try {
    return JSON.parse(text) as Backup;
  } catch {
    throw new CommandError(`the backup ${backupFile(path)} is damaged; correct or remove it`);
  }
}

function writeBackup(path: string, backup: Backup): void {
  const file = backupFile(path);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeSettings(file, readSettings(file), `${JSON.stringify({ path, ...backup }, null, 2)}\n`, 0o600);
}
