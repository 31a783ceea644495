/**
 * Measures the cost of a coding agent's call: the time from the start of the hook's process to its exit, for an allowed
 * command, with a service on SQLite. `npm run bench:hook [calls]`, on the built package.
 * @needs hook
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { HOSTS } from "../clients/hook/hosts/answers.ts";
import { startHookService } from "../test/support/hook.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CALLS = Number(process.argv[2] ?? 100);
const BIN = join(ROOT, "dist/clients/hook/bin.cjs");

function once(
  args: string[],
  input: string,
  env: NodeJS.ProcessEnv,
): Promise<{ ms: number; out: string; code: number | null }> {
  return new Promise((resolve) => {
    const begun = performance.now();
    const child = spawn(process.execPath, args, { env, stdio: ["pipe", "pipe", "ignore"], cwd: tmpdir() });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.stdin.on("error", () => {});
    child.once("close", (code) => resolve({ ms: performance.now() - begun, out, code }));
    child.stdin.end(input);
  });
}

const at = (sorted: number[], part: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] as number).toFixed(0);

spawnSync(process.execPath, [join(ROOT, ".ci/build.mjs")], { stdio: "inherit" });
const hooks = await startHookService("policy: bench\nrules:\n  - { name: all, tool: shell, effect: allow }\n");
const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const base: NodeJS.ProcessEnv = { ...process.env, ...hooks.env, XDG_RUNTIME_DIR: folder };
// With this variable, Node would read certificates at every start: 46 ms for those of all public authorities, with or
// without a hook.
delete base["NODE_EXTRA_CA_CERTS"];
const event = (i: number): string =>
  JSON.stringify({
    session_id: "bench",
    cwd: folder,
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command: `git log -${i + 1} --oneline` },
    tool_use_id: `t${i}`,
  });
const daemon = spawn(process.execPath, [join(ROOT, "dist/src/cli/bin.js"), "hookd"], { env: base, stdio: "ignore" });
try {
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const ways: [string, string[], NodeJS.ProcessEnv, boolean][] = [
    ["node -e 0, for comparison", ["-e", "0"], base, false],
    ["assent-hook, hookd resident", [BIN, "--host", HOSTS[0]], { ...base, ASSENT_HOOKD: "" }, true],
    [
      "assent hook, hookd resident",
      [join(ROOT, "dist/src/cli/bin.js"), "hook", "--host", HOSTS[0]],
      { ...base, ASSENT_HOOKD: "" },
      true,
    ],
    ["assent-hook without hookd", [BIN, "--host", HOSTS[0]], base, true],
  ];
  for (const [name, args, env, decides] of ways) {
    const times: number[] = [];
    for (let i = -5; i < CALLS; i++) {
      const { ms, out, code } = await once(args, decides ? event(i + 5) : "", env);
      if (code !== 0 || out !== "") throw new Error(`${name}: ${code} ${out}`);
      if (i >= 0) times.push(ms);
    }
    times.sort((a, b) => a - b);
    process.stdout.write(
      `${name.padEnd(30)} p50 ${at(times, 0.5)} ms  p95 ${at(times, 0.95)} ms  p99 ${at(times, 0.99)} ms\n`,
    );
  }
} finally {
  daemon.kill();
  rmSync(folder, { recursive: true, force: true });
  await hooks.close();
}
