/** Installs other versions of Node than the one that runs the tests. Each version is an npm package. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import "./cache.ts";
import { ROOT } from "./runtimes.ts";

const FOLDER = join(ROOT, "node_modules/.cache/assent-nodes");

/** Returns the path of a Node version, which is installed if necessary. Returns null if it cannot be installed. */
export function nodeOf(version: string): string | null {
  if (process.versions.node === version) return process.execPath;
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const program = (folder: string): string => join(folder, "node_modules", name, "bin/node");
  const folder = join(FOLDER, version);
  if (existsSync(program(folder))) return program(folder);
  // Install into a separate folder and rename it, because other test files can look for the program at the same time.
  const fresh = `${folder}-${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  try {
    writeFileSync(join(fresh, "package.json"), '{"private":true}');
    const args = ["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
    execFileSync("npm", [...args, `${name}@${version}`], { cwd: fresh, stdio: "ignore", timeout: 300_000 });
    if (!existsSync(folder)) renameSync(fresh, folder);
    return program(folder);
  } catch {
    return existsSync(program(folder)) ? program(folder) : null;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Returns a value for the `skip` option of a test: false, or the reason why it cannot run here. */
export function withoutNode(program: string | null): string | false {
  return program === null ? "this version of Node cannot be had from the registry" : false;
}
