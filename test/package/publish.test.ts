/** The release pipeline without publishing: its dry run, and what it rejects. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { ROOT } from "../support/process.ts";

const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };

function publish(...args: string[]): { status: number | null; out: string; err: string } {
  // No registry is configured, so nothing can be published from here.
  const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, ".ci/publish.mjs"), ...args], {
    encoding: "utf8",
    env,
  });
  return { status, out: stdout, err: stderr };
}

test("the dry run prints what a tag would publish to npm, PyPI and a container registry", () => {
  const { status, out, err } = publish(`v${version}`, "--dry-run");
  assert.equal(status, 0, err);
  for (const command of [
    "npm publish --provenance --access public",
    "python3 -m twine upload --attestations",
    `--sbom=true --provenance=mode=max --tag <IMAGE>:${version} --push .`,
  ])
    assert.ok(out.includes(command), `${command} in\n${out}`);
  assert.match(out, /nothing was published\n$/);
});

test("a tag that differs from the version of any part is rejected, and each difference is named", () => {
  const { status, err } = publish("v99.0.0", "--dry-run");
  assert.equal(status, 1);
  for (const file of ["package.json", "clients/python/pyproject.toml", "CHANGELOG.md"])
    assert.ok(err.includes(file), `${file} in\n${err}`);
  assert.match(publish("0.2", "--dry-run").err, /the tag must be a version such as v0\.2\.0; got "0\.2"/);
});

test("nothing is published without the names that the owner has on the registries", () => {
  const { status, out, err } = publish(`v${version}`);
  assert.equal(status, 1);
  assert.equal(out, "", "no command ran");
  for (const name of ["NPM_PACKAGE", "PYPI_PROJECT", "IMAGE"]) assert.ok(err.includes(`${name} is not set`), err);
});

test("the workflow runs for tags only, tests first, and needs no stored token for npm and PyPI", () => {
  const workflow = parse(readFileSync(join(ROOT, ".github/workflows/release.yml"), "utf8")) as any;
  assert.deepEqual(workflow.on, { push: { tags: ["v*"] } });
  const { permissions, steps } = workflow.jobs.publish;
  assert.deepEqual(permissions, { contents: "read", packages: "write", "id-token": "write" });
  const commands = steps.flatMap(({ run }: { run?: string }) => run ?? []) as string[];
  const at = (text: string): number => commands.findIndex((command) => command.includes(text));
  assert.ok(at(".ci/run") >= 0 && at(".ci/run") < at(".ci/publish.mjs"));
  const secrets = readFileSync(join(ROOT, ".github/workflows/release.yml"), "utf8").match(/secrets\.\w+/g);
  assert.deepEqual(secrets, ["secrets.GITHUB_TOKEN"]);
});
