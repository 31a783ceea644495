/** Finds the files in which MCP clients configure their servers, and reads the servers. */
import { join } from "node:path";
import { isJsonObject, type JsonObject } from "../../src/domain/json.ts";
import { parseJsonc, SettingsError } from "./jsonc.ts";
import { readSettings } from "./settings-files.ts";

export const CLIENTS = ["claude-code", "claude-desktop", "cursor", "vscode", "gemini", "copilot", "zed"] as const;
export type Client = (typeof CLIENTS)[number];
export const isClient = (name: string): name is Client => (CLIENTS as readonly string[]).includes(name);

export const INSTALL_SCOPES = ["project", "user"] as const;
export type InstallScope = (typeof INSTALL_SCOPES)[number];

interface Folders {
  home: string;
  project: string;
}

/** Member of the settings that contains the servers, keyed by name. */
export const SERVERS_MEMBER: Readonly<Record<Client, string>> = {
  "claude-code": "mcpServers",
  "claude-desktop": "mcpServers",
  cursor: "mcpServers",
  vscode: "servers",
  gemini: "mcpServers",
  copilot: "mcpServers",
  zed: "context_servers",
};

/** Returns the settings file of a client; null if the client has no settings of this scope. */
export function clientFile(client: Client, scope: InstallScope, { home, project }: Folders): string | null {
  const desktop =
    process.platform === "darwin"
      ? join(home, "Library/Application Support/Claude")
      : process.platform === "win32"
        ? join(home, "AppData/Roaming/Claude")
        : join(home, ".config/Claude");
  const files: Readonly<Record<Client, Readonly<Record<InstallScope, string | null>>>> = {
    "claude-code": { project: join(project, ".mcp.json"), user: join(home, ".claude.json") },
    "claude-desktop": { project: null, user: join(desktop, "claude_desktop_config.json") },
    cursor: { project: join(project, ".cursor/mcp.json"), user: join(home, ".cursor/mcp.json") },
    vscode: { project: join(project, ".vscode/mcp.json"), user: null },
    gemini: { project: join(project, ".gemini/settings.json"), user: join(home, ".gemini/settings.json") },
    copilot: { project: null, user: join(home, ".copilot/mcp-config.json") },
    zed: { project: join(project, ".zed/settings.json"), user: join(home, ".config/zed/settings.json") },
  };
  return files[client][scope];
}

/** Returns the servers, keyed by name. Throws SettingsError if the text is not JSON or an entry is not an object. */
export function readServers(text: string, client: Client): Record<string, JsonObject> {
  const settings = parseJsonc(text);
  if (!isJsonObject(settings)) throw new SettingsError("the file is not a JSON object");
  const member = SERVERS_MEMBER[client];
  const servers = settings[member] ?? {};
  if (!isJsonObject(servers)) throw new SettingsError(`"${member}" is not an object`);
  for (const [name, entry] of Object.entries(servers))
    if (!isJsonObject(entry)) throw new SettingsError(`"${member}.${name}" is not an object`);
  return servers as Record<string, JsonObject>;
}

/** Returns the client's existing settings files of these scopes. @throws Error whose message is a sentence */
export function readClientSettings(
  client: Client,
  scopes: readonly InstallScope[],
  folders: Folders,
): { path: string; text: string }[] {
  return scopes.flatMap((scope) => {
    const path = clientFile(client, scope, folders);
    const text = path === null ? null : readSettings(path);
    return path === null || text === null ? [] : [{ path, text }];
  });
}
