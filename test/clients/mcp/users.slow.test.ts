/**
 * Users of `assent mcp proxy`: official clients connect with an ID-JAG of a real provider, or with a sign-in in a
 * browser, and each call is decided for its user.
 * @needs oauth, users, workload-identity, console
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import {
  Client,
  CrossAppAccessProvider,
  discoverAndRequestJwtAuthGrant,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { Browser, BrowserContext, Page } from "playwright-core";
import oauth from "../../../plugins/oauth/index.ts";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import { userState } from "../../../src/core.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { assent, folderWith } from "../../support/cli.ts";
import { launch, open, withoutBrowser } from "../../support/browser.ts";
import { MCP_CLIENT, startIdentityProvider, type IdentityProvider } from "../../support/identity-provider.ts";
import { POLICY, startHttpProxy, setUp, type ListeningProxy, type Refused, type Setup } from "../../support/mcp.ts";
import { usersPlugin } from "../../support/people.ts";
import { makeKey, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const ERAS = { "2025-11-25": "legacy", "2026-07-28": { pin: "2026-07-28" } } as const;

const call = async (client: Client, name: string, given: Record<string, unknown> = {}): Promise<Refused> =>
  (await client.callTool({ name, arguments: given }, { timeout: 600_000 })) as unknown as Refused;

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe("users of the proxy", { skip: withoutBrowser }, () => {
  let provider: IdentityProvider;
  let setup: Setup;
  let service: Service;
  let server: RunningServer;
  let proxy: ListeningProxy;
  let browser: Browser;
  let origin = "";
  let resource = "";
  let proxyKey = "";
  /** What stands in front of the service for the proxy. */
  const outage: { answer: "pass" | "garbage" | "error" | "hang" } = { answer: "pass" };

  before(async () => {
    const ports = [await freePort(), await freePort()];
    origin = `http://localhost:${ports[0]}`;
    resource = `http://127.0.0.1:${ports[1]}/mcp`;
    provider = await startIdentityProvider(() => `${origin}/v1/sign-in/company/callback`);
    for (const [sub, name] of [
      ["ada", "Ada Lovelace"],
      ["bob", "Bob"],
    ] as const)
      provider.accounts.set(sub, { name });
    const company = {
      id: "company",
      name: "Company",
      issuer: provider.issuer,
      client_id: "assent",
      client_secret: "secret",
    };
    const clients = [{ id: MCP_CLIENT.client_id, secret: MCP_CLIENT.client_secret, agent: "desktop" }];
    const keys = `${provider.issuer}/jwks`;
    const issuer = { id: "company", issuer: provider.issuer, keys, algorithms: ["RS256"], clients };
    setup = await setUp(POLICY, {
      change: (config) => void (config.server.public_url = origin),
      plugins: [
        usersPlugin({ providers: [{ ...company, everyone: ["approver", "viewer"] }] }),
        { plugin: workloadIdentity as Plugin, options: {}, origin: "workload-identity", core: true },
        {
          plugin: oauth as Plugin,
          options: { resources: [{ url: resource, agent: "assistant" }], issuers: [issuer] },
          origin: "oauth",
          core: true,
        },
      ],
    });
    ({ service } = setup);
    server = await serve(
      (request, info) => {
        const isOfProxy = request.headers.get("authorization")?.startsWith("Bearer assent_") === true;
        if (!isOfProxy || outage.answer === "pass") return service.runtime.fetch(request, info);
        if (outage.answer === "hang")
          return new Promise((resolve) => {
            request.signal.addEventListener("abort", () => resolve(new Response(null, { status: 503 })));
          });
        return Promise.resolve(new Response("<html>", { status: outage.answer === "garbage" ? 200 : 502 }));
      },
      { host: "127.0.0.1", port: ports[0] as number },
    );
    proxyKey = (await makeKey(service, { name: "proxy", scopes: ["oauth:present"] })).key;
    proxy = await startHttpProxy(
      setup,
      ["--name", "notes", "--listen", String(ports[1]), "--resource", resource, "--wait", "600"],
      { ASSENT_URL: `http://127.0.0.1:${ports[0]}`, ASSENT_API_KEY: proxyKey },
    );
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await proxy?.close();
    await server?.stop(1000);
    await setup?.close();
    await provider?.close();
  });

  /** Signs a person in at the company's provider, and through it in the console. */
  async function signIn(name: string): Promise<BrowserContext> {
    const context = await browser.newContext();
    const { page } = await open(context, `${origin}/#/actions`);
    await page.getByRole("link", { name: /Sign in with/ }).click();
    await page.getByRole("link", { name: "Company" }).click();
    await page.locator("input[name=login]").fill(name);
    await page.locator("input[name=password]").fill("any");
    await page.locator("button[type=submit]").click();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("navigation").waitFor();
    return context;
  }

  /** Returns the person's ID token of the MCP client at the company's provider, where the browser has a session. */
  async function idTokenOf(context: BrowserContext): Promise<string> {
    const verifier = "v".repeat(43);
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(verifier)));
    const { client_id, client_secret } = MCP_CLIENT;
    const redirect_uri = provider.callback;
    const query = {
      client_id,
      redirect_uri,
      response_type: "code",
      scope: "openid",
      code_challenge_method: "S256",
      code_challenge: digest.toString("base64url"),
    };
    const page = await context.newPage();
    const code = await codeAt(page, `${provider.issuer}/auth?${new URLSearchParams(query)}`, () =>
      page.getByRole("button", { name: "Continue" }).click(),
    );
    const form = {
      grant_type: "authorization_code",
      code,
      redirect_uri,
      client_id,
      client_secret,
      code_verifier: verifier,
    };
    const response = await fetch(`${provider.issuer}/token`, { method: "POST", body: new URLSearchParams(form) });
    return ((await response.json()) as { id_token: string }).id_token;
  }

  /** Opens a page, lets the person agree, and returns the code with which the browser is sent back. */
  async function codeAt(page: Page, url: string, agree: () => Promise<void>): Promise<string> {
    await page.goto(url);
    await agree();
    await page.waitForURL((address) => address.href.startsWith(provider.callback), { timeout: 60_000 });
    const query = new URL(page.url()).searchParams;
    await page.close();
    return query.get("code") ?? `no code: ${query.toString()}`;
  }

  const companyClient = (idToken: string): CrossAppAccessProvider =>
    new CrossAppAccessProvider({
      clientId: MCP_CLIENT.client_id,
      clientSecret: MCP_CLIENT.client_secret,
      expectedIssuer: origin,
      assertion: async ({ authorizationServerUrl, resourceUrl, fetchFn }) =>
        (
          await discoverAndRequestJwtAuthGrant({
            idpUrl: provider.issuer,
            audience: authorizationServerUrl,
            resource: resourceUrl,
            idToken,
            fetchFn,
            clientId: MCP_CLIENT.client_id,
            clientSecret: MCP_CLIENT.client_secret,
          })
        ).jwtAuthGrant,
    });

  async function connect(authProvider: OAuthClientProvider, era: keyof typeof ERAS): Promise<Client> {
    const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: ERAS[era] } });
    await client.connect(new StreamableHTTPClientTransport(new URL(resource), { authProvider }));
    return client;
  }

  const userId = async (sub: string): Promise<string> =>
    [...(await service.runtime.host.state(userState)).values()].find(({ identities }) =>
      identities.some(({ subject }) => subject === sub),
    )?.id as string;

  /** Asserts that a call does not reach the server. */
  async function assertNoCall(client: Client, given: Record<string, unknown> = {}): Promise<void> {
    const before = setup.record().length;
    const outcome = await call(client, "echo", given).catch((error: unknown) => String(error));
    assert.ok(typeof outcome === "string" || outcome.isError === true, JSON.stringify(outcome));
    assert.equal(setup.record().length, before);
  }

  /** Principal and agent of the newest action. */
  async function newest(): Promise<[principal: unknown, agent: unknown]> {
    const [action = {}] = await setup.actions();
    return [(action["submitted_by"] as { principal: string }).principal, action["agent_id"]];
  }

  for (const era of ["2025-11-25", "2026-07-28"] as const)
    test(`a client of ${era} with an ID-JAG acts as its user and the client's agent`, async () => {
      const contexts = [await signIn("ada"), await signIn("bob")] as const;
      const [adas, bobs] = [
        await connect(companyClient(await idTokenOf(contexts[0])), era),
        await connect(companyClient(await idTokenOf(contexts[1])), era),
      ];
      assert.equal((await call(adas, "echo", { of: "ada" })).content[0]?.text, '{"of":"ada"}');
      assert.deepEqual(await newest(), [`user:${await userId("ada")}`, "desktop"]);
      assert.equal((await call(bobs, "echo", { of: "bob" })).content[0]?.text, '{"of":"bob"}');
      assert.deepEqual(await newest(), [`user:${await userId("bob")}`, "desktop"]);
      for (const client of [adas, bobs]) await client.close();
      for (const context of contexts) await context.close();
    });

  test("a person connects a client in the browser, sees it in the console, and disconnects it while a call waits", async () => {
    const context = await signIn("ada");
    const memory = createMemory(provider.callback);
    const attempt = connect(memory, "2026-07-28");
    await assert.rejects(attempt, UnauthorizedError);
    const page = await context.newPage();
    const code = await codeAt(page, String(memory.url), async () => {
      await page.getByText("Test editor").waitFor();
      await page.getByRole("button", { name: "Allow" }).click();
    });
    const transport = new StreamableHTTPClientTransport(new URL(resource), { authProvider: memory });
    await transport.finishAuth(code, origin);
    const client = await connect(memory, "2026-07-28");
    assert.equal((await call(client, "echo")).isError, undefined);
    assert.deepEqual(await newest(), [`user:${await userId("ada")}`, "assistant"]);
    const waiting = call(client, "write", { n: 500 });
    await until("the call is pending approval", setup.waits(500));
    const apps = await open(context, `${origin}/#/apps`);
    const row = apps.page.getByRole("row", { name: /Test editor/ });
    await row.getByText("assistant").waitFor();
    await row.getByRole("button", { name: "Disconnect" }).click();
    await row.getByText("disconnected").waitFor();
    await setup.decide(true);
    const refused = await waiting;
    assert.equal(refused.isError, true, JSON.stringify(refused));
    assert.ok(!setup.record().some(({ given }) => (given as { n?: number } | undefined)?.n === 500));
    await assertNoCall(client);
    assert.deepEqual(apps.complaints, []);
    await client.close();
    await context.close();
  });

  test("without a valid token, a request gets 401 with the metadata, and no call is made", async () => {
    const before = setup.record().length;
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: {} });
    const send = (token?: string): Promise<Response> =>
      fetch(resource, {
        method: "POST",
        body,
        headers: {
          "content-type": "application/json",
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      });
    const plain = await send();
    assert.equal(plain.status, 401);
    const [, metadata = ""] = /resource_metadata="([^"]+)"/.exec(plain.headers.get("www-authenticate") ?? "") ?? [];
    const document = (await (await fetch(metadata)).json()) as Record<string, unknown>;
    assert.deepEqual([document["resource"], document["authorization_servers"]], [resource, [origin]]);
    const made = `oat_${crypto.randomUUID()}_1_${"x".repeat(43)}`;
    for (const token of ["x", service.admin, made]) assert.equal((await send(token)).status, 401, token);
    assert.equal(setup.record().length, before);
  });

  test("doctor says whether users can sign in", async (t) => {
    const cwd = folderWith(t, {
      "assent-mcp.yaml": `listen: { resource: "${resource}" }\nservers: { notes: { command: node } }\n`,
    });
    const find = async (key: string): Promise<{ state: string; text: string } | undefined> => {
      const { out } = await assent(["doctor", "--json"], { cwd, env: { ASSENT_URL: origin, ASSENT_API_KEY: key } });
      const { findings } = JSON.parse(out) as { findings: { check: string; state: string; text: string }[] };
      return findings.find(({ check }) => check === "mcp");
    };
    assert.equal((await find(proxyKey))?.state, "ok");
    const wrong = await find(service.agent);
    assert.deepEqual([wrong?.state, wrong?.text.includes("oauth:present")], ["problem", true]);
  });

  test("no client can use the session of another user", async () => {
    const contexts = [await signIn("ada"), await signIn("bob")] as const;
    const [ada, bob] = [companyClient(await idTokenOf(contexts[0])), companyClient(await idTokenOf(contexts[1]))];
    const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "legacy" } });
    const transport = new StreamableHTTPClientTransport(new URL(resource), { authProvider: ada });
    await client.connect(transport);
    const bobs = await connect(bob, "2025-11-25");
    const body = { jsonrpc: "2.0", id: 9, method: "tools/call", params: { name: "echo", arguments: { stolen: true } } };
    const response = await fetch(resource, {
      method: "POST",
      body: JSON.stringify(body),
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${bob.tokens()?.access_token}`,
        "mcp-session-id": transport.sessionId ?? "",
      },
    });
    assert.equal(response.status, 404);
    assert.ok(!setup.record().some(({ given }) => JSON.stringify(given) === '{"stolen":true}'));
    for (const each of [client, bobs]) await each.close();
    for (const context of contexts) await context.close();
  });

  test("while the service answers garbage, an error or nothing, or the provider refuses, no call is made", async () => {
    const context = await signIn("ada");
    const idToken = await idTokenOf(context);
    const client = await connect(companyClient(idToken), "2026-07-28");
    assert.equal((await call(client, "echo", { n: 1 })).isError, undefined);
    const calls = (): number => setup.record().length;
    const before = calls();
    for (const answer of ["garbage", "error", "hang"] as const) {
      outage.answer = answer;
      await assertNoCall(client, { during: answer });
      outage.answer = "pass";
    }
    assert.equal(calls(), before);
    provider.exchangeStatus = 403;
    await assert.rejects(connect(companyClient(idToken), "2026-07-28"));
    provider.exchangeStatus = 500;
    await assert.rejects(connect(companyClient(idToken), "2026-07-28"));
    provider.exchangeStatus = null;
    assert.equal(calls(), before);
    assert.equal((await call(client, "echo", { n: 2 })).isError, undefined);
    await client.close();
    await context.close();
  });

  test("deactivating the user ends the client's access", async () => {
    const context = await signIn("bob");
    const client = await connect(companyClient(await idTokenOf(context)), "2026-07-28");
    assert.equal((await call(client, "echo")).isError, undefined);
    const path = `/v1/users/${await userId("bob")}/end`;
    assert.equal((await service.call("POST", path, { key: service.admin, body: { reason: "left" } })).status, 200);
    await assertNoCall(client);
    await client.close().catch(() => undefined);
    await context.close();
  });
});

/** What an MCP client stores about an authorization server, as the official client calls it. */
function createMemory(callback: string): OAuthClientProvider & { url: URL | null } {
  const stored: Record<string, unknown> = {};
  const memory = {
    url: null as URL | null,
    redirectUrl: callback,
    clientMetadata: { client_name: "Test editor", redirect_uris: [callback] },
    clientInformation: () => stored["client"] as never,
    saveClientInformation: (client: unknown) => void (stored["client"] = client),
    tokens: () => stored["tokens"] as never,
    saveTokens: (tokens: unknown) => void (stored["tokens"] = tokens),
    redirectToAuthorization: (url: URL) => void (memory.url = url),
    saveCodeVerifier: (verifier: string) => void (stored["verifier"] = verifier),
    codeVerifier: () => stored["verifier"] as string,
    saveDiscoveryState: (state: unknown) => void (stored["discovery"] = state),
    discoveryState: () => stored["discovery"] as never,
  };
  return memory;
}
