/** Untrusted policies are tested on a separate thread: their sender waits, and other callers do not. */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { backtest, type BacktestReader, readAllDecisions } from "../../../plugins/policies/backtest/backtest.ts";
import type { BacktestRange } from "../../../plugins/policies/backtest/report.ts";
import { runBacktest } from "../../../plugins/policies/backtest/run-backtest.ts";
import { Refusal } from "../../../src/contract/errors.ts";
import { StorageError } from "../../../src/contract/storage.ts";
import type { TrialCase, SerializedPolicySet } from "../../../src/contract/trials.ts";
import { emptyPolicySet } from "../../../src/domain/policy/compile/compile.ts";
import { decide } from "../../../src/domain/policy/decide/decide.ts";
import { withAssumedActivation } from "../../../src/domain/policy/decide/limit-facts.ts";
import { parseCandidatePolicies, buildCandidateSet } from "../../../src/policies/candidates.ts";
import {
  createTrialService,
  startTrialThread,
  type TrialOptions,
  type TrialService,
} from "../../../src/policies/trial.ts";
import { createLogger } from "../../../src/serve/log.ts";
import { needs } from "../../support/features.ts";
import { ALLOWED, ASKED, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

/** Tens of milliseconds for each decision. */
const SLOW = {
  policy: "slow",
  rules: [{ name: "all", tool: "slow", when: "params.a.all(x, params.a.all(y, x + y >= 0))", effect: "allow" }],
};
const SLOW_ACTION = {
  agent_id: "a",
  tool: "slow",
  operation: "o",
  params: { a: Array.from({ length: 150 }, (_, i) => i) },
  context: {},
};
const facts = { principal: { key_id: "k", name: "k", agent_id: null, owner: null } };
const slowCases = (count: number): TrialCase[] =>
  Array.from({ length: count }, () => ({ request: SLOW_ACTION, facts, now: 1 }));
/** Takes longer to parse than five decisions, but far less than the limits of a job, even on a busy machine. */
const HOSTILE = `a: [${"1,".repeat(50_000)}`;
const forever = new AbortController().signal;

let service: Service;
before(async () => {
  service = await startService();
  for (let i = 0; i < 5; i++) await service.call("POST", "/v1/actions", { body: i % 2 === 0 ? ALLOWED : ASKED });
});
after(() => service.close());

const admin = (path: string, body: object): Promise<Answer> => service.call("POST", path, { key: service.admin, body });

describe("while policies are tested, the service answers other requests", () => {
  /** Other requests get their responses before this one. */
  async function othersFirst(slow: Promise<Answer>): Promise<Answer> {
    const order: string[] = [];
    void slow.then(() => order.push("slow"));
    for (let i = 0; i < 5; i++) {
      assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
      await setImmediate();
      order.push("decided");
    }
    assert.deepEqual(
      order,
      Array.from({ length: 5 }, () => "decided"),
    );
    return slow;
  }

  it("during a dry run", async () => {
    const actions = Array.from({ length: 30 }, () => SLOW_ACTION);
    const { status, body } = await othersFirst(admin("/v1/policies/dry-run", { policy: SLOW, actions }));
    assert.deepEqual([status, body.results?.length], [200, 30], JSON.stringify(body).slice(0, 300));
  });

  it("during the parsing of a slow policy", async () => {
    const { status, body } = await othersFirst(admin("/v1/policies/import-yaml", { yaml: HOSTILE }));
    assert.deepEqual([status, body.code], [422, "POLICY_INVALID"]);
    const { code } = (await othersFirst(admin("/v1/policies/dry-run", { yaml: HOSTILE, actions: [SLOW_ACTION] }))).body;
    assert.equal(code, "POLICY_INVALID");
  });

  it("during a backtest", needs("replay"), async () => {
    await admin("/v1/policies?activate=true", {
      policy: "slow",
      rules: [{ name: "r", tool: "slow", effect: "allow" }],
    });
    const { context: _, ...action } = SLOW_ACTION;
    for (let i = 0; i < 30; i++) await service.call("POST", "/v1/actions", { body: action });
    const { status, body } = await othersFirst(admin("/v1/replay", { policy: SLOW, limit: 1000 }));
    assert.equal(status, 200);
    assert.ok(body.evaluated >= 35, JSON.stringify(body));
  });
});

describe("the thread", () => {
  const started: TrialService[] = [];
  after(() => Promise.all(started.map((trials) => trials.close())));
  const logged: string[] = [];

  function trialsWith(options: Partial<TrialOptions> = {}): TrialService {
    const log = createLogger("info", (lines) => logged.push(lines));
    const trials = createTrialService({ log, ...options });
    started.push(trials);
    return trials;
  }
  const slowSet = (trials: TrialService): Promise<SerializedPolicySet> =>
    trials.withCandidates(emptyPolicySet(), { policy: SLOW, pointer: "" }, false, forever);
  const refusal =
    (code: string) =>
    (error: unknown): boolean => {
      assert.ok(error instanceof Refusal, String(error));
      assert.equal(error.code, code, error.message);
      return true;
    };
  const range = (): BacktestRange => ({
    visibility: { all: true },
    since: 0,
    until: Date.now() + 1e9,
    limit: 1000,
    budgetMs: 600_000,
    examples: 3,
  });

  it("returns the same results as the functions themselves", async () => {
    const trials = trialsWith();
    const yaml =
      "policy: a\nrules:\n  - { name: r, tool: slow, effect: allow }\n---\npolicy: b\nrules:\n  - { name: r, tool: x, effect: deny }\n";
    assert.deepEqual(await trials.read({ yaml }, forever), parseCandidatePolicies({ yaml }));
    const { compiled } = await service.runtime.host.policies.current();
    for (const alone of [true, false]) {
      const set = await trials.withCandidates(compiled, { policy: SLOW, pointer: "" }, alone, forever);
      const direct = buildCandidateSet(compiled.document, parseCandidatePolicies({ policy: SLOW, pointer: "" }), alone);
      assert.deepEqual([set.digest, JSON.parse(set.text)], [direct.digest, direct.document]);
      const cases = [
        ...slowCases(1),
        ...[ALLOWED, ASKED].map((action) => ({ request: { ...action, context: {} }, facts, now: 1 })),
      ];
      assert.deepEqual(
        await trials.decide([compiled, set], cases, forever),
        [compiled, direct].map((each) =>
          cases.map(({ request, now }) => decide(each, request, withAssumedActivation(each, request, facts, now), now)),
        ),
      );
      assert.deepEqual(
        await runBacktest(trials, readAllDecisions(service.storage), set, range()),
        await backtest(readAllDecisions(service.storage), direct, range()),
      );
    }
    for (const sent of [
      { yaml: "policy: x\nrules: [}" },
      { policy: { policy: "x", rules: [{}] }, pointer: "/policy" },
    ]) {
      const direct = ((): unknown => {
        try {
          return parseCandidatePolicies(sent);
        } catch (error) {
          return error;
        }
      })() as Refusal;
      await assert.rejects(trials.read(sent, forever), (error: Refusal) => {
        assert.deepEqual([error.code, error.message, error.errors], [direct.code, direct.message, direct.errors]);
        return true;
      });
    }
  });

  it("the trial worker stops a job that exceeds its budget, and continues with the next", async () => {
    const trials = trialsWith({ budgetMs: 100 });
    const set = await slowSet(trialsWith());
    await assert.rejects(trials.decide([set], slowCases(100), forever), refusal("TRIAL_TOO_LONG"));
    // Has no step after which the budget is checked, because a busy machine may need longer for any step.
    assert.equal((await trials.decide([emptyPolicySet()], slowCases(0), forever)).length, 1);
  });

  it("is terminated if it does not respond: its current job is rejected, and the others are told to retry", async () => {
    const ended: number[] = [];
    const stuck =
      'import { parentPort } from "node:worker_threads";' +
      'parentPort.on("message", (m) => { if (m.kind === "job" && m.id === 2) { parentPort.postMessage({ kind: "at", id: 2 }); for (;;); } });';
    const trials = trialsWith({
      pingMs: 20,
      maxUnansweredPings: 50,
      startThread() {
        const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(stuck)}`));
        thread.on("exit", (code) => ended.push(code));
        return thread;
      },
    });
    const first = trials.read({ yaml: "a: 1" }, forever);
    const second = trials.read({ yaml: "a: 1" }, forever);
    await Promise.all([
      assert.rejects(first, refusal("TRIAL_LOST")),
      assert.rejects(second, refusal("TRIAL_TOO_LONG")),
    ]);
    await until("the thread has ended", () => ended.length === 1);
  });

  it("is replaced if it crashes: its current job is rejected, and nothing was decided", async () => {
    const threads: Worker[] = [];
    const trials = trialsWith({
      startThread() {
        threads.push(startTrialThread());
        return threads.at(-1) as Worker;
      },
    });
    const set = await slowSet(trials);
    const lost = [
      trials.decide([set], slowCases(1000), forever),
      runBacktest(trials, readAllDecisions(service.storage), set, range()),
      trials.read({ yaml: HOSTILE }, forever),
    ].map((job) => assert.rejects(job, refusal("TRIAL_LOST")));
    await setImmediate();
    await threads[0]?.terminate();
    await Promise.all(lost);
    const [[decision] = []] = await trials.decide([set], slowCases(1), forever);
    assert.deepEqual([decision?.policy, threads.length], ["slow", 2]);
    assert.match(logged.join(""), /thread for policy trials was lost/);
  });

  it("rejects jobs if it cannot start", async () => {
    const trials = trialsWith({
      startThread() {
        throw new Error("no threads here");
      },
    });
    await assert.rejects(trials.read({ yaml: "a: 1" }, forever), refusal("TRIAL_LOST"));
  });

  it("abandons jobs whose callers disconnected, and frees their place", async () => {
    const trials = trialsWith({ maxJobs: 1 });
    const set = await slowSet(trials);
    const leaving = new AbortController();
    const job = trials.decide([set], slowCases(1000), leaving.signal);
    await assert.rejects(trials.decide([set], [], forever), (error: Refusal) => {
      assert.deepEqual([error.code, error.headers["Retry-After"]], ["TOO_MANY_TRIALS", "1"]);
      return true;
    });
    leaving.abort();
    await assert.rejects(job, refusal("SHUTTING_DOWN"));
    assert.equal((await trials.decide([set], slowCases(1), forever)).length, 1);
    await assert.rejects(trials.decide([set], slowCases(1), leaving.signal), refusal("SHUTTING_DOWN"));
  });

  it("returns a partial backtest with a position to continue from, if its caller disconnected", async () => {
    const trials = trialsWith();
    const leaving = new AbortController();
    let counted = 0;
    const progress = (): void => leaving.abort();
    const { decisionSpan, decisions: page } = readAllDecisions(service.storage);
    const few: BacktestReader = {
      decisionSpan,
      // As if it took much longer.
      decisions: async (query) => {
        const rows = await page({ ...query, limit: 1 });
        counted++;
        return Array.from({ length: query.limit }, () => rows[0]).flatMap((row) => (row === undefined ? [] : [row]));
      },
    };
    const report = await runBacktest(trials, few, await slowSet(trials), {
      ...range(),
      limit: 1e6,
      signal: leaving.signal,
      progress,
    });
    assert.ok(report.next !== null && report.evaluated >= 200 && counted >= 1);
  });

  it("reports a storage failure to the caller of a backtest", async () => {
    const broken = new StorageError("unavailable", "the store is away");
    const trials = trialsWith();
    const reader = { ...readAllDecisions(service.storage), decisions: () => Promise.reject(broken) };
    await assert.rejects(runBacktest(trials, reader, await slowSet(trials), range()), broken);
    assert.equal((await trials.decide([emptyPolicySet()], slowCases(1), forever)).length, 1);
  });

  it("ends when it is idle, and when the service stops; a running job is then rejected", async () => {
    const ended: number[] = [];
    const startThread = (): Worker => {
      const thread = startTrialThread();
      thread.on("exit", (code) => ended.push(code));
      return thread;
    };
    const trials = trialsWith({ idleMs: 1, startThread });
    await trials.read({ yaml: "policy: a\nrules:\n  - { name: r, tool: x, effect: allow }\n" }, forever);
    await until("the idle thread has ended", () => ended.length === 1);
    const set = await slowSet(trials);
    const job = assert.rejects(trials.decide([set], slowCases(1000), forever), refusal("SHUTTING_DOWN"));
    await trials.close();
    await job;
    await assert.rejects(trials.decide([set], [], forever), refusal("SHUTTING_DOWN"));
  });
});
