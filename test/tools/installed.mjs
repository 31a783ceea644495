/** Ends the process with the command to run if the packages of this workspace are missing or have other versions. */
import { readFileSync } from "node:fs";
import process from "node:process";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));

function isInstalled([name, version]) {
  try {
    // An alias names its package before the version: npm:typescript@5.9.3.
    return version.endsWith(read(`../../node_modules/${name}/package.json`).version);
  } catch {
    return false;
  }
}

const missing = Object.entries(read("package.json").devDependencies).filter((each) => !isInstalled(each));
if (missing.length > 0) {
  const names = missing.map((each) => each.join("@")).join(", ");
  process.stderr.write(
    `tests and checks need packages that are not installed (${names}); run "npm ci --workspaces --include-workspace-root"\n`,
  );
  process.exit(1);
}
