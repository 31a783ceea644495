/** What a key can read without managing keys, and how to create one with the fewest members. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { hasFeature } from "../../support/features.ts";
import { startService, type Answer, type Service } from "../../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.close());

const call = (method: string, path: string, key = service.admin, body?: unknown): Promise<Answer> =>
  service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
const said = ({ status, body }: Answer): [number, string] => [status, body.code];

test("a name alone creates an agent's key, and its Location can be read", async () => {
  const made = await call("POST", "/v1/api-keys", service.admin, { name: "plain" });
  const preset = await call("POST", "/v1/api-keys", service.admin, { name: "preset", preset: "agent" });
  assert.equal(made.status, 201);
  assert.deepEqual(made.body.scopes, preset.body.scopes);
  const seen = await call("GET", made.headers.get("location") as string);
  const { key: _k, warnings: _w, ...record } = made.body;
  assert.deepEqual([seen.status, seen.body], [200, record]);
  assert.deepEqual(said(await call("POST", "/v1/api-keys", service.admin, { name: "none", scopes: [] })), [
    422,
    "VALIDATION_FAILED",
  ]);
});

test("a key that manages no keys sees only itself, by id and in the list", async () => {
  const { body: own } = await call("POST", "/v1/api-keys", service.admin, { name: "own" });
  const { body: other } = await call("POST", "/v1/api-keys", service.admin, { name: "other" });
  const { api_keys, next_cursor } = (await call("GET", "/v1/api-keys", own.key)).body;
  assert.deepEqual([api_keys.map(({ id }: { id: string }) => id), next_cursor], [[own.id], null]);
  assert.equal((await call("GET", `/v1/api-keys/${own.id}`, own.key)).body.name, "own");
  for (const id of [other.id, "nope", "%00", "a".repeat(2000), own.id.toUpperCase()])
    assert.deepEqual(said(await call("GET", `/v1/api-keys/${id}`, own.key)), [404, "KEY_NOT_FOUND"], id);
  for (const [method, path, body] of [
    ["POST", "/v1/api-keys", { name: "more" }],
    ["DELETE", `/v1/api-keys/${own.id}`, undefined],
  ] as const)
    assert.deepEqual(said(await call(method, path, own.key, body)), [403, "INSUFFICIENT_SCOPE"], method);
});

test("a managing key that is bound to an agent sees only that agent's keys", async () => {
  const make = (body: object): Promise<Answer> => call("POST", "/v1/api-keys", service.admin, body);
  const manager = (await make({ name: "manager", scopes: ["keys:manage"], agent_id: "a" })).body;
  const [same, another] = [
    (await make({ name: "same", agent_id: "a" })).body,
    (await make({ name: "another", agent_id: "b" })).body,
  ];
  assert.equal((await call("GET", `/v1/api-keys/${same.id}`, manager.key)).status, 200);
  assert.equal((await call("GET", `/v1/api-keys/${another.id}`, manager.key)).status, 404);
});

test("a malformed action id gets the same error on every route", async () => {
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["GET", "/events", undefined],
    ["POST", "/approval", { token: "t", approve: true }],
    ["POST", "/cancel", {}],
    ["POST", "/start", { permit: "p" }],
    ["POST", "/permit", undefined],
    ["POST", "/result", { success: true }],
    ...(hasFeature("retention") ? [["POST", "/erase", { reason: "r" }] as const] : []),
  ] as const)
    for (const id of ["nope", "0", "%00", "a".repeat(2000)])
      assert.deepEqual(
        said(await call(method, `/v1/actions/${id}${path}`, service.admin, body)),
        [404, "ACTION_NOT_FOUND"],
        `${method} ${path} ${id.slice(0, 9)}`,
      );
  const revoked = await call("DELETE", "/v1/api-keys/nope");
  assert.deepEqual(said(revoked), [404, "KEY_NOT_FOUND"]);
});

test("policies are imported from a file with any content type", async () => {
  const text = "policy: imported\nrules:\n  - { name: r, tool: x, effect: deny }\n";
  for (const type of ["text/plain", "text/plain; charset=utf-8", "application/x-www-form-urlencoded", "text/yaml"]) {
    const answer = await service.call("POST", "/v1/policies/import-yaml", {
      key: service.admin,
      raw: text,
      headers: { "content-type": type },
    });
    assert.deepEqual([answer.status, answer.body.policies?.[0].name, type], [200, "imported", type]);
  }
  const image = { key: service.admin, raw: text, headers: { "content-type": "image/png" } };
  assert.deepEqual(said(await service.call("POST", "/v1/policies/import-yaml", image)), [
    415,
    "UNSUPPORTED_MEDIA_TYPE",
  ]);
});
