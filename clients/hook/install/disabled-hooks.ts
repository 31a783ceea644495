/** Finds host settings that disable hooks, so that the host does not call the installed hook. */
import type { Host } from "../hosts/answers.ts";
import { isObject, type JsonObject } from "../payload.ts";
import { parseJsonc } from "../../settings/jsonc.ts";
import { hasHook, settingsFile, type SettingsFolders } from "./host-settings.ts";

/** Returns the text of a file; null if it is missing or unreadable. */
type ReadFile = (path: string) => string | null;

/** Path of a setting, and the value with which it disables hooks. */
type Switch = readonly [path: readonly string[], thrown: boolean];

const SWITCHES: Partial<Record<Host, readonly Switch[]>> = {
  "claude-code": [[["disableAllHooks"], true]],
  // Older versions use `hooks.enabled` and `tools.enableHooks`.
  gemini: [
    [["hooksConfig", "enabled"], false],
    [["hooks", "enabled"], false],
    [["tools", "enableHooks"], false],
  ],
};

/** Returns why the host does not call its installed hook, as a sentence; null if no setting disables it. */
export function findDisabledReason(
  host: Host,
  folders: SettingsFolders,
  read: ReadFile,
  command?: string,
): string | null {
  if (host === "codex") return codexDisabledReason(folders, read);
  const managed = settingsFile(host, "managed", folders);
  const isManaged = managed !== null && containsHook(read(managed), host, command);
  // The first file that contains the setting takes precedence.
  const files = [
    managed,
    ...(host === "claude-code" ? [`${folders.project}/.claude/settings.local.json`] : []),
    settingsFile(host, "project", folders),
    settingsFile(host, "user", folders),
  ].filter((path) => path !== null);
  for (const [path, disablingValue] of SWITCHES[host] ?? []) {
    const file = files.find((each) => readMember(read(each), path) !== undefined);
    if (file === undefined || readMember(read(file), path) !== disablingValue) continue;
    // In Claude Code, only managed settings can disable managed hooks.
    if (host === "claude-code" && isManaged && file !== managed) continue;
    return `${file} has "${path.join(".")}": ${disablingValue}, and so ${host} calls no hook`;
  }
  const managedAlone =
    host === "claude-code" && managed !== null && readMember(read(managed), ["allowManagedHooksOnly"]) === true;
  if (managedAlone && !isManaged)
    return `${managed} has "allowManagedHooksOnly": true and not the hook, and so ${host} does not call it`;
  return null;
}

/** Codex has this setting in TOML files. Checks all of the files, because it is unknown which files Codex uses. */
function codexDisabledReason({ home, project }: SettingsFolders, read: ReadFile): string | null {
  const files = [
    "/etc/codex/requirements.toml",
    "/etc/codex/config.toml",
    `${project}/.codex/config.toml`,
    `${home}/.codex/config.toml`,
  ];
  const file = files.find((path) => disablesHooksFeature(read(path) ?? ""));
  return file === undefined ? null : `${file} has "hooks = false" among its features, and so codex calls no hook`;
}

/**
 * Returns true if the file contains `hooks = false`, or the older name `codex_hooks`, under [features] or on the same
 * line.
 */
function disablesHooksFeature(toml: string): boolean {
  let table = "";
  return toml.split(/\r?\n/).some((line) => {
    const header = /^\s*\[\s*["']?([\w.-]*)["']?\s*\]\s*(?:#.*)?$/.exec(line);
    if (header !== null) table = header[1] as string;
    const off = /["']?\b(?:codex_)?hooks\b["']?\s*=\s*false\b/;
    return table === "features"
      ? new RegExp(`^\\s*${off.source}`).test(line)
      : table === "" && new RegExp(`^\\s*["']?features["']?\\s*(?:\\.\\s*|=.*[{,]\\s*)${off.source}`).test(line);
  });
}

function containsHook(text: string | null, host: Host, command: string | undefined): boolean {
  try {
    return hasHook(text, host, command);
  } catch {
    return false;
  }
}

/** Returns the member at a path; undefined if it is missing. */
export function readMember(text: string | null, path: readonly string[]): unknown {
  let value: unknown;
  try {
    value = text === null ? undefined : parseJsonc(text);
  } catch {
    // Ignore settings that cannot be parsed, because the host cannot parse them either.
    return undefined;
  }
  for (const name of path)
    value = isObject(value) && Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined;
  return value;
}
