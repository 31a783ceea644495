/** `assent hook` and `assent hookd`: coding agents ask before each tool they run. */
import { runHookd } from "../hook/hookd.ts";
import { HOSTS } from "../hook/hosts/answers.ts";
import { createSocketFolder, socketPath } from "../hook/hookd-socket.ts";
import { VERSION } from "../version.ts";
import { CommandError, EXIT, parse, usage, type Command } from "./command.ts";
import { hookVerbs, runVerb } from "./hook-verbs.ts";

export const hook: Command = {
  summary: "ask about each tool that a coding agent is about to run",
  help: `usage: assent hook --host HOST [--wait SECONDS] [--no-daemon]
       assent hook setup|install|doctor|status

Reads one event of a coding agent's hook on standard input, asks the service, and answers in the host's own words.
Whatever fails, the answer is a deny. Hosts start it as assent-hook, which loads nothing else.

  --host HOST       ${HOSTS.join(", ")}
  --wait SECONDS    how long a call is held for an approval, where that is less than the host bears
  --no-daemon       decides in a process of its own, and starts no hookd; ASSENT_HOOKD=off does the same

Which service, and as whom: /etc/assent/hook.json, then ~/.config/assent/hook.json with url, api_key and agent, then
ASSENT_URL, ASSENT_API_KEY and ASSENT_AGENT. docs/hooks.md has the rest.

examples:
  assent-hook --host claude-code < event.json
  assent hook setup --host claude-code
`,
  verbs: hookVerbs,
  async run(args, io) {
    const [verb, ...rest] = args;
    if (verb === undefined) throw usage("assent hook takes --host, setup, install, doctor or status");
    if (!verb.startsWith("--")) return runVerb(verb, rest, io);
    await (await import("../hook/launcher.ts")).runHook(args);
    return Number(process.exitCode ?? EXIT.failure);
  },
};

export const hookd: Command = {
  summary: "stay resident for this user's hooks, so that each answers sooner",
  help: `usage: assent hookd [--idle SECONDS]

Hooks start it by themselves, and it ends when it is idle. It listens on a socket that its user alone may open.

  --idle SECONDS    ends after so long without a call; default 900

examples:
  assent hookd --idle 3600
`,
  async run(args) {
    const { values, positionals } = parse(args, { idle: { type: "string", default: "900" } });
    const idle = Number(values.idle);
    if (positionals.length > 0 || !(idle > 0)) throw usage("--idle takes a number of seconds above 0");
    const path = socketPath(process.env, VERSION);
    if (path === null)
      throw new CommandError("there is no place for its socket; set XDG_RUNTIME_DIR to a folder of yours");
    let hasRun: boolean;
    try {
      createSocketFolder(path);
      hasRun = await runHookd({ path, version: VERSION, idle: idle * 1000 });
    } catch (error) {
      throw new CommandError(`hookd cannot listen: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (!hasRun) throw new CommandError(`another hookd listens on ${path}`);
    return EXIT.ok;
  },
};
