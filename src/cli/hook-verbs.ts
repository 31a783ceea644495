/** `assent hook install|doctor|status`. */
import { execFileSync } from "node:child_process";
import { homedir } from "node:os";
import { isAbsolute } from "node:path";
import { HOSTS, isHost, type Host } from "../hook/hosts/answers.ts";
import { examine, textOf } from "../hook/install/doctor.ts";
import { difference, readSettings, writeSettings } from "../hook/install/files.ts";
import { HOOK_FILE, isOnPath, isPassing, ownCommand } from "../hook/install/program.ts";
import {
  hasHook,
  SCOPES,
  settingsFile,
  SettingsFault,
  withHook,
  withoutHook,
  type Place,
  type Scope,
  type Wanted,
} from "../hook/install/settings.ts";
import { switchedOff } from "../hook/install/switches.ts";
import { HookState, stateFolder } from "../hook/state.ts";
import { colour, CommandError, EXIT, oneOf, parse, safe, table, usage, type Output, type Verb } from "./command.ts";

function place(): Place {
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
  if (isPassing(HOOK_FILE))
    throw new CommandError(
      `${HOOK_FILE} goes when the cache that it is in is emptied, and a host that does not find its hook runs its ` +
        'calls: install it first ("npm install --global assent"), or say with --command how it is started',
    );
  return ownCommand();
}

function hostOf(value: string | undefined): Host {
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

function changeOf(path: string, out: boolean, wanted: Wanted): { before: string | null; after: string | null } {
  const before = said(() => readSettings(path));
  try {
    if (!out) return { before, after: withHook(before, wanted) };
    const { host, command } = wanted;
    return { before, after: hasHook(before, host, command) ? withoutHook(before, host, command) : before };
  } catch (error) {
    if (!(error instanceof SettingsFault)) throw error;
    throw new CommandError(`${path}: ${error.message}; nothing was changed`);
  }
}

const install: Verb = {
  summary: "write the hook into a host's settings",
  help: `usage: assent hook install --host HOST [--scope ${SCOPES.join("|")}] [--command COMMAND] [--dry-run]
       assent hook install --host HOST [--scope SCOPE] --uninstall

Shows what changes, and writes it. A hook that is there already is replaced, never added twice; what else stands there stays.

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
    const path = settingsFile(host, scope, place());
    if (path === null) throw new CommandError(`install knows no ${scope} settings of ${host}`);
    const { before, after } = changeOf(path, values.uninstall === true, {
      host,
      command: values.command ?? (values.uninstall ? "assent-hook" : commandFor(scope)),
      onFailure: host === "claude-code" && !values.uninstall && knowsOnFailure(),
    });
    const lines = difference(before, after);
    io.out(`${path}${lines.length === 0 ? ": nothing changes" : values["dry-run"] ? " would change:" : ":"}`);
    for (const line of lines)
      io.out(colour(io, line.startsWith("+") ? "green" : "red", safe(line.replaceAll("\t", "    "))));
    if (values["dry-run"] || lines.length === 0) return EXIT.ok;
    said(() => writeSettings(path, before, after));
    const off = values.uninstall ? null : switchedOff(host, place(), textOf, values.command);
    if (off !== null) throw new CommandError(`the hook stands there now, and does nothing yet: ${off}; take that out`);
    if (host === "codex" && !values.uninstall)
      io.err("Codex runs a hook only once it is trusted: start codex and accept it with /hooks");
    return EXIT.ok;
  },
};

const doctor: Verb = {
  summary: "prove that a deny comes out of the hook",
  help: `usage: assent hook doctor --host HOST [--command COMMAND]

Looks at the configuration, the service, the key and the host's settings, sends a canary call, of a tool that no policy names, through
the hook as the host would, and says what the host does when the hook gives no answer. Ends with 1 when something is wrong.

  --host HOST        ${HOSTS.join(", ")}
  --command COMMAND  how the hook is started; default: this program by its path

examples:
  assent hook doctor --host claude-code
`,
  async run(args, io) {
    const { values, positionals } = parse(args, { host: { type: "string" }, command: { type: "string" } });
    if (positionals.length > 0) throw usage("assent hook doctor takes options only");
    const findings = await examine(hostOf(values.host), values.command ?? ownCommand(), process.env, place());
    for (const { kind, text } of findings) {
      const mark = {
        ok: colour(io, "green", "ok   "),
        wrong: colour(io, "red", "wrong"),
        say: colour(io, "yellow", "note "),
      }[kind];
      io.out(`${mark} ${safe(text)}`);
    }
    return findings.some(({ kind }) => kind === "wrong") ? EXIT.failure : EXIT.ok;
  },
};

const status: Verb = {
  summary: "sessions that were seen, and those that never asked",
  help: `usage: assent hook status [--json]

Lists the sessions of this user's hosts of the last seven days. A session that began and never asked has a hook for its begin, and
none that works for its calls.

examples:
  assent hook status
`,
  async run(args, io) {
    const { values } = parse(args, { json: { type: "boolean" } });
    const sessions = await new HookState(stateFolder(process.env)).sessions();
    if (values.json) {
      io.out(JSON.stringify(sessions));
      return EXIT.ok;
    }
    if (sessions.length === 0) {
      io.err("no host of this user has called the hook in the last seven days");
      return EXIT.ok;
    }
    const time = (at: number | null): string => (at === null ? "-" : new Date(at).toISOString());
    table(
      io,
      ["host", "session", "began", "last call", "calls"],
      sessions.map(({ host, session, started, last_call: last, calls }) => [
        host,
        safe(session),
        time(started),
        time(last),
        calls === 0 ? "never asked" : String(calls),
      ]),
    );
    return EXIT.ok;
  },
};

export const hookVerbs: Readonly<Record<string, Verb>> = { install, doctor, status };

export function runVerb(verb: string, args: string[], io: Output): Promise<number> {
  if (!Object.hasOwn(hookVerbs, verb))
    throw usage(`assent hook takes --host, ${Object.keys(hookVerbs).join(", ")}, not "${verb}"`);
  return (hookVerbs[verb] as Verb).run(args, io);
}
