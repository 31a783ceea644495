/**
 * Compares POST /v1/actions of the complete service with the minimal path (`bare.ts`) and with Cerbos, alternating in
 * one run: requests per second, latencies, and the cost of one decision. Each server is a separate process; this
 * process generates the load.
 *
 *   BENCH_SECONDS=8 BENCH_CONNECTIONS=1,32,128 npm run bench
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHECK, startCerbos } from "./cerbos.ts";
import { ALLOWED, end, measure, start, type Server, type Work } from "./load.ts";
import { memoryOf, sqliteMeter, type Meter } from "./meter.ts";
import { HEADER, percent, rowOf, Turns } from "./table.ts";
import { ASKED, DENIED, KEYED, LIMITED, prepareData, VARIED } from "./works.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const CONNECTIONS = (process.env["BENCH_CONNECTIONS"] ?? "1,32,128").split(",").map(Number);
/** Each measurement is split in two, so that a busy moment of the machine affects all of them. */
const ROUNDS = 2;

interface Measurement {
  name: string;
  server: Server;
  meter: Meter;
  work: Work;
}

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const here = (name: string): string => {
  const data = join(folder, name);
  mkdirSync(data);
  return data;
};
const [ours, theirs, others] = [here("assent"), here("bare"), here("cerbos")];
const service = await start("service", ours, {}, { policies: prepareData(ours) });
const bare = await start("bare", theirs);
const cerbos = await startCerbos(others);
const out = (line: string): boolean => process.stdout.write(`${line}\n`);

const meter = sqliteMeter(service, ours, "assent.db");
const beside: Measurement[] = [
  { name: "assent, allow", server: service, meter, work: ALLOWED },
  { name: "bare path", server: bare, meter: sqliteMeter(bare, theirs, "bare.db"), work: ALLOWED },
];
if (cerbos !== null)
  beside.push({ name: "Cerbos", server: cerbos, meter: sqliteMeter(cerbos, others, null), work: CHECK });
const alone: Measurement[] = [
  { name: "assent, deny", server: service, meter, work: DENIED },
  { name: "assent, Idempotency-Key", server: service, meter, work: KEYED },
  { name: "assent, one limit", server: service, meter, work: LIMITED },
  { name: "assent, 20 agents, 30 tools", server: service, meter, work: VARIED },
  // Last, because pending actions stay in the store.
  { name: "assent, asked", server: service, meter, work: ASKED },
];

try {
  const rest = memoryOf(service);
  for (const { server, work } of beside) await measure([server], 32, 2, { work });
  out(HEADER);
  for (const connections of CONNECTIONS) {
    const all = connections === 32 ? [...beside, ...alone] : beside;
    const turns = all.map(() => new Turns());
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, { server, meter, work }] of all.entries()) {
        const before = await meter.read();
        const measured = await measure([server], connections, SECONDS / ROUNDS, { work });
        turns[i]?.add(measured, before, await meter.read());
      }
    }
    const rps = (i: number): number => turns[i]?.mean().rps ?? NaN;
    for (const [i, { name }] of all.entries()) {
      const note = i > 0 ? "" : `${percent(rps(0) / rps(1))} of the bare path, ${percent(rps(0) / rps(2))} of Cerbos`;
      out(rowOf(connections, name, turns[i] as Turns, note));
    }
  }
  out(`memory of the service: ${rest.toFixed(0)} MiB at rest, ${memoryOf(service).toFixed(0)} MiB after this`);
} finally {
  await Promise.all([service, bare, ...(cerbos === null ? [] : [cerbos])].map(end));
  rmSync(folder, { recursive: true, force: true });
}
