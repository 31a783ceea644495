/** Creates git repositories for tests and serves them on loopback with git's own servers. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSocket, type AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { until } from "./wait.ts";

const ENV = {
  ...process.env,
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.com",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.com",
};

export interface TestRepository {
  /** Path of the bare repository, as a server stores it. */
  bare: string;
  git(...args: string[]): string;
  /**
   * Writes files (null removes a file), commits them and pushes them to a branch, `main` by default. Returns the
   * commit's id.
   */
  commit(
    files: Record<string, string | null>,
    options?: { branch?: string; amend?: boolean; signingKey?: string },
  ): string;
}

/** Creates a repository. @param folder an empty folder */
export function makeRepository(folder: string): TestRepository {
  const [bare, work] = [join(folder, "policies.git"), join(folder, "work")];
  const run = (at: string, args: string[]): string =>
    execFileSync("git", ["-C", at, ...args], { env: ENV, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  mkdirSync(bare, { recursive: true });
  run(bare, ["init", "--bare", "--quiet", "--initial-branch=main"]);
  run(bare, ["config", "http.receivepack", "true"]);
  mkdirSync(work);
  run(work, ["init", "--quiet", "--initial-branch=main"]);
  run(work, ["remote", "add", "origin", bare]);
  return {
    bare,
    git: (...args) => run(work, args),
    commit(files, { branch = "main", amend = false, signingKey } = {}) {
      for (const [name, content] of Object.entries(files)) {
        const path = join(work, name);
        if (content === null) {
          rmSync(path);
          continue;
        }
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, content);
      }
      run(work, ["add", "--all"]);
      const sign = signingKey === undefined ? [] : ["-c", "gpg.format=ssh", "-c", `user.signingKey=${signingKey}`];
      run(work, [
        ...sign,
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "change",
        ...(amend ? ["--amend"] : []),
        ...(signingKey === undefined ? [] : ["-S"]),
      ]);
      run(work, ["push", "--quiet", "--force", "origin", `HEAD:refs/heads/${branch}`]);
      return run(work, ["rev-parse", "HEAD"]);
    },
  };
}

export interface Serving {
  url: string;
  /** The Authorization header of each request, in order. */
  authorizations: (string | undefined)[];
  /** Refuses all requests with 503, beginning with the first one that fetches this object. Null ends that. */
  refuseFrom(object: string | null): void;
  stop(): Promise<void>;
}

/**
 * Starts `git http-backend` behind a small HTTP server that calls it through CGI.
 * @param password required as `git:PASSWORD` if given
 * @param version highest protocol version; below 2, git refuses to send single objects
 */
export async function serveHttp(root: string, password?: string, version = 2): Promise<Serving> {
  const authorizations: (string | undefined)[] = [];
  let refusal: { object: string; hasBegun: boolean } | null = null;
  const backend = join(execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim(), "git-http-backend");
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    authorizations.push(request.headers.authorization);
    if (
      password !== undefined &&
      request.headers.authorization !== `Basic ${Buffer.from(`git:${password}`).toString("base64")}`
    ) {
      response.writeHead(401, { "WWW-Authenticate": 'Basic realm="git"' }).end();
      return;
    }
    const body = Buffer.concat(await request.toArray());
    if (refusal !== null) {
      refusal.hasBegun ||= body.includes(`want ${refusal.object}`);
      if (refusal.hasBegun) {
        response.writeHead(503).end();
        return;
      }
    }
    const url = new URL(request.url ?? "/", "http://localhost");
    const child = spawn(backend, {
      env: {
        ...ENV,
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        GIT_PROTOCOL: version < 2 ? "" : String(request.headers["git-protocol"] ?? ""),
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        REMOTE_ADDR: "127.0.0.1",
      },
    });
    child.stdin.on("error", () => undefined).end(body);
    const parts: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => parts.push(chunk));
    child.on("close", () => {
      const all = Buffer.concat(parts);
      const end = all.indexOf("\r\n\r\n");
      const headers = all
        .toString("latin1", 0, end)
        .split("\r\n")
        .map((line) => line.split(": ", 2) as [string, string]);
      const status = headers.find(([name]) => name === "Status")?.[1];
      response.writeHead(
        Number(status?.slice(0, 3) ?? 200),
        Object.fromEntries(headers.filter(([name]) => name !== "Status")),
      );
      response.end(all.subarray(end + 4));
    });
  }
  const server: Server = createServer((request, response) => {
    // A client that disconnects while it sends gets no response.
    respond(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A test that fails before it stops the server must not keep the process from ending.
  server.unref();
  server.on("connection", (socket) => socket.unref());
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    authorizations,
    refuseFrom: (object) => void (refusal = object === null ? null : { object, hasBegun: false }),
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** Starts `git daemon`, which serves git:// addresses. */
export async function serveDaemon(root: string): Promise<{ url: string; stop(): Promise<void> }> {
  const port = await freePort();
  const daemon: ChildProcess = spawn(
    "git",
    ["daemon", "--reuseaddr", "--listen=127.0.0.1", `--port=${port}`, `--base-path=${root}`, "--export-all", root],
    { env: ENV, stdio: "ignore", detached: true },
  );
  const url = `git://127.0.0.1:${port}`;
  await until("git daemon accepts connections", () => {
    try {
      execFileSync("git", ["ls-remote", `${url}/policies.git`], { env: ENV, stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  });
  return {
    url,
    stop: () =>
      new Promise((resolve) => {
        daemon.on("exit", () => resolve());
        // `git` starts the daemon as a child process, so the signal goes to the whole process group.
        process.kill(-(daemon.pid as number), "SIGKILL");
      }),
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createSocket();
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
