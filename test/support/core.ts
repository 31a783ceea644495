/**
 * Runs the test files that depend on a runtime (HTTP, sockets, streams, threads, timers, files, cryptography, SQLite)
 * with the test runners of Deno and Bun.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { ROOT } from "./process.ts";
import { denoPermissions, programOf, withoutRuntime } from "./runtimes.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** The files and folders that `deno task test` runs. */
const { tasks } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8")) as { tasks: { test: { command: string } } };
const CORE = tasks.test.command.split(" ").filter((word) => word.startsWith("build/test/"));

/** Slow tests of the domain's costs. They are not repeated here, because the domain does not depend on the runtime. */
const LONG = ["domain/policy-cost.slow.test.js", "domain/merkle-large.test.js"];

const filesOf = (paths: readonly string[]): string[] =>
  paths
    .flatMap((path) =>
      path.endsWith(".js")
        ? [`./${path}`]
        : readdirSync(join(ROOT, path), { recursive: true, encoding: "utf8" })
            .filter((name) => name.endsWith(".test.js"))
            .map((name) => `./${path}/${name}`),
    )
    .filter((path) => !LONG.some((name) => path.endsWith(name)));

function run(program: string, args: string[], env: Record<string, string>): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    // Deno prints colors if FORCE_COLOR is set to any value.
    const { FORCE_COLOR: _, ...inherited } = process.env;
    execFile(
      program,
      args,
      { cwd: ROOT, env: { ...inherited, NO_COLOR: "1", ...env }, maxBuffer: 64 << 20 },
      (error, stdout, stderr) => {
        resolve({
          code: error === null ? 0 : typeof error.code === "number" ? error.code : -1,
          output: stdout + stderr,
        });
      },
    );
  });
}

const RUNNERS = {
  deno: {
    args: ["test", ...denoPermissions("test"), ...filesOf(CORE)],
    counted: /^ok \| (\d+) passed \((\d+) steps\) \| 0 failed/m,
  },
  bun: {
    args: ["test", "--timeout", "120000", ...filesOf(["build/test/domain", ...CORE])],
    counted: /^ *(\d+) pass$/m,
  },
} as const;

/** Declares one test for a runtime: all of its test files pass. */
export function coreTests(runtime: keyof typeof RUNNERS): void {
  const { args, counted } = RUNNERS[runtime];
  it(`pass on ${runtime}`, { skip: withoutRuntime(runtime) }, async () => {
    const cache = temporaryFolder("assent-cache-");
    try {
      const { code, output } = await run(programOf(runtime) as string, [...args], {
        DENO_DIR: cache,
        DENO_NO_UPDATE_CHECK: "1",
      });
      const failures = output
        .split("\n")
        .filter((line) => /\.\.\. FAILED|^error:|^\(fail\)|^\S*Error:/.test(line))
        .slice(0, 60)
        .join("\n");
      assert.equal(code, 0, failures);
      const [, ...numbers] = counted.exec(output) ?? [];
      // A runner that finds no test exits with code 0, too.
      const passed = numbers.reduce((sum, number) => sum + Number(number), 0);
      assert.ok(passed > 300, `${passed} passed:\n${output.slice(-500)}`);
    } finally {
      rmSync(cache, { recursive: true, force: true });
    }
  });
}
