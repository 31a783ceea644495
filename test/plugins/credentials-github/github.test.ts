/** Installation tokens of a GitHub App, from a look-alike built from the REST API's documentation. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { jwtVerify } from "jose";
import plugin from "../../../plugins/credentials-github/index.ts";
import type { ToolCredentialIssuer, Host } from "../../../src/plugin.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const OPTIONS = {
  tools: ["github"],
  operations: ["*"],
  app_id: "12345",
  // GitHub hands out PKCS #1.
  private_key: privateKey.export({ type: "pkcs1", format: "pem" }) as string,
  installation_id: 77,
  repositories: ["web", "api"],
  repository_param: "repo",
  permissions: { contents: "write" as const },
};
const ACTION = {
  id: "0192f8a0-0000-7000-8000-000000000001",
  agent_id: "bot",
  tool: "github",
  operation: "push",
  params: { repo: "Web" },
};
const TOKEN = {
  token: "ghs_token",
  expires_at: "2030-01-01T01:00:00Z",
  permissions: { contents: "write", metadata: "read" },
  repositories: [{ id: 1, name: "web", full_name: "acme/web" }],
};

describe("the issuer of GitHub tokens", () => {
  let github: Receiver;
  let issuer: ToolCredentialIssuer;
  const create = async (over: object = {}): Promise<ToolCredentialIssuer> => {
    const options = { issuers: { code: { ...OPTIONS, api_url: `http://127.0.0.1:${github.port}`, ...over } } };
    const { credentialIssuers } = (await plugin.setup?.({} as Host, options)) ?? {};
    return credentialIssuers?.[0] as ToolCredentialIssuer;
  };
  before(async () => {
    github = await startReceiver();
    issuer = await create();
  });
  after(() => github.close());
  beforeEach(() => {
    github.received.length = 0;
    answer(201, TOKEN);
  });
  function answer(status: number, body: object | null): void {
    github.answer = ({ method }, response) =>
      void (method === "DELETE" ? response.writeHead(204).end() : response.writeHead(status).end(JSON.stringify(body)));
  }
  const issue = (params: object = ACTION.params, by = issuer) =>
    by.issue({ ...ACTION, params: params as typeof ACTION.params }, AbortSignal.timeout(5000));

  test("gets a token for the action's repository and the configured permissions only", async () => {
    const { secret, expires_at, revocation } = await issue();
    assert.deepEqual(secret, { token: "ghs_token", repositories: ["web"] });
    assert.deepEqual([new Date(expires_at).toISOString(), revocation], ["2030-01-01T01:00:00.000Z", "ghs_token"]);
    const [request] = github.received;
    assert.deepEqual([request?.method, request?.path], ["POST", "/app/installations/77/access_tokens"]);
    assert.deepEqual(JSON.parse(request?.body ?? ""), { repositories: ["web"], permissions: { contents: "write" } });
  });

  test("signs in as the app, for at most ten minutes", async () => {
    await issue();
    const token = String(github.received[0]?.headers.authorization).replace("Bearer ", "");
    const { payload, protectedHeader } = await jwtVerify(token, publicKey, { issuer: "12345", algorithms: ["RS256"] });
    assert.equal(protectedHeader.typ, "JWT");
    assert.ok((payload.exp ?? 0) - (payload.iat ?? 0) <= 600);
  });

  test("revokes the token, and takes an expired one for revoked", async () => {
    await issuer.revoke?.("ghs_token", AbortSignal.timeout(5000));
    const [request] = github.received;
    assert.deepEqual(
      [request?.method, request?.path, request?.headers.authorization],
      ["DELETE", "/installation/token", "Bearer ghs_token"],
    );
    github.answer = (_, response) => void response.writeHead(401).end();
    await issuer.revoke?.("ghs_token", AbortSignal.timeout(5000));
    github.answer = (_, response) => void response.writeHead(500).end();
    await assert.rejects(async () => issuer.revoke?.("ghs_token", AbortSignal.timeout(5000)), /500/);
  });

  test("revokes a token that reaches more than was requested", async () => {
    for (const more of [
      { repositories: [...TOKEN.repositories, { name: "payroll" }] },
      { repositories: undefined },
      { repositories: [{ name: "payroll" }] },
      { permissions: { contents: "write", administration: "write" } },
      { permissions: { contents: "admin" } },
      { permissions: undefined },
    ]) {
      github.received.length = 0;
      answer(201, { ...TOKEN, ...more });
      await assert.rejects(issue(), /granted other/, JSON.stringify(more));
      assert.equal(github.received.at(-1)?.method, "DELETE");
    }
  });

  test("asks for nothing when the parameter names no repository of the configuration", async () => {
    for (const repo of ["payroll", "web/../payroll", "", "*", ["web"], null, 7])
      await assert.rejects(issue({ repo }), /does not name a configured repository/);
    await assert.rejects(issue({}), /does not name a configured repository/);
    assert.deepEqual(github.received, []);
  });

  test("fails when GitHub refuses or answers with something else", async () => {
    for (const [status, body] of [
      [404, { message: "Not Found" }],
      [201, {}],
      [201, null],
      [200, TOKEN],
    ] as const) {
      answer(status, body);
      await assert.rejects(issue(), /GitHub/);
    }
  });

  test("is refused at start with a key that is not RSA in PEM, without its text", async () => {
    await assert.rejects(create({ private_key: "not a key" }), (error: Error) => !error.message.includes("not a key"));
    const { privateKey: ec } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await assert.rejects(create({ private_key: ec.export({ type: "pkcs8", format: "pem" }) }), /RSA/);
  });
});
