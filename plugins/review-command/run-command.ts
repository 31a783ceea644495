/** Runs a program once, with bounded time, output and environment. No shell is involved. */
import { decodeUtf8, type ProgramResult, runProgram } from "../../src/core.ts";

/** Maximum size of standard output in bytes. */
const MAX_OUTPUT = 65_536;
/** Maximum number of characters of standard error that the error message contains. */
const MAX_ERRORS = 2_000;

export interface Program {
  /** The program and its arguments. */
  command: readonly string[];
  /** The environment of the program, in addition to `PATH`, `HOME` and `LANG` of the service. */
  environment: Readonly<Record<string, string>>;
}

/** Called after each chunk, with the complete standard output so far. Calls `finish` to end the program. */
type OnOutput = (text: string, send: (line: string) => void, finish: () => void) => void;

/**
 * Runs the program, writes `input` to its standard input and resolves to its standard output. Rejects if the program
 * exits with a non-zero code, if its output is larger than 64 KiB or not UTF-8, or if `signal` aborts. In all cases,
 * kills remaining processes of the program.
 * @param onOutput if given, standard input stays open, and this function decides when the program has finished. Rejects
 * if the program exits before that
 */
export async function runCommand(
  { command, environment }: Program,
  input: string,
  signal: AbortSignal,
  onOutput?: OnOutput,
): Promise<string> {
  const [file = "", ...args] = command;
  let isFinished = onOutput === undefined;
  const result = await runProgram(file, args, {
    // The environment contains none of the service's secrets.
    env: { ...baseEnvironment(), ...environment },
    input,
    signal,
    endsWithParent: true,
    maxOutput: MAX_OUTPUT,
    ...(onOutput === undefined
      ? {}
      : {
          onOutput: (output, send, finish) =>
            onOutput(output.toString("utf8"), send, () => {
              isFinished = true;
              finish();
            }),
        }),
  });
  if (!isFinished || (onOutput === undefined && result.code !== 0)) throw new Error(describeEnd(file, result));
  const text = decodeUtf8(result.stdout);
  if (text === null) throw new Error(`${file} wrote something other than UTF-8`);
  return text;
}

function describeEnd(file: string, { code, endedBy, stderr }: ProgramResult): string {
  const options = code === null ? `was killed by ${endedBy ?? "a signal"}` : `exited with code ${code}`;
  return `${file} ${options}${stderr === "" ? "" : `: ${stderr.trim().slice(-MAX_ERRORS)}`}`;
}

function baseEnvironment(): Record<string, string> {
  const { PATH, HOME, LANG } = process.env;
  return Object.fromEntries(Object.entries({ PATH, HOME, LANG }).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
}
