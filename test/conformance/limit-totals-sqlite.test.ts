/** Data that SQLite derives from uses and actions: running totals of limits, and case-folded names of agents. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { computeLimitTotals, MAX_USES_PER_TOTAL } from "../../plugins/storage-sql/limits.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { actionRow, BASE_TIME, limitUseRow } from "../../src/testing/suite/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const USES = 20_000;

describe("totals of a limit", () => {
  const folder = temporaryFolder("assent-totals-");
  const path = join(folder, "assent.db");
  const storage = sqliteStorage({ path });
  const SPAN = ["payments", "refunds a day", "agent-1"] as const;
  /** Runs SQL in a separate connection, as another program with access to the file. */
  async function inFile<T>(work: (run: (sql: string) => Record<string, unknown>[]) => T): Promise<T> {
    const db = new (await loadSqlite()).DatabaseSync(path);
    try {
      return work((sql) => db.prepare(sql).all() as Record<string, unknown>[]);
    } finally {
      db.close();
    }
  }

  before(async () => {
    await storage.open();
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1, { agent_id: "Bot", status: "allowed", approved_until: BASE_TIME + 9 }));
      for (let n = 0; n < USES; n++)
        await tx.insertLimitUse(
          limitUseRow(n, { at: BASE_TIME + Math.floor(n / 4), until: BASE_TIME + 10_000_000, amount: 3 }),
        );
    });
    for (let i = 0; i < 4; i++) await storage.write((tx) => tx.limitUsed(...SPAN, BASE_TIME));
  });
  after(async () => {
    await storage.close();
  });

  it("keep the number of uses that are read one by one small", async () => {
    const rows = await inFile((run) => {
      const [totals] = run("select count(*) as n, max(uses) as most, max(to_at) as end from limit_totals");
      const loose = run(`select count(*) as n from limit_uses where at >= ${Number(totals?.["end"])}`)[0]?.["n"];
      return { totals: Number(totals?.["n"]), most: Number(totals?.["most"]), loose: Number(loose) };
    });
    assert.ok(rows.most <= MAX_USES_PER_TOTAL, JSON.stringify(rows));
    // Reads the uses after the last total, and the uses in the total that contains the start of the span.
    assert.ok(rows.loose + rows.most <= 3 * MAX_USES_PER_TOTAL, JSON.stringify(rows));
    assert.ok(rows.totals <= USES / MAX_USES_PER_TOTAL + 2, JSON.stringify(rows));
    assert.deepEqual(await storage.limitUsed(...SPAN, BASE_TIME + 1234), {
      count: USES - 4936,
      sum: 3 * (USES - 4936),
    });
    assert.deepEqual(await storage.inspect?.(), []);
  });

  it("are checked by the audit, and so are the folded names of agents", async () => {
    const [first] = await inFile((run) => run("select from_at from limit_totals order by from_at limit 1 offset 3"));
    const where = `where from_at = ${Number(first?.["from_at"])}`;
    const isFault = async (): Promise<void> =>
      assert.match((await storage.inspect?.())?.join() ?? "", /differs from the sum of its uses/);
    for (const column of ["uses", "amount", "to_at"]) {
      await inFile((run) => run(`update limit_totals set ${column} = ${column} - 1 ${where}`));
      await isFault();
      await inFile((run) => run(`update limit_totals set ${column} = ${column} + 1 ${where}`));
      assert.deepEqual(await storage.inspect?.(), []);
    }
    await inFile((run) => run(`delete from limit_totals ${where}`));
    await isFault();
    await inFile((run) => run("delete from limit_totals"));
    assert.deepEqual(await storage.inspect?.(), []);
    for (const fold of ["null", "'other'"]) {
      await inFile((run) => run(`update actions set agent_fold = ${fold}`));
      assert.deepEqual(await storage.inspect?.(), ['the column agent_fold of actions of the agent "Bot" was altered']);
    }
  });
});

describe("totalsOf", () => {
  const uses = (count: number, amount: number, at: (n: number) => number) =>
    Array.from({ length: count }, (_, n) => ({ at: at(n), amount }));

  it("sums up the oldest uses without gaps, and keeps uses of one millisecond together", () => {
    const totals = computeLimitTotals(
      uses(3000, 1, (n) => Math.floor(n / 7)),
      null,
    );
    assert.ok(totals.length >= 4);
    totals.forEach(({ from_at, to_at, uses: n }, i) => {
      assert.equal(from_at, totals[i - 1]?.to_at ?? 0);
      assert.equal(n, (to_at - from_at) * 7);
      assert.ok(n <= MAX_USES_PER_TOTAL);
    });
    assert.deepEqual(
      computeLimitTotals(
        uses(MAX_USES_PER_TOTAL, 1, (n) => n),
        null,
      ),
      [],
    );
  });

  it("creates no total above 2^53 - 1, and stops at a millisecond whose own sum is larger", () => {
    const large = Number.MAX_SAFE_INTEGER / 4;
    const totals = computeLimitTotals(
      uses(2000, Math.floor(large), (n) => n),
      null,
    );
    assert.ok(totals.length > 100 && totals.every(({ amount }) => amount <= Number.MAX_SAFE_INTEGER));
    const same = uses(2000, Number.MAX_SAFE_INTEGER, () => 5);
    assert.deepEqual(computeLimitTotals(same, null), []);
  });
});
