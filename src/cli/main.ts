/** The command line: finds the command, prints help, and converts errors to exit codes. */
import type { CoreCommand } from "../contract/command.ts";
import { limitYoungGeneration } from "../serve/young-space.ts";
import { findSimilarName } from "../domain/similar-name.ts";
import { featureCommands } from "./feature-commands.ts";
import { programCommand } from "./invocation.ts";
import { describeSystemError } from "./system-error.ts";
import { CommandError, EXIT_CODES, type Command, type Output } from "./command.ts";

/** Commands are loaded on demand, because most of them need few modules. */
const COMMANDS: Readonly<Record<CoreCommand, () => Promise<Command>>> = {
  init: async () => (await import("./init.ts")).init,
  serve: async () => (await import("./serve.ts")).serve,
  login: async () => (await import("./login.ts")).login,
  logout: async () => (await import("./login.ts")).logout,
  status: async () => (await import("./service-status.ts")).status,
  doctor: async () => (await import("./doctor.ts")).doctor,
  keys: async () => (await import("./keys.ts")).keys,
  submit: async () => (await import("./actions.ts")).submit,
  approve: async () => (await import("./actions.ts")).approve,
  deny: async () => (await import("./actions.ts")).deny,
  watch: async () => (await import("./watch/index.ts")).watch,
  plan: async () => (await import("./plans.ts")).plan,
  edit: async () => (await import("./actions.ts")).edit,
  ask: async () => (await import("./actions.ts")).ask,
  answer: async () => (await import("./actions.ts")).answer,
  lift: async () => (await import("./actions.ts")).liftRejection,
  actions: async () => (await import("./actions.ts")).actions,
  grants: async () => (await import("./grants.ts")).grants,
  delegations: async () => (await import("./delegations.ts")).delegations,
  "break-glass": async () => (await import("./break-glass.ts")).breakGlass,
  "access-review": async () => (await import("./access-review.ts")).accessReview,
  erase: async () => (await import("./erase.ts")).erase,
  hold: async () => (await import("./hold.ts")).hold,
  verify: async () => (await import("./verify.ts")).verify,
  witness: async () => (await import("./witness.ts")).witness,
  audit: async () => (await import("./audit.ts")).audit,
  reconcile: async () => (await import("./reconcile/index.ts")).reconcile,
  evidence: async () => (await import("./evidence/index.ts")).evidence,
  backup: async () => (await import("./backup.ts")).backup,
  compact: async () => (await import("./compact.ts")).compact,
  migrate: async () => (await import("./migrate.ts")).migrate,
  copy: async () => (await import("./copy.ts")).copy,
  policy: async () => (await import("./policy/index.ts")).policy,
  schema: async () => (await import("./schema.ts")).schema,
  hook: async () => (await import("./hook.ts")).hook,
  hookd: async () => (await import("./hook.ts")).hookd,
  mcp: async () => (await import("./mcp/index.ts")).mcp,
  demo: async () => (await import("./demo/index.ts")).demo,
  completion: async () => (await import("./completion/index.ts")).completion(allCommands),
};

export async function main(args: string[]): Promise<void> {
  const io: Output = {
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    fancy: process.stdout.isTTY === true && !process.env["NO_COLOR"],
    watched: process.stderr.isTTY === true,
  };
  const lost = reportLostOutput(io);
  if (args[0] === "serve") limitYoungGeneration();
  const exit = await run(args, io);
  process.exitCode = exit === EXIT_CODES.ok && lost() ? EXIT_CODES.failure : exit;
}

/** Reports the first failed write, for example to a file on a full disk. Returns a function that tells whether one failed. */
function reportLostOutput(io: Output): () => boolean {
  let isLost = false;
  for (const [name, stream] of [
    ["standard output", process.stdout],
    ["standard error", process.stderr],
  ] as const)
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // The reader of a pipe, such as `head -1`, has exited. No failed write may end a running service.
      if (error.code === "EPIPE" || isLost) return;
      isLost = true;
      process.exitCode ||= EXIT_CODES.failure;
      if (stream !== process.stderr)
        io.err(`assent: ${name} cannot be written: ${describeSystemError(error) ?? error.message}`);
    });
  return () => isLost;
}

/**
 * Runs one command line. Resolves to the exit code. Prints a CommandError and an error of the operating system; rejects
 * only because of a bug.
 */
export async function run(args: string[], io: Output): Promise<number> {
  const [name, ...rest] = args;
  let command: Command | undefined;
  try {
    if (name === "--version" || name === "-v") {
      io.out((await import("../version.ts")).VERSION);
      return EXIT_CODES.ok;
    }
    if (name === undefined || name === "help" || name === "--help" || name === "-h") {
      const about = rest[0];
      io.out(about === undefined ? await overview() : helpOf(await find(about), rest.slice(1)));
      return name === undefined ? EXIT_CODES.usage : EXIT_CODES.ok;
    }
    command = await find(name);
    const end = rest.indexOf("--");
    if ((end < 0 ? rest : rest.slice(0, end)).some((arg) => arg === "--help" || arg === "-h")) {
      io.out(helpOf(command, rest));
      return EXIT_CODES.ok;
    }
    return await command.run(rest, io);
  } catch (error) {
    if (!(error instanceof CommandError)) {
      const text = describeSystemError(error);
      if (text === null) throw error;
      io.err(`assent: ${text}`);
      return EXIT_CODES.failure;
    }
    io.err(`assent: ${error.message}`);
    if (error.exit === EXIT_CODES.usage && command !== undefined) {
      const verb = Object.hasOwn(command.subcommands ?? {}, rest[0] ?? "") ? ` ${rest[0]}` : "";
      io.err(`run "${programCommand()} ${name}${verb} --help" for its usage`);
    }
    return error.exit;
  }
}

/** Returns the help of the subcommand in the arguments, or of the command if there is no subcommand. */
function helpOf({ help, subcommands: verbs }: Command, [verb]: string[]): string {
  return verb !== undefined && verbs !== undefined && Object.hasOwn(verbs, verb)
    ? (verbs[verb] as { help: string }).help
    : help;
}

async function find(name: string): Promise<Command> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name as CoreCommand] : undefined;
  if (load !== undefined) return load();
  const features = featureCommands();
  if (Object.hasOwn(features, name)) return (features[name] as () => Promise<Command>)();
  const { commands, failure } = await loadPluginCommands();
  const command = commands.get(name);
  if (command !== undefined) return command;
  const suggestion = findSimilarName(name, [...Object.keys(COMMANDS), ...Object.keys(features), ...commands.keys()]);
  throw new CommandError(
    `there is no command "${name}"${suggestion === null ? `; "${programCommand()} help" lists them` : `; did you mean "${suggestion}"?`}${failure === null ? "" : ` (plugins could not be loaded: ${failure})`}`,
    EXIT_CODES.usage,
  );
}

/** Loads the commands of plugins. If the configuration cannot be loaded, the built-in commands still work. */
async function loadPluginCommands(): Promise<{ commands: ReadonlyMap<string, Command>; failure: string | null }> {
  try {
    return { commands: await (await import("./plugin-commands.ts")).pluginCommands(), failure: null };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { commands: new Map(), failure: error.message };
  }
}

/** Loads the built-in commands and the commands of the configured plugins, in the order of the help. */
export async function allCommands(): Promise<ReadonlyMap<string, Command>> {
  const builtIn = Object.entries({ ...COMMANDS, ...featureCommands() });
  const loaded = builtIn.map(async ([name, load]) => [name, await load()] as const);
  return new Map([...(await Promise.all(loaded)), ...(await loadPluginCommands()).commands]);
}

async function overview(): Promise<string> {
  const lines = [...(await allCommands())].map(([name, { summary }]) => `  ${name.padEnd(15)}${summary}`);
  return `usage: assent COMMAND [options]

${lines.join("\n")}

"assent COMMAND --help" describes a command, "assent --version" prints the version. ASSENT_URL and ASSENT_API_KEY, or "assent login", select the service and the key.
exits: 0 done, 1 failed, 2 wrong usage, 3 denied, 4 pending, 5 service not reached, 6 not verified`;
}
