/** Installs the packages of this workspace, with those of the service, if some are missing or have other versions. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
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
  const command = "npm ci --workspaces --include-workspace-root --no-audit --no-fund";
  process.stderr.write(
    `tests and checks need ${missing.length} packages that are not installed; running "${command}"\n`,
  );
  const { status } = spawnSync(command, { cwd: ROOT, shell: true, stdio: ["ignore", 2, 2] });
  if (status !== 0) process.exit(1);
}
