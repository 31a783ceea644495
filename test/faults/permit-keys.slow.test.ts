/** Processes that share a database accept each other's permits while the signing key is replaced. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { decodeProtectedHeader } from "jose";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { VaultError } from "../../src/identity/key-files.ts";
import { MAX_PERMIT_SECONDS } from "../../src/domain/permit.ts";
import { needs } from "../support/features.ts";
import { newKey } from "../support/keys.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";

const [LOG, FIRST, SECOND] = [newKey(), newKey(), newKey()];

describe("the permit key of several processes", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  const start = (url: string, key: string | null): Promise<Service> =>
    startService({
      noPermitKey: true,
      storage: () => postgresStorage({ url, poolSize: 3 }),
      change(config) {
        config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
        config.ledger.key = LOG;
        config.ledger.origin = "permits.test/log";
        config.permits.key = key;
      },
    });

  it(
    "after a rotation, processes with the old and the new permit key accept each other's permits",
    needs("well-known"),
    async () => {
      const url = await server.database();
      const one = await start(url, FIRST);
      const two = await start(url, FIRST);
      const key = one.agent === "" ? two.agent : one.agent;
      const submit = async (service: Service): Promise<{ id: string; permit: string }> =>
        (await service.call("POST", "/v1/actions", { key, body: ALLOWED, headers: { prefer: "permit" } })).body;
      const startOn = async (service: Service, { id, permit }: { id: string; permit: string }): Promise<string> => {
        const { status, body } = await service.call("POST", `/v1/actions/${id}/start`, { key, body: { permit } });
        return `${status} ${body.code ?? body.status}`;
      };
      const kids = async (service: Service): Promise<string[]> =>
        (await service.call("GET", "/.well-known/jwks.json", { key: null })).body.keys.map(
          ({ kid }: { kid: string }) => kid,
        );
      try {
        const [old] = await kids(one);
        const { kid } = await one.runtime.rotatePermitKey({ key: SECOND, overlap: MAX_PERMIT_SECONDS });
        assert.deepEqual(await kids(two), [kid, old], "the other one follows the ledger");
        const three = await start(url, SECOND);
        try {
          const [byOld, byNew] = [await submit(two), await submit(three)];
          assert.deepEqual(
            [byOld, byNew].map(({ permit }) => decodeProtectedHeader(permit).kid),
            [old, kid],
          );
          assert.equal(await startOn(three, byOld), "200 executing");
          assert.equal(await startOn(two, byNew), "200 executing");
          // The second key was revoked as stolen. From here on, no process accepts permits that it signs.
          const late = await submit(two);
          const { kid: last } = await three.runtime.rotatePermitKey({ key: newKey(), overlap: 0 });
          const gone = await submit(three);
          assert.equal(gone.permit, null, "the preference is passed over");
          assert.equal(await startOn(one, late), "200 executing", "the one before that still has its day");
          assert.deepEqual(await kids(two), [last, old]);
          const asked = await three.call("POST", `/v1/actions/${gone.id}/permit`, { key });
          assert.deepEqual([asked.status, asked.body.code], [503, "PERMIT_KEY_RETIRED"]);
        } finally {
          await three.close();
        }
      } finally {
        await two.close();
        await one.close();
      }
    },
  );

  it("the permit key is the same in all processes: one with a different key does not start, and one without it does not if the log's key is configured", async () => {
    const url = await server.database();
    const one = await start(url, FIRST);
    try {
      const refused = (words: RegExp) => (error: unknown) => error instanceof VaultError && words.test(error.message);
      await assert.rejects(start(url, SECOND), refused(/not the one of this store/));
      await assert.rejects(start(url, LOG), refused(/one of their own/));
      await assert.rejects(start(url, null), refused(/ASSENT_PERMIT_KEY/));
    } finally {
      await one.close();
    }
  });
});
