/** The forward proxy between an agent, which can be hostile, and a server behind TLS. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { createServer as createPlainServer } from "node:http";
import { createServer, type Server } from "node:https";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { gzipSync } from "node:zlib";
import {
  isAddressLiteral,
  isPublicAddress,
  resolveWithSystem,
  type Resolve,
} from "../../../clients/egress/addresses.ts";
import { createAuthority } from "../../../clients/egress/certificates.ts";
import { Redactor } from "../../../clients/egress/credentials.ts";
import { EgressConfigError, readEgressConfig } from "../../../clients/egress/egress-config.ts";
import { joinTunnel, startEgressProxy, type EgressProxy } from "../../../clients/egress/proxy.ts";
import { createAssent } from "../../../clients/typescript/index.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { assent as runAssent, runProgram } from "../../support/cli.ts";
import { ASSENT } from "../../support/process.ts";
import { approve, startService, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/wait.ts";

const SECRET = "s3cr3t/+token&value";
const FORM_SECRET = "form-secret-value";
const PLACEHOLDER = "assent-placeholder-API_TOKEN";
const POLICY = `policy: egress
rules:
  - name: reads
    tool: http
    operation: [get, head]
    effect: allow
    when: params.path.startsWith("/open")
  - name: small writes
    tool: http
    operation: post
    effect: allow
    when: has(params.body.amount) && params.body.amount < 100
  - name: forms
    tool: http
    operation: post
    effect: allow
    when: params.path == "/form"
  - name: changes
    tool: http
    operation: put
    effect: require_approval
    reason: changes need approval
  - name: tunnels
    tool: tunnel
    operation: connect
    effect: allow
    when: params.host in ["tunnel.test", "rebound.test", "mixed.test"]
`;

interface Seen {
  method: string;
  url: string;
  headers: Record<string, unknown>;
  raw: string[];
  body: string;
}

const folder = temporaryFolder("assent-egress-test-");
const seen: Seen[] = [];
const logged: string[] = [];
let service: Service;
let listening: RunningServer;
let upstream: Server;
let port: number;
let key: string;
let config: string;
let proxy: EgressProxy;

/** Answers the resolver of the proxy. Names that are absent are resolved by the system. */
const names = new Map<string, string[]>();
const resolve: Resolve = async (host) =>
  names.get(host)?.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })) ?? resolveWithSystem(host);

const configWith = (more = ""): string => `wait: 0
max_body_bytes: 100000
${more}
hosts:
  https://localhost:${port}:
    private: true
    ca: upstream.pem
    credentials:
      - header: Authorization
        env: API_TOKEN
      - header: X-Key
        env: API_TOKEN
      - query: key
        env: API_TOKEN
      - body: client_secret
        file: form-secret
        variable: FORM_SECRET
`;

async function start(yaml: string, url = listening.url, timeout = 5): Promise<EgressProxy> {
  return startEgressProxy({
    config: readEgressConfig(yaml, { env: { API_TOKEN: SECRET }, folder }),
    assent: createAssent({ url, apiKey: key, timeout, retries: 0 }),
    resolve,
    log: (line) => void logged.push(line),
  });
}

before(async () => {
  const authority = createAuthority();
  writeFileSync(join(folder, "upstream.pem"), authority.pem);
  writeFileSync(join(folder, "form-secret"), `${FORM_SECRET}\n`, { mode: 0o600 });
  upstream = createServer(authority.issue("localhost"), (request, response) => {
    let body = "";
    request.setEncoding("latin1").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const { method = "", url = "", headers, rawHeaders: raw } = request;
      seen.push({ method, url, headers, raw, body });
      if (url === "/open/redirect") return void response.writeHead(302, { location: "/closed" }).end();
      if (url === "/open/gzip") {
        const bytes = gzipSync(`token ${SECRET}`);
        return void response.writeHead(200, { "content-encoding": "gzip", "content-length": bytes.length }).end(bytes);
      }
      if (url === "/open/switch") {
        request.socket.end(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n${SECRET}`);
        return;
      }
      if (url === "/open/transfer") {
        request.socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
        return;
      }
      if (url === "/open/odd") return void response.writeHead(200, { "content-encoding": "odd" }).end("x");
      if (url === "/open/reflect") {
        response.writeHead(200, {
          "x-echo": `Bearer ${SECRET}`,
          [FORM_SECRET]: "1",
          connection: "x-hop",
          "x-hop": "1",
          "alt-svc": "h3",
        });
        const text = `${SECRET} ${encodeURIComponent(SECRET)} ${Buffer.from(`u:${SECRET}`).toString("base64")} ${JSON.stringify({ SECRET }).replaceAll("/", "\\/")}`;
        const write = (at: number): void => {
          if (at >= text.length) return void response.end();
          response.write(text.slice(at, at + 7), () => setImmediate(write, at + 7));
        };
        return write(0);
      }
      response.setHeader("x-seen", "yes");
      response.end(`ok ${method} ${url}`);
    });
  });
  upstream.on("upgrade", (_, socket: Socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"));
  await new Promise<void>((done) => upstream.listen(0, "127.0.0.1", done));
  ({ port } = upstream.address() as AddressInfo);
  service = await startService({ policy: POLICY });
  listening = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  const body = { name: "egress", preset: "agent", agent_id: "bot" };
  ({ key } = (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body as { key: string });
  config = configWith();
  writeFileSync(join(folder, "egress.yaml"), config);
  proxy = await start(config);
});

after(async () => {
  await proxy?.close();
  await listening?.stop();
  await service?.close();
  upstream?.closeAllConnections();
  upstream?.close();
});

const actions = async (): Promise<
  { id: string; tool: string; operation: string; status: string; params: Record<string, unknown> }[]
> => (await service.call("GET", "/v1/actions?limit=5", { key: service.admin })).body.actions;

const credentialOf = ({ url }: EgressProxy): string => {
  const { username, password } = new URL(url);
  return `Proxy-Authorization: Basic ${Buffer.from(`${username}:${password}`).toString("base64")}\r\n`;
};

/** Sends bytes to the proxy, and resolves to everything that it answers until it closes the connection. */
function sendRaw(bytes: string, to = proxy): Promise<string> {
  return new Promise((done) => {
    const socket = connect(Number(new URL(to.url).port), "127.0.0.1", () => socket.write(bytes, "latin1"));
    let answer = "";
    socket.setEncoding("latin1").on("data", (text) => (answer += text));
    socket.on("error", () => undefined).on("close", () => done(answer));
  });
}

/** Opens a connection with CONNECT, and resolves to the socket after the response. */
async function openConnect(target: string, to = proxy): Promise<{ socket: Socket; answer: string }> {
  const socket = connect(Number(new URL(to.url).port), "127.0.0.1");
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credentialOf(to)}\r\n`);
  const [answer] = await new Promise<[string]>((done) => {
    socket.once("data", (chunk: Buffer) => done([chunk.toString("latin1")]));
    socket.on("error", () => undefined).once("close", () => done([""]));
  });
  return { socket, answer };
}

interface TlsOptions {
  servername?: string;
  ALPNProtocols?: string[];
  to?: EgressProxy;
}

/** Sends bytes inside an intercepted connection. Resolves to "" if the handshake fails. */
async function sendInside(
  bytes: string,
  { servername = "localhost", to = proxy, ...more }: TlsOptions = {},
): Promise<string> {
  const { socket } = await openConnect(`localhost:${port}`, to);
  return new Promise((done) => {
    const tls = connectTls(
      { socket, servername, ca: to.authority, checkServerIdentity: () => undefined, ...more },
      () => tls.write(bytes, "latin1"),
    );
    let answer = "";
    tls.setEncoding("latin1").on("data", (text) => (answer += text));
    tls.on("error", () => done(answer)).on("close", () => done(answer));
  });
}

const get = (path: string, headers = "", method = "GET"): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost:${port}\r\n${headers}Connection: close\r\n\r\n`;
const post = (path: string, body: string, headers = "Content-Type: application/json\r\n"): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost:${port}\r\n${headers}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
const auth = (value: string): string => `Authorization: ${value}\r\n`;

describe("certificates", () => {
  test("are accepted by a strict verifier, for their host only", async () => {
    const authority = createAuthority();
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const verify = (host: string) =>
      runProgram("openssl", [
        "verify",
        "-x509_strict",
        "-purpose",
        "sslserver",
        "-verify_hostname",
        host,
        "-CAfile",
        file("authority.pem", authority.pem),
        file("leaf.pem", authority.issue("api.example.com").cert),
      ]);
    assert.match((await verify("api.example.com")).out, /OK/);
    assert.match((await verify("other.example.com")).err, /mismatch/);
  });
});

describe("an allowed request", () => {
  test("has the credential in each place of a placeholder, and nowhere else", async () => {
    seen.length = 0;
    const basic = Buffer.from(`user:${PLACEHOLDER}`).toString("base64");
    assert.equal(
      statusOf(
        await sendInside(
          get(
            `/open/a?key=${PLACEHOLDER}&other=${PLACEHOLDER}`,
            `aUTHORIZATION: Bearer ${PLACEHOLDER}\r\nX-Other: ${PLACEHOLDER}\r\n`,
          ),
        ),
      ),
      200,
    );
    assert.equal(statusOf(await sendInside(get("/open/b", auth(`Basic ${basic}`)))), 200);
    assert.equal(statusOf(await sendInside(get("/open/none", "__proto__: x\r\nconstructor: y\r\n"))), 200);
    const body = JSON.stringify({ amount: 5, client_secret: "assent-placeholder-FORM_SECRET" });
    assert.equal(statusOf(await sendInside(post("/pay", body))), 200);
    const form = "client_secret=assent-placeholder-FORM_SECRET&x=1";
    assert.equal(
      statusOf(await sendInside(post("/form", form, "Content-Type: application/x-www-form-urlencoded\r\n"))),
      200,
    );
    const [first, second, third, fourth, fifth] = seen as [Seen, Seen, Seen, Seen, Seen];
    assert.equal(first.headers["authorization"], `Bearer ${SECRET}`);
    assert.equal(first.headers["x-other"], PLACEHOLDER);
    assert.equal(first.url, `/open/a?key=${encodeURIComponent(SECRET)}&other=${PLACEHOLDER}`);
    assert.equal(Buffer.from(String(second.headers["authorization"]).slice(6), "base64").toString(), `user:${SECRET}`);
    assert.equal(third.headers["authorization"], undefined);
    assert.ok(third.raw.includes("__proto__") && third.raw.includes("constructor"));
    assert.deepEqual(JSON.parse(fourth.body), { amount: 5, client_secret: FORM_SECRET });
    assert.equal(fifth.body, `client_secret=${FORM_SECRET}&x=1`);
    assert.equal(first.headers["proxy-authorization"], undefined);
    // What is decided and recorded has the placeholder.
    const recorded = JSON.stringify(await actions());
    assert.ok(!recorded.includes(SECRET) && !recorded.includes(FORM_SECRET));
    assert.ok(recorded.includes("assent-placeholder-FORM_SECRET"));
  });

  test("is submitted as gateways do, and its result is reported", async () => {
    await sendInside(get("/open/x%20y?a=1&a=2"));
    await until("the result is reported", async () => (await actions())[0]?.status === "succeeded");
    const [action] = await actions();
    assert.deepEqual(
      { tool: action?.tool, operation: action?.operation, params: action?.params },
      {
        tool: "http",
        operation: "get",
        params: { host: `localhost:${port}`, path: "/open/x y", query: { a: ["1", "2"] } },
      },
    );
  });

  test("a response contains no credential, in its headers, its body, or a compressed body", async () => {
    const answer = await sendInside(get("/open/reflect", auth(`Bearer ${PLACEHOLDER}`)));
    assert.match(answer, /x-echo: Bearer \*{19}\r\n/);
    assert.doesNotMatch(answer, /x-hop|alt-svc/i);
    assert.ok(!answer.includes(FORM_SECRET));
    const plain = answer.replaceAll(/\r\n[0-9a-f]+\r\n/g, "");
    for (const text of [SECRET, encodeURIComponent(SECRET), Buffer.from(SECRET).toString("base64").slice(3, 20)])
      assert.ok(!plain.includes(text), text);
    assert.ok(!plain.includes(Buffer.from(`u:${SECRET}`).toString("base64").slice(4, -4)));
    const unpacked = await sendInside(get("/open/gzip"));
    assert.match(unpacked, /token \*{19}/);
    assert.equal(statusOf(await sendInside(get("/open/odd"))), 502);
    assert.equal(statusOf(await sendInside(get("/open/transfer"))), 502);
    assert.equal(statusOf(await sendInside(get("/open/switch"))), 502);
  });

  test("a response contains no credential that an encoder has escaped in its own way", async () => {
    const escaped = [
      "s3cr3t/%2Btoken%26value",
      "s3cr3t/+token\\u0026value",
      "s3cr3t\\/\\u002Btoken\\u0026value",
      "s3cr3t/+token&amp;value",
      "s3cr3t/+token&#38;value",
      Buffer.from(SECRET).toString("hex").replace("f", "F"),
      encodeURIComponent(Buffer.from(SECRET).toString("base64").slice(0, 25)),
    ];
    for (const text of escaped) {
      const whole = new Redactor([SECRET, `${SECRET}-longer`]);
      assert.equal(whole.redactText(`<${text}>`), `<${"*".repeat(text.length)}>`);
      for (const size of [1, 7, 19]) {
        const stream = whole.stream();
        let out = "";
        stream.on("data", (chunk: Buffer) => (out += chunk.toString()));
        for (let at = 0; at < text.length + 2; at += size) stream.write(`<${text}>`.slice(at, at + size));
        await new Promise((done) => stream.once("end", done).end());
        assert.equal(out, `<${"*".repeat(text.length)}>`);
      }
    }
    // One credential begins with another one.
    const two = new Redactor([SECRET, `${SECRET}-longer`]).stream();
    let out = "";
    two.on("data", (chunk: Buffer) => (out += chunk.toString()));
    two.write(SECRET);
    await new Promise((done) => two.once("end", done).end("-longer s3c"));
    assert.equal(out, `${"*".repeat(26)} s3c`);
  });

  test("a redirect is passed on, and the next request is decided", async () => {
    const answer = await sendInside(get("/open/redirect"));
    assert.match(answer, /^HTTP\/1\.1 302 [^]*location: \/closed/i);
    assert.equal(statusOf(await sendInside(get("/closed"))), 403);
  });

  test("several requests on one connection are each decided", async () => {
    seen.length = 0;
    const first = get("/open/1").replace("Connection: close\r\n", "");
    const answer = await sendInside(`${first}${get("/closed")}`);
    assert.match(answer, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 403 /);
    assert.deepEqual(
      seen.map(({ url }) => url),
      ["/open/1"],
    );
  });
});

describe("a request that requires approval", () => {
  test("is answered with the action's id, joins the action when repeated, and passes once after the approval", async () => {
    seen.length = 0;
    const put = get("/thing", "", "PUT").replace("Connection", "Content-Length: 0\r\nConnection");
    const first = await sendInside(put);
    assert.equal(statusOf(first), 403);
    const problem = JSON.parse(first.slice(first.indexOf("\r\n\r\n"))) as {
      code: string;
      action_id: string;
      detail: string;
    };
    assert.equal(problem.code, "APPROVAL_REQUIRED");
    assert.match(problem.detail, /Call again later with exactly the same request/);
    assert.ok((await sendInside(put)).includes(problem.action_id));
    assert.deepEqual(seen, []);
    await approve(service, problem.action_id);
    assert.equal(statusOf(await sendInside(put)), 200);
    assert.equal(statusOf(await sendInside(put)), 403);
    assert.equal(seen.length, 1);
  });

  test("passes only with the headers that were approved, because a header can name the file or the account", async () => {
    const put = (headers: string): string => get("/upload", `Content-Length: 0\r\n${headers}`, "PUT");
    const idOf = (answer: string): unknown => /"action_id":"([^"]+)"/.exec(answer)?.[1];
    const first = await sendInside(put('Dropbox-API-Arg: {"path":"/a"}\r\nUser-Agent: one\r\nCookie: u=1\r\n'));
    const id = idOf(first) as string;
    await approve(service, id);
    const cookie = (await actions())[0]?.params["headers"] as Record<string, unknown>;
    assert.deepEqual(Object.keys(cookie).sort(), ["cookie", "dropbox-api-arg"]);
    assert.equal(cookie["dropbox-api-arg"], '{"path":"/a"}');
    assert.ok(!JSON.stringify(cookie).includes("u=1"));
    seen.length = 0;
    for (const other of [
      'Dropbox-API-Arg: {"path":"/b"}\r\nCookie: u=1\r\n',
      'Dropbox-API-Arg: {"path":"/a"}\r\nCookie: u=2\r\n',
      'Dropbox-API-Arg: {"path":"/a"}\r\nDropbox_API_Arg: {"path":"/b"}\r\nCookie: u=1\r\n',
      'Dropbox-API-Arg: {"path":"/a"}\r\nCookie: u=1\r\nStripe-Account: acct_2\r\n',
      "",
    ])
      assert.notEqual(idOf(await sendInside(put(other))), id, other);
    assert.deepEqual(seen, []);
    const same = 'Cookie: u=1\r\nUser-Agent: two\r\nDropbox-API-Arg: {"path":"/a"}\r\n';
    assert.equal(statusOf(await sendInside(put(same))), 200);
  });

  test("is not sent if the agent disconnects before the approval", async () => {
    seen.length = 0;
    const waiting = await start(configWith().replace("wait: 0", "wait: 30"));
    try {
      const { socket } = await openConnect(`localhost:${port}`, waiting);
      const tls = connectTls({ socket, servername: "localhost", ca: waiting.authority });
      tls.on("error", () => undefined).write(get("/left", "Content-Length: 0\r\n", "PUT"));
      const isPending = async (): Promise<boolean> => (await actions())[0]?.params["path"] === "/left";
      await until("the action is pending", isPending);
      const [action] = await actions();
      tls.destroy();
      socket.destroy();
      await new Promise((done) => setTimeout(done, 50));
      await approve(service, action?.id as string);
      assert.equal(statusOf(await sendInside(get("/open/after"))), 200);
      assert.deepEqual(
        seen.map(({ url }) => url),
        ["/open/after"],
      );
      assert.equal((await actions()).find(({ id }) => id === action?.id)?.status, "approved");
    } finally {
      await waiting.close();
    }
  });
});

test("without a decision of the service nothing passes", async () => {
  seen.length = 0;
  const alone = await start(config, "http://127.0.0.1:9");
  try {
    assert.equal(statusOf(await sendInside(get("/open/a"), { to: alone })), 503);
    assert.match((await openConnect("tunnel.test:443", alone)).answer, /^HTTP\/1\.1 503 /);
    assert.deepEqual(seen, []);
  } finally {
    await alone.close();
  }
});

test("a service that responds with something else, or about another request, lets nothing pass", async () => {
  seen.length = 0;
  let answer = '{"id":"x","status":"allowed"';
  const liar = createPlainServer((_, response) => response.setHeader("content-type", "application/json").end(answer));
  await new Promise<void>((done) => liar.listen(0, "127.0.0.1", done));
  const lied = await start(`agent: bot\n${config}`, `http://127.0.0.1:${(liar.address() as AddressInfo).port}`);
  try {
    assert.equal(statusOf(await sendInside(get("/open/a"), { to: lied })), 503);
    answer = JSON.stringify({
      id: "x",
      agent_id: "bot",
      tool: "http",
      operation: "get",
      params: {},
      context: {},
      status: "allowed",
    });
    assert.equal(statusOf(await sendInside(get("/open/a"), { to: lied })), 503);
    assert.deepEqual(seen, []);
  } finally {
    await lied.close();
    liar.close();
  }
});

test("a service that never responds lets nothing pass, and the agent gets 503", async () => {
  seen.length = 0;
  const silent = createPlainServer(() => undefined);
  await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const waiting = await start(`agent: bot\n${config}`, url, 0.3);
  try {
    assert.match(await sendInside(get("/open/a"), { to: waiting }), /^HTTP\/1\.1 503 [^]*did not answer/);
    assert.match((await openConnect("tunnel.test:443", waiting)).answer, /^HTTP\/1\.1 503 /);
    assert.deepEqual(seen, []);
  } finally {
    await waiting.close();
    silent.closeAllConnections();
    silent.close();
  }
});

test("a request that waits for an approval survives a restart of the service, and runs once", async () => {
  seen.length = 0;
  const open = (at: number) =>
    serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: at });
  const first = await open(0);
  const waiting = await start(configWith().replace("wait: 0", "wait: 60"), first.url);
  let second: RunningServer | null = null;
  try {
    const answer = sendInside(get("/restart", "Content-Length: 0\r\n", "PUT"), { to: waiting });
    await until("the action is pending", async () => (await actions())[0]?.params["path"] === "/restart");
    const [action] = await actions();
    await first.stop(0);
    await approve(service, action?.id as string);
    // Approved while the proxy cannot know it.
    assert.deepEqual(seen, []);
    second = await open(first.port);
    assert.match(await answer, /^HTTP\/1\.1 200 /);
    assert.deepEqual(
      seen.map(({ url }) => url),
      ["/restart"],
    );
  } finally {
    await waiting.close();
    await first.stop(0);
    await second?.stop(0);
  }
});

describe("a hostile agent", () => {
  const chunked = (rest: string, more = ""): string =>
    `POST /open HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n${more}\r\n${rest}`;
  const SMALL = '{"amount":1}';
  const FORM = "Content-Type: application/x-www-form-urlencoded\r\n";
  const cases: [name: string, bytes: () => string, status: number][] = [
    ["CL.TE", () => chunked("0\r\n\r\n", "Content-Length: 4\r\n"), 400],
    ["two lengths", () => post("/pay", SMALL, `Content-Type: application/json\r\nContent-Length: 3\r\n`), 400],
    ["an odd length", () => get("/open", "Content-Length: +0\r\n"), 400],
    ["TE other than chunked", () => chunked("0\r\n\r\n").replace(": chunked", ": gzip, chunked"), 400],
    ["two TE", () => chunked("0\r\n\r\n", "Transfer-Encoding: identity\r\n"), 400],
    ["TE with an underscore", () => get("/open", "Transfer_Encoding: chunked\r\n"), 400],
    ["a chunk extension", () => chunked(`c;x=y\r\n${SMALL}\r\n0\r\n\r\n`), 400],
    ["a bad chunk size", () => chunked(`0xc\r\n${SMALL}\r\n0\r\n\r\n`), 400],
    ["a chunk size with a space", () => chunked(`c \r\n${SMALL}\r\n0\r\n\r\n`), 400],
    ["a chunk size with a bare line feed", () => chunked(`c\n${SMALL}\r\n0\r\n\r\n`), 400],
    ["a chunk that is too long", () => chunked(`b\r\n${SMALL}\r\n0\r\n\r\n`), 400],
    ["trailers", () => chunked(`c\r\n${SMALL}\r\n0\r\nX: y\r\n\r\n`), 400],
    ["announced trailers", () => get("/open", "Trailer: x\r\n"), 400],
    ["a body over the limit", () => post("/pay", `"${"x".repeat(100_000)}"`), 413],
    ["a chunked body over the limit", () => chunked("fffff\r\n"), 413],
    ["Expect", () => post("/pay", SMALL, "Content-Type: application/json\r\nExpect: 100-continue\r\n"), 417],
    ["two Host headers", () => get("/open", `Host: localhost:${port}\r\n`), 400],
    ["another Host", () => get("/open").replace("Host: localhost", "Host: other"), 400],
    ["no Host", () => get("/open").replace(/Host: .*?\r\n/, ""), 400],
    ["an absolute URL with another host", () => get("http://other.test/open"), 400],
    ["an absolute URL", () => get(`https://localhost:${port}/open`), 400],
    ["a folded header", () => get("/open", "X-A: b\r\n c\r\n"), 400],
    ["a header with a space before the colon", () => get("/open", "X-A : b\r\n"), 400],
    ["a bare carriage return", () => get("/open", "X-A: b\rX-B: c\r\n"), 400],
    ["a bare line feed", () => get("/open", "X-A: b\nX-B: c\r\n"), 400],
    ["bytes outside ASCII", () => get("/open", "X-A: \u00ff\r\n"), 400],
    ["a long run of spaces", () => get("/open", `X-A:${" ".repeat(60_000)}\x01\r\n`), 400],
    ["a null byte", () => get("/open", "X-A: a\0b\r\n"), 400],
    ["an empty line first", () => `\r\n${get("/open")}`, 400],
    ["lowercase methods", () => get("/open", "", "get"), 400],
    ["HTTP/1.0", () => get("/open").replace("HTTP/1.1", "HTTP/1.0"), 505],
    ["HTTP/2 with prior knowledge", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
    ["HTTP/2 by upgrade", () => get("/open", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"), 400],
    [
      "a WebSocket",
      () => get("/open", "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n").replace(": close", ": Upgrade"),
      400,
    ],
    ["CONNECT inside", () => get("other.test:443", "", "CONNECT"), 400],
    ["a connection option that drops a header", () => get("/open").replace(": close", ": close, authorization"), 400],
    ["a method override", () => get("/open", "X-HTTP-Method-Override: DELETE\r\n"), 400],
    ["an encoded slash", () => get("/open%2f..%2fclosed"), 400],
    ["dot segments", () => get("/open/../closed"), 400],
    ["an encoded question mark", () => get("/open%3fa"), 400],
    ["an encoded number sign", () => get("/open%23a"), 400],
    ["a backslash", () => get("/open\\..\\closed"), 400],
    ["repeated slashes", () => get("/open//closed"), 400],
    ["a fragment", () => get("/open#a"), 400],
    ["duplicate keys in the body", () => post("/pay", '{"amount":1,"amount":1000}'), 400],
    [
      "a compressed body",
      () => post("/pay", SMALL, "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"),
      400,
    ],
    ["another credential", () => get("/open", auth("Bearer someone-elses")), 403],
    ["a placeholder in the middle", () => get("/open", auth(`Bearer x${PLACEHOLDER}`)), 403],
    ["two credentials", () => get("/open", auth(`Bearer ${PLACEHOLDER}`) + auth(`Bearer ${PLACEHOLDER}`)), 400],
    ["two headers with the credential", () => get("/open", `X-Key: ${PLACEHOLDER}\r\nx-key: ${PLACEHOLDER}\r\n`), 403],
    ["the header with an underscore", () => get("/open", `X_Key: ${PLACEHOLDER}\r\n`), 403],
    ["another query credential", () => get("/open?key=mine"), 403],
    ["two query credentials", () => get(`/open?key=${PLACEHOLDER}&key=${PLACEHOLDER}`), 403],
    ["another body credential", () => post("/pay", '{"amount":1,"client_secret":"mine"}'), 403],
    ["TRACE", () => get("/open", auth(`Bearer ${PLACEHOLDER}`), "TRACE"), 403],
    ["a header named as a member of objects", () => get("/closed", "__proto__: x\r\nconstructor: y\r\n"), 403],
    ["an asterisk as the target", () => get("*", "", "OPTIONS"), 400],
    ["a query credential in another case", () => get("/open?Key=mine"), 403],
    ["a query credential as a list", () => get("/open?key[]=mine"), 403],
    ["a body credential in another case", () => post("/pay", '{"amount":1,"Client_Secret":"mine"}'), 403],
    ["a body credential in a form for PHP", () => post("/form", "+client.secret=mine", FORM), 403],
    ["a body credential behind a semicolon", () => post("/form", "x=1;client_secret=mine", FORM), 400],
    ["a body credential in a multipart form", () => post("/form", "--x", "Content-Type: multipart/form-data\r\n"), 400],
    ["a body credential in JSON without a type", () => post("/form", '{"client_secret":"mine"}', ""), 400],
    ["Basic with another password", () => get("/open", auth(`Basic ${btoa("user:mine")}`)), 403],
    ["Basic with the placeholder as a part", () => get("/open", auth(`Basic ${btoa(`user:x${PLACEHOLDER}`)}`)), 403],
    ["a credential that is absent from its header", () => get("/open", "Authorization:\r\n"), 403],
    ["a body with a byte order mark", () => post("/pay", `\xef\xbb\xbf${SMALL}`), 400],
    ["a body of another charset", () => post("/pay", SMALL, "Content-Type: application/json; charset=utf-16\r\n"), 400],
    ["an amount above the limit", () => post("/pay", '{"amount":1000}'), 403],
  ];
  for (const [name, bytes, status] of cases)
    test(`${name}: refused, and nothing reaches the server`, async () => {
      seen.length = 0;
      assert.equal(statusOf(await sendInside(bytes())), status);
      assert.deepEqual(seen, []);
    });

  test("TE.CL and a request behind the body are further requests, which are decided", async () => {
    seen.length = 0;
    const answer = await sendInside(chunked(`c\r\n${SMALL}\r\n0\r\n\r\n${get("/closed")}`));
    assert.match(answer, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 403 /);
    assert.deepEqual(
      seen.map(({ url, headers }) => [url, headers["content-length"], headers["transfer-encoding"]]),
      [["/open", "12", undefined]],
    );
  });

  test("another server name, no name, or only h2 in the handshake: closed", async () => {
    seen.length = 0;
    for (const options of [{ servername: "other.test" }, { servername: "" }, { ALPNProtocols: ["h2"] }])
      assert.equal(await sendInside(get("/open"), options), "", JSON.stringify(options));
    assert.equal(statusOf(await sendInside(get("/open"), { ALPNProtocols: ["h2", "http/1.1"] })), 200);
    assert.equal(seen.length, 1);
  });

  test("plain text after CONNECT, or before its response: closed", async () => {
    seen.length = 0;
    const { socket, answer } = await openConnect(`localhost:${port}`);
    assert.match(answer, /^HTTP\/1\.1 200 /);
    let received = "";
    socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
    socket.write(get("/open"));
    await new Promise((done) => socket.once("close", done));
    assert.doesNotMatch(received, /HTTP\/1\.1 [^4]/);
    const early = `CONNECT localhost:${port} HTTP/1.1\r\nHost: localhost:${port}\r\n${credentialOf(proxy)}\r\n${get("/open")}`;
    assert.equal(statusOf(await sendRaw(early)), 400);
    assert.deepEqual(seen, []);
  });

  test("without the proxy's credential: 407", async () => {
    const bare = `CONNECT localhost:${port} HTTP/1.1\r\nHost: localhost:${port}\r\n`;
    assert.equal(statusOf(await sendRaw(`${bare}\r\n`)), 407);
    assert.equal(statusOf(await sendRaw(`${bare}Proxy-Authorization: Basic ${btoa("assent:wrong")}\r\n\r\n`)), 407);
    assert.equal(statusOf(await sendRaw(get("http://localhost/open"))), 407);
  });

  test("other hosts, ports and spellings of addresses: refused", async () => {
    for (const [target, status] of [
      ["denied.test:443", 403],
      ["tunnel.test:22", 403],
      ["localhost:443", 403],
      [`localhost.:${port}`, 400],
      ["127.0.0.1:443", 403],
      [`127.0.0.1:${port}`, 403],
      ["[::1]:443", 403],
      ["2130706433:443", 403],
      ["0x7f.1:443", 403],
      ["127.1:443", 403],
      ["0177.0.0.1:443", 403],
      ["user@tunnel.test:443", 400],
      ["tunnel.test", 400],
      ["tunnel.test:0443", 400],
      ["tünnel.test:443", 400],
    ] as const)
      assert.equal(statusOf((await openConnect(target)).answer), status, target);
    const differs = `CONNECT tunnel.test:443 HTTP/1.1\r\nHost: localhost:443\r\n${credentialOf(proxy)}\r\n`;
    assert.equal(statusOf(await sendRaw(differs)), 400);
    const plain = `GET http://localhost:${port}/open HTTP/1.1\r\nHost: localhost:${port}\r\n${credentialOf(proxy)}\r\n`;
    assert.equal(statusOf(await sendRaw(plain)), 403);
  });

  test("a name that resolves to an internal address, alone or among others: refused", async () => {
    for (const address of [
      "127.0.0.1",
      "10.1.2.3",
      "169.254.169.254",
      "::1",
      "::ffff:127.0.0.1",
      "fd00::1",
      "64:ff9b::7f00:1",
    ]) {
      names.set("rebound.test", [address]);
      assert.match((await openConnect("rebound.test:443")).answer, /^HTTP\/1\.1 403 [^]*INTERNAL_ADDRESS/, address);
    }
    names.set("mixed.test", ["93.184.215.14", "127.0.0.1"]);
    assert.match((await openConnect("mixed.test:443")).answer, /INTERNAL_ADDRESS/);
    // A listed host, too, unless it is private. The name is resolved once for each connection.
    const strict = await start(configWith().replace("    private: true\n", ""));
    try {
      seen.length = 0;
      assert.match(await sendInside(get("/open"), { to: strict }), /^HTTP\/1\.1 403 [^]*INTERNAL_ADDRESS/);
      assert.deepEqual(seen, []);
    } finally {
      await strict.close();
    }
    assert.ok(isPublicAddress("93.184.215.14") && isPublicAddress("2606:2800::1") && !isPublicAddress("not"));
    assert.ok(isAddressLiteral("1.2.3.0x4") && !isAddressLiteral("1.example"));
  });

  test("a tunnel passes what begins as TLS does, and closes for plain text", async () => {
    for (const [sent, passes] of [
      ["\x16\x03\x01hello", true],
      ["GET / HTTP/1.1\r\n\r\n", false],
      ["\x16GET /", false],
    ] as const) {
      let received = "";
      const far = createTcpServer((socket) => {
        socket
          .on("error", () => undefined)
          .on("data", (chunk: Buffer) => socket.write((received += chunk.toString("latin1"))));
      });
      await new Promise<void>((done) => far.listen(0, "127.0.0.1", done));
      const near = createTcpServer((socket) => {
        joinTunnel(socket, connect((far.address() as AddressInfo).port, "127.0.0.1"), 60);
      });
      await new Promise<void>((done) => near.listen(0, "127.0.0.1", done));
      const agent = connect((near.address() as AddressInfo).port, "127.0.0.1");
      agent.on("error", () => undefined).write(sent, "latin1");
      await new Promise((done) => agent.once(passes ? "data" : "close", done).resume());
      assert.equal(received, passes ? sent : "", sent);
      agent.destroy();
      near.close();
      far.close();
    }
  });

  test("a certificate that the configuration does not trust: nothing is sent", async () => {
    seen.length = 0;
    const other = await start(configWith().replace("    ca: upstream.pem\n", ""));
    try {
      assert.equal(statusOf(await sendInside(get("/open", auth(`Bearer ${PLACEHOLDER}`)), { to: other })), 502);
      assert.deepEqual(seen, []);
    } finally {
      await other.close();
    }
  });

  test("the log has no credential", () => {
    assert.ok(!logged.join("\n").includes(SECRET));
  });
});

describe("real clients", () => {
  /** Runs a command behind the proxy, as `assent egress run` does. */
  const behind = (...command: string[]): Promise<{ exit: number | null; out: string; err: string }> =>
    new Promise((done) => {
      const env = {
        ...process.env,
        ASSENT_URL: listening.url,
        ASSENT_API_KEY: key,
        API_TOKEN: SECRET,
        COPY: `x${SECRET}`,
        URL_COPY: `https://user:${encodeURIComponent(SECRET)}@x.test`,
        BASIC_COPY: btoa(`user:${SECRET}`),
      };
      const args = [...ASSENT, "egress", "run", "--config", join(folder, "egress.yaml"), "--", ...command];
      execFile(process.execPath, args, { env, cwd: folder }, (error, out, err) =>
        done({ exit: error === null ? 0 : (error.code as number), out, err }),
      );
    });

  test("curl, Python and Node reach a listed host with environment variables only", async () => {
    seen.length = 0;
    const url = `https://localhost:${port}/open`;
    const python = `import os, urllib.request as u
r = u.Request("${url}/python", headers={"Authorization": "Bearer " + os.environ["API_TOKEN"]})
print(u.urlopen(r).read().decode())`;
    const node = `const p = new URL(process.env.HTTPS_PROXY);
const headers = { host: "localhost:${port}", "proxy-authorization": "Basic " + btoa(p.username + ":" + p.password) };
require("http").request({ host: p.hostname, port: p.port, method: "CONNECT", path: "localhost:${port}", headers }).on("connect", (_, socket) =>
  require("https").get("${url}/node", { socket, agent: false, headers: { "x-key": process.env.API_TOKEN } }, (r) => r.pipe(process.stdout))).end()`;
    writeFileSync(join(folder, "client.py"), python);
    writeFileSync(join(folder, "client.cjs"), node);
    const { exit, out, err } = await behind(
      "sh",
      "-c",
      `curl -sS -H "Authorization: Bearer $API_TOKEN" ${url}/curl && echo && python3 client.py && node client.cjs && exit 7`,
    );
    assert.equal(exit, 7, err);
    assert.equal(out, "ok GET /open/curl\nok GET /open/python\nok GET /open/node");
    assert.deepEqual(
      seen.map(({ headers }) => headers["authorization"] ?? headers["x-key"]),
      [`Bearer ${SECRET}`, `Bearer ${SECRET}`, SECRET],
    );
    assert.match(err, /can read its credentials; use --user/);
  });

  test("the command's environment and files contain no credential and no key of the authority", async () => {
    const script = `cat /proc/self/environ | tr '\\0' '\\n'; for f in "$(dirname "$NODE_EXTRA_CA_CERTS")"/*; do cat "$f"; done; stat -c %a "$(dirname "$NODE_EXTRA_CA_CERTS")"; echo "$(dirname "$NODE_EXTRA_CA_CERTS")"`;
    const { exit, out } = await behind("sh", "-c", script);
    assert.equal(exit, 0);
    assert.doesNotMatch(out, /COPY=/);
    assert.ok(out.includes(`API_TOKEN=${PLACEHOLDER}`) && out.includes("FORM_SECRET=assent-placeholder-FORM_SECRET"));
    for (const text of [SECRET, FORM_SECRET, key, "PRIVATE KEY"]) assert.ok(!out.includes(text), text);
    const [mode, path] = out.trim().split("\n").slice(-2) as [string, string];
    assert.equal(mode, "700");
    assert.ok(!existsSync(path));
  });

  test(
    "another user cannot read the proxy's environment or the file of a credential, or write the certificates",
    { skip: process.getuid?.() !== 0 && "needs root" },
    async () => {
      chmodSync(folder, 0o755);
      const env = { ...process.env, ASSENT_URL: listening.url, ASSENT_API_KEY: key, API_TOKEN: SECRET };
      const script = `id -u; id -G; cat /proc/$PPID/environ; cat ${join(folder, "form-secret")}; curl -sS -H "X-Key: $API_TOKEN" https://localhost:${port}/open/user; ln -s /etc "$(dirname "$SSL_CERT_FILE")/x"; echo >> "$SSL_CERT_FILE"`;
      const args = [
        ...ASSENT,
        "egress",
        "run",
        "--config",
        join(folder, "egress.yaml"),
        "--user",
        "65534:65534",
        "--",
        "sh",
        "-c",
        script,
      ];
      const { out, err } = await new Promise<{ out: string; err: string }>((done) =>
        execFile(process.execPath, args, { env, cwd: "/" }, (_, stdout, stderr) => done({ out: stdout, err: stderr })),
      );
      assert.equal(out, "65534\n65534\nok GET /open/user");
      // Root removes the folder, so the user must not put a link into it.
      assert.match(err, /ln: .*Permission denied/);
    },
  );

  test("git sends its placeholder as a password", async () => {
    seen.length = 0;
    const url = `https://user:${PLACEHOLDER}@localhost:${port}/open/repository`;
    await behind("git", "-c", "credential.helper=", "ls-remote", url);
    const [asked] = seen;
    assert.match(String(asked?.url), /^\/open\/repository\/info\/refs\?service=git-upload-pack$/);
  });
});

describe("the configuration", () => {
  const read = (yaml: string, env: Record<string, string> = { API_TOKEN: SECRET }): string => {
    try {
      readEgressConfig(yaml, { env, folder });
      return "valid";
    } catch (error) {
      assert.ok(error instanceof EgressConfigError, String(error));
      assert.ok(!error.message.includes(SECRET));
      return error.message;
    }
  };
  test("reports what is invalid, and never prints a credential", () => {
    writeFileSync(join(folder, "open-secret"), SECRET, { mode: 0o644 });
    const host = (rest: string): string => `hosts: { "https://api.test": { credentials: [ ${rest} ] } }`;
    for (const [yaml, expected] of [
      [`hosts: {}`, /hosts/],
      [`hosts: { "api.test": {} }`, /write a scheme/],
      [`hosts: { "https://API.test": {} }`, /lowercase/],
      [`hosts: { "https://api.test/path": {} }`, /write a scheme/],
      [`hosts: { "https://0x7f.1": {} }`, /./],
      [`hosts: { "https://api.test": {}, "http://api.test": {} }`, /equal to those of https:\/\/api.test/],
      [`hosts: { "https://api.test": { tool: tunnel } }`, /tool of tunnels/],
      [`hosts: { "https://api.test": { tols: x } }`, /did you mean "tool"/],
      [host(`{ env: API_TOKEN }`), /set one of header, query and body/],
      [host(`{ header: a, query: b, env: API_TOKEN }`), /set one of/],
      [host(`{ header: a }`), /set either env or file/],
      [host(`{ header: a, env: MISSING }`), /MISSING is not set/],
      [host(`{ header: Host, env: API_TOKEN }`), /itself/],
      [host(`{ header: a, file: open-secret }`), /chmod 600/],
      [host(`{ header: a, file: absent }`), /cannot be read \(ENOENT\)/],
      [host(`{ header: a, env: SHORT }`), /8 or more/],
      [host(`{ header: a, env: API_TOKEN }, { header: A, env: API_TOKEN }`), /same place/],
      [`hosts: { "http://api.test": { credentials: [ { header: a, env: API_TOKEN } ] } }`, /needs https/],
    ] as const)
      assert.match(read(yaml, { API_TOKEN: SECRET, SHORT: "x" }), expected, yaml);
    assert.equal(read(config), "valid");
  });

  test("doctor checks it, the service, and the certificate of each host", async () => {
    const env = { ASSENT_URL: listening.url, ASSENT_API_KEY: key, API_TOKEN: SECRET };
    const { code, out } = await runAssent(["egress", "doctor"], { cwd: folder, env });
    assert.equal(code, 0, out);
    assert.match(out, /ok\s+configuration\s+1 hosts, 4 credentials/);
    assert.match(out, /ok\s+service .* of the agent bot/);
    assert.match(out, /ok\s+policies\s+requests of "http" that they may let through: get, head, post, put$/m);
    assert.match(out, /ok\s+https:\/\/localhost:\d+\s+has a valid certificate/);
    writeFileSync(join(folder, "egress.yaml"), config.replace("private: true", "private: true\n    tool: other"));
    const denied = await runAssent(["egress", "doctor"], { cwd: folder, env });
    writeFileSync(join(folder, "egress.yaml"), config);
    assert.equal(denied.code, 1);
    assert.match(denied.out, /problem\s+policies\s+they deny every request of "other"/);
    const broken = await runAssent(["egress", "doctor"], { cwd: folder, env: { ...env, API_TOKEN: "" } });
    assert.equal(broken.code, 1);
    assert.match(broken.out, /API_TOKEN is not set/);
  });
});
