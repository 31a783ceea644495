/**
 * One proxy for many users: each client sends its own token, and servers get a token of the same user.
 * @needs users, workload-identity
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { createLocalJWKSet, jwtVerify } from "jose";
import { ProxyConfigError, readProxyConfig } from "../../../clients/mcp/config/proxy-config.ts";
import { UserEndpoints } from "../../../clients/mcp/clients/user-endpoints.ts";
import users from "../../../plugins/users/index.ts";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { type ListeningProxy, setUp, startHttpProxy, type Refused, type Setup } from "../../support/mcp.ts";
import { server } from "../../support/mcp-server.ts";
import { addPerson, makeKey, person } from "../../support/service.ts";
import { startTokenIssuer, type TokenIssuer } from "../../support/token-issuer.ts";
import { until } from "../../support/wait.ts";

const COMPANY = "https://login.example.com";
const RESOURCE = "https://mcp.example.com/mcp";
const SERVER = "https://notes.example.com/mcp";
const CLIENT = ["the proxy", "a secret: of the proxy"] as const;
const POLICY = `policy: mcp
rules:
  - { name: echo, tool: mcp.notes, operation: [echo, ask, elicitation/create], effect: allow }
  - { name: slow, tool: mcp.notes, operation: slow, effect: require_approval }
  - { name: trusted, tool: mcp.notes, operation: write, when: 'principal.claims.client_id == "trusted"', effect: allow }
`;
const REVISIONS = {
  "2025-11-25": {},
  "2026-07-28": { versionNegotiation: { mode: { pin: "2026-07-28" } } },
} as const;

let setup: Setup;
let company: TokenIssuer;
let authorization: Server;
let listening: RunningServer;
let proxy: ListeningProxy;
let config = "";
/** The users of the tokens that the authorization server issued for the server. */
const issued = new Map<string, string>();
/** Calls at the server, and requests for an exchange. */
let [calls, exchanges]: [{ sub: string; name: unknown; text: unknown }[], URLSearchParams[]] = [[], []];
/** What the authorization server answers instead of a token. */
let lie: ((response: ServerResponse, form: URLSearchParams) => void) | null = null;
/** All tokens that clients sent. */
const tokens: string[] = [];
/** Headers that reached the server. */
const seen: string[] = [];

before(async () => {
  company = await startTokenIssuer();
  const issuer = {
    id: "company",
    platform: "oauth",
    issuer: COMPANY,
    keys: company.jwks,
    audience: RESOURCE,
    algorithms: ["RS256"],
    workloads: [
      { id: "desktop", agent: "assistant", where: { client_id: "desktop" } },
      { id: "trusted", agent: "assistant", where: { client_id: "trusted" } },
    ],
  };
  setup = await setUp(POLICY, {
    plugins: [
      { plugin: users as Plugin, options: {}, origin: "users", core: true },
      { plugin: workloadIdentity as Plugin, options: { issuers: [issuer] }, origin: "workload-identity", core: true },
    ],
  });
  for (const name of ["Ada", "Bob", "Cyd", "Dan", "Eve"])
    await addPerson(setup.service, name, { identities: [{ issuer: COMPANY, subject: name.toLowerCase() }] });
  const expected = `Basic ${Buffer.from(CLIENT.map((text) => new URLSearchParams({ "": text }).toString().slice(1)).join(":")).toString("base64")}`;
  authorization = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    const answer = async (): Promise<void> => {
      const form = new URLSearchParams(text);
      exchanges.push(form);
      response.setHeader("content-type", "application/json");
      if (lie !== null) return lie(response, form);
      try {
        assert.equal(request.headers.authorization, expected);
        assert.equal(form.get("grant_type"), "urn:ietf:params:oauth:grant-type:token-exchange");
        const keys = createLocalJWKSet({ keys: company.keys } as never);
        const options = { audience: RESOURCE, clockTolerance: 300 };
        const { payload } = await jwtVerify(form.get("subject_token") ?? "", keys, options);
        const token = `up-${randomUUID()}`;
        issued.set(token, `${payload.sub} for ${form.get("resource")}`);
        response.end(reply({ access_token: token }));
      } catch {
        response.writeHead(400).end('{"error":"invalid_request"}');
      }
    };
    request.on("end", () => void answer());
  });
  authorization.listen(0, "127.0.0.1");
  await once(authorization, "listening");
  const handler = createMcpHandler(() => server());
  process.env["MCP_RECORD"] = setup.env["MCP_RECORD"];
  listening = await serve(
    async (request) => {
      const header = request.headers.get("authorization") ?? "";
      seen.push(header);
      const sub = issued.get(header.replace("Bearer ", ""));
      if (sub === undefined) return new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } });
      if (request.method === "POST") {
        const { method, params } = (await request.clone().json()) as { method?: string; params?: any };
        if (method === "tools/call") calls.push({ sub, name: params.name, text: params.arguments?.text });
      }
      return handler.fetch(request);
    },
    { host: "127.0.0.1", port: 0 },
  );
  const endpoint = `http://127.0.0.1:${(authorization.address() as AddressInfo).port}/token`;
  config = join(setup.folder, "users.yaml");
  writeFileSync(
    config,
    `listen: { users: { resource: "${RESOURCE}", issuer: "${COMPANY}" } }
servers:
  notes:
    url: ${listening.url}/mcp
    exchange: { token_endpoint: "${endpoint}", client_id: "${CLIENT[0]}", client_secret: "${CLIENT[1]}", resource: "${SERVER}" }
`,
  );
  proxy = await startHttpProxy(setup, ["--config", config, "--listen", "0"], {}, []);
});
beforeEach(() => void ([calls, exchanges, lie] = [[], [], null]));
after(async () => {
  await proxy?.close();
  await listening?.stop(0);
  authorization?.closeAllConnections();
  authorization?.close();
  await company?.close();
  // A test has started another one.
  await setup?.listening.stop(0);
  await setup?.close();
});

const reply = (over: object = {}): string =>
  JSON.stringify({
    access_token: "up",
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
    expires_in: 300,
    ...over,
  });

/** An access token of the company's provider (RFC 9068). */
async function tokenOf(sub: string, over: object = {}): Promise<string> {
  const now = Math.floor((Date.now() + setup.service.clock.now) / 1000);
  const claims = {
    iss: COMPANY,
    sub,
    aud: RESOURCE,
    client_id: "desktop",
    jti: randomUUID(),
    iat: now,
    exp: now + 300,
  };
  const token = await company.sign({ ...claims, ...over }, { typ: "at+jwt" });
  tokens.push(token);
  return token;
}

interface Connected {
  client: Client;
  transport: StreamableHTTPClientTransport;
  echo(text: string): Promise<Refused>;
}

/** @param token is called for each request */
async function connect(token: () => string, revision: keyof typeof REVISIONS = "2025-11-25"): Promise<Connected> {
  const transport = new StreamableHTTPClientTransport(new URL(proxy.url), {
    fetch: (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set("authorization", `Bearer ${token()}`);
      return fetch(input, { ...init, headers });
    },
  });
  const client = new Client({ name: "test", version: "1" }, REVISIONS[revision]);
  await client.connect(transport);
  const echo = async (text: string) =>
    (await client.callTool({ name: "echo", arguments: { text } })) as unknown as Refused;
  return { client, transport, echo };
}

const post = (headers: Record<string, string>, message: object = { method: "initialize" }): Promise<Response> =>
  fetch(proxy.url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, params: {}, ...message }),
  });

/** Sends a request of 2026-07-28 as a client that supports tasks and questions. Resolves to its reply. */
async function ask(sub: string, method: string, params: Record<string, unknown>): Promise<any> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
      elicitation: { form: {} },
      extensions: { "io.modelcontextprotocol/tasks": {} },
    },
  };
  const named = params["name"] ?? params["taskId"];
  const headers: Record<string, string> = {
    authorization: `Bearer ${await tokenOf(sub)}`,
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(typeof named === "string" ? { "mcp-name": named } : {}),
  };
  const body = await (await post(headers, { method, params: { ...params, _meta } })).text();
  return JSON.parse(/^data: (.*"result".*|.*"error".*)$/m.exec(body)?.[1] ?? body);
}

/** Votes on each pending action as a person who is not one of the users. */
async function decideAll(approve: boolean): Promise<void> {
  const { key } = await makeKey(setup.service, { name: `vote ${randomUUID()}`, owner: "Eve", preset: "approver" });
  for (const { id, status } of await setup.actions()) {
    if (status !== "pending_approval") continue;
    const path = `/v1/actions/${String(id)}`;
    const { approval_token: token } = (await setup.service.call("GET", path, { key })).body;
    const answer = await setup.service.call("POST", `${path}/approval`, { key, body: { token, approve } });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  }
}

for (const revision of Object.keys(REVISIONS) as (keyof typeof REVISIONS)[])
  test(`two users at once, ${revision}: the decisions and the server have the user of each call`, async () => {
    const tokens = { ada: await tokenOf("ada"), bob: await tokenOf("bob") };
    const connected = {
      ada: await connect(() => tokens.ada, revision),
      bob: await connect(() => tokens.bob, revision),
    };
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => {
        const name = i % 2 === 0 ? "ada" : "bob";
        return connected[name].echo(`${name} ${i} ${revision}`);
      }),
    );
    assert.equal(calls.length, 20);
    for (const { sub, text } of calls) assert.equal(sub, `${String(text).slice(0, 3)} for ${SERVER}`);
    const actions = (await setup.actions()).slice(0, 20);
    for (const { params, submitted_by, agent_id } of actions as any[]) {
      const name = params.text.startsWith("ada") ? "Ada" : "Bob";
      assert.deepEqual([submitted_by, agent_id], [person(name).slice("user:".length), "assistant"]);
    }
    assert.equal(exchanges.length, 2, "one exchange for each token");
    assert.ok(!seen.some((header) => header.includes(tokens.ada) || header.includes(tokens.bob)));
    for (const { client } of Object.values(connected)) await client.close();
  });

test("a session of one user is closed to the token of another user, and to no token", async () => {
  const ada = await tokenOf("ada");
  const { transport, client, echo } = await connect(() => ada);
  const session = { "mcp-session-id": transport.sessionId as string, "mcp-protocol-version": "2025-11-25" };
  const call = { method: "tools/call", params: { name: "echo", arguments: { text: "stolen" } } };
  const bearer = async (sub: string) => ({ authorization: `Bearer ${await tokenOf(sub)}` });
  assert.equal((await post({ ...session, ...(await bearer("bob")) }, call)).status, 404);
  assert.equal((await post(session, call)).status, 401);
  assert.deepEqual(calls, []);
  assert.equal((await echo("own")).isError ?? false, false);
  assert.deepEqual(
    calls.map(({ text }) => text),
    ["own"],
  );
  await client.close();
});

test("a session goes on with a new token of its user and client, and is closed to another client of the user", async () => {
  let token = await tokenOf("ada");
  const { client, transport, echo } = await connect(() => token);
  const first = token;
  token = await tokenOf("ada");
  assert.equal((await echo("renewed")).isError ?? false, false);
  assert.deepEqual(
    exchanges.map((form) => form.get("subject_token")),
    [first, token],
  );
  const headers = { "mcp-session-id": transport.sessionId as string, "mcp-protocol-version": "2025-11-25" };
  const call = { method: "tools/call", params: { name: "write", arguments: { n: 1 } } };
  const trusted = await tokenOf("ada", { client_id: "trusted" });
  assert.equal((await post({ ...headers, authorization: `Bearer ${trusted}` }, call)).status, 404);
  calls = [];
  const results = await Promise.all(
    [trusted, token, trusted, token].map(async (own, i) => {
      const connected = await connect(() => own, "2026-07-28");
      const result = await connected.client.callTool({ name: "write", arguments: { n: 100 + i } });
      await connected.client.close();
      return result.isError ?? false;
    }),
  );
  assert.deepEqual(results, [false, true, false, true], "each client's calls are decided with its own claims");
  assert.equal(calls.length, 2);
  await client.close();
});

test("a task of one user is unknown to another, who can neither read, answer nor cancel it", async () => {
  const { result: task } = await ask("ada", "tools/call", { name: "slow", arguments: { of: "ada" } });
  assert.equal(task.resultType, "task", JSON.stringify(task));
  const { taskId } = task;
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
    const { error } = await ask("bob", method, { taskId, inputResponses: {} });
    assert.equal(error?.code, -32602, method);
  }
  assert.equal((await ask("ada", "tasks/get", { taskId })).result.status, "working");
  await decideAll(true);
  await until("the task ends", async () => (await ask("ada", "tasks/get", { taskId })).result.status === "completed");
  assert.deepEqual(
    calls.map(({ sub, name }) => [sub, name]),
    [[`ada for ${SERVER}`, "slow"]],
  );
});

test("a question to one user is answered by no other", async () => {
  const call = { name: "ask", arguments: {} };
  const { result: asked } = await ask("ada", "tools/call", call);
  assert.equal(asked.resultType, "input_required", JSON.stringify(asked));
  const [key = ""] = Object.keys(asked.inputRequests);
  const answered = (name: string) => ({
    ...call,
    requestState: asked.requestState,
    inputResponses: { [key]: { action: "accept", content: { name } } },
  });
  const { error } = await ask("bob", "tools/call", answered("bob"));
  assert.equal(error?.code, -32602);
  const { result } = await ask("ada", "tools/call", answered("ada"));
  assert.equal(result.content[0].text, "accept ada");
});

test("a call that waits does not run after its user was deactivated, nor with the token of another user", async () => {
  const call = { name: "slow", arguments: { of: "dan" } };
  const token = await tokenOf("dan");
  const { client, transport } = await connect(() => token);
  const waiting = client.callTool(call).then(
    (result) => JSON.stringify(result),
    (error: unknown) => String(error),
  );
  const isPending = async () => (await setup.actions()).some(({ status }) => status === "pending_approval");
  await until("the call waits", isPending);
  const { result: other } = await ask("bob", "tools/call", call);
  assert.equal(other.resultType, "task", "the same call of another user waits for its own approval");
  const pending = (await setup.actions()).filter(({ status }) => status === "pending_approval");
  assert.equal(pending.length, 2);
  await setup.service.call("POST", `/v1/users/${person("Dan").slice(5)}/end`, {
    key: setup.service.admin,
    body: { reason: "left" },
  });
  assert.match(await waiting, /nothing was run/);
  assert.equal(transport.sessionId === undefined, false);
  await decideAll(false);
  assert.deepEqual(calls, []);
  await client.close();
});

test("without a token that the service accepts for an agent, the proxy answers with where to get one", async () => {
  const admin = `Bearer ${setup.service.admin}`;
  const rows: [Record<string, string>, number][] = [
    [{}, 401],
    [{ authorization: "Bearer" }, 401],
    [{ authorization: "Basic YTpi" }, 401],
    [{ authorization: "Bearer x" }, 401],
    [{ authorization: `Bearer ${await tokenOf("zoe")}` }, 401],
    [{ authorization: `Bearer ${await tokenOf("ada", { aud: "https://other.example.com" })}` }, 401],
    [{ authorization: `Bearer ${await tokenOf("ada", { aud: [RESOURCE, "https://other.example.com"] })}` }, 401],
    [{ authorization: `Bearer ${await tokenOf("ada", { client_id: "unknown" })}` }, 401],
    [{ authorization: `Bearer ${await tokenOf("ada", { exp: 1 })}` }, 401],
    [{ authorization: `Bearer ${await company.sign({ iss: COMPANY, sub: "ada" }, { typ: "JWT" })}` }, 401],
    [{ authorization: admin }, 403],
  ];
  for (const [headers, status] of rows) {
    const response = await post(headers);
    assert.equal(response.status, status, JSON.stringify(headers));
    if (status !== 401) continue;
    const [, url] = /resource_metadata="([^"]+)"/.exec(response.headers.get("www-authenticate") ?? "") ?? [];
    assert.equal(url, "https://mcp.example.com/.well-known/oauth-protected-resource/mcp");
  }
  const path = "/.well-known/oauth-protected-resource/mcp";
  const metadata = (await (await fetch(new URL(path, proxy.url))).json()) as { authorization_servers: string[] };
  assert.deepEqual(metadata.authorization_servers, [COMPANY]);
  assert.equal(
    (await fetch(proxy.url, { method: "POST", headers: { host: "evil.example.com" } })).status,
    401,
    "fetch sets Host",
  );
  assert.deepEqual(exchanges, []);
});

describe("if the authorization server", () => {
  const lies: [string, (response: ServerResponse, form: URLSearchParams) => void, RegExp][] = [
    ["is down", (response) => void response.destroy(), /did not exchange/],
    ["does not answer", () => {}, /did not exchange/],
    ["answers garbage", (response) => void response.end("<html>"), /did not exchange/],
    ["answers null", (response) => void response.end("null"), /is not valid/],
    ["stops in the middle", (response) => void response.writeHead(200).write('{"access_token":'), /did not exchange/],
    ["does not end", (response) => void response.end(`{"x":"${"x".repeat(2 << 20)}"}`), /did not exchange/],
    ["fails", (response) => void response.writeHead(500).end(reply()), /is not valid/],
    [
      "refuses",
      (response) => void response.writeHead(400).end('{"error":"[assent:1] allowed"}'),
      /refused .* \(status 400\)/,
    ],
    ["redirects", (response) => void response.writeHead(307, { location: listening.url }).end(), /did not exchange/],
    [
      "returns the token of the user",
      (response, form) => void response.end(reply({ access_token: form.get("subject_token") })),
      /is not valid/,
    ],
    [
      "returns an ID-JAG",
      (response) =>
        void response.end(reply({ issued_token_type: "urn:ietf:params:oauth:token-type:id-jag", token_type: "N_A" })),
      /is not valid/,
    ],
    ["returns an empty token", (response) => void response.end(reply({ access_token: "" })), /is not valid/],
    ["returns a header", (response) => void response.end(reply({ access_token: "x\r\nx: y" })), /is not valid/],
    ["returns a DPoP token", (response) => void response.end(reply({ token_type: "DPoP" })), /is not valid/],
    ["returns no type", (response) => void response.end(reply({ issued_token_type: undefined })), /is not valid/],
  ];
  for (const [what, tell, why] of lies)
    test(`${what}, no call runs, and the next one does when it is back`, async () => {
      let token = await tokenOf("ada");
      const { client, echo } = await connect(() => token);
      const next = await tokenOf("ada");
      [lie, token] = [tell, next];
      const before = seen.length;
      const refused = await echo("now");
      assert.equal(refused.isError, true);
      assert.match(refused.content[0]?.text ?? "", why);
      assert.ok(!/allowed/.test(refused.content[0]?.text ?? ""), "the message quotes no server");
      assert.deepEqual([calls, seen.length], [[], before], "nothing reached the server");
      lie = null;
      assert.equal((await echo("later")).isError ?? false, false);
      await client.close();
    });
});

test("a lifetime that is none, or is endless, makes a token neither invalid nor endless", async () => {
  for (const expires_in of [-1, 0, "300", null, 1e300]) {
    const token = await tokenOf("ada");
    lie = (response) => {
      const access_token = `up-${randomUUID()}`;
      issued.set(access_token, `ada for ${SERVER}`);
      response.end(reply({ access_token, expires_in }));
    };
    exchanges = [];
    const { client, echo } = await connect(() => token);
    for (const text of ["one", "two"]) assert.equal((await echo(text)).isError ?? false, false, String(expires_in));
    assert.equal(exchanges.length, 1, String(expires_in));
    await client.close();
  }
});

test("a token that the server rejects is exchanged again once", async () => {
  const token = await tokenOf("ada");
  const { client, echo } = await connect(() => token);
  issued.clear();
  exchanges = [];
  assert.equal((await echo("again")).isError ?? false, false);
  assert.equal(exchanges.length, 1);
  lie = (response) => void response.end(reply({ access_token: "of-no-one" }));
  issued.clear();
  exchanges = [];
  calls = [];
  const rejected = await echo("rejected");
  assert.equal(rejected.isError, true);
  assert.match(rejected.content[0]?.text ?? "", /rejected the exchanged token of the user; set `exchange`/);
  assert.deepEqual([exchanges.length, calls], [1, []]);
  await client.close();
});

test("while the service is down nothing runs, and a deactivated user is refused at once", async () => {
  const token = await tokenOf("bob");
  const { client, echo } = await connect(() => token);
  const { port } = new URL(setup.listening.url);
  await setup.listening.stop(0);
  await assert.rejects(echo("down"), /Assent cannot verify the token now/);
  assert.deepEqual(calls, []);
  setup.listening = await serve((request, info) => setup.service.runtime.fetch(request, info), {
    host: "127.0.0.1",
    port: Number(port),
  });
  await until(
    "the proxy reaches the service",
    async () => (await post({ authorization: `Bearer ${token}` })).status !== 503,
  );
  assert.equal((await echo("up")).isError ?? false, false);
  const path = `/v1/users/${person("Bob").slice(5)}/end`;
  await setup.service.call("POST", path, { key: setup.service.admin, body: { reason: "left" } });
  calls = [];
  for (const request of [() => echo("left"), () => client.listTools()])
    await assert.rejects(request, (error) => (error as { status?: number }).status === 401);
  assert.deepEqual(calls, []);
});

test("a token with fewer rights never runs a call with the rights of another token of its user and client", async () => {
  const [narrow, wide] = [await tokenOf("ada", { scope: "read" }), await tokenOf("ada", { scope: "read write" })];
  const first = await connect(() => narrow);
  const second = await connect(() => wide);
  await second.echo("wide");
  exchanges = [];
  const modern = await connect(() => narrow, "2026-07-28");
  for (const { echo } of [first, modern]) assert.equal((await echo("narrow")).isError ?? false, false);
  const headers = { "mcp-session-id": first.transport.sessionId as string, "mcp-protocol-version": "2025-11-25" };
  const stolen = await post({ ...headers, authorization: `Bearer ${wide}` }, { method: "tools/list" });
  assert.equal(stolen.status, 404);
  assert.ok(exchanges.every((form) => form.get("subject_token") === narrow));
  for (const { client } of [first, second, modern]) await client.close();
});

test("open streams end once the user is deactivated", async () => {
  const modern = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const own = { authorization: `Bearer ${await tokenOf("cyd")}` };
  const clientInfo = { name: "raw", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const greeting = await post(own, { method: "initialize", params });
  await greeting.text();
  const session = { "mcp-session-id": greeting.headers.get("mcp-session-id") ?? "" };
  const headers = { ...own, ...session, "mcp-protocol-version": "2025-11-25", accept: "text/event-stream" };
  const listen = { notifications: { toolsListChanged: true }, _meta: modern };
  const streams = [
    await fetch(proxy.url, { headers }),
    await post(
      { ...own, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" },
      { method: "subscriptions/listen", params: listen },
    ),
  ];
  assert.deepEqual(
    streams.map(({ status }) => status),
    [200, 200],
  );
  await setup.service.call("POST", `/v1/users/${person("Cyd").slice(5)}/end`, {
    key: setup.service.admin,
    body: { reason: "left" },
  });
  let ended = 0;
  for (const stream of streams) void stream.text().then(() => ended++);
  await until("both streams end", () => ended === 2);
});

test("more users than can be connected take turns, and one with an open session keeps it", async () => {
  const token = await tokenOf("ada");
  const { client, echo } = await connect(() => token);
  for (let i = 0; i < 260; i++) {
    const { key } = await makeKey(setup.service, { name: `bot ${i}`, preset: "agent", agent_id: `bot-${i}` });
    assert.equal((await post({ authorization: `Bearer ${key}` }, { method: "ping" })).status, 400, String(i));
  }
  assert.equal((await echo("still")).isError ?? false, false);
  await client.close();
});

test("many expired tokens are still refused as expired, because clients renew a token after a 401", async () => {
  const expired = await tokenOf("ada", { exp: 1 });
  for (let i = 0; i < 25; i++) {
    const response = await post({ authorization: `Bearer ${expired}` });
    assert.equal(response.status, 401, String(i));
    assert.match(response.headers.get("www-authenticate") ?? "", /error="invalid_token"/);
  }
});

test("the authorization server gets only tokens that it issued", async () => {
  const { key } = await makeKey(setup.service, { name: "bot", preset: "agent", agent_id: "bot" });
  await assert.rejects(
    connect(() => key),
    /the user's token was not issued by/,
  );
  assert.deepEqual(exchanges, []);
});

test("whatever the service answers about a token, the proxy answers, and opens nothing", async () => {
  const resource = "https://mcp.example.com/team/mcp";
  let answer: unknown;
  const endpoints = new UserEndpoints({
    resource,
    issuer: COMPANY,
    hosts: [],
    identify: () => Promise.resolve(answer),
    createEndpoint: () => assert.fail("an endpoint was created"),
    log() {},
  });
  const ask = (path: string, authorization = "Bearer x", more: Record<string, string> = {}): Promise<Response> =>
    endpoints.fetch(new Request(`http://127.0.0.1${path}`, { headers: { authorization, host: "127.0.0.1", ...more } }));
  const key = { id: "id", agent_id: "bot" };
  const whole = { principal: "user:x", scopes: [], claims: {}, key };
  for (answer of [null, "x", 1, [], {}, { ...whole, key: null }, { ...whole, claims: null }, { ...whole, scopes: "" }])
    assert.equal((await ask("/mcp")).status, 502, JSON.stringify(answer));
  answer = { ...whole, key: { ...key, agent_id: null } };
  assert.equal((await ask("/mcp")).status, 403);
  const challenge = (await ask("/mcp", "")).headers.get("www-authenticate") ?? "";
  const [, url = ""] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
  const metadata = (await (await ask(new URL(url).pathname)).json()) as { resource: string };
  assert.equal(metadata.resource, resource, "the address in the challenge has the metadata");
  for (const foreign of [{ origin: "https://evil.example" }, { host: "evil.example" }])
    for (const path of ["/mcp", new URL(url).pathname])
      assert.equal((await ask(path, "Bearer x", foreign as unknown as Record<string, string>)).status, 403, path);
  await endpoints.close();
});

test("the log has no token", () => {
  for (const token of [...tokens, ...issued.keys()]) assert.ok(!proxy.log().includes(token));
});

test("a configuration that would mix users, or send a token in the clear, is refused", () => {
  const read = (
    listen: string,
    more = "",
    url = "https://notes.example.com/mcp",
    endpoint = "https://login.example.com/token",
  ) =>
    readProxyConfig(
      `${listen}\nservers: { notes: { url: "${url}", exchange: { token_endpoint: "${endpoint}", client_id: c, client_secret: s }${more} } }`,
      {},
    );
  const own = `listen: { users: { resource: "${RESOURCE}", issuer: "${COMPANY}" } }`;
  const rows: [() => unknown, RegExp][] = [
    [() => read(""), /needs listen\.users/],
    [() => read("listen: { port: 1 }"), /needs listen\.users/],
    [() => read(`agent: bot\n${own}`), /set neither agent nor listen\.token/],
    [() => read(own.replace("users:", 'token: "0123456789abcdef", users:')), /set neither agent nor listen\.token/],
    [() => read(own, ", oauth: {}"), /set one of exchange, oauth/],
    [() => read(own, ", headers: { authorization: x }"), /set one of exchange, oauth/],
    [() => read(own, "", "http://notes.example.com/mcp"), /https/],
    [() => read(own, "", undefined, "http://login.example.com/token"), /https/],
    [() => read(own, "", undefined, "http://127.0.0.1.evil.example/token"), /https/],
  ];
  for (const [run, why] of rows)
    assert.throws(run, (error) => error instanceof ProxyConfigError && why.test(error.message), String(why));
  read(own);
});
