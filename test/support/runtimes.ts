/**
 * Paths and command lines of the three runtimes: the Node that runs the tests, and the npm packages of Deno and Bun.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** True if these tests run as built JavaScript below ./build, false if they run from source through tsx. */
const BUILT = import.meta.url.endsWith(".js");

/** Path of the repository, with a trailing slash. */
export const ROOT = new URL(BUILT ? "../../.." : "../..", import.meta.url).pathname;

/** Node's arguments that precede a script of this repository. */
export const NODE: readonly string[] = BUILT
  ? []
  : ["--import", new URL("../../node_modules/tsx/dist/esm/index.mjs", import.meta.url).href];

/**
 * Returns the path of a script, built or source. @param name path from the root without its extension, such as
 * `src/cli/main`
 */
export function scriptOf(name: string): string {
  return new URL(`../../${name}.${BUILT ? "js" : "ts"}`, import.meta.url).pathname;
}

export type RuntimeName = "node" | "deno" | "bun";

/** Name of the runtime that runs this test. */
export const thisRuntime: RuntimeName =
  process.versions["bun"] !== undefined ? "bun" : process.versions["deno"] !== undefined ? "deno" : "node";

/**
 * Returns the path of a program in an npm package. The packages' launchers cannot be used, because they need install
 * scripts, which do not run.
 */
function packaged(scope: string, inner: string): string | null {
  const folder = join(ROOT, "node_modules", scope);
  if (!existsSync(folder)) return null;
  return (
    readdirSync(folder)
      .map((name) => join(folder, name, inner))
      .find((path) => existsSync(path)) ?? null
  );
}

/** Returns the path of a runtime, or null if its package does not support this platform. */
export function programOf(runtime: RuntimeName): string | null {
  if (runtime === thisRuntime) return process.execPath;
  if (runtime === "deno") return packaged("@deno", "deno");
  if (runtime === "bun") return packaged("@oven", "bin/bun");
  return null;
}

/** Returns a value for the `skip` option of a test: false, or the reason why it cannot run here. */
export function withoutRuntime(runtime: RuntimeName): string | false {
  return programOf(runtime) === null ? `no ${runtime} for this platform in node_modules` : false;
}

/** Returns the permissions of a task in deno.json. @param data replaces `./data` */
export function denoPermissions(task: string, data?: string): string[] {
  const { tasks } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8")) as {
    tasks: Record<string, { command: string }>;
  };
  const flags = (tasks[task]?.command ?? "").split(" ").filter((word) => /^--(?:allow|no)-/.test(word));
  return data === undefined
    ? flags
    : flags.map((flag) => flag.replace("./data", data).replace("--allow-read=.", `--allow-read=.,${data}`));
}

/** Returns the command line that runs a script of this repository. @param permissions permissions for Deno */
export function commandOf(
  runtime: RuntimeName,
  script: string,
  args: readonly string[],
  permissions: readonly string[],
  program = programOf(runtime),
): [program: string, args: string[]] {
  if (program === null) throw new Error(withoutRuntime(runtime) || "");
  if (runtime === "node") return [program, [...NODE, script, ...args]];
  if (runtime === "bun") return [program, [script, ...args]];
  return [program, ["run", ...permissions, script, ...args]];
}
