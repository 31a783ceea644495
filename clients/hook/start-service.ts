/** Starts the service that `assent hook setup` created, when it does not run, for example after a restart. */
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../../src/programs/runtime-command.ts";
import { runProgram } from "../../src/programs/run-program.ts";
import { safeEnvironment } from "./decision-processes.ts";
import type { HookConfig } from "./hook-config.ts";
import { shellQuote } from "./shell/quote.ts";

/** Returns the program and arguments of `assent hook start`, which work from any folder. */
function startProgram(): [program: string, ...args: string[]] {
  const isSource = import.meta.url.endsWith(".ts");
  const bin = fileURLToPath(new URL(`../../src/cli/bin.${isSource ? "ts" : "js"}`, import.meta.url));
  return [...runtimeCommand(bin), "hook", "start"];
}

/** Returns the command line that starts the service, for a person to copy. */
export function startCommandLine(): string {
  return startProgram().map(shellQuote).join(" ");
}

/**
 * Starts the service of `config.service` and waits until it is ready. Resolves to false if the configuration has no such
 * service, or if it could not be started.
 * @param env the variables that locate the hook's configuration
 */
export async function startService(
  config: HookConfig,
  env: Readonly<Record<string, string>>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  if (config.service === null || timeoutMs <= 0) return false;
  const [program, ...args] = startProgram();
  try {
    const { code } = await runProgram(program, args, {
      env: { ...safeEnvironment(), ...env },
      cwd: "/",
      maxOutput: 1_000_000,
      timeoutMs,
      signal,
    });
    return code === 0;
  } catch {
    return false;
  }
}
