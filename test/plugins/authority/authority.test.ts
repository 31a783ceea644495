/**
 * What an agent may do, the nearest alternative of a denial, and proposals that change nothing.
 * @needs mcp
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { annotateTools } from "../../../clients/mcp/decisions/authority-tools.ts";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import type { Storage } from "../../../src/contract/storage.ts";
import { makeKey, startService, type Service } from "../../support/service.ts";

const POLICY = `policy: refunds
let: { most: 500 }
rules:
  - { name: secret customer, tool: stripe, operation: refund, when: 'params.customer == "cus_secret"', effect: deny }
  - { name: small, tool: stripe, operation: refund, when: params.amount <= 100, effect: allow }
  - { name: large, tool: stripe, operation: refund, when: params.amount <= most && params.amount > 0, effect: require_approval }
  - { name: others, agent: other-bot, tool: vault, effect: allow }
  - { name: no deletion, tool: crm, operation: delete, effect: deny, reason: deletions are made by people }
  - { name: reads, tool: crm, operation: "read*", effect: allow }
limits:
  - { name: daily, tool: ads, per: agent, sum: params.spend, at_most: 50, window: day }
  - { name: of others, tool: ads, when: agent == "other-bot", count: 7, window: day }
---
policy: ads
rules:
  - { name: ads, tool: ads, effect: allow }
---
policy: bank
applies_to: { tools: [bank] }
rules:
  - { name: foreign, operation: move, when: 'agent == "other-bot" && params.amount <= 5000', effect: allow }
  - { name: alice, operation: move, when: 'principal.owner == "user:alice" && params.amount > 1', effect: deny, reason: alice has left }
  - { name: large, operation: pay, when: (params.amount < 100) == false, effect: allow }
  - { name: whole, operation: pay, when: int(params.amount) <= 7, effect: allow }
  - { name: free, operation: share, effect: allow }
limits:
  - { name: shared, sum: params.amount, at_most: 50, window: day }
---
policy: wire
rules:
  - { name: small, tool: wire, when: params.amount <= 10, effect: require_approval, approval: { rejection_holds: 1h } }
  - { name: keyed, tool: keyed, when: params.amount <= 10, effect: allow, effect_key: "keyed/{params.amount}" }
---
policy: counted
applies_to: { tools: [counted] }
history: { per: agent, include_denied: true, window: 1h, max: 10 }
rules:
  - { name: once, when: "params.amount <= 10 && history.size() == 0", effect: allow }
---
policy: shadow
mode: shadow
rules:
  - { name: hidden, tool: shadowed, effect: deny }
`;

let service: Service;
/** Called before the store is asked for a rejection. */
let failRejections = (): void => undefined;
let bot: string;
let reader: string;
const groups = { near: { members: [] as string[], tools: ["near"] } };
before(async () => {
  const storage = (folder: string): Storage => {
    const store = sqliteStorage({ path: join(folder, "assent.db") });
    const { rejectedAction } = store;
    store.rejectedAction = async (...args) => {
      failRejections();
      return rejectedAction.apply(store, args);
    };
    return store;
  };
  service = await startService({ policy: POLICY, storage, change: (config) => (config.groups = groups) });
  ({ key: bot } = await makeKey(service, {
    name: "bot",
    scopes: ["actions:submit", "actions:execute"],
    agent_id: "bot",
  }));
  ({ key: reader } = await makeKey(service, { name: "reader", scopes: ["policies:read", "actions:read"] }));
});
// Audits the store, too.
after(() => service.close());

const call = async (method: string, path: string, key: string, body?: object) =>
  service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
const submit = async (tool: string, operation: string, params: object) =>
  (await call("POST", "/v1/actions", bot, { agent_id: "bot", tool, operation, params })).body;

test("an agent sees its own rules with numbers, and neither conditions about people nor rules of other agents", async () => {
  const { status, body } = await call("GET", "/v1/authority", bot);
  assert.equal(status, 200);
  assert.deepEqual(
    body.tools.map(({ tool, operation, decision }: Record<string, string>) => `${tool} ${operation} ${decision}`),
    [
      "ads * depends",
      "bank move depends",
      "bank pay depends",
      "bank share allowed",
      "counted * depends",
      "crm delete denied",
      "crm read* allowed",
      "keyed * depends",
      "stripe refund depends",
      "wire * depends",
    ],
  );
  assert.deepEqual(body.tools[8].rules, [
    [
      { decision: "denied", when: "other conditions" },
      { decision: "allowed", when: "params.amount <= 100" },
      { decision: "asks", when: "params.amount <= 500 and params.amount > 0" },
    ],
  ]);
  assert.equal(body.tools[5].note, "deletions are made by people");
  assert.deepEqual(body.limits, [
    { tools: ["bank"], at_most: 50, sum: "params.amount", per: "all", window: "day", beyond: "denied" },
    { tools: ["ads"], at_most: 50, sum: "params.spend", per: "agent", window: "day", beyond: "denied" },
  ]);
  assert.doesNotMatch(JSON.stringify(body), /cus_secret|other-bot|vault|shadowed|secret customer/);
  assert.match(body.text, /stripe refund: if other conditions denied; if params\.amount <= 100 allowed/);
  const one = (await call("GET", "/v1/authority?tool=stripe&operation=capture", bot)).body;
  assert.equal(one.tools[0].decision, "denied");
  assert.equal((await call("GET", "/v1/authority?agent_id=other-bot", bot)).body.code, "AGENT_MISMATCH");
  assert.equal((await call("GET", "/v1/authority", reader)).status, 403);
});

test("a condition with other parts is not shown, and neither is the reason of its rule", async () => {
  const { body } = await call("GET", "/v1/authority?tool=bank", bot);
  assert.deepEqual(body.tools[0].rules, [
    [
      { decision: "allowed", when: "other conditions" },
      { decision: "denied", when: "other conditions" },
    ],
  ]);
  assert.deepEqual(
    body.tools[1].rules,
    [[0, 1].map(() => ({ decision: "allowed", when: "other conditions" }))],
    "a comparison within a comparison, or of a rounded number, is not a bound",
  );
  assert.doesNotMatch(JSON.stringify(body), /5000|alice/);
});

test("with a tool and no operation, the answer has the operations that rules name", async () => {
  const { body } = await call("GET", "/v1/authority?tool=crm", bot);
  assert.deepEqual(
    body.tools.map(({ tool, operation, decision }: Record<string, string>) => `${tool} ${operation} ${decision}`),
    ["crm delete denied", "crm read* allowed"],
  );
  assert.match(body.text, /Any other operation of "crm" is denied/);
  assert.equal((await call("GET", "/v1/authority?operation=delete", bot)).status, 422);
});

test("tools/list makes one request for each server, and says nothing that several rules with globs decide", async () => {
  let requests = 0;
  const calls = {
    authority: async ({ tool }: { tool?: string }) => {
      requests += 1;
      return (await call("GET", `/v1/authority?tool=${tool}`, bot)).body;
    },
  };
  const names = ["crm delete", "crm read_all", "crm write", "ads buy"].map((each) => each.split(" "));
  const tools = names.map(([tool = "", operation = ""]) => ({ item: { name: operation }, tool, operation }));
  const shown = (await annotateTools(calls, tools, AbortSignal.timeout(240_000))) as Record<string, any>[];
  assert.deepEqual(
    shown.map(({ _meta }) => _meta?.["assent/authority"].decision),
    ["denied", "allowed", "denied", "depends"],
  );
  assert.equal(requests, 2);
});

test("a large description lets other requests run between its operations", async () => {
  const rules = Array.from(
    { length: 150 },
    (_, i) => `  - { name: r${i}, tool: t${i}, when: params.n <= ${i}, effect: allow }`,
  );
  const large = await startService({ policy: `policy: large\nrules:\n${rules.join("\n")}\n` });
  try {
    let turns = 0;
    let isOpen = true;
    const countTurns = (): void => void (isOpen && setImmediate(() => ((turns += 1), countTurns())));
    countTurns();
    const { body } = await large.call("GET", "/v1/authority?agent_id=bot", { key: large.agent });
    isOpen = false;
    assert.equal(body.tools.length, 150);
    assert.ok(turns >= 150, `${turns} turns of the event loop`);
  } finally {
    await large.close();
  }
});

test("a denial names the nearest value that is not denied, and only one that the policies confirm", async () => {
  const large = await submit("stripe", "refund", { amount: 900, customer: "cus_1" });
  assert.equal(large.decision, "deny");
  const { text, ...alternative } = large.alternative;
  assert.deepEqual(alternative, { path: "params.amount", value: 100, decision: "allow" });
  assert.match(text, /params\.amount = 100/);
  assert.equal((await submit("stripe", "refund", { amount: 100, customer: "cus_1" })).decision, "allow");
  for (const denied of [
    await submit("stripe", "refund", { amount: 900, customer: "cus_secret" }),
    await submit("crm", "delete", { id: 900 }),
    await submit("stripe", "refund", { amount: "900" }),
  ]) {
    assert.equal(denied.decision, "deny");
    assert.equal(denied.alternative, undefined, denied.reason);
  }
  assert.equal((await submit("ads", "buy", { spend: 30 })).decision, "allow");
  const { alternative: rest } = await submit("ads", "buy", { spend: 30 });
  assert.deepEqual([rest.value, rest.decision], [20, "allow"]);
  assert.equal((await submit("bank", "share", { amount: 30 })).decision, "allow");
  const shared = await submit("bank", "share", { amount: 30 });
  assert.equal(shared.reason_code, "LIMIT_EXCEEDED");
  assert.equal(shared.alternative, undefined, "the rest of a shared sum reveals what others did");
  const preview = await call("POST", "/v1/gate/decide", bot, {
    agent_id: "bot",
    tool: "stripe",
    operation: "refund",
    params: { amount: 900 },
  });
  assert.equal(preview.body.alternative, undefined, "without params.customer, the first rule cannot be evaluated");
});

test("a denial is answered without an alternative if the service cannot read whether a person rejected it", async (t) => {
  let reads = 0;
  t.after(() => (failRejections = () => undefined));
  failRejections = () => {
    reads++;
    throw new Error("the store failed");
  };
  const denied = await submit("wire", "send", { amount: 11 });
  assert.deepEqual([denied.decision, denied.alternative, reads > 0], ["deny", undefined, true]);
});

test("an alternative that a person rejected, or that the denial or an effect key denies, is not offered", async () => {
  const first = await submit("wire", "send", { amount: 10 });
  assert.equal(first.status, "pending_approval");
  assert.equal((await submit("wire", "send", { amount: 11 })).alternative.value, 10);
  const { body: shown } = await call("GET", `/v1/actions/${first.id}`, service.admin);
  const rejected = await call("POST", `/v1/actions/${first.id}/approval`, service.admin, {
    approve: false,
    token: shown.approval_token,
  });
  assert.equal(rejected.status, 200, JSON.stringify(rejected.body));
  assert.equal((await submit("wire", "send", { amount: 11 })).alternative, undefined);
  assert.equal((await submit("counted", "send", { amount: 11 })).alternative, undefined);
  assert.equal((await submit("counted", "send", { amount: 10 })).decision, "deny");
  assert.equal((await submit("keyed", "send", { amount: 10 })).decision, "allow");
  assert.equal((await submit("keyed", "send", { amount: 11 })).alternative, undefined);
});

test("a proposal is shown to people with its evidence, applies nothing, and does not flood them", async () => {
  const terms = {
    tool: "stripe",
    operation: "refund",
    most: { path: "params.amount", value: 900 },
    reason: "often asked",
  };
  const made = await call("POST", "/v1/authority/proposals", bot, terms);
  assert.equal(made.status, 201);
  assert.equal((await call("POST", "/v1/authority/proposals", bot, terms)).status, 200);
  const [seen] = (await call("GET", "/v1/authority/proposals", reader)).body.proposals;
  assert.equal(seen.id, made.body.id);
  assert.deepEqual(seen.free, ["params.amount", "params.*", "context.*"]);
  assert.ok(seen.evidence.denied >= 2 && seen.evidence.allowed >= 1, JSON.stringify(seen.evidence));
  assert.match(seen.rule, /mode: shadow[\s\S]*agent: "bot"\n {4}when: params\.amount <= 900/);
  assert.equal((await submit("stripe", "refund", { amount: 900, customer: "cus_1" })).decision, "deny");
  assert.equal((await call("POST", "/v1/authority/proposals", bot, { ...terms, tool: "*" })).status, 422);
  for (let value = 1; value <= 4; value++)
    assert.equal(
      (await call("POST", "/v1/authority/proposals", bot, { ...terms, most: { path: "params.amount", value } })).status,
      201,
    );
  assert.equal(
    (await call("POST", "/v1/authority/proposals", bot, { ...terms, operation: "x" })).body.code,
    "TOO_MANY_PROPOSALS",
  );
  const path = `/v1/authority/proposals/${seen.id}/dismiss`;
  assert.equal((await call("POST", path, bot, {})).status, 403);
  const dismissed = await call("POST", path, service.admin, { reason: "no" });
  assert.equal(dismissed.body.comment, "no");
  assert.equal((await call("POST", "/v1/authority/proposals", bot, { ...terms, operation: "x" })).status, 201);
  await service.restart();
  assert.equal((await call("GET", "/v1/authority/proposals", reader)).body.proposals.length, 6);
});

test("a reader who is limited to certain tools neither sees nor dismisses proposals for others, which count hidden actions", async () => {
  const scopes = ["policies:read", "policies:write", "actions:read"];
  const limited = await makeKey(service, { name: "limited", scopes });
  groups.near.members.push(`key:${limited.id}`);
  await service.restart();
  const { key } = await makeKey(service, { name: "both", scopes: ["actions:submit"], agent_id: "bot" });
  const terms = { operation: "refund", reason: "often asked" };
  const [near, far] = [
    (await call("POST", "/v1/authority/proposals", key, { ...terms, tool: "near" })).body.id,
    (await call("POST", "/v1/authority/proposals", key, { ...terms, tool: "stripe" })).body.id,
  ];
  const { proposals } = (await call("GET", "/v1/authority/proposals", limited.key)).body;
  assert.deepEqual(
    proposals.map(({ id }: { id: string }) => id),
    [near],
  );
  const dismiss = async (id: string): Promise<number> =>
    (await call("POST", `/v1/authority/proposals/${id}/dismiss`, limited.key, {})).status;
  assert.deepEqual([await dismiss(far), await dismiss(near)], [404, 200]);
  await call("POST", `/v1/authority/proposals/${far}/dismiss`, service.admin, {});
});

test("a proposal is refused if its rule would be wider, or would not be a rule", async () => {
  const { key: any } = await makeKey(service, { name: "any", scopes: ["actions:submit"] });
  const { key: star } = await makeKey(service, { name: "star", scopes: ["actions:submit"], agent_id: "b*" });
  const terms = { tool: "stripe", operation: "refund", reason: "often asked" };
  for (const [key, changed] of [
    [any, { agent_id: "*" }],
    [any, { agent_id: "\uff0a" }],
    [star, {}],
    [any, { agent_id: "a", tool: "stri\u200bpe" }],
    [any, { agent_id: "a", most: { path: "params.in", value: 1 } }],
  ] as const)
    assert.equal((await call("POST", "/v1/authority/proposals", key, { ...terms, ...changed })).status, 422);
  for (let i = 1; i <= 5; i++)
    assert.equal((await call("POST", "/v1/authority/proposals", any, { ...terms, agent_id: `a${i}` })).status, 201);
  const sixth = await call("POST", "/v1/authority/proposals", any, { ...terms, agent_id: "a6" });
  assert.equal(sixth.body.code, "TOO_MANY_PROPOSALS", "the limit is for the key, whatever agents it names");
});

test("the evidence counts what the rule would cover and the key can see, and open proposals are listed first", async () => {
  const { key: second } = await makeKey(service, { name: "second", scopes: ["actions:submit"], agent_id: "bot" });
  const { key: blind } = await makeKey(service, { name: "blind", scopes: ["actions:submit"] });
  const terms = { tool: "Stripe", operation: "refund", most: { path: "params.amount", value: 100 }, reason: "often" };
  const { body: made } = await call("POST", "/v1/authority/proposals", second, terms);
  assert.deepEqual([made.evidence.allowed, made.evidence.denied], [1, 0]);
  const { body: unseen } = await call("POST", "/v1/authority/proposals", blind, { ...terms, agent_id: "bot" });
  assert.equal(unseen.evidence.compared, 0);
  const { id } = await submit("wire", "send", { amount: 3 });
  const { body: shown } = await call("GET", `/v1/actions/${id}`, service.admin);
  const vote = { approve: true, token: shown.approval_token };
  assert.equal((await call("POST", `/v1/actions/${id}/approval`, service.admin, vote)).status, 200);
  const approvedUpTo = async (value: number) => {
    const wire = { tool: "wire", operation: "send", most: { path: "params.amount", value }, reason: "often" };
    return (await call("POST", "/v1/authority/proposals", second, wire)).body.evidence.approved;
  };
  assert.equal(await approvedUpTo(5), 1);
  assert.equal((await call("POST", `/v1/actions/${id}/withdraw`, service.admin, {})).status, 200);
  assert.equal(await approvedUpTo(6), 0);
  await call("POST", `/v1/authority/proposals/${unseen.id}/dismiss`, service.admin, {});
  const listed = (await call("GET", "/v1/authority/proposals", reader)).body.proposals;
  const states = listed.map(({ dismissed_at }: { dismissed_at: string | null }) => dismissed_at !== null);
  assert.deepEqual(states, [...states].sort());
});
