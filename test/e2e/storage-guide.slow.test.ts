/**
 * Follows docs/writing-a-storage.md as a new user would: the example outside the package, its conformance suite, and
 * the service on it.
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { endProcessGroup, ROOT } from "../support/process.ts";
import { ALLOWED } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// The guide requires a built package.
execFileSync(process.execPath, [join(ROOT, ".ci/build.mjs"), "--quick"], { stdio: "inherit" });

const blocks = [
  ...readFileSync(join(ROOT, "docs/writing-a-storage.md"), "utf8").matchAll(
    /<!-- storage guide -->\n```sh\n([\s\S]*?)```/g,
  ),
].map((match) => match[1] as string);
/** libSQL is native code. */
const WITHOUT_LIBSQL = existsSync(join(ROOT, "node_modules/@libsql", `${process.platform}-${process.arch}-gnu`))
  ? false
  : `no libSQL for ${process.platform}-${process.arch} in node_modules`;
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;

describe("the guide to writing a storage", () => {
  const folder = temporaryFolder("assent-guide-");
  const env = {
    ...process.env,
    CLONE: ROOT,
    ASSENT_PORT: "0",
    ASSENT_ADMIN_KEY: ADMIN,
    // The only key of this service is not bound to an agent.
    ASSENT_AGENTS: "any",
    ASSENT_POLICIES: join(ROOT, "policies"),
  };
  // The test runner sets this variable for this file. With it, a child test runner would not run any tests.
  delete (env as Record<string, unknown>)["NODE_TEST_CONTEXT"];
  const services: ChildProcess[] = [];
  after(async () => {
    // A process that a failed test left behind would keep this process running.
    for (const child of services) await endProcessGroup(child, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  function serve(): Promise<{ child: ChildProcess; url: string }> {
    // Starts a process group, so that signals reach the service through the shell and npx.
    const child = spawn("bash", ["-euc", blocks[1] as string], {
      cwd: folder,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    services.push(child);
    const ended = new Promise((resolve) => child.once("close", resolve));
    return new Promise((resolve, reject) => {
      let said = "";
      const look = (chunk: Buffer): void => {
        said += chunk.toString();
        const url = /listening on (\S+)/.exec(said)?.[1];
        if (url !== undefined) resolve({ child, url });
      };
      child.stdout.on("data", look);
      child.stderr.on("data", look);
      void ended.then(() => reject(new Error(said)));
    });
  }
  test("the example passes the suite, outside the package", async () => {
    assert.equal(blocks.length, 3);
    const { devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      devDependencies: Record<string, string>;
    };
    assert.ok(blocks[0]?.includes(`tsx@${devDependencies["tsx"]}`), "the guide installs the tsx that the package has");
    await passesSuite(blocks[0] as string);
  });

  test("an SQL database that is not built in passes it, too", { skip: WITHOUT_LIBSQL }, () =>
    passesSuite(blocks[2] as string),
  );

  async function passesSuite(block: string): Promise<void> {
    const { code, out } = await new Promise<{ code: number; out: string }>((resolve) => {
      execFile("bash", ["-euc", block], { cwd: folder, env, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), out: stdout + stderr }),
      );
    });
    assert.equal(code, 0, out.slice(-2000));
    assert.match(out, /^# fail 0$/m);
    assert.ok(Number(/^# pass (\d+)$/m.exec(out)?.[1]) > 80, out.slice(-300));
  }

  test("the service runs on it, and starts again after SIGKILL in the middle of a write", async () => {
    const submit = async (url: string): Promise<{ id: string; status: string }> =>
      (await (
        await fetch(`${url}/v1/actions`, {
          method: "POST",
          headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
          body: JSON.stringify(ALLOWED),
        })
      ).json()) as never;
    const first = await serve();
    const { id } = await submit(first.url);
    await endProcessGroup(first.child, "SIGKILL");
    appendFileSync(join(folder, "data", "journal.jsonl"), '[["putMeta","half a li');
    const second = await serve();
    const found = await fetch(`${second.url}/v1/actions/${id}`, { headers: { authorization: `Bearer ${ADMIN}` } });
    assert.equal(((await found.json()) as { id: string }).id, id);
    assert.equal((await submit(second.url)).status, "allowed");
    await endProcessGroup(second.child, "SIGTERM");
  });
});
