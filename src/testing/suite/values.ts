/** Cases for values, which the store must either return unchanged or reject. */
import assert from "./assert.ts";
import { StorageError } from "../../contract/storage.ts";
import {
  actionRow,
  agentRow,
  approvalRow,
  deliveryRow,
  idempotencyRow,
  limitUseRow,
  type DefineCase,
  documentRow,
} from "./rows.ts";

/**
 * Returns true if the error states that the caller's value is invalid. An error of any other kind would make all jobs
 * of the batch fail.
 */
const isInvalid = (error: unknown): boolean => error instanceof StorageError && error.kind === "invalid";

export function valueCases(test: DefineCase): void {
  const texts = [
    "",
    " ",
    "a\u0000b",
    "\u0000",
    "\u0001",
    "\u00011",
    "\u00012\u0000",
    "\u0000\u0001\u0000",
    "é",
    "e\u0301",
    "😀",
    "\ud83d\ude00x",
    "\ufeffbom",
    "\u202ertl",
    "'; drop table actions; --",
    '"quoted"',
    "100%_\\",
    "Ａ",
    "ß",
    "ﬃ",
    "\u2028",
    "\uffff",
  ];

  test("strings are returned with every character, including U+0000, and compared exactly", async ({
    storage,
    reopen,
  }) => {
    const rows = texts.map((text, n) =>
      actionRow(n, {
        id: `id ${text}`,
        tool: text,
        operation: `${text}.`,
        agent_id: `agent ${text}`,
        reason: text,
        request: text,
        submitted_by: text,
        rule: text,
      }),
    );
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertAction(row);
      for (const text of texts) await tx.putMeta(text, text);
    });
    const reopened = await reopen();
    for (const [n, text] of texts.entries()) {
      assert.deepEqual(await reopened.action(`id ${text}`), rows[n]);
      assert.deepEqual(
        await reopened.actions({ visibility: { key_id: text }, tool: text, agent_id: `agent ${text}`, limit: 99 }),
        [rows[n]],
      );
      assert.equal(await reopened.meta(text), text);
    }
  });

  test("case, spaces and look-alikes make strings different", async ({ storage }) => {
    const tools = ["stripe", "Stripe", "stripe ", " stripe", "stripe\u0000", "ｓtripe"];
    await storage.write(async (tx) => {
      for (const [n, tool] of tools.entries()) await tx.insertAction(actionRow(n, { tool }));
    });
    for (const [n, tool] of tools.entries()) {
      assert.deepEqual(
        (await storage.actions({ visibility: { all: true }, tool, limit: 9 })).map((row) => row.decision_seq),
        [n],
      );
    }
  });

  test("rows can have keys of the maximum length that the service permits", async ({ storage, reopen }) => {
    // Returns a string of characters with three bytes each, which does not compress well.
    const long = (length: number): string =>
      String.fromCodePoint(...Array.from({ length }, (_, i) => 0x4e00 + ((i * 7919) % 20_000)));
    const plain = (length: number): string =>
      Array.from({ length }, (_, i) => String.fromCodePoint(0x21 + ((i * i * 31 + i * 17) % 90))).join("");
    const name = long(256);
    const action = actionRow(1, { agent_id: name, tool: name, operation: name, submitted_by: plain(64) });
    const agent = agentRow(1, { id: name });
    const idempotency = idempotencyRow(plain(255), { route: plain(64) });
    const approval = approvalRow(action.id, `user:${long(100)}`);
    const { position, ...delivery } = deliveryRow(1, { destination: plain(2000) });
    const use = limitUseRow(1, { policy: plain(64), limit_name: plain(64), subject: plain(128) });
    await storage.write(async (tx) => {
      await tx.insertAction(action);
      await tx.insertAgent(agent);
      await tx.insertIdempotency(idempotency);
      await tx.insertApproval(approval);
      await tx.insertDelivery(delivery);
      await tx.insertLimitUse(use);
      await tx.putDocument(documentRow(name, { plugin: plain(64) }), null);
      await tx.putMeta(name, "a");
    });
    const reopened = await reopen();
    const visibility = { agent_id: name };
    assert.deepEqual(await reopened.actions({ visibility, tool: name, operation: name, limit: 9 }), [action]);
    assert.deepEqual(await reopened.agent(name), agent);
    const { key_id, route, idempotency_key } = idempotency;
    assert.deepEqual(await reopened.idempotency(key_id, route, idempotency_key), idempotency);
    assert.deepEqual(await reopened.approvals(action.id), [approval]);
    assert.deepEqual(await reopened.deliveries({ destination: delivery.destination, limit: 9 }), [
      { position, ...delivery },
    ]);
    assert.equal((await reopened.limitUsed(use.policy, use.limit_name, use.subject, 0)).count, 1);
    assert.equal((await reopened.documents({ plugin: plain(64), prefix: long(200), limit: 9 })).length, 1);
    assert.equal(await reopened.meta(name), "a");
  });

  test("a string that is not well-formed is rejected instead of altered", async ({ storage }) => {
    for (const text of ["\ud800", "x\udc00y", "\udc00\ud800"]) {
      await assert.rejects(
        storage.write((tx) => tx.insertAction(actionRow(1, { tool: text }))),
        isInvalid,
      );
    }
    assert.equal(await storage.action("action-1"), null);
  });

  test("integers up to 2^53 - 1 are exact, and all other numbers are rejected", async ({ storage }) => {
    const row = actionRow(1, {
      created_at: Number.MAX_SAFE_INTEGER,
      updated_at: 0,
      expires_at: 8.64e15,
      decision_seq: 2 ** 52,
    });
    await storage.write((tx) => tx.insertAction(row));
    assert.deepEqual(await storage.action("action-1"), row);
    for (const created_at of [1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      await assert.rejects(
        storage.write((tx) => tx.insertAction(actionRow(2, { created_at }))),
        isInvalid,
      );
    }
    assert.equal(await storage.action("action-2"), null);
  });
}
