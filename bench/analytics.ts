/**
 * Measures GET /v1/analytics over 1,000,000 actions of 30 days in a SQLite store, through the whole service, for keys
 * that may read all actions, those of one agent or those of one key. "Cold" is the first response after the service
 * started, although the operating system may still cache the file. "Warm" is the median of nine more. Also measures the
 * cost of adding an action to the stored sums.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStorage } from "../plugins/storage-sqlite/index.ts";
import { createLogger, createRuntime, loadConfig } from "../src/index.ts";
import { actionRow } from "../src/testing/suite/rows.ts";

const ACTIONS = Number(process.env["BENCH_ACTIONS"] ?? 1_000_000);
const LIMIT = 100;
const CHUNK = 1000;
const DAY = 86_400_000;
/** Not at a full hour, so that actions at the edges of the range are counted row by row. */
const END = Date.UTC(2026, 5, 20, 9, 17, 23, 456);
const START = END - 30 * DAY;

const RANGES: [string, number, string][] = [
  ["24 h", 1, "interval=hour"],
  ["7 d", 7, "interval=day"],
  ["30 d", 30, "interval=day"],
  ["30 d by hour", 30, "interval=hour"],
  ["30 d, Asia/Kolkata", 30, "interval=day&time_zone=Asia/Kolkata"],
  ["30 d by hour, Asia/Kolkata", 30, "interval=hour&time_zone=Asia/Kolkata"],
  ["30 d by hour, Pacific/Chatham", 30, "interval=hour&time_zone=Pacific/Chatham"],
];

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const { config } = loadConfig({
  cwd: folder,
  env: { ASSENT_DATA: folder, ASSENT_POLICIES: new URL("../policies", import.meta.url).pathname },
});
let admin = "";
const log = createLogger("error", () => {});
const start = async (): Promise<Awaited<ReturnType<typeof createRuntime>>> => {
  const runtime = await createRuntime(config, { log });
  await runtime.start();
  await runtime.createFirstKeys((keys) => (admin = keys.admin));
  return runtime;
};
type Service = Awaited<ReturnType<typeof start>>;

async function call(service: Service, key: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await service.fetch(
    new Request(
      `http://bench${path}`,
      body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) },
    ),
  );
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** The same random numbers in each run (a linear congruential generator, Numerical Recipes). */
let state = 1;
function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 4_294_967_296) * limit);
}

async function fill(keyId: string): Promise<string> {
  const storage = sqliteStorage({ path: join(folder, "assent.db") });
  await storage.open();
  const base = actionRow(0);
  const first = (await storage.head()).size;
  for (let from = 0; from < ACTIONS; from += 10_000) {
    await storage.write(async (tx) => {
      for (let n = from; n < Math.min(ACTIONS, from + 10_000); n++) {
        const [asked, rule, key] = [below(20) === 0, below(50), below(20)];
        const denied = !asked && below(10) === 0;
        const approved = asked && below(5) > 0;
        const created_at = START + Math.floor((n / ACTIONS) * 30 * DAY);
        await tx.insertAction({
          ...base,
          id: `0199f000-0000-7000-8000-${String(n).padStart(12, "0")}`,
          decision_seq: first + n,
          agent_id: `agent-${below(20)}`,
          tool: `tool-${below(30)}`,
          submitted_by: key === 0 ? keyId : `0199f000-0000-7000-9000-${String(key).padStart(12, "0")}`,
          policy: `policy-${rule % 10}`,
          rule: `rule ${rule}`,
          policy_version: 1,
          policy_hash: base.request_hash,
          decision: asked ? "require_approval" : denied ? "deny" : "allow",
          status: asked
            ? approved
              ? "approved"
              : "expired"
            : denied
              ? "denied"
              : below(2) === 0
                ? "succeeded"
                : "allowed",
          waited_ms: approved ? below(3_600_000) : null,
          created_at,
          updated_at: created_at,
        });
      }
    });
  }
  const chunks: number[] = [];
  for (let folded = CHUNK; folded === CHUNK;) {
    const began = performance.now();
    folded = (await storage.upkeep?.(CHUNK)) ?? 0;
    chunks.push(performance.now() - began);
  }
  await storage.close();
  const total = chunks.reduce((a, b) => a + b, 0);
  chunks.sort((a, b) => a - b);
  return `folding: ${((total * 1000) / ACTIONS).toFixed(0)} µs an action; a chunk of ${CHUNK}: p50 ${at(chunks, 0.5)} ms, p99 ${at(chunks, 0.99)} ms`;
}

function at(sorted: readonly number[], q: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN).toFixed(1);
}

const lines = [
  "| range | who | actions | cold ms | warm ms | slowest ms | of the limit |",
  "|---|---|---|---|---|---|---|",
];
let met = true;
try {
  let service = await start();
  const one = await call(service, admin, "/v1/api-keys", {
    name: "bench agent",
    scopes: ["analytics:read"],
    agent_id: "agent-3",
  });
  const own = await call(service, admin, "/v1/api-keys", { name: "bench key", scopes: ["analytics:read"] });
  await service.stop();
  const folding = await fill(own["id"] as string);
  const who: [string, string][] = [
    ["all", admin],
    ["one agent", one["key"] as string],
    ["one key", own["key"] as string],
  ];
  for (const [name, days, query] of RANGES) {
    for (const [whose, key] of who) {
      service = await start();
      const times: number[] = [];
      let total = 0;
      for (let i = 0; i < 10; i++) {
        const began = performance.now();
        total = (
          await call(
            service,
            key,
            `/v1/analytics?since=${new Date(END - days * DAY).toISOString()}&until=${new Date(END).toISOString()}&${query}`,
          )
        )["total"] as number;
        times.push(performance.now() - began);
      }
      await service.stop();
      const slowest = Math.max(...times);
      if (slowest > LIMIT) met = false;
      const warm = times.slice(1).sort((a, b) => a - b);
      lines.push(
        `| ${name} | ${whose} | ${total} | ${(times[0] as number).toFixed(1)} | ${at(warm, 0.5)} | ${slowest.toFixed(1)} | ${slowest.toFixed(0)} % |`,
      );
    }
  }
  process.stdout.write(
    [...lines, folding, `limit: ${LIMIT} ms for every answer: ${met ? "met" : "MISSED"}`, ""].join("\n"),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
