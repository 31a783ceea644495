/** Follows docs/guide.md from top to bottom in one shell, as a new user would. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../support/postgres.ts";
import { ROOT } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const blocks = [
  ...readFileSync(join(ROOT, "docs/guide.md"), "utf8").matchAll(/<!-- guide -->\n```sh\n([\s\S]*?)```/g),
].map((match) => match[1] as string);
const MARK = "=== end of block";

test("the guide works from top to bottom", async () => {
  const folder = temporaryFolder("assent-guide-");
  const env: Record<string, string | undefined> = {
    ...process.env,
    CLONE: ROOT,
    ASSENT_PORT: String(await freePort()),
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
  };
  for (const name of ["NODE_TEST_CONTEXT", "ASSENT_URL", "ASSENT_API_KEY", "DATABASE_URL"]) delete env[name];
  // Redirect stderr to stdout, because the page shows both. The trap stops the service when the shell exits.
  const script = `set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\nexec 2>&1\n${blocks.map((block) => `${block}\necho "${MARK}"\n`).join("")}`;
  const child = spawn("bash", ["-c", script], {
    cwd: folder,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    const code = await new Promise<number | null>((resolve) => child.on("exit", resolve));
    const parts = said.split(`${MARK}\n`);
    assert.equal(code, 0, `block ${parts.length} of ${blocks.length} failed:\n${parts.at(-1) ?? ""}`);
    const shows = (block: number, ...patterns: RegExp[]): void => {
      for (const pattern of patterns) assert.match(parts[block] ?? "", pattern, `block ${block + 1}`);
    };
    shows(1, /6 passed, 0 failed/);
    shows(2, /require_approval/, /params\.amount <= 100/);
    shows(4, /"kind":"git","commit":"[0-9a-f]{40}"/);
    assert.deepEqual(
      [...(parts[5] ?? "").matchAll(/allowed|pending_approval/g)]
        .map(([word]) => word)
        .filter((word, i, all) => word !== all[i - 1]),
      ["allowed", "pending_approval"],
    );
    shows(6, /FAIL/, /a test pins the old limit/);
    shows(7, /6 passed, 0 failed/, /small refunds/);
    shows(8, /1 /, /require_approval.*allow/s);
    shows(9, /small refunds/, /flip/);
    shows(10, /assent_/);
    shows(11, /allowed/);
    shows(12, /allowed/, /"flipped":1/);
  } finally {
    try {
      process.kill(-(child.pid as number), "SIGKILL");
    } catch {
      // The process has already exited.
    }
    rmSync(folder, { recursive: true, force: true });
  }
});
