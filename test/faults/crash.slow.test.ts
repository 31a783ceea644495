/**
 * Kills a process with SIGKILL at random times under load. After each restart, every acknowledged decision must exist;
 * at the end, each has a proof that verifies offline, and the full audit passes. CRASHES=200 runs more crashes; SEED
 * repeats the times of a run.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { verifyProofText } from "../../src/cli/verify.ts";
import { createAssent, type ActionRecord, type Assent } from "../../clients/typescript/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { ALLOWED, FEW_POLICIES } from "../support/service.ts";
import { startProcess, stopProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CRASHES = Number(process.env["CRASHES"] ?? 12);
const SEED = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const CLIENTS = 12;
const ADMIN = "crash-test-admin-key-with-more-than-32-characters";

/** Creates a random generator (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

test(`${CRASHES} times SIGKILL under load lose nothing that was acknowledged`, async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const next = random(SEED);
  const folder = temporaryFolder("assent-crash-");
  const env = { ASSENT_DATA: folder, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN };
  const acknowledged = new Map<string, ActionRecord>();
  let unanswered: string[] = [];
  try {
    for (let crash = 0; crash <= CRASHES; crash++) {
      const service = await startProcess(env);
      const client = createAssent({ url: service.url, apiKey: ADMIN });
      // Requests that were in flight at the kill: their idempotency key returns one action, whether or not it was
      // recorded before the kill.
      for (const key of unanswered) remember(acknowledged, await client.submit(ALLOWED, { idempotencyKey: key }), key);
      unanswered = [];
      for (const view of newest(acknowledged, 25)) {
        const found = await client.action(view.id);
        assert.equal(
          found.decision_hash,
          view.decision_hash,
          `the acknowledged action ${view.id} changed or is gone after crash ${crash}`,
        );
      }
      if (crash === CRASHES) {
        await verifyAll(client, acknowledged);
        assert.equal(await stopProcess(service), 0, "a graceful stop ends with 0");
        break;
      }
      const load = Array.from({ length: CLIENTS }, (_, i) =>
        submitUntilDead(
          createAssent({ url: service.url, apiKey: ADMIN, retries: 0 }),
          `${crash}-${i}`,
          acknowledged,
          unanswered,
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, 5 + next() * 250));
      assert.equal(await stopProcess(service, "SIGKILL"), "SIGKILL");
      await Promise.all(load);
    }
    t.diagnostic(`${acknowledged.size} decisions acknowledged`);
    assert.ok(acknowledged.size > CRASHES * 5, "the load was too small to say anything");
    const storage = sqliteStorage({ path: join(folder, "assent.db") });
    await storage.open();
    try {
      const report = await auditStore(storage, (await storage.meta("log_vkey")) ?? undefined);
      assert.deepEqual(report.faults, []);
      const actions = await storage.actions({ visibility: { all: true }, limit: acknowledged.size + 1_000 });
      assert.equal(new Set(actions.map(({ id }) => id)).size, actions.length);
      assert.equal(
        actions.length,
        acknowledged.size,
        "every recorded action was acknowledged in the end, and none twice",
      );
    } finally {
      await storage.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/**
 * Submits until the service dies. The client does not retry: unanswered requests are stored, and sent again after the
 * restart.
 */
async function submitUntilDead(
  client: Assent,
  name: string,
  acknowledged: Map<string, ActionRecord>,
  unanswered: string[],
): Promise<void> {
  for (let n = 0; ; n++) {
    const key = `${name}-${n}`;
    try {
      remember(acknowledged, await client.submit(ALLOWED, { idempotencyKey: key }), key);
    } catch {
      unanswered.push(key);
      return;
    }
  }
}

function remember(acknowledged: Map<string, ActionRecord>, view: ActionRecord, key: string): void {
  assert.equal(view.status, "allowed");
  const known = acknowledged.get(key);
  assert.ok(known === undefined || known.id === view.id, `the key ${key} gave two actions`);
  acknowledged.set(key, view);
}

function newest(acknowledged: Map<string, ActionRecord>, count: number): ActionRecord[] {
  return [...acknowledged.values()].slice(-count);
}

async function verifyAll(client: Assent, acknowledged: Map<string, ActionRecord>): Promise<void> {
  const { keys } = await client.logKeys();
  const vkey = keys[0]?.vkey as string;
  for (const view of acknowledged.values()) {
    const { entry } = verifyProofText(JSON.stringify(await client.proof(view.decision_hash)), vkey, null);
    assert.equal(entry?.["action_id"], view.id);
  }
}
