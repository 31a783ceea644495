/** Node, Deno and Bun on one Postgres, one of which decides for all: each speaks with each. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { freePort, startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { without, type RuntimeName } from "../support/runtimes.ts";
import { ALLOWED, POLICIES } from "../support/service.ts";
import { bounded, until } from "../support/wait.ts";

const RUNTIMES: readonly RuntimeName[] = ["node", "deno", "bun"];
const skip = withoutPostgres || RUNTIMES.map(without).find((why) => why !== false) || false;

describe("processes on three runtimes", { skip }, () => {
  let server: PostgresServer;
  const folder = mkdtempSync(join(tmpdir(), "assent-peers-"));
  before(async () => {
    server = await startPostgres();
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("send what they are asked to the one that decides for all, whichever runs it", async () => {
    const url = await server.database();
    const shared = { ...sharedEnvironment("peers.test/log"), DATABASE_URL: url, ASSENT_POLICIES: POLICIES };
    let processes: { runtime: RuntimeName; service: ServiceProcess }[] = [];
    const store = postgresStorage({ url });
    const wayOf = async ({ service }: (typeof processes)[number]): Promise<string> => {
      const response = await fetch(`${service.url}/readyz`);
      return ((await response.json()) as { sequencer: { way: string } }).sequencer.way;
    };
    const countOf = async ({ service }: (typeof processes)[number], way: string): Promise<number> => {
      const metrics = await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN}` } });
      return Number(
        new RegExp(`^assent_sequencer_commands\\{way="${way}"\\} (\\d+)$`, "m").exec(await metrics.text())?.[1],
      );
    };
    const submit = ({ service }: (typeof processes)[number]): Promise<Response> =>
      fetch(`${service.url}/v1/actions`, {
        method: "POST",
        headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
        body: JSON.stringify(ALLOWED),
      });
    try {
      for (const runtime of RUNTIMES) {
        const port = await freePort();
        const env = {
          ...shared,
          ASSENT_DATA: join(folder, runtime),
          ASSENT_PORT: String(port),
          ASSENT_PEER_URL: `http://127.0.0.1:${port}`,
        };
        processes.push({ runtime, service: await startProcess(env, [], runtime) });
      }
      while (processes.length > 1) {
        const expected = ["leads", ...processes.slice(1).map(() => "sends")].join();
        let ways: string[] = [];
        await until(
          () => `${expected}, and they are ${ways.join()}`,
          async () => (ways = await Promise.all(processes.map(wayOf))).toSorted().join() === expected,
          100,
        );
        const fronts = processes.filter((_, i) => ways[i] === "sends");
        // Who has not looked since the last leader went still sends to that one.
        for (const front of fronts) {
          const before = await countOf(front, "sent");
          await until(
            `${front.runtime} sends to the one that leads now`,
            async () => {
              await submit(front);
              return (await countOf(front, "sent")) > before;
            },
            100,
          );
        }
        const recovered = await Promise.all(fronts.map((front) => countOf(front, "recovered")));
        const answers = await Promise.all(
          processes.flatMap(({ runtime, service }) =>
            Array.from({ length: 5 }, async () => {
              const response = await submit({ runtime, service });
              return [runtime, response.status, ((await response.json()) as { status: string }).status];
            }),
          ),
        );
        for (const [runtime, status, stands] of answers)
          assert.deepEqual([status, stands], [200, "allowed"], String(runtime));
        for (const [i, one] of processes.entries()) {
          assert.equal(await wayOf(one), ways[i], `${one.runtime} was given up: ${one.service.output()}`);
        }
        assert.deepEqual(await Promise.all(fronts.map((front) => countOf(front, "recovered"))), recovered);
        const [leader] = processes.splice(ways.indexOf("leads"), 1);
        if (leader !== undefined) await bounded("it stops", stopProcess(leader.service));
      }
      await store.open({ readOnly: true });
      assert.deepEqual((await auditStore(store, (await store.meta("log_vkey")) ?? "")).faults, []);
    } finally {
      await bounded("they stop", Promise.all(processes.map(({ service }) => stopProcess(service))));
      processes = [];
      await store.close();
    }
  });
});
