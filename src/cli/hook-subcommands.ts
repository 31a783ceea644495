/** `assent hook setup|install|doctor|status`. */
import { HOSTS } from "../hook/hosts/answers.ts";
import { diagnoseHook } from "../hook/install/diagnose-hook.ts";
import { hookCommand } from "../hook/install/hook-program.ts";
import { HookState, stateFolder } from "../hook/hook-state.ts";
import {
  colourText,
  EXIT_CODES,
  parseArguments,
  toPrintable,
  printTable,
  usageError,
  printJson,
  type Output,
  type Subcommand,
} from "./command.ts";
import { parseHost, install, settingsFolders } from "./hook-install.ts";
import { setup } from "./hook-setup.ts";

const doctor: Subcommand = {
  summary: "test that the hook denies a call",
  help: `usage: assent hook doctor --host HOST [--command COMMAND] [--json]

Checks the configuration, the service, the key and the host's settings. Sends a test call of a tool that no policy names through
the hook as the host would, and reports what the host does if the hook does not answer. Exits with 1 if something is wrong.

  --host HOST        ${HOSTS.join(", ")}
  --command COMMAND  command that starts the hook; default: this program by its path
  --json             print the findings as JSON

examples:
  assent hook doctor --host claude-code
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      host: { type: "string" },
      command: { type: "string" },
      json: { type: "boolean" },
    });
    if (positionals.length > 0) throw usageError("assent hook doctor takes options only");
    const findings = await diagnoseHook(
      parseHost(values.host),
      values.command ?? hookCommand(),
      process.env,
      settingsFolders(),
    );
    if (values.json === true) printJson(io, { findings });
    else
      for (const { kind, text } of findings) {
        const mark = {
          ok: colourText(io, "green", "ok   "),
          wrong: colourText(io, "red", "wrong"),
          info: colourText(io, "yellow", "note "),
        }[kind];
        io.out(`${mark} ${toPrintable(text)}`);
      }
    return findings.some(({ kind }) => kind === "wrong") ? EXIT_CODES.failure : EXIT_CODES.ok;
  },
};

const status: Subcommand = {
  summary: "list sessions, including those that never called the hook",
  help: `usage: assent hook status [--json]

Lists the sessions of this user's hosts in the last seven days. If a session has no calls, the host runs the hook at the start
of a session, but not for tool calls.

examples:
  assent hook status
`,
  async run(args, io) {
    const { values } = parseArguments(args, { json: { type: "boolean" } });
    const sessions = await new HookState(stateFolder(process.env)).sessions();
    if (values.json) {
      printJson(io, sessions);
      return EXIT_CODES.ok;
    }
    if (sessions.length === 0) {
      io.err("no host of this user has called the hook in the last seven days");
      return EXIT_CODES.ok;
    }
    const time = (at: number | null): string => (at === null ? "-" : new Date(at).toISOString());
    printTable(
      io,
      ["host", "session", "began", "last call", "calls"],
      sessions.map(({ host, session, started, last_call: last, calls }) => [
        host,
        toPrintable(session),
        time(started),
        time(last),
        calls === 0 ? "none" : String(calls),
      ]),
    );
    return EXIT_CODES.ok;
  },
};

export const hookSubcommands: Readonly<Record<string, Subcommand>> = { setup, install, doctor, status };

export function runHookSubcommand(name: string, args: string[], io: Output): Promise<number> {
  if (!Object.hasOwn(hookSubcommands, name))
    throw usageError(`assent hook has no subcommand "${name}"; use --host, ${Object.keys(hookSubcommands).join(", ")}`);
  return (hookSubcommands[name] as Subcommand).run(args, io);
}
