/**
 * POST /v1/actions on the embedded store with one thread and with more, in turns: requests per second, and the CPU of a
 * decision on the thread that decides and on those that speak HTTP. On a machine with fewer cores than threads and load
 * the first tells nothing; the second tells what the thread that decides could do: a core's million µs by that.
 *
 *   BENCH_SECONDS=8 BENCH_CONNECTIONS=32 BENCH_THREADS=1,2,3 npm run bench:threads
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ALLOWED, end, mean, measure, start, type Measured } from "./load.ts";
import { cpuOf, memoryOf } from "./meter.ts";
import { DENIED, prepareData } from "./works.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const CONNECTIONS = Number(process.env["BENCH_CONNECTIONS"] ?? 32);
const THREADS = (process.env["BENCH_THREADS"] ?? "1,2,3").split(",").map(Number);
const ROUNDS = 4;

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const out = (line: string): boolean => process.stdout.write(`${line}\n`);
const services = await Promise.all(
  THREADS.map(async (threads) => {
    const data = join(folder, String(threads));
    mkdirSync(data);
    const server = await start("service", data, { ASSENT_THREADS: String(threads) }, { policies: prepareData(data) });
    return { threads, server };
  }),
);
try {
  for (const { server } of services) await measure([server], CONNECTIONS, 2);
  out("what   threads    req/s   p50 ms   p99 ms   CPU µs   of it where it is decided    MiB");
  for (const [name, work] of [
    ["allow", ALLOWED],
    ["deny", DENIED],
  ] as const) {
    const turns = services.map(() => ({ measured: [] as Measured[], all: 0, main: 0, requests: 0 }));
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, { server }] of services.entries()) {
        const turn = turns[i] as (typeof turns)[number];
        const { pid } = server.child;
        const [all, main] = [cpuOf(pid), cpuOf(pid, false, pid)];
        const measured = await measure([server], CONNECTIONS, SECONDS / ROUNDS, { work });
        turn.measured.push(measured);
        turn.requests += measured.requests;
        turn.all += cpuOf(pid) - all;
        turn.main += cpuOf(pid, false, pid) - main;
      }
    }
    for (const [i, { threads, server }] of services.entries()) {
      const { measured, all, main, requests } = turns[i] as (typeof turns)[number];
      const { rps, p50, p99 } = mean(measured);
      const cells = [rps, p50, p99, all / requests, main / requests, memoryOf(server)].map((n, at) =>
        n.toFixed(at === 1 || at === 2 ? 1 : 0).padStart(9),
      );
      out(`${name.padEnd(7)}${String(threads).padStart(7)}${cells.join("")}`);
    }
  }
} finally {
  await Promise.all(services.map(({ server }) => end(server)));
  rmSync(folder, { recursive: true, force: true });
}
