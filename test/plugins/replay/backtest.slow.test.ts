/** Past decisions under other policies: which would change, who sees that, and what it may cost. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { rawSqlite } from "../../support/raw-store.ts";
import { ALLOWED, ASKED, startService, type Answer, type Service } from "../../support/service.ts";

const CANDIDATE = {
  policy: "payments",
  rules: [{ name: "nothing without a person", tool: "stripe", effect: "require_approval", approval: { quorum: 2 } }],
};

describe("a backtest", () => {
  let service: Service;
  let auditor = "";
  before(async () => {
    service = await startService({ pluginOptions: { replay: { max_seconds: 5, max_running: 1 } } });
    for (let i = 0; i < 30; i++) {
      await service.call("POST", "/v1/actions", {
        body: { ...ALLOWED, params: { ...ALLOWED.params, order: `ord-${i}` } },
      });
      service.clock.now += 1000;
    }
    for (let i = 0; i < 5; i++) await service.call("POST", "/v1/actions", { body: ASKED });
    await service.call("POST", "/v1/actions", { body: { ...ALLOWED, tool: "unheard-of" } });
    auditor = (
      await service.call("POST", "/v1/api-keys", { key: service.admin, body: { name: "auditor", preset: "auditor" } })
    ).body.key;
  });
  after(() => service.close());

  const run = (body: object, headers: Record<string, string> = {}, key = auditor): Promise<Answer> =>
    service.call("POST", "/v1/replay", { key, body, headers });

  it("reports which decisions would change, from what to what, with examples that can be opened", async () => {
    const { status, body } = await run({ policy: CANDIDATE, limit: 1000 });
    assert.equal(status, 200);
    assert.deepEqual([body.evaluated, body.flipped, body.next, body.unlisted], [36, 30, null, 0]);
    const [flip] = body.flips;
    assert.deepEqual(
      [flip.from.effect, flip.to, flip.count, flip.examples.length],
      ["allow", { effect: "require_approval", policy: "payments", rule: "nothing without a person" }, 30, 3],
    );
    assert.equal(body.otherwise, 5, "those that were asked for are asked for on other terms");
    const [example] = flip.examples;
    assert.equal(
      (await service.call("GET", `/v1/actions/${example.action_id}`, { key: auditor })).body.decision_hash,
      example.hash,
    );
    // It agrees with the replay of the single decision.
    const one = await run({ hash: example.hash, policy: CANDIDATE });
    assert.deepEqual([one.body.now.changed, one.body.now.policy_set], [true, body.policy_set]);
  });

  it("finds no changes under the active set, and only denials under an empty one", async () => {
    assert.deepEqual(
      [(await run({ policy_set: "current", limit: 1000 })).body].map(({ flipped, otherwise, evaluated }) => [
        flipped,
        otherwise,
        evaluated,
      ]),
      [[0, 0, 36]],
    );
    const alone = (
      await run({
        yaml: "policy: other\nrules:\n  - { name: r, tool: other, effect: allow }\n",
        alone: true,
        limit: 1000,
      })
    ).body;
    assert.deepEqual([alone.evaluated, alone.flipped], [36, 35]);
    assert.deepEqual(
      alone.flips.map((flip: { from: { effect: string }; to: { effect: string }; count: number }) => [
        flip.from.effect,
        flip.to.effect,
        flip.count,
      ]),
      [
        ["allow", "deny", 30],
        ["require_approval", "deny", 5],
      ],
    );
  });

  it("counts the use of a new or renamed limit, oldest action first, and says so", async () => {
    const limited = async (
      name: string,
      limit: object,
    ): Promise<[flipped: number, to: unknown[], counted: unknown]> => {
      const definition = {
        policy: "spending",
        rules: [],
        limits: [{ name, tool: "stripe", operation: "refund", window: "24h", ...limit }],
      };
      const { status, body } = await run({ policy: definition, limit: 1000 });
      assert.equal(status, 200, JSON.stringify(body));
      const to = body.flips.map((flip: { from: { effect: string }; to: object; count: number }) => [
        flip.from.effect,
        flip.to,
        flip.count,
      ]);
      return [body.flipped, to, body.counted];
    };
    const to = (effect: string, rule: string): object => ({ effect, policy: "spending", rule });
    const counted = (limit: string): object[] => [{ policy: "spending", limit, decisions: 35 }];
    for (const name of ["refunds a day", "renamed"])
      assert.deepEqual(await limited(name, { count: 10 }), [
        25,
        [
          ["allow", to("deny", name), 20],
          ["require_approval", to("deny", name), 5],
        ],
        counted(name),
      ]);
    assert.deepEqual(await limited("asks", { count: 10, effect: "require_approval" }), [
      20,
      [["allow", to("require_approval", "asks"), 20]],
      counted("asks"),
    ]);
    // Denied actions do not count: 4 of 50 fill 200, and 500 never fits.
    const [flipped] = await limited("money", { sum: "params.amount", at_most: 200 });
    assert.equal(flipped, 26 + 5);
    // One second apart: five in ten seconds are every other one.
    const [short, , about] = await limited("short", { count: 5, window: "10s" });
    assert.ok(short >= 12 && short <= 20, `${short} of 30`);
    assert.deepEqual(about, counted("short"));
    assert.deepEqual((await limited("wide", { count: 100 })).slice(0, 2), [0, []]);
    assert.deepEqual((await run({ policy: CANDIDATE, limit: 1000 })).body.counted, []);
  });

  it("stops at its time range and limit, and continues from there", async () => {
    const all = (await run({ policy: CANDIDATE, limit: 1000 })).body;
    let counted = 0;
    let flipped = 0;
    let before: number | undefined;
    for (let pages = 0; ; pages++) {
      const { body } = await run({ policy: CANDIDATE, limit: 7, ...(before === undefined ? {} : { before }) });
      counted += body.evaluated;
      flipped += body.flipped;
      if (body.next === null) break;
      assert.ok(pages < 10);
      before = body.next;
    }
    assert.deepEqual([counted, flipped], [all.evaluated, all.flipped]);
    const { actions } = (await service.call("GET", "/v1/actions?limit=1000", { key: auditor })).body;
    const [first, until] = [actions.at(-1).created_at, actions.at(-11).created_at];
    const span = (await run({ policy: CANDIDATE, since: first, until })).body;
    assert.deepEqual([span.evaluated, span.since], [10, first]);
  });

  it("reports its progress in lines, and the result in the last line", async () => {
    const response = await service.runtime.fetch(
      new Request("http://test/v1/replay/progress", {
        method: "POST",
        headers: {
          authorization: `Bearer ${auditor}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({ policy: CANDIDATE, limit: 1000 }),
      }),
    );
    assert.equal(response.headers.get("content-type"), "application/x-ndjson");
    const lines = (await response.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; flipped: number });
    assert.deepEqual([lines.at(-1)?.type, lines.at(-1)?.flipped], ["result", 30]);
    assert.ok(lines.slice(0, -1).every(({ type }) => type === "progress"));
  });

  it("shows no one what they cannot see", async () => {
    const bound = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "bound", scopes: ["replay:run"], agent_id: "somebody-else" },
      })
    ).body.key;
    assert.equal((await run({ policy: CANDIDATE, limit: 1000 }, {}, bound)).body.evaluated, 0);
    assert.equal((await run({ policy: CANDIDATE, limit: 1000 }, {}, service.agent)).status, 403);
  });

  it("rejects invalid requests, and records nothing", async () => {
    const { size } = await service.storage.head();
    for (const [body, status, code] of [
      [{ limit: 10 }, 422, "VALIDATION_FAILED"],
      [{ policy: CANDIDATE, policy_set: "current", limit: 10 }, 422, "VALIDATION_FAILED"],
      [{ policy: CANDIDATE, alone: true, replace_sources: true }, 422, "VALIDATION_FAILED"],
      [
        { action_id: "019346a0-0000-7000-8000-000000000000", limit: 10, policy_set: "current" },
        422,
        "VALIDATION_FAILED",
      ],
      [{ policy_set: "current", since: "2030-01-01T00:00:00Z", until: "2029-01-01T00:00:00Z" }, 422, "INVALID_RANGE"],
      [
        { policy: { policy: "x", rules: [{ name: "r", effect: "allow", when: "params.(" }] }, limit: 10 },
        422,
        "POLICY_INVALID",
      ],
      [{ yaml: "policy: x\nrules: [}", limit: 10 }, 422, "POLICY_INVALID"],
      [{ policy_set: "current", limit: 0 }, 422, "VALIDATION_FAILED"],
    ] as const) {
      const answer = await run(body);
      assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(body));
    }
    assert.equal((await service.storage.head()).size, size);
  });

  it("rejects requests above the maximum number of concurrent backtests", async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => run({ policy_set: "current", limit: 1000 })));
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual([statuses[0], statuses.at(-1)], [200, 429]);
    assert.equal(answers.find(({ status }) => status === 429)?.body.code, "TOO_MANY_BACKTESTS");
    assert.equal((await run({ policy_set: "current", limit: 10 })).status, 200, "and frees the place");
  });
});

test("skips and counts an altered row, whose own replay is rejected", async () => {
  let path = "";
  const service = await startService({
    broken: true,
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path });
    },
  });
  const raw = await rawSqlite(path);
  const call = (body: object) => service.call("POST", "/v1/replay", { key: service.admin, body });
  try {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++)
      ids.push((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.id as string);
    const table = raw.tables.find(({ name }) => name === "actions");
    assert.ok(table !== undefined);
    for (const request of ["{", "null", "[]", '{"agent_id":1}', '{"params":null}', '"text"']) {
      const row = (await raw.rows(table)).find(({ id }) => id === ids[1]);
      assert.ok(row !== undefined);
      await raw.set(table, row, "request", request);
      const ranged = await call({ policy: CANDIDATE, limit: 1000 });
      assert.deepEqual([ranged.status, ranged.body.evaluated, ranged.body.altered], [200, 2, 1], request);
      const one = await call({ action_id: ids[1] });
      assert.deepEqual([one.status, one.body.code], [409, "RECORD_ALTERED"], request);
      assert.equal((await call({ action_id: ids[0] })).status, 200);
    }
  } finally {
    await raw.close();
    await service.close();
  }
});
