/** What stands in each host's settings for the hook: pure functions from one text to the next. */
import { DIALECTS, type Host } from "../hosts/answers.ts";
import { isObject, type JsonObject } from "../json.ts";

export const SCOPES = ["project", "user", "managed"] as const;
export type Scope = (typeof SCOPES)[number];

export class SettingsFault extends Error {}

export interface Place {
  home: string;
  project: string;
}

/** Null where the host has no settings of that scope that `install` knows. */
export function settingsFile(host: Host, scope: Scope, { home, project }: Place): string | null {
  const files: Readonly<Record<Host, Readonly<Record<Scope, string | null>>>> = {
    "claude-code": {
      project: `${project}/.claude/settings.json`,
      user: `${home}/.claude/settings.json`,
      managed: "/etc/claude-code/managed-settings.json",
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
      managed: "/etc/cursor/hooks.json",
    },
    gemini: {
      project: `${project}/.gemini/settings.json`,
      user: `${home}/.gemini/settings.json`,
      managed: "/etc/gemini-cli/settings.json",
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

export interface Wanted {
  host: Host;
  /** The command line that the host is to run, without its options. */
  command: string;
  /** Whether this Claude Code knows `onFailure` (2.1.295 and later). */
  onFailure?: boolean;
}

/** Seconds that the host is told to wait: more than the hook takes. */
const limitOf = (host: Host): number => DIALECTS[host].deadline + (DIALECTS[host].deadline > 60 ? 60 : 20);

/** The settings with the hook in them, once; other hooks and members stay. `text` null: there is no file yet. Throws SettingsFault. */
export function withHook(text: string | null, wanted: Wanted): string {
  const without = withoutHook(text, wanted.host);
  if (wanted.host === "opencode") return pluginFor(wanted.command);
  const settings = read(without);
  const line = `${wanted.command} --host ${wanted.host}`;
  switch (wanted.host) {
    case "claude-code":
    case "codex":
    case "gemini": {
      const seconds = limitOf(wanted.host);
      const entry = {
        type: "command",
        command: line,
        // Gemini counts in milliseconds.
        timeout: wanted.host === "gemini" ? seconds * 1000 : seconds,
        ...(wanted.onFailure === true ? { onFailure: "block" } : {}),
      };
      const events =
        wanted.host === "gemini"
          ? ["BeforeTool", "AfterTool", "SessionStart"]
          : [
              "PreToolUse",
              "PostToolUse",
              ...(wanted.host === "claude-code" ? ["PostToolUseFailure"] : []),
              "SessionStart",
            ];
      for (const event of events) {
        // What comes after a call, and a session's begin, is only told.
        const { onFailure: _, ...plain } = entry;
        const one = /^(Pre|Before)/.test(event) ? entry : { ...plain, timeout: wanted.host === "gemini" ? 20_000 : 20 };
        add(settings, event, {
          ...(event === "SessionStart" ? {} : { matcher: wanted.host === "gemini" ? ".*" : "*" }),
          hooks: [one],
        });
      }
      break;
    }
    case "copilot":
    case "vscode":
      settings["version"] ??= 1;
      for (const event of wanted.host === "copilot" ? ["preToolUse", "postToolUse"] : ["PreToolUse", "PostToolUse"])
        add(settings, event, {
          type: "command",
          ...(wanted.host === "copilot" ? { bash: line, timeoutSec: 30 } : { command: line, timeout: 30 }),
        });
      break;
    case "cursor":
      settings["version"] ??= 1;
      add(settings, "preToolUse", { command: line, timeout: limitOf("cursor"), failClosed: true });
      add(settings, "postToolUse", { command: line, timeout: 20 });
      break;
    case "kiro":
      settings["version"] ??= "v1";
      settings["hooks"] = [
        ...(Array.isArray(settings["hooks"]) ? settings["hooks"] : []),
        ...["PreToolUse", "PostToolUse"].map((trigger) => ({
          name: `assent-${trigger}`,
          trigger,
          matcher: "*",
          action: { type: "command", command: line },
          timeout: limitOf("kiro"),
        })),
      ];
  }
  return print(settings);
}

/** The settings without the hook, as they are otherwise; null when nothing is left. Throws SettingsFault. */
export function withoutHook(text: string | null, host: Host): string | null {
  if (text === null) return null;
  if (host === "opencode") {
    if (!isOurs(text)) throw new SettingsFault("the file is no plugin of Assent");
    return null;
  }
  const settings = read(text);
  const { hooks } = settings;
  if (Array.isArray(hooks)) settings["hooks"] = hooks.filter((each) => !isOurs(each));
  else if (isObject(hooks)) {
    for (const [event, list] of Object.entries(hooks)) {
      if (!Array.isArray(list)) continue;
      const kept = list.flatMap((each) => {
        if (!isObject(each) || !Array.isArray(each["hooks"])) return isOurs(each) ? [] : [each];
        const others = each["hooks"].filter((one) => !isOurs(one));
        return others.length === 0 && each["hooks"].length > 0 ? [] : [{ ...each, hooks: others }];
      });
      if (kept.length > 0) hooks[event] = kept;
      else delete hooks[event];
    }
    if (Object.keys(hooks).length === 0) delete settings["hooks"];
  }
  const left = Object.keys(settings).filter((name) => name !== "version");
  const empty = left.every((name) => name === "hooks" && Array.isArray(settings[name]) && settings[name].length === 0);
  return empty ? null : print(settings);
}

/** Whether the settings have the hook. */
export function hasHook(text: string | null): boolean {
  return text !== null && isOurs(text);
}

function isOurs(entry: unknown): boolean {
  const text = typeof entry === "string" ? entry : JSON.stringify(entry);
  return /assent-hook|assent[^"]*\bhook --host|hook[/\\]+bin\.[jt]s/.test(text);
}

function read(text: string | null): JsonObject {
  if (text === null || text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new SettingsFault("the file is no JSON; comments have to be taken out first");
  }
  if (!isObject(value)) throw new SettingsFault("the file is no JSON object");
  return value;
}

function add(settings: JsonObject, event: string, entry: JsonObject): void {
  const hooks = (settings["hooks"] ??= {});
  if (!isObject(hooks)) throw new SettingsFault('"hooks" is no object');
  const list = (hooks[event] ??= []);
  if (!Array.isArray(list)) throw new SettingsFault(`"hooks.${event}" is no list`);
  list.push(entry);
}

const print = (settings: JsonObject): string => `${JSON.stringify(settings, null, 2)}\n`;

/** OpenCode loads plugins into its own process: what is thrown there stops the call. */
function pluginFor(command: string): string {
  return `// Written by "assent hook install": asks assent-hook about each call. Whatever fails, the call does not run.
import { spawn } from "node:child_process";

const COMMAND = ${JSON.stringify(command)};

function ask(payload) {
  return new Promise((resolve) => {
    const child = spawn(\`\${COMMAND} --host opencode\`, { shell: true, stdio: ["pipe", "pipe", "ignore"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), ${limitOf("opencode") * 1000});
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.on("error", () => resolve({ decision: "deny", reason: "assent-hook does not run" }));
    child.on("close", () => {
      clearTimeout(timer);
      try {
        resolve(JSON.parse(text));
      } catch {
        resolve({ decision: "deny", reason: "assent-hook gave no answer" });
      }
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(payload));
  });
}

export const Assent = async ({ directory }) => {
  const payload = (event, input, args) => ({
    opencode: 1,
    hook_event_name: event,
    session_id: input.sessionID,
    tool_use_id: input.callID,
    cwd: directory,
    tool_name: input.tool,
    tool_input: args,
  });
  return {
    "tool.execute.before": async (input, output) => {
      const answer = await ask(payload("PreToolUse", input, output.args));
      if (answer?.decision !== "allow") throw new Error(answer?.reason ?? "not run: assent-hook did not allow it");
    },
    "tool.execute.after": async (input, output) => {
      // Only commands tell how they ended.
      const exit = output?.metadata?.exit;
      const ended = typeof exit === "number" ? { tool_response: { success: exit === 0 } } : {};
      await ask({ ...payload("PostToolUse", input, {}), ...ended });
    },
  };
};
`;
}
