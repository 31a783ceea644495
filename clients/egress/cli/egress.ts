/** `assent egress`: runs an agent behind the forward proxy, and checks the proxy's configuration. */
import { describeSubcommands, runSubcommand, type Command, type Subcommand } from "../../../src/command.ts";

const CONFIG = `  --config FILE     hosts and credentials; egress.yaml in the working folder when absent`;

const run: Subcommand = {
  summary: "run a command whose requests are decided",
  help: `usage: assent egress run [options] -- COMMAND [ARGS]

Starts a forward proxy on a loopback address, and runs the command with environment variables that select the proxy and
trust its certificates. Each request to a listed host is submitted as an action, and is forwarded only if it is allowed or
approved. The command sees placeholders; the proxy replaces them by the credentials. If the service cannot be reached,
nothing passes. ASSENT_URL and ASSENT_API_KEY select the service and the key. Exits with the exit code of the command.

A command that runs as the same user can read the credentials from the proxy's process or files, and can connect without
the proxy. Use --user, and close other ways with a firewall: docs/egress.md describes both.

${CONFIG}
  --agent ID        the agent that requests are submitted for; by default the one that the key is bound to
  --wait DURATION   how long a request waits for an approval before the command is asked to repeat it later
  --user UID:GID    the user and group that the command runs as; needs root

examples:
  assent egress run -- claude
  assent egress run --config egress.yaml --user 1001:1001 -- python agent.py
`,
  run: async (args, io) => (await import("./run.ts")).run(args, io),
};

const doctor: Subcommand = {
  summary: "check the configuration, the service and the listed hosts",
  help: `usage: assent egress doctor [--config FILE] [--json]

Checks the configuration and its credentials, the service and its key, whether the policies deny every request, and the
name and certificate of each listed host.
Sends no request to the hosts, and prints no credential. Exits with 1 if there is a problem.

${CONFIG}
  --json            print the findings as JSON

examples:
  assent egress doctor
`,
  run: async (args, io) => (await import("./doctor.ts")).doctor(args, io),
};

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = { run, doctor };

export const egress: Command = {
  help: `usage: assent egress run|doctor ...

${describeSubcommands(SUBCOMMANDS)}

"assent egress VERB --help" describes one of them.

examples:
  assent egress run -- claude
  assent egress doctor`,
  subcommands: SUBCOMMANDS,
  run: (args, io) => runSubcommand("egress", SUBCOMMANDS, args, io),
};
