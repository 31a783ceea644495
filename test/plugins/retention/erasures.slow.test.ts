/** Erasing all matching actions, and all actions past their retention. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { auditStore } from "../../../src/testing/index.ts";
import { setSection, startService, type Answer, type Service, type ServiceOptions } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: work
rules:
  - { name: run, tool: run, effect: allow }
  - { name: ask, tool: ask, effect: require_approval, approval: { expires_in: 30d } }
`;
const DAY = 86_400_000;

interface Filled extends Service {
  submit(more?: object): Promise<string>;
  erasures(body: object): Promise<Answer>;
  kept(): Promise<string[]>;
}

async function filled(options: ServiceOptions, work: (service: Filled) => Promise<void>): Promise<void> {
  const service = await startService({ policy: POLICY, ...options });
  try {
    await work({
      ...service,
      submit: async (more = {}) => {
        const body = { agent_id: "bot", tool: "none", operation: "x", ...more };
        return (await service.call("POST", "/v1/actions", { key: service.agent, body })).body.id as string;
      },
      erasures: (body) => service.call("POST", "/v1/erasures", { key: service.admin, body }),
      kept: async () =>
        (await service.storage.actions({ visibility: { all: true }, limit: 1000 }))
          .filter(({ erased_at, request }) => erased_at === null && request !== "")
          .map(({ id }) => id),
    });
  } finally {
    // Audits the store, too.
    await service.close();
  }
}

describe("POST /v1/erasures", () => {
  test("only counts the matching actions unless the request confirms the erasure", () =>
    filled({}, async ({ submit, erasures, kept }) => {
      const ids = [await submit({ params: { to: "Anna" } }), await submit({ params: { to: "Ben" } })];
      const before = await erasures({ value: "Anna" });
      assert.deepEqual(before.body, {
        dry_run: true,
        looked_at: 2,
        matched: 1,
        open: 0,
        altered: 0,
        held: 0,
        holds: [],
        erased: 0,
        next: null,
      });
      assert.deepEqual(await kept(), ids.toReversed());
      const done = await erasures({ value: "Anna", dry_run: false, reason: "r" });
      assert.deepEqual([done.body.matched, done.body.erased], [1, 1]);
      assert.deepEqual(await kept(), [ids[1]]);
      const again = await erasures({ value: "Anna", dry_run: false, reason: "r" });
      assert.deepEqual([again.body.matched, again.body.erased], [0, 0]);
    }));

  test("erases what mentions a person, in any case and in meta, but not in a longer word or address, and records the cause without the person", () =>
    filled({}, async ({ submit, erasures, kept, storage, call, admin }) => {
      const about = [
        await submit({ params: { text: "Write to Anna@Example.org, today" } }),
        await submit({ context: { rows: [{ mail: "anna@example.org" }] } }),
        await submit({ meta: { session: "anna@example.org" } }),
        await submit({ params: { amounts: { "Anna@example.org": 5 } } }),
        await submit({ params: { link: "https://crm.example/?to=anna%40example.org" } }),
        await submit({ tool: "ask" }),
      ];
      const [asked] = about.slice(-1);
      const question = { question: "Is it for anna@example.org?" };
      for (const [path, body] of [
        ["questions", question],
        ["cancel", {}],
      ] as const)
        assert.equal((await call("POST", `/v1/actions/${asked}/${path}`, { key: admin, body })).status, 200, path);
      const others = [
        await submit({ params: { to: "joanna@example.org" } }),
        await submit({ params: { to: "anna@example.organic" } }),
        await submit({ params: { to: "jo.anna@example.org" } }),
        await submit({ params: { to: "hanna+anna@example.org" } }),
        await submit({ params: { to: "anna@example.org.uk" } }),
        await submit({ params: { to: "anna@example.org-shop.com" } }),
      ];
      const counted = await erasures({ subject: "anna@example.org" });
      assert.deepEqual([counted.body.matched, counted.body.erased], [6, 0]);
      const done = await erasures({ subject: "anna@example.org", dry_run: false, reason: "request 4711" });
      assert.deepEqual([done.body.matched, done.body.erased], [6, 6]);
      assert.deepEqual(await kept(), others.toReversed());
      for (const id of about) {
        const entry = new TextDecoder().decode((await storage.entriesOfAction(id)).at(-1)?.bytes);
        assert.match(entry, /"cause":"subject".*"reason":"request 4711"/);
        assert.doesNotMatch(entry, /anna/i);
      }
      await submit({ params: { to: "Ren\u00e9e" } });
      assert.equal((await erasures({ subject: "Rene\u0301e" })).body.matched, 1);
      assert.equal((await erasures({ subject: "params" })).body.matched, 0);
      for (const body of [{ subject: "an" }, { subject: "anna@example.org", value: "x" }])
        assert.equal((await erasures(body)).status, 422);
    }));

  test("finds an exact value anywhere, or at the named member, in parameters, context and result", () =>
    filled({}, async ({ submit, erasures }) => {
      await submit({ params: { to: "Anna" } });
      await submit({ params: { to: [{ "a/b": "Anna" }] } });
      await submit({ context: { for: "Anna", number: 7 } });
      await submit({ params: { to: "Anna Berg", Anna: true, number: "7" } });
      const count = async (body: object): Promise<unknown> => (await erasures(body)).body.matched;
      assert.equal(await count({ value: "Anna" }), 3);
      assert.equal(await count({ value: "Anna", pointer: "/params/to" }), 1);
      assert.equal(await count({ value: "Anna", pointer: "/params/to/0/a~1b" }), 1);
      assert.equal(await count({ value: "Anna", pointer: "/params/none" }), 0);
      assert.equal(await count({ value: "Anna", pointer: "/params/constructor/name" }), 0);
      assert.equal(await count({ value: 7 }), 1);
      assert.equal(await count({ value: true, pointer: "/params/Anna" }), 1);
      assert.equal(await count({ value: "Anna", agent_id: "other" }), 0);
      assert.equal(await count({ agent_id: "bot" }), 4);
    }));

  test("rejects requests that can only be mistakes, and names the faulty member", () =>
    filled({}, async ({ submit, erasures, kept }) => {
      await submit();
      const really = { dry_run: false, reason: "r" };
      for (const [body, pointer] of [
        [really, ""],
        [{ dry_run: false, value: "x" }, "/reason"],
        [{ ...really, value: "" }, "/value"],
        [{ ...really, value: null }, "/value"],
        [{ ...really, value: true }, "/value"],
        [{ ...really, value: { a: 1 } }, "/value"],
        [{ ...really, pointer: "/params/a" }, ""],
        [{ ...really, until: "2026-01-01T00:00:00Z", pointer: "/params/a" }, "/value"],
        [{ ...really, value: "x", pointer: "params.a" }, "/pointer"],
        [{ ...really, value: "x", pointer: "/params" }, "/pointer"],
        [{ ...really, value: "x", pointer: "/params/~2" }, "/pointer"],
        [{ ...really, value: "x", pointer: "/tool/a" }, "/pointer"],
        [{ ...really, until: "yesterday" }, "/until"],
        [{ ...really, valeu: "x" }, "/valeu"],
      ] as [object, string][]) {
        const answer = await erasures(body);
        assert.deepEqual([answer.status, answer.body.code], [422, "VALIDATION_FAILED"], JSON.stringify(body));
        assert.equal(answer.body.errors[0].pointer, pointer, JSON.stringify(body));
      }
      assert.equal((await kept()).length, 1);
    }));

  test("erases actions older than a time, page after page, and counts the open ones that it leaves", () =>
    filled({}, async ({ submit, erasures, kept, clock }) => {
      for (let i = 0; i < 120; i++) await submit({ params: { i } });
      const pending = await submit({ tool: "ask" });
      clock.now += 2 * DAY;
      const young = await submit({ params: { i: 1000 } });
      const limit = new Date(Date.now() + clock.now - DAY).toISOString();
      const done = (await erasures({ until: limit, dry_run: false, reason: "spring cleaning" })).body;
      assert.deepEqual([done.matched, done.open, done.erased, done.next], [121, 1, 120, null]);
      assert.deepEqual(await kept(), [young, pending]);
      assert.equal((await erasures({ until: "2020-01-01T00:00:00Z" })).body.looked_at, 0);
    }));
});

describe("retention", () => {
  const days = (request_days: number): ServiceOptions => ({
    change(config) {
      setSection(config, "retention", { request_days });
    },
  });

  test("erases actions older than the configured age, at the latest at the next start, and records retention as the cause", () =>
    filled(days(30), async ({ submit, kept, clock, restart, storage }) => {
      const old: string[] = [];
      for (let i = 0; i < 70; i++) old.push(await submit({ params: { i } }));
      clock.now += 20 * DAY;
      const young = await submit();
      clock.now += 11 * DAY;
      await restart();
      await until("the old ones are erased", async () => (await kept()).length === 1);
      assert.deepEqual(await kept(), [young]);
      const entries = await storage.entriesOfAction(old[0] as string);
      const { cause, reason, by } = JSON.parse(new TextDecoder().decode(entries.at(-1)?.bytes));
      assert.deepEqual([cause, reason, by], ["retention", "the configuration keeps parameters for 30 days", null]);
      clock.now += 20 * DAY;
      await restart();
      await until("and so is the next", async () => (await kept()).length === 0);
    }));

  test("erases results, metadata and questions at their own ages, records each, and keeps the request", async () => {
    const parts: ServiceOptions = {
      change(config) {
        setSection(config, "retention", { result_days: 5, meta_days: 10, questions_days: 10, request_days: 30 });
      },
    };
    await filled(
      { ...parts, broken: true },
      async ({ submit, call, clock, restart, storage, agent, admin, runtime }) => {
        const id = await submit({ tool: "run", params: { to: "Anna" }, meta: { session: "s1" } });
        await call("POST", `/v1/actions/${id}/start`, { body: {} });
        await call("POST", `/v1/actions/${id}/result`, { body: { success: true, meta: { told: "Anna" } } });
        const row = async () => {
          const { request, result, meta, erased_at } = (await storage.action(id)) ?? assert.fail();
          return [request !== "", result !== null, meta !== null, erased_at !== null];
        };
        assert.deepEqual(await row(), [true, true, true, false]);
        clock.now += 6 * DAY;
        await restart();
        await until("its result is erased", async () => (await row())[1] === false);
        assert.deepEqual(await row(), [true, false, true, false]);
        const read = (await call("GET", `/v1/actions/${id}`, { key: agent })).body;
        assert.deepEqual([read.status, read.result, read.params], ["succeeded", null, { to: "Anna" }]);
        clock.now += 5 * DAY;
        await restart();
        await until("its metadata is erased", async () => (await row())[2] === false);
        assert.deepEqual((await auditStore(storage, runtime.host.ledger.vkey)).faults, []);
        const { events } = (await call("GET", `/v1/actions/${id}/events`, { key: admin })).body;
        assert.deepEqual(
          events
            .slice(-2)
            .map(({ type, entry }: { type: string; entry: { part: string; reason: string } }) => [
              type,
              entry.part,
              entry.reason,
            ]),
          [
            ["part_erasure", "result", "the configuration keeps results for 5 days"],
            ["part_erasure", "meta", "the configuration keeps metadata for 10 days"],
          ],
        );
        await storage.write(async (tx) => {
          const result = JSON.stringify({ error: null, meta: { told: "Anna" }, success: true });
          const { updated_at } = (await tx.action(id)) ?? assert.fail();
          await tx.updateAction(id, { status: "succeeded" }, { status: "succeeded", result, updated_at });
        });
        const { faults } = await auditStore(storage, runtime.host.ledger.vkey);
        assert.match(faults.join(), /its result was erased, but is still in the store/);
      },
    );
  });

  test("skips open actions and erases them later", () =>
    filled(days(10), async ({ submit, kept, clock, restart, call, admin }) => {
      await submit();
      const pending = await submit({ tool: "ask" });
      for (let i = 0; i < 70; i++) await submit({ params: { i } });
      clock.now += 11 * DAY;
      await restart();
      await until("the surrounding actions are erased", async () => (await kept()).length === 1);
      assert.deepEqual(await kept(), [pending]);
      const more = await submit();
      await call("POST", `/v1/actions/${pending}/cancel`, { key: admin, body: {} });
      await restart();
      await until("the action that was pending is erased", async () => (await kept()).length === 1);
      assert.deepEqual(await kept(), [more]);
    }));

  test("erases an altered action once its row is restored", () =>
    filled({ ...days(10), broken: true }, async ({ submit, kept, clock, restart, storage, logged }) => {
      const id = await submit();
      const { status, updated_at } = (await storage.action(id)) ?? assert.fail();
      const store = (result: string | null) =>
        storage.write((tx) => tx.updateAction(id, { status }, { status, updated_at, result }));
      await store("{}");
      clock.now += 11 * DAY;
      await restart();
      await until("the sweep has ended", () => logged.some((line) => line.includes("differ from the ledger")));
      assert.equal((await kept()).length, 1);
      await store(null);
      await restart();
      await until("it is erased", async () => (await kept()).length === 0);
    }));

  test("erases nothing without configuration", () =>
    filled({}, async ({ submit, kept, clock, restart, storage }) => {
      await submit();
      clock.now += 3650 * DAY;
      await restart();
      await submit();
      assert.equal((await kept()).length, 2);
      assert.equal((await storage.entries(0, 1000)).filter(({ type }) => type === "erasure").length, 0);
    }));
});
