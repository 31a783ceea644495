/** A start whose response was lost is sent again: the service repeats its response and starts nothing twice. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs, hasFeature } from "../../support/features.ts";
import { approve, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: open
rules:
  - { name: ask, operation: ask, effect: require_approval, approval: { valid_for: 1h } }
  - { name: go, operation: go, effect: allow }
`;
const ATTEMPT = "a-start-of-its-own.1";
const OTHER = "another-start-of-it.2";

let service: Service;
let executor: string;
let n = 0;
before(async () => {
  service = await startService({ policy: POLICY });
  const body = { name: "tool", scopes: ["actions:execute"] };
  executor = (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body.key;
});
after(() => service.close());

async function submitted(operation = "go"): Promise<{ id: string; permit: string; agent_id: string }> {
  const body = { agent_id: `bot-${++n}`, tool: "t", operation };
  return (await service.call("POST", "/v1/actions", { body, headers: { prefer: "permit" } })).body;
}
const post = (id: string, verb: string, body: object = {}, key = service.agent): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/${verb}`, { key, body });
const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];
const entriesOf = async (id: string): Promise<Answer["body"][]> =>
  (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events.map(
    ({ entry }: Answer["body"]) => entry,
  );

describe("a repeated start", () => {
  test("with its attempt gets the first response, and is in the ledger once", async () => {
    const { id } = await submitted();
    const first = await post(id, "start", { attempt: ATTEMPT });
    assert.equal(first.headers.get("idempotency-replayed"), null);
    for (let i = 0; i < 3; i++) {
      const again = await post(id, "start", { attempt: ATTEMPT });
      assert.deepEqual([again.status, again.body], [200, first.body]);
      assert.equal(again.headers.get("idempotency-replayed"), "true");
    }
    const starts = (await entriesOf(id)).filter(({ phase }) => phase === "start");
    assert.deepEqual(
      starts.map(({ v, attempt }) => [v, typeof attempt, attempt.length, attempt === ATTEMPT]),
      [[1, "string", 64, false]],
    );
  });

  test("is rejected without its attempt, with a different attempt, and from a different key", async () => {
    const { id, permit } = await submitted();
    assert.equal((await post(id, "start", { attempt: ATTEMPT })).status, 200);
    for (const body of [{}, { attempt: OTHER }, { permit }, { permit, attempt: ATTEMPT }])
      assert.deepEqual(said(await post(id, "start", body)), [409, "ACTION_NOT_STARTABLE"]);
    assert.deepEqual(said(await post(id, "start", { permit, attempt: ATTEMPT }, executor)), [
      409,
      "ACTION_NOT_STARTABLE",
    ]);
    const unnamed = await submitted();
    assert.equal((await post(unnamed.id, "start")).status, 200);
    for (const body of [{}, { attempt: ATTEMPT }])
      assert.deepEqual(said(await post(unnamed.id, "start", body)), [409, "ACTION_NOT_STARTABLE"]);
  });

  test("with a permit accepts the same permit until it expires", async () => {
    const { id, permit } = await submitted();
    const { permit: second } = (await post(id, "permit")).body;
    assert.equal((await post(id, "start", { permit, attempt: ATTEMPT }, executor)).status, 200);
    assert.equal((await post(id, "start", { permit, attempt: ATTEMPT }, executor)).status, 200);
    assert.deepEqual(said(await post(id, "start", { permit: second, attempt: ATTEMPT }, executor)), [
      409,
      "ACTION_NOT_STARTABLE",
    ]);
    service.clock.now += 301_000;
    const late = await post(id, "start", { permit, attempt: ATTEMPT }, executor);
    assert.equal(late.status, 410);
  });

  test(
    "is refused if the action can no longer start: stopped, denied, approval required now, late or finished",
    needs("stop"),
    async () => {
      const policy = async (effect: string): Promise<string> => {
        const yaml = `policy: now\nrules:\n  - { name: now, operation: go, effect: ${effect} }\n`;
        const made = await service.call("POST", "/v1/policies/import-yaml?activate=true", {
          key: service.admin,
          body: { yaml },
        });
        return made.body.policies[0].id;
      };
      const { id } = await submitted();
      assert.equal((await post(id, "start", { attempt: ATTEMPT })).status, 200);
      const again = async (): Promise<unknown[]> => said(await post(id, "start", { attempt: ATTEMPT }));
      for (const [effect, code] of [
        ["deny", "NO_LONGER_ALLOWED"],
        ["require_approval", "MORE_APPROVALS_NEEDED"],
      ] as const) {
        const made = await policy(effect);
        assert.deepEqual(await again(), [409, code]);
        await service.call("DELETE", `/v1/policies/${made}`, { key: service.admin });
      }
      if (hasFeature("stop")) {
        const stop = await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "look" } });
        assert.deepEqual(await again(), [409, "STOPPED"]);
        await service.call("POST", `/v1/stop/${stop.body.id}/lift`, { key: service.admin, body: {} });
      }
      assert.deepEqual(await again(), [200, "executing"]);
      const before = (await entriesOf(id)).length;
      service.clock.now += 301_000;
      assert.deepEqual(await again(), [410, "START_EXPIRED"]);
      assert.equal((await entriesOf(id)).length, before);
      assert.equal((await post(id, "result", { success: true })).status, 200);
      assert.deepEqual(await again(), [409, "ACTION_NOT_STARTABLE"]);
    },
  );

  test("with its attempt repeats the outcome of a redecision", async () => {
    for (const [effect, code] of [
      ["deny", "NO_LONGER_ALLOWED"],
      ["require_approval", "MORE_APPROVALS_NEEDED"],
    ] as const) {
      const { id } = await submitted();
      const yaml = `policy: now\nrules:\n  - { name: now, operation: go, effect: ${effect} }\n`;
      const made = await service.call("POST", "/v1/policies/import-yaml?activate=true", {
        key: service.admin,
        body: { yaml },
      });
      assert.deepEqual(said(await post(id, "start", { attempt: ATTEMPT })), [409, code]);
      await service.call("DELETE", `/v1/policies/${made.body.policies[0].id}`, { key: service.admin });
      assert.deepEqual(said(await post(id, "start", { attempt: ATTEMPT })), [409, code]);
      assert.deepEqual(said(await post(id, "start", {})), [409, "ACTION_NOT_STARTABLE"]);
      assert.deepEqual(said(await post(id, "start", { attempt: ATTEMPT }, executor)), [404, "ACTION_NOT_FOUND"]);
      assert.equal((await entriesOf(id)).length, 2);
      if (effect === "deny") continue;
      await approve(service, id);
      assert.deepEqual(said(await post(id, "start", { attempt: ATTEMPT })), [200, "executing"]);
    }
  });

  test("sent forty times concurrently with two attempts runs under one of them", async () => {
    const { id } = await submitted();
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => post(id, "start", { attempt: i % 2 === 0 ? ATTEMPT : OTHER })),
    );
    const [first, second] = [answers.filter((_, i) => i % 2 === 0), answers.filter((_, i) => i % 2 === 1)];
    assert.deepEqual([first, second].map((some) => [...new Set(some.map(({ status }) => status))]).sort(), [
      [200],
      [409],
    ]);
    assert.equal((await entriesOf(id)).filter(({ phase }) => phase === "start").length, 1);
  });

  test("needs an attempt that cannot be guessed", async () => {
    const { id } = await submitted();
    for (const attempt of ["", "short", "x".repeat(65), "with a space in it", 1, null])
      assert.deepEqual(said(await post(id, "start", { attempt })), [422, "VALIDATION_FAILED"]);
    assert.equal((await post(id, "start", { attempt: ATTEMPT })).status, 200);
  });
});

describe("a repeated result", () => {
  test("with its attempt gets the first response, and is in the ledger once", async () => {
    const { id, permit } = await submitted();
    const result = { success: false, error: "declined", meta: { b: 1, a: [2] }, attempt: ATTEMPT };
    assert.equal((await post(id, "start", { permit, attempt: ATTEMPT }, executor)).status, 200);
    const first = await post(id, "result", result, executor);
    assert.deepEqual(said(first), [200, "failed"]);
    assert.equal(first.headers.get("idempotency-replayed"), null);
    const again = await post(id, "result", { ...result, meta: { a: [2], b: 1 } }, executor);
    assert.deepEqual([again.status, again.body], [200, first.body]);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    const { attempt: _, ...unnamed } = result;
    const others = [unnamed, { ...result, attempt: OTHER }, { ...result, error: null }, { ...result, success: true }];
    for (const other of others)
      assert.deepEqual(said(await post(id, "result", other, executor)), [409, "ACTION_NOT_STARTED"]);
    assert.deepEqual(said(await post(id, "result", result)), [409, "ACTION_NOT_STARTED"], "another key's");
    assert.deepEqual(
      (await entriesOf(id)).map(({ type, phase }) => phase ?? type),
      ["decision", "start", "result"],
    );
    if (!hasFeature("retention")) return;
    await service.call("POST", `/v1/actions/${id}/erase`, { key: service.admin, body: { reason: "asked to" } });
    assert.equal((await post(id, "result", result, executor)).body.code, "ACTION_ERASED");
  });

  test("ends the start that its attempt names and no other", async () => {
    const { id } = await submitted();
    assert.equal((await post(id, "start", { attempt: ATTEMPT })).status, 200);
    assert.deepEqual(said(await post(id, "result", { success: false, attempt: OTHER })), [403, "NOT_THE_EXECUTOR"]);
    assert.deepEqual(said(await post(id, "result", { success: true, attempt: ATTEMPT })), [200, "succeeded"]);
    const unnamed = await submitted();
    assert.equal((await post(unnamed.id, "start")).status, 200);
    assert.deepEqual(said(await post(unnamed.id, "result", { success: false, attempt: OTHER })), [
      403,
      "NOT_THE_EXECUTOR",
    ]);
    assert.deepEqual(said(await post(unnamed.id, "result", { success: true })), [200, "succeeded"]);
  });
});
