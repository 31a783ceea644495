/**
 * POST /v1/actions with everything on, beside the bare reference, in one run: for 1, 32 and 128
 * connections, requests per second and latencies, and the ratio of the two. Each server is a
 * process of its own; the load comes from this one.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { end, mean, measure, start, type Measured } from "./load.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const CONNECTIONS = [1, 32, 128];
const TARGET = 0.6;

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const service = await start("./service.ts", folder);
const reference = await start("./reference.ts", folder);
const rows: string[] = [];
let met = true;
try {
  for (const target of [service, reference]) await measure([target], 32, 2);
  for (const connections of CONNECTIONS) {
    // Halves in turn, so that a busy moment of the machine hits both.
    const parts: Record<"ours" | "bare", Measured[]> = { ours: [], bare: [] };
    for (let round = 0; round < 2; round++) {
      parts.ours.push(await measure([service], connections, SECONDS / 2));
      parts.bare.push(await measure([reference], connections, SECONDS / 2));
    }
    const ours = mean(parts.ours);
    const bare = mean(parts.bare);
    const ratio = ours.rps / bare.rps;
    if (connections > 1 && ratio < TARGET) met = false;
    rows.push(
      row(connections, "assent", ours, `${(ratio * 100).toFixed(0)} % of the reference`),
      row(connections, "reference", bare, ""),
    );
  }
} finally {
  await Promise.all([end(service), end(reference)]);
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(
  [
    "connections  server       req/s   p50 ms   p95 ms   p99 ms",
    ...rows,
    `target: ${TARGET * 100} % of the reference at 32 and 128 connections: ${met ? "met" : "MISSED"}`,
    "",
  ].join("\n"),
);

function row(connections: number, name: string, m: Measured, note: string): string {
  const cell = (n: number): string => n.toFixed(1).padStart(9);
  return `${String(connections).padStart(11)}  ${name.padEnd(10)} ${m.rps.toFixed(0).padStart(7)}${cell(m.p50)}${cell(m.p95)}${cell(m.p99)}   ${note}`;
}
