/** What the watcher of a policy folder reports (plugins/policy-files/watch.ts). */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folderSignature, watchFolder } from "../../../plugins/policy-files/watch.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { pause, until } from "../../support/wait.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

test("a state to which the folder returns is reported again if a later state was loaded in between", async () => {
  const folder = temporaryFolder("assent-watch-");
  const sign = (): Promise<string> => folderSignature(folder, false);
  let loaded = await sign();
  let reports = 0;
  const options = { recursive: false, pollMs: 20, log: quiet, loaded: () => loaded };
  const watching = watchFolder(folder, options, () => void reports++);
  try {
    writeFileSync(join(folder, "one.yaml"), "1");
    await until("the file is reported", () => reports === 1);
    await pause(400);
    assert.equal(reports, 1, "a state that is being loaded, or that failed, is reported once");
    // The load reads the folder while a second file exists.
    writeFileSync(join(folder, "two.yaml"), "2");
    loaded = await sign();
    rmSync(join(folder, "two.yaml"));
    await until("the deletion is reported", () => reports === 2);
    loaded = await sign();
  } finally {
    await watching.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
