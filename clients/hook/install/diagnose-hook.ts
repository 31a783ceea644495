/** Diagnoses a hook, from its configuration to the denial that the host receives. */
import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { configFiles, loadConfig, MANAGED_CONFIG_FILE, type HookConfig } from "../hook-config.ts";
import { letsCallRun, type Host } from "../hosts/answers.ts";
import type { JsonObject } from "../payload.ts";
import { runProgram } from "../../../src/programs/run-program.ts";
import { TEST_SESSION, HookState, stateFolder } from "../hook-state.ts";
import { createCheckClient } from "../../settings/check-key.ts";
import { evaluateTypicalCalls, checkConfig } from "./check-service.ts";
import { readSettings } from "../../settings/settings-files.ts";
import { CLAUDE_SINCE, isAtLeast, readClaudeVersion } from "./claude-version.ts";
import { searchPath } from "./hook-program.ts";
import { readMember, findDisabledReason } from "./disabled-hooks.ts";
import {
  hasPromptHook,
  installedCommands,
  PROMPT_EVENTS,
  SCOPES,
  settingsFile,
  findUnreadableReason,
  type SettingsFolders,
  type Scope,
} from "./host-settings.ts";

type Variables = Readonly<Record<string, string | undefined>>;

interface Finding {
  /** `info`: a fact that is not a fault, such as how the host behaves without an answer. */
  kind: "ok" | "wrong" | "info";
  text: string;
}

/** Behaviour of each host if its hook does not answer. docs/hooks.md states for which hosts this was tested. */
const BEHAVIOR_WITHOUT_ANSWER: Readonly<Record<Host, string>> = {
  "claude-code":
    'runs the call when the hook is killed, missing or too slow; since 2.1.295, install sets "onFailure": "block", which stops the call instead',
  codex:
    "runs the call when the hook is killed, missing or too slow; hooks that are not managed run only once they are trusted",
  copilot: "runs the call when the hook is too slow; stops it when the hook fails otherwise",
  vscode:
    "runs the call when the hook fails with an exit code other than 2; its behaviour when the hook is too slow is unknown",
  cursor:
    'stops the call when the hook fails or is too slow, because install sets "failClosed"; without it, the call runs',
  gemini: "runs the call when the hook is killed, missing or too slow",
  kiro: "runs the call when the hook ends with an exit code other than 2; its behaviour when the hook is too slow is unknown",
  opencode: "stops the call, because its plugin throws; without the plugin file, the call runs",
};

/** @param command command line of the hook: searched for in the settings, and run if the settings have no hook */
export async function diagnoseHook(
  host: Host,
  command: string,
  env: Readonly<Record<string, string | undefined>>,
  folders: SettingsFolders,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const ok = (text: string): void => void findings.push({ kind: "ok", text });
  const wrong = (text: string): void => void findings.push({ kind: "wrong", text });

  const { config, agent, faults } = await checkConfig(env);
  for (const fault of faults) wrong(fault);
  for (const path of configFiles(env)) checkFileMode(path, wrong);
  if (config !== null && agent !== null) {
    ok(`${config.url} accepts the key, for the agent ${agent}`);
    await checkEverydayCalls(config, agent, host, folders, findings);
  }

  const installed = new Map(
    SCOPES.flatMap((scope) => {
      const path = settingsFile(host, scope, folders);
      const commandLines = hookCommandsIn(host, scope, folders, command);
      return path === null || commandLines.length === 0 ? [] : [[path, commandLines] as const];
    }),
  );
  const files = [...installed.keys()];
  if (files.length === 0) wrong(`no settings of ${host} have the hook; "assent hook setup --host ${host}" writes it`);
  else ok(`${files.join(", ")} ${files.length === 1 ? "has" : "have"} the hook`);
  for (const path of files) {
    const settings = readSettings(path) ?? "";
    const unread = findUnreadableReason(host, settings);
    if (unread !== null) wrong(`${path} has the hook, but ${unread}`);
    else if (!hasPromptHook(settings, host, command))
      findings.push({
        kind: "info",
        text: `${path} has no hook for ${PROMPT_EVENTS[host]}: ${host} may ask again about a call that was approved; "assent hook install --host ${host}" adds it, for versions that know the event`,
      });
  }
  await checkClaudeVersion(host, env, wrong);
  const disabled = findDisabledReason(host, folders, readTextOrNull, command);
  if (disabled !== null) wrong(disabled);
  if (files.length > 1)
    wrong(
      `${files.length} settings files have the hook, so the hook runs ${files.length} times for each call; keep it in one of them`,
    );
  const others = host === "cursor" || host === "copilot" || host === "vscode";
  if (others && SCOPES.some((scope) => hookCommandsIn("claude-code", scope, folders).length > 0))
    wrong(
      `${host} reads the settings of Claude Code too, which also have the hook: the hook may run twice for each call`,
    );

  const commandLines = [...new Set([...installed.values()].flat())];
  for (const commandLine of commandLines.length === 0 ? [`${command} --host ${host}`] : commandLines) {
    const refused = await runCanary(host, commandLine, env, folders);
    if (refused === null) ok(`a call of a tool that no policy names was denied in the host's format (${commandLine})`);
    else wrong(`a call of a tool that no policy names was not denied by the service (${commandLine}): ${refused}`);
  }

  findings.push({ kind: "info", text: `${host} ${BEHAVIOR_WITHOUT_ANSWER[host]}` });
  findings.push({ kind: "info", text: describeManagedSettings(host, folders) });
  return findings;
}

async function checkClaudeVersion(host: Host, env: Variables, wrong: (text: string) => void): Promise<void> {
  const version = host === "claude-code" ? await readClaudeVersion(env) : null;
  if (version !== null && !isAtLeast(version, CLAUDE_SINCE.boundedAllow))
    wrong(
      `Claude Code ${version.join(".")} lets an allow of a hook override some of its own restrictions (before 2.1.77 deny rules, before 2.1.222 the tools of background agents); update it`,
    );
}

/** Returns the text of a file; null if it is missing or unreadable. */
export function readTextOrNull(path: string): string | null {
  try {
    return readSettings(path);
  } catch {
    return null;
  }
}

function checkFileMode(path: string, wrong: (text: string) => void): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode !== undefined && path !== MANAGED_CONFIG_FILE && (mode & 0o077) !== 0)
    wrong(`${path} can be read by others, and contains a key; run chmod 600`);
  if (mode !== undefined && path === MANAGED_CONFIG_FILE && (mode & 0o022) !== 0)
    wrong(`${path} can be written by others`);
}

async function checkEverydayCalls(
  config: HookConfig,
  agent: string,
  host: Host,
  folders: SettingsFolders,
  findings: Finding[],
): Promise<void> {
  try {
    for (const { call, decision, reason } of await evaluateTypicalCalls(config, agent, host, folders.home)) {
      if (decision === "allow") findings.push({ kind: "ok", text: `the policies allow ${call} in a workspace` });
      else if (call === "Read" && decision === "deny")
        findings.push({ kind: "wrong", text: `the policies deny every Read (${reason}): ${PACK_HINT}` });
      else findings.push({ kind: "info", text: `the policies decide ${decision} for ${call} (${reason})` });
    }
  } catch (error) {
    findings.push({ kind: "wrong", text: `the policies cannot be evaluated: ${String(error)}` });
  }
}

const PACK_HINT = 'add the pack "coding-agents" to the policies (docs/packs.md), as "assent hook setup" does';

/** Returns the command lines of the hook in the settings of one scope. */
function hookCommandsIn(host: Host, scope: Scope, folders: SettingsFolders, command?: string): string[] {
  const path = settingsFile(host, scope, folders);
  try {
    return path === null ? [] : installedCommands(readSettings(path), host, command);
  } catch {
    return [];
  }
}

/**
 * Sends a call of a tool that no policy names through the hook, as the host does. Resolves to null if the service
 * denied the call, otherwise to the hook's output.
 */
async function runCanary(
  host: Host,
  commandLine: string,
  env: Variables,
  { project }: SettingsFolders,
): Promise<string | null> {
  const payload = hostPayload(host, "assent_canary", {}, project, `doctor-${Date.now()}`);
  const { out, err, code } = await runCommand(commandLine, JSON.stringify(payload), { ...env, PATH: searchPath(env) });
  const text = (out + err).trim();
  if (!/denied by/.test(text))
    return text === "" ? `it printed nothing and exited with code ${code}` : text.slice(0, 300);
  return null;
}

interface TestedCall {
  isAllowed: boolean;
  /** Whether the hook started an action at the service, as it does before it allows a call. */
  isStarted: boolean;
  /** The output of the hook, or a description of its failure. */
  text: string;
}

/** Runs a call through the installed hook. Reports an allowed call as not run. */
export async function testInstalledHook(
  host: Host,
  commandLine: string,
  { tool, input }: { tool: string; input: JsonObject },
  folder: string,
  env: Variables,
): Promise<TestedCall> {
  const id = `setup-${randomUUID()}`;
  const payload = hostPayload(host, tool, input, folder, id);
  // Do not wait for an approval, because the policies should decide this call alone.
  const { out, err, code } = await runCommand(
    `${commandLine} --wait 0`,
    JSON.stringify(payload),
    { ...env, PATH: searchPath(env) },
    folder,
  );
  const action = await new HookState(stateFolder(env)).takeAction(host, TEST_SESSION, id).catch(() => null);
  if (action !== null) {
    const { url, apiKey } = loadConfig(env);
    const outcome = { success: false, error: 'not run: "assent hook setup" only tests the hook' };
    await createCheckClient(url, apiKey)
      .result(action.id, outcome)
      .catch(() => {});
  }
  return {
    isAllowed: letsCallRun(host, { stdout: out, code }),
    isStarted: action !== null,
    text: (out + err).trim().slice(0, 300) || `it printed nothing and exited with code ${code}`,
  };
}

/** Returns the payload that the host would send before a call. */
function hostPayload(host: Host, tool: string, input: JsonObject, folder: string, id: string): JsonObject {
  if (host === "copilot")
    return { sessionId: TEST_SESSION, cwd: folder, toolName: tool, toolArgs: JSON.stringify(input) };
  return {
    session_id: TEST_SESSION,
    cwd: folder,
    tool_use_id: id,
    ...(host === "opencode" ? { opencode: 1 } : {}),
    ...(host === "cursor" ? { cursor_version: "0", workspace_roots: [folder] } : {}),
    ...(host === "codex" ? { turn_id: TEST_SESSION } : {}),
    hook_event_name: host === "gemini" ? "BeforeTool" : "PreToolUse",
    tool_name: tool,
    tool_input: input,
  };
}

async function runCommand(
  commandLine: string,
  input: string,
  env: Variables,
  cwd?: string,
): Promise<{ out: string; err: string; code: number | null }> {
  try {
    const { stdout, stderr, code } = await runProgram(commandLine, [], {
      shell: true,
      env,
      input,
      timeoutMs: 20_000,
      maxOutput: 1024 * 1024,
      ...(cwd === undefined ? {} : { cwd }),
    });
    return { out: stdout.toString("utf8"), err: stderr, code };
  } catch (error) {
    return { out: "", err: (error as Error).message, code: null };
  }
}

function describeManagedSettings(host: Host, folders: SettingsFolders): string {
  const path = settingsFile(host, "managed", folders);
  if (path === null)
    return `${host} has no managed settings that install knows: anyone who can change its settings can remove the hook`;
  if (hookCommandsIn(host, "managed", folders).length === 0)
    return `the hook is not in ${path}: anyone who can change the host's settings can remove it`;
  if (host !== "claude-code") return `the hook is in ${path}`;
  return readMember(readTextOrNull(path), ["allowManagedHooksOnly"]) === true
    ? `the hook is in ${path}, and only hooks of that file run: a user cannot remove it`
    : `the hook is in ${path}; with "allowManagedHooksOnly": true no other hooks run`;
}
