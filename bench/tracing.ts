/**
 * Measures the cost of traces: submissions on SQLite without a tracer, and with one that exports every request to a
 * collector in this process, alternating in one run. `BENCH_BASE` names the folder `build` of a checkout without
 * support for traces, whose ratio to the first variant is the cost of disabled traces.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { end, measure, start, type Server } from "./load.ts";
import { sqliteMeter, type Meter } from "./meter.ts";
import { HEADER, percent, rowOf, Turns } from "./table.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const CONNECTIONS = (process.env["BENCH_CONNECTIONS"] ?? "1,32").split(",").map(Number);
const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 4);
const BASE = process.env["BENCH_BASE"];

interface Measurement {
  name: string;
  server: Server;
  meter: Meter;
}

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const out = (line: string): boolean => process.stdout.write(`${line}\n`);
const collector = createServer((request, response) => {
  request.resume();
  request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"));
});
await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`;
const EXPORTING = `plugins:\n  - built-in\n  - name: opentelemetry\n    options: { traces: otlp, endpoint: "${endpoint}" }\n`;

async function open(name: string, config: string, build?: string): Promise<Measurement> {
  const data = join(folder, name.replaceAll(" ", "-"));
  mkdirSync(data);
  writeFileSync(join(data, "assent.yaml"), config);
  const server = await start("service", data, {}, { build });
  return { name, server, meter: sqliteMeter(server, data, "assent.db") };
}

const all = [await open("traces off", ""), await open("traces exported", EXPORTING)];
if (BASE !== undefined) all.push(await open("without traces", "", BASE));
try {
  for (const { server } of all) await measure([server], 32, 2);
  out(HEADER);
  for (const connections of CONNECTIONS) {
    const turns = all.map(() => new Turns());
    for (let round = 0; round < ROUNDS; round++)
      for (const [i, { server, meter }] of all.entries()) {
        const before = await meter.read();
        const measured = await measure([server], connections, SECONDS / ROUNDS);
        turns[i]?.add(measured, before, await meter.read());
      }
    const off = turns[0] as Turns;
    for (const [i, { name }] of all.entries()) {
      const own = turns[i] as Turns;
      const cpu = percent(own.cost("service") / off.cost("service"));
      out(rowOf(connections, name, own, i === 0 ? "" : `${cpu} of the CPU with traces off`));
    }
  }
} finally {
  await Promise.all(all.map(({ server }) => end(server)));
  collector.close();
  rmSync(folder, { recursive: true, force: true });
}
