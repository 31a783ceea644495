/**
 * Measures a backtest over recorded decisions in a SQLite store, on one core, with the default policies and with plain
 * rules (no condition), compared with the goal of 100,000 decisions per second. Also measures the time for reading the
 * decisions without evaluating them. The service made the decisions. On a busy machine, CPU time is more reliable than
 * the rate.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStorage } from "../plugins/storage-sqlite/index.ts";
import "../src/identity/native-sha256.ts";
import { compilePolicySet, buildPolicySet } from "../src/domain/policy/compile/compile.ts";
import { loadPolicyFolder } from "../src/policies/folder.ts";
import { backtest, readAllDecisions } from "../plugins/policies/backtest/backtest.ts";
import { end, measure, POLICIES, start } from "./load.ts";

const DECISIONS = Number(process.env["BENCH_DECISIONS"] ?? 100_000);
const GOAL = 100_000;

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
  const all = { visibility: { all: true }, since: 0, until: Number.MAX_SAFE_INTEGER } as const;
  const reader = readAllDecisions(storage);

  async function readOnly(): Promise<number> {
    let [count, before] = [0, Number.MAX_SAFE_INTEGER];
    for (;;) {
      const rows = await reader.decisions({ ...all, from_seq: 0, before_seq: before, limit: 200 });
      count += rows.length;
      const last = rows.at(-1);
      if (last === undefined) return count;
      before = last.seq;
    }
  }

  async function report(name: string, run: () => Promise<number>): Promise<void> {
    const [before, cpuBefore] = [performance.now(), process.cpuUsage()];
    const count = await run();
    const [ms, { user, system }] = [performance.now() - before, process.cpuUsage(cpuBefore)];
    const rate = (count / ms) * 1000;
    process.stdout.write(
      `${name.padEnd(17)}${String(count).padStart(11)}${rate.toFixed(0).padStart(14)}${`${((rate / GOAL) * 100).toFixed(0)} %`.padStart(12)}${((user + system) / count).toFixed(1).padStart(10)}\n`,
    );
  }

  process.stdout.write("policies           decisions   decisions/s  of 100,000    CPU µs\n");
  await readOnly();
  await report("reading alone", readOnly);
  for (const [name, members] of [
    ["plain rules", plain],
    ["default policies", defaults],
  ] as const) {
    const compiled = compilePolicySet(buildPolicySet(members));
    const range = { ...all, limit: DECISIONS, budgetMs: Infinity, examples: 3 } as const;
    await backtest(reader, compiled, { ...range, limit: 5_000 });
    await report(name, async () => (await backtest(reader, compiled, range)).evaluated);
  }
  await storage.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
