/**
 * Publishes a release from its tag: the package to npm, the Python client to PyPI, and the image to a registry. The names are
 * not in this file: `assent` on npm and PyPI belongs to other projects, so the owner of a name has to give it.
 *
 *   node .ci/publish.mjs v0.2.0 --dry-run   checks everything and prints the commands
 *   NPM_PACKAGE=@example/assent PYPI_PROJECT=example-assent IMAGE=ghcr.io/example/assent node .ci/publish.mjs v0.2.0
 *
 * It checks before it publishes anything: the tag is the version of all parts, the changelog has its section, and the
 * commit is the tagged one and unchanged.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(join(ROOT, path), "utf8");

class ReleaseError extends Error {}

function git(...args) {
  const { status, stdout } = spawnSync("git", args, { cwd: ROOT, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}

/** Returns everything that is wrong with releasing this version. */
function findFaults(tag, dryRun) {
  const version = /^v(\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?)$/.exec(tag ?? "")?.[1];
  if (version === undefined) return [`the tag must be a version such as v0.2.0; got ${JSON.stringify(tag ?? "")}`];
  const faults = [];
  const versions = {
    "package.json": JSON.parse(read("package.json")).version,
    "package-lock.json": JSON.parse(read("package-lock.json")).version,
    "clients/python/pyproject.toml": /^version = "(.+)"$/m.exec(read("clients/python/pyproject.toml"))?.[1],
  };
  for (const [file, found] of Object.entries(versions))
    if (found !== version) faults.push(`${file} has the version ${found}, and the tag ${tag}`);
  const heading = `^## ${dryRun ? "(?:Unreleased: )?" : ""}${version.replaceAll(".", "\\.")}$`;
  if (!new RegExp(heading, "m").test(read("CHANGELOG.md"))) faults.push(`CHANGELOG.md has no section "## ${version}"`);
  if (dryRun) return faults;
  if (git("rev-parse", "HEAD") !== git("rev-parse", `${tag}^{commit}`)) faults.push(`HEAD is not the commit of ${tag}`);
  if (git("status", "--porcelain") !== "") faults.push("the working tree has changes");
  for (const name of ["NPM_PACKAGE", "PYPI_PROJECT", "IMAGE"])
    if (!process.env[name]) faults.push(`${name} is not set: it names what you own on the registry`);
  return faults;
}

/** Returns the commands, each with what it does. */
function listCommands(version, names) {
  const [npm, pypi, image] = names;
  return [
    ["build the package", "npm", "ci", "--no-audit", "--no-fund"],
    ["build the package", "npm", "run", "build"],
    ["name the npm package", "npm", "pkg", "set", `name=${npm}`],
    [
      "publish to npm, with provenance (needs the workflow's OIDC token)",
      "npm",
      "publish",
      "--provenance",
      "--access",
      "public",
    ],
    ["name the Python distribution", "sed", "-i", `s/^name = .*/name = "${pypi}"/`, "clients/python/pyproject.toml"],
    ["build the wheel and the source distribution", "python3", "-m", "build", "clients/python"],
    [
      "publish to PyPI (trusted publishing)",
      "python3",
      "-m",
      "twine",
      "upload",
      "--attestations",
      `clients/python/dist/*`,
    ],
    [
      "build and publish the image for two architectures, with its bill of materials and provenance",
      "docker",
      "buildx",
      "build",
      "--file",
      "deploy/docker/node.Dockerfile",
      "--platform",
      "linux/amd64,linux/arm64",
      "--sbom=true",
      "--provenance=mode=max",
      "--tag",
      `${image}:${version}`,
      "--push",
      ".",
    ],
  ];
}

function run([what, program, ...args]) {
  process.stdout.write(`${what}\n`);
  const { status, error } = spawnSync(program, args, {
    cwd: ROOT,
    stdio: "inherit",
    shell: args.some((arg) => arg.endsWith("/*")),
  });
  if (error !== undefined || status !== 0)
    throw new ReleaseError(`"${program} ${args.join(" ")}" failed; what was published before it stays published`);
}

function main() {
  const args = process.argv.slice(2);
  const dryRun = args.includes("--dry-run");
  const tag = args.find((arg) => !arg.startsWith("--")) ?? process.env["GITHUB_REF_NAME"];
  const faults = findFaults(tag, dryRun);
  if (faults.length > 0) throw new ReleaseError(faults.join("\n"));
  const names = ["NPM_PACKAGE", "PYPI_PROJECT", "IMAGE"].map((name) => process.env[name] || `<${name}>`);
  const commands = listCommands(tag.slice(1), names);
  if (!dryRun) return commands.forEach(run);
  for (const [what, ...command] of commands) process.stdout.write(`# ${what}\n${command.join(" ")}\n`);
  const bill = join(ROOT, "dist/sbom.cdx.json");
  process.stdout.write(
    `# bill of materials: ${existsSync(bill) ? `${JSON.parse(readFileSync(bill, "utf8")).components.length} components in dist/sbom.cdx.json` : "made by the build, as dist/sbom.cdx.json"}\n`,
  );
  process.stdout.write("nothing was published\n");
}

try {
  main();
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error;
  process.stderr.write(`publish: ${error.message.replaceAll("\n", "\npublish: ")}\n`);
  process.exitCode = 1;
}
