/** Switches of a host beside its hooks: with one of them thrown it has the hook in its settings, and runs its calls. */
import type { Host } from "../hosts/answers.ts";
import { isObject, type JsonObject } from "../payload.ts";
import { parseJsonc } from "./jsonc.ts";
import { hasHook, settingsFile, type SettingsFolders } from "./host-settings.ts";

/** Gives the text of a file; null where there is none, or none that can be read. */
type ReadFile = (path: string) => string | null;

/** The members on the way to a switch, and what it says when it is thrown. */
type Switch = readonly [path: readonly string[], thrown: boolean];

const SWITCHES: Partial<Record<Host, readonly Switch[]>> = {
  "claude-code": [[["disableAllHooks"], true]],
  // `hooks.enabled` and `tools.enableHooks` are what older versions read.
  gemini: [
    [["hooksConfig", "enabled"], false],
    [["hooks", "enabled"], false],
    [["tools", "enableHooks"], false],
  ],
};

/** Why the host does not call the hook that its settings have, for people; null when none of its switches says so. */
export function disabledReason(host: Host, place: SettingsFolders, read: ReadFile, command?: string): string | null {
  if (host === "codex") return codexDisabledReason(place, read);
  const managed = settingsFile(host, "managed", place);
  const isManaged = managed !== null && containsHook(read(managed), host, command);
  // The first that has a switch says how it stands.
  const files = [
    managed,
    ...(host === "claude-code" ? [`${place.project}/.claude/settings.local.json`] : []),
    settingsFile(host, "project", place),
    settingsFile(host, "user", place),
  ].filter((path) => path !== null);
  for (const [path, disablingValue] of SWITCHES[host] ?? []) {
    const file = files.find((each) => readMember(read(each), path) !== undefined);
    if (file === undefined || readMember(read(file), path) !== disablingValue) continue;
    // Claude Code lets only its managed settings switch off what stands in them.
    if (host === "claude-code" && isManaged && file !== managed) continue;
    return `${file} has "${path.join(".")}": ${disablingValue}, and so ${host} calls no hook`;
  }
  const managedAlone =
    host === "claude-code" && managed !== null && readMember(read(managed), ["allowManagedHooksOnly"]) === true;
  if (managedAlone && !isManaged)
    return `${managed} has "allowManagedHooksOnly": true and not the hook, and so ${host} does not call it`;
  return null;
}

/** Codex has its switch in TOML. In any file, for whether a project's counts is for Codex to say. */
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

/** `hooks = false`, or by its older name `codex_hooks`, under [features], or in one line with it. */
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

/** Undefined where it is not there. */
export function readMember(text: string | null, path: readonly string[]): unknown {
  let value: unknown;
  try {
    value = text === null ? undefined : parseJsonc(text);
  } catch {
    // No settings that a host would read.
    return undefined;
  }
  for (const name of path)
    value = isObject(value) && Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined;
  return value;
}
