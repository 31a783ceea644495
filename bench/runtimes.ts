/**
 * Compares the same service on Node, Deno and Bun, each with a separate SQLite store, and the minimal path (`bare.ts`)
 * on the same runtime, in one run.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withoutRuntime, type RuntimeName } from "../test/support/runtimes.ts";
import { end, mean, measure, start, type Measured } from "./load.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const RUNTIMES: readonly RuntimeName[] = ["node", "deno", "bun"];

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const out = (line: string): boolean => process.stdout.write(`${line}\n`);
const node = new Map<number, number>();
out("connections  runtime    req/s   p50 ms   p95 ms   p99 ms   of the bare path   of Node");
try {
  for (const runtime of RUNTIMES) {
    const why = withoutRuntime(runtime);
    if (why !== false) {
      out(why);
      continue;
    }
    const ours = await start("service", mkdtempSync(join(folder, runtime)), {}, { runtime });
    const bare = await start("bare", mkdtempSync(join(folder, runtime)), {}, { runtime });
    for (const server of [ours, bare]) await measure([server], 32, 2);
    for (const connections of [1, 32, 128]) {
      const parts: Record<"ours" | "bare", Measured[]> = { ours: [], bare: [] };
      for (let round = 0; round < 2; round++) {
        parts.ours.push(await measure([ours], connections, SECONDS / 2));
        parts.bare.push(await measure([bare], connections, SECONDS / 2));
      }
      const [m, limit] = [mean(parts.ours), mean(parts.bare)];
      if (runtime === "node") node.set(connections, m.rps);
      const cell = (n: number): string => n.toFixed(1).padStart(9);
      const share = (of: number | undefined): string => `${((m.rps / (of ?? NaN)) * 100).toFixed(0)} %`;
      out(
        `${String(connections).padStart(11)}  ${runtime.padEnd(7)}${m.rps.toFixed(0).padStart(9)}${cell(m.p50)}${cell(m.p95)}${cell(m.p99)}${share(limit.rps).padStart(19)}${share(node.get(connections)).padStart(10)}`,
      );
    }
    await Promise.all([end(ours), end(bare)]);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
