/** `assent hook install` writes the hook into the settings of a host. */
import {
  colourText,
  CommandError,
  EXIT_CODES,
  homeFolder,
  isTemporaryInstall,
  type Output,
  parseArguments,
  parseChoice,
  type Subcommand,
  toPrintable,
  usageError,
  withJsonReport,
} from "../../../src/command.ts";
import { HOSTS, isHost, type Host } from "../hosts/answers.ts";
import { checkConfig } from "../install/check-service.ts";
import { CLAUDE_SINCE, isAtLeast, readClaudeVersion } from "../install/claude-version.ts";
import { readTextOrNull } from "../install/diagnose-hook.ts";
import { lineDiff, readSettings, writeSettings } from "../../settings/settings-files.ts";
import { HOOK_FILE, isOnPath, hookCommand } from "../install/hook-program.ts";
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
} from "../install/host-settings.ts";
import { findDisabledReason } from "../install/disabled-hooks.ts";

export function settingsFolders(): SettingsFolders {
  return { home: homeFolder(), project: process.cwd() };
}

/**
 * Returns the command line that a host runs to start the hook. Throws CommandError if the host might not find the
 * program.
 */
function commandFor(scope: Scope): string {
  if (scope === "project") {
    if (isOnPath("assent-hook", process.env)) return "assent-hook";
    throw new CommandError(
      "assent-hook is not on the PATH, and a host that cannot find its hook runs its calls without it: install it for all " +
        'projects ("npm install --global assent"), or give the command with --command (--command assent-hook if ' +
        "it is on the PATH of everyone who works on this project); --scope user does not need the PATH",
    );
  }
  if (isTemporaryInstall(HOOK_FILE))
    throw new CommandError(
      `${HOOK_FILE} is in a cache and disappears when the cache is emptied, and a host that cannot find its hook runs its ` +
        'calls without it: install it first ("npm install --global assent"), or give the command with --command',
    );
  return hookCommand();
}

export function parseHost(value: string | undefined): Host {
  if (!isHost(value))
    throw usageError(`--host must be one of ${HOSTS.join(", ")}${value === undefined ? "" : `; got "${value}"`}`);
  return value;
}

/** Converts an error of reading or writing settings to a CommandError with the same message. */
export function withCommandError<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

function changeOf(
  path: string,
  isRemoval: boolean,
  installation: HookInstallation,
): { before: string | null; after: string | null } {
  const before = withCommandError(() => readSettings(path));
  try {
    if (!isRemoval) return { before, after: addHook(before, installation) };
    const { host, command } = installation;
    return { before, after: hasHook(before, host, command) ? removeHook(before, host, command) : before };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new CommandError(`${path}: ${error.message}; nothing was changed`);
  }
}

/** The settings of one host and scope, before and after an installation or removal. */
interface SettingsChange {
  path: string;
  before: string | null;
  after: string | null;
}

/**
 * Computes the settings with the hook. The default `command` starts the hook in the same way as this program. Writes
 * nothing.
 */
export async function planInstall(host: Host, scope: Scope, command?: string): Promise<SettingsChange> {
  const path = settingsPath(host, scope);
  // A version that does not know a setting may reject the whole file and then run without the hook.
  const claude = host === "claude-code" ? await readClaudeVersion(process.env) : null;
  return {
    path,
    ...changeOf(path, false, {
      host,
      command: command ?? commandFor(scope),
      onFailure: claude !== null && isAtLeast(claude, CLAUDE_SINCE.onFailure),
      promptEvents: claude !== null && isAtLeast(claude, CLAUDE_SINCE.promptEvents),
    }),
  };
}

/** Computes the settings without the hook. Writes nothing. */
export function planUninstall(host: Host, scope: Scope, command = "assent-hook"): SettingsChange {
  const path = settingsPath(host, scope);
  return { path, ...changeOf(path, true, { host, command }) };
}

function settingsPath(host: Host, scope: Scope): string {
  const path = settingsFile(host, scope, settingsFolders());
  if (path === null) throw new CommandError(`${host} has no ${scope} settings`);
  return path;
}

/** Prints the change and writes it. Returns true if there was a change. */
export function applyChange(io: Output, { path, before, after }: SettingsChange, isDryRun = false): boolean {
  const lines = lineDiff(before, after);
  io.out(`${path}${lines.length === 0 ? ": nothing changes" : isDryRun ? " would change:" : ":"}`);
  for (const line of lines)
    io.out(colourText(io, line.startsWith("+") ? "green" : "red", toPrintable(line.replaceAll("\t", "    "))));
  if (isDryRun || lines.length === 0) return false;
  withCommandError(() => writeSettings(path, before, after));
  return true;
}

/** Throws CommandError if another setting of the host disables its hooks. */
export function assertHookEnabled(host: Host, command?: string): void {
  const off = findDisabledReason(host, settingsFolders(), readTextOrNull, command);
  if (off !== null) throw new CommandError(`the hook is installed but disabled: ${off}; remove that setting`);
}

export const install: Subcommand = {
  summary: "write the hook into a host's settings",
  help: `usage: assent hook install --host HOST [--scope ${SCOPES.join("|")}] [--command COMMAND] [--dry-run] [--json]
       assent hook install --host HOST [--scope SCOPE] --uninstall [--json]

Prints the change and writes it. Replaces an existing hook instead of adding a second one, and keeps all other settings.
Fails if the hook has no service or no key, because every call would then be denied: "assent hook setup" provides both.

  --host HOST        ${HOSTS.join(", ")}
  --scope SCOPE      project (the working folder; default), user, or managed, which the user cannot change
  --command COMMAND  command that starts the hook; default: this program by its path, or assent-hook for a project. With
                     --uninstall: the command that the hook was installed with
  --dry-run          print the change without writing it
  --uninstall        remove the hook
  --json             print the lines of the change as JSON

examples:
  assent hook install --host claude-code --scope user
  assent hook install --host cursor --dry-run
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      host: { type: "string" },
      scope: { type: "string" },
      command: { type: "string" },
      "dry-run": { type: "boolean" },
      uninstall: { type: "boolean" },
      json: { type: "boolean" },
    });
    if (positionals.length > 0) throw usageError("assent hook install takes options only");
    const host = parseHost(values.host);
    const scope = parseChoice("--scope", values.scope, SCOPES);
    if (values.uninstall === true)
      return withJsonReport(io, values.json, async (report) => {
        applyChange(report, planUninstall(host, scope, values.command), values["dry-run"]);
        return EXIT_CODES.ok;
      });
    const change = await planInstall(host, scope, values.command);
    if (values["dry-run"] !== true) {
      const { faults } = await checkConfig(process.env);
      if (faults.length > 0)
        throw new CommandError(
          `the hook would deny each call, so it is not installed: ${faults.join("; ")}; "assent hook setup --host ${host}" sets everything up`,
        );
    }
    return withJsonReport(io, values.json, async (report) => {
      if (!applyChange(report, change, values["dry-run"])) return EXIT_CODES.ok;
      assertHookEnabled(host, values.command);
      if (host === "codex") io.err(CODEX_TRUST_HINT);
      return EXIT_CODES.ok;
    });
  },
};

export const CODEX_TRUST_HINT =
  "Codex runs a hook only after you trust it: start codex and accept the hook with /hooks";
