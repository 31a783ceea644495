/** `assent hook install`: writes the hook into a host's settings, once it can ask the service. */
import { execFileSync } from "node:child_process";
import { homedir } from "node:os";
import { isAbsolute } from "node:path";
import { HOSTS, isHost, type Host } from "../hook/hosts/answers.ts";
import { checkConfig } from "../hook/install/check-service.ts";
import { readTextOrNull } from "../hook/install/doctor.ts";
import { lineDiff, readSettings, writeSettings } from "../hook/install/settings-files.ts";
import { HOOK_FILE, isOnPath, isTemporaryInstall, hookCommand } from "../hook/install/hook-program.ts";
import {
  hasHook,
  SCOPES,
  settingsFile,
  SettingsError,
  addHook,
  removeHook,
  type SettingsFolders,
  type Scope,
  type HookInstallation,
} from "../hook/install/host-settings.ts";
import { disabledReason } from "../hook/install/disabled-hooks.ts";
import { colour, CommandError, EXIT, oneOf, parse, safe, usage, type Output, type Verb } from "./command.ts";

export function place(): SettingsFolders {
  const home = homedir();
  if (!isAbsolute(home)) throw new CommandError("the home folder is not known; set HOME");
  return { home, project: process.cwd() };
}

/** How a host is to start the hook. */
function commandFor(scope: Scope): string {
  if (scope === "project") {
    if (isOnPath("assent-hook", process.env)) return "assent-hook";
    throw new CommandError(
      "assent-hook is not on the path, and a host that does not find its hook runs its calls: install it for all " +
        'projects ("npm install --global assent"), or say with --command how it is started (--command assent-hook where ' +
        "it is on the path of those who work here); --scope user needs no path",
    );
  }
  if (isTemporaryInstall(HOOK_FILE))
    throw new CommandError(
      `${HOOK_FILE} goes when the cache that it is in is emptied, and a host that does not find its hook runs its ` +
        'calls: install it first ("npm install --global assent"), or say with --command how it is started',
    );
  return hookCommand();
}

export function hostOf(value: string | undefined): Host {
  if (!isHost(value)) throw usage(`--host takes one of ${HOSTS.join(", ")}`);
  return value;
}

/** Whether this Claude Code knows `onFailure`; older ones may refuse their whole settings because of it. */
function knowsOnFailure(): boolean {
  try {
    const text = execFileSync("claude", ["--version"], {
      encoding: "utf8",
      timeout: 10_000,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [major, minor, patch] = (/^(\d+)\.(\d+)\.(\d+)/.exec(text) ?? []).slice(1).map(Number) as [
      number,
      number,
      number,
    ];
    return major > 2 || (major === 2 && (minor > 1 || (minor === 1 && patch >= 295)));
  } catch {
    return false;
  }
}

/** What fails with a sentence, for whoever reads it. */
function said<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

function changeOf(
  path: string,
  out: boolean,
  wanted: HookInstallation,
): { before: string | null; after: string | null } {
  const before = said(() => readSettings(path));
  try {
    if (!out) return { before, after: addHook(before, wanted) };
    const { host, command } = wanted;
    return { before, after: hasHook(before, host, command) ? removeHook(before, host, command) : before };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new CommandError(`${path}: ${error.message}; nothing was changed`);
  }
}

/** Settings of one host and scope, and what an installation or a removal makes of them. */
export interface SettingsChange {
  path: string;
  before: string | null;
  after: string | null;
}

/** Without `command`, the hook is started as this program is. Writes nothing. */
export function planInstall(host: Host, scope: Scope, command?: string): SettingsChange {
  const path = settingsPath(host, scope);
  return {
    path,
    ...changeOf(path, false, {
      host,
      command: command ?? commandFor(scope),
      onFailure: host === "claude-code" && knowsOnFailure(),
    }),
  };
}

/** Writes nothing. */
export function planUninstall(host: Host, scope: Scope, command = "assent-hook"): SettingsChange {
  const path = settingsPath(host, scope);
  return { path, ...changeOf(path, true, { host, command, onFailure: false }) };
}

function settingsPath(host: Host, scope: Scope): string {
  const path = settingsFile(host, scope, place());
  if (path === null) throw new CommandError(`install knows no ${scope} settings of ${host}`);
  return path;
}

/** Shows the change and writes it. Returns whether there was one. */
export function applyChange(io: Output, { path, before, after }: SettingsChange, isDryRun = false): boolean {
  const lines = lineDiff(before, after);
  io.out(`${path}${lines.length === 0 ? ": nothing changes" : isDryRun ? " would change:" : ":"}`);
  for (const line of lines)
    io.out(colour(io, line.startsWith("+") ? "green" : "red", safe(line.replaceAll("\t", "    "))));
  if (isDryRun || lines.length === 0) return false;
  said(() => writeSettings(path, before, after));
  return true;
}

/** Throws where the host has the hook in its settings and a switch of its own that turns it off. */
export function assertSwitchedOn(host: Host, command?: string): void {
  const off = disabledReason(host, place(), readTextOrNull, command);
  if (off !== null) throw new CommandError(`the hook stands there now, and does nothing yet: ${off}; take that out`);
}

export const install: Verb = {
  summary: "write the hook into a host's settings",
  help: `usage: assent hook install --host HOST [--scope ${SCOPES.join("|")}] [--command COMMAND] [--dry-run]
       assent hook install --host HOST [--scope SCOPE] --uninstall

Shows what changes, and writes it. A hook that is there already is replaced, never added twice; what else stands there stays.
Refuses while the hook has no service or no key, because each call would then be denied: "assent hook setup" provides both.

  --host HOST        ${HOSTS.join(", ")}
  --scope SCOPE      project (the working folder; default), user, or managed, which the user cannot change
  --command COMMAND  how the hook is started; default: this program by its path, and assent-hook for a project. With
                     --uninstall: how it was, where it was installed with a command of its own
  --dry-run          only shows
  --uninstall        takes the hook out

examples:
  assent hook install --host claude-code --scope user
  assent hook install --host cursor --dry-run
`,
  async run(args, io) {
    const { values, positionals } = parse(args, {
      host: { type: "string" },
      scope: { type: "string" },
      command: { type: "string" },
      "dry-run": { type: "boolean" },
      uninstall: { type: "boolean" },
    });
    if (positionals.length > 0) throw usage("assent hook install takes options only");
    const host = hostOf(values.host);
    const scope = oneOf("--scope", values.scope, SCOPES);
    if (values.uninstall === true) {
      applyChange(io, planUninstall(host, scope, values.command), values["dry-run"]);
      return EXIT.ok;
    }
    const change = planInstall(host, scope, values.command);
    if (values["dry-run"] !== true) {
      const { faults } = await checkConfig(process.env);
      if (faults.length > 0)
        throw new CommandError(
          `the hook would deny each call, so it is not installed: ${faults.join("; ")}; "assent hook setup --host ${host}" sets everything up`,
        );
    }
    if (!applyChange(io, change, values["dry-run"])) return EXIT.ok;
    assertSwitchedOn(host, values.command);
    if (host === "codex") io.err(CODEX_TRUST);
    return EXIT.ok;
  },
};

export const CODEX_TRUST = "Codex runs a hook only once it is trusted: start codex and accept it with /hooks";
