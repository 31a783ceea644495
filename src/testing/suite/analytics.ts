/**
 * Cases for analytics: counts must always equal the counts of all rows, whether or not the actions have been added to
 * the sums.
 */
import assert from "./assert.ts";
import type { ActionCounts, ActionRow, AnalyticsQuery, Storage } from "../../contract/storage.ts";
import { countActions } from "../../storage/log/count-actions.ts";
import { actionRow, BASE_TIME, type DefineCase } from "./rows.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * Returns a generator of the same pseudo-random numbers each time (linear congruential generator, Numerical Recipes).
 */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
}

const STATUSES = ["allowed", "denied", "pending_approval", "approved", "executing", "succeeded"] as const;
const DECISIONS = ["allow", "deny", "require_approval"] as const;
/** Times at boundaries, which a rounding error would put into the wrong interval. */
const ODD = [0, 1, -1, HOUR, HOUR - 1, HOUR + 1, DAY, DAY - 1, DAY + 1, 2 * DAY, 2 * DAY - 1, HOUR / 2, HOUR / 2 - 1];

function randomAction(n: number, below: (limit: number) => number): ActionRow {
  const status = STATUSES[below(STATUSES.length)] ?? "allowed";
  const policy = below(4) === 0 ? null : `policy ${below(3)}`;
  return actionRow(n, {
    agent_id: `agent-${below(3)}`,
    submitted_by: `key-${below(3)}`,
    tool: ["stripe", "crm", "\u0000é"][below(3)] as string,
    policy,
    rule: policy === null || below(5) === 0 ? null : `rule "${below(2)}"`,
    decision: DECISIONS[below(3)] ?? "allow",
    status,
    waited_ms: status === "approved" || status === "denied" ? below(100) * 1000 : null,
    approved_until: status === "approved" ? BASE_TIME + DAY : null,
    created_at: BASE_TIME + (below(3) === 0 ? (ODD[below(ODD.length)] as number) : below(3 * DAY)),
  });
}

const sorted = <T>(items: T[]): T[] => [...items].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

function normalize(counts: ActionCounts): unknown {
  const { status, decision, tool, agent, rule, series, waits } = counts;
  return {
    status: sorted(status),
    decision: sorted(decision),
    tool: sorted(tool),
    agent: sorted(agent),
    rule: sorted(rule),
    waits,
    series: series.map((s) => [sorted(Object.entries(s.status)), sorted(Object.entries(s.decision))]),
  };
}

const QUERIES: AnalyticsQuery["boundaries"][] = [
  [BASE_TIME, BASE_TIME + 3 * DAY],
  [BASE_TIME - DAY, BASE_TIME + 9 * DAY],
  [BASE_TIME, BASE_TIME + 1],
  [BASE_TIME + 1, BASE_TIME + HOUR, BASE_TIME + HOUR + 1],
  [BASE_TIME - 1, BASE_TIME + DAY, BASE_TIME + 2 * DAY, BASE_TIME + 3 * DAY + 1],
  [BASE_TIME + 7, BASE_TIME + 5 * HOUR + 7, BASE_TIME + DAY + 7],
  // Days of time zones with an offset of half an hour, and a day of 23 hours.
  Array.from({ length: 4 }, (_, i) => BASE_TIME - HOUR / 2 + i * DAY),
  [BASE_TIME + 5 * HOUR, BASE_TIME + 28 * HOUR, BASE_TIME + 52 * HOUR],
  // Hours of a time zone with an offset of 45 minutes, which do not start with a UTC hour.
  Array.from({ length: 40 }, (_, i) => BASE_TIME + (i + 0.75) * HOUR),
  [BASE_TIME + HOUR / 4 - 1, BASE_TIME + HOUR / 2, BASE_TIME + HOUR + 1, BASE_TIME + 25.25 * HOUR],
  Array.from({ length: 49 }, (_, i) => BASE_TIME + i * HOUR),
  Array.from({ length: 30 }, (_, i) => BASE_TIME + 10 * HOUR + i * 60_000),
];

async function compare(storage: Storage, rows: readonly ActionRow[], when: string): Promise<void> {
  for (const visibility of [
    { all: true } as const,
    { agent_id: "agent-1" },
    { key_id: "key-2" },
    { agent_id: "nobody" },
  ]) {
    for (const [i, boundaries] of QUERIES.entries()) {
      const query = { visibility, boundaries };
      assert.deepEqual(
        normalize(await storage.analytics(query)),
        normalize(countActions(rows, query)),
        `${when}, query ${i}, ${JSON.stringify(visibility)}`,
      );
    }
  }
}

export function analyticsCases(test: DefineCase): void {
  test("an empty store counts nothing", async ({ storage }) => {
    assert.deepEqual(
      await storage.analytics({ visibility: { all: true }, boundaries: [BASE_TIME, BASE_TIME + HOUR] }),
      {
        status: [],
        decision: [],
        tool: [],
        agent: [],
        rule: [],
        series: [{ status: {}, decision: {} }],
        waits: { count: 0, approved: 0, p50: null, p95: null },
      },
    );
    assert.equal((await storage.upkeep?.(10)) ?? 0, 0);
  });

  test("counts equal the rows before, during and after the upkeep that adds actions to the sums", async ({
    storage,
    reopen,
  }) => {
    const below = createRandom(1);
    const rows = Array.from({ length: 400 }, (_, i) => randomAction(i * 3, below));
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertAction(row);
    });
    await compare(storage, rows, "before the upkeep");
    await storage.upkeep?.(1);
    await storage.upkeep?.(130);
    await compare(storage, rows, "during the upkeep");
    while (((await storage.upkeep?.(77)) ?? 0) > 0);
    await compare(storage, rows, "after the upkeep");
    const late = Array.from({ length: 50 }, (_, i) => randomAction(2000 + i, below));
    await storage.write(async (tx) => {
      for (const row of late) await tx.insertAction(row);
    });
    await compare(await reopen(), [...rows, ...late], "more actions, after reopening");
  });

  test("a change of status is counted whether or not its action was added to the sums", async ({ storage }) => {
    const below = createRandom(2);
    const rows = Array.from({ length: 60 }, (_, i) => randomAction(i, below));
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertAction(row);
    });
    await storage.upkeep?.(30);
    for (const [i, row] of rows.entries()) {
      const to = STATUSES[below(STATUSES.length)] ?? "allowed";
      const change = { status: to, updated_at: BASE_TIME, ...(i % 3 === 0 ? { waited_ms: i * 100 } : {}) };
      await storage.write((tx) => tx.updateAction(row.id, { status: row.status }, change));
      assert.equal(
        await storage.write((tx) =>
          tx.updateAction(row.id, { status: "expired" }, { status: "denied", updated_at: BASE_TIME }),
        ),
        false,
      );
      Object.assign(row, change);
      if (i === 40) await storage.upkeep?.(15);
    }
    await compare(storage, rows, "after changes");
  });

  test("all changes of one transaction are counted, including several changes of one action", async ({ storage }) => {
    const below = createRandom(3);
    const rows = Array.from({ length: 60 }, (_, i) => randomAction(i, below));
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertAction(row);
    });
    await storage.upkeep?.(40);
    await storage.write(async (tx) => {
      for (let i = 0; i < 150; i++) {
        const row = rows[below(rows.length)] as ActionRow;
        const status = STATUSES[below(STATUSES.length)] ?? "allowed";
        await tx.updateAction(row.id, { status: row.status }, { status, updated_at: BASE_TIME });
        row.status = status;
      }
    });
    await compare(storage, rows, "after the changes");
    while (((await storage.upkeep?.(77)) ?? 0) > 0);
    await compare(storage, rows, "after the upkeep");
  });
}
