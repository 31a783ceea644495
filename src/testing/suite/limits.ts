/** Cases for the usage of limits. */
import assert from "./assert.ts";
import { type LimitSpan, type LimitUseRow, type StorageReader } from "../../contract/storage.ts";
import { BASE_TIME, limitUseRow, type DefineCase, isStorageError } from "./rows.ts";

export function limitCases(test: DefineCase): void {
  test("uses are counted by limit, subject and time", async ({ storage, reopen }) => {
    const rows = [
      limitUseRow(1),
      limitUseRow(2),
      limitUseRow(3, { at: BASE_TIME + 2 }),
      limitUseRow(4, { subject: "agent-2" }),
      limitUseRow(5, { limit_name: "other" }),
      limitUseRow(6, { policy: "shell" }),
    ];
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertLimitUse(row);
    });
    const reopened = await reopen();
    const used = (since: number, subject = "agent-1") =>
      reopened.limitUsed("payments", "refunds a day", subject, since);
    assert.deepEqual(await used(BASE_TIME), { count: 3, sum: 6_000_000 });
    assert.deepEqual(await used(BASE_TIME + 2), { count: 2, sum: 5_000_000 });
    assert.deepEqual(await used(BASE_TIME + 3), { count: 0, sum: 0 });
    assert.deepEqual(await used(BASE_TIME, "agent-2"), { count: 1, sum: 4_000_000 });
    assert.deepEqual(await used(BASE_TIME, "agent-3"), { count: 0, sum: 0 });
    const span = (since: number, subject = "agent-1") => ({
      policy: "payments",
      limit_name: "refunds a day",
      subject,
      since,
    });
    assert.deepEqual(
      await reopened.limitsUsed([
        span(BASE_TIME + 3),
        span(BASE_TIME),
        span(BASE_TIME, "agent-2"),
        span(BASE_TIME, "agent-3"),
        span(BASE_TIME + 2),
      ]),
      [
        { count: 0, sum: 0 },
        { count: 3, sum: 6_000_000 },
        { count: 1, sum: 4_000_000 },
        { count: 0, sum: 0 },
        { count: 2, sum: 5_000_000 },
      ],
    );
    assert.deepEqual(await reopened.limitsUsed([]), []);
    const [first, second, third] = rows;
    assert.deepEqual(await reopened.limitUses(span(BASE_TIME), 9), [third, second, first]);
    assert.deepEqual(await reopened.limitUses(span(BASE_TIME + 2), 1), [third]);
    assert.deepEqual(await reopened.limitUses(span(BASE_TIME, "agent-3"), 9), []);
    await assert.rejects(
      reopened.write((tx) => tx.insertLimitUse(limitUseRow(1))),
      isStorageError,
    );
  });

  test("a sum is capped at 2^53 - 1", async ({ storage }) => {
    await storage.write(async (tx) => {
      for (const n of [1, 2]) await tx.insertLimitUse(limitUseRow(n, { amount: Number.MAX_SAFE_INTEGER }));
    });
    assert.deepEqual(await storage.limitUsed("payments", "refunds a day", "agent-1", BASE_TIME), {
      count: 2,
      sum: Number.MAX_SAFE_INTEGER,
    });
    // The sum must also not overflow 64 bits.
    await storage.write(async (tx) => {
      for (let n = 3; n <= 1100; n++) await tx.insertLimitUse(limitUseRow(n, { amount: Number.MAX_SAFE_INTEGER }));
    });
    const all = { count: 1100, sum: Number.MAX_SAFE_INTEGER };
    assert.deepEqual(await storage.limitUsed("payments", "refunds a day", "agent-1", BASE_TIME), all);
    const span = { policy: "payments", limit_name: "refunds a day", subject: "agent-1", since: BASE_TIME };
    assert.deepEqual(await storage.limitsUsed([span]), [all]);
  });

  test("a sum below 2^53 - 1 is exact", async ({ storage }) => {
    await storage.write(async (tx) => {
      await tx.insertLimitUse(limitUseRow(1, { amount: Number.MAX_SAFE_INTEGER - 11 }));
      for (let n = 2; n <= 11; n++) await tx.insertLimitUse(limitUseRow(n, { amount: 1 }));
    });
    assert.deepEqual(await storage.limitUsed("payments", "refunds a day", "agent-1", BASE_TIME), {
      count: 11,
      sum: Number.MAX_SAFE_INTEGER - 1,
    });
  });

  test("uses are removed with their action, and after they have expired", async ({ storage }) => {
    await storage.write(async (tx) => {
      for (const row of [limitUseRow(1), limitUseRow(1, { limit_name: "other" }), limitUseRow(2), limitUseRow(3)])
        await tx.insertLimitUse(row);
    });
    await storage.write((tx) => tx.releaseLimitUses("action-1"));
    await storage.write((tx) => tx.releaseLimitUses("action-9"));
    assert.deepEqual(await storage.limitUsed("payments", "other", "agent-1", BASE_TIME), { count: 0, sum: 0 });
    assert.deepEqual(await storage.limitUsed("payments", "refunds a day", "agent-1", BASE_TIME), {
      count: 2,
      sum: 5_000_000,
    });
    assert.equal(await storage.write((tx) => tx.pruneLimitUses(BASE_TIME + 101, 10)), 0);
    assert.equal(await storage.write((tx) => tx.pruneLimitUses(BASE_TIME + 103, 1)), 1);
    assert.deepEqual(await storage.limitUsed("payments", "refunds a day", "agent-1", BASE_TIME), {
      count: 1,
      sum: 3_000_000,
    });
  });

  test("many uses are counted exactly while uses are added, released and pruned between reads", async ({
    storage,
    reopen,
  }) => {
    // Expected content of the store at each step.
    let uses: LimitUseRow[] = [];
    const spans = (): LimitSpan[] =>
      [0, 1, 40, 41, 400, 777, 1499, 2100, 9000].flatMap((since) =>
        ["agent-1", "agent-2"].map((subject) => ({
          policy: "payments",
          limit_name: "refunds a day",
          subject,
          since: BASE_TIME + since,
        })),
      );
    const expected = () =>
      spans().map(({ subject, since }) => {
        const counted = uses.filter((use) => use.subject === subject && use.at >= since);
        return { count: counted.length, sum: counted.reduce((sum, { amount }) => sum + amount, 0) };
      });
    const check = async (reader: Pick<StorageReader, "limitsUsed" | "limitUsed">, when: string): Promise<void> => {
      assert.deepEqual(await reader.limitsUsed(spans()), expected(), when);
      const [{ policy, limit_name, subject, since }] = spans() as [LimitSpan];
      assert.deepEqual(await reader.limitUsed(policy, limit_name, subject, since), expected()[0], when);
    };
    const add = async (first: number, count: number, at: (n: number) => number): Promise<void> => {
      const rows = Array.from({ length: count }, (_, i) => first + i).map((n) =>
        limitUseRow(n, {
          at: BASE_TIME + at(n),
          until: BASE_TIME + at(n) + 10_000,
          amount: n,
          subject: n % 3 === 0 ? "agent-2" : "agent-1",
        }),
      );
      await storage.write(async (tx) => {
        await check(tx, `before ${first}`);
        for (const row of rows) await tx.insertLimitUse(row);
        uses.push(...rows);
        await check(tx, `with ${first}`);
      });
      await check(storage, `after ${first}`);
    };
    // Add three uses in each millisecond, and then more uses in one millisecond than a total covers.
    for (let n = 0; n < 4500; n += 750) await add(n, 750, (each) => Math.floor(each / 3));
    await add(5000, 700, () => 1700);
    // Simulate a clock that was set back.
    await add(6000, 30, (n) => n % 50);
    for (const gone of [10, 11, 900, 4499, 5001, 6001]) {
      await storage.write(async (tx) => {
        await tx.releaseLimitUses(`action-${gone}`);
        uses = uses.filter(({ action_id }) => action_id !== `action-${gone}`);
        await check(tx, `without ${gone}`);
      });
    }
    const reopened = await reopen();
    await check(reopened, "after reopening");
    for (let now = 10_300; now < 11_800; now += 500) {
      const removed = await reopened.write((tx) => tx.pruneLimitUses(BASE_TIME + now, 10_000));
      const left = uses.filter(({ until }) => until > BASE_TIME + now);
      assert.equal(removed, uses.length - left.length);
      uses = left;
      await check(reopened, `pruned at ${now}`);
      await reopened.write((tx) => check(tx, `once more at ${now}`));
    }
    assert.deepEqual(await reopened.inspect?.(), reopened.inspect === undefined ? undefined : []);
  });
}
