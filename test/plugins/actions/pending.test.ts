/** What approvers read: the queue of pending actions, their own identity, and the names of keys. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ALLOWED, ASKED, startService, type Service, person, addPerson } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let service: Service;
let folder: string;
before(async () => {
  folder = temporaryFolder("assent-pending-");
  writeFileSync(
    join(folder, "asked.yaml"),
    `policy: asked
rules:
  - { name: free, operation: read, effect: allow }
  - { name: soon, operation: soon, effect: require_approval, approval: { expires_in: 1m } }
  - { name: paid, operation: paid, effect: require_approval, approval: { expires_in: 3h, preview: "Pay {params.amount} {params.currency} to {params.to}" } }
  - { name: risky, operation: risky, effect: require_approval, risk: high, approval: { expires_in: 1h } }
  - { name: shown, operation: shown, effect: require_approval, approval: { expires_in: 1h, show: [params.refund_amount] } }
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2, expires_in: 2h } }
  - { name: later, effect: require_approval, approval: { expires_in: 1h } }
`,
  );
  service = await startService({ policies: folder, change: (config) => (config.approvals.trust_key_makers = true) });
});
after(async () => {
  await service.close();
  rmSync(folder, { recursive: true });
});

const submit = async (body: object, key = service.agent): Promise<string> =>
  (await service.call("POST", "/v1/actions", { key, body })).body.id as string;
const idsOf = (page: { actions: { id: string }[] }): string[] => page.actions.map(({ id }) => id);

describe("pending actions", () => {
  it("are sorted by expiry, in pages with the total number, without the settled ones", async () => {
    const late = [await submit(ASKED), await submit(ASKED), await submit(ASKED)];
    const soon = [await submit({ ...ASKED, operation: "soon" }), await submit({ ...ASKED, operation: "soon" })];
    await submit({ ...ALLOWED, operation: "read" });
    const wanted = [...soon, ...late];
    const walked: string[] = [];
    for (let path: string | null = "/v1/approvals?limit=2"; path !== null;) {
      const { body, headers } = await service.call("GET", path, { key: service.admin });
      assert.equal(body.total, 5);
      walked.push(...idsOf(body));
      path = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1] ?? null;
      assert.equal(path === null, body.next_cursor === null);
      assert.ok(walked.length <= 5);
    }
    assert.deepEqual(walked, wanted);
    // They expire before anything has marked them expired.
    service.clock.now += 90_000;
    const rest = await service.call("GET", "/v1/approvals", { key: service.admin });
    assert.deepEqual([idsOf(rest.body), rest.body.total], [late, 3]);
    await service.call("POST", `/v1/actions/${late[0]}/cancel`, { body: {} });
    const left = await service.call("GET", "/v1/approvals", { key: service.admin });
    assert.deepEqual([idsOf(left.body), left.body.total], [late.slice(1), 2]);
    assert.equal(
      left.body.actions.some((action: object) => "approval_token" in action),
      false,
    );
  });

  it("list and count only what the key can see", async () => {
    const { body: bound } = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "bound", preset: "agent", agent_id: "own-bot" },
    });
    const own = await submit({ ...ASKED, agent_id: "own-bot" }, bound.key);
    await submit(ASKED);
    const { body } = await service.call("GET", "/v1/approvals", { key: bound.key });
    assert.deepEqual([idsOf(body), body.total], [[own], 1]);
    // The other agent's request is in the same group.
    const groupsOf = async (key: string, query = "") =>
      (await service.call("GET", `/v1/approvals/groups?operation=${ASKED.operation}${query}`, { key })).body;
    const [shared] = (await groupsOf(service.admin)).groups;
    assert.ok(shared.count > 1);
    for (const query of ["", `&group=${shared.id}`, `&q=${ASKED.operation}`]) {
      const { groups, total } = await groupsOf(bound.key, query);
      const [{ id, count, agents, agent_count, first }] = groups;
      assert.deepEqual([id, count, agents, agent_count, first, total], [shared.id, 1, ["own-bot"], 1, own, 1], query);
    }
  });

  it("are filtered, searched and sorted by the service, with the number of those that pass", async () => {
    const { body: bot } = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "filtered", preset: "agent", agent_id: "filter-bot", owner: await addPerson(service, "Bea") },
    });
    const { body: bea } = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "bea", preset: "approver", owner: person("Bea") },
    });
    const send = (operation: string, params: object): Promise<string> =>
      submit({ agent_id: "filter-bot", tool: "bank", operation, params }, bot.key);
    const low = await send("pay", { to: 'Müller "GmbH"', amount: 5 });
    const high = await send("risky", { to: "Schmidt", amount: 7000, at: "\u0130stanbul, 300\u212a" });
    const two = await send("two", { to: "Schmidt", amount: 9 });
    const soon = await send("soon", { to: "Schmidt", amount: 1 });
    const list = async (query: string, key = service.admin): Promise<string[]> => {
      const { body } = await service.call("GET", `/v1/approvals?agent_id=filter-bot&${query}`, { key });
      assert.equal(body.total, body.actions.length, query);
      return idsOf(body);
    };
    const admin = service.admin;
    assert.deepEqual(await list("q=schmidt"), [soon, high, two]);
    assert.deepEqual(await list(`q=${encodeURIComponent('MÜLLER "gm')}`), [low]);
    assert.deepEqual(await list(`q=${high.slice(0, 20)}`), [high]);
    for (const word of ["i\u0307stanbul", "stanbul, 300K", "300k", "\u0130s"])
      assert.deepEqual(await list(`q=${encodeURIComponent(word)}`), [high], word);
    assert.deepEqual(await list("q=schmidt%20nothing"), []);
    assert.deepEqual(await list("tool=bank&operation=two"), [two]);
    assert.deepEqual(await list("risk_level=high"), [high]);
    assert.deepEqual(await list("sort=risk"), [high, soon, low, two]);
    assert.deepEqual(await list("sort=newest"), [soon, two, high, low]);
    assert.deepEqual(await list("sort=oldest"), [low, high, two, soon]);
    // The agent's owner cannot approve, and a second vote is missing only after the first.
    assert.deepEqual(await list("view=mine", bea.key), []);
    assert.deepEqual(await list("view=second_vote"), []);
    assert.deepEqual(await list("view=mine"), [soon, low, high, two]);
    const { body } = await service.call("GET", `/v1/actions/${two}`, { key: admin });
    const vote = { token: body.approval_token, approve: true };
    assert.equal((await service.call("POST", `/v1/actions/${two}/approval`, { key: admin, body: vote })).status, 200);
    assert.deepEqual(await list("view=mine"), [soon, low, high]);
    assert.deepEqual(await list("view=second_vote"), [two]);
    const walked: string[] = [];
    for (let path: string | null = "/v1/approvals?agent_id=filter-bot&sort=risk&limit=1"; path !== null;) {
      const page = await service.call("GET", path, { key: admin });
      assert.equal(page.body.total, 4);
      walked.push(...idsOf(page.body));
      path = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1] ?? null;
      assert.ok(walked.length <= 4);
    }
    assert.deepEqual(walked, [high, soon, low, two]);
    for (const query of ["view=all", "sort=amount", "risk_level=none", `q=${"x".repeat(201)}`]) {
      const answer = await service.call("GET", `/v1/approvals?${query}`, { key: admin });
      assert.deepEqual([answer.status, answer.body.code], [422, "VALIDATION_FAILED"], query);
    }
    // A position in one order means nothing in another.
    const { next_cursor } = (await service.call("GET", "/v1/approvals?sort=newest&limit=1", { key: admin })).body;
    for (const query of ["sort=oldest", "q=bank", ""]) {
      const answer = await service.call("GET", `/v1/approvals?${query}&cursor=${next_cursor}`, { key: admin });
      assert.deepEqual([answer.status, answer.body.code], [422, "INVALID_CURSOR"], query);
    }
  });

  it("are grouped by rule, tool and operation, with one sentence for the values of all", async () => {
    const send = (operation: string, params: object, agent_id = "group-bot"): Promise<string> =>
      submit({ agent_id, tool: "shop", operation, params });
    const groups = async (query: string): Promise<any[]> => {
      const { body } = await service.call("GET", `/v1/approvals/groups?tool=shop&${query}`, { key: service.admin });
      assert.equal(body.complete, true);
      assert.equal(
        body.total,
        body.groups.reduce((sum: number, { count }: { count: number }) => sum + count, 0),
      );
      return body.groups;
    };
    const late = await send("paid", { amount: 480, currency: "EUR", to: 'x "and 3 others"' });
    for (const [amount, to] of [
      [20, "b"],
      [1000, "c"],
    ] as const)
      await send("paid", { amount, currency: "USD", to }, "other-bot");
    const [risky, ship] = [await send("risky", { order: 5 }), await send("ship", { amount: 3, currency: "EUR" })];
    await send("ship", { amount: 7.5, currency: "EUR" });
    const described = ({ rule, count, agents, risk_level, preview, headline, first }: any): unknown[] => [
      rule,
      count,
      agents.join(),
      risk_level,
      preview ?? headline,
      first,
    ];
    const sentence = 'Pay 20 to 1000 "EUR" or "USD" to "x \\"and 3 others\\"" and 2 others';
    assert.deepEqual((await groups("")).map(described), [
      ["risky", 1, "group-bot", "high", "5", risky],
      ["later", 2, "group-bot", null, "3 or 7.5 EUR", ship],
      ["paid", 3, "group-bot,other-bot", null, sentence, late],
    ]);
    assert.deepEqual(
      (await groups("sort=newest")).map(({ operation }) => operation),
      ["ship", "risky", "paid"],
    );
    // The group's id selects its actions.
    const [, , paid] = await groups("");
    const { body } = await service.call("GET", `/v1/approvals?group=${paid.id}&sort=oldest`, { key: service.admin });
    assert.deepEqual([body.total, body.actions[0].id], [3, late]);
    assert.deepEqual(
      (await groups("view=mine&q=other-bot")).map(({ operation, count }) => [operation, count]),
      [["paid", 2]],
    );
  });

  it("have a sentence for each group that hides no largest amount and no request without a value", async () => {
    const sentence = async (operation: string, all: readonly object[]): Promise<string> => {
      for (const params of all) await submit({ agent_id: "sentence-bot", tool: "merged", operation, params });
      const path = `/v1/approvals/groups?tool=merged&operation=${operation}`;
      const { body } = await service.call("GET", path, { key: service.admin });
      assert.deepEqual([body.total, body.groups.length], [all.length, 1], operation);
      return body.groups[0].preview ?? body.groups[0].headline;
    };
    const pay = (amount: unknown, currency = "EUR"): object => ({ amount, currency, to: "x" });
    assert.equal(
      await sentence(
        "paid",
        [20, "5", 480_000, 1e21, -5, 1e-7, null, [1]].map((amount) => pay(amount)),
      ),
      'Pay -5 to 1e+21 and 3 others "EUR" to "x"',
    );
    const amounts = [pay(20), pay(100_000, "USD"), pay(480)];
    assert.equal(await sentence("more", [...amounts, pay(30)]), "20 to 480 EUR or 100000 USD");
    assert.equal(await sentence("units", amounts), "20 or 480 EUR or 100000 USD");
    assert.equal(await sentence("missing", [{ amount: 3 }, {}]), "3 or (not given)");
    const [small, large] = ["9007199254740992", "9007199254740993"];
    assert.equal(await sentence("long", [{ to: small }, { to: large }]), `${small} or ${large}`);
    // The agent adds a member that would be the headline, but the rule shows another one first.
    const added = [
      { amount: 1, refund_amount: 90_000 },
      { amount: 2, refund_amount: 6 },
    ];
    assert.equal(await sentence("shown", added), "6 or 90000");
  });

  it("reject an invalid cursor, and parameters of other lists", async () => {
    for (const [query, code] of [
      ["cursor=zzz", "INVALID_CURSOR"],
      [`cursor=${Buffer.from("approvals:1").toString("base64url")}`, "INVALID_CURSOR"],
      [`cursor=${Buffer.from("approvals:9999999999999999.1").toString("base64url")}`, "INVALID_CURSOR"],
      ["limit=0", "VALIDATION_FAILED"],
      ["limit=1001", "VALIDATION_FAILED"],
      ["status=denied", "VALIDATION_FAILED"],
    ]) {
      const { status, body } = await service.call("GET", `/v1/approvals?${query}`, { key: service.admin });
      assert.deepEqual([status >= 400 && status < 500, body.code], [true, code], query);
    }
  });

  it("show their parameters in the order in which the agent sent them", async () => {
    const params = { to: "x", amount: 5, currency: "USD", more: { z: 1, a: [{ y: 1, b: 2 }] } };
    const id = await submit({ ...ASKED, params });
    const { body } = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
    assert.equal(JSON.stringify(body.params), JSON.stringify(params));
  });
});

describe("GET /v1/me", () => {
  it("returns the identity and rights of any key, and rejects callers without one", async () => {
    const { body: made } = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "narrow", scopes: ["metrics:read"], owner: await addPerson(service, "Ada") },
    });
    const { body } = await service.call("GET", "/v1/me", { key: made.key });
    assert.deepEqual(body, {
      principal: person("ada"),
      scopes: ["metrics:read"],
      claims: {},
      key: { id: made.id, name: "narrow", owner: person("Ada"), agent_id: null, expires_at: null },
    });
    const admin = (await service.call("GET", "/v1/me", { key: service.admin })).body;
    assert.ok(admin.scopes.includes("approvals:decide") && admin.scopes.includes("admin"));
    assert.equal((await service.call("GET", "/v1/me", { key: null })).status, 401);
    await service.call("DELETE", `/v1/api-keys/${made.id}`, { key: service.admin });
    assert.equal((await service.call("GET", "/v1/me", { key: made.key })).status, 401);
  });
});

describe("names of keys", () => {
  it("resolve ids, including those of revoked keys, but not for agents", async () => {
    const { body: gone } = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "gone", preset: "approver", owner: await addPerson(service, "gone") },
    });
    await service.call("DELETE", `/v1/api-keys/${gone.id}`, { key: service.admin });
    const nowhere = "019346a0-0000-7000-8000-000000000000";
    const { body } = await service.call("GET", `/v1/api-keys/names?ids=${gone.id},${nowhere},${gone.id}`, {
      key: service.admin,
    });
    assert.deepEqual(body, { keys: [{ id: gone.id, name: "gone", owner: person("gone") }] });
    assert.equal((await service.call("GET", `/v1/api-keys/names?ids=${gone.id}`)).status, 403);
    for (const ids of ["", "x", `${gone.id},`, Array.from({ length: 101 }, () => nowhere).join(",")])
      assert.equal(
        (await service.call("GET", `/v1/api-keys/names?ids=${ids}`, { key: service.admin })).status,
        422,
        ids,
      );
  });
});
