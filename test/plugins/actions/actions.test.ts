import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { ALLOWED, ASKED, DENIED, startService, type Service } from "../../support/service.ts";
import { eventually, until } from "../../support/wait.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.close());

const submit = (body: object, headers: Record<string, string> = {}) =>
  service.call("POST", "/v1/actions", { body, headers });
const size = async () => (await service.runtime.host.ledger.head()).size;

describe("submit", () => {
  test(
    "actions that are allowed, denied or pending have their status, reason and record",
    needs("provenance"),
    async () => {
      const allowed = await submit(ALLOWED);
      assert.deepEqual(
        [allowed.status, allowed.body.status, allowed.body.decision, allowed.body.outcome, allowed.body.rule],
        [200, "allowed", "allow", "EXECUTE", "small refunds"],
      );
      assert.equal(allowed.headers.get("location"), `/v1/actions/${allowed.body.id}`);
      assert.equal(allowed.body.permit, null, "nobody asked for a permit");
      const denied = await submit(DENIED);
      assert.deepEqual(
        [denied.status, denied.body.status, denied.body.outcome, denied.body.reason_code, denied.body.permit],
        [200, "denied", "HALT", "POLICY_RULE", null],
      );
      const pending = await submit(ASKED);
      assert.deepEqual(
        [pending.status, pending.body.status, pending.body.outcome, pending.body.approvals_needed],
        [202, "pending_approval", "ABSTAIN", 1],
      );
      const unknown = await submit({ agent_id: "a", tool: "nuclear", operation: "launch" });
      assert.deepEqual(
        [unknown.body.status, unknown.body.reason_code, unknown.body.params, unknown.body.context],
        ["denied", "NO_MATCHING_RULE", {}, {}],
      );
      for (const { body } of [allowed, denied, pending, unknown]) {
        assert.equal(body.provenance_id, body.decision_hash);
        const entry = await service.call("GET", `/v1/provenance/${body.decision_hash}`, { key: service.admin });
        assert.equal(entry.body.entry.action_id, body.id);
        assert.equal(entry.body.entry.decision.effect, body.decision);
        const { events } = (await service.call("GET", `/v1/actions/${body.id}/events`)).body;
        assert.deepEqual(
          events.map((event: { action_id: string }) => event.action_id),
          [body.id],
        );
      }
    },
  );

  test("parameters and context keep Unicode, deep nesting and unusual keys", async () => {
    const params = JSON.parse(
      '{"__proto__":{"x":1},"toJSON":"no","constructor":null,"é😀":"\\u0000\\u202e","n":[1.5,-0,1e21,9007199254740991],"deep":[[[[[]]]]]}',
    ) as object;
    const made = await submit({ agent_id: "agent/ü", tool: "crm", operation: "get_x", params, context: { "": "" } });
    assert.equal(made.status, 200);
    const again = await service.call("GET", `/v1/actions/${made.body.id}`);
    assert.deepEqual(JSON.stringify(again.body.params), JSON.stringify(JSON.parse(JSON.stringify(made.body.params))));
    assert.equal(again.body.params["é😀"], "\u0000\u202e");
    assert.ok(Object.hasOwn(again.body.params as object, "__proto__"));
  });

  test("a bound key submits only as its agent, and sees only its actions", async () => {
    const bound = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "bound", preset: "agent", agent_id: "billing-bot" },
      })
    ).body;
    const other = await submit(ALLOWED);
    const refused = await service.call("POST", "/v1/actions", { key: bound.key, body: ALLOWED });
    assert.deepEqual([refused.status, refused.body.code], [403, "AGENT_MISMATCH"]);
    const mine = await service.call("POST", "/v1/actions", {
      key: bound.key,
      body: { ...ALLOWED, agent_id: "billing-bot" },
    });
    assert.equal(mine.status, 200);
    const list = await service.call("GET", "/v1/actions?limit=1000", { key: bound.key });
    assert.deepEqual([...new Set(list.body.actions.map((a: { agent_id: string }) => a.agent_id))], ["billing-bot"]);
    for (const path of [`/v1/actions/${other.body.id}`, `/v1/actions/${other.body.id}/events`]) {
      assert.equal((await service.call("GET", path, { key: bound.key })).body.code, "ACTION_NOT_FOUND");
    }
    const unbound = await service.call("GET", `/v1/actions/${mine.body.id}`);
    assert.equal(unbound.body.code, "ACTION_NOT_FOUND", "an agent key without a binding sees what it submitted itself");
  });

  test("gate/decide returns the same decision and records nothing", async () => {
    const before = await size();
    for (const [body, outcome] of [
      [ALLOWED, "EXECUTE"],
      [ASKED, "ABSTAIN"],
      [DENIED, "HALT"],
    ] as const) {
      const gate = await service.call("POST", "/v1/gate/decide", { body });
      assert.deepEqual([gate.status, gate.body.outcome, gate.body.is_permission], [200, outcome, false]);
    }
    assert.equal(await size(), before);
  });
});

describe("idempotency", () => {
  test("a repeated key with the same body returns the same action; another body is rejected; keys of different owners are independent", async () => {
    const first = await submit(ASKED, { "idempotency-key": "k-1" });
    const before = await size();
    const again = await submit(ASKED, { "idempotency-key": "k-1" });
    assert.deepEqual(
      [again.status, again.body.id, again.headers.get("idempotency-replayed")],
      [202, first.body.id, "true"],
    );
    const reordered = await submit(
      {
        params: { currency: "USD", amount: 500 },
        operation: "refund",
        tool: "stripe",
        agent_id: "support-bot",
        context: {},
      },
      { "idempotency-key": "k-1" },
    );
    assert.equal(reordered.body.id, first.body.id, "the order of keys and an empty context make no other body");
    const other = await submit(ALLOWED, { "idempotency-key": "k-1" });
    assert.deepEqual([other.status, other.body.code], [409, "IDEMPOTENCY_CONFLICT"]);
    assert.equal(await size(), before);
    const elsewhere = await service.call("POST", "/v1/actions", {
      key: service.admin,
      body: ASKED,
      headers: { "idempotency-key": "k-1" },
    });
    assert.notEqual(elsewhere.body.id, first.body.id);
  });

  test("twenty concurrent submissions with one idempotency key create one action", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => submit(ALLOWED, { "idempotency-key": "race" })));
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
    assert.equal(answers.filter(({ headers }) => headers.get("idempotency-replayed") === null).length, 1);
  });

  test("a malformed idempotency key is rejected", async () => {
    for (const key of ["", "a b", "x".repeat(256)]) {
      const answer = await submit(ALLOWED, { "idempotency-key": key });
      assert.deepEqual(
        [answer.status, answer.body.code, answer.body.errors[0].parameter],
        [422, "VALIDATION_FAILED", "Idempotency-Key"],
      );
    }
  });
});

describe("waiting", () => {
  async function tokenOf(id: string): Promise<string> {
    return (await admin("GET", `/v1/actions/${id}`)).body.approval_token as string;
  }
  const admin = (method: string, path: string, body?: object) =>
    service.call(method, path, { key: service.admin, ...(body === undefined ? {} : { body }) });
  const waiting = { ...ASKED, tool: "crm", operation: "update_address", params: { customer: "c1" } };

  test("Prefer: wait returns as soon as the action is decided", async () => {
    const [answer] = await Promise.all([
      submit(waiting, { prefer: "respond-async, wait=30, permit" }),
      (async () => {
        const id = await eventually(
          async () =>
            (await admin("GET", "/v1/actions?status=pending_approval&tool=crm")).body.actions[0]?.id as string,
          () => "no action waits",
        );
        await admin("POST", `/v1/actions/${id}/approval`, { token: await tokenOf(id), approve: true });
      })(),
    ]);
    assert.deepEqual(
      [answer.status, answer.body.status, answer.headers.get("preference-applied")],
      [200, "approved", "wait=30, permit"],
    );
    assert.ok(answer.body.permit !== null, "the verdict brings the permit that was asked for");
  });

  test("an expired wait returns the current state, and an unreadable preference is ignored", async () => {
    const late = await submit(waiting, { prefer: "wait=0" });
    assert.deepEqual([late.status, late.body.status], [202, "pending_approval"]);
    const odd = await submit(waiting, { prefer: "wait=soon" });
    assert.equal(odd.headers.get("preference-applied"), null);
    const got = await service.call("GET", `/v1/actions/${late.body.id}?wait=0`);
    assert.equal(got.body.status, "pending_approval");
    const bad = await service.call("GET", `/v1/actions/${late.body.id}?wait=-1`);
    assert.deepEqual([bad.status, bad.body.errors[0].parameter], [422, "wait"]);
  });

  test("a wait ends when the action is cancelled, and when the service stops", async () => {
    const one = (await submit(waiting)).body.id as string;
    const wait = service.call("GET", `/v1/actions/${one}?wait=30`);
    await service.call("POST", `/v1/actions/${one}/cancel`, { body: {} });
    assert.equal((await wait).body.status, "cancelled");
    const two = (await submit(waiting)).body.id as string;
    const last = service.call("GET", `/v1/actions/${two}?wait=30`);
    await until("it waits", async () => (await admin("GET", `/v1/actions/${two}`)).body.waiting === true);
    await service.restart();
    assert.equal((await last).body.status, "pending_approval");
  });
});

describe("lists", () => {
  test("lists filter, page and continue from cursors", async () => {
    const fresh = await startService();
    try {
      const ids: string[] = [];
      for (let i = 0; i < 25; i++) {
        const body = i % 5 === 0 ? DENIED : { ...ALLOWED, agent_id: i % 2 === 0 ? "even" : "odd" };
        ids.unshift((await fresh.call("POST", "/v1/actions", { body })).body.id as string);
      }
      const seen: string[] = [];
      let path: string | null = "/v1/actions?limit=7";
      let pages = 0;
      while (path !== null) {
        const page: Awaited<ReturnType<Service["call"]>> = await fresh.call("GET", path);
        seen.push(...page.body.actions.map((a: { id: string }) => a.id));
        pages++;
        // New actions do not change the pages that a cursor continues.
        await fresh.call("POST", "/v1/actions", { body: ALLOWED });
        path = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1] ?? null;
        assert.equal(path === null, page.body.next_cursor === null);
      }
      assert.deepEqual(seen, ids);
      assert.equal(pages, 4);
      const count = async (query: string) =>
        (await fresh.call("GET", `/v1/actions?limit=1000&${query}`)).body.actions.length as number;
      assert.equal(await count("status=denied"), 5);
      assert.equal(await count("agent_id=even"), 10);
      assert.equal(await count("agent=odd&tool=stripe"), 10);
      assert.equal(await count("tool=crm&operation=delete_customer&status=denied"), 5);
      assert.equal(await count("operation=refund&status=denied"), 0);
      const third = (await fresh.call("GET", `/v1/actions/${ids[2]}`)).body.created_at as string;
      assert.equal((await count(`since=${third}`)) + (await count(`until=${third}`)), await count("offset=0"));
      assert.equal((await fresh.call("GET", "/v1/actions?limit=2&offset=3")).body.actions.length, 2);
      for (const [query, code] of [
        ["limit=0", "VALIDATION_FAILED"],
        ["limit=1001", "VALIDATION_FAILED"],
        ["limit=x", "VALIDATION_FAILED"],
        ["status=open", "VALIDATION_FAILED"],
        ["cursor=zzz", "INVALID_CURSOR"],
        [`cursor=${Buffer.from("a9999999999999999").toString("base64url")}`, "INVALID_CURSOR"],
        ["since=yesterday", "VALIDATION_FAILED"],
        ["agent=a&agent_id=b", "VALIDATION_FAILED"],
        ["limit=1&limit=2", "VALIDATION_FAILED"],
        ["unknown=1", "VALIDATION_FAILED"],
      ] as const) {
        const answer = await fresh.call("GET", `/v1/actions?${query}`);
        assert.deepEqual([answer.status, answer.body.code], [422, code], query);
      }
    } finally {
      await fresh.close();
    }
  });
});

test("an action that expired while the service was down is expired after the restart", async () => {
  const fresh = await startService();
  try {
    const id = (await fresh.call("POST", "/v1/actions", { body: ASKED })).body.id as string;
    const token = (await fresh.call("GET", `/v1/actions/${id}`, { key: fresh.admin })).body.approval_token as string;
    fresh.clock.now += 9 * 3_600_000;
    await fresh.restart();
    assert.equal((await fresh.storage.action(id))?.status, "expired", "the start itself marks it");
    const late = await fresh.call("POST", `/v1/actions/${id}/approval`, {
      key: fresh.admin,
      body: { token, approve: true },
    });
    assert.equal(late.body.code, "APPROVAL_EXPIRED");
  } finally {
    await fresh.close();
  }
});

test("an approval token is valid after a restart, because it is derived and not stored", async () => {
  const fresh = await startService();
  try {
    const id = (await fresh.call("POST", "/v1/actions", { body: ASKED })).body.id as string;
    const token = (await fresh.call("GET", `/v1/actions/${id}`, { key: fresh.admin })).body.approval_token as string;
    await fresh.restart();
    const done = await fresh.call("POST", `/v1/actions/${id}/approval`, {
      key: fresh.admin,
      body: { token, approve: true },
    });
    assert.equal(done.body.status, "approved");
    const given = await fresh.call("POST", `/v1/actions/${id}/permit`, { body: {} });
    await fresh.restart();
    assert.equal(
      (await fresh.call("POST", `/v1/actions/${id}/start`, { body: { permit: given.body.permit } })).body.status,
      "executing",
    );
  } finally {
    await fresh.close();
  }
});
