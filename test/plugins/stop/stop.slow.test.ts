/**
 * A stop halts decisions above all policies, is lifted by the configured number of people, and exists only in the
 * ledger.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { needs } from "../../support/features.ts";
import { startService, type Answer, type Service, makeKey as makeKeyOn, setSection } from "../../support/service.ts";

const POLICY = `policy: open
rules:
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2, expires_in: 2h } }
  - { name: ask, operation: ask, effect: require_approval, approval: { expires_in: 2h } }
  - { name: go, operation: go, effect: allow }
`;

let service: Service;

const submit = (operation: string, more: object = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/actions", { body: { agent_id: "bot", tool: "t", operation, ...more }, headers });
const place = (body: object = {}, key = service.admin, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/stop", { key, body: { reason: "drill", ...body }, headers });
const lift = (id: string, key = service.admin): Promise<Answer> =>
  service.call("POST", `/v1/stop/${id}/lift`, { key, body: { reason: "over" } });
const held = async (key = service.admin): Promise<Answer["body"][]> =>
  (await service.call("GET", "/v1/stop", { key })).body.stops;
const said = ({ status, body }: Answer): unknown[] => [status, body.code];
const look = async (id: string, key = service.admin): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}`, { key })).body;
const start = ({ id }: Answer["body"]): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/start`, { body: {} });
const permit = ({ id }: Answer["body"]): Promise<Answer> => service.call("POST", `/v1/actions/${id}/permit`);
async function vote(id: string, approve = true): Promise<Answer> {
  const { approval_token: token } = await look(id);
  return service.call("POST", `/v1/actions/${id}/approval`, { key: service.admin, body: { token, approve } });
}
const makeKey = async (body: object): Promise<string> => (await makeKeyOn(service, body)).key;

describe("a stop", () => {
  before(async () => {
    service = await startService({ policy: POLICY });
  });
  after(() => service.close());
  afterEach(async () => {
    for (const { id } of await held()) assert.equal((await lift(id)).status, 200);
  });

  it(
    "denies submissions, says so in the entry, in a dry run and in a replay, and ends when it is lifted",
    needs("replay"),
    async () => {
      const { status, body: stop, headers } = await place({ reason: "refunds nobody asked for" });
      assert.equal(status, 201);
      assert.equal(headers.get("location"), `/v1/stop/${stop.id}`);
      assert.deepEqual(
        [stop.status, stop.agent, stop.tool, stop.policy, stop.until, stop.reason],
        ["holds", null, null, null, null, "refunds nobody asked for"],
      );
      for (const operation of ["go", "ask", "nobody-has-a-rule"]) {
        const { body } = await submit(operation);
        assert.deepEqual([body.status, body.decision, body.reason_code], ["denied", "deny", "STOPPED"], operation);
        assert.match(body.reason, new RegExp(stop.id));
        assert.doesNotMatch(body.reason, /nobody asked/, "why is not for the agent");
      }
      const dry = await service.call("POST", "/v1/gate/decide", {
        body: { agent_id: "bot", tool: "t", operation: "go" },
      });
      assert.deepEqual([dry.body.outcome, dry.body.reason_code], ["HALT", "STOPPED"]);
      const denied = (await submit("go")).body;
      const [event] = (await service.call("GET", `/v1/actions/${denied.id}/events`, { key: service.admin })).body
        .events;
      assert.deepEqual(
        event.entry.facts.bars.map(({ id, policy, code }: Record<string, unknown>) => [id, policy, code]),
        [[stop.id, null, "STOPPED"]],
      );
      assert.equal((await lift(stop.id)).body.status, "lifted");
      assert.equal((await submit("go")).body.status, "allowed");
      const replay = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: denied.id } });
      assert.equal(replay.body.equal, true, JSON.stringify(replay.body));
    },
  );

  it("a stop prevents starts and approvals, permits rejections and results, and leaves open actions unchanged", async () => {
    const allowed = (await submit("go")).body;
    const asked = [(await submit("ask")).body, (await submit("two")).body, (await submit("ask")).body];
    const approved = (await submit("ask")).body;
    assert.equal((await vote(approved.id)).body.status, "approved");
    const running = (await submit("go")).body;
    assert.equal((await start(running)).status, 200);
    const permitted = await look(approved.id, service.agent);
    const { id } = (await place()).body;
    for (const action of [allowed, permitted]) {
      assert.deepEqual(said(await start(action)), [409, "STOPPED"]);
      assert.deepEqual(said(await permit(action)), [409, "STOPPED"]);
    }
    for (const action of asked) assert.deepEqual(said(await vote(action.id)), [409, "STOPPED"]);
    assert.equal((await vote(asked[2].id, false)).body.status, "denied", "no is always taken");
    const result = await service.call("POST", `/v1/actions/${running.id}/result`, { body: { success: true } });
    assert.equal(result.body.status, "succeeded");
    const statuses = [allowed, permitted, asked[0], asked[1]].map(async (action) => (await look(action.id)).status);
    assert.deepEqual(await Promise.all(statuses), ["allowed", "approved", "pending_approval", "pending_approval"]);
    await lift(id);
    assert.equal((await permit(allowed)).status, 200);
    for (const action of [allowed, permitted]) assert.equal((await start(action)).status, 200);
    assert.equal((await vote(asked[0].id)).body.status, "approved");
  });

  it("withholds the permit from retries and joined submissions", async () => {
    const wish = { params: { n: 1 } };
    const retry = { prefer: "permit", "idempotency-key": "wish-1" };
    const first = await submit("go", wish, retry);
    assert.equal(typeof first.body.permit, "string");
    await place();
    const again = await submit("go", wish, retry);
    assert.deepEqual([again.body.id, again.body.permit ?? null], [first.body.id, null]);
    const joining = { agent_id: "bot", tool: "t", operation: "go", ...wish };
    const joined = await service.call("POST", "/v1/actions?join=open", {
      body: joining,
      headers: { prefer: "permit" },
    });
    assert.deepEqual([joined.body.reason_code, joined.body.permit ?? null], ["STOPPED", null]);
  });

  it("covers everything that matches its agent, tool or policy, however the name is written", async () => {
    await place({ agent: "b*", tool: "T" });
    await place({ policy: "open", tool: "other" });
    const codes = async (...more: object[]): Promise<string[]> =>
      Promise.all(more.map(async (one) => (await submit("go", one)).body.reason_code));
    assert.deepEqual(
      await codes({}, { agent_id: "BOT", tool: "t" }, { agent_id: "cat" }, { tool: "u" }, { tool: "other" }),
      ["STOPPED", "STOPPED", "POLICY_RULE", "POLICY_RULE", "STOPPED"],
    );
    const spellings = ["other/", "./other", "other:x", "other%2fx", "other@1", "a/../other", "OTHER//x", "other;x"];
    assert.deepEqual(await codes(...spellings.map((tool) => ({ tool })), { tool: "another" }, { tool: "x/other" }), [
      ...spellings.map(() => "STOPPED"),
      "POLICY_RULE",
      "POLICY_RULE",
    ]);
    // The policy has no answer here, so the stop does not cover the action.
    assert.equal((await submit("unheard of", { tool: "other" })).body.reason_code, "NO_MATCHING_RULE");
    const { id } = (await submit("go", { tool: "u" })).body;
    const [event] = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events;
    assert.equal("stops" in event.entry.facts, false, "what did not decide is not in the entry");
    assert.deepEqual(said(await place({ policy: "opne" })), [404, "POLICY_NOT_FOUND"]);
  });

  it("with an end expires", async () => {
    const until = new Date(service.runtime.host.clock() + 60_000).toISOString();
    const { id } = (await place({ until })).body;
    const { body } = await submit("go");
    assert.match(body.reason, new RegExp(until.replaceAll(".", "\\.")));
    service.clock.now += 61_000;
    assert.equal((await submit("go")).body.status, "allowed");
    assert.deepEqual(await held(), []);
    assert.equal((await service.call("GET", `/v1/stop/${id}`, { key: service.admin })).body.status, "ended");
    assert.deepEqual(said(await lift(id)), [409, "STOP_OVER"]);
    assert.deepEqual(said(await place({ until })), [422, "VALIDATION_FAILED"]);
  });

  it("can be in force together with others", async () => {
    const [one, two] = [(await place()).body, (await place({ tool: "t" })).body];
    await lift(one.id);
    assert.match((await submit("go")).body.reason, new RegExp(two.id));
    assert.deepEqual(
      (await held()).map(({ id }) => id),
      [two.id],
    );
  });

  it("survives a restart", async () => {
    const { id } = (await place()).body;
    await service.restart();
    assert.match((await submit("go")).body.reason, new RegExp(id));
  });

  it("is placed once for one Idempotency-Key", async () => {
    const headers = { "idempotency-key": "halt-1" };
    const [one, two] = [await place({}, service.admin, headers), await place({}, service.admin, headers)];
    assert.deepEqual([one.status, two.status, two.body.id], [201, 200, one.body.id]);
    assert.deepEqual(said(await place({ tool: "t" }, service.admin, headers)), [409, "IDEMPOTENCY_CONFLICT"]);
  });

  it("is visible to an agent's key only if it covers the agent, without author and reason", async () => {
    const bot = await makeKey({ name: "bound", preset: "agent", agent_id: "bot" });
    const { id } = (await place({ agent: "bot", reason: "suspect" })).body;
    await place({ agent: "another" });
    const [seen, ...others] = await held(bot);
    assert.deepEqual([seen.id, seen.reason, seen.placed_by, others.length], [id, null, null, 0]);
    assert.equal((await held()).length, 2);
    assert.deepEqual(said(await place({}, bot)), [403, "INSUFFICIENT_SCOPE"]);
    const bound = await makeKey({ name: "bound stop", scopes: ["stop:write"], agent_id: "bot" });
    for (const refused of [await place({}, bound), await lift(id, bound)])
      assert.deepEqual(said(refused), [403, "AGENT_MISMATCH"]);
    assert.deepEqual(said(await lift("no-such-stop")), [404, "STOP_NOT_FOUND"]);
    assert.equal((await service.call("POST", "/v1/stop", { key: service.admin, body: {} })).status, 422);
  });

  it("is rejected beyond a hundred if it covers part of the actions; a stop of everything never is", async () => {
    for (let i = 0; i < 100; i++) assert.equal((await place({ tool: `tool-${i}` })).status, 201);
    assert.deepEqual(said(await place({ tool: "one-more" })), [429, "TOO_MANY_STOPS"]);
    assert.equal((await place()).status, 201);
  });

  it("is ordered with submissions: no action recorded after it was allowed", async () => {
    const answers = Array.from({ length: 60 }, () => submit("go"));
    const stop = place();
    answers.push(...Array.from({ length: 60 }, () => submit("go")));
    const { seq } = (await stop).body;
    const rows = (await Promise.all(answers)).map(({ body }) => body);
    const { size } = await service.storage.head();
    const decisions = (await service.storage.entries(0, size)).filter(({ type }) => type === "decision");
    const seqOf = new Map(decisions.map((row) => [row.action_id, row.seq]));
    for (const { id, status } of rows)
      assert.equal(
        status,
        (seqOf.get(id) ?? 0) > seq ? "denied" : "allowed",
        `${seqOf.get(id)} beside the stop at ${seq}`,
      );
    assert.ok(rows.some(({ status }) => status === "denied"));
  });
});

describe("a stop that two people must lift", () => {
  before(async () => {
    service = await startService({
      policy: POLICY,
      change: (config) => setSection(config, "stop", { lift_approvals: 2 }),
    });
  });
  after(() => service.close());

  it("one person cannot lift a stop that needs two people, neither with two requests nor with a key that they created", async () => {
    const other = (await service.runtime.createAdminKey("another person")).key;
    const made = await makeKey({ name: "made", scopes: ["stop:write"], owner: "somebody" });
    const { id } = (await place()).body;
    const asked = await lift(id);
    assert.deepEqual([asked.status, asked.body.status, asked.body.lift.asked.length], [202, "holds", 1]);
    for (const key of [service.admin, made]) assert.deepEqual(said(await lift(id, key)), [409, "ALREADY_VOTED"]);
    assert.equal((await submit("go")).body.reason_code, "STOPPED");
    const lifted = await lift(id, other);
    assert.deepEqual([lifted.status, lifted.body.status, lifted.body.lift.asked.length], [200, "lifted", 2]);
    assert.equal((await submit("go")).body.status, "allowed");
    assert.deepEqual(said(await lift(id)), [409, "STOP_OVER"]);
  });
});
