/** `assent hook setup|install|start|doctor|status`. */
import {
  colourText,
  CommandError,
  EXIT_CODES,
  type Output,
  parseArguments,
  printJson,
  printTable,
  type Subcommand,
  toPrintable,
  usageError,
  withJsonReport,
} from "../../../src/command.ts";
import { HookConfigError, loadConfig, type HookConfig } from "../hook-config.ts";
import { HOSTS } from "../hosts/answers.ts";
import { diagnoseHook } from "../install/diagnose-hook.ts";
import { hookCommand } from "../install/hook-program.ts";
import { HookState, stateFolder } from "../hook-state.ts";
import { parseHost, install, settingsFolders } from "./install.ts";
import { setup } from "./setup.ts";
import { isServiceReady, LocalService } from "./local-service.ts";

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

const start: Subcommand = {
  summary: "start the service that setup created, if it does not run",
  help: `usage: assent hook start [--json]

Starts the service that "assent hook setup" created, and waits until it is ready. The hook runs this command itself if no
service responds, for example after a restart of the machine. The service logs to service.log in its folder.

  --json  print the lines as JSON

examples:
  assent hook start
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { json: { type: "boolean" } });
    if (positionals.length > 0) throw usageError("assent hook start takes options only");
    return withJsonReport(io, values.json, startService);
  },
};

async function startService(io: Output): Promise<number> {
  const { url, service } = readHookConfig();
  if (await isServiceReady(url)) {
    io.out(`the service runs at ${url}`);
    return EXIT_CODES.ok;
  }
  if (service === null)
    throw new CommandError(
      `no service responds at ${url}, and "assent hook setup" did not create it: start it as you did before, for example with "assent serve"`,
      EXIT_CODES.unreachable,
    );
  const local = new LocalService(service, process.env);
  if (local.url !== url)
    throw new CommandError(`the service in ${service} is for ${local.url ?? "no address"}, not for ${url}`);
  await local.start();
  io.out(`a service runs at ${url}; its store and policies are in ${service}`);
  return EXIT_CODES.ok;
}

function readHookConfig(): HookConfig {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (error instanceof HookConfigError) throw new CommandError(error.message);
    throw error;
  }
}

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

export const hookSubcommands: Readonly<Record<string, Subcommand>> = { setup, install, start, doctor, status };
