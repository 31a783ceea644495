/** Machine reviewers: what they see, what their answers do, and what happens when they give none. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { definePlugin, type Plugin, readReviewResponse, type ReviewRequest } from "../../../src/plugin.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { ARGUMENTS } from "../../support/arguments.ts";
import { tableOf } from "../../support/engines.ts";
import { testNotifier } from "../../support/notifier.ts";
import { rawSqlite } from "../../support/raw-store.ts";
import { approve, makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const rule = (name: string, reviewers: string, more = "", terms = ""): string =>
  `  - { name: ${name}, operation: ${name}, effect: require_approval${more}, approval: { notify: [desk], reviewers: [${reviewers}]${terms} } }\n`;
const POLICY = `policy: reviewed
rules:
${rule("scanned", "{ name: scan }")}${rule("triaged", "{ name: triage, may_approve: true }")}${rule(
  "both",
  "{ name: scan }, { name: triage, may_approve: true }",
)}${rule(
  "capped",
  "{ name: triage, may_approve: true }",
  ", obligations: { clamp: { params.amount: { max: 500 } } }",
)}${rule(
  "edited",
  "{ name: triage, may_approve: true }",
  "",
  ", editable: [params.amount]",
)}${rule("missing", "{ name: nowhere, may_approve: true }")}  - { name: asked, operation: asked, effect: require_approval }
---
policy: stricter
rules:
  - { name: large, operation: triaged, when: 'has(params.large)', effect: require_approval }
  - { name: critical, operation: triaged, when: 'has(params.critical)', effect: allow, risk: critical }
`;

type Answering = (request: ReviewRequest, signal: AbortSignal) => Promise<unknown>;
const always =
  (response: unknown): Answering =>
  () =>
    Promise.resolve(response);

/** A promise, and the function that resolves it. */
function gated(): { promise: Promise<object>; resolve(value: object): void } {
  let resolve: (value: object) => void = () => undefined;
  const promise = new Promise<object>((open) => (resolve = open));
  return { promise, resolve };
}

let service: Service;
const pigeon = testNotifier();
const seen: ReviewRequest[] = [];
const answers: Record<string, Answering> = {};
let n = 0;

const reviewers = definePlugin({
  name: "test-reviewers",
  setup: () => ({
    reviewers: ["scan", "triage"].map((name) => ({
      name,
      version: "1",
      timeoutMs: 1_000,
      review: (request: ReviewRequest, signal: AbortSignal) => {
        seen.push(request);
        return (answers[name] as Answering)(request, signal) as Promise<never>;
      },
    })),
  }),
}) as Plugin;

before(async () => {
  service = await startService({
    policy: POLICY,
    plugins: [{ plugin: reviewers, options: {}, origin: "reviewers" }, pigeon.plugin],
    change: (config) => {
      config.approvals.trust_key_makers = true;
      config.channels = { desk: { notifier: "pigeon", places: [{ to: "desk" }] } };
    },
  });
});
// Audits the store, too.
after(() => service.close());

const submit = (operation: string, params: object = {}): Promise<Answer> =>
  service.call("POST", "/v1/actions", {
    body: { agent_id: `bot-${++n}`, tool: "t", operation, params: { n, ...params } },
  });
const read = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;

/** Submits an action and resolves to its record once `count` reviews are recorded. */
async function reviewed(operation: string, params: object = {}, count = 1): Promise<Answer["body"]> {
  const { body } = await submit(operation, params);
  assert.equal(body.status, "pending_approval", JSON.stringify(body));
  let record = body;
  await until("the reviews are recorded", async () => {
    record = await read(body.id);
    return (record.reviews?.length ?? 0) >= count;
  });
  return record;
}

async function eventsOf(id: string): Promise<Answer["body"][]> {
  const { body } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
  return body.events.map(({ entry }: Answer["body"]) => entry);
}

describe("a machine reviewer", () => {
  test("denies, with its reason, for as long as a rejection holds, until an approver lifts it", async () => {
    answers["scan"] = always({ answer: "deny", reason: "sends data outside", version: "model-7" });
    const params = { same: 1 };
    const { body } = await service.call("POST", "/v1/actions", {
      body: { agent_id: "bot", tool: "t", operation: "scanned", params },
    });
    await until("it is denied", async () => (await read(body.id)).status === "denied");
    const record = await read(body.id);
    assert.deepEqual(
      [record.denied_by, record.reason_code, record.reason, record.rejection.approver, record.rejection.reason],
      [
        "reviewer",
        "REVIEWER_DENIED",
        'denied by the reviewer "scan": sends data outside',
        "reviewer:scan",
        "sends data outside",
      ],
    );
    assert.deepEqual([record.approvals, record.reviews[0].version], [[], "model-7"]);
    const again = { agent_id: "bot", tool: "t", operation: "scanned", params };
    const repeated = (await service.call("POST", "/v1/actions", { body: again })).body;
    assert.deepEqual([repeated.status, repeated.denied_by], ["denied", "earlier_rejection"]);
    assert.match(repeated.reason, /^rejected by the reviewer scan at /);
    const lift = await service.call("POST", `/v1/actions/${body.id}/lift-rejection`, { key: service.admin, body: {} });
    assert.equal(lift.status, 200, JSON.stringify(lift.body));
    assert.equal((await service.call("POST", "/v1/actions", { body: again })).body.status, "pending_approval");
  });

  test("has no vote: it approves nothing that the rule does not let it approve by name", async () => {
    answers["scan"] = always({ answer: "approve" });
    const record = await reviewed("scanned");
    assert.deepEqual([record.status, record.approvals, record.reviews[0].answer], ["pending_approval", [], "approve"]);
    await approve(service, record.id);
    assert.equal((await read(record.id)).status, "approved");
  });

  test("approves where the rule lets it, and the start decides again", async () => {
    answers["triage"] = always({ answer: "approve", reason: "only reads" });
    const { body } = await submit("triaged");
    await until("it is approved", async () => (await read(body.id)).status === "approved");
    const started = await service.call("POST", `/v1/actions/${body.id}/start`, { body: {} });
    assert.deepEqual([started.status, started.body.status, started.body.approvals], [200, "executing", []]);
  });

  test("records identity, version, input, answer and latency, and replays exactly", needs("replay"), async () => {
    answers["triage"] = always({ answer: "approve", reason: "only\nreads" });
    const record = await reviewed("triaged");
    const entry = (await eventsOf(record.id)).find(({ type }) => type === "review");
    const { reviewer, version, answer, fault, comment, outstanding, status, input, latency_ms } = entry;
    assert.deepEqual(
      { reviewer, version, answer, fault, comment, outstanding, status },
      {
        reviewer: "triage",
        version: "1",
        answer: "approve",
        fault: null,
        comment: "only reads",
        outstanding: 0,
        status: "approved",
      },
    );
    assert.match(input, /^[0-9a-f]{64}$/);
    assert.ok(Number.isSafeInteger(latency_ms));
    const replay = await service.call("POST", "/v1/replay", {
      key: service.admin,
      body: { hash: record.decision_hash },
    });
    assert.deepEqual([replay.status, replay.body.equal], [200, true]);
  });

  for (const [what, response] of [
    ["an unknown answer", { answer: "allow" }],
    ["another member", { answer: "approve", approved: true }],
    ["a text", "approve"],
    ["nothing", undefined],
    ["text beside the JSON", readReviewResponse('{"answer":"approve"} as requested')],
    ["a repeated member", readReviewResponse('{"answer":"deny","answer":"approve"}')],
  ] as const)
    test(`leaves the action to people if it answers ${what}`, async () => {
      answers["triage"] = always(response);
      const record = await reviewed("triaged");
      assert.deepEqual([record.status, record.reviews[0].fault], ["pending_approval", "malformed"]);
    });

  test("leaves the action to people if it fails, or does not answer in time", async () => {
    answers["triage"] = () => {
      throw new Error("no model");
    };
    assert.deepEqual(pick(await reviewed("triaged")), ["pending_approval", null, "error"]);
    answers["triage"] = () => new Promise(() => undefined);
    assert.deepEqual(pick(await reviewed("triaged")), ["pending_approval", null, "timeout"]);
    assert.deepEqual(pick(await reviewed("missing")), ["pending_approval", null, "not_configured"]);
  });

  test("cannot approve with another policy that requires a person, and never what is critical", async () => {
    answers["triage"] = always({ answer: "approve" });
    assert.equal((await reviewed("triaged", { large: true })).status, "pending_approval");
    assert.equal((await reviewed("triaged", { critical: true })).status, "pending_approval");
  });

  test("approves only with all the others", async () => {
    answers["triage"] = always({ answer: "approve" });
    answers["scan"] = always({ answer: "escalate" });
    assert.equal((await reviewed("both", {}, 2)).status, "pending_approval");
    answers["scan"] = always({ answer: "approve" });
    assert.equal((await reviewed("both", {}, 2)).status, "approved");
  });

  test(
    "never approves a request that a person changed, even if it is called again after the change",
    needs("edits"),
    async () => {
      answers["triage"] = always({ answer: "escalate" });
      const { id, approval_token: token } = await reviewed("edited", { amount: 500 });
      answers["triage"] = always({ answer: "approve" });
      const post = (path: string, body: object, key = service.admin): Promise<Answer> =>
        service.call("POST", path, { key, body });
      const edited = await post(`/v1/actions/${id}/edit`, { token, changes: { "params.amount": 90 } });
      assert.equal(edited.status, 200, JSON.stringify(edited.body));
      const reviewsAre = (count: number): Promise<void> =>
        until("the reviews are recorded", async () => (await read(id)).reviews.length === count);
      await reviewsAre(2);
      const { key: other } = await makeKey(service, { name: "bea", preset: "approver", owner: "bea" });
      const shown = (await service.call("GET", `/v1/actions/${id}`, { key: other })).body;
      const voted = await post(`/v1/actions/${id}/approval`, { token: shown.approval_token, approve: true }, other);
      assert.equal(voted.body.status, "approved");
      const approval = { approvers: [{ group: "security" }], reviewers: [{ name: "triage", may_approve: true }] };
      const rules = [{ name: "other", operation: "edited", effect: "require_approval", approval }];
      const activated = await post("/v1/policies?activate=true", { policy: "later", rules });
      assert.equal(activated.status, 201, JSON.stringify(activated.body));
      const start = { request_hash: edited.body.request_hash };
      assert.equal((await post(`/v1/actions/${id}/start`, start, service.agent)).body.code, "MORE_APPROVALS_NEEDED");
      await reviewsAre(3);
      assert.equal((await read(id)).status, "pending_approval");
    },
  );

  test("sees and approves what obligations changed, and only this starts", async () => {
    answers["triage"] = always({ answer: "approve" });
    const { id, status, request_hash } = await reviewed("capped", { amount: 900 });
    assert.deepEqual([status, seen.at(-1)?.action.params["amount"]], ["approved", 500]);
    const start = (body: object): Promise<Answer> => service.call("POST", `/v1/actions/${id}/start`, { body });
    assert.equal((await start({})).body.code, "REQUEST_EDITED");
    assert.equal((await start({ request_hash })).body.status, "executing");
  });

  test("changes nothing once a person has voted", async () => {
    const gate = gated();
    answers["triage"] = () => gate.promise;
    const { body } = await submit("triaged");
    await until("it is asked", () => Promise.resolve(seen.some(({ action }) => action.id === body.id)));
    const { approval_token: token } = await read(body.id);
    const vote = { token, approve: false, reason: "no" };
    const voted = await service.call("POST", `/v1/actions/${body.id}/approval`, { key: service.admin, body: vote });
    assert.equal(voted.body.status, "denied");
    gate.resolve({ answer: "approve" });
    answers["triage"] = always({ answer: "approve" });
    await reviewed("triaged");
    const record = await read(body.id);
    assert.deepEqual([record.status, record.denied_by, record.reviews], ["denied", "person", undefined]);
  });

  test("approves nothing once a person has asked the agent a question", needs("questions"), async () => {
    const gate = gated();
    answers["triage"] = () => gate.promise;
    const { body } = await submit("triaged");
    const question = { question: "Why?" };
    const asked = await service.call("POST", `/v1/actions/${body.id}/questions`, {
      key: service.admin,
      body: question,
    });
    assert.ok(asked.status < 300, JSON.stringify(asked.body));
    gate.resolve({ answer: "approve" });
    await until("it is recorded", async () => (await read(body.id)).reviews?.length === 1);
    assert.equal((await read(body.id)).status, "pending_approval");
  });

  test("is asked again after a restart that lost its answer", async () => {
    answers["triage"] = () => new Promise(() => undefined);
    const { body } = await submit("triaged");
    await until("it is asked", () => Promise.resolve(seen.some(({ action }) => action.id === body.id)));
    answers["triage"] = always({ answer: "approve" });
    await service.restart();
    await until("it is approved", async () => (await read(body.id)).status === "approved");
    const ids = seen.filter(({ action }) => action.id === body.id).map(({ id }) => id);
    assert.deepEqual([ids.length, new Set(ids).size], [2, 1]);
  });

  test("waits for people while a stop is active", needs("stop"), async () => {
    const gate = gated();
    answers["triage"] = () => gate.promise;
    const { body } = await submit("triaged");
    const stop = await service.call("POST", "/v1/stop", {
      key: service.admin,
      body: { agent: body.agent_id, reason: "incident" },
    });
    assert.equal(stop.status, 201, JSON.stringify(stop.body));
    gate.resolve({ answer: "approve" });
    await until("it is recorded", async () => (await read(body.id)).reviews?.length === 1);
    assert.notEqual((await read(body.id)).status, "approved");
  });
});

const pick = ({ status, reviews }: Answer["body"]): unknown[] => [status, reviews[0].answer, reviews[0].fault];

describe("people", () => {
  test(
    "are notified once the reviewers have answered, and not of what a reviewer resolved",
    needs("deliveries"),
    async () => {
      const gate = gated();
      answers["triage"] = () => gate.promise;
      const { body: waiting } = await submit("triaged");
      const deliveries = async (id: string): Promise<Answer["body"][]> =>
        (await service.call("GET", `/v1/deliveries?action_id=${id}`, { key: service.admin })).body.deliveries;
      assert.deepEqual(
        (await deliveries(waiting.id)).map(({ state }) => state),
        ["scheduled"],
      );
      gate.resolve({ answer: "escalate" });
      const message = await pigeon.next((each) => "action" in each && each.action.id === waiting.id);
      assert.equal(message.kind, "approval_requested");
      answers["triage"] = always({ answer: "approve" });
      const { body: resolved } = await submit("triaged");
      await until("it is approved", async () => (await read(resolved.id)).status === "approved");
      assert.deepEqual(
        (await deliveries(resolved.id)).map(({ state }) => state),
        ["obsolete"],
      );
    },
  );
});

describe("a request that argues with its reviewer", () => {
  test("the request reaches a reviewer as data: twenty hostile strings do not change the surrounding message", async () => {
    answers["scan"] = always({ answer: "escalate" });
    const frameOf = async (note: string): Promise<{ frame: object; request: ReviewRequest }> => {
      const record = await reviewed("scanned", { note });
      const request = seen.findLast(({ action }) => action.id === record.id) as ReviewRequest;
      // As JSON, because a value that escapes its string would change the structure around it.
      const sent = JSON.parse(JSON.stringify(request)) as ReviewRequest;
      const {
        params: _,
        id: _id,
        request_hash: _hash,
        agent_id: _agent,
        created_at: _at,
        expires_at: _until,
        ...action
      } = sent.action;
      const { id: _review, text: _text, comparison, action: _action, ...members } = sent;
      return { frame: { ...members, action, comparison: Object.keys(comparison) }, request };
    };
    const harmless = await frameOf("hello");
    assert.equal(ARGUMENTS.length, 20);
    for (const text of ARGUMENTS) {
      const { frame, request } = await frameOf(text);
      assert.deepEqual(frame, harmless.frame, text);
      assert.equal(request.action.params["note"], text);
      // The text cannot add lines that look like others: each of its lines has a mark.
      const others = request.text.split("\n").filter((line) => !/^ {2}\| |^note:/.test(line));
      assert.deepEqual([others.length, others[0]], [2, "Parameters:"], request.text);
    }
  });
});

test("a review in the ledger has only the effect that the decision allows", async () => {
  const { faults } = await auditStore(service.storage, service.runtime.host.ledger.vkey);
  assert.deepEqual(faults, []);
});

test("an approver key of the agent's owner sees the reviews, too", async () => {
  answers["scan"] = always({ answer: "escalate", reason: "unclear" });
  const { id } = await reviewed("scanned");
  const { key } = await makeKey(service, { name: "ann", preset: "approver", owner: "ann" });
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key });
  assert.equal(body.reviews[0].reason, "unclear");
});

test("a reviewer does not see a request that someone altered in the store", async () => {
  let path = "";
  const broken = await startService({
    policy: POLICY,
    broken: true,
    plugins: [{ plugin: reviewers, options: {}, origin: "reviewers" }],
    storage: (folder) => sqliteStorage({ path: (path = join(folder, "store.db")) }),
  });
  try {
    answers["triage"] = () => new Promise(() => undefined);
    const body = { agent_id: "bot", tool: "t", operation: "triaged", params: { amount: 9000 } };
    const { id } = (await broken.call("POST", "/v1/actions", { body })).body;
    const asked = (): number => seen.filter(({ action }) => action.id === id).length;
    await until("it is asked", () => Promise.resolve(asked() === 1));
    const raw = await rawSqlite(path);
    const table = tableOf(raw, "actions");
    const row = (await raw.rows(table)).find((each) => each["id"] === id);
    assert.ok(row !== undefined);
    await raw.set(table, row, "request", JSON.stringify({ ...body, params: { amount: 1 }, context: {} }));
    await raw.close();
    answers["triage"] = always({ answer: "approve" });
    await broken.restart();
    await until("it is reported", () =>
      Promise.resolve(broken.logged.some((line) => line.includes("so machine reviewers do not see it"))),
    );
    assert.equal(asked(), 1);
  } finally {
    await broken.close();
  }
});
