/** Finds and reads the settings of an MCP client. */
import { CommandError, homeFolder, usageError } from "../../../src/command.ts";
import { clientFile, CLIENTS, INSTALL_SCOPES, readClientSettings, type Client } from "../../settings/mcp-servers.ts";

export function parseClient(value: string | undefined): Client {
  const client = CLIENTS.find((name) => name === value);
  if (client === undefined)
    throw usageError(
      `--client must be one of ${CLIENTS.join(", ")}${value === undefined ? "" : `; got "${value}"`}. docs/mcp.md describes other clients`,
    );
  return client;
}

/** Returns the client's existing settings files: the file of `scope`, or of every scope if `scope` is absent. */
export function readExistingSettings(client: Client, scope: string | undefined): { path: string; text: string }[] {
  const scopes = INSTALL_SCOPES.filter((name) => scope === undefined || scope === name);
  if (scopes.length === 0) throw usageError(`--scope must be ${INSTALL_SCOPES.join(" or ")}; got "${scope}"`);
  return writing(() => readClientSettings(client, scopes, settingsFolders()));
}

/** Returns the project's settings, or else the user's. */
export function settingsOf(client: Client, scope: string | undefined): { path: string; text: string } {
  const [settings] = readExistingSettings(client, scope);
  if (settings === undefined) {
    const paths = INSTALL_SCOPES.flatMap((name) => clientFile(client, name, settingsFolders()) ?? []);
    throw new CommandError(`${client} has no servers to put behind the proxy: there is no ${paths.join(" and no ")}`);
  }
  return settings;
}

const settingsFolders = () => ({ home: homeFolder(), project: process.cwd() });

/** Converts an error of reading or writing a file to a CommandError. */
export function writing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof CommandError ? error : new CommandError((error as Error).message);
  }
}
