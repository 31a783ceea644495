import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { formatKey, checkKeyFormat } from "../../../src/domain/api-key.ts";
import { ALLOWED, startService, type Answer, type Service, person, addPerson } from "../../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.close());

const admin = (method: string, path: string, options: Parameters<Service["call"]>[2] = {}): Promise<Answer> =>
  service.call(method, path, { key: service.admin, ...options });
let counter = 0;
const make = async (over: object = {}, key = service.admin): Promise<Answer> =>
  service.call("POST", "/v1/api-keys", { key, body: { name: `made ${++counter}`, preset: "agent", ...over } });

describe("API keys", () => {
  it("have a format that secret scanners recognise and that detects typing errors", async () => {
    const { key } = (await make()).body;
    assert.match(key, /^assent_[A-Za-z0-9_-]{43}[0-9a-f]{8}$/);
    assert.equal(checkKeyFormat(key), "ok");
    const mistyped = `${key.slice(0, 20)}${key[20] === "a" ? "b" : "a"}${key.slice(21)}`;
    const refused = await service.call("GET", "/v1/actions", { key: mistyped });
    assert.deepEqual([refused.status, refused.body.code], [401, "INVALID_CREDENTIAL"]);
    assert.match(refused.body.detail, /checksum/);
    assert.match(
      (await service.call("GET", "/v1/actions", { key: formatKey(new Uint8Array(32)) })).body.detail,
      /the API key is not valid/,
    );
  });

  it("store when they were last used, with low precision, without a ledger entry", async () => {
    const { id, key } = (await make()).body;
    const seen = async (): Promise<string | null> =>
      (await admin("GET", "/v1/api-keys?limit=1000")).body.api_keys.find((k: { id: string }) => k.id === id)
        .last_used_at;
    assert.equal(await seen(), null);
    await service.call("GET", "/v1/actions", { key });
    const { size } = await service.storage.head();
    await service.restart();
    const first = await seen();
    assert.ok(first !== null && Math.abs(Date.parse(first) - Date.now()) < 60_000, String(first));
    assert.equal((await service.storage.head()).size, size);
    service.clock.now += 30_000;
    await service.call("GET", "/v1/actions", { key });
    service.clock.now += 90_000;
    await service.call("GET", "/v1/actions", { key });
    await service.restart();
    assert.ok(Date.parse((await seen()) as string) >= Date.parse(first) + 110_000);
  });

  it("expire, and are listed by whether they are valid", async () => {
    const at = new Date(Date.now() + service.clock.now + 60_000).toISOString();
    const { id, key } = (await make({ expires_at: at })).body;
    assert.equal((await service.call("POST", "/v1/actions", { key, body: ALLOWED })).status, 200);
    service.clock.now += 60_000;
    assert.equal((await service.call("POST", "/v1/actions", { key, body: ALLOWED })).status, 401);
    const ids = async (status: string): Promise<string[]> =>
      (await admin("GET", `/v1/api-keys?status=${status}&limit=1000`)).body.api_keys.map((k: { id: string }) => k.id);
    assert.ok((await ids("ended")).includes(id) && !(await ids("live")).includes(id));
    const late = await make({ expires_at: at });
    assert.deepEqual([late.status, late.body.errors[0].pointer], [422, "/expires_at"]);
  });

  it("are listed by the agent that they are bound to, and by the principal that they vote as", async () => {
    const { id } = (await make({ name: "listed", agent_id: "listed-bot", owner: await addPerson(service, "Ed") })).body;
    for (const query of ["agent_id=listed-bot", `principal=${encodeURIComponent(person("Ed"))}`]) {
      const { body } = await admin("GET", `/v1/api-keys?${query}`);
      assert.deepEqual(
        body.api_keys.map((key: { id: string }) => key.id),
        [id],
        query,
      );
    }
    assert.deepEqual((await admin("GET", "/v1/api-keys?agent_id=no-bot")).body.api_keys, []);
  });

  it("stay expired when the clock goes back", async () => {
    const { key } = (await make({ expires_at: new Date(Date.now() + service.clock.now + 3_600_000).toISOString() }))
      .body;
    const use = async (): Promise<number> => (await service.call("GET", "/v1/actions", { key })).status;
    assert.equal(await use(), 200);
    service.clock.now += 86_400_000;
    assert.equal(await use(), 401);
    service.clock.now -= 86_400_000;
    assert.deepEqual(
      [await use(), (await service.call("POST", "/v1/actions", { key, body: ALLOWED })).status],
      [401, 401],
    );
  });

  it("have unique names among valid keys, and a name can be reused after its key ends", async () => {
    const { id } = (await make({ name: "unique" })).body;
    assert.equal((await make({ name: "unique" })).body.code, "KEY_NAME_TAKEN");
    await admin("DELETE", `/v1/api-keys/${id}`);
    assert.equal((await make({ name: "unique" })).status, 201);
    const racing = await Promise.all(Array.from({ length: 5 }, () => make({ name: "raced" })));
    assert.deepEqual(racing.map(({ status }) => status).sort(), [201, 409, 409, 409, 409]);
  });

  it("keys cannot have scopes that their creator lacks, and only callers who could have created them can revoke them", async () => {
    const manager = (await make({ preset: undefined, scopes: ["keys:manage", "actions:read"] })).body.key;
    const wider = await make({ preset: undefined, scopes: ["actions:submit"] }, manager);
    assert.deepEqual([wider.status, wider.body.code], [403, "SCOPE_ESCALATION"]);
    assert.equal((await make({ preset: undefined, scopes: ["actions:read"] }, manager)).status, 201);
    const strong = (await make()).body;
    assert.equal(
      (await service.call("DELETE", `/v1/api-keys/${strong.id}`, { key: manager })).body.code,
      "SCOPE_ESCALATION",
    );
    assert.equal((await service.call("GET", "/v1/actions", { key: strong.key })).status, 200);
  });

  it("have an owner who is a user, given by an id and not by a name", async () => {
    await addPerson(service, "Ada");
    for (const owner of ["Ada", "owner:ada", "user:Ada", "  ", "\u200b"]) {
      const refused = await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "of nobody", preset: "approver", owner },
      });
      assert.deepEqual(
        [refused.status, refused.body.code, refused.body.errors?.[0].pointer],
        [422, "VALIDATION_FAILED", "/owner"],
        JSON.stringify(owner),
      );
    }
  });

  it("keep one admin key, and the error says what to do", async () => {
    const keys = (await admin("GET", "/v1/api-keys?limit=1000")).body.api_keys as { id: string; scopes: string[] }[];
    const [only, ...more] = keys.filter(({ scopes }) => scopes.includes("admin"));
    assert.equal(more.length, 0);
    const refused = await admin("DELETE", `/v1/api-keys/${only?.id}`);
    assert.deepEqual([refused.status, refused.body.code], [409, "LAST_ADMIN_KEY"]);
    assert.match(refused.body.detail, /POST \/v1\/api-keys/);
    const expiring = (
      await make({
        preset: "admin",
        expires_at: new Date(Date.now() + service.clock.now + 3_600_000).toISOString(),
      })
    ).body;
    assert.equal((await admin("DELETE", `/v1/api-keys/${only?.id}`)).status, 409, "one that ends is no way out");
    assert.equal((await admin("DELETE", `/v1/api-keys/${expiring.id}`)).status, 200);
    const other = (await make({ preset: "admin" })).body;
    const both = await Promise.all([
      service.call("DELETE", `/v1/api-keys/${only?.id}`, { key: other.key }),
      admin("DELETE", `/v1/api-keys/${other.id}`),
    ]);
    assert.equal(both.filter(({ status }) => status === 200).length, 1, "two admins cannot revoke each other");
  });
});

describe("lists and retries of keys", () => {
  it("are listed in pages that neither skip nor repeat", async () => {
    const own = await startService();
    try {
      for (let i = 0; i < 12; i++)
        await own.call("POST", "/v1/api-keys", { key: own.admin, body: { name: `k${i}`, preset: "agent" } });
      const all: string[] = [];
      let path: string | null = "/v1/api-keys?limit=5";
      while (path !== null) {
        const page: Answer = await own.call("GET", path, { key: own.admin });
        assert.ok(page.body.api_keys.length <= 5);
        all.push(...page.body.api_keys.map((k: { name: string }) => k.name));
        path = /^<([^>]+)>/.exec(page.headers.get("link") ?? "")?.[1] ?? null;
      }
      assert.equal(new Set(all).size, 14);
      assert.equal(all[0], "k11");
    } finally {
      await own.close();
    }
  });

  it("create one key for one Idempotency-Key, and never show its value again", async () => {
    const own = await startService();
    try {
      const headers = { "idempotency-key": "one" };
      const send = (body: object): Promise<Answer> =>
        own.call("POST", "/v1/api-keys", { key: own.admin, body, headers });
      const [first, second] = [
        await send({ name: "once", preset: "agent" }),
        await send({ name: "once", preset: "agent" }),
      ];
      assert.deepEqual([first.status, second.status, second.body.id, second.body.key], [201, 200, first.body.id, null]);
      assert.equal((await own.call("GET", "/v1/actions", { key: first.body.key })).status, 200);
      assert.equal((await send({ name: "once", preset: "admin" })).body.code, "IDEMPOTENCY_CONFLICT");
    } finally {
      await own.close();
    }
  });
});
