/** Finds the hook's program, and builds the command line that hosts run. */
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { shellQuote } from "../shell/quote.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the PATH that hosts use, without the folders that npm and npx prepend for their own commands. */
export function searchPath(env: Variables): string {
  const folders = (env["PATH"] ?? "").split(delimiter);
  const runsInNpm = env["npm_execpath"] !== undefined || env["npm_config_user_agent"] !== undefined;
  return folders.filter((folder) => !(runsInNpm && /[/\\]node_modules[/\\]/.test(`${folder}/`))).join(delimiter);
}

export function isOnPath(program: string, env: Variables): boolean {
  const names = process.platform === "win32" ? [`${program}.cmd`, `${program}.exe`] : [program];
  return searchPath(env)
    .split(delimiter)
    .some((folder) => folder !== "" && names.some((name) => isExecutableFile(join(folder, name))));
}

function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The hook's script: the single-file bundle, which starts fastest, or else the built file, or else the source. */
export const HOOK_FILE = ["cjs", "js", "ts"]
  .map((form) => fileURLToPath(new URL(`../bin.${form}`, import.meta.url)))
  .find((path) => existsSync(path)) as string;

/** Returns a command line that starts the hook from any folder. */
export function hookCommand(file = HOOK_FILE): string {
  const isDeno = (process.versions as Record<string, string | undefined>)["deno"] !== undefined;
  return [process.execPath, ...(isDeno ? ["run", "-A"] : []), file].map(quoteForHost).join(" ");
}

function quoteForHost(word: string): string {
  const posix = shellQuote(word);
  return process.platform === "win32" && posix !== word ? `"${word}"` : posix;
}
