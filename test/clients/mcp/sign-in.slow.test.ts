/** The sign-in of a person at an MCP server behind the proxy, with a real authorization server that can also lie. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler } from "@modelcontextprotocol/server";
import Provider from "oidc-provider";
import { login } from "../../../clients/mcp/cli/login.ts";
import { ProxyConfigError, readProxyConfig } from "../../../clients/mcp/config/proxy-config.ts";
import type { HttpTarget, OAuthOptions } from "../../../clients/mcp/config/server-config.ts";
import { requestConsent } from "../../../clients/mcp/sign-in/consent.ts";
import { CommandError } from "../../../src/command.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { setUp, startHttpProxy, startStdioProxy, type Proxied, type Refused, type Setup } from "../../support/mcp.ts";
import { server } from "../../support/mcp-server.ts";
import { makeKey } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const MODERN = { versionNegotiation: { mode: { pin: "2026-07-28" } } } as const;
type Json = Record<string, unknown>;

let setup: Setup;
let authorization: Server;
let provider: Provider;
let issuer = "";
let listening: RunningServer;
let url = "";
/** The person whose token each call at the server had. */
let calls: { sub: string | undefined; name: unknown }[] = [];
/** What the servers answer instead of the truth. */
let lies: {
  resource?: Json;
  metadata?: Json;
  token?: (response: ServerResponse) => void;
  isDown?: boolean;
  rejectsAll?: boolean;
} = {};
/** Tokens that the authorization server issued, and no test has ended. */
const issued: string[] = [];
const refreshable: string[] = [];
/** Paths that were requested at the authorization server. */
let asked: string[] = [];

before(async () => {
  setup = await setUp();
  process.env["MCP_RECORD"] = setup.env["MCP_RECORD"];
  let handle: ReturnType<Provider["callback"]> | null = null;
  authorization = createServer((request, response) => void answer(request, response));
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    asked.push(path);
    if (lies.isDown === true) return void request.socket.destroy();
    if (path.startsWith("/token") && lies.token !== undefined) return lies.token(response);
    if (!path.startsWith("/truth") && path.includes("/.well-known/") && lies.metadata !== undefined) {
      const truth = (await (await fetch(`${issuer}/truth/.well-known/openid-configuration`)).json()) as Json;
      return void response
        .setHeader("content-type", "application/json")
        .end(JSON.stringify({ ...truth, ...lies.metadata }));
    }
    if (path.startsWith("/truth")) request.url = path.slice("/truth".length);
    void handle?.(request, response);
  }
  authorization.listen(0, "127.0.0.1");
  await once(authorization, "listening");
  issuer = `http://localhost:${(authorization.address() as AddressInfo).port}`;
  const handler = createMcpHandler(() => server());
  listening = await serve(
    async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/.well-known/oauth-protected-resource"))
        return Response.json({
          resource: url,
          authorization_servers: [issuer],
          scopes_supported: ["notes"],
          ...lies.resource,
        });
      if (pathname !== "/mcp") return new Response(null, { status: 404 });
      const [, token = ""] = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
      const found = token === "" ? undefined : await provider.AccessToken.find(token);
      if (found?.aud !== url || lies.rejectsAll === true) {
        const metadata = `${new URL(url).origin}/.well-known/oauth-protected-resource/mcp`;
        return new Response(null, {
          status: 401,
          headers: { "www-authenticate": `Bearer resource_metadata="${metadata}"` },
        });
      }
      if (request.method === "POST") {
        const { method, params } = (await request.clone().json()) as { method?: string; params?: Json };
        if (method === "tools/call") calls.push({ sub: found.accountId, name: params?.["name"] });
      }
      return handler.fetch(request);
    },
    { host: "127.0.0.1", port: 0 },
  );
  url = `${listening.url}/mcp`;
  provider = new Provider(issuer, {
    features: {
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => {
          assert.equal(resource, url);
          return { scope: "notes", accessTokenFormat: "opaque", audience: url };
        },
        useGrantedResource: () => true,
      },
    },
    scopes: ["openid", "offline_access", "notes"],
    pkce: { required: () => true },
    cookies: { keys: ["a key of the test"] },
    findAccount: (_context, sub) => ({ accountId: sub, claims: async () => ({ sub }) }),
  });
  provider.on("access_token.saved", ({ jti }: { jti: string }) => void issued.push(jti));
  provider.on("refresh_token.saved", ({ jti }: { jti: string }) => void refreshable.push(jti));
  handle = provider.callback();
});
beforeEach(() => void ([calls, asked, lies] = [[], [], {}]));
after(async () => {
  await listening?.stop(0);
  authorization?.closeAllConnections();
  authorization?.close();
  await setup?.close();
});

/** Does in a browser what the link asks for, as this person. Returns the address of the redirect to the proxy. */
async function consent(link: string, person: string): Promise<string> {
  const cookies = new Map<string, string>();
  let next = new URL(link);
  let form: URLSearchParams | null = null;
  for (let steps = 0; steps < 12; steps++) {
    const response: Response = await fetch(next, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form === null ? {} : { method: "POST", body: form }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = response.headers.get("location");
    form = null;
    if (location !== null) {
      next = new URL(location, next);
      if (next.origin !== issuer) return next.href;
      continue;
    }
    const page = await response.text();
    const [, prompt = ""] = /name="prompt" value="(\w+)"/.exec(page) ?? [];
    assert.notEqual(prompt, "", `${response.status} ${page}`);
    form = new URLSearchParams({ prompt, login: person, password: "x" });
  }
  throw new Error("the authorization server did not finish");
}

/** Runs `assent mcp login`. `visit` opens the link. Returns the command's output. */
async function signIn(
  env: Json = {},
  visit: (link: string) => Promise<unknown> = async (link) => fetch(await consent(link, "ada")),
  flags: string[] = ["--http", url, "--name", "notes"],
): Promise<string> {
  const before = { ...process.env };
  Object.assign(process.env, setup.env, env);
  let shown = "";
  const show = (text: string): void => void (shown += `${text}\n`);
  try {
    const done = login(flags, { out: show, err: show, fancy: false, watched: false });
    let hasEnded = false;
    done.catch(() => undefined).finally(() => (hasEnded = true));
    if (!flags.includes("--remove")) {
      await until("the link is shown", () => hasEnded || /\n {2}http/.test(shown));
      if (hasEnded) await done;
      await visit(/\n {2}(http\S+)/.exec(shown)?.[1] as string);
    }
    assert.equal(await done, 0);
    return shown;
  } finally {
    process.env = before;
  }
}

const start = (env: Record<string, string> = {}, client = {}): Promise<Proxied> =>
  startStdioProxy(setup, { flags: ["--http", url, "--name", "notes"], server: [], env, client });
const echo = async ({ client }: Pick<Proxied, "client">): Promise<Refused> =>
  (await client.callTool(
    { name: "echo", arguments: { at: Math.random() } },
    { timeout: 600_000 },
  )) as unknown as Refused;
const textOf = ({ content }: Refused): string => content[0]?.text ?? "";
const files = (): string[] => readdirSync(join(setup.env["ASSENT_STATE"] as string, "mcp/sign-ins"));
/** Ends every access token, as if their time were over, and with `all` the refresh tokens, too. */
async function expire(all = false): Promise<void> {
  for (const token of issued.splice(0)) await (await provider.AccessToken.find(token))?.destroy();
  if (all) for (const token of refreshable.splice(0)) await (await provider.RefreshToken.find(token))?.destroy();
}

describe("a server that asks for a sign-in", () => {
  test("does not connect before, and the error names the command", async () => {
    await assert.rejects(start(), /it requires a sign-in; run "assent mcp login notes"/);
    assert.deepEqual(calls, []);
  });

  test("runs each call as the person who consented, in both revisions", async () => {
    const shown = await signIn();
    assert.match(shown, new RegExp(`Sign in at ${issuer}, for the server ${url}`));
    assert.match(shown, /signed in at .*; calls of the agent bot/);
    for (const client of [{}, MODERN]) {
      const proxy = await start({}, client);
      assert.match(textOf(await echo(proxy)), /"at"/);
      await proxy.close();
    }
    assert.deepEqual(calls, [
      { sub: "ada", name: "echo" },
      { sub: "ada", name: "echo" },
    ]);
    const link = new URL(/\n {2}(http\S+)/.exec(shown)?.[1] as string);
    assert.equal(link.searchParams.get("resource"), url);
    assert.equal(link.searchParams.get("code_challenge_method"), "S256");
  });

  test("a proxy with another key has no sign-in, and each key its own", async () => {
    const { key } = await makeKey(setup.service, { name: "bob", preset: "agent", agent_id: "bob" });
    const env = { ASSENT_API_KEY: key };
    await assert.rejects(start(env), /requires a sign-in/);
    await signIn(env, async (link) => fetch(await consent(link, "bob")));
    const [ada, bob] = [await start(), await start(env)];
    await echo(bob);
    await echo(ada);
    assert.deepEqual(
      calls.map(({ sub }) => sub),
      ["bob", "ada"],
    );
    await Promise.all([ada.close(), bob.close()]);
    const folder = join(setup.env["ASSENT_STATE"] as string, "mcp/sign-ins");
    for (const name of files()) {
      const bytes = readFileSync(join(folder, name), "latin1");
      for (const token of [...issued, ...refreshable]) assert.ok(!bytes.includes(token));
    }
    // A file that was copied from another key cannot be decrypted.
    const [first = "", second = ""] = files();
    const kept = readFileSync(join(folder, first));
    writeFileSync(join(folder, first), readFileSync(join(folder, second)));
    const outcomes = await Promise.allSettled([start(), start(env)]);
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    writeFileSync(join(folder, first), kept);
    for (const outcome of outcomes) if (outcome.status === "fulfilled") await outcome.value.close();
    await signIn({ ...env }, undefined, ["--http", url, "--name", "notes", "--remove"]);
    await assert.rejects(start(env), /requires a sign-in/);
  });

  test("renews a token that expired in the middle, also if several proxies renew it at once", async () => {
    const proxies = [await start(), await start(), await start()];
    for (let round = 0; round < 3; round++) {
      await expire();
      for (const answer of await Promise.all(proxies.map(echo))) assert.match(textOf(answer), /"at"/);
    }
    assert.equal(calls.length, 9);
    await Promise.all(proxies.map((proxy) => proxy.close()));
  });

  test("does not run a call while the authorization server is down, redirects or answers garbage, and keeps the sign-in", async () => {
    const proxy = await start();
    await expire();
    const faults: (typeof lies)[] = [
      { isDown: true },
      { token: (response) => void response.writeHead(307, { location: `${listening.url}/mcp` }).end() },
      { token: (response) => void response.setHeader("content-type", "application/json").end("{}") },
      { token: (response) => void response.writeHead(503).end("<html>") },
    ];
    for (const fault of faults) {
      lies = fault;
      const refused = await echo(proxy);
      assert.equal(refused.isError, true);
      assert.match(textOf(refused), /did not renew the sign-in; try again later/);
      assert.deepEqual(calls, []);
    }
    lies = {};
    assert.match(textOf(await echo(proxy)), /"at"/);
    const failed = (await setup.actions()).filter(({ status }) => status === "failed");
    assert.equal(failed.length, faults.length);
    await proxy.close();
  });

  test("does not run a call after the sign-in was revoked, and asks for another one", async () => {
    const proxy = await start();
    await expire(true);
    assert.match(textOf(await echo(proxy)), /its sign-in has ended or was revoked; run "assent mcp login notes"/);
    assert.match(textOf(await echo(proxy)), /its sign-in has ended or was revoked/);
    assert.deepEqual(calls, []);
    await signIn();
    assert.match(textOf(await echo(proxy)), /"at"/);
    await proxy.close();
  });

  test("does not repeat a call for ever at a server that rejects each token", async () => {
    const proxy = await start();
    lies = { rejectsAll: true };
    assert.match(textOf(await echo(proxy)), /rejected the credentials/);
    assert.deepEqual(calls, []);
    await proxy.close();
  });

  test("is used over HTTP only by a proxy with a token of its clients", async () => {
    const flags = ["--http", url, "--name", "notes", "--listen", "0"];
    const token = "a-token-of-some-length";
    const connect = async (at: string, headers: Record<string, string>): Promise<Client> => {
      const client = new Client({ name: "test", version: "1.0.0" });
      await client.connect(new StreamableHTTPClientTransport(new URL(at), { requestInit: { headers } }));
      return client;
    };
    const closed = await startHttpProxy(setup, flags, { ASSENT_MCP_TOKEN: token }, []);
    const client = await connect(closed.url, { authorization: `Bearer ${token}` });
    assert.match(textOf(await echo({ client })), /"at"/);
    await client.close();
    await closed.close();
    const open = await startHttpProxy(setup, flags, {}, []);
    await assert.rejects(connect(open.url, {}), /only a proxy on standard input and output or with ASSENT_MCP_TOKEN/);
    await open.close();
  });
});

describe("a consent", () => {
  const target = (oauth: OAuthOptions = {}): HttpTarget => ({
    url,
    headers: {},
    credentialHeaders: null,
    oauth,
    signIns: null,
    exchange: null,
    subject: null,
  });
  const attempt = (
    oauth?: OAuthOptions,
    visit = (link: string) => consent(link, "ada").then(fetch),
    timeoutMs = 5000,
  ) => requestConsent(target(oauth), (link) => void visit(link).catch(() => undefined), timeoutMs);

  test("needs the authorization server that the configuration names, and sends nothing to another one", async () => {
    await assert.rejects(attempt({ issuer: "https://login.example.com" }), /the configuration expects https:\/\/login/);
    assert.ok(!asked.some((path) => /^\/(?:reg|auth|token)/.test(path)), asked.join());
    assert.equal((await attempt({ issuer })).metadata.issuer, issuer);
  });

  const endpoint = (authorization_endpoint: string) => () => ({ metadata: { authorization_endpoint } });
  const pkce = (methods: unknown) => () => ({ metadata: { code_challenge_methods_supported: methods } });
  for (const [name, lie, expected] of [
    ["metadata of another issuer", () => ({ metadata: { issuer: "https://login.example.com" } }), /issuer/i],
    ["metadata of another resource", () => ({ resource: { resource: "https://x.example/mcp" } }), /does not match/],
    ["no PKCE", pkce(["plain"]), /does not support PKCE with S256/],
    ["no statement about PKCE", pkce(undefined), /does not support PKCE with S256/],
    ["an authorization endpoint without TLS", endpoint("http://login.example.com/"), /an endpoint without TLS/],
    ["an authorization endpoint that is a script", endpoint("javascript:alert(1)"), /javascript/i],
    ["a token endpoint without TLS", () => ({ metadata: { token_endpoint: "http://x.example/t" } }), /without TLS/],
    [
      "a token endpoint that redirects",
      () => ({ token: (to: ServerResponse) => void to.writeHead(307, { location: `${issuer}/x` }).end() }),
      /fetch failed/,
    ],
    ["no authorization server that responds", () => ({ isDown: true }), /fetch failed|no metadata/],
  ] as [string, () => typeof lies, RegExp][])
    test(`with ${name}: refused`, async () => {
      lies = lie();
      await assert.rejects(attempt(), expected);
    });

  test("of a server that rejects the new token, or asks for none: not stored", async () => {
    await assert.rejects(
      attempt({}, (link) => consent(link, "ada").then((to) => ((lies = { rejectsAll: true }), fetch(to)))),
      /does not accept the token/,
    );
    lies = {};
    const open = await serve(async () => Response.json({}), { host: "127.0.0.1", port: 0 });
    const other = { ...target(), url: `${open.url}/mcp` };
    await assert.rejects(
      requestConsent(other, () => undefined),
      /does not ask for a sign-in/,
    );
    await open.stop(0);
  });

  test("accepts the redirect of its own link only, so no one can give it the code of another account", async () => {
    let status = 0;
    const stranger = async (link: string): Promise<unknown> => {
      const to = new URL(await consent(link, "mallory"));
      for (const state of ["", "x", "A".repeat(43)]) {
        const forged = new URL(to);
        forged.searchParams.set("state", state);
        ({ status } = await fetch(forged));
      }
      const elsewhere = new URL(to);
      elsewhere.pathname = "/other";
      return fetch(elsewhere);
    };
    await assert.rejects(attempt({}, stranger as never, 3000), /no one signed in within the time limit/);
    assert.equal(status, 400);
    const mixed = (link: string) =>
      consent(link, "ada").then((to) => fetch(to.replace(/([?&]iss=)[^&]+/, "$1https%3A%2F%2Flogin.example.com")));
    await assert.rejects(attempt({}, mixed), /issuer/i);
    const refused = (link: string) =>
      fetch(
        `${new URL(link).searchParams.get("redirect_uri")}?error=access_denied&state=${new URL(link).searchParams.get("state")}`,
      );
    await assert.rejects(attempt({}, refused), /refused: access_denied/);
  });

  test("fails as a command with the reason, and stores nothing", async () => {
    const before = files().length;
    lies = { metadata: { code_challenge_methods_supported: [] } };
    await assert.rejects(signIn({ ASSENT_STATE: join(setup.folder, "other") }), CommandError);
    assert.equal(files().length, before);
  });
});

test("the configuration refuses a sign-in beside an Authorization header", () => {
  const read = (more: string) => readProxyConfig(`servers: { notes: { url: "https://mcp.test/mcp", ${more} } }`, {});
  assert.throws(() => read("oauth: {}, headers: { authorization: x }"), ProxyConfigError);
  assert.throws(() => read('oauth: {}, credential_headers: { Authorization: "Bearer {token}" }'), ProxyConfigError);
  assert.throws(() => read("oauth: { client_secret: x }"), ProxyConfigError);
  const [{ target } = { target: null }] = read("headers: { Authorization: x }").servers;
  assert.equal((target as HttpTarget).oauth, null);
});
