/** An approver claims a pending request, hands it over, and releases it. A claim changes no decision. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { applyClaimEntry } from "../../../plugins/claims/state.ts";
import type { NoticeMessage } from "../../../src/contract/notifier.ts";
import { userState } from "../../../src/core.ts";
import { toRfc3339 } from "../../../src/plugin.ts";
import { serve } from "../../../src/serve/index.ts";
import { assentInProcessWithEnv } from "../../support/cli.ts";
import { testNotifier } from "../../support/notifier.ts";
import { addPerson, approve, makeKey, person, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: work
rules:
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2, expires_in: 8h } }
  - { name: leads, operation: lead, effect: require_approval, approval: { approvers: [{ group: leads }], expires_in: 8h } }
  - { name: soon, operation: soon, effect: require_approval, approval: { expires_in: 5m } }
  - { name: any, effect: require_approval, approval: { expires_in: 8h } }
`;
const MINUTE = 60_000;

const pigeon = testNotifier();
let service: Service;
const keys: Record<string, string> = {};
before(async () => {
  service = await startService({
    policy: POLICY,
    plugins: [pigeon.plugin],
    change(config) {
      config.approvals.trust_key_makers = true;
      config.groups = {
        leads: { members: [person("Ada")] },
        support: { members: [person("Linus")], agents: ["support-*"] },
        staff: { members: [person("Ada"), person("Bob"), person("Dora")] },
      };
      config.channels = { desk: { notifier: "pigeon", people: [{ owner: person("Ada"), to: "ada" }] } } as never;
    },
  });
  for (const name of ["Ada", "Bob", "Linus"])
    keys[name] = (await makeKey(service, { name, owner: person(name), preset: "approver" })).key;
  keys["agent"] = (
    await makeKey(service, { name: "bot", owner: person("Dora"), preset: "agent", agent_id: "bot" })
  ).key;
  keys["bound"] = (
    await makeKey(service, {
      name: "b",
      owner: person("Ada"),
      agent_id: "bot",
      scopes: ["approvals:decide", "actions:read"],
    })
  ).key;
  keys["Dora"] = (await makeKey(service, { name: "Dora", owner: person("Dora"), preset: "approver" })).key;
});
// Audits the store, too.
after(() => service.close());

let n = 0;
const submit = async (operation = "do"): Promise<string> =>
  (
    await service.call("POST", "/v1/actions", {
      key: keys["agent"]!,
      body: { agent_id: "bot", tool: "bank", operation, params: { n: ++n } },
    })
  ).body.id;
const claim = (id: string, name: string, body: object = {}): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/claim`, { key: keys[name] ?? name, body });
const release = (id: string, name: string): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/release-claim`, { key: keys[name]!, body: {} });
const list = async (key = service.admin): Promise<[action: string, holder: string][]> =>
  (await service.call("GET", "/v1/claims", { key })).body.claims.map(
    ({ action_id, holder }: Record<string, string>) => [action_id, holder],
  );
const idOf = (name: string): string => person(name).slice("user:".length);
const code = ({ status, body }: Answer): unknown[] => [status, body.code];

test("a claim is seen by everyone who sees the action, and does not block a vote", async () => {
  const id = await submit();
  const { body } = await claim(id, "Ada");
  assert.deepEqual([body.holder, body.claimed_by, body.action_id], [person("Ada"), person("Ada"), id]);
  assert.equal(Date.parse(body.until) - Date.parse(body.claimed_at), 15 * MINUTE);
  assert.deepEqual(await list(keys["Bob"]), [[id, person("Ada")]]);
  assert.deepEqual(await list(keys["Linus"]), [], "a limited member learns nothing");
  assert.deepEqual(code(await claim(id, "Linus")), [404, "ACTION_NOT_FOUND"]);
  const before_ = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
  assert.equal(before_.status, "pending_approval");
  await approve(service, id, keys["Bob"]);
  assert.deepEqual(await list(), [], "the action settled");
  assert.deepEqual(code(await claim(id, "Ada")), [409, "ACTION_NOT_PENDING"]);
});

test("only someone who can approve can claim, and only someone who can approve gets the claim", async () => {
  const id = await submit("lead");
  assert.deepEqual(code(await claim(id, "agent")), [403, "INSUFFICIENT_SCOPE"]);
  for (const name of ["bound", "Dora", "Bob"])
    assert.deepEqual(code(await claim(id, name)), [403, "APPROVER_NOT_ELIGIBLE"], name);
  for (const name of ["Bob", "Dora", "Linus"])
    assert.deepEqual(code(await claim(id, "Ada", { user_id: idOf(name) })), [403, "APPROVER_NOT_ELIGIBLE"], name);
  assert.deepEqual(code(await claim(id, "Ada", { user_id: "nobody" })), [422, "VALIDATION_FAILED"]);
  assert.deepEqual(await list(), []);
  const entries = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events;
  assert.equal(entries.length, 1, "a refused claim records nothing");
});

test("a claim can be handed over, taken over and released, and its entries name everyone", async () => {
  const id = await submit();
  const people = await service.call("GET", `/v1/actions/${id}/approvers?name=A`, { key: keys["Bob"]! });
  assert.deepEqual(
    people.body.users,
    [{ id: idOf("Ada"), name: "Ada" }],
    "Dora is behind the agent, Linus does not see it",
  );
  await claim(id, "Bob");
  const held = await claim(id, "Ada");
  assert.deepEqual(code(held), [409, "CLAIM_HELD"]);
  assert.match(held.body.detail, /^Bob claimed the action until/);
  assert.deepEqual(code(await release(id, "Ada")), [404, "CLAIM_NOT_FOUND"]);
  assert.equal((await claim(id, "Bob", { user_id: idOf("Ada") })).body.claimed_by, person("Bob"));
  await until("Ada is notified", () => pigeon.messages.some(({ kind }) => kind === "notice"));
  const notices = pigeon.messages.filter((message): message is NoticeMessage => message.kind === "notice");
  assert.deepEqual(
    notices.map(({ to, notice, link }) => [to, notice.title, link.endsWith(`#/approvals/${id}`)]),
    [["ada", "A request of bot was handed to you", true]],
  );
  assert.equal((await claim(id, "Bob", { take_over: true })).body.holder, person("Bob"));
  assert.equal((await release(id, "Bob")).status, 204);
  assert.deepEqual(code(await release(id, "Bob")), [404, "CLAIM_NOT_FOUND"]);
  const { events } = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body;
  assert.deepEqual(
    events.slice(1).map(({ entry: { type, data, by } }: any) => [type, data.change, data.holder, by.principal]),
    [
      ["claims:change", "claimed", person("Bob"), person("Bob")],
      ["claims:change", "handed_over", person("Ada"), person("Bob")],
      ["claims:change", "claimed", person("Bob"), person("Bob")],
      ["claims:change", "released", person("Bob"), person("Bob")],
    ],
  );
});

test("a claim ends by itself: at its time, at the deadline, and when its holder votes", async () => {
  const [id, soon, two] = [await submit(), await submit("soon"), await submit("two")];
  const first = (await claim(id, "Ada")).body;
  assert.deepEqual((await claim(id, "Ada")).body, first, "repeating it changes nothing");
  assert.equal(
    (await claim(soon, "Ada")).body.until,
    (await service.call("GET", `/v1/actions/${soon}`, { key: service.admin })).body.expires_at,
  );
  await claim(two, "Ada");
  await approve(service, two, keys["Ada"]);
  assert.deepEqual(await list(), [
    [soon, person("Ada")],
    [id, person("Ada")],
  ]);
  service.clock.now += 10 * MINUTE;
  assert.deepEqual(await list(), [[id, person("Ada")]]);
  assert.notEqual((await claim(id, "Ada")).body.until, first.until, "in the second half, repeating it extends it");
  service.clock.now += 16 * MINUTE;
  assert.deepEqual(await list(), []);
  assert.equal((await claim(id, "Bob")).body.holder, person("Bob"));
  for (let i = 0; i < 19; i++) await claim(await submit(), "Bob");
  assert.deepEqual(code(await claim(await submit(), "Bob")), [429, "TOO_MANY_CLAIMS"]);
});

test("entries of claims that contradict earlier ones are faults", () => {
  const entry = (data: object, more: object = {}): never =>
    ({
      type: "claims:change",
      at: "2026-01-01T00:00:00.000Z",
      action_id: "a",
      by: { principal: "user:1" },
      data: { change: "released", holder: "user:1", until: null, ...data },
      seq: 1,
      ...more,
    }) as never;
  const none = new Map();
  assert.throws(() => applyClaimEntry(none, entry({})), /no claim of a to release/);
  assert.throws(() => applyClaimEntry(none, entry({ change: "claimed" })), /has no end/);
  assert.throws(() => applyClaimEntry(none, entry({}, { by: null })), /names no action or no person/);
});

test("the command claims, hands over, lists and releases", async () => {
  const server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  const run = (name: string, ...args: string[]) =>
    assentInProcessWithEnv({ ASSENT_URL: server.url, ASSENT_API_KEY: keys[name] as string }, "claim", ...args);
  try {
    const id = await submit();
    assert.match((await run("Ada", id)).out, new RegExp(`^Ada is looking at ${id} until 20`));
    assert.match((await run("Bob", id)).err, /CLAIM_HELD/);
    assert.match((await run("Ada", id, "--to", "dora")).err, /no other user named "dora" can approve this action/);
    assert.match((await run("Ada", id, "--to", "Bob")).err, /TOO_MANY_CLAIMS/);
    assert.match((await run("Ada", "--list")).out, new RegExp(`Ada is looking at ${id}`));
    assert.deepEqual(await run("Ada", id, "--release"), { code: 0, out: "released\n", err: "" });
    assert.equal((await run("Ada")).code, 2);
    assert.match(
      (await run("Bob", id, "--to", "Ad")).err,
      new RegExp(`give the id of the user \\(Ada: ${idOf("Ada")}`),
    );
    assert.match((await run("Bob", id, "--to", "ada")).out, /^Ada is looking at/);
    // Another user takes the name, so it identifies no one.
    await addPerson(service, "A da", { name: "ADA", roles: [] });
    assert.match((await run("Bob", id, "--to", "Ada")).err, new RegExp(`Ada \\(${person("Ada")}\\): ${idOf("Ada")}`));
  } finally {
    await server.stop(0);
  }
});

test("claims that have ended leave room for others", async () => {
  service.clock.now += 16 * MINUTE;
  for (let i = 0; i < 20; i++) {
    const id = await submit(i === 0 ? "two" : "do");
    await claim(id, "Ada");
    await approve(service, id, keys["Ada"]);
  }
  assert.equal((await claim(await submit(), "Ada")).status, 200, "Ada voted on all 20");
});

test("claiming an action again and again is refused, and then everyone can still vote", async () => {
  service.clock.now += 16 * MINUTE;
  const id = await submit();
  let last: Answer | undefined;
  for (let i = 0; i < 101; i++) last = await claim(id, i % 2 === 0 ? "Ada" : "Bob", { take_over: true });
  assert.deepEqual(code(last!), [429, "TOO_MANY_CLAIMS"]);
  assert.equal((await release(id, "Bob")).status, 204, "the last holder can release it");
  await approve(service, id, keys["Ada"]);
});

test("nobody learns names of approvers of an action that they cannot hand over", async () => {
  const names = async (id: string, name: string): Promise<string[]> =>
    (await service.call("GET", `/v1/actions/${id}/approvers`, { key: keys[name]! })).body.users.map(
      ({ name: each }: { name: string }) => each,
    );
  const id = await submit();
  assert.deepEqual(
    (await names(id, "Bob")).some((each) => each.startsWith("Ada")),
    true,
  );
  for (const name of ["bound", "Dora"]) assert.deepEqual(await names(id, name), [], name);
  const two = await submit("two");
  await approve(service, two, keys["Bob"]);
  assert.deepEqual(await names(two, "Bob"), [], "Bob has voted");
  await approve(service, id, keys["Ada"]);
  assert.deepEqual(await names(id, "Bob"), [], "it is not pending");
});

test("a cursor that the list did not return is refused", async () => {
  const cursor = Buffer.from("claims:soon").toString("base64url");
  assert.deepEqual(code(await service.call("GET", `/v1/claims?cursor=${cursor}`, { key: service.admin })), [
    422,
    "INVALID_CURSOR",
  ]);
});

test("the claim of a user who is deactivated ends", async () => {
  service.clock.now += 16 * MINUTE;
  const id = await submit();
  assert.equal((await claim(id, "Bob")).status, 200);
  await service.runtime.host.ledger.transact((tx) => {
    const at = toRfc3339(tx.now);
    const user = { ...tx.state(userState).get(idOf("Bob"))!, ended_at: at };
    tx.record({ type: "user", v: 1, at, change: "ended", user, reason: null, confirmed_by: null, by: null });
    return Promise.resolve();
  });
  assert.deepEqual(await list(), []);
  assert.equal((await claim(id, "Ada")).body.holder, person("Ada"));
});
