/** With one damaged bundle, only the actions in that bundle are unavailable. All other actions continue. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { needs } from "../support/features.ts";
import { tableOf } from "../support/engines.ts";
import { rawSqlite } from "../support/raw-store.ts";
import {
  setSection,
  ALLOWED,
  approve,
  ASKED,
  startService,
  type Service,
  type ServiceOptions,
} from "../support/service.ts";
import { until } from "../support/wait.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface Damaged {
  service: Service;
  /** An action in the damaged bundle. */
  allowed: string;
  approved: string;
  /** An action after the damaged bundle. */
  later: string;
}

/** Starts a service whose first 256 entries are in a bundle that cannot be read. */
async function damaged(t: TestContext, options: ServiceOptions = {}): Promise<Damaged> {
  let path = "";
  const service = await startService({
    ...options,
    broken: true,
    change(config) {
      config.ledger.verify_at_start = 1;
      options.change?.(config);
    },
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path, unbundledEntries: 0 });
    },
  });
  t.after(() => service.close());
  const submit = async (body: object): Promise<string> =>
    (await service.call("POST", "/v1/actions", { body })).body.id as string;
  const allowed = await submit(ALLOWED);
  const approved = await submit(ASKED);
  await approve(service, approved);
  while ((await service.storage.head()).size < 256) await submit({ ...ALLOWED, context: { filled: true } });
  const later = await submit(ASKED);
  await approve(service, later);
  while (((await service.storage.upkeep?.(250)) ?? 0) > 0);
  const raw = await rawSqlite(path);
  const table = tableOf(raw, "entry_bundles");
  const [bundle] = await raw.rows(table);
  assert.ok(bundle !== undefined);
  await raw.set(table, bundle, "bytes", new TextEncoder().encode("damaged"));
  await raw.close();
  return { service, allowed, approved, later };
}

const statusOf = async ({ storage }: Service, id: string): Promise<string | undefined> =>
  (await storage.action(id))?.status;

test("rejects requests for its own actions, and decides the others of the batch", async (t) => {
  const { service, allowed } = await damaged(t);
  for (let i = 0; i < 5; i++) {
    const [start, ...submissions] = await Promise.all([
      service.call("POST", `/v1/actions/${allowed}/start`, { body: {} }),
      service.call("POST", "/v1/actions", { body: ALLOWED }),
      service.call("POST", "/v1/actions", { body: ASKED }),
    ]);
    assert.deepEqual([start.status, start.body.code], [409, "RECORD_ALTERED"]);
    assert.deepEqual(
      submissions.map(({ status }) => status),
      [200, 202],
    );
  }
});

test("is skipped by the job that expires actions without a start", async (t) => {
  const { service, approved, later } = await damaged(t);
  service.clock.now += 2 * HOUR;
  await service.restart();
  await until("the action after the bundle is expired", async () => (await statusOf(service, later)) === "expired");
  assert.equal(await statusOf(service, approved), "approved");
  assert.ok(service.logged.some((line) => line.includes("differs from the ledger") && line.includes(approved)));
});

test("does not stop the erasure of later actions", needs("retention"), async (t) => {
  const { service, allowed, later } = await damaged(t, {
    change: (config) => setSection(config, "retention", { request_days: 30 }),
  });
  service.clock.now += 31 * DAY;
  await service.restart();
  await until(
    "the action after the bundle is erased",
    async () => (await service.storage.action(later))?.erased_at !== null,
  );
  assert.equal((await service.storage.action(allowed))?.erased_at, null, "what was altered is evidence");
});

test("is reported by the audit, which continues after it", async (t) => {
  const { service, later } = await damaged(t);
  const vkey = (await service.storage.meta("log_vkey")) ?? undefined;
  const faults = async (): Promise<string[]> => (await auditStore(service.storage, vkey)).faults;
  const before = await faults();
  assert.match(before.join("\n"), /\d+ of the entries 0 to 255 cannot be read: entry \d+ was altered/);
  assert.doesNotMatch(before.join("\n"), /the entries hash to|the store has \d+/);
  const raw = await rawSqlite(join(service.folder, "assent.db"));
  t.after(() => raw.close());
  const entries = tableOf(raw, "entries");
  const row = (await raw.rows(entries)).find(({ action_id }) => action_id === later);
  assert.ok(row !== undefined && Number(row["seq"]) >= 256);
  await raw.set(entries, row, "bytes", new TextEncoder().encode("{}"));
  assert.match((await faults()).join("\n"), new RegExp(`entry ${Number(row["seq"])} was altered`));
});
