/** Credentials that are issued when an action starts, and end with it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  type Contributions,
  type ToolCredentialAction,
  definePlugin,
  type IssuedToolCredential,
  type Plugin,
} from "../../../src/plugin.ts";
import { sha256Hex, utf8 } from "../../../src/domain/hash.ts";
import { needs } from "../../support/features.ts";
import { writeDocumentedPlugin } from "../../support/documented.ts";
import { startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: open
rules:
  - { name: go, tool: [vault, both, free, slow], effect: allow }
`;
/** Also allows what the policy above allows, and decides nothing alone. */
const SECOND = "policy: second\nrules:\n  - { name: also, tool: vault, operation: watched, effect: allow }\n";
const MINUTE = 60_000;

/** A provider of credentials that lists what is valid, and can fail. */
class Provider {
  issued = 0;
  readonly actions: ToolCredentialAction[] = [];
  readonly valid = new Set<string>();
  readonly revoked: string[] = [];
  behaviour: "works" | "fails" | "hangs" | "expired" | "no object" | "cannot revoke" = "works";
  /** Passwords whose revocation fails. */
  readonly stuck = new Set<string>();
  lateAnswer: ((value: IssuedToolCredential) => void) | null = null;
  beforeAnswer: (() => Promise<void>) | null = null;

  async issue(action: ToolCredentialAction, now: number): Promise<IssuedToolCredential> {
    this.actions.push(action);
    if (this.behaviour === "fails") throw new Error("provider down, password hunter2");
    const password = `secret-${++this.issued}`;
    const answer = { secret: { password }, expires_at: now + 10 * MINUTE, revocation: password };
    if (this.behaviour === "no object") return "secret" as unknown as IssuedToolCredential;
    this.valid.add(password);
    if (this.behaviour === "expired") return { ...answer, expires_at: now };
    await this.beforeAnswer?.();
    return answer;
  }
  async revoke(password: string): Promise<void> {
    await Promise.resolve();
    if (this.behaviour === "cannot revoke" || this.stuck.has(password)) throw new Error("provider down");
    this.valid.delete(password);
    this.revoked.push(password);
  }
}

const provider = new Provider();
let service: Service;
let tool: string;
let n = 0;
before(async () => {
  const plugin = definePlugin({
    name: "test-credentials",
    setup: (host) => {
      const issue = (action: ToolCredentialAction) => provider.issue(action, host.timeOfDay());
      const revoke = (revocation: string) => provider.revoke(revocation);
      const operations = ["*"];
      return {
        credentialIssuers: [
          { name: "vault", tools: ["vault", "both"], operations, issue, revoke },
          { name: "other", tools: ["both"], operations, issue, revoke },
          // Never confirms a revocation.
          { name: "hanging", tools: ["slow"], operations, issue, revoke: () => new Promise<void>(() => undefined) },
        ],
      };
    },
  });
  service = await startService({ policy: POLICY, plugins: [{ plugin, options: {}, origin: "test" }] });
  tool = await createKey("tool", ["actions:execute", "credentials:receive"]);
});
// Audits the store, too.
after(() => service.close());

async function createKey(name: string, scopes: string[], more: object = {}): Promise<string> {
  const body = { name, scopes, ...more };
  return (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body.key;
}

const post = (id: string, verb: string, body: object = {}, key = tool): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/${verb}`, { key, body });
const statusOf = async (id: string): Promise<string> => (await service.call("GET", `/v1/actions/${id}`)).body.status;
const eventsOf = async (id: string): Promise<{ type: string; data: Record<string, unknown> }[]> => {
  const { events } = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body;
  return events.map(({ entry }: { entry: { type: string; data: Record<string, unknown> } }) => entry);
};
const credentialEvents = async (id: string) => (await eventsOf(id)).filter(({ type }) => type.startsWith("actions:"));

async function submit(more: object = {}): Promise<{ id: string; permit: string }> {
  const body = { agent_id: "bot", tool: "vault", operation: "read", params: { n: ++n }, ...more };
  return (await service.call("POST", "/v1/actions", { body, headers: { prefer: "permit" } })).body;
}
async function start(more: object = {}): Promise<{ id: string; password: string; answer: Answer }> {
  const { id, permit } = await submit(more);
  const answer = await post(id, "start", { permit, attempt: `attempt-${id}` });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { id, password: answer.body.credential.secret.password, answer };
}
const untilEnded = (id: string) =>
  until("the credential has ended", async () => (await credentialEvents(id)).length === 2);

describe("a credential", () => {
  test("goes to the tool that starts the action with its permit, and the ledger has only its digest", async () => {
    const { id, password, answer } = await start();
    assert.deepEqual(Object.keys(answer.body.credential).sort(), ["expires_at", "issuer", "secret"]);
    const { agent_id, tool: name, operation, params } = provider.actions.at(-1) ?? {};
    assert.deepEqual([agent_id, name, operation, params], ["bot", "vault", "read", { n }]);
    const [entry] = await credentialEvents(id);
    assert.equal(entry?.type, "actions:credential_issued");
    assert.deepEqual(entry?.data, {
      issuer: "vault",
      digest: sha256Hex(utf8(JSON.stringify({ password }))),
      expires_at: answer.body.credential.expires_at,
    });
    const everything =
      JSON.stringify(await eventsOf(id)) + JSON.stringify((await service.call("GET", `/v1/actions/${id}`)).body);
    assert.ok(!everything.includes(password));
  });

  test("is not in the store in clear, because a backup would give it away", async () => {
    const { password } = await start();
    const documents = await service.storage.documents({ plugin: "credentials", prefix: "credential/", limit: 100 });
    assert.ok(documents.length > 0);
    assert.ok(!JSON.stringify(documents).includes(password));
  });

  test("does not go to an agent: its key cannot start the action", async () => {
    const { id, permit } = await submit();
    for (const body of [{}, { permit }]) {
      const { status, body: refused } = await post(id, "start", body, service.agent);
      assert.deepEqual([status, refused.code], [403, "INSUFFICIENT_SCOPE"]);
    }
    assert.equal(await statusOf(id), "allowed");
  });

  test("is not issued for actions that no issuer covers", async () => {
    const { id, permit } = await submit({ tool: "free" });
    const { status, body } = await post(id, "start", { permit }, service.agent);
    assert.deepEqual([status, body.credential], [200, undefined]);
  });

  test("is refused where two issuers cover the action", async () => {
    const { id, permit } = await submit({ tool: "both" });
    const { status, body } = await post(id, "start", { permit });
    assert.deepEqual([status, body.code], [502, "CREDENTIAL_NOT_ISSUED"]);
    assert.equal(await statusOf(id), "allowed");
  });

  for (const behaviour of ["fails", "expired", "no object"] as const)
    test(`leaves the action startable when the issuer's answer is: ${behaviour}`, async () => {
      const { id, permit } = await submit();
      provider.behaviour = behaviour;
      try {
        const { status, body } = await post(id, "start", { permit });
        assert.deepEqual([status, body.code], [502, "CREDENTIAL_NOT_ISSUED"]);
        assert.ok(!JSON.stringify(body).includes("hunter2"), "the provider's message is for the log");
      } finally {
        provider.behaviour = "works";
      }
      assert.equal(await statusOf(id), "allowed");
      assert.deepEqual(await credentialEvents(id), []);
      if (behaviour === "expired")
        await until("the unused credential is revoked", () => !provider.valid.has(`secret-${provider.issued}`));
      assert.equal((await post(id, "start", { permit })).status, 200);
    });

  test("is issued at most ten times for one action", async () => {
    const { id, permit } = await submit();
    const body = { permit, attempt: `attempt-${id}` };
    for (let i = 0; i < 10; i++) assert.equal((await post(id, "start", body)).status, 200);
    const { status, body: refused } = await post(id, "start", body);
    assert.deepEqual([status, refused.code], [502, "CREDENTIAL_NOT_ISSUED"]);
    assert.ok(!provider.valid.has(`secret-${provider.issued}`), "the eleventh is revoked");
    await post(id, "result", { success: true });
  });

  test("is issued again when a start is repeated, and both end with the action", async () => {
    const { id, permit } = await submit();
    const body = { permit, attempt: `attempt-${id}` };
    const [first, second] = [await post(id, "start", body), await post(id, "start", body)];
    assert.equal(second.headers.get("idempotency-replayed"), "true");
    const passwords = [first, second].map((answer) => answer.body.credential.secret.password as string);
    assert.notEqual(passwords[0], passwords[1]);
    await post(id, "result", { success: true });
    await until("both have ended", () => passwords.every((password) => !provider.valid.has(password)));
  });

  test("is revoked unseen when a stop is placed while it is issued", needs("stop"), async () => {
    const { id, permit } = await submit({ agent_id: "stopped-bot" });
    provider.beforeAnswer = async () => {
      const body = { agent: "stopped-bot", reason: "test" };
      assert.equal((await service.call("POST", "/v1/stop", { key: service.admin, body })).status, 201);
    };
    const issuedBefore = provider.issued;
    try {
      const answer = await post(id, "start", { permit });
      assert.notEqual(answer.status, 200);
      assert.equal(answer.body.credential, undefined);
    } finally {
      provider.beforeAnswer = null;
    }
    assert.equal(provider.issued, issuedBefore + 1);
    assert.ok(!provider.valid.has(`secret-${provider.issued}`));
    assert.deepEqual(await credentialEvents(id), []);
  });
});

describe("a credential ends", () => {
  test("with the result of its action", async () => {
    const { id, password } = await start();
    assert.ok(provider.valid.has(password));
    await post(id, "result", { success: true });
    await untilEnded(id);
    assert.ok(!provider.valid.has(password));
    const { data } = (await credentialEvents(id))[1] ?? {};
    assert.deepEqual([data?.["cause"], data?.["revoked"]], ["result", true]);
  });

  test("at a stop that covers the running action", needs("stop"), async () => {
    const { id, password } = await start({ agent_id: "halted-bot" });
    await service.call("POST", "/v1/stop", { key: service.admin, body: { agent: "halted-*", reason: "test" } });
    await untilEnded(id);
    assert.ok(!provider.valid.has(password));
    assert.equal((await credentialEvents(id))[1]?.data["cause"], "stopped");
  });

  test(
    "at a stop of any policy that takes part in the decision, and at no stop of another policy",
    needs("stop"),
    async () => {
      const stored = await service.call("POST", "/v1/policies?activate=true", {
        key: service.admin,
        raw: SECOND,
        headers: { "content-type": "application/yaml" },
      });
      assert.equal(stored.status, 201, JSON.stringify(stored.body));
      const watched = await start({ operation: "watched" });
      const other = await start();
      await service.call("POST", "/v1/stop", { key: service.admin, body: { policy: "second", reason: "test" } });
      await untilEnded(watched.id);
      assert.equal((await credentialEvents(watched.id))[1]?.data["cause"], "stopped");
      assert.ok(provider.valid.has(other.password));
      await post(other.id, "result", { success: true });
    },
  );

  test("when the key that started the action is revoked", async () => {
    const other = await createKey("tool-2", ["actions:execute", "credentials:receive"]);
    const { id, permit } = await submit();
    const { body } = await post(id, "start", { permit }, other);
    const { key } = (await service.call("GET", "/v1/me", { key: other })).body;
    assert.equal((await service.call("DELETE", `/v1/api-keys/${key.id}`, { key: service.admin })).status, 200);
    await untilEnded(id);
    assert.ok(!provider.valid.has(body.credential.secret.password));
    assert.equal((await credentialEvents(id))[1]?.data["cause"], "access_lost");
  });

  test("when its agent is suspended", needs("agents"), async () => {
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: "paused-bot" } });
    const { id, password } = await start({ agent_id: "paused-bot" });
    await service.call("POST", "/v1/agents/paused-bot/suspend", { key: service.admin });
    await untilEnded(id);
    assert.ok(!provider.valid.has(password));
  });

  test("after a restart, when it has expired", async () => {
    const { id, password } = await start();
    service.clock.now += 11 * MINUTE;
    await service.restart();
    await untilEnded(id);
    assert.ok(!provider.valid.has(password));
    assert.equal((await credentialEvents(id))[1]?.data["cause"], "expired");
  });

  test("only when the provider confirms the revocation, which is repeated until then", async () => {
    const { id, password } = await start();
    provider.behaviour = "cannot revoke";
    await post(id, "result", { success: true });
    await service.restart();
    assert.equal((await credentialEvents(id)).length, 1);
    assert.ok(provider.valid.has(password));
    provider.behaviour = "works";
    await service.restart();
    await untilEnded(id);
    assert.ok(!provider.valid.has(password));
  });

  test("although an older one of the same issuer cannot be revoked", async () => {
    const stuck = await start();
    provider.stuck.add(stuck.password);
    await post(stuck.id, "result", { success: true });
    const { id, password } = await start();
    await post(id, "result", { success: true });
    await untilEnded(id);
    assert.ok(!provider.valid.has(password));
    assert.ok(provider.valid.has(stuck.password));
    provider.stuck.clear();
    await service.restart();
    await untilEnded(stuck.id);
  });

  test("although another issuer does not answer", async () => {
    const slow = await start({ tool: "slow" });
    await post(slow.id, "result", { success: true });
    const { id, password } = await start();
    await post(id, "result", { success: true });
    await untilEnded(id);
    assert.ok(!provider.valid.has(password));
    assert.equal((await credentialEvents(slow.id)).length, 1, "it is still open");
  });
});

test("a credential is issued, and does not end early, although the ledger's clock is a day ahead", async () => {
  service.clock.now += 86_400_000;
  await submit();
  service.clock.now -= 86_400_000;
  assert.ok(service.runtime.host.ledger.clockAhead() > 86_000_000);
  const { id, password, answer } = await start();
  assert.ok(Date.parse(answer.body.credential.expires_at) < service.runtime.host.timeOfDay() + 11 * MINUTE);
  assert.equal((await credentialEvents(id)).length, 1);
  assert.ok(provider.valid.has(password));
  service.clock.now += 86_400_000 + 11 * MINUTE;
  await untilEnded(id);
  service.clock.now -= 86_400_000 + 11 * MINUTE;
});

test("the plugin of docs/credentials.md works as printed, and confirms no revocation that the provider refused", async (t) => {
  const module = (await import(pathToFileURL(writeDocumentedPlugin("credentials.md", service.folder)).href)) as {
    default: Plugin;
  };
  const { credentialIssuers: [issuer] = [] } = ((await module.default.setup?.({} as never, {} as never)) ??
    {}) as Contributions;
  assert.ok(issuer?.revoke !== undefined);
  let status = 200;
  const answer = { token: "t", expires: "2026-01-01T00:00:00Z" };
  t.mock.method(globalThis, "fetch", () => Promise.resolve(Response.json(answer, { status })));
  const { signal } = new AbortController();
  const issued = { secret: { token: "t" }, expires_at: Date.parse(answer.expires), revocation: "t" };
  assert.deepEqual(await issuer.issue({} as ToolCredentialAction, signal), issued);
  status = 404;
  await issuer.revoke("t", signal);
  status = 500;
  await assert.rejects(issuer.revoke("t", signal), /answered with 500/);
  await assert.rejects(issuer.issue({} as ToolCredentialAction, signal), /answered with 500/);
});
