/** How hosts find and start the hook's program. */
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { shellQuote } from "../shell/quote.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** Where a host looks for programs: npm and npx put folders in front that are there for their own commands only. */
export function searchPath(env: Variables): string {
  const all = (env["PATH"] ?? "").split(delimiter);
  const runsInNpm = env["npm_execpath"] !== undefined || env["npm_config_user_agent"] !== undefined;
  return all.filter((folder) => !(runsInNpm && /[/\\]node_modules[/\\]/.test(`${folder}/`))).join(delimiter);
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

/** The hook's own file beside this one, in the same form: source, built, or in one file, which starts fastest. */
export const HOOK_FILE = ["cjs", "js", "ts"]
  .map((form) => fileURLToPath(new URL(`../bin.${form}`, import.meta.url)))
  .find((path) => existsSync(path)) as string;

/** Whether the file goes when npx's cache is emptied: a host that does not find its hook runs its calls. */
export const isTemporaryInstall = (file: string): boolean =>
  /[/\\]_npx[/\\]|[/\\]dlx-[^/\\]+[/\\]|[/\\]bunx-[^/\\]+[/\\]/.test(file);

/** A command line that starts the hook from anywhere on this machine. */
export function hookCommand(file = HOOK_FILE): string {
  const isDeno = (process.versions as Record<string, string | undefined>)["deno"] !== undefined;
  return [process.execPath, ...(isDeno ? ["run", "-A"] : []), file].map(quoteForHost).join(" ");
}

function quoteForHost(word: string): string {
  const posix = shellQuote(word);
  return process.platform === "win32" && posix !== word ? `"${word}"` : posix;
}
