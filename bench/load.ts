/** Starts servers as child processes and sends load to them. */
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import autocannon from "autocannon";
import { commandOf, ROOT, scriptOf, thisRuntime, type RuntimeName } from "../test/support/runtimes.ts";
import sample from "./sample.json" with { type: "json" };

export const POLICIES = `${ROOT}policies`;

export interface Server {
  child: ChildProcess;
  url: string;
  key: string;
}

export interface Measured {
  /** Number of responses. */
  requests: number;
  rps: number;
  /** Latencies in milliseconds. */
  p50: number;
  p95: number;
  p99: number;
  errors: number;
}

/**
 * The requests of a measurement: all with the same body, or with the results of `next`. They are sent as JSON by POST.
 */
export interface Work {
  path: string;
  body?: string;
  next?(): { body: string; headers?: Record<string, string> };
}

/** The same allowed refund in each request. */
export const ALLOWED: Work = { path: "/v1/actions", body: JSON.stringify(sample) };

/**
 * Starts a script of this folder that prints `{url, key}`.
 * @param build the folder `build` of another checkout, which has its own policies
 */
export async function start(
  script: "service" | "bare",
  data: string,
  env: Record<string, string> = {},
  {
    runtime = thisRuntime,
    build,
    policies = build === undefined ? POLICIES : join(build, "policies"),
  }: { runtime?: RuntimeName; build?: string | undefined; policies?: string } = {},
): Promise<Server> {
  const path = build === undefined ? scriptOf(`bench/${script}`) : join(build, `bench/${script}.js`);
  const permissions = [
    "--no-prompt",
    "--allow-net",
    "--allow-read",
    `--allow-write=${data}`,
    "--allow-env",
    "--allow-sys=uid",
  ];
  const child = spawn(...commandOf(runtime, path, [data, policies], permissions), {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, DENO_NO_UPDATE_CHECK: "1", ...env },
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once("data", (chunk: Buffer) => resolve(chunk.toString()));
    child.once("exit", (code) => reject(new Error(`the ${script} ended with ${code ?? "a signal"}`)));
  });
  return { child, ...(JSON.parse(line) as { url: string; key: string }) };
}

/**
 * Throws unless the sample is allowed. Without policies, or with policies that a build cannot read, everything is
 * denied, which is cheaper.
 */
export async function assertAllows({ url, key }: Server): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + ALLOWED.path, { method: "POST", headers, body: ALLOWED.body ?? "" });
  const { status } = (await response.json()) as { status?: string };
  if (status !== "allowed") throw new Error(`the sample is ${status ?? response.status} instead of allowed`);
}

/** Stops a server gracefully, and waits for its exit. */
export async function end({ child }: Server): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  await gone;
}

/**
 * Sends the same work to all servers concurrently, with the connections distributed among them. With `amount`, sends
 * that number of requests to each.
 */
export async function measure(
  servers: readonly Pick<Server, "url" | "key">[],
  connections: number,
  seconds: number,
  { work = ALLOWED, amount }: { work?: Work; amount?: number } = {},
): Promise<Measured> {
  // autocannon records whole milliseconds, and its histogram has p97.5 instead of p95, so record latencies here.
  const latencies: number[] = [];
  const { next } = work;
  const results = await Promise.all(
    servers.map(
      ({ url, key }) =>
        new Promise<autocannon.Result>((resolve, reject) => {
          const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
          const run = autocannon(
            {
              url: `${url}${work.path}`,
              method: "POST",
              connections: Math.max(1, Math.round(connections / servers.length)),
              ...(amount === undefined ? { duration: seconds } : { amount }),
              headers,
              ...(work.body === undefined ? {} : { body: work.body }),
              ...(next === undefined
                ? {}
                : {
                    requests: [
                      {
                        setupRequest(request: autocannon.Request) {
                          const made = next();
                          return { ...request, body: made.body, headers: { ...headers, ...made.headers } };
                        },
                      },
                    ],
                  }),
            },
            (error: unknown, done) =>
              error == null ? resolve(done) : reject(new Error("the load generator failed", { cause: error })),
          );
          run.on("response", (_client, _status, _bytes, ms) => {
            if (latencies.length < 1_000_000) latencies.push(ms);
          });
        }),
    ),
  );
  latencies.sort((a, b) => a - b);
  const at = (q: number): number => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * q))] ?? NaN;
  const sum = (pick: (result: autocannon.Result) => number): number =>
    results.reduce((total, result) => total + pick(result), 0);
  const measured = {
    requests: sum((r) => r["2xx"]),
    rps: sum((r) => r["2xx"] / r.duration),
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    errors: sum((r) => r.non2xx + r.errors),
  };
  if (measured.errors > 0) throw new Error(`${measured.errors} requests failed: the numbers mean nothing`);
  return measured;
}

export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? NaN;

export function mean(parts: Measured[]): Measured {
  const of = (pick: (m: Measured) => number): number => parts.reduce((sum, part) => sum + pick(part), 0) / parts.length;
  return {
    requests: of((m) => m.requests),
    rps: of((m) => m.rps),
    p50: of((m) => m.p50),
    p95: of((m) => m.p95),
    p99: of((m) => m.p99),
    errors: 0,
  };
}
