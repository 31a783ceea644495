/** A governed function, against a real service: what runs, and everything that prevents it. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, mock, test } from "node:test";
import {
  ActionRefused,
  govern,
  Pending,
  type GovernedCallOptions,
  type GovernOptions,
} from "../../clients/typescript/index.ts";
import { needs } from "../support/features.ts";
import { boundKey, clientOf, breakConnection, createFaultyFetch, json, type Fault } from "../support/assent-client.ts";
import { startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

interface Refund {
  amount: number;
  currency?: string;
  to?: { name: string };
}

let service: Service;
let key: string;
let ran: Refund[];

const POLICY = `policy: payments
applies_to: { tools: ["stripe"] }
rules:
  - name: small
    operation: refund
    when: params.amount < 100
    effect: allow
  - name: forbidden
    operation: refund
    when: params.amount > 1000
    effect: deny
    reason: too much
  - name: large
    operation: refund
    effect: require_approval
`;

before(async () => {
  service = await startService({ policy: POLICY });
  key = await boundKey(service, "support-bot");
});
after(() => service.close());
beforeEach(() => {
  ran = [];
});

/** Each test uses other amounts, because open actions would be joined. */
let amounts = 100;
const small = (): Refund => ({ amount: (amounts++ % 90) + 1, to: { name: `small ${amounts}` } });
const large = (): Refund => ({ amount: 500, to: { name: `large ${amounts++}` } });

function governed(faults: readonly Fault[] = [], more: Partial<GovernOptions<Refund, string>> = {}) {
  const way = createFaultyFetch(service, faults);
  const refund = govern(
    (params: Refund) => {
      ran.push(params);
      return `refunded ${params.amount}`;
    },
    {
      tool: "stripe",
      operation: "refund",
      assent: clientOf(service, { apiKey: key, fetch: way.fetch, timeout: 5, retries: 1 }),
      ...more,
    },
  );
  return Object.assign(refund, { calls: way.calls });
}

const admin = () => clientOf(service, { apiKey: service.admin });

/** Calls until the action is pending, and returns the action and the call. */
async function waiting(params: Refund, how: GovernedCallOptions = {}, faults: readonly Fault[] = []) {
  const call = governed(faults)(params, { approvalTimeout: 60, ...how });
  let id = "";
  let over = false;
  call.finally(() => (over = true)).catch(() => {});
  await until("it waits for approval", async () => {
    if (over) await call;
    for await (const action of admin().approvals())
      if (JSON.stringify(action.params) === JSON.stringify(params)) id = action.id;
    return id !== "";
  });
  return { call, id };
}

describe("a call runs", () => {
  test("once if the response to its start is lost: it starts once", async () => {
    let lost = 0;
    const refund = governed([{ on: /\/start$/, after: (answer) => (lost++ === 0 ? breakConnection() : answer) }]);
    const params = small();
    assert.equal(await refund(params), `refunded ${params.amount}`);
    assert.equal(refund.calls.filter((call) => call.endsWith("/start")).length, 2);
    assert.deepEqual(ran, [params]);
    const [action] = (await admin().actionsPage({ limit: 1 })).actions;
    assert.equal(action?.status, "succeeded");
  });

  test("once for two concurrent calls whose first responses are lost", async () => {
    let lost = 0;
    const faults: Fault[] = [{ on: /\/start$/, after: (answer) => (lost++ < 2 ? breakConnection() : answer) }];
    const params = small();
    const calls = await Promise.allSettled([governed(faults)(params), governed(faults)(params)]);
    // Each may have come after the other was finished, and then has its own action.
    const begun = new Set((await admin().actionsPage({ limit: 2 })).actions.map(({ id, params: of }) => [id, of]));
    const same = [...begun].filter(([, of]) => JSON.stringify(of) === JSON.stringify(params));
    assert.equal(ran.length, same.length);
    assert.equal(calls.filter(({ status }) => status === "fulfilled").length, same.length);
  });

  test("if it is allowed: it starts, runs once with the decided arguments, and its result is reported", async () => {
    const params = small();
    const refund = governed([], { record: (value) => ({ said: value }), meta: { session: "s-1" } });
    assert.equal(await refund(params), `refunded ${params.amount}`);
    assert.deepEqual(ran, [params]);
    const [action] = (await admin().actionsPage({ limit: 1 })).actions;
    assert.equal(action?.status, "succeeded");
    assert.deepEqual(action?.result, { success: true, error: null, meta: { said: `refunded ${params.amount}` } });
    assert.deepEqual(action?.meta, { session: "s-1" });
    assert.equal(action?.agent_id, "support-bot");
  });

  test("if it is approved while it waits", async () => {
    const params = large();
    const { call, id } = await waiting(params);
    assert.deepEqual(ran, []);
    await admin().approve(id);
    assert.equal(await call, "refunded 500");
    assert.deepEqual(ran, [params]);
    assert.equal((await admin().action(id)).status, "succeeded");
  });

  test("and its error is reported and rethrown", async () => {
    const fails = govern(
      (_params: Refund): string => {
        throw new RangeError("no such customer \ud800");
      },
      { tool: "stripe", operation: "refund", assent: clientOf(service, { apiKey: key }) },
    );
    await assert.rejects(fails(small()), RangeError);
    const [action] = (await admin().actionsPage({ limit: 1 })).actions;
    assert.equal(action?.status, "failed");
    assert.equal(action?.result?.error, "RangeError: no such customer \ufffd");
  });

  test("but not if it is a generator, which would run later: it is recorded as not run", async () => {
    const amount = small();
    for (const body of [
      function* (): Generator<number> {
        yield ran.push(amount);
      },
      async function* (): AsyncGenerator<number> {
        yield await Promise.resolve(ran.push(amount));
      },
    ]) {
      const assent = clientOf(service, { apiKey: key });
      const stream = govern<Refund, unknown>(body, { tool: "stripe", operation: "refund", assent });
      await assert.rejects(stream(amount), (error) => error instanceof TypeError && /generator/.test(error.message));
      const { actions } = await assent.actionsPage({ limit: 1 });
      assert.equal(actions[0]?.status, "failed");
      assert.match(actions[0]?.result?.error ?? "", /not run/);
    }
    assert.deepEqual(ran, []);
  });

  test("and an error without text is reported and rethrown, too", async () => {
    for (const thrown of [undefined, Symbol("x"), Object.create(null) as object]) {
      const fails = govern(() => Promise.reject(thrown as Error), {
        tool: "stripe",
        operation: "refund",
        assent: clientOf(service, { apiKey: key }),
      });
      const params = small();
      assert.equal(await fails(params).catch((error: unknown) => error), thrown);
      const [action] = (await admin().actionsPage({ limit: 1 })).actions;
      assert.deepEqual([action?.status, action?.params], ["failed", params]);
    }
  });

  test("although its result cannot be reported, and the callback is called", async () => {
    const unreported: string[] = [];
    const refund = governed([{ on: /\/result$/, before: breakConnection }], {
      onUnreported: (_error, action) => unreported.push(action.id),
      record: () => {
        throw new Error("a mistake in record");
      },
    });
    const params = small();
    assert.equal(await refund(params), `refunded ${params.amount}`);
    assert.equal(unreported.length, 2);
  });

  test("and a report whose response is lost does not count as failed", async () => {
    let lost = false;
    const losing: Fault = {
      on: /\/result$/,
      after: (answer) => {
        if (lost) return answer;
        lost = true;
        return breakConnection();
      },
    };
    const unreported: unknown[] = [];
    await governed([losing], { onUnreported: (error) => unreported.push(error) })(small());
    assert.deepEqual(unreported, []);
    assert.ok(lost);
  });
});

describe("an approval that takes longer than the caller waits", () => {
  test("returns Pending, and the call runs once when it is resumed", async () => {
    const params = large();
    const outcome = await governed()(params, { approvalTimeout: 0 });
    assert.ok(outcome instanceof Pending);
    assert.match(outcome.message, /not refused.*exactly the same arguments/s);
    const still = await outcome.resume({ approvalTimeout: 0 });
    assert.ok(still instanceof Pending);
    assert.equal(still.action.id, outcome.action.id);
    await admin().approve(outcome.action.id);
    assert.deepEqual(ran, []);
    assert.equal(await outcome.resume(), "refunded 500");
    assert.deepEqual(ran, [params]);
  });

  test("a call after restarts of both sides joins the earlier request, and runs it", async () => {
    const params = large();
    const first = await governed([], { meta: { process: 1 } })(params, { approvalTimeout: 0 });
    assert.ok(first instanceof Pending);
    await service.restart();
    await admin().approve(first.action.id);
    await service.restart();
    assert.equal(await governed([], { meta: { process: 2 } })(params), "refunded 500");
    assert.equal((await admin().action(first.action.id)).status, "succeeded");
    assert.deepEqual(ran, [params]);
  });

  test("two identical concurrent calls wait for one approval, and one of them runs", async () => {
    const params = large();
    const { call, id } = await waiting(params);
    const other = governed()(params, { approvalTimeout: 60 });
    await admin().approve(id);
    const outcomes = await Promise.allSettled([call, other]);
    assert.deepEqual(ran, [params]);
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  });

  test("after it has run, the same call needs another approval", async () => {
    const params = large();
    const first = await governed()(params, { approvalTimeout: 0 });
    assert.ok(first instanceof Pending);
    await admin().approve(first.action.id);
    await governed()(params);
    const again = await governed()(params, { approvalTimeout: 0 });
    assert.ok(again instanceof Pending);
    assert.notEqual(again.action.id, first.action.id);
    assert.equal(ran.length, 1);
  });
});

describe("a call does not run if it is", () => {
  test("denied by policy", async () => {
    await assert.rejects(
      governed()({ amount: 5000 }),
      (error) =>
        error instanceof ActionRefused &&
        error.outcome === "denied" &&
        /denied by policy: too much/.test(error.message),
    );
    assert.deepEqual(ran, []);
  });

  test("rejected by a person while it waits", async () => {
    const { call, id } = await waiting(large());
    await admin().deny(id, { reason: "no" });
    await assert.rejects(
      call,
      (error) =>
        error instanceof ActionRefused &&
        error.outcome === "rejected" &&
        error.action.denied_by === "person" &&
        / was rejected by .+: no\. The same request is refused until /.test(error.message),
    );
    assert.deepEqual(ran, []);
  });

  test("rejected by a person before, with resume() and in another call, until an approver lifts it", async () => {
    const params = large();
    const pending = await governed()(params, { approvalTimeout: 0 });
    assert.ok(pending instanceof Pending);
    await admin().deny(pending.action.id, { reason: "use npm run ship instead" });
    for (const again of [() => pending.resume(), () => governed()(params, { approvalTimeout: 0 })])
      await assert.rejects(
        again,
        (error) =>
          error instanceof ActionRefused &&
          error.outcome === "rejected" &&
          error.action.denied_by === "earlier_rejection" &&
          error.action.rejection?.action_id === pending.action.id &&
          /rejected by .+: use npm run ship instead\./.test(error.message),
      );
    await admin().liftRejection(pending.action.id);
    const asked = await pending.resume({ approvalTimeout: 0 });
    assert.ok(asked instanceof Pending && asked.action.id !== pending.action.id);
    assert.deepEqual(ran, []);
  });

  test("stopped, and stopped between the approval and the start", needs("stop"), async () => {
    const params = large();
    const pending = await governed()(params, { approvalTimeout: 0 });
    assert.ok(pending instanceof Pending);
    await admin().approve(pending.action.id);
    const { body: stop } = await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "halt" } });
    const isStopped = (error: unknown): boolean =>
      error instanceof ActionRefused && error.outcome === "stopped" && /once the stop is lifted/.test(error.message);
    try {
      await assert.rejects(pending.resume(), isStopped);
      await assert.rejects(governed()(large()), isStopped);
    } finally {
      await service.call("POST", `/v1/stop/${stop.id}/lift`, { key: service.admin, body: {} });
    }
    assert.deepEqual(ran, []);
  });

  test("cancelled, and expired", async () => {
    const { call, id } = await waiting(large());
    await clientOf(service, { apiKey: key }).cancel(id);
    await assert.rejects(call, (error) => error instanceof ActionRefused && error.outcome === "cancelled");
    const late = await waiting(large());
    service.clock.now += 100 * 3_600_000;
    // A look at it marks it as expired, sooner than the service does by itself.
    await admin().action(late.id);
    await assert.rejects(
      late.call,
      (error) =>
        error instanceof ActionRefused && error.outcome === "expired" && /in time.*not refused/.test(error.message),
    );
    assert.deepEqual(ran, []);
  });

  test("approved, and denied by the current policy at its start", async () => {
    const params = large();
    const pending = await governed()(params, { approvalTimeout: 0 });
    assert.ok(pending instanceof Pending);
    await admin().approve(pending.action.id);
    const imported = await service.call("POST", "/v1/policies/import-yaml", {
      key: service.admin,
      raw: "policy: freeze\napplies_to: { tools: [stripe] }\nrules: [{ name: frozen, effect: deny, reason: frozen }]\n",
      headers: { "content-type": "application/yaml" },
    });
    assert.equal(imported.status, 200, JSON.stringify(imported.body));
    const [{ id }] = imported.body.policies;
    try {
      assert.equal((await service.call("POST", `/v1/policies/${id}/activate`, { key: service.admin })).status, 200);
      await assert.rejects(
        pending.resume(),
        (error) => error instanceof ActionRefused && error.action.status === "denied",
      );
    } finally {
      await service.call("POST", `/v1/policies/${id}/deactivate`, { key: service.admin });
    }
    assert.deepEqual(ran, []);
  });

  const BROKEN: [string, Omit<Fault, "on">][] = [
    ["cannot be reached", { before: breakConnection }],
    ["breaks off its answer", { after: breakConnection }],
    ["fails", { before: () => json({ code: "INTERNAL", detail: "fault" }, 500) }],
    ["does not know the key", { before: () => json({ code: "INVALID_CREDENTIAL", detail: "no" }, 401) }],
    ["refuses", { before: () => json({ code: "VALIDATION_FAILED", detail: "no" }, 422) }],
    ["answers a web page", { after: () => new Response("<p>welcome", { headers: { "content-type": "text/html" } }) }],
    ["answers no JSON", { after: () => new Response("{", { headers: { "content-type": "application/json" } }) }],
    ["answers nothing", { after: () => new Response("") }],
    ["answers no action", { after: () => json({ status: "executing" }) }],
    [
      "answers another action",
      { after: async (answer) => json({ ...(await answer.json()), id: "other", tool: "other" }) },
    ],
    [
      "answers a state that there is not",
      { after: async (answer) => json({ ...(await answer.json()), status: "sure" }) },
    ],
    ["does not answer", { after: () => new Promise(() => {}) }],
  ];
  const STEPS: [string, RegExp][] = [
    ["the submission", /^POST \/v1\/actions\?/],
    ["the start", /\/start$/],
  ];
  for (const [step, on] of STEPS)
    for (const [what, fault] of BROKEN)
      test(`the service ${what} at ${step}`, async () => {
        const way = createFaultyFetch(service, [{ on, ...fault }]);
        const assent = clientOf(service, { apiKey: key, fetch: way.fetch, timeout: 0.3, retries: 0 });
        await assert.rejects(governed([], { assent })(small(), { approvalTimeout: 0 }));
        assert.ok(
          way.calls.some((call) => on.test(call)),
          way.calls.join(),
        );
        assert.deepEqual(ran, []);
      });

  test("started without a response: the run of another call is not ended, and its own is recorded as not run", async () => {
    const params = small();
    const lost: Fault = { on: /\/start$/, after: breakConnection };
    await assert.rejects(governed([lost])(params), { code: "UNREACHABLE" });
    assert.deepEqual(ran, []);
    const [own] = (await admin().actionsPage({ limit: 1 })).actions;
    await until("it is recorded", async () => (await admin().action(own?.id ?? "")).status === "failed");

    const shared = await clientOf(service, { apiKey: key }).submit(
      { agent_id: "support-bot", tool: "stripe", operation: "refund", params: { ...params }, context: {} },
      { join: true },
    );
    // Another process with the same key starts it between this one's submission and its start.
    const taken: Fault = {
      on: /\/start$/,
      before: async () => {
        if ((await admin().action(shared.id)).status === "allowed")
          await clientOf(service, { apiKey: key }).start(shared.id);
        return breakConnection();
      },
    };
    const reported: number[] = [];
    const told: Fault = {
      on: /\/result$/,
      after: (answer) => {
        reported.push(answer.status);
        return answer;
      },
    };
    await assert.rejects(governed([taken, told])(params), { code: "UNREACHABLE" });
    await until("it has said that it did not run", () => Promise.resolve(reported.length > 0));
    assert.deepEqual([reported, (await admin().action(shared.id)).status], [[403], "executing"]);
    assert.deepEqual(ran, []);
  });

  test("pending when the service becomes unreachable", async () => {
    const unwaited = (request: Request) => {
      request.headers.delete("prefer");
      return service.runtime.fetch(request);
    };
    const { call } = await waiting(large(), { approvalTimeout: 1 }, [
      { on: /^POST \/v1\/actions\?/, before: unwaited },
      { on: /^GET \/v1\/actions\/[^?]*\?wait/, before: breakConnection },
    ]);
    await assert.rejects(call, { name: "ServiceUnavailable" });
    assert.deepEqual(ran, []);
  });

  test("pending when its caller leaves: it stays pending, and can be joined", async () => {
    const controller = new AbortController();
    const { call, id } = await waiting(large(), { signal: controller.signal });
    controller.abort(new Error("the caller has left"));
    await assert.rejects(call, { message: "the caller has left" });
    await admin().approve(id);
    assert.equal((await admin().action(id)).status, "approved");
    assert.deepEqual(ran, []);
  });

  test("starting when its caller leaves: it is recorded as not run", async () => {
    const controller = new AbortController();
    const leaving: Fault = {
      on: /\/start$/,
      after: (answer) => {
        controller.abort(new Error("the caller has left"));
        return answer;
      },
    };
    await assert.rejects(governed([leaving])(small(), { signal: controller.signal }), {
      message: "the caller has left",
    });
    const [action] = (await admin().actionsPage({ limit: 1 })).actions;
    assert.equal(action?.status, "failed");
    assert.match(action?.result?.error ?? "", /^not run/);
    assert.deepEqual(ran, []);
  });

  test("started by a process that was suspended before the response", async () => {
    const asleep: Fault = {
      on: /\/start$/,
      after: (answer) => {
        const now = Date.now();
        mock.method(Date, "now", () => now + 3_600_000);
        return answer;
      },
    };
    try {
      await assert.rejects(governed([asleep])(small()), { code: "TIMEOUT" });
    } finally {
      mock.restoreAll();
    }
    assert.deepEqual(ran, []);
  });
});

describe("arguments", () => {
  test("are those of the submission, even if the caller's objects change meanwhile", async () => {
    const params = { amount: 500, to: { name: `Ada ${amounts++}` } };
    const copy = structuredClone(params);
    const { call, id } = await waiting(params);
    params.amount = 1_000_000;
    params.to.name = "Mallory";
    await admin().approve(id);
    await call;
    assert.deepEqual(ran, [copy]);
  });

  test("a member is read once", async () => {
    let reads = 0;
    const params = {
      get amount() {
        return reads++ === 0 ? 5 : 1_000_000;
      },
    };
    await governed()(params);
    assert.deepEqual(ran, [{ amount: 5 }]);
    assert.equal(reads, 1);
  });

  test("that JSON would change are rejected before any request", async () => {
    class Money {
      amount = 5;
    }
    const circle: Record<string, unknown> = { amount: 5 };
    circle["self"] = circle;
    const values: unknown[] = [
      { amount: new Date() },
      { amount: Number.NaN },
      { amount: 5n },
      { amount: [undefined] },
      { amount: () => 5 },
      { amount: new Map() },
      { amount: 5, currency: "\ud800" },
      { amount: 5, "\ud800": 1 },
      { amount: Object.create({ amount: 5 }) as unknown },
      new Money(),
      circle,
      [5],
    ];
    const refund = governed();
    for (const value of values) await assert.rejects(refund(value as Refund), TypeError);
    assert.deepEqual([ran, refund.calls.filter((call) => call.startsWith("POST"))], [[], []]);
  });

  test("can contain a member named __proto__", async () => {
    const params = JSON.parse('{"amount":5,"__proto__":{"amount":1000000}}') as Refund;
    await governed()(params);
    assert.equal(JSON.stringify(ran), '[{"amount":5,"__proto__":{"amount":1000000}}]');
    assert.equal(Object.getPrototypeOf(ran[0]), Object.prototype);
  });

  test("another context makes another request", async () => {
    const params = large();
    const first = await governed([], { context: { ticket: 1 } })(params, { approvalTimeout: 0 });
    const second = await governed([], { context: () => ({ ticket: 2 }) })(params, { approvalTimeout: 0 });
    assert.ok(first instanceof Pending && second instanceof Pending);
    assert.notEqual(first.action.id, second.action.id);
  });
});
