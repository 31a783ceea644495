/**
 * Compares SQLite with Postgres, and one, two and four processes on one Postgres, each with the minimal path
 * (`bare.ts`) on the same store. The variants alternate in one run. Prints requests per second, latencies, and the cost
 * of one decision. `BENCH_BASE` names the folder `build` of another checkout, whose processes on Postgres are also
 * measured.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sharedEnvironment } from "../test/support/deployment.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { assertAllows, end, measure, start, type Server } from "./load.ts";
import { postgresMeter, sqliteMeter, type Meter } from "./meter.ts";
import { HEADER, percent, rowOf, Turns } from "./table.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const CONNECTIONS = (process.env["BENCH_CONNECTIONS"] ?? "1,32,128").split(",").map(Number);
const FLEETS = (process.env["BENCH_PROCESSES"] ?? "1,2,4").split(",").map(Number);
const BASE = process.env["BENCH_BASE"];
const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 2);
/** Seconds of warm-up for each process. Code is several times slower until it has run a few hundred times. */
const WARM_UP = Number(process.env["BENCH_WARM_UP"] ?? 4);

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const postgres = await startPostgres({ settings: ["shared_preload_libraries=pg_stat_statements"] });
const shared = sharedEnvironment("bench.test/log");
const out = (line: string): boolean => process.stdout.write(`${line}\n`);
out(HEADER);

interface Fleet {
  name: string;
  servers: readonly Server[];
  meter: Meter;
}

/** Compares the first fleet with the others. */
async function compare(...fleets: readonly Fleet[]): Promise<void> {
  for (const { servers } of fleets) await measure(servers, 128, WARM_UP * servers.length);
  for (const connections of CONNECTIONS) {
    const turns = fleets.map(() => new Turns());
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, { servers, meter }] of fleets.entries()) {
        const before = await meter.read();
        const measured = await measure(servers, connections, SECONDS / ROUNDS);
        turns[i]?.add(measured, before, await meter.read());
      }
    }
    const [ours] = turns as [Turns];
    for (const [i, { name }] of fleets.entries()) {
      const notes =
        i > 0
          ? []
          : fleets
              .slice(1)
              .map((other, j) => `${percent(ours.mean().rps / (turns[j + 1] as Turns).mean().rps)} of ${other.name}`);
      out(rowOf(connections, name, turns[i] as Turns, notes.join(", ")));
    }
  }
  for (const { servers, meter } of fleets) {
    await meter.end?.();
    await Promise.all(servers.map(end));
  }
}

try {
  const here = (name: string): string => mkdtempSync(join(folder, name));
  const [data, other] = [here("sqlite"), here("bare")];
  const [service, limit] = [await start("service", data), await start("bare", other)];
  await compare(
    { name: "SQLite, 1 process", servers: [service], meter: sqliteMeter(service, data, "assent.db") },
    { name: "bare SQLite", servers: [limit], meter: sqliteMeter(limit, other, "bare.db") },
  );
  const fleet = async (name: string, processes: number, build?: string): Promise<Fleet> => {
    const database = await postgres.database();
    const servers: Server[] = [];
    for (let i = 0; i < processes; i++)
      servers.push(await start("service", here("postgres"), { ...shared, DATABASE_URL: database }, { build }));
    await Promise.all(servers.map(assertAllows));
    return { name, servers, meter: await postgresMeter(servers, database) };
  };
  for (const processes of FLEETS) {
    const name = `Postgres, ${processes} ${processes === 1 ? "process" : "processes"}`;
    const fleets = [await fleet(name, processes)];
    if (BASE !== undefined) fleets.push(await fleet("base", processes, BASE));
    const database = await postgres.database();
    const servers = [await start("bare", here("bare"), { DATABASE_URL: database })];
    fleets.push({ name: "bare Postgres", servers, meter: await postgresMeter(servers, database) });
    await compare(...fleets);
  }
} finally {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
