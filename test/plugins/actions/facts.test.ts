/** Facts and attributes through the API: what conditions read of other systems, of agents and of principals. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { definePlugin, type FactSource } from "../../../src/plugin.ts";
import { hasFeature, needs } from "../../support/features.ts";
import { until } from "../../support/wait.ts";
import { makeKey, plainVotes, startService, type Service, person } from "../../support/service.ts";

const POLICY = `policy: accounts
facts:
  account:
    source: crm
    with: { id: params.account }
    schema: { type: object, properties: { status: { type: string }, limit: { type: number }, owner: { type: string } } }
rules:
  - { name: frozen, tool: bank, when: 'facts.account.status == "frozen"', effect: deny, reason: the account is frozen }
  - { name: within its limit, tool: bank, when: params.amount <= facts.account.limit, effect: allow }
  - { name: ask, tool: bank, effect: require_approval }
---
policy: orders
facts:
  order: { source: orders, with: { id: params.order }, schema: { type: [object, "null"], properties: { account: { type: string } } } }
  account:
    source: crm
    with: { id: facts.order.account }
    schema: { type: object, properties: { limit: { type: number } } }
rules:
  - { name: no such order, tool: refund, when: facts.order == null, effect: deny, reason: there is no such order }
  - { name: small, tool: refund, when: params.amount <= double(facts.account.limit) * 1.25, effect: allow }
  - { name: ask, tool: refund, effect: require_approval }
---
policy: turns
facts:
  open: { source: single, with: { id: params.id }, schema: { type: boolean } }
rules:
  - { name: open, tool: turns, when: facts.open, effect: allow }
---
policy: shared
facts:
  open: { source: shared, with: { id: params.id }, schema: { type: boolean } }
rules:
  - { name: open, tool: shared, when: facts.open, effect: allow }
---
policy: teams
limits:
  - { name: one for each team, tool: mail, per: agent_metadata.team, count: 1, window: 1h }
rules:
  - { name: gold, tool: mail, when: '"gold" in agent_groups && "finance" in principal.groups && principal.roles == []', effect: allow }
`;

describe("facts and attributes", () => {
  let service: Service;
  let answer: (id: string) => unknown;
  let asked: string[];
  const crm: FactSource = {
    name: "crm",
    inputs: ["id"],
    timeoutMs: 10_000,
    read({ id }) {
      asked.push(String(id));
      return Promise.resolve(answer(String(id)) as never);
    },
  };
  let release: (() => void) | null = null;
  const single: FactSource = {
    name: "single",
    inputs: ["id"],
    timeoutMs: 50,
    maxConcurrent: 1,
    read: ({ id }) => (id === "hangs" ? new Promise((end) => (release = () => end(true))) : Promise.resolve(true)),
  };
  const hanging: (() => void)[] = [];
  const shared: FactSource = {
    name: "shared",
    inputs: ["id"],
    timeoutMs: 10_000,
    maxConcurrent: 2,
    read: ({ id }) =>
      id === "free" ? Promise.resolve(true) : new Promise((resolve) => hanging.push(() => resolve(true))),
  };
  const orders: FactSource = {
    name: "orders",
    inputs: ["id"],
    read: ({ id }) => Promise.resolve(id === "none" ? null : { account: `of-${id}`, secret: "hidden-value" }),
  };
  const plugin = definePlugin({ name: "crm", setup: () => ({ factSources: [crm, single, shared, orders] }) });

  before(async () => {
    asked = [];
    answer = (id) => ({ status: id === "acc-9" ? "frozen" : "open", limit: 100, secret: "hidden-value" });
    service = await startService({
      policy: POLICY,
      plugins: [{ plugin, options: {}, origin: "crm" }],
      change(config) {
        plainVotes(config);
        config.ledger.max_queue = 3;
        config.groups = { gold: { members: ["agent:Mailer"] }, finance: { members: [person("ada")] } };
      },
    });
  });
  after(() => service.close());

  const submit = async (account: unknown, amount = 10, key = service.agent) =>
    (
      await service.call("POST", "/v1/actions", {
        key,
        body: { agent_id: "a", tool: "bank", operation: "transfer", params: { account, amount } },
      })
    ).body;
  const start = (id: string) => service.call("POST", `/v1/actions/${id}/start`, { body: {} });
  /** Lets all answers in memory expire. */
  const pass = (): void => void (service.clock.now += 31_000);

  test("decide, and are recorded with the action and replayed without the source", needs("replay"), async () => {
    assert.equal((await submit("acc-1")).decision, "allow");
    const frozen = await submit("acc-9");
    assert.deepEqual([frozen.decision, frozen.reason], ["deny", "the account is frozen"]);
    const row = await service.storage.action(frozen.id);
    // Only the members that the schema names are stored, and the ledger has a commitment.
    assert.match(row?.past ?? "", /frozen/);
    assert.doesNotMatch(row?.past ?? "", /hidden-value/);
    const { body } = await service.call("GET", `/v1/actions/${frozen.id}/events`, { key: service.admin });
    assert.match(body.events[0].entry.facts.past, /^[0-9a-f]{64}$/);
    assert.doesNotMatch(JSON.stringify(body.events), /"sources"|hidden/);
    answer = () => ({ status: "open", limit: 100 });
    pass();
    const { body: replayed } = await service.call("POST", "/v1/replay", {
      key: service.admin,
      body: { action_id: frozen.id, policy_set: "current" },
    });
    assert.deepEqual(
      [replayed.equal, replayed.now.changed, replayed.sources[0].value],
      [true, false, { limit: 100, status: "frozen" }],
    );
    assert.equal((await submit("acc-9", 11)).decision, "allow", "the account was reopened since");
  });

  test("an answer is used again until it expires", async () => {
    await submit("acc-2", 1);
    const before = asked.length;
    await submit("acc-2", 2);
    assert.equal(asked.length, before);
    pass();
    await submit("acc-2", 3);
    assert.equal(asked.length, before + 1);
  });

  test("a fact source without a usable response denies the action, and an input that cannot be evaluated denies it, too", async () => {
    const cases: [answer: () => unknown, reason: RegExp][] = [
      [() => Promise.reject(new Error("down")), /did not answer/],
      [() => ({ status: 5, limit: 1 }), /does not match its schema/],
      [() => null, /has no record for its inputs, and null does not match its schema/],
      [() => Promise.reject(Object.assign(new Error("none"), { code: "NOT_FOUND" })), /has no record for its inputs/],
      [() => undefined, /did not answer/],
      [() => ({ status: "x".repeat(20_000), limit: 1 }), /too large/],
    ];
    for (const [i, [failing, reason]] of cases.entries()) {
      answer = failing;
      const denied = await submit(`failing-${i}`);
      assert.deepEqual([denied.decision, denied.reason_code], ["deny", "CONDITION_ERROR"]);
      assert.match(denied.reason, reason);
    }
    const before = asked.length;
    assert.match((await submit({ id: "acc-1" })).reason, /an input of a fact could not be evaluated/);
    assert.equal(asked.length, before, "nothing was asked");
    if (hasFeature("metrics")) {
      const metrics = await service.call("GET", "/metrics", { key: service.admin });
      assert.match(JSON.stringify(metrics.body), /assent_fact_source_failures\{source=\\"crm\\"\} 2/);
    }
    answer = () => ({ status: "open", limit: 100 });
  });

  test(
    "the input of a fact reads another fact, and an absent record is a value if the schema accepts null",
    needs("replay"),
    async () => {
      const refund = async (order: unknown, amount: number) =>
        (
          await service.call("POST", "/v1/actions", {
            body: { agent_id: "a", tool: "refund", operation: "refund", params: { order, amount } },
          })
        ).body;
      assert.equal((await refund("o-1", 125)).decision, "allow");
      assert.equal(asked.at(-1), "of-o-1");
      const asking = await refund("o-1", 126);
      assert.equal(asking.decision, "require_approval");
      assert.equal((await refund("none", 1)).reason, "there is no such order");
      assert.match((await refund({}, 1)).reason, /an input of a fact could not be evaluated/);
      const { body: replayed } = await service.call("POST", "/v1/replay", {
        key: service.admin,
        body: { action_id: asking.id },
      });
      assert.deepEqual(
        [replayed.equal, replayed.sources.map((fact: { name: string; value: unknown }) => [fact.name, fact.value])],
        [
          true,
          [
            ["order", { account: "of-o-1" }],
            ["account", { limit: 100 }],
          ],
        ],
      );
      // A vote waits for the source of the second fact, too.
      pass();
      answer = () => Promise.reject(new Error("down"));
      const { body: seen } = await service.call("GET", `/v1/actions/${asking.id}`, { key: service.admin });
      const vote = await service.call("POST", `/v1/actions/${asking.id}/approval`, {
        key: service.admin,
        body: { approve: true, token: seen.approval_token },
      });
      assert.equal(vote.body.code, "FACTS_UNAVAILABLE");
      pass();
      answer = () => ({ status: "open", limit: 100 });
    },
  );

  test("a vote and a start read facts again, and change nothing while the source does not answer", async () => {
    const { id, decision } = await submit("acc-3", 500);
    assert.equal(decision, "require_approval");
    const { body: seen } = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
    const vote = () =>
      service.call("POST", `/v1/actions/${id}/approval`, {
        key: service.admin,
        body: { approve: true, token: seen.approval_token },
      });
    pass();
    answer = () => Promise.reject(new Error("down"));
    const refused = await vote();
    assert.deepEqual([refused.status, refused.body.code], [503, "FACTS_UNAVAILABLE"]);
    pass();
    answer = () => ({ status: "open", limit: 100 });
    assert.equal((await vote()).body.status, "approved");
    pass();
    answer = () => Promise.reject(new Error("down"));
    assert.equal((await start(id)).body.code, "FACTS_UNAVAILABLE");
    pass();
    answer = () => ({ status: "frozen", limit: 100 });
    assert.equal((await start(id)).body.code, "NO_LONGER_ALLOWED");
    answer = () => ({ status: "open", limit: 100 });
    pass();
  });

  test("a vote on a plan reads the facts of all its actions at once", needs("plans"), async () => {
    const actions = Array.from({ length: 22 }, (_, i) => ({
      agent_id: "a",
      tool: "bank",
      operation: "t",
      params: { account: `plan-${i}`, amount: 500 },
    }));
    const { body: plan } = await service.call("POST", "/v1/plans", { body: { actions } });
    pass();
    const { body: seen } = await service.call("GET", `/v1/plans/${plan.id}`, { key: service.admin });
    const { status, body } = await service.call("POST", `/v1/plans/${plan.id}/approval`, {
      key: service.admin,
      body: { token: seen.approval_token, approve: true },
    });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal((await service.storage.action(body.actions[0].id))?.status, "approved");
  });

  test("a plan reads facts, too", needs("plans"), async () => {
    const action = (account: string) => ({
      agent_id: "a",
      tool: "bank",
      operation: "t",
      params: { account, amount: 1 },
    });
    const plan = await service.call("POST", "/v1/plans", { body: { actions: [action("p-1"), action("p-2")] } });
    assert.deepEqual(
      (plan.body.actions as { decision: string }[]).map(({ decision }) => decision),
      ["allow", "allow"],
    );
  });

  test("a preview reads facts, too", async () => {
    const body = { agent_id: "a", tool: "bank", operation: "t", params: { account: "p-3", amount: 1 } };
    assert.equal((await service.call("POST", "/v1/gate/decide", { body })).body.outcome, "EXECUTE");
  });

  test("a slow fact source does not occupy the queue of decisions, including at a start", async () => {
    const started = (await submit("slow-start", 1)).id;
    pass();
    const waiting: (() => void)[] = [];
    answer = () => new Promise((resolve) => waiting.push(() => resolve({ status: "open", limit: 100 })));
    const slow: Promise<{ status: string }>[] = [];
    for (let i = 0; i < 5; i++) {
      slow.push(i < 4 ? submit(`slow-${i}`, 1) : start(started).then(({ body }) => body));
      await until("the source is asked", () => waiting.length === i + 1);
    }
    assert.equal(service.runtime.host.load.queued(), 0);
    const body = { agent_id: "a", tool: "other", operation: "x" };
    assert.equal((await service.call("POST", "/v1/actions", { body })).status, 200, "it reads no fact");
    const statuses: string[] = [];
    for (const [i, request] of slow.entries()) {
      waiting[i]?.();
      statuses.push((await request).status);
    }
    assert.deepEqual(statuses, ["allowed", "allowed", "allowed", "allowed", "executing"]);
    answer = () => ({ status: "open", limit: 100 });
  });

  test("the decisions of an agent do not wait for slow facts of another agent", async () => {
    const { key: other } = await makeKey(service, { name: "not slow", preset: "agent" });
    const ask = async (tool: string, id: string, key: string) =>
      (
        await service.call("POST", "/v1/actions", {
          key,
          body: { agent_id: "a", tool, operation: "o", params: { id } },
        })
      ).body.decision;
    const slow = Array.from({ length: 3 }, (_, i) => ask("shared", `slow-${i}`, service.agent));
    await until("the source is asked", () => hanging.length >= 1);
    assert.equal(await ask("shared", "free", other), "allow", "it reads another fact of the same source");
    assert.equal(await ask("turns", "x-1", other), "allow", "it reads another source");
    assert.equal(await ask("other", "x", other), "deny", "it reads no fact");
    let answered = 0;
    await until("all were read", () => {
      for (const end of hanging.splice(0)) {
        end();
        answered++;
      }
      return answered === 3;
    });
    assert.deepEqual(await Promise.all(slow), ["allow", "allow", "allow"]);
  });

  test("a read that gets no turn fails only for the key whose other reads it waited for", async () => {
    const { key: other } = await makeKey(service, { name: "another", preset: "agent" });
    const ask = async (id: string, key = service.agent) =>
      (
        await service.call("POST", "/v1/actions", {
          key,
          body: { agent_id: "a", tool: "turns", operation: "o", params: { id } },
        })
      ).body.decision;
    const hanging = ask("hangs");
    await until("the source is asked", () => release !== null);
    // The timeouts of the reads do not keep the process alive.
    const alive = setInterval(() => undefined, 1_000);
    assert.deepEqual(await Promise.all([hanging, ask("x")]), ["deny", "deny"]);
    clearInterval(alive);
    release?.();
    await new Promise(setImmediate);
    assert.equal(await ask("x", other), "allow");
  });

  test("an agent asks no source for another agent", async () => {
    const { key } = await makeKey(service, { name: "bound", preset: "agent", agent_id: "other" });
    const before = asked.length;
    assert.equal((await submit("acc-77", 1, key)).code, "AGENT_MISMATCH");
    assert.equal(asked.length, before);
  });

  test("a search for erasures finds them, and erasing the action removes them", needs("retention"), async () => {
    answer = () => ({ status: "frozen", owner: "anna@example.org" });
    const { id } = await submit("acc-5");
    const { body } = await service.call("POST", "/v1/erasures", {
      key: service.admin,
      body: { value: "anna@example.org", dry_run: false, reason: "r" },
    });
    assert.equal(body.erased, 1);
    assert.equal((await service.storage.action(id))?.past, null);
    answer = () => ({ status: "open", limit: 100 });
  });

  test("a check warns about sources that are not configured, and a dry run uses the given facts without reading sources", async () => {
    const yaml = POLICY.split("---")[0] as string;
    const checked = await service.call("POST", "/v1/policies/check", {
      key: service.admin,
      body: { yaml: yaml.replace("source: crm", "source: crn").replace("id: params", "no: params") },
    });
    assert.match(
      JSON.stringify(checked.body.warnings),
      /names the source \\"crn\\", which is not configured.*\\"crm\\"/,
    );
    assert.ok(checked.body.variables.some(({ name }: { name: string }) => name === "facts.account.status"));
    const before = asked.length;
    const dryRun = async (facts: object) =>
      (
        await service.call("POST", "/v1/policies/dry-run", {
          key: service.admin,
          body: {
            yaml,
            alone: true,
            actions: [{ agent_id: "a", tool: "bank", operation: "t", params: { account: "x", amount: 1 } }],
            facts,
          },
        })
      ).body.results[0].candidate;
    assert.equal((await dryRun({ account: { status: "frozen" } })).rule, "frozen");
    assert.equal((await dryRun({})).reason_code, "CONDITION_ERROR");
    assert.equal(asked.length, before);
  });

  test(
    "conditions and limits read groups and the registration of an agent, which the decision records",
    needs("agents", "replay"),
    async () => {
      for (const [id, team] of [
        ["Mailer", "one"],
        ["mailer-2", "one"],
      ])
        await service.call("POST", "/v1/agents", { key: service.admin, body: { id, metadata: { team } } });
      const { key } = await makeKey(service, { name: "ada's", preset: "agent", owner: "ada" });
      const mail = async (agent_id: string, by = key) =>
        (await service.call("POST", "/v1/actions", { key: by, body: { agent_id, tool: "mail", operation: "send" } }))
          .body;
      const allowed = await mail("Mailer");
      assert.deepEqual([allowed.decision, allowed.rule], ["allow", "gold"]);
      assert.equal((await mail("mailer-2")).reason_code, "LIMIT_EXCEEDED", "the same team, and another agent");
      assert.equal((await mail("Mailer", service.agent)).decision, "deny", "a key of nobody in finance");
      assert.equal((await mail("unregistered")).reason_code, "CONDITION_ERROR", "it has no team");
      const replayed = await service.call("POST", "/v1/replay", {
        key: service.admin,
        body: { action_id: allowed.id },
      });
      assert.deepEqual(
        [replayed.body.equal, replayed.body.attributes],
        [true, { agent_groups: ["gold"], agent_metadata: { team: "one" }, groups: ["finance"], roles: [] }],
      );
      const started = await service.call("POST", `/v1/actions/${allowed.id}/start`, { key, body: {} });
      assert.equal(started.status, 200);
    },
  );

  test("are read while the service stops, because it still decides requests", async () => {
    answer = () => ({ status: "open", limit: 100 });
    service.runtime.beginStop();
    assert.equal((await submit("acc-last", 1)).decision, "allow");
  });
});

test("facts are read once for a request if the source fails, and twice at most, however slow commits are", async () => {
  let reads = 0;
  let fails = false;
  let service: Service | null = null;
  const source: FactSource = {
    name: "crm",
    inputs: ["id"],
    maxAgeMs: 2_000,
    read() {
      reads++;
      return fails ? Promise.reject(new Error("down")) : Promise.resolve({ status: "open", limit: 100 });
    },
  };
  const plugin = definePlugin({ name: "crm", setup: () => ({ factSources: [source] }) });
  service = await startService({
    policy: POLICY.split("---")[0] ?? "",
    plugins: [{ plugin, options: {}, origin: "crm" }],
    change: plainVotes,
    storage(folder) {
      const storage = sqliteStorage({ path: join(folder, "assent.db") });
      const { write } = storage;
      storage.write = (...args) => {
        // Results of the source are valid for two seconds, so they expire while the transaction waits.
        if (service !== null) service.clock.now += 3_000;
        return write(...args);
      };
      return storage;
    },
  });
  const { call, agent, admin } = service;
  const submit = async (amount: number) =>
    (
      await call("POST", "/v1/actions", {
        key: agent,
        body: { agent_id: "a", tool: "bank", operation: "transfer", params: { account: "acc-1", amount } },
      })
    ).body;
  const countReads = (): number => {
    const count = reads;
    reads = 0;
    return count;
  };
  assert.equal((await submit(1)).decision, "allow");
  assert.equal(countReads(), 2);
  const { id } = await submit(500);
  const { body: seen } = await call("GET", `/v1/actions/${id}`, { key: admin });
  countReads();
  fails = true;
  const denied = await submit(2);
  assert.deepEqual([denied.decision, denied.reason_code, countReads()], ["deny", "CONDITION_ERROR", 1]);
  const body = { approve: true, token: seen.approval_token };
  const vote = await call("POST", `/v1/actions/${id}/approval`, { key: admin, body });
  assert.deepEqual([vote.body.code, countReads()], ["FACTS_UNAVAILABLE", 1]);
  await service.close();
});
