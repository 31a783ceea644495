/**
 * Four processes on one Postgres, accessed directly and through a load balancer, under load. Connections are cut,
 * processes are killed and restarted, and Postgres crashes. Every acknowledged action is recorded once, in one tree,
 * and a subscriber that resumes receives every entry once.
 * @needs events, provenance
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { EventSource } from "eventsource";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { fromHex, toHex } from "../../src/domain/hash.ts";
import { verifyInclusion } from "../../src/domain/merkle.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { freePort, startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { startProxy, withoutProxy, type Proxy } from "../support/proxy.ts";
import { ALLOWED, FEW_POLICIES } from "../support/service.ts";
import { withTimeout, pause, until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PROCESSES = 4;
const CLIENTS = 6;
const SUBSCRIBERS = 3;
const PROOFS = 100;
const SHARED = sharedEnvironment("fleet.test/log");

/** Opens an EventSource that reconnects to the next address whenever its connection is cut. */
function subscribe(urls: () => readonly string[], first: number): { seen: number[]; cuts(): number; close(): void } {
  const seen: number[] = [];
  let cuts = 0;
  let closed = false;
  let source: EventSource;
  const open = (at: number): void => {
    const all = urls();
    const last = seen.at(-1);
    source = new EventSource(`${all[at % all.length]}/v1/events`, {
      fetch: (url, init) =>
        fetch(url, {
          ...init,
          headers: {
            ...init.headers,
            authorization: `Bearer ${ADMIN}`,
            ...(last === undefined ? {} : { "last-event-id": String(last) }),
          },
        }),
    });
    source.addEventListener("message", (event) => seen.push(Number(event.lastEventId)));
    source.addEventListener("error", () => {
      // Its own reconnects would use the same address.
      source.close();
      cuts += 1;
      if (!closed) setTimeout(open, 50, at + 1);
    });
  };
  open(first);
  return {
    seen,
    cuts: () => cuts,
    close() {
      closed = true;
      source.close();
    },
  };
}

describe(
  "four processes on one Postgres",
  {
    skip:
      withoutPostgres ||
      (process.env["DATABASE_URL"] === undefined ? false : "the server is not the test's own to crash"),
  },
  () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres({ isPrivate: true });
    });
    after(() => server.stop());

    async function ordeal(balanced: boolean): Promise<void> {
      const url = await server.database();
      const folder = temporaryFolder("assent-fleet-");
      const ports = await Promise.all(Array.from({ length: PROCESSES + 1 }, () => freePort()));
      const env = (i: number): Record<string, string> => ({
        ...SHARED,
        DATABASE_URL: url,
        ASSENT_POLICIES: FEW_POLICIES,
        ASSENT_DATA: join(folder, String(i)),
        ASSENT_PORT: String(ports[i]),
      });
      const started = await Promise.allSettled(Array.from({ length: PROCESSES }, (_, i) => startProcess(env(i))));
      const processes = started.map((start) => {
        if (start.status === "rejected") throw start.reason;
        return start.value;
      });
      let proxy: Proxy | null = null;
      const subscribers: ReturnType<typeof subscribe>[] = [];
      const acknowledged = new Map<string, string>();
      let refused = 0;
      let loading = true;
      const urls = (): string[] => (proxy === null ? processes.map((one) => one.url) : [proxy.url]);

      async function client(number: number): Promise<void> {
        for (let n = 0; loading; n++) {
          const key = `c${number}-${n}`;
          // Submits the same action to one process after the other until one acknowledges it.
          for (let at = number; ; at++) {
            const answer = await fetch(`${urls()[at % urls().length]}/v1/actions`, {
              method: "POST",
              headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json", "idempotency-key": key },
              body: JSON.stringify(ALLOWED),
              signal: AbortSignal.timeout(15_000),
            })
              .then(async (response) =>
                response.status === 200
                  ? ((await response.json()) as { decision_hash: string })
                  : (await response.body?.cancel(), null),
              )
              .catch(() => null);
            if (answer !== null) {
              acknowledged.set(key, answer.decision_hash);
              break;
            }
            refused += 1;
            if (!loading) break;
            await pause(20);
          }
        }
      }

      /** Submits for `ms` milliseconds, and until the service has resumed deciding. */
      async function load(ms: number): Promise<void> {
        const before = acknowledged.size;
        await pause(ms);
        await until("the service goes on", () => acknowledged.size > before + 20);
      }

      const store = postgresStorage({ url });
      try {
        if (balanced) proxy = await startProxy(ports[PROCESSES] as number, ports.slice(0, PROCESSES));
        for (let i = 0; i < SUBSCRIBERS; i++) subscribers.push(subscribe(urls, i));
        const clients = Array.from({ length: CLIENTS }, (_, i) => client(i));
        try {
          await load(600);
          await server.cutConnections();
          await load(600);
          for (const i of [0, 2, 3]) {
            const victim = processes[i] as ServiceProcess;
            victim.child.kill("SIGKILL");
            await victim.ended;
            processes[i] = await startProcess(env(i));
            await load(300);
          }
          await server.crash();
          await load(3000);
        } finally {
          loading = false;
          await withTimeout("the clients are answered", Promise.all(clients));
        }
        assert.ok(acknowledged.size > 50 && refused > 0, `${acknowledged.size} acknowledged, ${refused} refused`);

        await store.open({ readOnly: true });
        const vkey = (await store.meta("log_vkey")) ?? "";
        assert.deepEqual((await auditStore(store, vkey)).faults, []);
        const { size } = await store.head();
        const places = new Map<string, number[]>();
        for (let from = 0; from < size; from += 1000) {
          for (const { seq, leaf_hash } of await store.entries(from, Math.min(size, from + 1000)))
            places.set(toHex(leaf_hash), [...(places.get(toHex(leaf_hash)) ?? []), seq]);
        }
        for (const [key, hash] of acknowledged) assert.equal(places.get(hash)?.length, 1, key);

        // A sample, because a proof of each action would take longer than the rest of the test.
        const hashes = [...acknowledged.values()];
        const every = Math.ceil(hashes.length / PROOFS);
        for (const [i, hash] of hashes.filter((_, at) => at % every === 0).entries()) {
          const proof = (await (
            await fetch(`${urls()[i % urls().length]}/v1/provenance/${hash}/proof`, {
              headers: { authorization: `Bearer ${ADMIN}` },
            })
          ).json()) as { index: number; size: number; root: string; path: string[] };
          assert.ok(
            verifyInclusion({
              index: proof.index,
              size: proof.size,
              leafHash: fromHex(hash),
              root: fromHex(proof.root),
              path: proof.path.map(fromHex),
            }),
            hash,
          );
        }

        // The first entry of a subscriber depends on when it connected. From there on, it receives every entry once.
        for (const { seen } of subscribers) {
          await until(`a subscriber is given everything up to ${size - 1}`, () => seen.at(-1) === size - 1);
          const begin = seen[0] ?? 0;
          assert.deepEqual(
            seen,
            Array.from({ length: size - begin }, (_, i) => begin + i),
          );
        }
        assert.ok(
          subscribers.every(({ seen }) => seen.length > 100),
          "they were there for the load",
        );
        assert.ok(
          subscribers.some(({ cuts }) => cuts() > 0),
          "some were cut off",
        );
      } finally {
        for (const subscriber of subscribers) subscriber.close();
        await withTimeout("the processes stop", Promise.all(processes.map((one) => stopProcess(one))));
        await proxy?.stop();
        await store.close();
        rmSync(folder, { recursive: true, force: true });
      }
    }

    it("with clients that connect to each process", () => ordeal(false));
    it("with clients behind a load balancer", { skip: withoutProxy }, () => ordeal(true));
  },
);
