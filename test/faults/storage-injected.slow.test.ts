/** Tests the fault points themselves: each fires once, in the documented way, on any storage. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { StorageError, type Storage, type StorageReader, type StorageTransaction } from "../../src/contract/storage.ts";
import { memoryStorage, withFaults, type FaultMode, type Faults } from "../../src/testing/index.ts";
import {
  actionRow,
  agentRow,
  appendEntries,
  approvalRow,
  deliveryRow,
  documentRow,
  leafHashHex,
  idempotencyRow,
  keyRow,
  policyRow,
  policySetRow,
  BASE_TIME,
  HISTORY_SPAN,
  limitUseRow,
  pastActionRow,
  policyVersionRow,
} from "../../src/testing/suite/rows.ts";
import { storeFolder } from "./children/spawn.ts";
import { person } from "../support/service.ts";

const folder = storeFolder();
let files = 0;
/** The fault points do not depend on the storage, so a real storage is tested with one operation of each kind. */
const ONE_OF_EACH_KIND = ["open", "close", "ping", "lease", "begin", "commit", "head", "tx.head", "tx.insertKey"];
const storages: [string, readonly string[], () => Storage & { faults: Faults }][] = [
  ["memory", memoryStorage().faults.operations(), memoryStorage],
  ["sqlite", ONE_OF_EACH_KIND, () => withFaults(sqliteStorage({ path: join(folder, `${++files}`, "assent.db") }))],
];
const modes: FaultMode[] = ["not-persisted", "persisted"];

const isInjected = (error: unknown): boolean =>
  error instanceof StorageError && error.message.startsWith("injected fault: ");

/** Calls every read method once. */
async function readAll(reader: StorageReader): Promise<void> {
  await reader.head();
  await reader.checkpoint();
  await reader.entries(0, 1);
  await reader.entryByHash(new Uint8Array(32));
  await reader.entriesOfAction("a");
  await reader.leafHashes(0, 1);
  await reader.tile(0, 0);
  await reader.tileRoots(0, 0, 1);
  await reader.action("a");
  await reader.actionsById(["a"]);
  await reader.actions({ visibility: { all: true }, limit: 1 });
  await reader.decisionSpan(0, 1);
  await reader.decisions({ visibility: { all: true }, from_seq: 0, before_seq: 1, since: 0, until: 1, limit: 1 });
  await reader.overdueActions(0, 1);
  await reader.pendingActions({ all: true }, { expires_at: 0, decision_seq: 0 }, 1);
  await reader.followedEntries(0, 1);
  await reader.openAction("a", "b", 0);
  await reader.rejectedAction("b", 0);
  await reader.approvedActions({ approved_until: 0, decision_seq: 0 }, 1);
  await reader.openActionsOf({ agent_id: "agent-1" }, 0, 1);
  await reader.pendingCount({ all: true }, 0);
  await reader.approvalRequests("a", 0, 1, 1);
  await reader.oldestPending(0);
  await reader.nextExpiry();
  await reader.approvals("a");
  await reader.approvalsOfActions(["a"]);
  await reader.analytics({ visibility: { all: true }, boundaries: [0, 1] });
  await reader.idempotency("a", "b", "c");
  await reader.idempotencies([{ key_id: "a", route: "b", idempotency_key: "c" }]);
  await reader.idempotencyBefore(0, { created_at: -1, key_id: "", route: "", idempotency_key: "" }, 1);
  await reader.keyByHash("a");
  await reader.key("a");
  await reader.keys();
  await reader.agent("a");
  await reader.agents({ limit: 1 });
  await reader.policy("a");
  await reader.policyByName("a");
  await reader.policies();
  await reader.policyVersion("a", 1);
  await reader.policyVersions("a");
  await reader.policySet("a");
  await reader.delivery("a");
  await reader.deliveries({ limit: 1 });
  await reader.deliveriesOfAction("a");
  await reader.dueDeliveries(0, 1);
  await reader.deliveryBacklog();
  await reader.nextScheduledDelivery();
  await reader.limitUsed("a", "b", "c", 0);
  await reader.pastActions({ ...HISTORY_SPAN, limit: 1 });
  await reader.limitsUsed([{ policy: "a", limit_name: "b", subject: "c", since: 0 }]);
  await reader.limitUses({ policy: "a", limit_name: "b", subject: "c", since: 0 }, 1);
  await reader.document("a", "b");
  await reader.documents({ plugin: "a", prefix: "", limit: 1 });
  await reader.meta("a");
}

async function writeAll(tx: StorageTransaction): Promise<void> {
  await readAll(tx);
  await appendEntries(tx, 1);
  await tx.putCheckpoint(1, "one");
  await tx.insertAction(actionRow(0));
  await tx.updateAction("action-0", { status: "allowed" }, { status: "executing", updated_at: BASE_TIME });
  await tx.noteAsked("action-0", BASE_TIME, null);
  await tx.eraseActionPart("action-0", "meta");
  await tx.eraseAction("action-0", BASE_TIME);
  await tx.insertApproval(approvalRow("action-0", person("dana")));
  await tx.deleteApprovals("action-0");
  await tx.insertIdempotency(idempotencyRow("a"));
  await tx.deleteIdempotency("a", "b", "c");
  await tx.insertKey(keyRow(1));
  await tx.revokeKey("key-1", BASE_TIME);
  await tx.touchKey("key-1", BASE_TIME);
  await tx.insertAgent(agentRow(1));
  await tx.updateAgent(agentRow(1, { version: 2 }));
  await tx.insertPolicy(policyRow(1));
  await tx.updatePolicy(policyRow(1));
  await tx.insertPolicyVersion(policyVersionRow("policy-1", 1));
  await tx.putPolicySet(policySetRow(1));
  const { position: _, ...delivery } = deliveryRow(1);
  await tx.insertDelivery(delivery);
  await tx.updateDelivery(delivery.id, delivery, { state: "dead", updated_at: BASE_TIME });
  await tx.deferDeliveries("mail a@example.com", {
    except: "none",
    events: BASE_TIME,
    others: BASE_TIME,
    last_error: "away",
    updated_at: BASE_TIME,
  });
  await tx.hastenDeliveries("mail a@example.com", 0, BASE_TIME);
  await tx.releaseDeliveries(BASE_TIME);
  await tx.pruneDeliveries(BASE_TIME, 1);
  await tx.insertLimitUse(limitUseRow(1));
  await tx.releaseLimitUses("action-1");
  await tx.pruneLimitUses(BASE_TIME, 1);
  await tx.insertPastAction(pastActionRow(1));
  await tx.movePastAction("action-1", BASE_TIME + 9);
  await tx.removePastAction("action-1");
  await tx.prunePastActions(BASE_TIME, 1);
  const version = await tx.putDocument(documentRow("b", { plugin: "a" }), null);
  await tx.deleteDocument("a", "b", version ?? 0);
  await tx.putMeta("done", leafHashHex("x"));
}

async function everything(storage: Storage): Promise<void> {
  await storage.open();
  await storage.ping();
  await storage.lease("job", "holder", 1);
  await storage.release("job", "holder");
  await storage.leases(1);
  await readAll(storage);
  await storage.write(writeAll);
  await storage.close();
}

for (const [name, operations, create] of storages) {
  describe(`fault points around ${name}`, () => {
    it("cover every operation of the contract", async () => {
      const storage = create();
      await everything(storage);
      for (const operation of storage.faults.operations()) assert.ok(storage.faults.calls(operation) > 0, operation);
    });

    for (const operation of operations) {
      for (const mode of modes) {
        it(`${operation} fails once, ${mode}`, async () => {
          const storage = create();
          storage.faults.failNext(operation, mode);
          await assert.rejects(everything(storage), isInjected);
          assert.deepEqual([storage.faults.count, storage.faults.waiting], [1, 0]);
          await storage.open();
          const committed = (operation === "commit" && mode === "persisted") || operation === "close";
          assert.equal(await storage.meta("done"), committed ? leafHashHex("x") : null);
          assert.equal((await storage.head()).size, committed ? 1 : 0);
          if (!committed) await storage.write(writeAll);
          assert.equal((await storage.entries(0, 9)).length, 1);
          await storage.close();
        });
      }
    }

    it("roll back the transaction even if its callback catches the error", async () => {
      for (const mode of modes) {
        const storage = create();
        await storage.open();
        storage.faults.failNext("tx.insertKey", mode);
        await assert.rejects(
          storage.write(async (tx) => {
            await tx.insertKey(keyRow(1)).catch(() => undefined);
            await assert.rejects(tx.putMeta("a", "b"), isInjected);
          }),
          isInjected,
        );
        assert.deepEqual(await storage.keys(), []);
        assert.equal(await storage.meta("a"), null);
        await storage.close();
      }
    });

    it("fail the requested call with the requested kind of error, and can be cancelled", async () => {
      const storage = create();
      await storage.open();
      storage.faults.failNext("commit", "not-persisted", { skip: 2, kind: "full" });
      const outcomes: string[] = [];
      for (let i = 0; i < 4; i++) {
        outcomes.push(
          await storage
            .write((tx) => tx.putMeta("n", String(i)))
            .then(
              () => "ok",
              (error: StorageError) => error.kind,
            ),
        );
      }
      assert.deepEqual(outcomes, ["ok", "ok", "full", "ok"]);
      storage.faults.failNext("ping", "not-persisted");
      storage.faults.clear();
      await storage.ping();
      assert.throws(() => storage.faults.failNext("tx.nothing", "persisted"), /unknown operation "tx.nothing"/);
      await storage.close();
    });
  });
}
