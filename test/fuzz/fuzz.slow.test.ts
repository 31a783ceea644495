/**
 * Sends many requests that are generated from the OpenAPI document to a running process. `FUZZ_REQUESTS` sets their
 * number (default 2,000). `FUZZ_SEED` repeats a run; the test prints the seed.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest, Agent, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { createResponseValidator, type Document, type ResponseValidator } from "../support/openapi.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { POLICIES } from "../support/service.ts";
import { Generator, seeded, type Generated } from "./generate.ts";
import { BOUND_MS } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SEED = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
const REQUESTS = Number(process.env["FUZZ_REQUESTS"] ?? 2000);
const PARALLEL = 16;
/** A response that takes longer counts as a hang. This service limits waits to one second. */
const DEADLINE_MS = BOUND_MS;
const MORE_MEMORY = 400 * 1024 * 1024;

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

describe(`fuzz with FUZZ_SEED=${SEED}`, () => {
  let folder: string;
  let service: ServiceProcess;
  let document: Document;
  let judge: ResponseValidator;
  let keys: string[];
  const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });

  before(async () => {
    folder = temporaryFolder("assent-fuzz-");
    const config = join(folder, "assent.yaml");
    writeFileSync(
      config,
      "server: { max_wait_seconds: 1 }\nlog: { level: warn }\nrate_limits: { bad_keys_per_minute: 0 }\n",
    );
    service = await startProcess({
      ASSENT_CONFIG: config,
      ASSENT_DATA: join(folder, "data"),
      ASSENT_POLICIES: POLICIES,
    });
    const shown = (name: string): string => new RegExp(`export ${name}=(\\S+)`).exec(service.output())?.[1] ?? "";
    keys = [shown("ADMIN_KEY"), shown("ADMIN_KEY"), shown("AGENT_KEY")];
    document = await (await fetch(`${service.url}/openapi.json`)).json();
    judge = createResponseValidator(document);
    process.stderr.write(`fuzz: FUZZ_SEED=${SEED} FUZZ_REQUESTS=${REQUESTS}\n`);
  });
  after(async () => {
    agent.destroy();
    if (service.child.exitCode === null) service.child.kill("SIGKILL");
    await service.ended;
    rmSync(folder, { recursive: true, force: true });
  });

  /**
   * Sends requests through node:http, because `fetch` would correct odd paths, odd methods and bodies of GET requests.
   */
  function send({ method, address, headers, body }: Generated, key: string | null): Promise<Answer> {
    const { hostname, port } = new URL(service.url);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        request.destroy();
        reject(new Error("hang"));
      }, DEADLINE_MS);
      const done = (answer: Answer): void => {
        clearTimeout(timer);
        resolve(answer);
      };
      const request = httpRequest(
        {
          agent,
          hostname,
          port,
          method,
          path: address,
          headers: {
            ...printable(headers),
            ...(key === null ? {} : { authorization: `Bearer ${key}` }),
            ...(body === null ? {} : { "content-length": body.length }),
          },
        },
        (response: IncomingMessage) => {
          const given = new Headers();
          for (const [name, value] of Object.entries(response.headers)) given.set(name, String(value));
          const chunks: Buffer[] = [];
          const answer = (): Answer => ({
            status: response.statusCode ?? 0,
            headers: given,
            text: Buffer.concat(chunks).toString("utf8"),
          });
          response.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            // An event stream does not end by itself.
            if (response.headers["content-type"] === "text/event-stream") {
              done(answer());
              response.destroy();
            }
          });
          response.on("end", () => done(answer()));
          response.on("error", reject);
        },
      );
      request.on("error", (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        // The server closes the connection after a body that it refused to read.
        if (error.code === "EPIPE" || error.code === "ECONNRESET")
          resolve({ status: 0, headers: new Headers(), text: "" });
        else reject(error);
      });
      if (body !== null) request.write(body);
      request.end();
    });
  }

  function faultsOf(sent: Generated, answer: Answer): string[] {
    if (answer.status === 0) return [];
    if (answer.status >= 500) return [`status ${answer.status}: ${answer.text.slice(0, 200)}`];
    const found = commonFaults(sent, answer);
    // An unknown path or an unsupported method belongs to no operation.
    const code = answer.status >= 400 ? (safeJson(answer.text) as { code?: string }).code : undefined;
    const aimed =
      sent.aimed && sent.method === sent.operation.method && code !== "NOT_FOUND" && code !== "METHOD_NOT_ALLOWED";
    return aimed ? [...found, ...judge.faults(sent.operation, answer)] : found;
  }

  /** Returns the faults of any response, independent of the request. */
  function commonFaults(sent: Generated, { status, headers, text }: Answer): string[] {
    const found: string[] = [];
    const id = headers.get("x-request-id");
    if (id === null || !/^[\w.:-]{1,128}$/.test(id)) found.push(`X-Request-Id is ${id}`);
    if (headers.get("x-evil") !== null) found.push("a header was injected");
    if (headers.get("x-content-type-options") !== "nosniff") found.push("no security headers");
    if (status < 400) return found;
    // The response validator compares these with the documentation.
    if (headers.get("content-type") === "application/scim+json" && sent.operation.path.startsWith("/scim/"))
      return found;
    if (headers.get("content-type") !== "application/problem+json")
      found.push(`${status} comes as ${headers.get("content-type")}`);
    if (sent.method === "HEAD") return text === "" ? found : [...found, "HEAD has a body"];
    const problem = safeJson(text) as { status?: number; request_id?: string };
    if (problem.status !== status || problem.request_id !== id)
      found.push(`the problem does not fit its answer: ${text.slice(0, 200)}`);
    return [...found, ...judge.valueFaults({ $ref: "#/components/schemas/Problem" }, problem)];
  }

  function learn(generator: Generator, sent: Generated, answer: Answer): void {
    if (answer.status >= 300 || !answer.text.startsWith("{")) return;
    const value = safeJson(answer.text) as Record<string, unknown>;
    const path = sent.operation.path;
    if (path.startsWith("/v1/actions")) {
      generator.learn("id", value["id"]);
      generator.learn("action_id", value["id"]);
      generator.learn("hash", value["decision_hash"]);
      generator.learn("permit", value["permit"]);
      generator.learn("token", value["approval_token"]);
    }
    if (path === "/v1/agents" && sent.method === "POST") generator.learn("agent", value["id"]);
    if (path === "/v1/policies" && sent.method === "POST") generator.learn("policy", value["name"]);
    if (path === "/v1/api-keys" && sent.method === "POST") generator.learn("key", value["id"]);
    generator.learn("cursor", value["next_cursor"]);
  }

  it(`${REQUESTS} requests cause no fault and no hang, and every response is as documented`, async () => {
    const random = seeded(SEED);
    const generator = new Generator(document, judge.operations, random);
    const found: string[] = [];
    const statuses = new Map<number, number>();
    const memory = residentBytes(service.child.pid);
    for (let sent = 0; sent < REQUESTS && found.length < 10; sent += PARALLEL) {
      // A round is generated completely before its responses are evaluated, in order, so that a seed produces the same
      // requests whatever the timing.
      const round = Array.from({ length: PARALLEL }, () => ({
        request: generator.next(),
        key: generator.chance(0.08) ? generator.pick([null, "nobody", "assent_x"]) : generator.pick(keys),
      }));
      const answers = await Promise.all(
        round.map(({ request, key }) => send(request, key).catch((error: unknown) => error as Error)),
      );
      for (const [i, answer] of answers.entries()) {
        const { request } = round[i] as (typeof round)[number];
        const faults = answer instanceof Error ? [answer.message] : faultsOf(request, answer);
        if (!(answer instanceof Error)) {
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          learn(generator, request, answer);
        }
        for (const fault of faults) {
          found.push(
            `${fault}\n    ${request.kind} ${request.method} ${request.address.slice(0, 300)} ${JSON.stringify(request.headers)}\n    ${request.body === null ? "" : new TextDecoder().decode(request.body).slice(0, 600)}`,
          );
        }
      }
    }
    const grown = residentBytes(service.child.pid) - memory;
    process.stderr.write(
      `fuzz: ${[...statuses]
        .sort(([a], [b]) => a - b)
        .map(([status, count]) => `${status}×${count}`)
        .join(" ")}, the process grew by ${Math.round(grown / 2 ** 20)} MiB\n`,
    );
    assert.deepEqual(found, [], `FUZZ_SEED=${SEED}`);
    // The server may close a connection after it rejected a body unread. A service that crashed would close all
    // connections.
    assert.ok((statuses.get(0) ?? 0) <= REQUESTS / 100, `${statuses.get(0)} requests were not answered`);
    // Most requests must pass authentication and routing; otherwise this test covers little.
    assert.ok(
      (statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) + (statuses.get(202) ?? 0) > REQUESTS / 20,
      "too few requests were taken",
    );
    assert.ok(grown < MORE_MEMORY, `the process grew by ${Math.round(grown / 2 ** 20)} MiB`);
  });

  it("malformed HTTP gets an error or a closed connection, and does not affect other clients", async () => {
    const { port } = new URL(service.url);
    const raw = [
      "GET / HTTP/9.9\r\n\r\n",
      "\r\n\r\n\r\n",
      "POST /v1/actions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
      "POST /v1/actions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /v1/actions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
      "GET /v1/actions HTTP/1.1\r\nHost: x\r\nX: a\u0000b\r\n\r\n",
      `GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      `GET / HTTP/1.1\r\nHost: x\r\n${"X: y\r\n".repeat(5000)}\r\n`,
      "GET http://evil.example/v1/actions HTTP/1.1\r\nHost: x\r\n\r\n",
      "CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /healthz HTTP/1.1\r\n\r\n",
      "POST /v1/actions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
      "\u0016\u0003\u0001\u0002\u0000\u0001",
      `POST /v1/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys[0] ?? ""}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"agent_id"`,
    ];
    for (const text of raw) {
      const [status] = statusesOf(await exchange(Number(port), Buffer.from(text, "latin1")));
      assert.ok(
        status === undefined || status < 500 || status === 505,
        `${status} for ${JSON.stringify(text.slice(0, 80))}`,
      );
    }
    assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
  });

  it("bodies with a false length are rejected or cut off, and none of them hangs", async () => {
    const random = seeded(SEED ^ 0x5eed);
    const generator = new Generator(document, judge.operations, random);
    const port = Number(new URL(service.url).port);
    const found: string[] = [];
    let lies = 0;
    while (lies < Math.max(100, REQUESTS / 50)) {
      const { method, address, headers, body } = generator.next();
      if (body === null || body.length === 0 || body.length > 50_000) continue;
      lies++;
      const [name, framing, payload] = generator.lie(body);
      const head = Object.entries({ ...printable(headers), host: "x", authorization: `Bearer ${keys[0] ?? ""}` })
        .map(([key, value]) => `${key}: ${value}\r\n`)
        .join("");
      const sent = Buffer.concat([
        Buffer.from(`${method} ${address} HTTP/1.1\r\n${head}${framing}\r\n`, "latin1"),
        payload,
      ]);
      const got = await exchange(port, sent).catch((error: unknown) => String(error));
      for (const status of statusesOf(got))
        if (status >= 500)
          found.push(`${name}: ${status} for ${JSON.stringify(sent.toString("latin1").slice(0, 400))}`);
      if (got.startsWith("Error"))
        found.push(`${name}: ${got} for ${JSON.stringify(sent.toString("latin1").slice(0, 400))}`);
    }
    assert.deepEqual(found, [], `FUZZ_SEED=${SEED}`);
    assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
  });

  it("leaves a healthy service and a ledger that verifies", async () => {
    assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
    assert.equal(await stopProcess(service), 0, service.output().slice(-2000));
    assert.ok(!/"level":"error"/.test(service.output()), service.output().slice(-3000));
    const storage = sqliteStorage({ path: join(folder, "data", "assent.db") });
    await storage.open();
    try {
      assert.deepEqual((await auditStore(storage)).faults, []);
    } finally {
      await storage.close();
    }
  });
});

/**
 * Sends raw bytes, and returns everything received until the server closes the connection. Rejects if the server does
 * not respond or close.
 */
function exchange(port: number, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    let got = "";
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => socket.end(bytes));
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`hang, after ${JSON.stringify(got.slice(0, 200))}`));
    }, DEADLINE_MS);
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(got);
    };
    socket.on("data", (chunk) => (got += chunk.toString("latin1")));
    for (const event of ["end", "error", "close"]) socket.on(event, end);
  });
}

/** Returns the status of every response on a connection. */
function statusesOf(got: string): number[] {
  return [...got.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Removes headers that node:http refuses to send. The test with raw sockets sends such headers. */
function printable(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value)));
}

/** Returns resident memory on Linux. On other systems, memory is not measured. */
function residentBytes(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
  } catch {
    return 0;
  }
}
