/** Which service the hook asks, and as whom. */
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { isHttpUrl } from "../client/url.ts";
import { isObject, type JsonObject } from "./payload.ts";

export interface HookConfig {
  url: string;
  apiKey: string;
  /** Whom the key is bound to; null: the service is asked. */
  agent: string | null;
  /** Seconds that a call is held for an approval; null: what the host bears. */
  wait: number | null;
}

export class HookConfigError extends Error {}

/** Written by whoever manages the machine: what it names cannot be changed by the user or by a project. */
export const MANAGED_CONFIG_FILE = "/etc/assent/hook.json";

/** Folder of the user's files; null where the home folder is not known. */
export function userFolder(env: Readonly<Record<string, string | undefined>>): string | null {
  const home = env["HOME"] || env["USERPROFILE"];
  const folder = env["XDG_CONFIG_HOME"] || (home ? join(home, ".config") : null);
  return folder === null ? null : join(folder, "assent");
}

export function userConfigFile(env: Readonly<Record<string, string | undefined>>): string | null {
  const folder = userFolder(env);
  return folder === null ? null : join(folder, "hook.json");
}

/** Where the account's user keeps it. HOME and XDG_CONFIG_HOME are variables too, so their file comes behind this one. */
function accountConfigFile(): string | null {
  try {
    return join(userInfo().homedir, ".config", "assent", "hook.json");
  } catch {
    // An account without an entry, as in some containers.
    return null;
  }
}

export function configFiles(env: Readonly<Record<string, string | undefined>>): string[] {
  return [...new Set([MANAGED_CONFIG_FILE, accountConfigFile(), userConfigFile(env)].filter((path) => path !== null))];
}

/**
 * The managed file, then the user's file, then the environment: a repository can set variables for the commands of some
 * hosts, and must not be able to name another service. Throws ConfigFault.
 */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  files: readonly string[] = configFiles(env),
): HookConfig {
  const layers = files.map(readConfigFile);
  layers.push({ url: env["ASSENT_URL"], api_key: env["ASSENT_API_KEY"], agent: env["ASSENT_AGENT"] });
  const layerOf = (name: string): number =>
    layers.findIndex((layer) => layer[name] !== undefined && layer[name] !== "");
  const value = (name: string): unknown => layers[layerOf(name)]?.[name];
  // Else a variable would say where the key of a file is sent, and who answers for the service.
  if (layerOf("api_key") >= 0 && layerOf("url") > layerOf("api_key"))
    throw new HookConfigError(
      `${files[layerOf("api_key")]} has api_key and no url; another place names the service, which counts only where both stand together`,
    );
  const url = value("url") ?? "http://127.0.0.1:8000";
  if (typeof url !== "string" || !isHttpUrl(url))
    throw new HookConfigError("the service's address (url) is no http or https URL");
  const apiKey = value("api_key");
  if (typeof apiKey !== "string") throw new HookConfigError("the hook has no API key (api_key)");
  const agent = value("agent") ?? null;
  if (agent !== null && typeof agent !== "string") throw new HookConfigError("agent is no text");
  const wait = value("wait") ?? null;
  if (wait !== null && (typeof wait !== "number" || !(wait >= 0)))
    throw new HookConfigError("wait is no number of seconds");
  return { url, apiKey, agent, wait };
}

const KNOWN_MEMBERS = new Set(["url", "api_key", "agent", "wait"]);

function readConfigFile(path: string): JsonObject {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return {};
    throw new HookConfigError(`${path} cannot be read`, { cause: error });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new HookConfigError(`${path} is no JSON`);
  }
  if (!isObject(value)) throw new HookConfigError(`${path} is no JSON object`);
  const strange = Object.keys(value).find((name) => !KNOWN_MEMBERS.has(name));
  if (strange !== undefined)
    throw new HookConfigError(`${path} has the member "${strange}", which the hook does not know`);
  return value;
}
