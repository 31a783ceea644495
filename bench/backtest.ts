/**
 * A backtest over recorded decisions in a SQLite store, on one core, with the default policies and with plain rules
 * (no condition), beside the limit of 50,000 decisions a second. The decisions were made by the whole service.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStorage } from "../plugins/storage-sqlite/index.ts";
import { compilePolicySet, buildPolicySet } from "../src/domain/policy/compile/compile.ts";
import { loadPolicyFolder } from "../src/policies/folder.ts";
import { backtest } from "../src/policies/backtest.ts";
import { createBacktestReader } from "../src/storage/visible-reads.ts";
import { end, measure, POLICIES, start } from "./load.ts";

const DECISIONS = Number(process.env["BENCH_DECISIONS"] ?? 100_000);
const LIMIT = 50_000;

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
try {
  const service = await start("service", folder);
  await measure([service], 64, 0, { amount: DECISIONS });
  await end(service);
  const storage = sqliteStorage({ path: join(folder, "assent.db") });
  await storage.open({ readOnly: true });
  const { documents } = await loadPolicyFolder(POLICIES);
  const defaults = documents.map(({ document }) => ({ policy: document.policy, version: 1, definition: document }));
  const plain = [
    {
      policy: "plain",
      version: 1,
      definition: {
        policy: "plain",
        rules: [{ name: "refunds", tool: "stripe", operation: "refund", effect: "require_approval" as const }],
      },
    },
  ];
  process.stdout.write("policies           decisions   flipped   decisions/s   of 50,000\n");
  for (const [name, members] of [
    ["plain rules", plain],
    ["default policies", defaults],
  ] as const) {
    const compiled = compilePolicySet(buildPolicySet(members));
    const range = {
      visibility: { all: true },
      since: 0,
      until: Number.MAX_SAFE_INTEGER,
      limit: DECISIONS,
      budgetMs: Infinity,
      examples: 3,
    } as const;
    const reader = createBacktestReader(storage);
    await backtest(reader, compiled, { ...range, limit: 5_000 });
    const before = performance.now();
    const { evaluated, flipped } = await backtest(reader, compiled, range);
    const rate = (evaluated / (performance.now() - before)) * 1000;
    process.stdout.write(
      `${name.padEnd(17)}${String(evaluated).padStart(11)}${String(flipped).padStart(10)}${rate.toFixed(0).padStart(14)}${`${((rate / LIMIT) * 100).toFixed(0)} %`.padStart(12)}\n`,
    );
  }
  await storage.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
