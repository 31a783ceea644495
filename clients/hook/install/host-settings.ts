/** Adds the hook to a host's settings, and removes it. All functions are pure: callers read and write the files. */
import { isDeepStrictEqual } from "node:util";
import { HOST_DIALECTS, type Host } from "../hosts/answers.ts";
import { isObject, type JsonObject } from "../payload.ts";
import {
  insertValue,
  syntaxExtensionsIn,
  removeValue,
  SettingsError,
  parseJsonc,
  type SyntaxExtension,
} from "../../settings/jsonc.ts";
import { pluginCommand, pluginSource } from "./opencode-plugin.ts";

export const SCOPES = ["project", "user", "managed"] as const;
export type Scope = (typeof SCOPES)[number];

export { SettingsError };

export interface SettingsFolders {
  home: string;
  project: string;
}

/**
 * Returns the managed settings of a host, from its documentation: Claude Code "Settings files", Cursor "Hooks", Gemini CLI
 * "Configuration". Null for Windows, where no one tried them.
 */
function managedFile(name: string, linux: string, platform: NodeJS.Platform): string | null {
  if (platform === "darwin") return `/Library/Application Support/${name}`;
  return platform === "win32" ? null : linux;
}

/** Returns the settings file of a scope; null if `install` does not support this scope of the host. */
export function settingsFile(
  host: Host,
  scope: Scope,
  { home, project }: SettingsFolders,
  platform: NodeJS.Platform = process.platform,
): string | null {
  const files: Readonly<Record<Host, Readonly<Record<Scope, string | null>>>> = {
    "claude-code": {
      project: `${project}/.claude/settings.json`,
      user: `${home}/.claude/settings.json`,
      managed: managedFile("ClaudeCode/managed-settings.json", "/etc/claude-code/managed-settings.json", platform),
    },
    codex: { project: `${project}/.codex/hooks.json`, user: `${home}/.codex/hooks.json`, managed: null },
    copilot: {
      project: `${project}/.github/hooks/assent.json`,
      user: `${home}/.copilot/hooks/assent.json`,
      managed: "/etc/github-copilot/policy.d/assent.json",
    },
    vscode: { project: `${project}/.github/hooks/assent-vscode.json`, user: null, managed: null },
    cursor: {
      project: `${project}/.cursor/hooks.json`,
      user: `${home}/.cursor/hooks.json`,
      managed: managedFile("Cursor/hooks.json", "/etc/cursor/hooks.json", platform),
    },
    gemini: {
      project: `${project}/.gemini/settings.json`,
      user: `${home}/.gemini/settings.json`,
      managed: managedFile("GeminiCli/settings.json", "/etc/gemini-cli/settings.json", platform),
    },
    kiro: { project: `${project}/.kiro/hooks/assent.json`, user: `${home}/.kiro/hooks/assent.json`, managed: null },
    opencode: {
      project: `${project}/.opencode/plugin/assent.js`,
      user: `${home}/.config/opencode/plugin/assent.js`,
      managed: null,
    },
  };
  return files[host][scope];
}

export interface HookInstallation {
  host: Host;
  /** The hook's command line, without options. */
  command: string;
  /** Whether this version of Claude Code supports `onFailure` (2.1.295 and later). */
  onFailure?: boolean;
  /** Whether this version of Claude Code knows the events PermissionRequest and PermissionDenied (2.1.89 and later). */
  promptEvents?: boolean;
}

/** The event with which a host announces that it is about to ask its user about a call. */
export const PROMPT_EVENTS: Partial<Record<Host, string>> = {
  "claude-code": "PermissionRequest",
  codex: "PermissionRequest",
  copilot: "permissionRequest",
};

/**
 * Syntax that each host accepts in addition to JSON. If a file has other syntax, the host ignores the file, including
 * the hook, or does not start. The syntax of VS Code and Gemini is from their sources. The other hosts accept only
 * JSON, or their syntax is unknown.
 */
const ACCEPTED_SYNTAX: Partial<Record<Host, readonly SyntaxExtension[]>> = {
  vscode: ["a byte order mark", "comments", "trailing commas"],
  gemini: ["comments"],
};

/** Returns why the host cannot read the file, as a sentence; null if it can read it. @throws SettingsError */
export function findUnreadableReason(host: Host, text: string): string | null {
  if (host === "opencode" || text.trim() === "") return null;
  const extras = syntaxExtensionsIn(text).filter((extra) => ACCEPTED_SYNTAX[host]?.includes(extra) !== true);
  return extras.length === 0
    ? null
    : `it has ${extras.join(" and ")}, and ${host} might not be able to read such a file: it would continue without the hook`;
}

/** Returns the timeout for the host's settings in seconds. It is longer than the hook's own time limit. */
const hookTimeout = (host: Host): number =>
  HOST_DIALECTS[host].deadline + (HOST_DIALECTS[host].deadline > 60 ? 60 : 20);

/**
 * Returns the settings with one set of entries for Assent's hook, and with no other change. `text` is null if the file
 * does not exist yet.
 * @throws SettingsError
 */
export function addHook(text: string | null, installation: HookInstallation): string {
  const { host, command } = installation;
  const current = text === null || text.trim() === "" ? null : text;
  if (host === "opencode") {
    removeHook(current, host);
    return pluginSource(command, hookTimeout(host));
  }
  const unread = current === null ? null : findUnreadableReason(host, current);
  if (unread !== null) throw new SettingsError(`${unread}; take that out first`);
  const entries = hookEntries(installation);
  if (current !== null && hasExactEntries(current, entries, host, command)) return current;
  let result = removeHook(current, host, command) ?? emptySettings(current ?? "");
  const version = FORMAT_VERSIONS[host];
  if (version !== undefined && (parseJsonc(result) as JsonObject)["version"] === undefined)
    result = insertValue(result, [], "version", version);
  for (const { path, entry } of entries) result = insertValue(result, path, null, entry);
  return result;
}

/** The value of `version`, for hosts that require it. */
const FORMAT_VERSIONS: Partial<Record<Host, number | string>> = { copilot: 1, vscode: 1, cursor: 1, kiro: "v1" };

/** Returns empty settings. Keeps the byte order mark of the previous text. */
const emptySettings = (text: string): string => `${text.startsWith("\uFEFF") ? "\uFEFF" : ""}{}\n`;

interface Entry {
  /** Path of the list that contains the entry. */
  path: string[];
  entry: JsonObject;
}

function hookEntries({ host, command, onFailure, promptEvents }: HookInstallation): Entry[] {
  const line = commandLine(command, host);
  const seconds = hookTimeout(host);
  const hookEntry = (event: string, entry: JsonObject): Entry => ({ path: ["hooks", event], entry });
  switch (host) {
    case "claude-code":
    case "codex":
    case "gemini": {
      // Gemini's timeouts are in milliseconds.
      const unit = host === "gemini" ? 1000 : 1;
      const [before, ...others] = {
        gemini: ["BeforeTool", "AfterTool", "SessionStart"],
        // Codex ignores events that it does not know.
        codex: ["PreToolUse", "PermissionRequest", "PostToolUse", "SessionStart"],
        "claude-code": [
          "PreToolUse",
          ...(promptEvents === true ? ["PermissionRequest", "PermissionDenied"] : []),
          "PostToolUse",
          "PostToolUseFailure",
          "SessionStart",
        ],
      }[host];
      const eventHook = (event: string, limit: number, more: JsonObject = {}): Entry =>
        hookEntry(event, {
          ...(event === "SessionStart" ? {} : { matcher: host === "gemini" ? ".*" : "*" }),
          hooks: [{ type: "command", command: line, timeout: limit * unit, ...more }],
        });
      // The other hooks report, or look up a decision, so they do not need a long timeout.
      return [
        eventHook(before as string, seconds, onFailure === true ? { onFailure: "block" } : {}),
        ...others.map((event) => eventHook(event, 20)),
      ];
    }
    case "copilot":
      return ["preToolUse", "permissionRequest", "postToolUse"].map((event) =>
        hookEntry(event, { type: "command", bash: line, timeoutSec: 30 }),
      );
    case "vscode":
      return ["PreToolUse", "PostToolUse"].map((event) =>
        hookEntry(event, { type: "command", command: line, timeout: 30 }),
      );
    case "cursor":
      return [
        hookEntry("preToolUse", { command: line, timeout: seconds, failClosed: true }),
        hookEntry("postToolUse", { command: line, timeout: 20 }),
      ];
    case "kiro":
      return ["PreToolUse", "PostToolUse"].map((trigger) => ({
        path: ["hooks"],
        entry: {
          name: `assent-${trigger}`,
          trigger,
          matcher: "*",
          action: { type: "command", command: line },
          timeout: seconds,
        },
      }));
    case "opencode":
      return [];
  }
}

const commandLine = (command: string, host: Host): string => `${command} --host ${host}`;

/** Returns true if the settings contain exactly these entries of the hook, each of them once. */
function hasExactEntries(text: string, entries: readonly Entry[], host: Host, command: string): boolean {
  const value = parseSettings(text);
  const ownCommands = hookCommands(value, host, command);
  return (
    ownCommands.length === entries.length &&
    entries.every(({ path, entry }) => {
      const list = path.reduce<unknown>((of, key) => (isObject(of) ? of[key] : undefined), value);
      return Array.isArray(list) && list.some((each) => isDeepStrictEqual(each, entry));
    })
  );
}

/**
 * Returns the settings without the hook; null if nothing else remains.
 * @param command command line of the hook, if it is a custom command line
 * @throws SettingsError
 */
export function removeHook(text: string | null, host: Host, command?: string): string | null {
  if (text === null || text.trim() === "") return null;
  if (host === "opencode") {
    if (pluginCommand(text) === null) throw new SettingsError("the file is not a plugin of Assent");
    return null;
  }
  let result = text;
  for (;;) {
    const value = parseSettings(result);
    const [firstCommand] = hookCommands(value, host, command);
    if (firstCommand === undefined) {
      const nothing = Object.keys(value).every((name) => name === "version" && FORMAT_VERSIONS[host] !== undefined);
      // Keep a file that contains comments.
      return nothing && !syntaxExtensionsIn(result).includes("comments") ? null : result;
    }
    result = removeValue(result, removalPath(value, firstCommand.path));
  }
}

/** Returns the hook's command lines in the settings, with the paths of their entries. */
function hookCommands(
  settings: JsonObject,
  host: Host,
  command?: string,
): { path: (string | number)[]; line: string }[] {
  return allCommands(settings).flatMap(({ path, line }) =>
    typeof line === "string" &&
    (HOOK_COMMAND.test(line) || (command !== undefined && line === commandLine(command, host)))
      ? [{ path, line }]
      : [],
  );
}

/** Matches `assent-hook`, `assent hook --host`, and the script's path, quoted or not. */
const HOOK_COMMAND =
  /(^|[\s/\\"'])assent-hook(["'\s]|$)|(^|[\s/\\"'])assent["']?\s+hook\s+--host|[/\\]hook[/\\](bin|launcher)[.][cm]?[jt]s\b/;

function allCommands(settings: JsonObject): { path: (string | number)[]; line: unknown }[] {
  const inEntry = (each: unknown, path: (string | number)[]): { path: (string | number)[]; line: unknown }[] => {
    if (!isObject(each)) return [];
    if (Array.isArray(each["hooks"]))
      return each["hooks"].flatMap((handler, i) => inEntry(handler, [...path, "hooks", i]));
    const action = isObject(each["action"]) ? each["action"]["command"] : undefined;
    const lines = [each["command"], each["bash"], each["powershell"], action].filter((line) => line !== undefined);
    return lines.slice(0, 1).map((line) => ({ path, line }));
  };
  const { hooks } = settings;
  const lists: [(string | number)[], unknown][] = isObject(hooks)
    ? Object.entries(hooks).map(([event, list]) => [["hooks", event], list])
    : [[["hooks"], hooks]];
  return lists.flatMap(([path, list]) =>
    Array.isArray(list) ? list.flatMap((each, i) => inEntry(each, [...path, i])) : [],
  );
}

/** Returns the path to remove: the entry, or the outermost parent that contains nothing else. */
function removalPath(settings: JsonObject, path: readonly (string | number)[]): (string | number)[] {
  const valueAt = (of: readonly (string | number)[]): unknown =>
    of.reduce<unknown>((value, key) => (value as Record<string | number, unknown>)[key], settings);
  let at = [...path];
  while (at.length > 1) {
    const parent = valueAt(at.slice(0, -1));
    const isGroup = at.at(-1) === "hooks";
    const alone = Array.isArray(parent) ? parent.length === 1 : isGroup || Object.keys(parent as object).length === 1;
    if (!alone) break;
    at = at.slice(0, -1);
  }
  return at;
}

/** Returns true if the hook is registered for the event with which the host asks its user. @throws SettingsError */
export function hasPromptHook(text: string, host: Host, command?: string): boolean {
  const event = PROMPT_EVENTS[host];
  return event === undefined || hookCommands(parseSettings(text), host, command).some(({ path }) => path[1] === event);
}

/** Returns the command lines that a host runs for the hook. */
export function installedCommands(text: string | null, host: Host, command?: string): string[] {
  if (text === null || text.trim() === "") return [];
  if (host === "opencode") {
    const firstCommand = pluginCommand(text);
    return firstCommand === null ? [] : [commandLine(firstCommand, host)];
  }
  return [...new Set(hookCommands(parseSettings(text), host, command).map(({ line }) => line))];
}

/** Returns true if the settings contain the hook. @throws SettingsError */
export const hasHook = (text: string | null, host: Host, command?: string): boolean =>
  installedCommands(text, host, command).length > 0;

function parseSettings(text: string): JsonObject {
  const value = parseJsonc(text);
  if (!isObject(value)) throw new SettingsError("the file is not a JSON object");
  return value;
}
