/** The rejection of an erased action still denies the same request, of which only a digest remains. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eraseActionParts, eraseActions } from "../../../plugins/retention/erase.ts";
import { type ActionRequest, type CoreHost, encodeRequest, type LedgerTransaction } from "../../../src/core.ts";
import { auditStore, memoryStorage } from "../../../src/testing/index.ts";
import { SECRET } from "../../support/deployment.ts";
import { newKey } from "../../support/keys.ts";
import { makeKey, startService, type Answer, type Service, type ServiceOptions } from "../../support/service.ts";

const HOUR = 3_600_000;
const LOG_KEY = newKey();
const WORDS = "use npm run ship instead";

const outcome = ({ status, body }: Answer): unknown[] => [status, body.status, body.denied_by, body.reason_code];
const ASKED_AGAIN = [202, "pending_approval", null, "POLICY_RULE"];
const REFUSED = [200, "denied", "earlier_rejection", "EARLIER_REJECTION"];

describe("erasing a rejected action", () => {
  const CAPPED = `policy: work
rules:
  - { name: ask, tool: ask, effect: require_approval, obligations: { clamp: { params.amount: { max: 500 } } } }
`;
  const body = (amount: number): object => ({ agent_id: "bot", tool: "ask", operation: "o", params: { amount } });
  const meta = { host: "h" };
  type Erase = (service: Service, id: string) => Promise<unknown>;
  const eraseNow: Erase = (service, id) =>
    service.call("POST", `/v1/actions/${id}/erase`, { key: service.admin, body: { reason: "ticket 7" } });

  /** Rejects a request that the policies changed, and erases it. Calls `check` with two processes and the action's id. */
  async function afterErasure(erase: Erase, check: (processes: Service[], id: string) => Promise<void>): Promise<void> {
    const memory = memoryStorage();
    await memory.open();
    const shared = {
      ...memory,
      exclusive: false,
      open: () => Promise.resolve(),
      close: () => Promise.resolve(),
      lease: () => Promise.resolve(true),
    };
    const options: ServiceOptions = {
      policy: CAPPED,
      storage: () => shared,
      change(config) {
        config.secret = SECRET;
        config.ledger.key = LOG_KEY;
        config.ledger.origin = "rejections.test/log";
        config.approvals.trust_key_makers = true;
      },
    };
    const first = await startService(options);
    const second = await startService(options);
    try {
      const { body: action } = await first.call("POST", "/v1/actions", {
        key: first.admin,
        body: { ...body(700), meta },
      });
      const voter = (await makeKey(first, { name: "voter", preset: "approver", owner: "ada" })).key;
      const { approval_token: token } = (await first.call("GET", `/v1/actions/${action.id}`, { key: voter })).body;
      const vote = { key: voter, body: { token, approve: false, reason: WORDS } };
      assert.equal((await first.call("POST", `/v1/actions/${action.id}/approval`, vote)).status, 200);
      await erase(first, action.id);
      await check([first, second], action.id);
    } finally {
      await second.close();
      await first.close();
    }
  }
  const submitTo = (process: Service, amount: number, { admin: key }: Service): Promise<Answer> =>
    process.call("POST", "/v1/actions", { key, body: body(amount) });

  const eraseInLedger =
    (work: (host: CoreHost, tx: LedgerTransaction, id: string) => Promise<unknown>): Erase =>
    ({ runtime: { host } }, id) =>
      host.ledger.transact((tx) => work(host, tx, id));
  const erasures: Record<string, Erase> = {
    "on request": eraseNow,
    "by retention": eraseInLedger((host, tx, id) =>
      eraseActions(host, tx, [id], { cause: "retention", reason: "90 days", by: null }),
    ),
    "of a part and then of the rest": async (service, id) => {
      await eraseInLedger((host, tx) => eraseActionParts(host, tx, [id], "meta", "30 days"))(service, id);
      await eraseNow(service, id);
    },
  };
  for (const [name, erase] of Object.entries(erasures))
    test(`its rejection still denies the submitted and the changed request, in each process, after an erasure ${name}`, () =>
      afterErasure(erase, async (processes, id) => {
        const [first = assert.fail()] = processes;
        const row = await first.storage.action(id);
        assert.deepEqual([row?.request, row?.effective], ["", null]);
        for (const process of processes)
          for (const amount of [700, 500]) {
            const again = await submitTo(process, amount, first);
            assert.deepEqual(outcome(again), REFUSED);
            assert.deepEqual([again.body.rejection.action_id, again.body.rejection.reason], [id, WORDS]);
          }
        assert.deepEqual(outcome(await submitTo(first, 400, first)), ASKED_AGAIN);
      }));

  test("its rejection can be lifted, which removes what remained of the request", () =>
    afterErasure(eraseNow, async ([first, second], id) => {
      assert.ok(first !== undefined && second !== undefined);
      const before = await first.storage.action(id);
      const hash = encodeRequest({ ...body(700), context: {} } as ActionRequest).hash;
      assert.notEqual(before?.request_hash, hash);
      const key = (await makeKey(first, { name: "lifter", preset: "approver", owner: "bob" })).key;
      const { status, body: lifted } = await second.call("POST", `/v1/actions/${id}/lift-rejection`, { key, body: {} });
      assert.deepEqual([status, lifted.rejection.holds_until], [200, null]);
      const { request_hash, effective_hash, salt } = (await first.storage.action(id)) ?? {};
      assert.deepEqual([request_hash, effective_hash, salt], ["", null, ""]);
      assert.deepEqual(outcome(await submitTo(first, 700, first)), ASKED_AGAIN);
    }));

  test("a request that is erased while no rejection of it is in force leaves no digest", () =>
    afterErasure(
      async (service, id) => {
        service.clock.now += 25 * HOUR;
        await eraseNow(service, id);
      },
      async ([first], id) => assert.deepEqual((await first?.storage.action(id))?.request_hash, ""),
    ));

  test("a digest that someone changed in the store is found by the audit", () =>
    afterErasure(eraseNow, async ([first = assert.fail()], id) => {
      const { status, updated_at, request_hash, salt } = (await first.storage.action(id)) ?? assert.fail();
      const change = (hash: string) =>
        first.storage.write((tx) => tx.updateAction(id, { status }, { status, updated_at, request_hash: hash }));
      await change(salt);
      assert.match((await auditStore(first.storage)).faults.join("\n"), /its request_hash, effective_hash and salt/);
      await change(request_hash);
    }));
});
