/** Determines the command that messages tell the reader to run, for the current runtime and folder. */
import { existsSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../programs/runtime-command.ts";

/**
 * Returns the command that starts this program, such as `npx assent`.
 * @param folder working folder in which the command will run
 * @param env environment variables, including those that npx and bunx set
 * @example
 * io.err(`run "${programCommand()} login"`);
 */
export function programCommand(
  folder: string = process.cwd(),
  env: Record<string, string | undefined> = process.env,
): string {
  const source = import.meta.url.endsWith(".ts");
  const bin = fileURLToPath(new URL(`./bin.${source ? "ts" : "js"}`, import.meta.url));
  const { bun, deno } = process.versions;
  if (bin.includes(`${sep}node_modules${sep}`)) {
    if (deno !== undefined) return "deno run -A npm:assent";
    // Without `--bun`, bunx runs the program on Node, because the first line of the program names Node.
    if (bun !== undefined) return "bunx --bun assent";
    if ((env["npm_config_user_agent"] ?? "").startsWith("bun/")) return "bunx assent";
    // A global installation is on the PATH. For an installation in node_modules, npx finds the program.
    const local = folder.startsWith(bin.slice(0, bin.indexOf(`${sep}node_modules${sep}`)));
    return local || env["npm_command"] === "exec" ? "npx assent" : "assent";
  }
  // The launcher exists only in a clone.
  const launcher = fileURLToPath(new URL(source ? "./assent.mjs" : "../../../src/cli/assent.mjs", import.meta.url));
  if (deno !== undefined && existsSync(join(folder, "deno.json"))) return "deno task assent";
  const program = deno !== undefined ? "deno run -A" : bun !== undefined ? "bun" : "node";
  return `${program} ${relative(folder, existsSync(launcher) ? launcher : bin)}`;
}

/**
 * Returns the program and arguments that start this program from any folder, for use by another program.
 * @example
 * const [program, ...args] = programArguments();
 */
export function programArguments(): string[] {
  const source = import.meta.url.endsWith(".ts");
  const bin = fileURLToPath(new URL(`./bin.${source ? "ts" : "js"}`, import.meta.url));
  return runtimeCommand(bin);
}

/**
 * Returns true if the file is in a package manager's temporary cache. Once the file is deleted, programs that start it
 * fail.
 * @example
 * isTemporaryInstall("/home/ada/.npm/_npx/1/node_modules/assent/bin/assent.mjs"); // true
 */
export const isTemporaryInstall = (file: string): boolean =>
  /[/\\]_npx[/\\]|[/\\]dlx-[^/\\]+[/\\]|[/\\]bunx-[^/\\]+[/\\]/.test(file);
