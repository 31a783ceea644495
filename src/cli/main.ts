/** The command line: finds the command, prints help, and converts errors to exit codes. */
import { findSimilarName } from "../domain/similar-name.ts";
import { findBuiltIn, listEntries, loadPluginCommands } from "./commands.ts";
import { describeSystemError } from "./system-error.ts";
import { CommandError, EXIT_CODES, type Command, type Output } from "./command.ts";

export async function main(args: string[]): Promise<void> {
  const io: Output = {
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    fancy: process.stdout.isTTY === true && !process.env["NO_COLOR"],
    watched: process.stderr.isTTY === true,
  };
  const lost = reportLostOutput(io);
  if (args[0] === "serve") (await import("../serve/v8-flags.ts")).prepareForLoading();
  const exit = await run(args, io);
  process.exitCode = exit === EXIT_CODES.ok && lost() ? EXIT_CODES.failure : exit;
}

/**
 * Reports the first failed write, such as one to a full disk. Returns a function that returns true after a failed
 * write.
 */
function reportLostOutput(io: Output): () => boolean {
  let isLost = false;
  for (const [name, stream] of [
    ["standard output", process.stdout],
    ["standard error", process.stderr],
  ] as const)
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // The reader of a pipe, such as `head -1`, has exited. A failed write must not end a running service.
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
      const commandName = rest[0];
      io.out(commandName === undefined ? await overview() : helpOf(await find(commandName), rest.slice(1)));
      return name === undefined ? EXIT_CODES.usage : EXIT_CODES.ok;
    }
    const end = rest.indexOf("--");
    const isHelp = (end < 0 ? rest : rest.slice(0, end)).some((arg) => arg === "--help" || arg === "-h");
    command = await find(name, isHelp ? [] : rest);
    if (isHelp) {
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
      io.err(`run "${await thisProgram()} ${name}${verb} --help" for its usage`);
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

async function find(name: string, args: readonly string[] = []): Promise<Command> {
  const entry = await findBuiltIn(name);
  if (entry !== null) return entry.load(args);
  const { commands, failure } = await loadPluginCommands();
  const command = commands.get(name);
  if (command !== undefined) return command;
  const builtIn = (await listEntries()).map(([known]) => known);
  const suggestion = findSimilarName(name, [...builtIn, ...commands.keys()]);
  throw new CommandError(
    `there is no command "${name}"${suggestion === null ? `; "${await thisProgram()} help" lists them` : `; did you mean "${suggestion}"?`}${failure === null ? "" : ` (plugins could not be loaded: ${failure})`}`,
    EXIT_CODES.usage,
  );
}

/** Loads `invocation.ts` only for a message, because the list of commands does not need it. */
const thisProgram = async (): Promise<string> => (await import("./invocation.ts")).programCommand();

async function overview(): Promise<string> {
  const listed = [...(await listEntries()), ...(await loadPluginCommands()).commands];
  const lines = listed.map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}`);
  return `usage: assent COMMAND [options]

${lines.join("\n")}

"assent COMMAND --help" describes a command, "assent --version" prints the version. ASSENT_URL and ASSENT_API_KEY, or "assent login", select the service and the key.
exits: 0 done, 1 failed, 2 wrong usage, 3 denied, 4 pending, 5 service not reached, 6 not verified`;
}
