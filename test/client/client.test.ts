/** The client's calls, against a real service. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  type ActionRecord,
  createAssent,
  RequestRefused,
  ServiceUnavailable,
  Unauthorized,
  type Assent,
} from "../../clients/typescript/index.ts";
import { computeBackoff } from "../../clients/typescript/transport.ts";
import { clientOf, createFaultyFetch, json } from "../support/assent-client.ts";
import { hasFeature, needs } from "../support/features.ts";
import type { EntryRow } from "../../src/contract/storage.ts";
import { ALLOWED, ASKED, DENIED, makeKey, startService, type Service } from "../support/service.ts";

let service: Service;
let agent: Assent;
let admin: Assent;

/** Calls the service in this process: a socket leads to the same handler. */
const inside: typeof fetch = (input, init) => service.runtime.fetch(new Request(input, init));

before(async () => {
  service = await startService();
  agent = createAssent({ url: "http://assent.test", apiKey: service.agent, fetch: inside });
  admin = createAssent({ url: "http://assent.test", apiKey: service.admin, fetch: inside });
});
after(() => service.close());

describe("the life of an action", () => {
  test("allowed, started, reported", async () => {
    const action = await agent.submit(ALLOWED, { permit: true });
    assert.equal(action.status, "allowed");
    assert.equal((await agent.start(action.id, { permit: action.permit ?? undefined })).status, "executing");
    assert.equal((await agent.result(action.id, { success: true, meta: { refund: "re_1" } })).status, "succeeded");
  });

  test("wait returns the vote of a person", async () => {
    const { id, status } = await agent.submit(ASKED);
    assert.equal(status, "pending_approval");
    const [waited] = await Promise.all([agent.wait(id), admin.approve(id, { reason: "checked" })]);
    assert.equal(waited.status, "approved");
    assert.equal(waited.approvals[0]?.reason, "checked");
  });

  test("a plan is submitted once, and approved without what was struck out", needs("plans"), async () => {
    const requests = [{ ...ASKED, context: { n: 2 } }, ALLOWED, { ...ASKED, context: { n: 1 } }];
    const how = { ordered: true, stopOnFailure: true, idempotencyKey: "plan-1" };
    const plan = await agent.submitPlan(requests, how);
    assert.equal((await agent.submitPlan(requests, how)).id, plan.id);
    await assert.rejects(agent.submitPlan(requests.slice(1), how), { code: "IDEMPOTENCY_CONFLICT" });
    assert.deepEqual([plan.ordered, plan.stop_on_failure], [true, true]);
    await assert.rejects(agent.votePlan(plan.id, true), { code: "NO_TOKEN" });
    const voted = await admin.votePlan(plan.id, true, { strikes: [{ position: 1, reason: "not this" }] });
    assert.deepEqual(
      voted.actions.map(({ status }: ActionRecord) => status),
      ["denied", "allowed", "approved"],
    );
    assert.equal((await agent.plan(plan.id)).digest, voted.digest);
  });

  test("wait with a timeout returns the action as it is", async () => {
    const { id } = await agent.submit(ASKED);
    assert.equal((await agent.wait(id, { timeout: 0.2 })).status, "pending_approval");
    assert.equal((await agent.cancel(id, { reason: "not needed" })).status, "cancelled");
  });

  test("a session's token is requested once, and sent with each action", async () => {
    const { key } = await makeKey(service, { name: "proxy", scopes: ["actions:submit", "sessions:issue"] });
    const sent: [string, string | null][] = [];
    const client = createAssent({
      url: "http://assent.test",
      apiKey: key,
      session: "one",
      fetch: (input, init) => {
        const request = new Request(input, init);
        sent.push([new URL(request.url).pathname, request.headers.get("assent-session")]);
        return service.runtime.fetch(request);
      },
    });
    const { id } = await client.submit(ALLOWED);
    await client.submit({ ...ALLOWED, context: { again: true } });
    if (hasFeature("plans")) await client.submitPlan([ALLOWED]);
    const token = sent[1]?.[1] ?? "";
    assert.match(token, /^ses1_/);
    assert.deepEqual(sent, [
      ["/v1/agent-sessions", null],
      ["/v1/actions", token],
      ["/v1/actions", token],
      ...(hasFeature("plans") ? [["/v1/plans", token]] : []),
    ]);
    const decision = (await service.storage.entriesOfAction(id))[0] as EntryRow;
    assert.match(new TextDecoder().decode(decision.bytes), /"session":\{"id":"[0-9a-f]{32}","issued_by":"/);
    const other = createAssent({
      url: "http://assent.test",
      apiKey: service.agent,
      sessionToken: token,
      fetch: inside,
    });
    await assert.rejects(other.submit(ALLOWED), { code: "INVALID_SESSION_TOKEN" });
    // An agent cannot request one.
    const own = createAssent({ url: "http://assent.test", apiKey: service.agent, session: "mine", fetch: inside });
    await assert.rejects(own.submit(ALLOWED), { code: "INSUFFICIENT_SCOPE" });
  });

  test("a key without the scope to vote gets an error", async () => {
    const { id } = await agent.submit(ASKED);
    await assert.rejects(agent.deny(id), { name: "RequestRefused", code: "NO_TOKEN" });
    assert.equal((await admin.deny(id)).status, "denied");
  });

  test("a response about another action is rejected", async () => {
    const asked = { ...ALLOWED, params: { ...ALLOWED.params, nothing: undefined } };
    const answered = (lie: object): Promise<unknown> => {
      const after = async (answer: Response): Promise<Response> => json({ ...(await answer.json()), ...lie });
      const { fetch } = createFaultyFetch(service, [{ on: /^POST/, after }]);
      return clientOf(service, { fetch, retries: 0 }).submit(asked);
    };
    await answered({});
    const other = { ...ALLOWED.params, amount: 51 };
    for (const lie of [{ agent_id: "x" }, { tool: "x" }, { operation: "x" }, { params: other }, { context: { a: 1 } }])
      await assert.rejects(answered(lie), { name: "ServiceUnavailable", code: "UNREADABLE_ANSWER" });
  });

  test("a denied action cannot start", async () => {
    const { id, status } = await agent.submit(DENIED);
    assert.equal(status, "denied");
    await assert.rejects(
      agent.start(id, { permit: "x" }),
      (error) => error instanceof RequestRefused && error.status === 409 && error.code === "ACTION_NOT_STARTABLE",
    );
  });
});

describe("errors", () => {
  const other = (fetch: typeof globalThis.fetch, options = {}) =>
    createAssent({ url: "http://assent.test", apiKey: "none", retries: 0, fetch, ...options });

  test("an invalid key is Unauthorized", async () => {
    await assert.rejects(
      other(inside).submit(ALLOWED),
      (error) => error instanceof Unauthorized && error.status === 401 && error.code === "INVALID_CREDENTIAL",
    );
  });

  test("a rejected request names the fault", async () => {
    await assert.rejects(
      agent.submit({ ...ALLOWED, tool: "" }),
      (error) => error instanceof RequestRefused && error.problem.errors?.[0]?.pointer === "/tool",
    );
  });

  test("an unreachable service is ServiceUnavailable, and never an action", async () => {
    await assert.rejects(
      createAssent({ url: "http://127.0.0.1:1", apiKey: "none", retries: 1 }).action("x"),
      (error) => error instanceof ServiceUnavailable && error.status === 0 && error.code === "UNREACHABLE",
    );
  });

  test("a response that is not the service's is rejected", async () => {
    const answers: [string, string][] = [
      ["<h1>sign in</h1>", "text/html"],
      ["{", "application/json"],
      ["[]", "application/json"],
      ['{"status":"allowed"}', "application/json"],
      ['{"id":"another","status":"allowed"}', "application/json"],
    ];
    for (const [text, type] of answers)
      await assert.rejects(
        other(async () => new Response(text, { headers: { "content-type": type } })).action("one"),
        (error) => error instanceof ServiceUnavailable && error.code === "UNREADABLE_ANSWER",
        text,
      );
  });

  test("Retry-After is returned, and respected if it is short enough", async () => {
    const busyFor = (retryAfter: string) => {
      let sent = 0;
      const busy = other(
        async () => {
          sent++;
          return new Response('{"code":"OVERLOADED","detail":"busy"}', {
            status: 503,
            headers: { "content-type": "application/problem+json", "retry-after": retryAfter },
          });
        },
        { retries: 1 },
      );
      return { busy, sent: () => sent };
    };
    const short = busyFor("1");
    await assert.rejects(short.busy.action("x"), { code: "OVERLOADED", retryAfter: 1, name: "ServiceUnavailable" });
    assert.equal(short.sent(), 2);
    const long = busyFor("3600");
    await assert.rejects(long.busy.action("x"), { retryAfter: 3600 });
    assert.equal(long.sent(), 1);
    assert.ok(computeBackoff(0, 7) >= 7);
  });

  test("no retry of a start begins after the retry period", async () => {
    let sent = 0;
    const busy = other(
      async () => {
        sent++;
        return new Response('{"code":"OVERLOADED","detail":"busy"}', {
          status: 503,
          headers: { "content-type": "application/problem+json", "retry-after": "25" },
        });
      },
      { retries: 1 },
    );
    await assert.rejects(busy.start("x"), { code: "OVERLOADED", retryAfter: 25 });
    assert.equal(sent, 1);
  });

  test("only calls that are safe to repeat are retried", async () => {
    let sent = 0;
    const cut = other(
      async () => {
        sent++;
        throw new TypeError("the connection was cut");
      },
      { retries: 2 },
    );
    const attempts = async (work: () => Promise<unknown>): Promise<number> => {
      sent = 0;
      await assert.rejects(work(), { code: "UNREACHABLE" });
      return sent;
    };
    assert.equal(await attempts(() => cut.submit(ALLOWED)), 1);
    assert.equal(await attempts(() => cut.submit(ALLOWED, { idempotencyKey: "a" })), 3);
    assert.equal(await attempts(() => cut.submit(ALLOWED, { join: true })), 3);
    assert.equal(await attempts(() => cut.start("x")), 3);
    assert.equal(await attempts(() => cut.submitPlan([ALLOWED])), 1);
    assert.equal(await attempts(() => cut.submitPlan([ALLOWED], { idempotencyKey: "a" })), 3);
    assert.equal(await attempts(() => cut.votePlan("x", true, { token: "t" })), 1);
    assert.equal(await attempts(() => cut.cancel("x")), 1);
    assert.equal(await attempts(() => cut.permit("x")), 3);
    assert.equal(await attempts(() => cut.action("x")), 3);
  });

  test("a signal ends a call, and the pause before a retry", async () => {
    const controller = new AbortController();
    const hanging = other(
      (_, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener("abort", () => reject(init.signal?.reason as Error));
          controller.abort(new Error("enough"));
        }),
    );
    await assert.rejects(hanging.action("x", { signal: controller.signal }), { message: "enough" });
    await assert.rejects(agent.wait("x", { signal: AbortSignal.abort(new Error("before")) }), { message: "before" });
  });

  test("every call ends with its signal", async () => {
    const deaf = other(() => new Promise(() => {}));
    const calls: Record<string, (signal: AbortSignal) => Promise<unknown>> = {
      call: (signal) => deaf.call("GET", "/v1/me", undefined, { signal }),
      action: (signal) => deaf.action("x", { signal }),
      vote: (signal) => deaf.vote("x", true, { signal }),
      approve: (signal) => deaf.approve("x", { signal }),
      deny: (signal) => deaf.deny("x", { signal }),
      submit: (signal) => deaf.submit(ALLOWED, { signal }),
      wait: (signal) => deaf.wait("x", { signal }),
      permit: (signal) => deaf.permit("x", { signal }),
      start: (signal) => deaf.start("x", { signal }),
      result: (signal) => deaf.result("x", { success: true }, { signal }),
      inspect: (signal) => deaf.inspect("x", "output", { signal }),
      edit: (signal) => deaf.edit("x", { "params.n": 1 }, { signal }),
      submitPlan: (signal) => deaf.submitPlan([ALLOWED], { signal }),
      plan: (signal) => deaf.plan("x", { signal }),
      plans: (signal) => deaf.plans({}, { signal }).next(),
      cancelPlan: (signal) => deaf.cancelPlan("x", { signal }),
      votePlan: (signal) => deaf.votePlan("x", true, { signal }),
      ask: (signal) => deaf.ask("x", "why?", { signal }),
      answer: (signal) => deaf.answer("x", "because", { signal }),
      cancel: (signal) => deaf.cancel("x", { signal }),
      liftRejection: (signal) => deaf.liftRejection("x", { signal }),
      replay: (signal) => deaf.replay({}, { signal }),
      proof: (signal) => deaf.proof("x", { signal }),
      logKeys: (signal) => deaf.logKeys({ signal }),
      actions: (signal) => deaf.actions({}, { signal }).next(),
      approvals: (signal) => deaf.approvals({ signal }).next(),
      events: (signal) => deaf.events({ signal }).next(),
      agent: (signal) => deaf.agent({ signal }),
      actionsPage: (signal) => deaf.actionsPage({}, { signal }),
      gate: (signal) => deaf.gate(ALLOWED, { signal }),
      authority: (signal) => deaf.authority({}, { signal }),
      proposeRule: (signal) => deaf.proposeRule({}, { signal }),
    };
    assert.deepEqual(Object.keys(calls).sort(), Object.keys(deaf).sort(), "none is left out");
    for (const [name, call] of Object.entries(calls)) {
      const controller = new AbortController();
      const over = call(controller.signal);
      controller.abort(new Error(`left ${name}`));
      await assert.rejects(over, { message: `left ${name}` });
    }
  });

  test("a missing response times out", async () => {
    const hanging = other(
      (_, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener("abort", () => reject(init.signal?.reason as Error));
        }),
      { timeout: 0.05 },
    );
    await assert.rejects(hanging.submit(ALLOWED), { code: "TIMEOUT", name: "ServiceUnavailable" });
    const deaf = other(() => new Promise(() => {}), { timeout: 0.05 });
    await assert.rejects(deaf.submit(ALLOWED), { code: "TIMEOUT" });
  });

  test("an invalid URL is reported immediately", () => {
    assert.throws(() => createAssent({ url: "assent.example" }), /http or https URL/);
  });
});
