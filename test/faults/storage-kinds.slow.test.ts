/** A kind that somebody altered or took out is said by no action that comes after. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { StorageError, type ActionRow } from "../../src/contract/storage.ts";
import { actionRow, fullActionRow } from "../../src/testing/suite/rows.ts";
import { chance } from "../support/chance.ts";
import { rawSqlite } from "../support/raw-store.ts";
import { ALLOWED, startService } from "../support/service.ts";
import { temporaryFolder } from "./children/spawn.ts";

const KINDS = "action_kinds";

describe("kinds behind the store's back", () => {
  for (const change of ["altered", "taken out", "put in another's place"] as const)
    it(`that were ${change} while the store is open: actions that come then are what they were decided`, async () => {
      const path = join(temporaryFolder(), "assent.db");
      const storage = sqliteStorage({ path });
      await storage.open();
      const rows: ActionRow[] = [];
      const insert = (count: number): Promise<void> =>
        storage.write(async (tx) => {
          for (let i = 0; i < count; i++) {
            const n = rows.length;
            const row = actionRow(n, { rule: n % 2 === 0 ? "small" : "large", reason: n % 2 === 0 ? "go" : "wait" });
            rows.push(row);
            await tx.insertAction(row);
          }
        });
      await insert(6);
      const raw = await rawSqlite(path);
      const table = raw.tables.find(({ name }) => name === KINDS);
      assert.ok(table !== undefined);
      const kinds = await raw.rows(table);
      assert.equal(kinds.length, 2);
      const [small, large] = kinds as [(typeof kinds)[0], (typeof kinds)[0]];
      if (change === "altered") await raw.set(table, small, "kind_rule", "another");
      else for (const kind of kinds) await raw.remove(table, kind);
      if (change === "put in another's place") {
        await raw.insert(table, { ...small, number: large["number"] as number });
        await raw.insert(table, { ...large, number: small["number"] as number });
      }
      await raw.close();
      const first = rows.length;
      await insert(12);
      await storage.close();
      await storage.open();
      await insert(6);
      for (const row of rows.slice(first)) assert.deepEqual(await storage.action(row.id), row);
      await storage.close();
    });

  it("come with rows of whatever columns are empty, of which none may be missing", async () => {
    const path = join(temporaryFolder(), "assent.db");
    const storage = sqliteStorage({ path });
    await storage.open();
    const { random } = chance(1);
    const { decision, policy, rule, policy_version, policy_hash, risk_level, reason, reason_code } = actionRow(0);
    const kind = { decision, policy, rule, policy_version, policy_hash, risk_level, reason, reason_code };
    // More combinations than statements are kept for.
    const rows = Array.from({ length: 200 }, (_, n) => {
      const own = Object.entries(actionRow(n)).map(([name, value]) => [
        name,
        value === null && random(2) === 0 ? fullActionRow(n)[name as keyof ActionRow] : value,
      ]);
      return { ...(Object.fromEntries(own) as ActionRow), ...kind };
    });
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertAction(row);
    });
    for (const row of rows) assert.deepEqual(await storage.action(row.id), row);
    const raw = await rawSqlite(path);
    const table = raw.tables.find(({ name }) => name === "actions");
    assert.ok(table !== undefined);
    assert.equal((await raw.rows(table)).filter((row) => row["kind"] === null).length, 1);
    await raw.close();
    const { result: _, ...missing } = actionRow(200);
    await assert.rejects(
      storage.write((tx) => tx.insertAction(missing as ActionRow)),
      (error) => error instanceof StorageError && error.kind === "invalid" && /result.*missing/.test(error.message),
    );
    await storage.close();
  });

  it("are the fault of their own actions alone: what is submitted then may start", async (t) => {
    let path = "";
    const service = await startService({
      broken: true,
      storage: (folder) => sqliteStorage({ path: (path = join(folder, "kinds.db")) }),
    });
    t.after(() => service.close());
    const submit = async (i: number): Promise<string> => {
      const { status, body } = await service.call("POST", "/v1/actions", { body: { ...ALLOWED, context: { i } } });
      assert.equal(status, 200);
      return body.id;
    };
    const started = async (id: string): Promise<number> =>
      (await service.call("POST", `/v1/actions/${id}/start`, { key: service.agent, body: {} })).status;
    const before: string[] = [];
    for (let i = 0; i < 4; i++) before.push(await submit(i));
    const raw = await rawSqlite(path);
    const table = raw.tables.find(({ name }) => name === KINDS);
    assert.ok(table !== undefined);
    for (const kind of await raw.rows(table)) await raw.remove(table, kind);
    await raw.close();
    const after: string[] = [];
    for (let i = 4; i < 10; i++) after.push(await submit(i));
    assert.equal(await started(before[3] as string), 409, "it says nothing of its decision any more");
    for (const id of after) assert.equal(await started(id), 200);
  });
});
