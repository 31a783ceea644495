/** What plugins can and cannot reach. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { READER_METHODS, WRITER_METHODS } from "../../src/contract/storage.ts";
import { startService, type Service } from "../support/service.ts";

const SECRET = "q3Zt9vLw0Xk7Rb2Ny5Hd8Mf1Jc6Pg4Sa";

async function withService(
  options: Parameters<typeof startService>[0],
  work: (service: Service) => Promise<void>,
): Promise<void> {
  const service = await startService(options);
  try {
    await work(service);
  } finally {
    await service.close();
  }
}

test("plugins read the store, and cannot write, close or acquire a lease through it", () =>
  withService({}, async ({ runtime: { host } }) => {
    const names = Object.keys(host.storage);
    // Documents belong to each plugin, which reaches them through `host.documents`.
    const reads = READER_METHODS.filter((name) => !name.startsWith("document"));
    for (const name of reads) assert.ok(names.includes(name), name);
    assert.deepEqual(names.filter((name) => !(reads as readonly string[]).includes(name)).sort(), [
      "exclusive",
      "name",
      "ping",
      "schema",
    ]);
    for (const name of [
      ...WRITER_METHODS,
      "document",
      "documents",
      "write",
      "close",
      "open",
      "lease",
      "release",
      "leases",
      "backup",
      "copying",
    ])
      assert.equal((host.storage as unknown as Record<string, unknown>)[name], undefined, name);
    assert.equal((await host.storage.head()).size, (await host.ledger.head()).size);
    assert.throws(() => Object.assign(host.storage, { head: () => null }), TypeError);
  }));

test("plugins see no secret of the configuration, and cannot change it", () =>
  withService(
    {
      change(config) {
        config.secret = SECRET;
        config.server.public_url = "https://assent.example";
      },
    },
    async ({ runtime: { host } }) => {
      assert.deepEqual(Object.keys(host.config).sort(), [
        "agents",
        "approvals",
        "data",
        "environment",
        "permits",
        "policies",
        "server",
      ]);
      assert.deepEqual(Object.keys(host.config.server).sort(), ["max_page_bytes", "max_wait_seconds", "public_url"]);
      assert.ok(!JSON.stringify(host.config).includes(SECRET));
      assert.throws(() => Object.assign(host.config.approvals, { trust_key_makers: true }), TypeError);
    },
  ));

test("the OpenAPI document is generated for plugins that ask the host for it", () =>
  withService({}, async ({ runtime: { host } }) => {
    const document = host.openapi({ description: "Ours.", tags: { actions: "What agents do." } });
    assert.equal((document["info"] as { description: string }).description, "Ours.");
    assert.ok("/v1/actions" in (document["paths"] as object));
  }));
