/**
 * POST /v1/actions with everything on, beside the bare reference, in one run: for 1, 32 and 128
 * connections, requests per second and latencies, and the ratio of the two. Each server is a
 * process of its own; the load comes from this one.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import autocannon from "autocannon";
import sample from "./sample.json" with { type: "json" };

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const CONNECTIONS = [1, 32, 128];
const POLICIES = new URL("../policies", import.meta.url).pathname;
const TARGET = 0.6;

interface Measured {
  rps: number;
  p50: number;
  p95: number;
  p99: number;
  errors: number;
}

async function start(script: string, data: string): Promise<{ child: ChildProcess; url: string; key: string }> {
  const child = spawn(process.execPath, ["--import", "tsx", new URL(script, import.meta.url).pathname, data, POLICIES], { stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString()));
    child.once("exit", (code) => reject(new Error(`${script} ended with ${code ?? "a signal"}`)));
  });
  return { child, ...(JSON.parse(line) as { url: string; key: string }) };
}

async function measure(url: string, key: string, connections: number, seconds: number): Promise<Measured> {
  // autocannon keeps latencies in whole milliseconds; its own histogram has p97_5 and no p95, so take our own.
  const latencies: number[] = [];
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const run = autocannon({
    url: `${url}/v1/actions`,
    method: "POST",
    connections,
    duration: seconds,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(sample.body),
    }, (error: unknown, done) => (error == null ? resolve(done) : reject(new Error("the load generator failed", { cause: error }))));
    run.on("response", (_client, _status, _bytes, ms) => latencies.push(ms));
  });
  latencies.sort((a, b) => a - b);
  const at = (q: number): number => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * q))] ?? NaN;
  return { rps: result["2xx"] / result.duration, p50: at(0.5), p95: at(0.95), p99: at(0.99), errors: result.non2xx + result.errors };
}

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const service = await start("./service.ts", folder);
const reference = await start("./reference.ts", folder);
const rows: string[] = [];
let met = true;
try {
  for (const target of [service, reference]) await measure(target.url, target.key, 32, 2);
  for (const connections of CONNECTIONS) {
    // Halves in turn, so that a busy moment of the machine hits both.
    const parts: Record<"ours" | "bare", Measured[]> = { ours: [], bare: [] };
    for (let round = 0; round < 2; round++) {
      parts.ours.push(await measure(service.url, service.key, connections, SECONDS / 2));
      parts.bare.push(await measure(reference.url, reference.key, connections, SECONDS / 2));
    }
    const ours = mean(parts.ours);
    const bare = mean(parts.bare);
    const ratio = ours.rps / bare.rps;
    if (connections > 1 && ratio < TARGET) met = false;
    rows.push(row(connections, "assent", ours, `${(ratio * 100).toFixed(0)} % of the reference`), row(connections, "reference", bare, ""));
    if (ours.errors + bare.errors > 0) throw new Error(`${ours.errors + bare.errors} requests failed: the numbers mean nothing`);
  }
} finally {
  service.child.kill();
  reference.child.kill();
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(["connections  server       req/s   p50 ms   p95 ms   p99 ms", ...rows, `target: ${TARGET * 100} % of the reference at 32 and 128 connections: ${met ? "met" : "MISSED"}`, ""].join("\n"));

function mean(parts: Measured[]): Measured {
  const of = (pick: (m: Measured) => number): number => parts.reduce((sum, part) => sum + pick(part), 0) / parts.length;
  return { rps: of((m) => m.rps), p50: of((m) => m.p50), p95: of((m) => m.p95), p99: of((m) => m.p99), errors: parts.reduce((sum, m) => sum + m.errors, 0) };
}

function row(connections: number, name: string, m: Measured, note: string): string {
  const cell = (n: number): string => n.toFixed(1).padStart(9);
  return `${String(connections).padStart(11)}  ${name.padEnd(10)} ${m.rps.toFixed(0).padStart(7)}${cell(m.p50)}${cell(m.p95)}${cell(m.p99)}   ${note}`;
}
