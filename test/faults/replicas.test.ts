/** Several processes on one Postgres: what one does holds for all, from the next request on. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { ALLOWED, ASKED, POLICIES, startService, type Answer, type Service } from "../support/service.ts";

const SECRET = "a secret that all replicas share, 32 or more";
const LOG_KEY = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;

async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`did not come about in ${ms} ms: ${what}`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

const post = (service: Service, key: string, headers: Record<string, string> = {}, body: object = ALLOWED): Promise<Answer> => service.call("POST", "/v1/actions", { key, body, headers });

describe("replicas on one Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  async function withReplicas(count: number, work: (services: Service[], keys: { admin: string; agent: string }, url: string) => Promise<void>): Promise<void> {
    const url = await server.database();
    const services = await Promise.all(
      Array.from({ length: count }, () =>
        startService({
          storage: () => postgresStorage({ url, poolSize: 3 }),
          change(config) {
            config.secret = SECRET;
            config.ledger.key = LOG_KEY;
            config.ledger.origin = "replicas.test/log";
          },
        }),
      ),
    );
    try {
      const first = services.filter(({ admin }) => admin !== "");
      assert.equal(first.length, 1, "the first keys are made by one of them");
      const { admin, agent } = first[0] as Service;
      await work(services, { admin, agent }, url);
    } finally {
      await Promise.all(services.map((service) => service.close()));
    }
  }

  it("ten that start at once on an empty database agree on one log and one pair of keys", { timeout: 60_000 }, () =>
    withReplicas(10, async (services, { agent }) => {
      const answers = await Promise.all(services.map((service) => post(service, agent)));
      assert.deepEqual(answers.map(({ status }) => status), services.map(() => 200));
      assert.equal(new Set(answers.map(({ body }) => body.policy_hash)).size, 1);
    }));

  it("a key, an agent and a policy that one changes are changed for the next request to another", { timeout: 60_000 }, () =>
    withReplicas(2, async ([a, b], { admin, agent }) => {
      const [one, two] = [a as Service, b as Service];
      for (let i = 0; i < 10; i++) {
        const made = (await one.call("POST", "/v1/api-keys", { key: admin, body: { name: `k${i}`, preset: "agent" } })).body;
        assert.equal((await post(two, made.key)).status, 200);
        await one.call("DELETE", `/v1/api-keys/${made.id}`, { key: admin });
        assert.equal((await post(two, made.key)).status, 401);

        const id = `bot-${i}`;
        await two.call("POST", "/v1/agents", { key: admin, body: { id } });
        assert.equal((await post(one, agent, {}, { ...ALLOWED, agent_id: id })).body.decision, "allow");
        await two.call("POST", `/v1/agents/${id}/suspend`, { key: admin });
        assert.equal((await post(one, agent, {}, { ...ALLOWED, agent_id: id })).body.reason_code, "AGENT_SUSPENDED");

        const policy = { policy: "switched", rules: [{ name: "r", tool: "switch", effect: i % 2 === 0 ? "allow" : "deny" }] };
        await one.call(i === 0 ? "POST" : "PUT", `/v1/policies${i === 0 ? "" : "/switched"}?activate=true`, { key: admin, body: policy });
        assert.equal((await two.call("GET", "/readyz", { key: null })).body.policies.policy_set, (await one.storage.head()).policy_set);
        assert.equal((await post(two, agent, {}, { ...ALLOWED, tool: "switch" })).body.decision, policy.rules[0]?.effect);
      }
    }));

  it("write one tree under load, each answering proofs and events for all", { timeout: 60_000 }, () =>
    withReplicas(3, async (services, { admin, agent }, url) => {
      const seqs = services.map(() => [] as number[]);
      const start = (await (services[0] as Service).storage.head()).size;
      const stops = services.map((service, i) => service.runtime.host.ledger.subscribe((entries) => (seqs[i] as number[]).push(...entries.map(({ seq }) => seq))));
      const answers = (await Promise.all(services.flatMap((service) => Array.from({ length: 100 }, () => post(service, agent))))).map(({ body }) => body);
      const { size } = await (services[0] as Service).storage.head();
      assert.equal(size, start + 300);
      for (const end = Date.now() + 10_000; seqs.some((own) => own.at(-1) !== size - 1) && Date.now() < end; ) await new Promise((resolve) => setTimeout(resolve, 20));
      // A subscriber begins somewhere at or before the load; from there on nothing is missing and nothing comes twice.
      for (const own of seqs) assert.deepEqual(own.filter((seq) => seq >= start), Array.from({ length: 300 }, (_, i) => start + i));
      for (const stop of stops) stop();
      for (const [i, { decision_hash }] of answers.entries()) {
        const other = services[(i + 1) % services.length] as Service;
        if (i % 10 === 0) assert.equal((await other.call("GET", `/v1/provenance/${decision_hash}/proof`, { key: admin })).status, 200);
      }
      const store = postgresStorage({ url });
      await store.open();
      assert.deepEqual((await auditStore(store, (services[0] as Service).runtime.host.ledger.vkey)).faults, []);
      await store.close();
    }));

  it("sign checkpoints while all of them write", { timeout: 60_000 }, () =>
    withReplicas(2, async (services, { admin, agent }) => {
      let writing = true;
      const readers = services.map(async (service) => {
        const statuses = new Set<number>();
        while (writing) statuses.add((await service.call("GET", "/v1/provenance/checkpoint", { key: admin })).status);
        return [...statuses];
      });
      const writers = services.flatMap((service) =>
        Array.from({ length: 3 }, async () => {
          const statuses = new Set<number>();
          for (let i = 0; i < 30; i++) statuses.add((await post(service, agent)).status);
          return [...statuses];
        }),
      );
      const written = await Promise.all(writers).finally(() => (writing = false));
      assert.deepEqual([written, await Promise.all(readers)], [writers.map(() => [200]), readers.map(() => [200])]);
    }));

  it("a wait at one is ended by the verdict at another, and a retry at another finds the action", { timeout: 60_000 }, () =>
    withReplicas(2, async ([a, b], { admin, agent }) => {
      const [one, two] = [a as Service, b as Service];
      const waiting = post(one, agent, { prefer: "wait=20", "idempotency-key": "once" }, ASKED);
      let pending: Answer["body"];
      for (;;) {
        [pending] = (await two.call("GET", "/v1/actions?status=pending_approval", { key: admin })).body.actions;
        if (pending !== undefined) break;
      }
      const { approval_token: token } = (await two.call("GET", `/v1/actions/${pending.id}`, { key: admin })).body;
      assert.equal((await two.call("POST", `/v1/actions/${pending.id}/approval`, { key: admin, body: { token, approve: true } })).status, 200);
      const answer = await waiting;
      assert.deepEqual([answer.body.id, answer.body.status], [pending.id, "approved"]);
      assert.equal((await post(two, agent, { "idempotency-key": "once" }, ASKED)).body.id, pending.id);
    }));

  it("what was acknowledged survives cut connections, a crash of Postgres and of processes", { timeout: 180_000, skip: process.env["DATABASE_URL"] === undefined ? false : "the server is not the test's own to crash" }, async () => {
    const url = await server.database();
    const folder = mkdtempSync(join(tmpdir(), "assent-replicas-"));
    const adminKey = `assent-test-admin-${"0".repeat(32)}`;
    const env = { DATABASE_URL: url, ASSENT_SECRET: SECRET, ASSENT_LOG_KEY: LOG_KEY, ASSENT_LOG_ORIGIN: "replicas.test/log", ASSENT_POLICIES: POLICIES, ASSENT_ADMIN_KEY: adminKey, ASSENT_DATA: folder };
    const processes: ServiceProcess[] = [];
    const started = await Promise.allSettled(Array.from({ length: 3 }, () => startProcess(env)));
    for (const start of started) if (start.status === "fulfilled") processes.push(start.value);
    const acknowledged = new Map<string, string>();
    let loading = true;
    let refused = 0;
    const clients = Array.from({ length: 6 }, async (_, client) => {
      for (let n = 0; loading; n++) {
        const key = `c${client}-${n}`;
        // The same action at one process after another, until one acknowledges it.
        for (let at = client; ; at++) {
          const target = processes[at % processes.length] as ServiceProcess;
          const answer = await fetch(`${target.url}/v1/actions`, {
            method: "POST", headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json", "idempotency-key": key }, body: JSON.stringify(ALLOWED), signal: AbortSignal.timeout(15_000),
          }).then(async (response) => (response.status === 200 ? ((await response.json()) as { id: string; decision_hash: string }) : null)).catch(() => null);
          if (answer !== null) {
            acknowledged.set(key, answer.decision_hash);
            break;
          }
          refused += 1;
          if (!loading) break;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    });
    const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
    try {
      assert.deepEqual(started.flatMap((start) => (start.status === "rejected" ? [String(start.reason)] : [])), [], "all start at once");
      await pause(500);
      await server.cutConnections();
      await pause(700);
      for (const i of [0, 2]) {
        const victim = processes[i] as ServiceProcess;
        victim.child.kill("SIGKILL");
        await victim.ended;
        processes[i] = await within(30_000, "a process starts again under load", startProcess(env));
        await pause(300);
      }
      await server.crash();
      await pause(1500);
      const before = acknowledged.size;
      await pause(1500);
      assert.ok(acknowledged.size > before, "the service goes on after the crash");
    } finally {
      loading = false;
      await within(30_000, "the clients are answered", Promise.all(clients));
      await within(30_000, "the processes stop", Promise.all(processes.map((process) => stopProcess(process))));
    }
    assert.ok(acknowledged.size > 50 && refused > 0, `${acknowledged.size} acknowledged, ${refused} refused`);
    const store = postgresStorage({ url });
    await store.open();
    try {
      assert.deepEqual((await auditStore(store)).faults, []);
      const { size } = await store.head();
      const counts = new Map<string, number>();
      for (let from = 0; from < size; from += 1000) {
        for (const row of await store.entries(from, from + 1000)) counts.set(Buffer.from(row.leaf_hash).toString("hex"), (counts.get(Buffer.from(row.leaf_hash).toString("hex")) ?? 0) + 1);
      }
      for (const [key, hash] of acknowledged) assert.equal(counts.get(hash), 1, key);
    } finally {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
