/** How one job of a batch can affect the others, the ledger and the head. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { ENTRY_TYPES, type PolicySetEntry } from "../../src/domain/entries.ts";
import { emptyPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { newPolicy, recordedPolicyState, toPolicyChange } from "../../src/domain/recorded-policies.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { createAgentService } from "../../src/identity/agents.ts";
import { Directory } from "../../src/identity/directory.ts";
import { type OpenLedger } from "../../src/ledger/index.ts";
import { States } from "../../src/ledger/states.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { agentRow } from "../../src/testing/suite/rows.ts";
import { storeFolder } from "../faults/children/spawn.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";

const folder = storeFolder();
/** Makes agents an entry type that every process follows. */
const FOLLOWED = States.initial([{ name: "agents", initial: 0, on: { agent: (count) => count } }]);
let stores = 0;

async function opened(): Promise<{ ledger: OpenLedger; storage: Storage }> {
  const storage = sqliteStorage({ path: join(folder, `${++stores}`, "assent.db") });
  await storage.open();
  const ledger = await openLedgerOn(storage, { states: () => FOLLOWED });
  return { ledger, storage };
}

test("a record that a job did not await is never after the head", async () => {
  const { ledger, storage } = await opened();
  for (let turns = 0; turns < 120; turns++) {
    await ledger.transact(async (tx) => {
      void (async () => {
        for (let i = 0; i < turns; i++) await Promise.resolve();
        tx.record(entry(1000 + turns));
      })().catch(() => undefined);
      for (let i = 0; i < 5; i++) tx.record(entry(i));
    });
    const { size } = await storage.head();
    assert.equal((await storage.entries(size, size + 9)).length, 0, `behind the head after ${turns} turns`);
  }
  await ledger.close();
  await storage.close();
});

test("a record after its batch is refused, and returns no hash", async () => {
  const { ledger, storage } = await opened();
  let late: () => unknown = () => undefined;
  await ledger.transact(async (tx) => {
    late = () => tx.record(entry(2));
    tx.record(entry(1));
  });
  assert.throws(late, /has ended/);
  await ledger.close();
  await storage.close();
});

test("a job that increases the epoch without a record fails alone", async () => {
  const { ledger, storage } = await opened();
  const done = await Promise.allSettled([
    ledger.transact(async (tx) => tx.record(entry(1)).seq),
    ledger.transact(async (tx) => tx.increaseEpoch()),
  ]);
  assert.deepEqual(
    done.map(({ status }) => status),
    ["fulfilled", "rejected"],
  );
  assert.deepEqual([(await storage.head()).size, (await storage.head()).epoch], [1, 1]);
  await ledger.close();
  await storage.close();
});

test("an agent's changes by a failed job are not cached", async () => {
  const storage = sqliteStorage({ path: join(folder, `${++stores}`, "assent.db") });
  await storage.open();
  const directory = new Directory({ folds: [], entryTypes: ENTRY_TYPES });
  const agents = createAgentService({
    storage,
    directory,
    head: () => storage.head(),
    requireRegistered: false,
    rejectionHoldsMs: 86_400_000,
    groups: { of: () => [] },
  });
  const ledger = await openLedgerOn(storage, {
    agentFacts: (...args) => agents.within(...args),
    states: () => directory.current(),
    follow: (tx, head) => directory.follow(tx, head),
  });
  const agent = agentRow(1, { metadata: "{}" });
  await ledger.transact(async (tx) => tx.recordAgent("registered", agent, null));
  await assert.rejects(
    ledger.transact(async (tx) => {
      tx.recordAgent("suspended", { ...agent, version: 2, suspended_at: tx.now }, null);
      assert.equal((await tx.agentFacts("agent-1")).agent?.suspended, true, "inside it is");
      throw new Error("lost");
    }),
    /lost/,
  );
  assert.equal((await ledger.transact((tx) => tx.agentFacts("agent-1"))).agent?.suspended, false);
  assert.equal((await agents.facts("agent-1")).agent?.suspended, false);
  await ledger.close();
  await storage.close();
});

test("a job reads the entries of earlier jobs, through every method", async () => {
  const { ledger, storage } = await opened();
  await ledger.transact(async (tx) => tx.record(entry(0)));
  const [, seen] = await Promise.all([
    ledger.transact(async (tx) => tx.record(entry(1))),
    ledger.transact(async (tx) => ({
      entries: (await tx.entries(0, 9)).map(({ seq }) => seq),
      ofType: (await tx.followedEntries(0, 9)).map(({ seq }) => seq),
      first: (await tx.followedEntries(0, 1)).map(({ seq }) => seq),
      behind: (await tx.followedEntries(1, 9)).map(({ seq }) => seq),
      others: await tx.followedEntries(9, 9),
      hashes: (await tx.leafHashes(0, 9)).length,
    })),
  ]);
  assert.deepEqual(seen, { entries: [0, 1], ofType: [0, 1], first: [0], behind: [1], others: [], hashes: 2 });
  await ledger.close();
  await storage.close();
});

test("a job that never ends fails alone, as does a job that waits for a later batch", async () => {
  const storage = sqliteStorage({ path: join(folder, `${++stores}`, "assent.db") });
  await storage.open();
  const ledger = await openLedgerOn(storage, { jobMs: 200 });
  const done = await Promise.allSettled([
    ledger.transact(async (tx) => tx.record(entry(1)).seq),
    ledger.transact(async (tx) => {
      tx.record(entry(2));
      await new Promise(() => undefined);
    }),
    ledger.transact(async (tx) => tx.record(entry(3)).seq),
    ledger.transact(() => ledger.transact(async (tx) => tx.record(entry(4)).seq)),
  ]);
  assert.deepEqual(
    done.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "rejected"],
  );
  for (const i of [1, 3]) {
    const { reason } = done[i] as PromiseRejectedResult;
    assert.ok(reason instanceof StorageError && reason.kind === "unavailable", String(reason));
    assert.match(reason.message, /did not end/);
  }
  await ledger.close();
  await storage.close();
});

test("a failed write of a policy, which its job does not await, makes only that job fail", async () => {
  const storage = memoryStorage();
  await storage.open();
  const ledger = await openLedgerOn(storage, {
    states: () => States.initial([recordedPolicyState]),
    // As the service does it, the next job reads the set that the entry activated.
    async policies(tx, digest) {
      if (digest !== null) await tx.policySet(digest);
      return { digest, compiled: emptyPolicySet(), source: null };
    },
  });
  storage.faults.failNext("tx.insertPolicyVersion", "not-persisted", { kind: "invalid" });
  const text = { definition: "{}", yaml: null };
  const policy = { ...newPolicy("p1", "one"), latest_version: 1, active_version: 1 };
  const settled = await Promise.allSettled([
    ledger.transact(async (tx) => {
      const change: PolicySetEntry = {
        type: "policy_set",
        v: 1,
        at: toRfc3339(tx.now),
        previous: null,
        policy_set: "ab".repeat(32),
        policy_count: 1,
        policies: [{ policy: "one", version: 1 }],
        source: { kind: "api" },
        changes: [toPolicyChange(policy, text)],
        by: null,
      };
      tx.recordPolicies(change, new Map([["p1", text]]), "{}");
    }),
    ledger.transact(async () => "answered"),
  ]);
  assert.deepEqual(
    settled.map(({ status }) => status),
    ["rejected", "fulfilled"],
  );
  await ledger.close();
});
