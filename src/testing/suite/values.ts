/** Values come back as they went in, or are refused. */
import assert from "node:assert/strict";
import { StorageError } from "../../contract/storage.ts";
import { actionRow, type Case } from "./rows.ts";

/** The caller's own fault: any other kind would refuse everybody of its batch. */
const isInvalid = (error: unknown): boolean => error instanceof StorageError && error.kind === "invalid";

export function valueCases(test: Case): void {
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

  test("text keeps every character, U+0000 included, and compares exactly", async ({ storage, reopen }) => {
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
    const again = await reopen();
    for (const [n, text] of texts.entries()) {
      assert.deepEqual(await again.action(`id ${text}`), rows[n]);
      assert.deepEqual(
        await again.actions({ visibility: { key_id: text }, tool: text, agent_id: `agent ${text}`, limit: 99 }),
        [rows[n]],
      );
      assert.equal(await again.meta(text), text);
    }
  });

  test("case, spaces and look-alikes are different", async ({ storage }) => {
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

  test("text that is not well-formed is refused, not altered", async ({ storage }) => {
    for (const text of ["\ud800", "x\udc00y", "\udc00\ud800"]) {
      await assert.rejects(
        storage.write((tx) => tx.insertAction(actionRow(1, { tool: text }))),
        isInvalid,
      );
    }
    assert.equal(await storage.action("action-1"), null);
  });

  test("integers are exact up to 2^53 - 1, and anything else is refused", async ({ storage }) => {
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
