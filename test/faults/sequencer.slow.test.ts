/**
 * Each storage operation on the path of a decision fails once as "not persisted" and once as "persisted but error
 * returned", with and without concurrent requests. Afterwards the store is reopened and audited: acknowledged actions
 * exist, and rejected ones left nothing behind.
 * @needs provenance
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { LedgerHead, Storage } from "../../src/contract/storage.ts";
import { memoryStorage } from "../../src/testing/memory-storage.ts";
import { withFaults, type FaultMode, type Faults } from "../../src/testing/faults.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { join } from "node:path";
import { needs } from "../support/features.ts";
import { until } from "../support/wait.ts";
import { ALLOWED, ASKED, waitForSignature, startService, type Answer, type Service } from "../support/service.ts";

type Faulty = Storage & { faults: Faults };

/** Storage operations between a request and its response, on the path of a decision. */
const SUBMIT_OPERATIONS = [
  "begin",
  "tx.head",
  "tx.idempotency",
  "tx.insertAction",
  "tx.insertIdempotency",
  "tx.append",
  "commit",
];
const VOTE_OPERATIONS = [
  "begin",
  "tx.head",
  "tx.action",
  "tx.approvals",
  "tx.insertApproval",
  "tx.updateAction",
  "tx.append",
  "commit",
];
const MODES: FaultMode[] = ["not-persisted", "persisted"];

const stores: { name: string; create: (folder: string) => Storage }[] = [
  { name: "memory", create: () => memoryStorage() },
  { name: "sqlite", create: (folder) => sqliteStorage({ path: join(folder, "assent.db") }) },
];

async function withService(
  create: (folder: string) => Storage,
  work: (service: Service, faults: Faults) => Promise<void>,
): Promise<void> {
  let faulty: Faulty | null = null;
  const service = await startService({ storage: (folder) => (faulty = withFaults(create(folder))) });
  try {
    await work(service, (faulty as unknown as Faulty).faults);
  } finally {
    await service.close();
  }
}

function submit(service: Service, key: string): Promise<Answer> {
  return service.call("POST", "/v1/actions", { body: ALLOWED, headers: { "idempotency-key": key } });
}

/** Asserts that acknowledged actions exist, with proofs that verify against the checkpoint's root. */
async function assertThere(service: Service, answers: readonly Answer[]): Promise<void> {
  for (const { body } of answers) {
    const found = await service.call("GET", `/v1/actions/${body.id}`);
    assert.equal(found.status, 200, `the acknowledged action ${body.id} is gone`);
    const proof = await service.call("GET", `/v1/provenance/${body.decision_hash}/proof`, { key: service.admin });
    assert.equal(proof.status, 200);
  }
}

for (const { name, create } of stores) {
  describe(`a failing store (${name})`, () => {
    for (const operation of SUBMIT_OPERATIONS) {
      for (const mode of MODES) {
        test(`a submission gets a 503 and no decision if ${operation} fails (${mode})`, () =>
          withService(create, async (service, faults) => {
            const good = await submit(service, "before");
            await waitForSignature(service);
            faults.failNext(operation, mode);
            const failed = await submit(service, "one");
            assert.equal(faults.waiting, 0, `${operation} is no longer on the way of a submission`);
            assert.deepEqual(
              [failed.status, failed.body.code],
              [503, "STORAGE_UNAVAILABLE"],
              "no verdict without a record",
            );
            assert.ok(!JSON.stringify(failed.body).includes("allow"), "a failed request must not carry a verdict");
            assert.match(failed.body.detail, /might have been recorded/);
            // A retry with the same key finds the persisted action or records it now. In both cases it is recorded
            // once.
            const retried = await submit(service, "one");
            assert.equal(retried.status, 200);
            assert.equal((await submit(service, "one")).body.id, retried.body.id);
            await service.restart();
            await assertThere(service, [good, retried]);
            const all = await service.call("GET", "/v1/actions?limit=100");
            assert.equal(all.body.actions.length, 2, "the retried action must exist exactly once");
          }));
      }
    }

    for (const mode of MODES) {
      test(`each operation fails once under concurrent requests (${mode})`, () =>
        withService(create, async (service, faults) => {
          const acknowledged: Answer[] = [];
          for (const operation of SUBMIT_OPERATIONS) {
            await waitForSignature(service);
            faults.failNext(operation, mode, { skip: operation.startsWith("tx.insert") ? 3 : 0 });
            const answers = await Promise.all(
              Array.from({ length: 24 }, (_, i) => submit(service, `${operation}-${i}`)),
            );
            assert.equal(faults.waiting, 0);
            assert.ok(
              answers.some(({ status }) => status === 503),
              `${operation} failed and nobody was told`,
            );
            for (const { status } of answers) assert.ok(status === 200 || status === 503);
            acknowledged.push(...answers.filter(({ status }) => status === 200));
            const again = await Promise.all(Array.from({ length: 24 }, (_, i) => submit(service, `${operation}-${i}`)));
            assert.deepEqual(new Set(again.map(({ status }) => status)), new Set([200]));
            answers.forEach((answer, i) => {
              if (answer.status === 200) assert.equal(again[i]?.body.id, answer.body.id);
            });
            acknowledged.push(...again);
          }
          await service.restart();
          await assertThere(service, acknowledged.slice(0, 40));
          const { size } = await service.runtime.host.ledger.head();
          const distinct = new Set(acknowledged.map(({ body }) => body.id)).size;
          assert.equal(distinct, SUBMIT_OPERATIONS.length * 24);
          assert.equal(size, distinct + 3, "two keys, a policy set and each action once");
        }));
    }

    for (const operation of VOTE_OPERATIONS) {
      for (const mode of MODES) {
        test(`approval: ${operation} fails, ${mode}`, () =>
          withService(create, async (service, faults) => {
            const id = (await service.call("POST", "/v1/actions", { body: ASKED })).body.id as string;
            const token = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body
              .approval_token as string;
            const vote = () =>
              service.call("POST", `/v1/actions/${id}/approval`, {
                key: service.admin,
                body: { token, approve: true },
              });
            await waitForSignature(service);
            faults.failNext(operation, mode);
            assert.equal((await vote()).status, 503);
            assert.equal(faults.waiting, 0, `${operation} is no longer on the way of a vote`);
            const second = await vote();
            const persisted = operation === "commit" && mode === "persisted";
            assert.deepEqual(second.status, persisted ? 409 : 200, JSON.stringify(second.body));
            await service.restart();
            const row = await service.call("GET", `/v1/actions/${id}`);
            assert.equal(row.body.status, "approved");
            assert.equal(row.body.approvals.length, 1);
          }));
      }
    }

    test("a read that fails is 503 and the next one works", () =>
      withService(create, async (service, faults) => {
        const { id } = (await submit(service, "x")).body;
        faults.failNext("action", "not-persisted");
        assert.equal((await service.call("GET", `/v1/actions/${id}`)).body.code, "STORAGE_UNAVAILABLE");
        assert.equal((await service.call("GET", `/v1/actions/${id}`)).status, 200);
      }));

    test("a checkpoint that cannot be stored is stored with the next batch", () =>
      withService(create, async (service, faults) => {
        await submit(service, "x");
        await waitForSignature(service);
        faults.failNext("tx.putCheckpoint", "not-persisted");
        await service.runtime.host.ledger.checkpoint();
        await submit(service, "y");
        await until("the signature could not be stored", () => faults.waiting === 0);
        assert.equal((await submit(service, "z")).status, 200);
        await service.restart();
        const stored = await service.storage.checkpoint();
        assert.equal(stored?.size, (await service.storage.head()).size);
      }));

    test("a waiter is notified of a vote whose commit reported an error", () =>
      withService(create, async (service, faults) => {
        const id = (await service.call("POST", "/v1/actions", { body: ASKED })).body.id as string;
        const token = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body
          .approval_token as string;
        const waiting = service.call("GET", `/v1/actions/${id}?wait=20`);
        await waitForSignature(service);
        faults.failNext("commit", "persisted");
        assert.equal(
          (
            await service.call("POST", `/v1/actions/${id}/approval`, {
              key: service.admin,
              body: { token, approve: true },
            })
          ).status,
          503,
        );
        // The in-memory tail receives the entry with the next commit.
        await submit(service, "next");
        assert.equal((await waiting).body.status, "approved");
      }));
  });
}

test("a job that fails by its own fault does not fail the other jobs of its batch", () =>
  withService(
    () => memoryStorage(),
    async (service) => {
      const { ledger } = service.runtime.host;
      const bad = ledger.transact(async (tx) => {
        await tx.putMeta("half", "done");
        throw new TypeError("a bug");
      });
      const good = submit(service, "beside");
      await assert.rejects(bad, TypeError);
      assert.equal((await good).status, 200);
      assert.equal(await service.storage.meta("half"), null, "what the failed job wrote must be gone");
    },
  ));

for (const { name, create } of stores) {
  test(`a job with a value that no store can save does not fail the other jobs of its batch (${name})`, () =>
    withService(create, async (service) => {
      const { ledger } = service.runtime.host;
      const jobs = [
        ...Array.from({ length: 5 }, (_, i) => submit(service, `early-${i}`)),
        assert.rejects(
          ledger.transact((tx) => tx.putMeta("half", "\ud800")),
          (error) => (error as { kind?: string }).kind === "invalid",
        ),
        ...Array.from({ length: 5 }, (_, i) => submit(service, `late-${i}`)),
      ];
      const answers = (await Promise.all(jobs)).filter((answer) => answer !== undefined) as Answer[];
      assert.deepEqual(
        answers.map(({ status }) => status),
        Array.from({ length: 10 }, () => 200),
      );
      await assertThere(service, answers);
    }));
}

test("a head that another program changed halts the ledger", needs("provenance"), async () => {
  const service = await startService({ broken: true, storage: () => memoryStorage() });
  try {
    assert.equal((await submit(service, "a")).status, 200);
    const head = await service.storage.head();
    await service.storage.write(async (tx) => {
      const entry = (await tx.entries(0, 1))[0];
      assert.ok(entry !== undefined);
      await tx.append([{ ...entry, seq: head.size, leaf_hash: new Uint8Array(32).fill(7) }], [], {
        ...head,
        size: head.size + 1,
        root: new Uint8Array(32).fill(9),
      });
    });
    assert.equal((await submit(service, "b")).status, 503);
    assert.equal((await submit(service, "c")).status, 503);
    assert.ok(service.logged.some((line) => line.includes("does not continue what this process committed")));
    assert.equal(
      (await service.call("GET", "/v1/provenance/checkpoint", { key: service.admin })).status,
      503,
      "another history must not be signed",
    );
    assert.equal((await service.call("GET", "/readyz", { key: null })).status, 503);
  } finally {
    await service.close();
  }
});

describe("a head that another program changed to one of the same size halts the ledger", () => {
  const changes: [string, (head: LedgerHead) => Partial<LedgerHead>][] = [
    ["its right edge", ({ edge }) => ({ edge: edge.map((_, i) => new Uint8Array(32).fill(i)) })],
    ["its policy set", () => ({ policy_set: null })],
    ["its digest of followed entries", () => ({ followed_digest: new Uint8Array(32) })],
    ["its epoch", ({ epoch }) => ({ epoch: epoch + 1 })],
  ];
  for (const [what, change] of changes) {
    test(what, async () => {
      const service = await startService({ broken: true, storage: () => memoryStorage() });
      try {
        await submit(service, "a");
        const head = await service.storage.head();
        await service.storage.write((tx) => tx.append([], [], { ...head, ...change(head) }));
        assert.equal((await submit(service, "b")).status, 503);
        assert.equal((await service.storage.head()).size, head.size);
        assert.ok(service.logged.some((line) => line.includes("does not continue what this process committed")));
      } finally {
        await service.close();
      }
    });
  }
});
