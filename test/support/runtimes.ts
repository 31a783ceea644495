/** The three runtimes as programs: this machine's Node, and the Deno and Bun that the lockfile brings. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Whether these tests run as built JavaScript, below ./build, or as their sources, through tsx. */
const BUILT = import.meta.url.endsWith(".js");

/** The repository, with a slash at its end. */
export const ROOT = new URL(BUILT ? "../../.." : "../..", import.meta.url).pathname;

/** Node's arguments before a script of this repository. */
export const NODE: readonly string[] = BUILT
  ? []
  : ["--import", new URL("../../node_modules/tsx/dist/esm/index.mjs", import.meta.url).href];

/** Path of a script as it runs here. @param name from the root, without its extension, such as `src/cli/main` */
export function scriptOf(name: string): string {
  return new URL(`../../${name}.${BUILT ? "js" : "ts"}`, import.meta.url).pathname;
}

export type RuntimeName = "node" | "deno" | "bun";

/** Name of the runtime that runs this test. */
export const thisRuntime: RuntimeName =
  process.versions["bun"] !== undefined ? "bun" : process.versions["deno"] !== undefined ? "deno" : "node";

/** No install script runs, so the packages' own launchers are passed by. */
function packaged(scope: string, inner: string): string | null {
  const folder = join(ROOT, "node_modules", scope);
  if (!existsSync(folder)) return null;
  return (
    readdirSync(folder)
      .map((name) => join(folder, name, inner))
      .find((path) => existsSync(path)) ?? null
  );
}

/** Path of the program; null where its package has none for this platform. */
export function programOf(runtime: RuntimeName): string | null {
  if (runtime === thisRuntime) return process.execPath;
  if (runtime === "deno") return packaged("@deno", "deno");
  if (runtime === "bun") return packaged("@oven", "bin/bun");
  return null;
}

/** For `skip` of a test: false, or why it cannot run. */
export function without(runtime: RuntimeName): string | false {
  return programOf(runtime) === null ? `no ${runtime} for this platform in node_modules` : false;
}

/** The permissions of a task of deno.json, `./data` replaced by the folder of the store. */
export function denoPermissions(task: string, data?: string): string[] {
  const { tasks } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8")) as {
    tasks: Record<string, { command: string }>;
  };
  const flags = (tasks[task]?.command ?? "").split(" ").filter((word) => /^--(?:allow|no)-/.test(word));
  return data === undefined
    ? flags
    : flags.map((flag) => flag.replace("./data", data).replace("--allow-read=.", `--allow-read=.,${data}`));
}

/** A command line that runs a script of this repository. `permissions` are Deno's. */
export function commandOf(
  runtime: RuntimeName,
  script: string,
  args: readonly string[],
  permissions: readonly string[],
  program = programOf(runtime),
): [program: string, args: string[]] {
  if (program === null) throw new Error(without(runtime) || "");
  if (runtime === "node") return [program, [...NODE, script, ...args]];
  if (runtime === "bun") return [program, [script, ...args]];
  return [program, ["run", ...permissions, script, ...args]];
}
