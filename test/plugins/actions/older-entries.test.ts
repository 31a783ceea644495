/** What versions before this one wrote stays as it is, and is audited and evaluated again as before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeEntry, type DecisionEntry } from "../../../src/domain/entries.ts";
import { restoreFacts } from "../../../src/domain/past.ts";
import { commitDigest } from "../../../src/domain/request.ts";
import { toRfc3339 } from "../../../src/domain/time.ts";
import { defineCorePlugin } from "../../../src/core.ts";
import type { CoreHost } from "../../../src/contract/core-host.ts";
import { startService } from "../../support/service.ts";

const POLICY = `policy: spending
rules: [{ name: pay, tool: pay, effect: allow }]
limits: [{ name: hundred, tool: pay, sum: params.amount, at_most: 100, window: 1h }]
`;

test("a decision whose entry tells in plain what was used", async () => {
  const hosts: CoreHost[] = [];
  const past = defineCorePlugin({ name: "past", setup: (host) => (hosts.push(host), {}) });
  const service = await startService({
    policy: POLICY,
    plugins: [{ plugin: past, options: {}, origin: "test", core: true }],
  });
  try {
    const submit = async (amount: number): Promise<string> =>
      (
        await service.call("POST", "/v1/actions", {
          body: { agent_id: "a", tool: "pay", operation: "x", params: { amount } },
        })
      ).body.id as string;
    await submit(60);
    const row = await service.storage.action(await submit(50));
    assert.ok(row?.past != null);
    const [entry] = await service.storage.entries(row.decision_seq, row.decision_seq + 1);
    assert.ok(entry !== undefined);
    const { seq: _, ...body } = decodeEntry<DecisionEntry>(entry.bytes);
    const id = (hosts[0] as CoreHost).newId();
    await (hosts[0] as CoreHost).ledger.transact(async (tx) => {
      const older: DecisionEntry = {
        ...body,
        v: 2,
        action_id: id,
        at: toRfc3339(tx.now),
        commitment: commitDigest(row.salt, row.request_hash),
        facts: restoreFacts(body.facts, row.past),
      };
      const { seq, hash } = tx.record(older, row.submitted_by);
      const made = { id, past: null, decision_seq: seq, decision_hash: hash, created_at: tx.now, updated_at: tx.now };
      await tx.insertAction({ ...row, ...made });
    });
    const replayed = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } });
    assert.deepEqual(
      [replayed.body.equal, replayed.body.recorded.decision.reason_code, replayed.body.limits[0].used],
      [true, "LIMIT_EXCEEDED", 60_000_000],
    );
    const range = { policy_set: "current", limit: 1000 };
    const backtest = await service.call("POST", "/v1/replay", { key: service.admin, body: range });
    assert.deepEqual([backtest.body.evaluated, backtest.body.flipped], [3, 0]);
  } finally {
    // Audits the store, too.
    await service.close();
  }
});
