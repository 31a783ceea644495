/** An adapter rejects a framework version that it does not support when it is imported, and names the version it found. */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { checkFramework, FRAMEWORKS, type Framework } from "../../clients/typescript/adapters/framework.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("the version of a framework", () => {
  const folder = temporaryFolder("assent-framework-");
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** A project with the package installed; the check starts two folders below it. */
  function install(name: string, version: string): string {
    const project = temporaryFolder("project-", folder);
    mkdirSync(join(project, "node_modules", name), { recursive: true });
    mkdirSync(join(project, "src", "agents"), { recursive: true });
    writeFileSync(join(project, "node_modules", name, "package.json"), JSON.stringify({ name, version }));
    return join(project, "src", "agents");
  }
  const supported = typeof process.getBuiltinModule === "function" ? false : "needs process.getBuiltinModule";

  it("is rejected if it is too old or too new", { skip: supported }, () => {
    for (const version of ["5.0.101", "8.0.0"])
      assert.throws(() => checkFramework("ai", [install("ai", version)]), {
        message: new RegExp(
          `^this adapter needs ai 6\\.0\\.0 or later, below 8\\.0\\.0; .*ai has ${version}\\. Run: npm install ai@7$`,
        ),
      });
    assert.throws(() => checkFramework("@openai/agents", [install("@openai/agents", "0.19.9")]));
  });

  it("is accepted from the oldest supported version on", () => {
    for (const [name, { oldest }] of Object.entries(FRAMEWORKS))
      checkFramework(name as Framework, [install(name, oldest)]);
    checkFramework("ai", [install("ai", "7.3.0-beta.1")]);
  });

  it("is not checked if the framework is not found, and the first folder that has it counts", () => {
    checkFramework("ai", [folder]);
    checkFramework("ai", [folder, install("ai", "6.1.0"), install("ai", "5.0.0")]);
  });
});
