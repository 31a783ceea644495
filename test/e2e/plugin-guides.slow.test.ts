/**
 * Follows docs/writing-a-plugin.md as a new user would, from an empty folder outside the package, on Node, Deno and
 * Bun.
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, describe, it, test } from "node:test";
import { endProcessGroup, ROOT, startCommand, type ServiceProcess } from "../support/process.ts";
import { programOf, withoutRuntime, type RuntimeName } from "../support/runtimes.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// The guide requires a built package.
execFileSync(process.execPath, [join(ROOT, ".ci/build.mjs"), "--quick"], { stdio: "inherit" });

const page = readFileSync(join(ROOT, "docs/writing-a-plugin.md"), "utf8");
const blocks = new Map(
  [...page.matchAll(/<!-- plugin guide: (.+) -->\n```sh\n([\s\S]*?)```/g)].map((match) => [
    match[1] as string,
    match[2] as string,
  ]),
);
const EXAMPLES = ["notify-ntfy", "resource-denials", "resource-notes", "policy-url"];

function block(name: string): string {
  const found = blocks.get(name);
  assert.ok(found !== undefined, `the page has no block "${name}"`);
  return found;
}

const denoCache = temporaryFolder("assent-guide-deno-");
/** The folder after the block "begin", which installs the package. Each walk starts with a copy. */
let begun: Promise<string> | null = null;
after(async () => {
  for (const folder of [denoCache, await begun]) if (folder !== null) rmSync(folder, { recursive: true, force: true });
});

function begin(): Promise<string> {
  begun ??= (async () => {
    const walk = new Walk("node");
    await walk.run("begin");
    return walk.folder;
  })();
  return begun;
}

/** A new user's folder and terminals. */
class Walk {
  readonly folder = temporaryFolder("assent-guide-");
  readonly env: Record<string, string>;
  readonly #children: ChildProcess[] = [];
  readonly #runtime: RuntimeName;

  constructor(runtime: RuntimeName) {
    this.#runtime = runtime;
    const bin = join(this.folder, ".bin");
    mkdirSync(bin);
    if (runtime !== "node") symlinkSync(programOf(runtime) as string, join(bin, runtime));
    this.env = {
      ...(process.env as Record<string, string>),
      ASSENT_AGENTS: "",
      PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`,
      CLONE: ROOT,
      ASSENT_PORT: "0",
      NO_COLOR: "1",
      DENO_DIR: denoCache,
      DENO_NO_UPDATE_CHECK: "1",
    };
  }

  /** Runs a block and waits until it ends. Rejects if one of its commands fails. */
  async run(name: string): Promise<string> {
    return new Promise((resolve, reject) => {
      execFile("bash", ["-euc", block(name)], { cwd: this.folder, env: this.env }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${name}: ${error.message}\n${stdout}${stderr}`));
      });
    });
  }

  /** Starts a block that keeps running. Resolves when its output matches. `said` returns all of its output so far. */
  async stay(
    name: string,
    ready: RegExp,
  ): Promise<{ match: RegExpExecArray; said(): string; until(pattern: RegExp): Promise<RegExpExecArray> }> {
    const child = spawn("bash", ["-euc", block(name)], {
      cwd: this.folder,
      env: this.env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#children.push(child);
    let output = "";
    const until = (pattern: RegExp): Promise<RegExpExecArray> =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(output);
          if (match !== null) resolve(match);
        };
        child.stdout.on("data", look);
        child.once("close", () => reject(new Error(`${name} ended without ${String(pattern)}:\n${output}`)));
        look();
      });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    return { match: await until(ready), said: () => output, until };
  }

  /** Starts the service as the page says, and follows the page's instructions for the three printed lines. */
  async serve(): Promise<ServiceProcess> {
    const service = await startCommand(["bash", ["-euc", block(`serve ${this.#runtime}`)]], this.env, {
      cwd: this.folder,
      detached: true,
    });
    this.#children.push(service.child);
    for (const [, name, value] of service.output().matchAll(/^ {2}export (\w+)=(.*)$/gm))
      this.env[name as string] = value as string;
    return service;
  }

  async close(): Promise<void> {
    for (const child of this.#children) await endProcessGroup(child, "SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Walks from an empty folder through the block that prepares a part of the page. */
async function walked(runtime: RuntimeName, prepare: string, go: (walk: Walk) => Promise<void>): Promise<void> {
  const walk = new Walk(runtime);
  try {
    cpSync(await begin(), walk.folder, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith(".bin") || path.includes("node_modules"),
    });
    await walk.run(prepare);
    await go(walk);
  } finally {
    await walk.close();
  }
}

for (const runtime of ["node", "deno", "bun"] as const) {
  describe(`the guide to writing plugins, on ${runtime}`, { skip: withoutRuntime(runtime) }, () => {
    it("a notifier", async () => {
      await walked(runtime, "notifier prepare", async (walk) => {
        walk.env["NTFY_PORT"] = "0";
        const receiver = await walk.stay("notifier receiver", /waiting for messages on (\S+)/);
        walk.env["NTFY_SERVER"] = receiver.match[1] as string;
        await walk.serve();
        assert.match(await walk.run("notifier try"), /^approved$/m);
        const closed = await receiver.until(/^.*"title":"approved: stripe refund".*$/m);
        assert.deepEqual(JSON.parse(closed[0]), {
          topic: "approvals",
          title: "approved: stripe refund",
          message: "asked for by support-bot",
        });
        const [asked = ""] = /^.*"title":"support-bot asks.*$/m.exec(receiver.said()) ?? [];
        const { click, ...rest } = JSON.parse(asked) as { click: string };
        assert.deepEqual(rest, {
          topic: "approvals",
          title: "support-bot asks for stripe refund",
          message: "a person looks at every refund",
          priority: 4,
        });
        assert.match(click, /\/approve#/);
      });
    });

    it("a resource", async () => {
      await walked(runtime, "resource prepare", async (walk) => {
        const { url } = await walk.serve();
        const shown = /```json\n(.*)\n```/.exec(page)?.[1] ?? "";
        assert.deepEqual(JSON.parse(await walk.run("resource try")), JSON.parse(shown));
        const refused = (await walk.run("resource refused"))
          .replaceAll("}{", "}\n{")
          .split("\n")
          .map((line) => (JSON.parse(line) as { code: string }).code);
        assert.deepEqual(refused, [
          "MISSING_CREDENTIAL",
          "INSUFFICIENT_SCOPE",
          "VALIDATION_FAILED",
          "VALIDATION_FAILED",
          "METHOD_NOT_ALLOWED",
        ]);
        const openapi = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
        assert.deepEqual(Object.keys(openapi.paths["/v1/denials"] ?? {}), ["get"]);
      });
    });

    it("a resource with its own records", async () => {
      await walked(runtime, "notes prepare", async (walk) => {
        await walk.serve();
        const shown = /```text\n([\s\S]*?)```/.exec(page)?.[1];
        assert.equal(await walk.run("notes try"), shown);
      });
    });

    it("a policy source", async () => {
      await walked(runtime, "policies prepare", async (walk) => {
        walk.env["POLICY_PORT"] = "0";
        const server = await walk.stay("policies server", /serving central.yaml on (\S+)/);
        walk.env["POLICY_URL"] = server.match[1] as string;
        const service = await walk.serve();
        assert.equal(await walk.run("policies try"), "allowed\ndenied\n");
        await server.until(/^304 /m);
        assert.match(await walk.run("policies break"), /"active_version":2/);
        assert.match(service.output(), /:1:\d+: .*required/);
      });
    });
  });
}

test("the guide's test of a plugin passes", async () => {
  await walked("node", "resource prepare", async (walk) => {
    // The test runner sets this variable for this file. With it, a child test runner would not run any tests.
    delete walk.env["NODE_TEST_CONTEXT"];
    assert.match(await walk.run("test"), /^# pass 1$/m);
  });
});

test("the page shows the examples as they are, and they are short", () => {
  const files = [
    ...EXAMPLES.map((name) => `${name}/index.ts`),
    "resource-denials/page.js",
    "resource-denials/index.test.ts",
  ];
  const sources = files.map((name) => readFileSync(join(ROOT, "docs/examples", name), "utf8"));
  const shown = [...page.matchAll(/```(?:ts|js)\n([\s\S]*?)```/g)].map((match) => match[1] as string);
  assert.ok(shown.length >= files.length);
  for (const part of shown)
    assert.ok(
      sources.some((source) => source.includes(part)),
      `no example holds:\n${part}`,
    );
  for (const [i, source] of sources.entries())
    assert.ok(source.split("\n").length <= 140, `${files[i] as string} has 140 lines or more`);
});
