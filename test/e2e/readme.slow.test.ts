/** Runs the README's commands as a new user would: the service by its start command, and the tour in a shell. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { POLICIES } from "../support/service.ts";
import { ASSENT, ROOT, startProcess, stopProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const readme = readFileSync(join(ROOT, "README.md"), "utf8");

test("the two commands are the ones that package.json and CI know", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  assert.match(readme, /^npm ci && npm start$/m);
  assert.match(readme, /^npm ci && npm test$/m);
  assert.match(scripts["start"] ?? "", /src\/cli\/assent\.mjs serve$/);
  const ci = readFileSync(join(ROOT, ".ci/run"), "utf8");
  assert.deepEqual(
    [...ci.matchAll(/^(?:\w+=\S+ )?(npm [^|\n]*?)(?: \|.*)?$/gm)].map(([, command]) => command),
    ["npm ci --no-audit --no-fund", "npm test", "npm run --silent test:rest"],
  );
});

test("every page that the README names exists", () => {
  for (const [, path] of readme.matchAll(/\]\(([^)#]+)\)/g))
    assert.ok(readFileSync(join(ROOT, path as string)).length > 200, path);
});

test("the tour works, line by line", async () => {
  const data = temporaryFolder("assent-tour-");
  const service = await startProcess({
    ASSENT_DATA: join(data, "store"),
    ASSENT_POLICIES: POLICIES,
    ASSENT_AGENTS: "",
  });
  try {
    const shown = (name: string): string => new RegExp(`export ${name}=(\\S+)`).exec(service.output())?.[1] ?? "";
    const blocks = [...readme.matchAll(/<!-- tour -->\n```sh\n([\s\S]*?)```/g)].map((match) => match[1] as string);
    assert.ok(blocks.length === 8);
    // The tour runs in a separate folder, with links to the parts of the clone that it uses.
    for (const name of ["src", "node_modules", "package.json", "policies", ".ci"])
      symlinkSync(join(ROOT, name), join(data, name));
    const script = `set -eu\n${blocks.map((block, i) => `echo "== ${i}"\n${block}`).join("\n")}`;
    const env = {
      ...process.env,
      ASSENT_URL: shown("ASSENT_URL"),
      ADMIN_KEY: shown("ADMIN_KEY"),
      AGENT_KEY: shown("AGENT_KEY"),
    };
    const run = await runShell("sh", script, data, env);
    assert.equal(run.code, 0, run.output);
    const said = run.output.split(/== \d+\n/).slice(1);
    // The output of each step that the page prints. "…" matches anything.
    const prints = [...readme.matchAll(/<!-- (tour|prints) -->\n```\w+\n([\s\S]*?)```/g)];
    let step = -1;
    let compared = 0;
    for (const [, kind, words = ""] of prints) {
      if (kind === "tour") {
        step++;
        continue;
      }
      const pattern = words
        .trim()
        .split("…")
        .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
        .join("[\\s\\S]*");
      assert.match(said[step]?.trim() ?? "", new RegExp(`^${pattern}$`));
      compared++;
    }
    assert.equal(compared, blocks.length - 1);
    assert.deepEqual(
      readdirSync(data).sort(),
      [".ci", "node_modules", "package.json", "policies", "src", "store"],
      "the tour leaves nothing behind",
    );
  } finally {
    await stopProcess(service);
    rmSync(data, { recursive: true, force: true });
  }
});

test("the start command prints keys once, and only once", async () => {
  const data = temporaryFolder("assent-start-");
  try {
    const first = await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: POLICIES, ASSENT_AGENTS: "" });
    assert.equal([...first.output().matchAll(/assent_[\w-]{51}/g)].length, 2);
    const [, key] = /export ADMIN_KEY=(\S+)/.exec(first.output()) ?? [];
    const [, command] = /the command asks for the key:\s+(.+)/.exec(first.output()) ?? [];
    const shown = await runShell("bash", command ?? "false", ROOT, {
      ...process.env,
      ASSENT_URL: first.url,
      ASSENT_API_KEY: key ?? "",
    });
    assert.equal(shown.code, 0, shown.output);
    assert.equal(await stopProcess(first), 0);
    const second = await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: POLICIES, ASSENT_AGENTS: "" });
    assert.ok(!second.output().includes("assent_"));
    assert.equal(await stopProcess(second, "SIGINT"), 0);
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
});

test("the demo's checks pass, which its exit code reports", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...ASSENT, "demo"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr + stdout);
  assert.match(stdout, /all checks passed\n$/);
  const [, actions, verified, replayed] =
    /(\d+) actions:[\s\S]*?(\d+) proofs verified[\s\S]*?(\d+) decisions replayed/.exec(stdout) ?? [];
  assert.ok(Number(actions) >= 40);
  assert.deepEqual([verified, replayed], [actions, actions]);
  assert.ok(
    !stdout.includes("\u001b") && !stdout.includes("\u202e"),
    "no colours and no marks of the actions' own on a pipe",
  );
});

function runShell(
  shell: string,
  script: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(shell, ["-c", script], { cwd, env });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("close", (code) => resolve({ code, output }));
  });
}
