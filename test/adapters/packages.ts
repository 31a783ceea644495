/**
 * Installs frameworks at exact versions when a test needs them, because together they are larger than all other
 * packages.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { CACHE } from "../support/cache.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** What a test imports is looked into freely: the real types are not installed where this is compiled. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Module = any;

export interface Packages {
  /** Value for the `skip` option of a test: false, or the reason why it cannot run here. */
  skip: string | false;
  load(name: string): Promise<Module>;
  /** The folder of the installed packages; empty if they are not installed. */
  folder: string;
}

/** Installs packages. @param node the oldest Node version that the packages support */
export async function packages(versions: Record<string, string>, node = 20): Promise<Packages> {
  const load = (): never => {
    throw new Error("not installed");
  };
  const running = Number(process.versions.node.split(".")[0]);
  // Some packages run on an older Node than they declare. This variable forces a run.
  if (running < node && process.env["ASSENT_TEST_ANY_NODE"] !== "1")
    return { skip: `needs Node ${node}, and this is ${running}`, load, folder: "" };
  const manifest = JSON.stringify({ private: true, type: "module", dependencies: versions });
  const folder = join(CACHE, `assent-packages-${createHash("sha256").update(manifest).digest("hex").slice(0, 16)}`);
  if (!existsSync(folder)) {
    const fresh = temporaryFolder("assent-packages-new-", CACHE);
    writeFileSync(join(fresh, "package.json"), manifest);
    try {
      const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
      await promisify(execFile)("npm", args, { cwd: fresh, timeout: 300_000 });
      renameSync(fresh, folder);
    } catch (error) {
      rmSync(fresh, { recursive: true, force: true });
      if (!existsSync(folder))
        return { skip: `cannot be installed here: ${String(error).split("\n")[0]}`, load, folder: "" };
    }
  }
  const require = createRequire(join(folder, "package.json"));
  return { skip: false, folder, load: (name) => import(pathToFileURL(require.resolve(name)).href) as Promise<Module> };
}
