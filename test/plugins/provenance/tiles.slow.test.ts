/** The log as a monitor reads it: only from the checkpoint and the tiles. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openCheckpoint } from "../../../src/domain/checkpoint.ts";
import { equalBytes, toHex } from "../../../src/domain/hash.ts";
import { appendToEdge, hashLeaf, rootFromEdge } from "../../../src/domain/merkle.ts";
import { decodeEntryBundle, tilePath } from "../../../src/domain/tiles.ts";
import { ALLOWED, startService, type Service } from "../../support/service.ts";

let service: Service;
before(async () => {
  service = await startService({ pluginOptions: { provenance: { public: true } } });
  for (let i = 0; i < 7; i++)
    await Promise.all(Array.from({ length: 100 }, () => service.call("POST", "/v1/actions", { body: ALLOWED })));
});
after(() => service.close());

const fetchBytes = async (
  path: string,
  key: string | null = null,
): Promise<{ status: number; bytes: Uint8Array; headers: Headers }> => {
  const response = await service.runtime.fetch(
    new Request(`http://assent.test/${path}`, { headers: key === null ? {} : { authorization: `Bearer ${key}` } }),
  );
  return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
};
const note = async (): Promise<{ size: number; root: Uint8Array }> =>
  openCheckpoint(
    new TextDecoder().decode((await fetchBytes("checkpoint")).bytes),
    service.runtime.host.ledger.vkey,
    (...args) => service.runtime.host.vault.verify(...args),
  );

describe("tiles", () => {
  it("give a monitor the tree of the checkpoint, and bundles with the entries of its leaves", async () => {
    const { size, root } = await note();
    assert.ok(size > 512);
    let edge: Uint8Array[] = [];
    for (let from = 0; from < size; from += 256) {
      const width = Math.min(256, size - from);
      const hashes = await fetchBytes(tilePath(0, from / 256, width));
      const bundle = await fetchBytes(tilePath("entries", from / 256, width), service.admin);
      assert.deepEqual([hashes.status, hashes.bytes.length, bundle.status], [200, width * 32, 200]);
      assert.equal(hashes.headers.get("cache-control"), "public, max-age=31536000, immutable");
      assert.equal(bundle.headers.get("cache-control"), "private, max-age=31536000, immutable");
      for (const [i, entry] of decodeEntryBundle(bundle.bytes).entries()) {
        const leaf = hashes.bytes.subarray(i * 32, i * 32 + 32);
        assert.ok(equalBytes(hashLeaf(entry), leaf));
        edge = appendToEdge(edge, from + i, leaf);
      }
    }
    assert.equal(toHex(rootFromEdge(edge)), toHex(root));
  });

  it("exist in every width that had a checkpoint, on every level, and no further", async () => {
    const { size } = await note();
    const [leaves, roots] = [size % 256, Math.floor(size / 256)];
    const last = Math.floor(size / 256);
    const full = (await fetchBytes(tilePath(0, 0))).bytes;
    assert.deepEqual((await fetchBytes(tilePath(0, 0, 7))).bytes, full.slice(0, 7 * 32));
    assert.equal((await fetchBytes(tilePath(0, last, leaves))).bytes.length, leaves * 32);
    assert.equal((await fetchBytes(tilePath(1, 0, roots))).bytes.length, roots * 32);
    for (const path of [
      tilePath(0, last, leaves + 1),
      tilePath(0, last),
      tilePath(1, 0, roots + 1),
      tilePath(2, 0, 1),
      tilePath(63, 0, 1),
      tilePath(0, last + 1, 1),
      tilePath("entries", last + 1, 1),
    ]) {
      const { status, bytes } = await fetchBytes(path, service.admin);
      assert.deepEqual(
        [status, (JSON.parse(new TextDecoder().decode(bytes)) as { code: string }).code],
        [404, "TILE_NOT_FOUND"],
        path,
      );
    }
  });

  it("have one address each", async () => {
    for (const path of [
      "tile/0/0",
      "tile/00/000",
      "tile/0/x000/000",
      "tile/0/000.p/0",
      "tile/0/000.p/256",
      "tile/0/000.p/08",
      "tile/-1/000",
      "tile/0/000/",
      "tile/0/..%2f000",
      "tile/0",
      "tile/64/000",
    ]) {
      assert.equal((await fetchBytes(path, service.admin)).status >= 400, true, path);
    }
  });

  it("never make entries public, nor give a key entries that it cannot see", async () => {
    assert.equal((await fetchBytes(tilePath("entries", 0))).status, 401);
    const { key } = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "narrow", scopes: ["provenance:read", "actions:read"], agent_id: "other" },
      })
    ).body;
    assert.equal((await fetchBytes(tilePath("entries", 0), key)).status, 403);
    const own = await startService();
    try {
      for (const path of ["/checkpoint", "/tile/0/000.p/1"])
        assert.equal((await own.call("GET", path, { key: null })).status, 401, path);
    } finally {
      await own.close();
    }
  });
});
