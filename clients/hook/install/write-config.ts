/** Writes the user's hook.json. */
import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { readSettings, writeSettings } from "../../settings/settings-files.ts";
import { resolveLocalName } from "../../typescript/url.ts";
import { HookConfigError, loadConfig, userConfigFile, type HookConfig } from "../hook-config.ts";
import { isObject } from "../payload.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** A hook.json before and after a change. */
export interface ConfigChange {
  path: string;
  before: string | null;
  after: string;
}

/**
 * Returns the change to hook.json, and creates the folder of hook.json. The new file has `members`, and the members of
 * the current file that `kept` names. Throws HookConfigError if the current file is not a JSON object. Throws the
 * system's error if the folder cannot be created.
 */
export function planConfig(
  env: Variables,
  members: Readonly<Record<string, unknown>>,
  kept: readonly string[],
): ConfigChange {
  const path = userConfigFile(env);
  if (path === null) throw new HookConfigError("the home folder is unknown; set HOME");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const before = readSettings(path);
  let value: unknown;
  try {
    value = JSON.parse(before?.replace(/^\uFEFF/, "") ?? "{}");
  } catch {
    throw new HookConfigError(`${path} is not valid JSON`);
  }
  if (!isObject(value)) throw new HookConfigError(`${path} must be a JSON object`);
  // JSON.stringify omits undefined members.
  const all = { ...members, ...Object.fromEntries(kept.map((name) => [name, value[name]])) };
  return { path, before, after: `${JSON.stringify(all, null, 2)}\n` };
}

/** Writes hook.json. Only the user can read the file. */
export function writeConfig({ path, before, after }: ConfigChange): void {
  writeSettings(path, before, after, 0o600);
  chmodSync(path, 0o600);
}

/** Returns the hook's configuration. Throws HookConfigError if another file overrides the key or the URL. */
export function loadWritten(env: Variables, { path }: ConfigChange, url: string, key: string): HookConfig {
  const config = loadConfig(env);
  if (config.apiKey !== key || config.url !== resolveLocalName(url))
    throw new HookConfigError(
      `${path} was written, but another file takes precedence: /etc/assent/hook.json or the hook.json of your account`,
    );
  return config;
}
