/**
 * Measures the requests of an agent around a call: submit, start, report. Compares one process and several on one
 * Postgres, where one process decides for all or all decide in turn, and SQLite. The variants alternate in one run.
 * Each agent keeps using the same process, and waits for each response.
 *
 *   BENCH_SECONDS=8 BENCH_AGENTS=32 BENCH_PROCESSES=4 npm run bench:flow
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sharedEnvironment } from "../test/support/deployment.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { ALLOWED, end, start, type Server } from "./load.ts";
import { cpuOf } from "./meter.ts";
import { percent } from "./table.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const AGENTS = Number(process.env["BENCH_AGENTS"] ?? 32);
const PROCESSES = Number(process.env["BENCH_PROCESSES"] ?? 4);
const ROUNDS = 4;

interface Fleet {
  name: string;
  servers: readonly Server[];
}

interface Turn {
  /** Completed actions per second. */
  rate: number;
  /** Mean milliseconds of a submission, a start and a result. */
  ms: number[];
  /** Microseconds of CPU time of the services for each action. */
  cpu: number;
}

const connections = new Agent({ keepAlive: true });

function post({ url }: Server, key: string, path: string, body: string): Promise<{ id: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const call = request(`${url}${path}`, { agent: connections, method: "POST", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => (text += chunk));
      answer.on("end", () =>
        answer.statusCode === 200 ? resolve(JSON.parse(text) as { id: string }) : reject(new Error(text)),
      );
    });
    call.on("error", reject);
    call.end(body);
  });
}

async function turn({ servers }: Fleet, seconds: number): Promise<Turn> {
  const key = servers.map((server) => server.key).find((one) => one !== "") ?? "";
  const until = performance.now() + seconds * 1000;
  const spent = (): number => servers.reduce((sum, { child }) => sum + cpuOf(child.pid), 0);
  const [before, ms] = [spent(), [0, 0, 0]];
  let actions = 0;
  await Promise.all(
    Array.from({ length: AGENTS }, async (_, i) => {
      const server = servers[i % servers.length] as Server;
      while (performance.now() < until) {
        let begun = performance.now();
        const lap = (step: number): void => {
          const now = performance.now();
          ms[step] = (ms[step] ?? 0) + now - begun;
          begun = now;
        };
        const { id } = await post(server, key, ALLOWED.path, ALLOWED.body as string);
        lap(0);
        const attempt = crypto.randomUUID();
        await post(server, key, `/v1/actions/${id}/start`, JSON.stringify({ attempt }));
        lap(1);
        await post(server, key, `/v1/actions/${id}/result`, JSON.stringify({ success: true, attempt }));
        lap(2);
        actions += 1;
      }
    }),
  );
  return { rate: actions / seconds, ms: ms.map((sum) => sum / actions), cpu: (spent() - before) / actions };
}

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const postgres = await startPostgres();
const shared = sharedEnvironment("bench.test/log");
const fleets: Fleet[] = [];
try {
  const open = async (name: string, processes: number, env: Record<string, string>): Promise<void> => {
    const servers: Server[] = [];
    fleets.push({ name, servers });
    for (let i = 0; i < processes; i++) servers.push(await start("service", mkdtempSync(join(folder, "data-")), env));
  };
  const onPostgres = async (): Promise<Record<string, string>> => ({
    ...shared,
    DATABASE_URL: await postgres.database(),
  });
  await open("SQLite, 1 process", 1, {});
  await open("Postgres, 1 process", 1, await onPostgres());
  await open(`Postgres, ${PROCESSES} processes`, PROCESSES, await onPostgres());
  for (const fleet of fleets) await turn(fleet, 2);
  const turns = fleets.map((): Turn[] => []);
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, fleet] of fleets.entries()) turns[i]?.push(await turn(fleet, SECONDS / ROUNDS));
  const mean = (i: number, of: (one: Turn) => number): number =>
    (turns[i] as Turn[]).reduce((sum, one) => sum + of(one), 0) / ROUNDS;
  process.stdout.write(
    "what                      actions/s  submit ms  start ms  result ms   CPU µs   of 1 process on Postgres\n",
  );
  for (const [i, { name }] of fleets.entries()) {
    const cells = [0, 1, 2].map((step) =>
      mean(i, ({ ms }) => ms[step] ?? NaN)
        .toFixed(1)
        .padStart(10),
    );
    const [rate, cpu] = [mean(i, (one) => one.rate), mean(i, (one) => one.cpu)];
    const share = percent(rate / mean(1, (one) => one.rate));
    process.stdout.write(
      `${name.padEnd(25)}${rate.toFixed(0).padStart(10)}${cells.join(" ")}${cpu.toFixed(0).padStart(9)}   ${share}\n`,
    );
  }
} finally {
  await Promise.all(fleets.flatMap(({ servers }) => servers.map(end)));
  connections.destroy();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
