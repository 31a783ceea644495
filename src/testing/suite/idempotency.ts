/** Cases for idempotency keys. */
import assert from "./assert.ts";
import { idempotencyRow, BASE_TIME, type DefineCase, isStorageError } from "./rows.ts";

export function idempotencyCases(test: DefineCase): void {
  test("an idempotency key is found by the combination of API key, route and value", async ({ storage, reopen }) => {
    const rows = [
      idempotencyRow("a"),
      idempotencyRow("a", { key_id: "key-2", resource_id: "other" }),
      idempotencyRow("a", { route: "POST /v1/policies", resource_id: "policy" }),
      idempotencyRow("c", { key_id: "x", route: "ab", resource_id: "left" }),
      idempotencyRow("bc", { key_id: "x", route: "a", resource_id: "right" }),
    ];
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertIdempotency(row);
      assert.deepEqual(await tx.idempotency("key-1", "POST /v1/actions", "a"), rows[0]);
    });
    const reopened = await reopen();
    for (const row of rows)
      assert.deepEqual(await reopened.idempotency(row.key_id, row.route, row.idempotency_key), row);
    const absent = { key_id: "key-1", route: "ab", idempotency_key: "c" };
    const there = await reopened.idempotencies([absent, ...rows]);
    assert.equal(there.length, rows.length);
    for (const row of rows)
      assert.deepEqual(
        there.find(({ resource_id }) => resource_id === row.resource_id),
        row,
      );
    assert.deepEqual(await reopened.idempotencies([absent]), []);
    assert.deepEqual(await reopened.idempotencies([]), []);
    assert.equal(await reopened.idempotency("key-1", "POST /v1/actions", "A"), null);
    assert.equal(await reopened.idempotency("key-3", "POST /v1/actions", "a"), null);
    assert.equal(await reopened.idempotency("key-1", "POST /v1/agents", "a"), null);
    await assert.rejects(
      reopened.write((tx) => tx.insertIdempotency(idempotencyRow("a", { resource_id: "stolen" }))),
      isStorageError,
    );
    assert.deepEqual(await reopened.idempotency("key-1", "POST /v1/actions", "a"), rows[0]);
  });

  test("idempotency keys are listed by age in pages, and deleted individually", async ({ storage, reopen }) => {
    const rows = [
      idempotencyRow("z", { created_at: BASE_TIME }),
      idempotencyRow("b", { created_at: BASE_TIME + 1, key_id: "key-1" }),
      idempotencyRow("a", { created_at: BASE_TIME + 1, key_id: "key-2" }),
      idempotencyRow("Z", { created_at: BASE_TIME + 2 }),
      idempotencyRow("a", { created_at: BASE_TIME + 2 }),
      idempotencyRow("late", { created_at: BASE_TIME + 3 }),
    ];
    await storage.write(async (tx) => {
      for (const row of [...rows].reverse()) await tx.insertIdempotency(row);
    });
    const first = { created_at: -1, key_id: "", route: "", idempotency_key: "" };
    const page = await storage.idempotencyBefore(BASE_TIME + 3, first, 2);
    assert.deepEqual(page, rows.slice(0, 2));
    assert.deepEqual(await storage.idempotencyBefore(BASE_TIME + 3, page[1] ?? first, 9), rows.slice(2, 5));
    assert.deepEqual(await storage.idempotencyBefore(BASE_TIME, first, 9), []);
    await storage.write(async (tx) => {
      assert.equal(await tx.deleteIdempotency("key-2", "POST /v1/actions", "a"), true);
      assert.equal(await tx.deleteIdempotency("key-2", "POST /v1/actions", "a"), false);
      assert.equal(await tx.deleteIdempotency("key-1", "POST /v1/policies", "b"), false);
      assert.deepEqual(await tx.idempotencyBefore(BASE_TIME + 2, first, 9), rows.slice(0, 2));
    });
    const reopened = await reopen();
    assert.deepEqual(
      await reopened.idempotencyBefore(BASE_TIME + 9, first, 9),
      rows.filter((_, i) => i !== 2),
    );
  });
}
