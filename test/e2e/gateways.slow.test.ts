/**
 * Real gateways, configured as in docs/gateways.md, in front of a real service.
 * @needs ext-authz, forward-auth
 */
import { needs } from "../support/features.ts";
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect as http2 } from "node:http2";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { freePort } from "../support/postgres.ts";
import { findProgram, listens } from "../support/proxy.ts";
import { ROOT } from "../support/runtimes.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";
import forwardAuth from "../../plugins/forward-auth/index.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PAGE = readFileSync(join(ROOT, "docs", "gateways.md"), "utf8");
/** The policy of the page, which is indented because it is part of a numbered list. */
const POLICY = (/```yaml\n( *policy: http[\s\S]*?)```/.exec(PAGE)?.[1] ?? "").replaceAll(/^ {3}/gm, "");

interface Places {
  port: number;
  /** Port on which nginx and haproxy speak only HTTP/2. */
  port2: number;
  assent: string;
  upstream: string;
  key: string;
}

const blockOf = (name: string, { port, assent, upstream, key }: Omit<Places, "port2">): string =>
  (new RegExp(`<!-- gateway: ${name} -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\``).exec(PAGE)?.[1] ?? "")
    .replaceAll("8080", String(port))
    .replaceAll("ASSENT", assent)
    .replaceAll("UPSTREAM", upstream)
    .replaceAll("KEY", key);

const GATEWAYS: Record<string, (places: Places, folder: string) => { file: string; args: string[] }> = {
  nginx(places, folder) {
    const file = join(folder, "nginx.conf");
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    writeFileSync(
      file,
      `daemon off; pid ${folder}/nginx.pid; error_log /dev/null; worker_processes 1; events { worker_connections 64; }
http { access_log off; ${temporary.map((part) => `${part}_temp_path ${folder}/${part};`).join(" ")}
${blockOf("nginx", places).replace("listen ", `listen 127.0.0.1:${places.port2} http2; listen 127.0.0.1:`)}}`,
    );
    return { file, args: ["-p", folder, "-c", file] };
  },
  haproxy(places, folder) {
    const file = join(folder, "haproxy.cfg");
    writeFileSync(join(folder, "assent.lua"), blockOf("haproxy-lua", places));
    writeFileSync(
      file,
      `global
  lua-load ${join(folder, "assent.lua")}
  maxconn 64
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
${blockOf("haproxy", places).replace("bind :", `bind 127.0.0.1:${places.port2} proto h2\n  bind 127.0.0.1:`)}`,
    );
    return { file, args: ["-f", file] };
  },
  caddy(places, folder) {
    const file = join(folder, "Caddyfile");
    writeFileSync(file, `{\n  admin off\n  auto_https off\n}\n${blockOf("caddy", places)}`);
    return { file, args: ["run", "--adapter", "caddyfile", "--config", file] };
  },
};

/** Each gateway's response to a body that HTTP/2 does not announce. Caddy is not tested because it would need TLS. */
const UNANNOUNCED: Record<string, { status: number; passed: string[] }> = {
  nginx: { status: 200, passed: ["GET /docs/a"] },
  haproxy: { status: 403, passed: [] },
};

interface Front {
  service: Service;
  assent: RunningServer;
  url: string;
  /** Port that speaks only HTTP/2. */
  port2: number;
  /** Requests that reached the application, including any that must not. */
  passed: string[];
}

/** Runs one gateway during a block's tests, in front of a service whose plugin has this mode. */
function gatewayFor(name: string, mode: "gate" | "permit"): Front {
  const front = { passed: [] as string[] } as Front;
  let folder: string;
  let upstream: Server;
  let gateway: ChildProcess;
  before(async () => {
    folder = temporaryFolder("assent-gateway-");
    mkdirSync(join(folder, "home"));
    const options = { enabled: true, mode };
    const service = await startService({
      policy: POLICY,
      plugins: [{ plugin: forwardAuth, options, origin: "forward-auth" }],
    });
    const assent = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
    upstream = createServer((request, response) => {
      void (async () => {
        const key = String(request.headers["assent-key"] ?? "");
        const again = String(request.headers["x_http_method_override"] ?? "");
        front.passed.push(`${request.method} ${request.url} ${key}${again}${await text(request)}`.trim());
        response.end("done");
      })();
    });
    await new Promise<void>((done) => upstream.listen(0, "127.0.0.1", done));
    const [port, port2] = [await freePort(), await freePort()];
    const addresses = {
      assent: `127.0.0.1:${assent.port}`,
      upstream: `127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    };
    const { args } = GATEWAYS[name]!({ port, port2, ...addresses, key: service.agent }, folder);
    gateway = spawn(findProgram(name) as string, args, {
      stdio: "ignore",
      env: { ...process.env, HOME: join(folder, "home"), XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    });
    await until(`${name} listens`, () => listens(port));
    Object.assign(front, { service, assent, port2, url: `http://127.0.0.1:${port}` });
  });
  after(async () => {
    const ended = new Promise((done) => gateway.once("exit", done));
    gateway.kill("SIGTERM");
    await ended;
    upstream.close();
    upstream.closeAllConnections();
    await front.assent.stop(0);
    await front.service.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return front;
}

for (const name of Object.keys(GATEWAYS)) {
  const skip = findProgram(name) === null ? `no ${name} on this machine` : false;

  describe(`a permit presented to ${name}`, { skip }, () => {
    const front = gatewayFor(name, "permit");

    it("forwards the request that it names, once, and no request without it", needs("docs"), async () => {
      const { service, passed } = front;
      const params = { host: "api.example", path: "/docs/a", query: {} };
      const body = { agent_id: "support-bot", tool: "http", operation: "get", params };
      const submitted = await service.call("POST", "/v1/actions", { body, headers: { prefer: "permit" } });
      const shown = (path: string, permit: string): Promise<number> =>
        raw(front.url, `GET ${path} HTTP/1.1\r\nHost: api.example\r\nAssent-Permit: ${permit}\r\n`);
      const permit = submitted.body.permit as string;
      for (const [path, text] of [
        ["/docs/b", permit],
        ["/docs/a?x=1", permit],
        ["/docs/a", `${permit}x`],
        ["/docs/a", `${permit}\r\nAssent-Permit: ${permit}`],
        ["/docs/a", ""],
      ] as const)
        assert.equal(await shown(path, text), 403, path);
      assert.deepEqual(passed, []);
      assert.equal(await shown("/docs/a", permit), 200);
      assert.equal(await shown("/docs/a", permit), 403);
      assert.deepEqual(passed, ["GET /docs/a"]);
    });
  });

  describe(`${name} in front of a service`, { skip }, () => {
    const front = gatewayFor(name, "gate");
    const { passed } = front;

    it("forwards allowed requests, and no others", async () => {
      passed.length = 0;
      assert.equal(await raw(front.url, "GET /docs/a HTTP/1.1\r\nHost: api.example\r\n"), 200);
      assert.deepEqual(passed, ["GET /docs/a"], "the gateway's key stays with the gateway");
      for (const request of [
        "GET /docs/a?x=1 HTTP/1.1\r\nHost: api.example\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: other.example\r\n",
        "DELETE /docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "GET /docs/a%2fb HTTP/1.1\r\nHost: api.example\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-Uri: /docs/b\r\nContent-Length: 2\r\n\r\nhi",
        "POST /docs/a HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-Method: GET\r\nContent-Length: 2\r\n\r\nhi",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nX-HTTP-Method-Override: DELETE\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nX-Original-URL: /docs/b\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nX-Original-URI: /docs/b\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nX-Original-Method: DELETE\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-Path: /docs/b\r\n",
        "GET /admin/../docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "GET /admin\\..\\docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n",
        "GET /docs//a HTTP/1.1\r\nHost: api.example\r\n",
        "GET /docs/%2e%2e/docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "HEAD /docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "OPTIONS /docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "GET /pay HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-Uri: /docs/a\r\nX-Forwarded-Host: api.example\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: other.example,api.example\r\n",
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nHost: other.example\r\n",
        "GET http://other.example/docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "GET http://api.example/pay HTTP/1.1\r\nHost: api.example\r\n",
        "GET /docs/a HTTP/1.0\r\n",
        "get /docs/a HTTP/1.1\r\nHost: api.example\r\n",
      ])
        assert.match(String(await raw(front.url, request)), /^40[03]$/, request);
      assert.deepEqual(passed, ["GET /docs/a"]);
    });

    it("is not misled by names that hide or remove a header", async () => {
      passed.length = 0;
      const head = "HTTP/1.1\r\nHost: api.example\r\n";
      // nginx drops headers with such names. The other gateways forward them, and the service rejects the requests.
      const hidden = await raw(front.url, `GET /docs/a ${head}X_HTTP_Method_Override: DELETE\r\n`);
      assert.deepEqual(passed, hidden === 200 ? ["GET /docs/a"] : []);
      passed.length = 0;
      for (const names of ["X-Forwarded-Uri", "Assent-Key", "X-Forwarded-Content-Length, X-Forwarded-Upgrade"])
        await raw(front.url, `GET /pay ${head}X-Forwarded-Uri: /docs/a\r\nConnection: ${names}\r\n`);
      assert.deepEqual(passed, []);
      assert.equal(await raw(front.url, "GET /docs/a HTTP/1.0\r\nHost: api.example\r\n"), 200);
      assert.deepEqual(passed, ["GET /docs/a"]);
    });

    it("forwards no request with more header lines than the service reads", async () => {
      passed.length = 0;
      // Caddy sorts header lines by name, so the dummies follow the X-Forwarded-* headers that it sets, and precede the
      // last line.
      const dummies = "X-G:b\r\n".repeat(2100);
      for (const last of ["X-HTTP-Method-Override: DELETE", "X-Original-URL: /pay"]) {
        const status = await raw(front.url, `GET /docs/a HTTP/1.1\r\nHost: api.example\r\n${dummies}${last}\r\n`);
        assert.ok(status >= 400, String(status));
      }
      assert.deepEqual(passed, []);
    });

    it("forwards no body that was not announced", { skip: name in UNANNOUNCED ? false : "needs TLS" }, async () => {
      passed.length = 0;
      const client = http2(`http://127.0.0.1:${front.port2}`);
      const request = client.request({ ":path": "/docs/a", ":authority": "api.example" }, { endStream: false });
      request.end("a body without a length");
      const [head] = (await once(request, "response")) as [{ ":status": number }];
      client.close();
      assert.deepEqual({ status: head[":status"], passed }, UNANNOUNCED[name]);
    });

    it("forwards nothing while the service is unreachable", async () => {
      passed.length = 0;
      await front.assent.stop(0);
      const status = await raw(front.url, "GET /docs/a HTTP/1.1\r\nHost: api.example\r\n");
      assert.ok(status === 403 || status >= 500, String(status));
      assert.deepEqual(passed, []);
    });
  });
}

/** Sends one request byte by byte, because `fetch` would set and drop headers. */
async function raw(url: string, request: string): Promise<number> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const [, head = request, body = ""] = /^(.*?)\r\n\r\n(.*)$/s.exec(request) ?? [];
  socket.write(`${head.trimEnd()}\r\nConnection: close\r\n\r\n${body}`);
  return Number(/^HTTP\/1\.[01] (\d+)/.exec(await text(socket))?.[1]);
}
