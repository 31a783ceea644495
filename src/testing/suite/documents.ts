/**
 * Cases for documents of plugins: compare-and-set on the version, versions that are never reused, lists with a prefix.
 */
import assert from "./assert.ts";
import type { Storage } from "../../contract/storage.ts";
import { type DefineCase, documentRow } from "./rows.ts";

const put = (storage: Storage, key: string, ifVersion: number | null, value = "{}"): Promise<number | null> =>
  storage.write((tx) => tx.putDocument(documentRow(key, { value }), ifVersion));
const keysOf = async (storage: Storage, prefix: string, more: { after?: string; limit?: number } = {}) =>
  (await storage.documents({ plugin: "notes", prefix, limit: 100, ...more })).map(({ key }) => key);

export function documentCases(test: DefineCase): void {
  test("a document is returned as it was stored, and only to its plugin", async ({ storage, reopen }) => {
    const value = '{"text":"é \u0000 \u0001 🙂","n":1}';
    const version = await put(storage, "a", null, value);
    assert.ok(version !== null && version > 0);
    const row = { ...documentRow("a", { value }), version };
    assert.deepEqual(await storage.document("notes", "a"), row);
    assert.equal(await storage.document("other", "a"), null);
    assert.equal(await storage.document("notes", "A"), null);
    assert.deepEqual(await storage.documents({ plugin: "other", prefix: "", limit: 9 }), []);
    const reopened = await reopen();
    assert.deepEqual(await reopened.document("notes", "a"), row);
    assert.deepEqual(await reopened.documents({ plugin: "notes", prefix: "", limit: 9 }), [row]);
  });

  test("a document is replaced only if its version is the expected version, and its version increases", async ({
    storage,
  }) => {
    const first = (await put(storage, "a", null, "1")) as number;
    assert.equal(await put(storage, "a", null, "2"), null, "the document already exists");
    assert.equal(await put(storage, "a", first + 1, "2"), null);
    assert.equal(await put(storage, "b", first, "2"), null, "there is no document to replace");
    assert.equal((await storage.document("notes", "a"))?.value, "1");
    assert.equal(await storage.document("notes", "b"), null);
    const second = (await put(storage, "a", first, "2")) as number;
    assert.ok(second > first);
    assert.equal(await put(storage, "a", first, "3"), null);
    assert.deepEqual(await storage.document("notes", "a"), {
      ...documentRow("a", { value: "2" }),
      version: second,
    });
  });

  test("of two writes that replace the same version, only one succeeds", async ({ storage }) => {
    const version = await put(storage, "a", null);
    const done = await Promise.all(["1", "2"].map((value) => put(storage, "a", version, value)));
    assert.equal(done.filter((result) => result === null).length, 1);
  });

  test("a version is never used twice, even after a deletion", async ({ storage, reopen }) => {
    const first = (await put(storage, "a", null)) as number;
    assert.equal(await storage.write((tx) => tx.deleteDocument("notes", "a", first + 1)), false);
    assert.equal(await storage.write((tx) => tx.deleteDocument("other", "a", first)), false);
    assert.equal(await storage.write((tx) => tx.deleteDocument("notes", "a", first)), true);
    assert.equal(await storage.write((tx) => tx.deleteDocument("notes", "a", first)), false);
    assert.equal(await storage.document("notes", "a"), null);
    assert.equal(await put(storage, "a", first), null, "a deleted document cannot be replaced");
    const reopened = await reopen();
    const second = (await reopened.write((tx) => tx.putDocument(documentRow("a"), null))) as number;
    assert.ok(second > first);
  });

  test("documents are listed by prefix in the order of code points, page by page", async ({ storage }) => {
    // U+FF5E sorts after U+1F642 by UTF-16 code units, and before it by code points.
    const keys = ["a", "a/1", "a/10", "a/2", "a/\u0000", "a/\u0001", "a/～", "a/🙂", "a0", "A/1", "b", "\u{10ffff}x"];
    const inOrder = [
      "A/1",
      "a",
      "a/\u0000",
      "a/\u0001",
      "a/1",
      "a/10",
      "a/2",
      "a/～",
      "a/🙂",
      "a0",
      "b",
      "\u{10ffff}x",
    ];
    await storage.write(async (tx) => {
      for (const key of keys) await tx.putDocument(documentRow(key), null);
      await tx.putDocument(documentRow("a/other", { plugin: "other" }), null);
    });
    assert.deepEqual(await keysOf(storage, ""), inOrder);
    assert.deepEqual(await keysOf(storage, "a/"), inOrder.slice(2, 9));
    assert.deepEqual(await keysOf(storage, "a/\u0000"), ["a/\u0000"]);
    assert.deepEqual(await keysOf(storage, "\u{10ffff}"), ["\u{10ffff}x"]);
    assert.deepEqual(await keysOf(storage, "a/%"), []);
    assert.deepEqual(await keysOf(storage, "a_"), []);
    assert.deepEqual(await keysOf(storage, "a/", { limit: 2 }), inOrder.slice(2, 4));
    assert.deepEqual(await keysOf(storage, "a/", { limit: 2, after: "a/\u0001" }), ["a/1", "a/10"]);
    assert.deepEqual(await keysOf(storage, "a/", { after: "a/🙂" }), []);
    assert.deepEqual(await keysOf(storage, "a/", { after: "A" }), inOrder.slice(2, 9));
  });

  test("a transaction reads its own documents, and a rolled-back transaction leaves none", async ({ storage }) => {
    const kept = (await put(storage, "kept", null, "1")) as number;
    await assert.rejects(
      storage.write(async (tx) => {
        const version = await tx.putDocument(documentRow("lost", { value: "1" }), null);
        assert.equal((await tx.document("notes", "lost"))?.version, version);
        assert.ok((await tx.putDocument(documentRow("lost", { value: "2", seal: "other" }), version)) !== null);
        assert.equal((await tx.document("notes", "lost"))?.seal, "other");
        assert.equal(await tx.deleteDocument("notes", "kept", kept), true);
        assert.deepEqual(
          (await tx.documents({ plugin: "notes", prefix: "", limit: 9 })).map(({ key }) => key),
          ["lost"],
        );
        assert.equal(await storage.document("notes", "lost"), null, "other transactions read committed documents");
        throw new Error("no");
      }),
      /no/,
    );
    assert.deepEqual(await keysOf(storage, ""), ["kept"]);
    assert.equal((await storage.document("notes", "kept"))?.version, kept);
  });
}
