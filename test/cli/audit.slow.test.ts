/** `assent audit` reports what it verified and nothing else: no checkpoint, no log key or an older copy is a fault. */
import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { pinLog } from "../../src/identity/pin-log.ts";
import { assentInProcess, type Run } from "../support/cli.ts";
import { openLedgerOn, signer } from "../support/ledger.ts";
import { ALLOWED, waitForSignature, startService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("assent-audit-command-");
const state = join(folder, "state");
let vkey = "";
let earlySize = 0;
let executing = "";
after(() => rmSync(folder, { recursive: true, force: true }));

before(async () => {
  const service = await startService({ change: (config) => (config.state = state), ahead: -3_600_000 });
  const copy = async (name: string): Promise<void> => {
    await waitForSignature(service);
    cpSync(service.folder, join(folder, name), { recursive: true, filter: (path) => !/assent\.db/.test(path) });
    await service.storage.backup?.(join(folder, name, "assent.db"));
  };
  try {
    vkey = service.runtime.host.ledger.vkey;
    await service.call("POST", "/v1/actions", { body: ALLOWED });
    await waitForSignature(service);
    await service.runtime.stop();
    cpSync(service.folder, join(folder, "early"), { recursive: true });
    await service.storage.open({ readOnly: true });
    earlySize = (await service.storage.head()).size;
    await service.storage.close();
    await service.restart();
    executing = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body.id as string;
    await service.call("POST", `/v1/actions/${executing}/start`, { body: {} });
    await copy("late");
  } finally {
    await service.close();
  }
});

/** Audits a copy of a data folder after `sql` ran on its store. */
async function auditCopy(
  name: string,
  sql: string,
  { own = false, args = [] }: { own?: boolean; args?: string[] } = {},
): Promise<Run & { data: string }> {
  const data = temporaryFolder("copy-", folder);
  cpSync(join(folder, name), data, { recursive: true });
  const { DatabaseSync } = await loadSqlite();
  const db = new DatabaseSync(join(data, "assent.db"));
  // Triggers reject such changes, but anyone who can write the file can drop and recreate them.
  const triggers = db.prepare("select name, sql from sqlite_schema where type = 'trigger'").all() as {
    name: string;
    sql: string;
  }[];
  for (const { name } of triggers) db.exec(`drop trigger "${name}"`);
  db.exec(sql);
  for (const trigger of triggers) db.exec(trigger.sql);
  db.close();
  const config = join(data, "assent.yaml");
  writeFileSync(config, JSON.stringify({ data, state: own ? join(data, "state") : state, agents: "any" }));
  return { ...(await assentInProcess("audit", "--config", config, ...args)), data };
}

test("a whole store: the number of signed entries, the key, and the saved checkpoints that it contains", async () => {
  const whole = await auditCopy("late", "");
  assert.equal(whole.code, 0, whole.out);
  assert.match(
    whole.out,
    new RegExp(`the newest checkpoint covers (\\d+) of \\1 entries and is signed by ${vkey.replaceAll("+", "\\+")}\n`),
  );
  assert.match(whole.out, /this key comes from the store itself/);
  assert.match(whole.out, /the store contains the checkpoint in .*copy-.*checkpoint \(size/);
  assert.match(whole.out, /the store contains the checkpoint in .*state.*\.checkpoint \(size/);
  assert.doesNotMatch(whole.err, /unsigned/);
  const pinned = await auditCopy("late", "", { args: ["--key", vkey] });
  assert.doesNotMatch(pinned.out, /this key comes from the store itself/);
});

test("entries without a checkpoint, or without the log's key, are a fault, also with the key given", async () => {
  for (const args of [[], ["--key", vkey]]) {
    for (const sql of ["delete from checkpoint", "update checkpoint set size = 0, note = null"]) {
      const unsigned = await auditCopy("late", sql, { args });
      assert.deepEqual([unsigned.code, unsigned.out.includes("signed by")], [6, false]);
      assert.match(unsigned.out, /the store has \d+ entries but no signed checkpoint: the checkpoint was removed/);
    }
    const nameless = await auditCopy("late", "delete from meta", { args });
    assert.equal(nameless.code, 6);
    assert.match(nameless.out, /does not name the log's key: it was removed/);
    assert.doesNotMatch(nameless.out, /no key yet/);
    const json = await auditCopy("late", "delete from checkpoint", { args: [...args, "--json"] });
    const { signedSize, vkey: signedBy } = JSON.parse(json.out) as { signedSize: unknown; vkey: unknown };
    assert.deepEqual([signedSize, signedBy], [null, null]);
  }
});

test("entries without a checkpoint after a minute are reported as unsigned", async () => {
  const { DatabaseSync } = await loadSqlite();
  const db = new DatabaseSync(join(folder, "early", "assent.db"));
  const [early] = db.prepare("select size, note from checkpoint").all() as { size: number; note: string }[];
  db.close();
  assert.ok(early !== undefined);
  // Valid but older: the holder of the key can rewrite later entries.
  const sql = `update checkpoint set size = ${early.size}, note = '${early.note}'`;
  const rolledBack = await auditCopy("late", sql, { args: ["--key", vkey] });
  assert.equal(rolledBack.code, 0, rolledBack.out);
  assert.match(
    rolledBack.err,
    new RegExp(`warning: the newest \\d+ entries, from entry ${early.size} on, have been unsigned since`),
  );
});

test("the service does not start on such a store", async () => {
  for (const [sql, open, words] of [
    ["delete from checkpoint", openLedgerOn, /no signed checkpoint: the checkpoint was removed/],
    [
      "delete from checkpoint; delete from meta",
      (storage: ReturnType<typeof sqliteStorage>) => pinLog(storage, null, signer.publicKey),
      /does not name the log's key/,
    ],
  ] as const) {
    const { data } = await auditCopy("late", sql);
    const storage = sqliteStorage({ path: join(data, "assent.db") });
    await storage.open();
    await assert.rejects(async () => open(storage), words);
    await storage.close();
  }
});

test("a data folder that was replaced by an older copy fails, as at the start of the service", async () => {
  const back = await auditCopy("early", "");
  assert.equal(back.code, 6, back.out);
  assert.match(
    back.out,
    new RegExp(
      `the store has ${earlySize} entries, and the stored checkpoint .*state.*\\.checkpoint was signed over \\d+: an older copy`,
    ),
  );
  // On a machine without a later checkpoint, nothing contradicts the copy.
  assert.equal((await auditCopy("early", "", { own: true })).code, 0);
});

test("an unreadable store is a fault, not a failure of the command", async () => {
  const data = temporaryFolder("damaged-", folder);
  cpSync(join(folder, "late"), data, { recursive: true });
  const config = join(data, "assent.yaml");
  writeFileSync(config, JSON.stringify({ data, state, agents: "any" }));
  const path = join(data, "assent.db");
  const { DatabaseSync } = await loadSqlite();
  const db = new DatabaseSync(path);
  const [page] = db.prepare("select rootpage from sqlite_schema where name = 'actions'").all() as {
    rootpage: number;
  }[];
  const [size] = db.prepare("pragma page_size").all() as { page_size: number }[];
  db.close();
  assert.ok(page !== undefined && size !== undefined);
  const bytes = readFileSync(path);
  bytes.fill(0xff, (page.rootpage - 1) * size.page_size, page.rootpage * size.page_size);
  writeFileSync(path, bytes);
  const damaged = await assentInProcess("audit", "--config", config);
  assert.deepEqual([damaged.code, /malformed/.test(damaged.out)], [6, true], damaged.out + damaged.err);
  writeFileSync(path, "not a database, ".repeat(500));
  const other = await assentInProcess("audit", "--config", config);
  assert.deepEqual([other.code, /not a database/.test(other.err)], [6, true], other.out + other.err);
});

test("a result on an action that reported none is a fault", async () => {
  for (const result of ['{"error":null,"meta":{},"success":true}', '{"success":true}', "null"]) {
    const forged = await auditCopy(
      "late",
      `update actions set result = '${result}' where id = unhex('${executing}', '-')`,
    );
    assert.equal(forged.code, 6, result);
    assert.match(forged.out, /its result does not match the commitment in the ledger/, result);
  }
});
