/** Several processes share a database while the log's key is replaced. Each process uses the new key or stops. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { verifyProofText } from "../../src/cli/verify.ts";
import { readNote } from "../../src/domain/checkpoint.ts";
import { VaultError } from "../../src/identity/key-files.ts";
import { needs } from "../support/features.ts";
import { newKey } from "../support/keys.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const [FIRST, SECOND] = [newKey(), newKey()];

describe("the log's key of several processes", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  const start = (url: string, key: string, next: string | null): Promise<Service> =>
    startService({
      storage: () => postgresStorage({ url, poolSize: 3 }),
      change(config) {
        config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
        Object.assign(config.ledger, { key, next_key: next, origin: "rotation.test/log" });
      },
    });

  it(
    "changes at once in all processes that have the new key; a process without it returns 503 and signs nothing",
    needs("provenance"),
    async () => {
      const url = await server.database();
      const one = await start(url, FIRST, SECOND);
      const [two, late] = [await start(url, FIRST, SECOND), await start(url, FIRST, null)];
      const { agent: key, admin } = one;
      const submit = (service: Service) => service.call("POST", "/v1/actions", { key, body: ALLOWED });
      const signers = async (service: Service): Promise<number> => {
        const { body } = await service.call("GET", "/checkpoint", { key: admin });
        return readNote(body as string).signatures.length;
      };
      try {
        const hash = (await submit(late)).body.decision_hash as string;
        const { vkey, previous } = await one.runtime.rotateLogKey({ overlap: 60_000, again: false });
        const before = await one.storage.head();
        const refused = await Promise.all([
          submit(late),
          submit(late),
          late.call("GET", "/checkpoint", { key: admin }),
        ]);
        assert.deepEqual(
          refused.map(({ status }) => status),
          [503, 503, 503],
        );
        const ready = await late.call("GET", "/readyz", { key: null });
        assert.deepEqual([ready.status, ready.body.ledger.ok], [503, false]);
        assert.equal((await one.storage.head()).size, before.size, "nothing was written by it");
        assert.deepEqual([await signers(two), (await submit(two)).status, await signers(one)], [2, 200, 2]);
        const proof = await two.call("GET", `/v1/provenance/${hash}/proof`, { key: admin });
        assert.equal(verifyProofText(JSON.stringify(proof.body), previous, null).vkey, vkey);
        await assert.rejects(
          start(url, FIRST, null),
          (error) => error instanceof VaultError && /was changed at entry/.test(error.message),
        );
        const three = await start(url, SECOND, null);
        assert.deepEqual([(await submit(three)).status, await signers(three)], [200, 1]);
        await three.close();
      } finally {
        await late.close();
        await two.close();
        await one.close();
      }
    },
  );

  it("is read by a running process from the configured file", async () => {
    const url = await server.database();
    const file = join(temporaryFolder("assent-log-key-"), "log-key.pem");
    writeFileSync(file, FIRST, { mode: 0o600 });
    const [one, late] = [await start(url, FIRST, SECOND), await start(url, file, null)];
    const submit = () => late.call("POST", "/v1/actions", { key: one.agent, body: ALLOWED });
    try {
      await one.runtime.rotateLogKey({ overlap: 60_000, again: false });
      assert.equal((await submit()).status, 503);
      writeFileSync(file, SECOND);
      await until("it takes the new key", async () => (await submit()).status === 200);
      const { body } = await late.call("GET", "/checkpoint", { key: one.admin });
      assert.equal(readNote(body as string).signatures.length, 2);
    } finally {
      await late.close();
      await one.close();
      rmSync(dirname(file), { recursive: true });
    }
  });

  it("is changed once by two concurrent commands", async () => {
    const url = await server.database();
    const services = [await start(url, FIRST, SECOND), await start(url, FIRST, SECOND)];
    try {
      const both = await Promise.allSettled(
        services.map(({ runtime }) => runtime.rotateLogKey({ overlap: 60_000, again: false })),
      );
      assert.ok(both.some(({ status }) => status === "fulfilled"));
      for (const outcome of both)
        if (outcome.status === "rejected") assert.match(String(outcome.reason), /someone else has just changed/);
      const keys = await Promise.all(services.map(({ runtime }) => runtime.host.ledger.logKeys()));
      assert.deepEqual([keys[0]?.length, keys[0]], [2, keys[1]]);
    } finally {
      for (const service of services) await service.close();
    }
  });
});
