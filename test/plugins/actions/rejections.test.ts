/** A person's rejection denies duplicate requests for a time, and an approver can lift it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs, hasFeature } from "../../support/features.ts";
import { rawSqlite, type RawRow, type RawStore, type RawTable } from "../../support/raw-store.ts";
import { makeKey, startService, type Answer, type Service, person } from "../../support/service.ts";

const HOUR = 3_600_000;
const LATER = 1000 * HOUR;
const AT = new Date(Date.now() + LATER).toISOString();
const POLICY = `policy: work
rules:
  - { name: not yet, tool: later, when: 'now < timestamp("${AT}")', effect: require_approval, approval: { rejection_holds: 90d } }
  - { name: allowed, tool: later, operation: allowed, effect: allow }
  - { name: denied, tool: later, effect: deny }
  - { name: no, tool: no, effect: deny }
  - { name: pay, tool: pay, effect: allow }
  - { name: costly, tool: costly, when: 'params.list.all(x, params.list.all(y, x + y >= 0))', effect: require_approval }
  - { name: two, tool: ask, operation: two, effect: require_approval, approval: { quorum: 2 } }
  - { name: briefly, tool: ask, operation: briefly, effect: require_approval, approval: { rejection_holds: 1h } }
  - { name: never, tool: ask, operation: never, effect: require_approval, approval: { rejection_holds: none } }
  - { name: zero, tool: ask, operation: zero, effect: require_approval, approval: { rejection_holds: 0s } }
  - { name: ask, tool: ask, effect: require_approval, approval: { expires_in: 1h } }
`;
const WORDS = "use npm run ship instead";

let service: Service;
let raw: RawStore;
let alice: string;
let bob: string;
let n = 0;

before(async () => {
  let path = "";
  service = await startService({
    policy: POLICY,
    broken: true,
    change: (config) => (config.approvals.trust_key_makers = true),
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path });
    },
  });
  raw = await rawSqlite(path);
  alice = (await makeKey(service, { name: "alice", preset: "approver", owner: "Alice" })).key;
  bob = (await makeKey(service, { name: "bob", preset: "approver", owner: "bob" })).key;
});
after(async () => {
  const { faults } = await auditStore(service.storage);
  await raw.close();
  await service.close();
  assert.deepEqual(faults, []);
});

/** Returns a request that no other test uses. */
const unique = (operation = "do", more: object = {}): object => ({
  agent_id: "bot",
  tool: "ask",
  operation,
  params: { n: ++n },
  ...more,
});
const submit = (body: object, key = service.agent): Promise<Answer> =>
  service.call("POST", "/v1/actions", { key, body });
const read = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
const entriesOf = async (id: string): Promise<Answer["body"][]> =>
  (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events.map(
    ({ entry }: { entry: object }) => entry,
  );
const lift = (id: string, key = alice, body: object = {}): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/lift-rejection`, { key, body });
async function vote(id: string, approve: boolean, reason: string | undefined, key = alice): Promise<Answer["body"]> {
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key })).body;
  const answer = await service.call("POST", `/v1/actions/${id}/approval`, {
    key,
    body: { token, approve, ...(reason === undefined ? {} : { reason }) },
  });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}
/** Submits a request and rejects it. Returns the action's id. */
async function rejected(body: object, reason: string | null = WORDS): Promise<string> {
  const { status, body: action } = await submit(body);
  assert.equal(status, 202, JSON.stringify(action));
  await vote(action.id, false, reason ?? undefined);
  return action.id;
}
const outcome = ({ status, body }: Answer): unknown[] => [status, body.status, body.denied_by, body.reason_code];
const ASKED_AGAIN = [202, "pending_approval", null, "POLICY_RULE"];
const REFUSED = [200, "denied", "earlier_rejection", "EARLIER_REJECTION"];

describe("a rejection", () => {
  test("a rejection names its author, comment and end in the record of the action", async () => {
    const id = await rejected(unique());
    const action = await read(id);
    assert.deepEqual([action.status, action.decision, action.denied_by], ["denied", "require_approval", "person"]);
    const { rejected_at, holds_until, ...rest } = action.rejection;
    assert.deepEqual(rest, { action_id: id, approver: person("alice"), reason: WORDS });
    assert.equal(Date.parse(holds_until) - Date.parse(rejected_at), 24 * HOUR);
    assert.equal((await entriesOf(id)).at(-1).rejection_until, holds_until);
  });

  test("a rejection denies duplicate requests of the same agent, including from its other keys, without a new request for approval", async () => {
    const body = unique();
    const id = await rejected(body);
    const { rejection } = await read(id);
    const sister = await makeKey(service, { name: "sister", preset: "agent", agent_id: "bot" });
    for (const key of [service.agent, sister.key]) {
      const again = await submit(body, key);
      assert.deepEqual(outcome(again), REFUSED);
      assert.deepEqual(again.body.rejection, rejection);
      assert.deepEqual(again.body.names, { [person("alice")]: "Alice" });
      assert.deepEqual([again.body.decision, again.body.approvals_needed], ["deny", null]);
      assert.equal(again.body.reason, `rejected by Alice at ${rejection.rejected_at}: ${WORDS}`);
      assert.deepEqual([again.body.policy, again.body.rule], ["work", "ask"]);
      const [entry] = await entriesOf(again.body.id);
      assert.deepEqual([entry.status, entry.denied_by, entry.decision.approval], ["denied", "earlier_rejection", null]);
      assert.deepEqual(entry.facts.rejection, {
        action_id: id,
        approver: person("alice"),
        approver_name: "Alice",
        comment: WORDS,
        at: rejection.rejected_at,
        until: rejection.holds_until,
      });
    }
  });

  test("a rejection does not deny another request, or the request of another agent", async () => {
    const body = unique();
    await rejected(body);
    assert.deepEqual(outcome(await submit({ ...body, params: { n: -n } })), ASKED_AGAIN);
    assert.deepEqual(outcome(await submit({ ...body, agent_id: "other" })), ASKED_AGAIN);
  });

  test("one person's rejection ends a request that needs two, and stays in force", async () => {
    const body = unique("two");
    const { body: action } = await submit(body);
    await vote(action.id, true, undefined, bob);
    await vote(action.id, false, WORDS);
    assert.deepEqual(outcome(await submit(body)), REFUSED);
  });

  test("a rejection without a comment names the person and the time", async () => {
    const body = unique();
    const id = await rejected(body, null);
    const again = await submit(body);
    assert.equal(again.body.rejection.reason, null);
    assert.equal(again.body.reason, `rejected by Alice at ${(await read(id)).rejection.rejected_at}`);
  });

  test("a rejection returns its comment as one bounded line", async () => {
    const body = unique();
    const written = `no\n\u001b[31mIgnore\u202e all\u0000${"\u4e00".repeat(1900)}`;
    const id = await rejected(body, written);
    assert.equal((await read(id)).approvals[0].reason, written, "the vote keeps what was written");
    const again = await submit(body);
    for (const { reason } of [(await read(id)).rejection, again.body.rejection]) {
      assert.match(reason, /^no \[31mIgnore all \u4e00+…$/);
      assert.equal(reason.length, 501);
    }
    assert.ok(again.body.reason.length <= 501);
  });

  test("gate/decide also returns the rejection", async () => {
    const body = unique();
    const id = await rejected(body);
    const { status, body: answer } = await service.call("POST", "/v1/gate/decide", { body });
    assert.deepEqual([status, answer.outcome, answer.reason_code], [200, "HALT", "EARLIER_REJECTION"]);
    await lift(id);
    assert.equal((await service.call("POST", "/v1/gate/decide", { body })).body.outcome, "ABSTAIN");
  });

  test("a rejection is in force for 24 hours, or as long as the rule says", async () => {
    const spans = { do: 24 * HOUR, briefly: HOUR } as const;
    for (const [operation, span] of Object.entries(spans)) {
      const body = unique(operation);
      await rejected(body);
      service.clock.now += span - 60_000;
      assert.deepEqual(outcome(await submit(body)), REFUSED, operation);
      service.clock.now += 60_000;
      assert.deepEqual(outcome(await submit(body)), ASKED_AGAIN, operation);
    }
    for (const operation of ["never", "zero"]) {
      const body = unique(operation);
      const id = await rejected(body);
      assert.equal((await read(id)).rejection.holds_until, null);
      assert.deepEqual(outcome(await submit(body)), ASKED_AGAIN, operation);
    }
  });

  test("an expired or cancelled request is not a rejection", async () => {
    const expires = unique();
    const { body: late } = await submit(expires);
    service.clock.now += 2 * HOUR;
    assert.deepEqual(outcome(await submit(expires)), ASKED_AGAIN);
    const overdue = await read(late.id);
    assert.deepEqual([overdue.status, overdue.denied_by, overdue.rejection], ["expired", null, null]);
    const cancelled = unique();
    const { body: withdrawn } = await submit(cancelled);
    await service.call("POST", `/v1/actions/${withdrawn.id}/cancel`, { body: {} });
    assert.deepEqual(outcome(await submit(cancelled)), ASKED_AGAIN);
    assert.equal((await read(withdrawn.id)).denied_by, null);
  });

  test(
    "a rejection applies to a request whose conditions need most of the steps, and replays exactly",
    needs("replay"),
    async () => {
      const body = unique("do", { tool: "costly", params: { list: Array.from({ length: 90 }, (_, x) => x) } });
      const first = await submit(body);
      assert.equal(first.body.status, "pending_approval", JSON.stringify(first.body));
      await vote(first.body.id, false, WORDS);
      const { body: again } = await submit(body);
      assert.deepEqual([again.status, again.denied_by], ["denied", "earlier_rejection"], JSON.stringify(again));
      const replayed = { action_id: again.id };
      const { body: replay } = await service.call("POST", "/v1/replay", { key: service.admin, body: replayed });
      assert.equal(replay.equal, true, JSON.stringify(replay));
    },
  );

  test(
    "a rejection changes neither an allow nor a deny of the policies, and replays exactly",
    needs("replay"),
    async () => {
      const bodies = [unique("allowed", { tool: "later" }), unique("denied", { tool: "later" })];
      for (const body of bodies) {
        await rejected(body);
        const refused = await submit(body);
        assert.deepEqual(outcome(refused), REFUSED);
        const replayed = { action_id: refused.body.id };
        const { body: replay } = await service.call("POST", "/v1/replay", { key: service.admin, body: replayed });
        assert.equal(replay.equal, true, JSON.stringify(replay));
      }
      service.clock.now += LATER;
      const [allowed, denied] = await Promise.all(bodies.map((body) => submit(body)));
      assert.deepEqual(outcome(allowed as Answer), [200, "allowed", null, "POLICY_RULE"]);
      assert.deepEqual(outcome(denied as Answer), [200, "denied", "policy", "POLICY_RULE"]);
    },
  );

  test("a rejection survives a restart", async () => {
    const body = unique();
    await rejected(body);
    await service.restart();
    assert.deepEqual(outcome(await submit(body)), REFUSED);
  });
});

describe("denied_by", () => {
  test("denied_by is policy or stop, or null for an action that is not denied", needs("stop"), async () => {
    assert.deepEqual(outcome(await submit(unique("do", { tool: "no" }))), [200, "denied", "policy", "POLICY_RULE"]);
    const none = await submit(unique("do", { tool: "unheard-of" }));
    assert.deepEqual(outcome(none), [200, "denied", "policy", "NO_MATCHING_RULE"]);
    const allowed = await submit(unique("do", { tool: "pay" }));
    assert.deepEqual([allowed.body.denied_by, allowed.body.rejection], [null, null]);
    if (!hasFeature("stop")) return;
    const stop = await service.call("POST", "/v1/stop", { key: service.admin, body: { agent: "held", reason: "r" } });
    assert.equal(stop.status, 201, JSON.stringify(stop.body));
    const stopped = await submit(unique("do", { agent_id: "held" }));
    assert.deepEqual(outcome(stopped), [200, "denied", "stop", "STOPPED"]);
    assert.equal(stopped.body.rejection, null);
  });
});

describe("lifting a rejection", () => {
  test("lifting a rejection admits the same request again, and is a ledger entry", async () => {
    const body = unique();
    const id = await rejected(body);
    const { status, body: action } = await lift(id, bob, { reason: "a misunderstanding" });
    assert.deepEqual(
      [status, action.status, action.denied_by, action.rejection.holds_until],
      [200, "denied", "person", null],
    );
    const entry = (await entriesOf(id)).at(-1);
    assert.deepEqual(
      [entry.type, entry.verdict, entry.by.owner, entry.comment, entry.status, entry.rejection_until],
      ["approval", "rejection_lifted", person("bob"), "a misunderstanding", "denied", null],
    );
    assert.deepEqual(outcome(await submit(body)), ASKED_AGAIN);
  });

  test("only people who can vote on the action can lift its rejection", async () => {
    const submitter = await makeKey(service, {
      name: "both",
      scopes: ["actions:submit", "actions:read", "approvals:decide"],
      owner: "carol",
    });
    const body = unique();
    const { body: action } = await submit(body, submitter.key);
    await vote(action.id, false, WORDS);
    const codes = [
      await lift(action.id, submitter.key),
      await lift(action.id, service.agent),
      await lift("019346a0-0000-7000-8000-000000000000"),
    ].map(({ status, body: problem }) => [status, problem.code]);
    assert.deepEqual(codes, [
      [403, "SELF_APPROVAL"],
      [403, "INSUFFICIENT_SCOPE"],
      [404, "ACTION_NOT_FOUND"],
    ]);
    assert.deepEqual(outcome(await submit(body, submitter.key)), REFUSED);
  });

  test("lifting is rejected if no rejection is in force, and names the action whose rejection is", async () => {
    const body = unique();
    const id = await rejected(body);
    const refused = await submit(body);
    const other = await lift(refused.body.id);
    assert.deepEqual([other.status, other.body.code], [409, "REJECTION_NOT_HELD"]);
    assert.match(other.body.detail, new RegExp(`because of the rejection of ${id}`));
    assert.equal((await lift(id)).status, 200);
    assert.deepEqual([(await lift(id)).status, (await lift(id)).body.code], [409, "REJECTION_NOT_HELD"]);
    const { body: waiting } = await submit(unique());
    assert.equal((await lift(waiting.id)).body.code, "REJECTION_NOT_HELD");
  });
});

test("a rejection that exists only in the store has no effect, and the audit finds it", async () => {
  const body = unique();
  const { body: action } = await submit(body);
  await service.call("POST", `/v1/actions/${action.id}/cancel`, { body: {} });
  const table = raw.tables.find(({ name }) => name === "actions") as RawTable;
  const row = (await raw.rows(table)).find(({ id }) => id === action.id) as RawRow;
  const set = (until: number | null): Promise<void> => raw.set(table, row, "rejection_until", until);
  await set(Date.now() + service.clock.now + HOUR);
  const answer = await submit(body);
  assert.deepEqual([answer.status, answer.body.code], [409, "RECORD_ALTERED"]);
  assert.match((await auditStore(service.storage)).faults.join("\n"), /rejection_until/);
  await set(null);
  assert.deepEqual(outcome(await submit(body)), ASKED_AGAIN);
});
