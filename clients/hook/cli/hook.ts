/** `assent hook` and `assent hookd` let coding agents request a decision before each tool call. */
import {
  type Command,
  CommandError,
  EXIT_CODES,
  parseArguments,
  parseSeconds,
  runSubcommand,
  usageError,
} from "../../../src/command.ts";
import { runHookd } from "../hookd.ts";
import { HOSTS } from "../hosts/answers.ts";
import { createSocketFolder, socketPath } from "../hookd-socket.ts";
import { VERSION } from "../../../src/version.ts";
import { hookSubcommands } from "./subcommands.ts";

export const hook: Command = {
  help: `usage: assent hook --host HOST [--wait DURATION] [--no-daemon]
       assent hook setup|install|start|doctor|status

Reads one hook event of a coding agent from standard input, asks the service, and answers in the format of the host.
If anything fails, the answer is a deny. Hosts start it as assent-hook, which loads faster.

  --host HOST       ${HOSTS.join(", ")}
  --wait DURATION   how long a call waits for an approval, up to the timeout of the host: seconds, or 5m
  --no-daemon       decide in this process without starting hookd; same as ASSENT_HOOKD=off

Reads the service, key and agent from /etc/assent/hook.json, then ~/.config/assent/hook.json (url, api_key, agent), then
ASSENT_URL, ASSENT_API_KEY, ASSENT_AGENT and ASSENT_AUTHORITY. See docs/hooks.md.

examples:
  assent-hook --host claude-code < event.json
  assent hook setup --host claude-code
`,
  subcommands: hookSubcommands,
  run: (args, io) => runSubcommand("hook", hookSubcommands, args, io, ["--host"]),
};

/** Maximum idle time of hookd. Seconds. */
const MAX_IDLE = 30 * 86_400;

export const hookd: Command = {
  help: `usage: assent hookd [--idle DURATION]

Hooks start it automatically, and it exits when idle. It listens on a socket that only its user can open.

  --idle DURATION   exit after this time without a call: seconds, or 2h; default 15m

examples:
  assent hookd --idle 3600
`,
  async run(args) {
    const { values, positionals } = parseArguments(args, { idle: { type: "string", default: "15m" } });
    const idle = parseSeconds("--idle", values.idle, MAX_IDLE);
    if (positionals.length > 0 || idle === 0) throw usageError("--idle takes a duration above 0");
    const path = socketPath(process.env, VERSION);
    if (path === null)
      throw new CommandError("hookd has no folder for its socket; set XDG_RUNTIME_DIR to a folder that you own");
    let hasRun: boolean;
    try {
      createSocketFolder(path);
      hasRun = await runHookd({ path, version: VERSION, idle: idle * 1000 });
    } catch (error) {
      throw new CommandError(`hookd cannot listen: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (!hasRun) throw new CommandError(`another hookd already listens on ${path}`);
    return EXIT_CODES.ok;
  },
};
