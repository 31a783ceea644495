/** Looks at a hook from its configuration to the deny that comes out of it. */
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { AssentError, createAssent } from "../../client/index.ts";
import { configFiles, loadConfig, MANAGED, type HookConfig } from "../config.ts";
import type { Host } from "../hosts/answers.ts";
import { CANARY_SESSION } from "../state.ts";
import { readSettings } from "./files.ts";
import { pathOf } from "./program.ts";
import { memberOf, switchedOff } from "./switches.ts";
import { installedCommands, SCOPES, settingsFile, unreadBy, type Place, type Scope } from "./settings.ts";

export interface Finding {
  /** `say` is neither good nor bad: what the host does, and nobody can change from here. */
  kind: "ok" | "wrong" | "say";
  text: string;
}

/** What each host does with a call when its hook gives no answer. docs/hooks.md says of which this was seen. */
export const WHEN_SILENT: Readonly<Record<Host, string>> = {
  "claude-code":
    'runs the call when the hook is killed, missing or too slow; from 2.1.295 on not with "onFailure": "block", which install writes for those',
  codex:
    "runs the call when the hook is killed, missing or too slow; hooks that are not managed run only once they are trusted",
  copilot: "runs the call when the hook is too slow; stops it when the hook fails otherwise",
  vscode:
    "runs the call when the hook fails with a code other than 2; what it does when the hook is too slow is not known",
  cursor: 'stops the call when the hook fails or is too slow, as "failClosed" is written; without that it runs',
  gemini: "runs the call when the hook is killed, missing or too slow",
  kiro: "runs the call when the hook ends with a code other than 2; what it does when the hook is too slow is not known",
  opencode: "stops the call, as its plugin throws; without the plugin file it runs",
};

/** @param command how the hook is started, where that is not what the settings say */
export async function examine(
  host: Host,
  command: string,
  env: Readonly<Record<string, string | undefined>>,
  place: Place,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const ok = (text: string): void => void findings.push({ kind: "ok", text });
  const wrong = (text: string): void => void findings.push({ kind: "wrong", text });

  const config = configOf(env, wrong);
  for (const path of configFiles(env)) warnOfMode(path, wrong);
  if (config !== null) await askService(config, ok, wrong);

  const installed = new Map(
    SCOPES.flatMap((scope) => {
      const path = settingsFile(host, scope, place);
      const lines = commandsOf(host, scope, place, command);
      return path === null || lines.length === 0 ? [] : [[path, lines] as const];
    }),
  );
  const places = [...installed.keys()];
  if (places.length === 0)
    wrong(`no settings of ${host} have the hook; "assent hook install --host ${host}" writes it`);
  else ok(`${places.join(", ")} ${places.length === 1 ? "has" : "have"} the hook`);
  for (const path of places) {
    const unread = unreadBy(host, readSettings(path) ?? "");
    if (unread !== null) wrong(`${path} has the hook, but ${unread}`);
  }
  const off = switchedOff(host, place, textOf, command);
  if (off !== null) wrong(off);
  if (places.length > 1) wrong(`${places.length} settings files have the hook, so each call is asked about as often`);
  const others = host === "cursor" || host === "copilot" || host === "vscode";
  if (others && SCOPES.some((scope) => commandsOf("claude-code", scope, place).length > 0))
    wrong(`${host} reads the settings of Claude Code too, which have the hook: each call may be asked about twice`);

  const lines = [...new Set([...installed.values()].flat())];
  for (const line of lines.length === 0 ? [`${command} --host ${host}`] : lines) {
    const refused = await canary(host, line, env, place);
    if (refused === null) ok(`a call of a tool that no policy names came back as a deny in the host's words (${line})`);
    else wrong(`a call of a tool that no policy names did not come back as the service's deny (${line}): ${refused}`);
  }

  findings.push({ kind: "say", text: `${host} ${WHEN_SILENT[host]}` });
  findings.push({ kind: "say", text: managedText(host, place) });
  return findings;
}

/** Null also for what cannot be read. */
export function textOf(path: string): string | null {
  try {
    return readSettings(path);
  } catch {
    return null;
  }
}

function configOf(env: Readonly<Record<string, string | undefined>>, wrong: (text: string) => void): HookConfig | null {
  try {
    return loadConfig(env);
  } catch (error) {
    wrong(error instanceof Error ? error.message : String(error));
    return null;
  }
}

function warnOfMode(path: string, wrong: (text: string) => void): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode !== undefined && path !== MANAGED && (mode & 0o077) !== 0)
    wrong(`${path} can be read by others, and holds a key; chmod 600`);
  if (mode !== undefined && path === MANAGED && (mode & 0o022) !== 0) wrong(`${path} can be written by others`);
}

async function askService(
  { url, apiKey, agent }: HookConfig,
  ok: (t: string) => void,
  wrong: (t: string) => void,
): Promise<void> {
  try {
    const me = await createAssent({ url, apiKey, timeout: 5, retries: 0 }).call<{
      key?: { agent_id?: unknown };
      scopes?: unknown;
    }>("GET", "/v1/me");
    const bound = typeof me.key?.agent_id === "string" ? me.key.agent_id : null;
    if (bound === null && agent === null) wrong("the key is bound to no agent, and the configuration names none");
    else if (bound !== null && agent !== null && bound !== agent)
      wrong(`the key is bound to ${bound}, not to ${agent}`);
    else ok(`${url} takes the key, for the agent ${bound ?? agent}`);
    if (
      Array.isArray(me.scopes) &&
      me.scopes.some((scope) => /^admin$|:(?:decide|manage|write|activate|erase)$/.test(String(scope)))
    )
      wrong(
        "the key may do more than submit: an agent that reads it could approve its own calls; make one with --preset agent",
      );
  } catch (error) {
    wrong(
      `${url} does not answer as the service: ${error instanceof AssentError ? `${error.code}: ${error.message}` : String(error)}`,
    );
  }
}

/** What the host runs for the hook by its settings of one scope. */
function commandsOf(host: Host, scope: Scope, place: Place, command?: string): string[] {
  const path = settingsFile(host, scope, place);
  try {
    return path === null ? [] : installedCommands(readSettings(path), host, command);
  } catch {
    return [];
  }
}

/** Runs the command as the host does. Null: the service's own deny came back. */
async function canary(
  host: Host,
  line: string,
  env: Readonly<Record<string, string | undefined>>,
  { project }: Place,
): Promise<string | null> {
  const common = { session_id: CANARY_SESSION, cwd: project, tool_use_id: `doctor-${Date.now()}` };
  const name = "assent_canary";
  const payload =
    host === "copilot"
      ? { sessionId: CANARY_SESSION, cwd: project, toolName: name, toolArgs: "{}" }
      : {
          ...common,
          ...(host === "opencode" ? { opencode: 1 } : {}),
          ...(host === "cursor" ? { cursor_version: "0", workspace_roots: [project] } : {}),
          ...(host === "codex" ? { turn_id: CANARY_SESSION } : {}),
          hook_event_name: host === "gemini" ? "BeforeTool" : "PreToolUse",
          tool_name: name,
          tool_input: {},
        };
  const { out, err, code } = await run(line, JSON.stringify(payload), { ...env, PATH: pathOf(env) });
  const text = (out + err).trim();
  if (!/denied by/.test(text)) return text === "" ? `it said nothing and ended with ${code}` : text.slice(0, 300);
  return null;
}

function run(
  line: string,
  input: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ out: string; err: string; code: number | null }> {
  return new Promise((done) => {
    const child = spawn(line, { shell: true, env: env as NodeJS.ProcessEnv, stdio: ["pipe", "pipe", "pipe"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    child.stdin.on("error", () => {});
    child.once("error", (error) => done({ out: "", err: error.message, code: null }));
    child.once("close", (code) => {
      clearTimeout(timer);
      done({ out, err, code });
    });
    child.stdin.end(input);
  });
}

function managedText(host: Host, place: Place): string {
  const path = settingsFile(host, "managed", place);
  if (path === null)
    return `${host} has no managed settings that install knows: whoever may change its settings may take the hook away`;
  if (commandsOf(host, "managed", place).length === 0)
    return `the hook is not in ${path}: whoever may change the host's settings may take it away`;
  if (host !== "claude-code") return `the hook is in ${path}`;
  return memberOf(textOf(path), ["allowManagedHooksOnly"]) === true
    ? `the hook is in ${path}, and only hooks of that file run: a user cannot take it away`
    : `the hook is in ${path}; with "allowManagedHooksOnly": true no other hook runs beside it`;
}
