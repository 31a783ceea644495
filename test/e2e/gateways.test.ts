/** Real gateways, configured as docs/gateways.md says, in front of a real service. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect as http2 } from "node:http2";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { freePort } from "../support/postgres.ts";
import { findProgram, listens } from "../support/proxy.ts";
import { ROOT } from "../support/runtimes.ts";
import { startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";
import forwardAuth from "../../plugins/forward-auth/index.ts";

const PAGE = readFileSync(join(ROOT, "docs", "gateways.md"), "utf8");
const POLICY = /```yaml\n(policy: http[\s\S]*?)```/.exec(PAGE)?.[1] ?? "";

interface Places {
  port: number;
  /** Where nginx and haproxy speak HTTP/2 alone. */
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

/** What becomes of a body that HTTP/2 does not announce. Of Caddy it is not tried: it would need TLS. */
const UNANNOUNCED: Record<string, { status: number; passed: string[] }> = {
  nginx: { status: 200, passed: ["GET /docs/a"] },
  haproxy: { status: 403, passed: [] },
};

for (const [name, configure] of Object.entries(GATEWAYS)) {
  const program = findProgram(name);
  describe(`${name} in front of a service`, { skip: program === null ? `no ${name} on this machine` : false }, () => {
    let service: Service;
    let door: Server;
    let upstream: Server;
    let gateway: ChildProcess;
    let folder: string;
    let url: string;
    let port2: number;
    const passed: string[] = [];
    const portOf = (server: Server): number => (server.address() as AddressInfo).port;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "assent-gateway-"));
      mkdirSync(join(folder, "home"));
      service = await startService({
        policy: POLICY,
        plugins: [{ plugin: forwardAuth, options: { enabled: true }, origin: "forward-auth" }],
      });
      upstream = createServer((request, response) => {
        void (async () => {
          const key = String(request.headers["assent-key"] ?? "");
          passed.push(`${request.method} ${request.url} ${key}${await text(request)}`.trim());
          response.end("done");
        })();
      });
      door = createServer((request, response) => {
        void (async () => {
          const headers = new Headers(request.headers as Record<string, string>);
          for (const hop of ["connection", "keep-alive", "transfer-encoding"]) headers.delete(hop);
          const answer = await service.runtime.fetch(
            new Request(`http://assent.test${request.url}`, { method: request.method ?? "GET", headers }),
          );
          response.writeHead(answer.status, Object.fromEntries(answer.headers));
          response.end(await answer.text());
        })();
      });
      for (const server of [upstream, door]) await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
      const port = await freePort();
      port2 = await freePort();
      const { args } = configure(
        {
          port,
          port2,
          assent: `127.0.0.1:${portOf(door)}`,
          upstream: `127.0.0.1:${portOf(upstream)}`,
          key: service.agent,
        },
        folder,
      );
      gateway = spawn(program as string, args, {
        stdio: "ignore",
        env: { ...process.env, HOME: join(folder, "home"), XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      });
      await until(`${name} listens`, () => listens(port));
      url = `http://127.0.0.1:${port}`;
    });
    after(async () => {
      const ended = new Promise((done) => gateway.once("exit", done));
      gateway.kill("SIGTERM");
      await ended;
      upstream.close();
      upstream.closeAllConnections();
      door.close();
      door.closeAllConnections();
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it("passes on what is allowed, and nothing else", async () => {
      passed.length = 0;
      assert.equal(await raw(url, "GET /docs/a HTTP/1.1\r\nHost: api.example\r\n"), 200);
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
        "GET /docs/a HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n",
        "GET /docs//a HTTP/1.1\r\nHost: api.example\r\n",
        "GET /docs/%2e%2e/docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "HEAD /docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "OPTIONS /docs/a HTTP/1.1\r\nHost: api.example\r\n",
        "GET /pay HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-Uri: /docs/a\r\nX-Forwarded-Host: api.example\r\n",
      ])
        assert.match(String(await raw(url, request)), /^40[03]$/, request);
      assert.deepEqual(passed, ["GET /docs/a"]);
    });

    it("passes no body on that was not announced", { skip: name in UNANNOUNCED ? false : "needs TLS" }, async () => {
      passed.length = 0;
      const client = http2(`http://127.0.0.1:${port2}`);
      const request = client.request({ ":path": "/docs/a", ":authority": "api.example" }, { endStream: false });
      request.end("a body without a length");
      const [head] = (await once(request, "response")) as [{ ":status": number }];
      client.close();
      assert.deepEqual({ status: head[":status"], passed }, UNANNOUNCED[name]);
    });

    it("passes nothing on while the service is away", async () => {
      passed.length = 0;
      door.close();
      door.closeAllConnections();
      const status = await raw(url, "GET /docs/a HTTP/1.1\r\nHost: api.example\r\n");
      assert.ok(status === 403 || status >= 500, String(status));
      assert.deepEqual(passed, []);
    });
  });
}

/** One request as written: `fetch` would set and drop headers of its own. */
async function raw(url: string, request: string): Promise<number> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const [, head = request, body = ""] = /^(.*?)\r\n\r\n(.*)$/s.exec(request) ?? [];
  socket.write(`${head.trimEnd()}\r\nConnection: close\r\n\r\n${body}`);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(await text(socket))?.[1]);
}
