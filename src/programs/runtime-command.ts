/**
 * Returns the program and arguments that run a file with this runtime.
 * @example
 * runtimeCommand("/app/bin.js"); // ["/usr/bin/node", "/app/bin.js"]
 */
export function runtimeCommand(file: string): [program: string, ...args: string[]] {
  const isDeno = process.versions["deno"] !== undefined;
  return [process.execPath, ...(isDeno ? ["run", "-A"] : process.execArgv), file];
}
