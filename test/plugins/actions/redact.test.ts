/** Redacted parameters: every display and delivery of an action, searched for a secret. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { definePlugin, type Plugin, type ReviewRequest } from "../../../src/plugin.ts";
import { needs } from "../../support/features.ts";
import { testNotifier } from "../../support/notifier.ts";
import { makeKey, startService, type Service, person } from "../../support/service.ts";

const POLICY = `
policy: cards
rules:
  - { name: never, tool: pay, when: 'params.amount > 900', effect: deny, obligations: { redact: [params.card.number, params.items.secret] } }
  - { name: change, tool: pay, operation: change, effect: require_approval, approval: { editable: [params.card.number, params.amount], grants: { for: 8h, count: 5 } } }
  - name: pay
    tool: pay
    effect: require_approval
    approval:
      preview: "Charge {params.card.number}"
      grants: { for: 8h, count: 5 }
      reviewers: [{ name: scan }]
      notify: [desk]
    obligations: { set: { params.currency: EUR } }
limits:
  - { name: each card, tool: pay, per: params.card.number, count: 999, window: 24h }
`;
const SECRET = "4111-1111";

let service: Service;
let agent: string;
let approver: string;
const pigeon = testNotifier();
const reviewed: ReviewRequest[] = [];
const reviewer = definePlugin({
  name: "reviewer",
  setup: () => ({
    reviewers: [
      {
        name: "scan",
        version: "1",
        timeoutMs: 60_000,
        review: (request: ReviewRequest) => {
          reviewed.push(request);
          return Promise.resolve({ answer: "escalate", reason: "a person decides", version: "1" });
        },
      },
    ],
  }),
}) as Plugin;

before(async () => {
  service = await startService({
    policy: POLICY,
    plugins: [{ plugin: reviewer, options: {}, origin: "reviewer" }, pigeon.plugin],
    change: (config) => {
      config.approvals.trust_key_makers = true;
      config.channels = { desk: { notifier: "pigeon", people: [{ owner: person("bob") }] } };
    },
  });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  approver = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
});
// Audits the store, too.
after(() => service.close());

const submit = async (amount: number, operation = "charge"): Promise<any> => {
  const params = { amount, currency: "USD", card: { number: SECRET, month: 4 }, items: [{ secret: SECRET }] };
  const body = { agent_id: "bot", tool: "pay", operation, params };
  return (await service.call("POST", "/v1/actions", { key: agent, body })).body;
};

test(
  "no display or delivery contains a redacted value, and the key that runs the action receives it",
  needs("analytics", "coverage", "deliveries", "grants", "provenance", "replay", "reviewers", "suggestions"),
  async () => {
    const denied = await submit(901);
    assert.equal(denied.status, "denied");
    const earlier = await submit(100);
    const action = await submit(200);
    assert.deepEqual([action.params.card.number, action.params.items[0].secret], [SECRET, SECRET], "the submitter");
    const { message, reviewer } = {
      message: await pigeon.next(({ kind }) => kind === "approval_requested"),
      reviewer: reviewed[0],
    };
    assert.ok(reviewer !== undefined, "the reviewer answers before people are notified");
    const range = `since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z`;
    const displays: [method: string, path: string, key: string, body?: object][] = [
      ["GET", `/v1/actions/${action.id}`, approver],
      ["GET", `/v1/actions/${denied.id}`, service.admin],
      ["GET", "/v1/actions?limit=50", service.admin],
      ["GET", "/v1/actions?q=charge", service.admin],
      ["GET", "/v1/approvals", approver],
      ["GET", "/v1/approvals?sort=newest", approver],
      ["GET", `/v1/actions/${action.id}/events`, service.admin],
      ["GET", `/v1/actions/${action.id}/grant-suggestions`, approver],
      ["GET", `/v1/provenance/${action.decision_hash}/proof`, service.admin],
      ["GET", "/v1/deliveries", service.admin],
      ["GET", "/v1/analytics", service.admin],
      ["POST", "/v1/replay", service.admin, { action_id: action.id }],
      ["POST", "/v1/policies/suggest", service.admin, {}],
      ["POST", "/v1/approval-link", "", { token: "link" in message ? (message.link.split("#")[1] ?? "") : "" }],
      ["GET", `/v1/coverage/executions?${range}`, service.admin],
    ];
    const { request_hash } = action;
    const key = agent;
    await service.call("POST", `/v1/actions/${earlier.id}/cancel`, { key, body: {} });
    // After a restart, the set that this process read last can be empty.
    const { policies } = service.runtime.host;
    const latest = policies.latest.bind(policies);
    const none = await policies.byDigest(null);
    policies.latest = () => none ?? latest();
    for (const [method, path, key, body] of displays) {
      const answer = await service.call(method, path, { key: key || null, ...(body && { body }) });
      assert.ok(!JSON.stringify(answer.body).includes(SECRET), `${method} ${path}`);
      assert.equal(answer.status, 200, `${path}: ${JSON.stringify(answer.body)}`);
    }
    policies.latest = latest;
    assert.ok(!JSON.stringify([message, reviewer]).includes(SECRET), "messages and reviewers");
    const { body: shown } = await service.call("GET", `/v1/actions/${action.id}`, { key: approver });
    assert.deepEqual(shown.params.card, { number: "[redacted]", month: 4 });
    assert.deepEqual([shown.proposed.params.card.number, shown.preview], ["[redacted]", 'Charge "[redacted]"']);
    assert.equal(shown.request_hash, request_hash, "the hash covers the whole request");
    const { salt } = (await service.storage.action(action.id))!;
    for (const word of [SECRET, salt]) {
      const words = await service.call("GET", `/v1/actions?q=${word}`, { key: service.admin });
      assert.deepEqual(
        words.body.actions,
        [],
        "a search finds neither a redacted value nor the salt of the commitments",
      );
    }
    for (const word of ["[redacted]", "REDACTED", "acted]", ":[{"]) {
      const path = `/v1/actions?q=${encodeURIComponent(`charge ${word}`)}`;
      const { body } = await service.call("GET", path, { key: service.admin });
      assert.ok(JSON.stringify(body.actions).includes(action.id), `a search finds what is displayed: ${word}`);
    }
    const replayed = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: action.id } });
    assert.deepEqual(replayed.body.limits, [], "the usage of a limit that reads a redacted parameter");
    const vote = { token: shown.approval_token, approve: true };
    assert.equal(
      (await service.call("POST", `/v1/actions/${action.id}/approval`, { key: approver, body: vote })).status,
      200,
    );
    const started = await service.call("POST", `/v1/actions/${action.id}/start`, { key, body: { request_hash } });
    assert.equal(started.body.params.card.number, SECRET);
    const executions = await service.call("GET", `/v1/coverage/executions?${range}`, { key: service.admin });
    assert.equal(executions.body.executions[0].params.card.number, "[redacted]");
  },
);

/** Conditions that find out a redacted value. */
const GUESSES = [
  'params.card.number.startsWith("41")',
  'params["card"].number == "4111-1111"',
  "params.items.exists(i, i.secret == '4111-1111')",
  'params["ca" + "rd"].number == "4111-1111"',
  '[params].exists(p, p.card.number == "4111-1111")',
];

test("no one can find out a redacted value with a grant or an edit", needs("edits", "grants"), async () => {
  const { id } = await submit(300, "change");
  const read = (await service.call("GET", `/v1/actions/${id}`, { key: approver })).body;
  assert.deepEqual(read.approval_terms.editable, [{ path: "params.amount" }]);
  const token = read.approval_token;
  for (const scope of GUESSES) {
    const body = { token, approve: true, grant: { for: "1h", count: 1, scope } };
    const refused = await service.call("POST", `/v1/actions/${id}/approval`, { key: approver, body });
    assert.equal(refused.status, 422, scope);
    assert.match(refused.body.errors[0].detail, /it can read params\.\S+, which a policy redacts/);
  }
  const body = { token, changes: { "params.card.number": SECRET }, reason: "a guess" };
  const edited = await service.call("POST", `/v1/actions/${id}/edit`, { key: approver, body });
  assert.deepEqual([edited.status, edited.body.code], [403, "EDIT_NOT_ALLOWED"]);
  assert.doesNotMatch(edited.body.detail, /nothing was changed|same/);
});

test(
  "only a key that may activate policies can replay candidates that read a redacted value",
  needs("replay"),
  async () => {
    const { id } = await submit(400);
    const auditor = (await makeKey(service, { name: "auditor", owner: "cleo", preset: "auditor" })).key;
    const rule = { name: "guess", tool: "pay", effect: "deny" };
    const history = { per: "agent", window: "day", max: 9 };
    const candidates: object[] = [
      ...GUESSES.map((when) => ({ rules: [{ ...rule, when }] })),
      { let: { number: { cel: "params.card.number" } }, rules: [{ ...rule, when: 'number == "4"' }] },
      { rules: [rule], limits: [{ name: "each", tool: "pay", per: "params.card", count: 1, window: "day" }] },
      { history, rules: [{ ...rule, when: 'history.exists(h, h.params.card.number == "4")' }] },
      {
        rules: [
          { name: "low", tool: "pay", effect: "allow", obligations: { clamp: { "params.card.number": { max: 5 } } } },
        ],
      },
    ];
    const replay = (key: string, body: object) => service.call("POST", "/v1/replay", { key, body });
    for (const candidate of candidates)
      for (const range of [{ action_id: id }, { limit: 10 }]) {
        const body = { ...range, policy: { policy: "guess", ...candidate } };
        const refused = await replay(auditor, body);
        assert.deepEqual([refused.status, refused.body.code], [403, "INSUFFICIENT_SCOPE"], JSON.stringify(body));
        assert.match(refused.body.detail, /"guess" can read params\./);
      }
    const policy = (when: string): object => ({ policy: "guess", rules: [{ ...rule, when }] });
    const harmless = policy("params.amount > 1 && params.card.month == 4");
    assert.equal((await replay(auditor, { action_id: id, policy: harmless })).status, 200);
    assert.equal((await replay(service.admin, { action_id: id, policy: policy(GUESSES[0] as string) })).status, 200);
  },
);

test("a grant covers nothing once its scope reads a parameter that a policy redacts now", needs("grants"), async () => {
  const { id } = await submit(500);
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key: approver })).body;
  const grant = { for: "1h", count: 5, scope: "params.card.month == 4" };
  const body = { token, approve: true, grant };
  assert.equal((await service.call("POST", `/v1/actions/${id}/approval`, { key: approver, body })).status, 200);
  assert.equal((await submit(501)).status, "allowed");
  const rules = [{ name: "month", tool: "pay", effect: "allow", obligations: { redact: ["params.card.month"] } }];
  const policy = { policy: "months", rules };
  const activated = await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body: policy });
  assert.equal(activated.status, 201, JSON.stringify(activated.body));
  assert.equal((await submit(502)).status, "pending_approval");
});
