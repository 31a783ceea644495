/**
 * Compares this build with another one on SQLite, in turns of one run: CPU and bytes written for each decision.
 * `BENCH_BASE` names the folder `build` of a checkout of the other commit. The machine's other load affects both, so the
 * result is the median of the ratios of all turns.
 *
 *   BENCH_BASE=/path/to/base/build BENCH_TURNS=6 BENCH_AMOUNT=4000 npm run bench:compare
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ALLOWED, end, measure, median, start, type Server, type Work } from "./load.ts";
import { sqliteMeter, type Meter } from "./meter.ts";
import { ASKED, DENIED, LIMITED, prepareData, VARIED } from "./works.ts";

const BASE = process.env["BENCH_BASE"];
const TURNS = Number(process.env["BENCH_TURNS"] ?? 6);
const AMOUNT = Number(process.env["BENCH_AMOUNT"] ?? 4_000);
const CONNECTIONS = Number(process.env["BENCH_CONNECTIONS"] ?? 32);
const ALL: Readonly<Record<string, Work>> = {
  allow: ALLOWED,
  deny: DENIED,
  "one limit": LIMITED,
  "20 agents, 30 tools": VARIED,
  "requires approval": ASKED,
};
const WORKS = process.env["BENCH_WORKS"]?.split(",") ?? Object.keys(ALL);

if (BASE === undefined) throw new Error("set BENCH_BASE to the folder `build` of the commit to compare with");
const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));

async function open(name: string, build?: string): Promise<{ server: Server; meter: Meter }> {
  const data = join(folder, name);
  mkdirSync(data);
  const server = await start("service", data, {}, { build, policies: prepareData(data) });
  return { server, meter: sqliteMeter(server, data, "assent.db") };
}

const sides = [await open("base", BASE), await open("this")] as const;
try {
  for (const { server } of sides) await measure([server], CONNECTIONS, 0, { amount: AMOUNT });
  process.stdout.write("what                    CPU µs, base   this   ratio   KB written, base   this   ratio\n");
  for (const name of WORKS) {
    const work = ALL[name];
    if (work === undefined) throw new Error(`BENCH_WORKS must name ${Object.keys(ALL).join(", ")}; got "${name}"`);
    const costs: { cpu: number; kilobytes: number }[][] = [[], []];
    for (let turn = 0; turn < TURNS; turn++)
      for (const i of turn % 2 === 0 ? [0, 1] : [1, 0]) {
        const { server, meter } = sides[i] as (typeof sides)[0];
        const before = await meter.read();
        const { requests } = await measure([server], CONNECTIONS, 0, { amount: AMOUNT, work });
        const after = await meter.read();
        costs[i]?.push({
          cpu: (after.service - before.service) / requests,
          kilobytes: (after.written - before.written) / requests / 1024,
        });
      }
    const cells = (["cpu", "kilobytes"] as const).flatMap((of, column) => {
      const [base, current] = costs.map((turns) => turns.map((cost) => cost[of])) as [number[], number[]];
      const ratio = median(current.map((value, i) => value / (base[i] as number)));
      const digits = column === 0 ? 0 : 1;
      return [median(base).toFixed(digits), median(current).toFixed(digits), ratio.toFixed(2)];
    });
    const widths = [12, 7, 8, 19, 7, 8];
    process.stdout.write(`${name.padEnd(24)}${cells.map((cell, i) => cell.padStart(widths[i] as number)).join("")}\n`);
  }
} finally {
  await Promise.all(sides.map(({ server }) => end(server)));
  rmSync(folder, { recursive: true, force: true });
}
