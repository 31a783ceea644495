/**
 * Runs the instructions in deploy/, as far as this machine can.
 * @needs events
 */
import { needs } from "../support/features.ts";
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { pathToFileURL } from "node:url";
import { makeCertificate } from "../support/receiver.ts";
import { nodeOf, withoutNode } from "../support/nodes.ts";
import { freePort } from "../support/postgres.ts";
import { ROOT, startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { programOf, withoutRuntime, type RuntimeName } from "../support/runtimes.ts";
import { ALLOWED, ASKED, FEW_POLICIES } from "../support/service.ts";
import { eventually, until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const text = (path: string): string => readFileSync(join(ROOT, "deploy", path), "utf8");

function programPath(name: string): string | null {
  return (
    [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"]
      .map((folder) => join(folder, name))
      .find((path) => existsSync(path)) ?? null
  );
}
const withoutProgram = (name: string): string | false =>
  programPath(name) === null ? `no ${name} on this machine` : false;

/** Returns the instructions of a Dockerfile's last stage, in order. */
function stage(file: string): { name: string; rest: string }[] {
  const lines = text(file)
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const last = lines.findLastIndex((line) => line.startsWith("FROM "));
  return lines
    .slice(last)
    .map((line) => ({ name: line.split(" ")[0] as string, rest: line.slice(line.indexOf(" ") + 1) }));
}

/** The Node version of the images. */
const NODE = /^FROM node:(\S+?)-/m.exec(text("docker/node.Dockerfile"))?.[1] ?? "";
const newerNode = nodeOf(NODE);

describe("the Dockerfiles", () => {
  const app = temporaryFolder("assent-image-");
  before(() => {
    for (const name of ["package.json", "package-lock.json", ".npmrc"]) copyFileSync(join(ROOT, name), join(app, name));
    const env = { ...process.env };
    delete env["NODE_ENV"];
    execFileSync("npm", ["ci", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline", "--silent"], {
      cwd: app,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    execFileSync(process.execPath, [join(ROOT, ".ci/build.mjs"), "--quick"], { stdio: "inherit" });
    // The image has no development packages, which only a whole build bundles. Other tests leave either.
    const { bundled } = JSON.parse(readFileSync(join(ROOT, "dist/.build.json"), "utf8")) as { bundled: boolean };
    if (!bundled) execFileSync(process.execPath, [join(ROOT, ".ci/build.mjs")], { stdio: "inherit" });
    cpSync(join(ROOT, "dist"), join(app, "dist"), { recursive: true });
  });
  after(() => rmSync(app, { recursive: true, force: true }));

  for (const runtime of ["node", "deno", "bun"] as const) {
    it(
      `for ${runtime} starts a healthy service as a user who can write only its data folder`,
      { skip: runtime === "node" ? withoutNode(newerNode) : withoutRuntime(runtime) },
      async () => {
        const instructions = stage(`docker/${runtime}.Dockerfile`);
        const all = (name: string): string[] => instructions.filter((one) => one.name === name).map(({ rest }) => rest);
        assert.match(all("FROM")[0] ?? "", /:[\w-]*\d+\.\d+\.\d+/, "the base image is pinned");
        const root = temporaryFolder("assent-root-");
        const inImage = (path: string): string => (path.startsWith("/") ? join(root, path) : join(root, "app", path));
        try {
          mkdirSync(join(root, "app"));
          for (const copy of all("COPY")) {
            const words = copy.split(" ").filter((word) => !word.startsWith("--"));
            const to = words.pop() as string;
            for (const from of words)
              cpSync(
                from.startsWith("/app/") ? join(app, from.slice(5)) : join(ROOT, from),
                to.endsWith("./") || to === "./" ? join(inImage(to), from) : inImage(to),
                { recursive: true, verbatimSymlinks: true },
              );
          }
          const data = join(root, "data");
          mkdirSync(data, { mode: 0o700 });
          const [uid, gid] = (all("USER")[0] ?? "").split(":").map(Number) as [number, number];
          assert.ok(uid > 0 && gid > 0, "the user is not root");
          const asUser = process.getuid?.() === 0 ? { uid, gid } : {};
          if ("uid" in asUser) chownSync(data, uid, gid);
          const scratch = join(root, "tmp");
          mkdirSync(scratch);
          chmodSync(scratch, 0o1777);
          chmodSync(root, 0o755);

          const env: Record<string, string> = {
            PATH: process.env["PATH"] ?? "",
            TMPDIR: scratch,
            HOME: "/nonexistent",
          };
          for (const pair of all("ENV").join(" ").split(" "))
            env[pair.split("=")[0] as string] = pair.slice(pair.indexOf("=") + 1);
          const port = String(await freePort());
          Object.assign(env, {
            ASSENT_HOST: "127.0.0.1",
            ASSENT_PORT: port,
            ASSENT_DATA: data,
            ASSENT_POLICIES: join(root, "policies"),
            DENO_DIR: join(scratch, "deno"),
          });
          // The checkout may be in a folder that only root may enter.
          const installed = join(root, "runtime");
          copyFileSync(runtime === "node" ? (newerNode as string) : (programOf(runtime) as string), installed);
          const words = (json: string): [string, string[]] => {
            const [program, ...args] = JSON.parse(json) as [RuntimeName, ...string[]];
            assert.equal(program, runtime);
            return [
              installed,
              args.map((arg) =>
                arg
                  .replace(/\/app,\/data,\/policies\b/, [join(root, "app"), data, join(root, "policies")].join(","))
                  .replace("=/data", `=${data}`),
              ),
            ];
          };
          const [program, args] = words(all("CMD")[0] as string);
          const child = spawn(program, args, {
            cwd: join(root, "app"),
            env,
            stdio: ["ignore", "pipe", "pipe"],
            ...asUser,
          });
          let said = "";
          const ended = new Promise<unknown>((resolve) =>
            child.once("exit", (code, signal) => resolve(code ?? signal)),
          );
          await new Promise<void>((resolve, reject) => {
            const look = (chunk: Buffer): void => {
              said += chunk.toString();
              if (said.includes("is listening on")) resolve();
            };
            child.stdout.on("data", look);
            child.stderr.on("data", look);
            void ended.then(() => reject(new Error(said)));
          });
          const check = /CMD (\[.*\])$/.exec(all("HEALTHCHECK")[0] ?? "")?.[1] ?? "[]";
          const healthy = (): Promise<number> =>
            new Promise((resolve) => {
              const [tool, given] = words(check);
              execFile(tool, given, { cwd: join(root, "app"), env, ...asUser }, (error) =>
                resolve(error === null ? 0 : Number(error.code)),
              );
            });
          assert.equal(await healthy(), 0, said);
          child.kill((all("STOPSIGNAL")[0] ?? "SIGKILL") as NodeJS.Signals);
          assert.equal(await ended, 0, said);
          assert.equal(await healthy(), 1, "the health check can fail");
        } finally {
          rmSync(root, { recursive: true, force: true });
        }
      },
    );
  }

  it("copy all files that the build reads, only files that .dockerignore permits, and no store", async () => {
    const { FILES } = (await import(pathToFileURL(join(ROOT, ".ci/build.mjs")).href)) as { FILES: string[] };
    const kept = readFileSync(join(ROOT, ".dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    for (const runtime of ["node", "deno", "bun"]) {
      assert.match(text(`docker/${runtime}.Dockerfile`), new RegExp(`^FROM node:${NODE.replaceAll(".", "\\.")}-`, "m"));
      const copied = text(`docker/${runtime}.Dockerfile`)
        .split("\n")
        .filter((line) => line.startsWith("COPY ") && !line.includes("--from"));
      const sources = copied.flatMap((line) => line.split(" ").slice(1, -1));
      for (const source of sources) assert.ok(kept.includes(source) && existsSync(join(ROOT, source)), source);
      for (const input of FILES) assert.ok(sources.includes(input), `${runtime}.Dockerfile does not copy ${input}`);
    }
    assert.ok(!kept.some((name) => name.startsWith("data")));
  });
});

test(
  "the systemd unit is valid and restricts the service's permissions",
  { skip: withoutProgram("systemd-analyze") },
  () => {
    const folder = temporaryFolder("assent-unit-");
    try {
      const unit = join(folder, "assent.service");
      // The path of Node depends on the machine, and the documentation that the unit names is not installed here.
      writeFileSync(unit, text("systemd/assent.service").replace("/usr/bin/node", process.execPath));
      const verified = execFileSync("systemd-analyze", ["verify", "--man=no", unit], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      });
      assert.equal(verified, "");
      // Exposure levels range from 0 (fully protected) to 10 (unprotected). The threshold of 20 fails a level above 2.0.
      execFileSync("systemd-analyze", ["security", "--offline=true", "--threshold=20", unit], {
        stdio: ["ignore", "pipe", "inherit"],
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

test("the Caddyfile is valid", { skip: withoutProgram("caddy") }, () => {
  execFileSync("caddy", ["validate", "--adapter", "caddyfile", "--config", join(ROOT, "deploy/proxy/Caddyfile")], {
    env: { ...process.env, ASSENT_HOSTNAME: "localhost", HOME: tmpdir() },
    stdio: ["ignore", "ignore", "pipe"],
  });
});

test(
  "behind the Caddy example, events arrive immediately, and a client that disconnects frees its stream",
  { skip: withoutProgram("caddy") },
  async () => {
    const folder = temporaryFolder("assent-caddy-");
    const service = await startProcess({
      ASSENT_DATA: join(folder, "data"),
      ASSENT_POLICIES: FEW_POLICIES,
      ASSENT_ADMIN_KEY: ADMIN,
    });
    const port = await freePort();
    // No certificate is requested for an address that has only a port.
    const env = {
      ...process.env,
      HOME: folder,
      ASSENT_HOSTNAME: `http://127.0.0.1:${port}`,
      ASSENT_UPSTREAM: new URL(service.url).host,
    };
    writeFileSync(join(folder, "Caddyfile"), `{\n\tadmin off\n}\n${text("proxy/Caddyfile")}`);
    const caddy = spawn(
      programPath("caddy") as string,
      ["run", "--adapter", "caddyfile", "--config", join(folder, "Caddyfile")],
      { env, stdio: "ignore" },
    );
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    try {
      await until("Caddy listens", () =>
        fetch(`http://127.0.0.1:${port}/healthz`).then(
          ({ status }) => status === 200,
          () => false,
        ),
      );
      // One more than the limit of a key, one after another.
      for (let i = 0; i <= 20; i++) {
        const over = new AbortController();
        const stream = await eventually(
          async () => {
            const answer = await fetch(`http://127.0.0.1:${port}/v1/events`, { headers, signal: over.signal });
            return answer.status === 429 ? undefined : answer;
          },
          () => `stream ${i + 1} is refused though those before it are gone`,
        );
        assert.equal(stream.status, 200, `stream ${i + 1}`);
        if (i === 20) {
          const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
          assert.equal(
            (
              await fetch(`http://127.0.0.1:${port}/v1/actions`, {
                method: "POST",
                headers,
                body: JSON.stringify(ALLOWED),
              })
            ).status,
            200,
          );
          for (let seen = ""; !/^id: \d+$/m.test(seen);)
            seen += Buffer.from((await reader.read()).value ?? []).toString("utf8");
        }
        over.abort();
      }
    } finally {
      caddy.kill();
      await stopProcess(service);
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

describe("behind the nginx example", { skip: withoutProgram("nginx") || withoutProgram("openssl") }, () => {
  const folder = temporaryFolder("assent-nginx-");
  let service: ServiceProcess;
  let nginx: ChildProcess;
  let port: number;
  let ca: string;

  before(async () => {
    writeFileSync(
      join(folder, "assent.yaml"),
      "server: { trusted_proxies: 1 }\nrate_limits: { bad_keys_per_minute: 5 }\n",
    );
    service = await startProcess(
      { ASSENT_DATA: join(folder, "data"), ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN },
      ["--config", join(folder, "assent.yaml")],
    );
    const { cert, certFile, keyFile } = makeCertificate("assent.example.com");
    ca = cert;
    port = await freePort();
    const site = text("proxy/nginx.conf")
      .replace("server 127.0.0.1:8000", `server ${new URL(service.url).host}`)
      .replace("listen 80;", `listen 127.0.0.1:${await freePort()};`)
      .replace("listen 443", `listen 127.0.0.1:${port}`)
      .replace("/etc/ssl/assent/fullchain.pem", certFile)
      .replace("/etc/ssl/assent/privkey.pem", keyFile);
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((part) => `${part}_temp_path ${folder}/${part};`)
      .join(" ");
    writeFileSync(
      join(folder, "nginx.conf"),
      `${process.getuid?.() === 0 ? "user root; " : ""}daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; worker_processes 1; events {} http { access_log off; ${temporary} ${site} }`,
    );
    nginx = spawn(programPath("nginx") as string, ["-p", folder, "-c", join(folder, "nginx.conf")], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    await until("nginx listens", () =>
      call("GET", "/healthz").then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  });
  after(async () => {
    nginx.kill();
    await stopProcess(service);
    rmSync(folder, { recursive: true, force: true });
  });

  function open(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port,
          servername: "assent.example.com",
          ca,
          method,
          path,
          headers: {
            host: "assent.example.com",
            authorization: `Bearer ${ADMIN}`,
            ...(body === undefined ? {} : { "content-type": "application/json" }),
            ...headers,
          },
        },
        resolve,
      );
      sent.once("error", reject);
      sent.end(body);
    });
  }

  async function call(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<{ status: number; text: string }> {
    const answer = await open(method, path, headers, body);
    let text = "";
    for await (const chunk of answer) text += String(chunk);
    return { status: answer.statusCode ?? 0, text };
  }

  it("events arrive as they happen", needs("events"), async () => {
    const stream = await open("GET", "/v1/events", { accept: "text/event-stream" });
    let seen = "";
    const arrived = new Promise<void>((resolve) => {
      stream.on("data", (chunk: Buffer) => {
        seen += chunk.toString();
        if (/^id: \d+$/m.test(seen)) resolve();
      });
    });
    await call("POST", "/v1/actions", {}, JSON.stringify(ALLOWED));
    await arrived;
    stream.destroy();
  });

  it("the proxy passes a long wait, and the service's own error for a body that is too large", async () => {
    const waited = await call("POST", "/v1/actions", { prefer: "wait=2" }, JSON.stringify(ASKED));
    assert.deepEqual(
      [waited.status, (JSON.parse(waited.text) as { status: string }).status],
      [202, "pending_approval"],
    );
    const large = await call(
      "POST",
      "/v1/actions",
      {},
      JSON.stringify({ ...ALLOWED, params: { x: "x".repeat(1_500_000) } }),
    );
    assert.deepEqual([large.status, (JSON.parse(large.text) as { code: string }).code], [413, "BODY_TOO_LARGE"]);
  });

  it("a client cannot pretend to have a different address", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++)
      statuses.push(
        (await call("GET", "/v1/actions", { authorization: `Bearer wrong${i}`, "x-forwarded-for": `203.0.113.${i}` }))
          .status,
      );
    assert.ok(
      statuses.includes(429),
      `${statuses.join(" ")}: wrong keys are counted for the address that they come from`,
    );
  });
});
