/** Tests for every adapter, with the real framework, a scripted model and a real service. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { GateOptions } from "../../clients/typescript/adapters/gate.ts";
import type { ActionRecord } from "../../clients/typescript/index.ts";
import { boundKey, clientOf, breakConnection, createFaultyFetch } from "../support/assent-client.ts";
import { makeKey, startService, type Service } from "../support/service.ts";
import { eventually } from "../support/wait.ts";

export interface Refund {
  amount: number;
  to: string;
}

/** One framework, whose model calls the tool `refund` once with the given arguments and then ends. */
export interface Driver<State> {
  /**
   * Starts a new run. Returns the serialized state of the run, and what the model received.
   * @param run the tool's function
   */
  begin(params: Refund, gate: GateOptions, run: (params: Refund) => string): Promise<{ state: State; told: string }>;
  /** Continues a run from its serialized state, and tells the framework that the call was approved. */
  resume?(state: State, gate: GateOptions, run: (params: Refund) => string): Promise<{ state: State; told: string }>;
}

const POLICY = `policy: payments
applies_to: { tools: ["stripe"] }
rules:
  - { name: small, operation: refund, when: params.amount < 100, effect: allow }
  - { name: forbidden, operation: refund, when: params.amount > 1000, effect: deny, reason: too much }
  - { name: large, operation: refund, effect: require_approval }
`;

export function adapterTests<State>(name: string, skip: string | false, driver: () => Promise<Driver<State>>): void {
  describe(name, { skip }, () => {
    let service: Service;
    let key: string;
    let approver: string;
    let drive: Driver<State>;
    let ran: Refund[] = [];
    let waiting: string[] = [];
    before(async () => {
      service = await startService({ policy: POLICY });
      key = await boundKey(service, "support-bot");
      approver = (await makeKey(service, { name: "alice", preset: "approver", owner: "alice" })).key;
      drive = await driver();
    });
    after(() => service?.close());
    beforeEach(() => {
      ran = [];
      waiting = [];
    });

    const run = (params: Refund): string => {
      ran.push(params);
      return `refunded ${params.amount}`;
    };
    /** As after a restart: only the service's store and the framework's state remain. */
    const gate = (more: Partial<GateOptions> = {}): GateOptions => ({
      tool: "stripe",
      assent: clientOf(service, { apiKey: key, retries: 0 }),
      approvalTimeout: 0,
      onPending: ({ id }) => waiting.push(id),
      ...more,
    });
    const admin = () => clientOf(service, { apiKey: service.admin });
    const alice = () => clientOf(service, { apiKey: approver });
    const isRejected = ({ params: { to } }: ActionRecord): boolean => to === "rejected";

    test("an allowed call runs once, and its result is reported", async () => {
      const params = { amount: 5, to: "allowed" };
      const { told } = await drive.begin(params, gate(), run);
      assert.deepEqual(ran, [params]);
      assert.match(told, /refunded 5/);
      const [action] = (await admin().actionsPage({ limit: 1 })).actions;
      assert.deepEqual([action?.status, action?.params], ["succeeded", params]);
    });

    test("what a call used is reported, and a usage that is invalid is not", async () => {
      for (const [amount, used] of [
        [8, { amount: 8 }],
        [9, undefined],
      ] as const) {
        const usage = (value: unknown, call: string) => ({
          amount: amount === 8 && JSON.stringify(value).includes("refunded 8") && call.endsWith("refund") ? 8 : -1,
        });
        await drive.begin({ amount, to: "usage" }, gate({ usage }), run);
        const [action] = (await admin().actionsPage({ limit: 1 })).actions;
        assert.equal(action?.status, "succeeded");
        const { body } = await service.call("GET", `/v1/actions/${action?.id}/events`, { key: service.admin });
        assert.deepEqual(body.events.at(-1).entry.usage, used);
      }
    });

    test("a call that throws has run, once, and is reported as failed", async () => {
      const params = { amount: 7, to: "throws" };
      const failing = (given: Refund): string => {
        ran.push(given);
        throw new Error("card declined");
      };
      // Some frameworks tell the model, and others the caller of the run.
      await drive.begin(params, gate(), failing).catch(() => {});
      assert.deepEqual(ran, [params]);
      const [action] = (await admin().actionsPage({ limit: 1 })).actions;
      assert.deepEqual([action?.status, action?.params], ["failed", params]);
      assert.match(action?.result?.error ?? "", /card declined/);
    });

    test("a denied call does not run, and the model gets the reason", async () => {
      const { told } = await drive.begin({ amount: 5000, to: "denied" }, gate(), run);
      assert.deepEqual(ran, []);
      assert.match(told, /too much/);
    });

    test("a call that the service cannot decide does not run", async () => {
      const away = clientOf(service, {
        apiKey: key,
        retries: 0,
        fetch: createFaultyFetch(service, [{ on: /POST/, before: breakConnection }]).fetch,
      });
      const { told } = await drive.begin({ amount: 6, to: "away" }, gate({ assent: away, agent: "support-bot" }), run);
      assert.deepEqual(ran, []);
      assert.match(told, /Not run/);
    });

    test("a pending call survives restarts, runs only after the service's approval, and then once", async () => {
      const params = { amount: 500, to: "waits" };
      let { state, told } = await drive.begin(params, gate(), run);
      assert.deepEqual(ran, []);
      const id = waiting[0] as string;
      if (drive.resume === undefined) {
        assert.match(told, /waits for approval/);
        await service.restart();
        assert.match((await drive.begin(params, gate(), run)).told, /waits for approval/);
        await admin().approve(id);
        ({ told } = await drive.begin(params, gate(), run));
      } else {
        await service.restart();
        // The framework says "approved", but no one has approved anything.
        ({ state } = await drive.resume(state, gate(), run));
        assert.deepEqual(ran, []);
        assert.deepEqual([...new Set(waiting)], [id]);
        ({ state, told } = await drive.begin(params, gate(), run));
        await admin().approve(id);
        ({ told } = await drive.resume(state, gate(), run));
      }
      assert.deepEqual(ran, [params], told);
      assert.match(told, /refunded 500/);
      assert.equal((await admin().action(id)).status, "succeeded");
    });

    test("a rejection reaches the model with its author and comment, during the wait and for a later call", async () => {
      const params = { amount: 503, to: "rejected" };
      const rejected = /rejected by alice: use the small refund instead/;
      let told: string;
      if (drive.resume === undefined) {
        const held = drive.begin(params, gate({ approvalTimeout: 60 }), run);
        const { id } = await eventually(
          async () => (await admin().actionsPage({ status: "pending_approval" })).actions.find(isRejected),
          () => "the call does not wait",
        );
        await alice().deny(id, { reason: "use the small\n\u202erefund instead" });
        ({ told } = await held);
      } else {
        const { state } = await drive.begin(params, gate(), run);
        await alice().deny(waiting[0] as string, { reason: "use the small\n\u202erefund instead" });
        ({ told } = await drive.resume(state, gate(), run));
      }
      assert.match(told, rejected);
      assert.match(told, /is refused until 20\d\d-/);
      waiting = [];
      assert.match((await drive.begin(params, gate(), run)).told, rejected);
      assert.deepEqual([ran, waiting], [[], []]);
      assert.deepEqual((await admin().actionsPage({ status: "pending_approval" })).actions.filter(isRejected), []);
    });

    test("an expired call can be requested again, and the model is told so", async () => {
      const params = { amount: 504, to: "late" };
      const { state } = await drive.begin(params, gate(), run);
      const id = waiting[0] as string;
      service.clock.now += 25 * 3_600_000;
      assert.equal((await admin().action(id)).status, "expired");
      waiting = [];
      await (drive.resume === undefined ? drive.begin(params, gate(), run) : drive.resume(state, gate(), run));
      assert.equal(waiting.length > 0 && waiting[0] !== id, true, "it asks anew");
      assert.deepEqual(ran, []);
    });

    test("an approval for one call runs no other call", async () => {
      await drive.begin({ amount: 501, to: "one" }, gate(), run);
      await admin().approve(waiting[0] as string);
      await drive.begin({ amount: 502, to: "other" }, gate(), run);
      assert.deepEqual(ran, []);
    });
  });
}
