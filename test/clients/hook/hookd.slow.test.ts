/** The background process: one for each user, private, and never in the way of a decision. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createConnection, createServer, type AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, test, type TestContext } from "node:test";
import { runHookd } from "../../../clients/hook/hookd.ts";
import { createSocketFolder, socketPath } from "../../../clients/hook/hookd-socket.ts";
import { VERSION } from "../../../src/version.ts";
import { assent } from "../../support/cli.ts";
import { approveNext, runHook, startHookService, type HookService } from "../../support/hook.ts";
import { NODE, scriptOf } from "../../support/runtimes.ts";
import { until } from "../../support/wait.ts";
import { BEFORE, passes, stops } from "./payloads.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let hooks: HookService;
before(async () => {
  hooks = await startHookService();
});
after(() => hooks.close());

interface Stage {
  env: Record<string, string>;
  path: string;
}

/** A separate runtime folder, whose processes end with the test. */
function stage(t: TestContext): Stage {
  const folder = temporaryFolder("assent-hd-");
  const env = { ...hooks.env, ASSENT_HOOKD: "on", XDG_RUNTIME_DIR: folder };
  const path = socketPath(env, VERSION) as string;
  t.after(async () => {
    // A hookd whose socket is gone ends.
    rmSync(folder, { recursive: true, force: true });
    await Promise.resolve();
  });
  return { env, path };
}

const about = (command: string): string => JSON.stringify(BEFORE["claude-code"]).replace("ls -la src", command);
async function call(command: string, env: Record<string, string>, args: string[] = []): Promise<string> {
  const { out, code } = await runHook("claude-code", about(command), env, args);
  const given = { stdout: out, code };
  return stops("claude-code", given) ? `stops: ${out}` : passes("claude-code", given) ? "runs" : `?${code} ${out}`;
}

/** Whether a process listens there and sends heartbeats. */
function lives(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection(path);
    const end = (alive: boolean): void => {
      socket.destroy();
      done(alive);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.once("data", () => end(true));
    socket.once("error", () => end(false));
  });
}

function daemon(t: TestContext, { env, path }: Stage): ChildProcess {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const child = spawn(process.execPath, [...NODE, scriptOf("clients/hook/daemon")], {
    env: { ...process.env, ...env },
    stdio: "ignore",
  });
  t.after(() => child.kill("SIGKILL"));
  return child;
}
const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Listens like hookd, and answers as the test says. */
async function impostor(t: TestContext, path: string, answer: string): Promise<() => number> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let asked = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    // A launcher that starts another hookd only checks whether one is alive.
    socket.once("data", () => asked++);
    socket.resume().once("end", () => socket.end(answer));
  });
  await new Promise<void>((done) => server.listen(path, done));
  chmodSync(path, 0o600);
  t.after(() => new Promise((done) => server.close(done)));
  return () => asked;
}
const ALLOWS = `${JSON.stringify({ stdout: "", stderr: "", code: 0 })}\n`;

describe("hookd", () => {
  test("is started by the first call, only for its user, and answers later calls", async (t) => {
    const at = stage(t);
    assert.equal(await call("allowed", at.env), "runs");
    await until("hookd listens", () => lives(at.path));
    assert.equal(lstatSync(at.path).mode & 0o777, 0o600);
    assert.equal(lstatSync(at.path).uid, process.getuid?.());
    assert.equal(lstatSync(dirname(at.path)).mode & 0o777, 0o700);
    assert.equal(await call("allowed", at.env), "runs");
    assert.match(await call("denied", at.env), /^stops: .*not this one/);
    const other = await call("allowed", { ...at.env, ASSENT_API_KEY: "ask_wrong" });
    assert.match(other, /does not accept this agent's key/, "each call is decided with its own key");
    assert.match(await call("allowed", { ...at.env, ASSENT_URL: "http://127.0.0.1:1" }), /no service responds at/);
  });

  test("answers eight concurrent calls", async (t) => {
    const at = stage(t);
    daemon(t, at);
    await until("hookd listens", () => lives(at.path));
    const eight = await Promise.all(Array.from({ length: 8 }, (_, i) => call(`allowed ${i % 2}`, at.env)));
    assert.deepEqual(eight, Array<string>(8).fill("runs"));
  });

  test("waits for an approval as long as --wait says, as a worker does", async (t) => {
    const at = stage(t);
    const waits: (string | null)[] = [];
    const recorder = createHttpServer((request, response) => {
      const url = new URL(request.url ?? "/", hooks.url);
      if (url.pathname.startsWith("/v1/actions/")) waits.push(url.searchParams.get("wait"));
      const { authorization = "", "content-type": type = "application/json", prefer = "" } = request.headers;
      const headers = { authorization, "content-type": type, prefer: String(prefer) };
      const init = request.method === "POST" ? { body: Readable.toWeb(request), duplex: "half" } : {};
      void fetch(url, { method: request.method as string, headers, ...init } as RequestInit).then(async (answer) => {
        response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
        response.end(await answer.text());
      });
    });
    await new Promise<void>((done) => recorder.listen(0, "127.0.0.1", done));
    t.after(() => recorder.close());
    const env = { ...at.env, ASSENT_URL: `http://127.0.0.1:${(recorder.address() as AddressInfo).port}` };
    assert.match(await call("asked with a short wait", { ...env, ASSENT_HOOKD: "off" }, ["--wait", "1"]), /waits for/);
    daemon(t, at);
    await until("hookd listens", () => lives(at.path));
    assert.match(await call("asked with a short wait", env, ["--wait", "1"]), /waits for/);
    assert.ok(waits.length >= 2);
    assert.ok(waits.every((wait) => Number(wait) <= 1));
    await approveNext(hooks);
  });

  test("exits when idle, and removes its socket", async (t) => {
    const { path } = stage(t);
    createSocketFolder(path);
    assert.equal(await runHookd({ path, version: VERSION, idle: 50 }), true);
    assert.equal(lstatSync(path, { throwIfNoEntry: false }), undefined);
  });

  test("replaces a socket that no process listens on", async (t) => {
    const at = stage(t);
    const first = daemon(t, at);
    await until("hookd listens", () => lives(at.path));
    first.kill("SIGKILL");
    await until("hookd has exited", () => ended(first));
    assert.ok(lstatSync(at.path).isSocket());
    assert.equal(await call("allowed", at.env), "runs");
    await until("another hookd listens", () => lives(at.path));
  });

  test("only one of several that start concurrently stays", async (t) => {
    const at = stage(t);
    const all = Array.from({ length: 4 }, () => daemon(t, at));
    await until("a hookd listens", () => lives(at.path));
    await until("the others have ended", () => all.filter(ended).length === 3);
    assert.ok(await lives(at.path), "none of them took the socket of the one that stayed");
    assert.equal(await call("allowed", at.env), "runs");
  });

  test("a suspended one does not prevent decisions, and is replaced", async (t) => {
    const at = stage(t);
    const stopped = daemon(t, at);
    await until("hookd listens", () => lives(at.path));
    const first = lstatSync(at.path).ino;
    await until("another hookd listens", async () => {
      stopped.kill("SIGSTOP");
      assert.equal(await call("allowed", at.env), "runs");
      return lstatSync(at.path, { throwIfNoEntry: false })?.ino !== first;
    });
    assert.match(await call("denied", at.env), /^stops: .*not this one/);
    stopped.kill("SIGCONT");
    await until("the first one has ended", () => ended(stopped));
    assert.ok(await lives(at.path));
  });

  test("is killed while it holds a call: the call is still held, and runs once", async (t) => {
    const at = stage(t);
    const killed = daemon(t, at);
    await until("hookd listens", () => lives(at.path));
    const held = call("asked once", at.env);
    const pending = async (): Promise<{ id: string }[]> =>
      (await hooks.service.call("GET", "/v1/actions?status=pending_approval", { key: hooks.service.admin })).body
        .actions;
    await until("the call waits", async () => (await pending()).length > 0);
    killed.kill("SIGKILL");
    await approveNext(hooks);
    assert.equal(await held, "runs");
    assert.deepEqual(await pending(), []);
    assert.match(await call("asked once", at.env, ["--wait", "0"]), /waits for approval/);
  });

  test("exits when its folder is deleted, before it starts and while it runs, and does not create it", async (t) => {
    const at = stage(t);
    const running = daemon(t, at);
    await until("hookd listens", () => lives(at.path));
    rmSync(dirname(at.path), { recursive: true });
    await until("hookd has exited", () => ended(running));
    const late = spawn(process.execPath, [...NODE, scriptOf("clients/hook/daemon")], {
      env: { ...process.env, ...at.env },
      stdio: "ignore",
    });
    t.after(() => late.kill("SIGKILL"));
    await until("the late one has ended", () => ended(late));
    assert.equal(lstatSync(dirname(at.path), { throwIfNoEntry: false }), undefined);
  });

  test("reports in one line that it cannot listen, and leaves no files", async (t) => {
    const { env, path } = stage(t);
    const hookd = async (): Promise<[code: number | null, err: string]> => {
      const { code, err } = await assent(["hookd"], { env });
      return [code, err.trim()];
    };
    mkdirSync(path, { recursive: true, mode: 0o700 });
    await assert.rejects(runHookd({ path, version: VERSION }), /EISDIR|EEXIST|ENOTEMPTY/);
    assert.match((await hookd()).join(" "), /^1 assent: hookd cannot listen: [^\n]+$/);
    assert.deepEqual(readdirSync(dirname(path)), [basename(path)]);
    rmSync(path, { recursive: true });
    chmodSync(dirname(path), 0o777);
    assert.match((await hookd()).join(" "), /^1 assent: hookd cannot listen: [^\n]+ is not safe[^\n]+$/);
    assert.deepEqual(readdirSync(dirname(path)), []);
    rmSync(dirname(path), { recursive: true });
    writeFileSync(dirname(path), "");
    assert.match((await hookd()).join(" "), /^1 assent: hookd cannot listen: [^\n]+$/);
  });

  test("of another version is not used", async (t) => {
    const { path } = stage(t);
    assert.notEqual(socketPath(process.env, "1.0.0"), socketPath(process.env, "1.0.1"));
    createSocketFolder(path);
    const end = runHookd({ path, version: "another", idle: 3_000 });
    await until("hookd listens", () => lives(path));
    const answer = await new Promise<string>((done) => {
      let text = "";
      const socket = createConnection({ path, allowHalfOpen: true });
      socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
      socket.on("end", () => done(text));
      socket.end(
        `${JSON.stringify({ version: VERSION, host: "claude-code", cwd: "/", project: null, deadline: 5, maxWait: null, env: {} })}\n{}`,
      );
    });
    assert.equal(answer.trim(), "null");
    rmSync(path);
    assert.equal(await end, true);
  });
});

describe("the hook does not use a hookd", () => {
  test("whose socket or folder other users can open", async (t) => {
    for (const [loosen, mode] of [
      ["", 0o660],
      ["", 0o606],
      ["..", 0o777],
      ["..", 0o770],
    ] as const) {
      const { env, path } = stage(t);
      const asked = await impostor(t, path, ALLOWS);
      chmodSync(join(path, loosen), mode);
      assert.match(await call("denied", env), /^stops: .*not this one/);
      assert.equal(asked(), 0, `${loosen} ${mode.toString(8)}`);
    }
  });

  test("with its folder behind a symbolic link", async (t) => {
    const [real, link] = [stage(t), stage(t)];
    const asked = await impostor(t, real.path, ALLOWS);
    mkdirSync(dirname(link.path), { mode: 0o700 });
    symlinkSync(real.path, link.path);
    assert.match(await call("denied", link.env), /^stops: .*not this one/);
    rmSync(dirname(link.path), { recursive: true });
    symlinkSync(dirname(real.path), dirname(link.path));
    assert.match(await call("denied", link.env), /^stops: .*not this one/);
    assert.equal(asked(), 0);
  });

  test("of another user", { skip: process.getuid?.() !== 0 && "only root may give a socket away" }, async (t) => {
    const { env, path } = stage(t);
    const asked = await impostor(t, path, ALLOWS);
    const { chownSync } = await import("node:fs");
    chownSync(path, 12_345, 12_345);
    assert.match(await call("denied", env), /^stops: .*not this one/);
    assert.equal(asked(), 0);
  });
});

test("that answers incompletely or incorrectly: a worker decides", async (t) => {
  for (const answer of [
    "",
    "\n",
    "null\n",
    "{}\n",
    '{"stdout":"","stderr":"","code":0',
    "[]",
    '{"stdout":"","stderr":"","code":1}',
  ]) {
    const { env, path } = stage(t);
    const asked = await impostor(t, path, answer);
    assert.match(await call("denied", env), /^stops: .*not this one/, answer);
    assert.ok(asked() > 0, answer);
  }
});
