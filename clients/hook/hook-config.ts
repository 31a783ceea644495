/** Reads the hook's configuration: the service, the key, and the agent. */
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { userConfigFolder } from "../settings/settings-files.ts";
import { isHttpUrl, resolveLocalName } from "../typescript/url.ts";
import { isObject, type JsonObject } from "./payload.ts";

export interface HookConfig {
  url: string;
  apiKey: string;
  /** The agent id; null to use the agent that the service reports for the key. */
  agent: string | null;
  /** The authority under which the agent acts for another agent; null if it acts in its own name. */
  authority: string | null;
  /** Seconds that a call waits for approval; null for as long as the host allows. */
  wait: number | null;
  /**
   * Whether the actions of each host session are assigned to a session of the service. Requires a key with the scope
   * `sessions:issue`.
   */
  sessions: boolean;
  /** Keys of the host's sub-agents, by type; `*` is for all other types. Calls of a sub-agent without a key use `apiKey`. */
  subAgents: ReadonlyMap<string, SubAgentKey>;
  /**
   * Folder of the service that `assent hook setup` created for this URL. The hook starts the service if it is not
   * running.
   */
  service: string | null;
}

/** The key, agent and authority with which calls of a sub-agent are submitted. */
export type SubAgentKey = Pick<HookConfig, "apiKey" | "agent" | "authority">;

/** Returns the configuration for calls of a sub-agent, or of the agent itself if `type` is null. */
export function configForSubAgent(config: HookConfig, type: string | null): HookConfig {
  if (type === null) return config;
  return { ...config, ...(config.subAgents.get(type) ?? config.subAgents.get("*")) };
}

export class HookConfigError extends Error {}

/** Thrown if no file and no variable contains an API key. */
export class MissingApiKeyError extends HookConfigError {}

/** Configuration file of the administrator. Its values override those of the user and of projects. */
export const MANAGED_CONFIG_FILE = "/etc/assent/hook.json";

export function userConfigFile(env: Readonly<Record<string, string | undefined>>): string | null {
  const folder = userConfigFolder(env);
  return folder === null ? null : join(folder, "hook.json");
}

/**
 * Returns the configuration file in the account's home folder. It takes precedence over the file that HOME and
 * XDG_CONFIG_HOME select, because a repository may be able to set variables.
 */
function accountConfigFile(): string | null {
  try {
    return join(userInfo().homedir, ".config", "assent", "hook.json");
  } catch {
    // Some containers have no entry for the account.
    return null;
  }
}

export function configFiles(env: Readonly<Record<string, string | undefined>>): string[] {
  return [...new Set([MANAGED_CONFIG_FILE, accountConfigFile(), userConfigFile(env)].filter((path) => path !== null))];
}

/**
 * Reads the managed file, then the user's files, then the environment. The first value of a setting applies. Files take
 * precedence over variables: in some hosts a repository can set variables, and it must not redirect the hook to another
 * service. Throws HookConfigError.
 */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  files: readonly string[] = configFiles(env),
): HookConfig {
  const layers = files.map(readConfigFile);
  layers.push({
    url: env["ASSENT_URL"],
    api_key: env["ASSENT_API_KEY"],
    agent: env["ASSENT_AGENT"],
    authority: env["ASSENT_AUTHORITY"],
  });
  const layerOf = (name: string): number =>
    layers.findIndex((layer) => layer[name] !== undefined && layer[name] !== "");
  const value = (name: string): unknown => layers[layerOf(name)]?.[name];
  // Without this check, a variable could send the key in a file to another server, and that server would decide.
  for (const name of ["api_key", "sub_agents"])
    if (layerOf(name) >= 0 && layerOf("url") > layerOf(name))
      throw new HookConfigError(
        `${files[layerOf(name)]} has ${name} but no url. Set url in the same file; a url from another source is not used with this key`,
      );
  const url = value("url") ?? "http://127.0.0.1:8000";
  if (typeof url !== "string" || !isHttpUrl(url)) throw new HookConfigError("url must be an http or https URL");
  const apiKey = value("api_key");
  if (typeof apiKey !== "string") throw new MissingApiKeyError("the hook's configuration has no api_key");
  if (!/^[\x21-\x7e]+$/.test(apiKey.trim()))
    throw new HookConfigError("api_key has characters that no key has, such as a space or an invisible character");
  const agent = optionalString(value("agent"), "agent");
  const authority = optionalString(value("authority"), "authority");
  const subAgents = readSubAgents(value("sub_agents") ?? {});
  const wait = value("wait") ?? null;
  if (wait !== null && (typeof wait !== "number" || !(wait >= 0)))
    throw new HookConfigError("wait must be a number of seconds, 0 or more");
  const sessions = value("sessions") ?? false;
  if (typeof sessions !== "boolean") throw new HookConfigError("sessions must be true or false");
  const service = serviceFolder(layers[layerOf("url")]);
  return { url: resolveLocalName(url), apiKey, agent, authority, wait, sessions, subAgents, service };
}

function optionalString(value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string" || value === "") throw new HookConfigError(`${name} must be a string`);
  return value;
}

function readSubAgents(value: unknown): ReadonlyMap<string, SubAgentKey> {
  if (!isObject(value)) throw new HookConfigError("sub_agents must be an object");
  return new Map(
    Object.entries(value).map(([type, entry]) => {
      const path = `sub_agents.${type}`;
      if (!isObject(entry)) throw new HookConfigError(`${path} must be an object`);
      const unknownMember = Object.keys(entry).find((name) => !["api_key", "agent", "authority"].includes(name));
      if (unknownMember !== undefined)
        throw new HookConfigError(`${path} has the member "${unknownMember}", which is unknown; remove it`);
      const apiKey = optionalString(entry["api_key"], `${path}.api_key`);
      if (apiKey === null) throw new HookConfigError(`${path} has no api_key`);
      const agent = optionalString(entry["agent"], `${path}.agent`);
      return [type, { apiKey, agent, authority: optionalString(entry["authority"], `${path}.authority`) }];
    }),
  );
}

/**
 * Returns the folder of the service, which must be in the same file as `url`: another layer could otherwise make the
 * hook start another program.
 */
function serviceFolder(layer: JsonObject | undefined): string | null {
  const service = layer?.["service"] ?? null;
  if (service !== null && (typeof service !== "string" || !isAbsolute(service)))
    throw new HookConfigError("service must be the absolute path of a folder");
  return service;
}

const KNOWN_MEMBERS = new Set(["url", "api_key", "agent", "authority", "wait", "sessions", "sub_agents", "service"]);

function readConfigFile(path: string): JsonObject {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return {};
    throw new HookConfigError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  // Editors and shells of Windows write a byte order mark, and some write UTF-16, which has zero bytes.
  const mark = bytes.subarray(0, 2).toString("latin1");
  if (mark === "\u00ff\u00fe" || mark === "\u00fe\u00ff" || bytes.subarray(0, 2).includes(0))
    throw new HookConfigError(`${path} is encoded in UTF-16; save it as UTF-8`);
  const text = bytes.toString("utf8").replace(/^\uFEFF/, "");
  if (text.trim() === "") throw new HookConfigError(`${path} is empty`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // Report only the position, because the parser's message can contain a part of the key.
    const before = text
      .slice(0, Number(/position (\d+)/.exec((error as Error).message)?.[1] ?? text.length))
      .split("\n");
    throw new HookConfigError(
      `${path} is not valid JSON: see line ${before.length}, column ${(before.at(-1) as string).length + 1}`,
    );
  }
  if (!isObject(value)) throw new HookConfigError(`${path} must be a JSON object`);
  const unknownMember = Object.keys(value).find((name) => !KNOWN_MEMBERS.has(name));
  if (unknownMember !== undefined)
    throw new HookConfigError(`${path} has the member "${unknownMember}", which is unknown; remove it`);
  return value;
}
