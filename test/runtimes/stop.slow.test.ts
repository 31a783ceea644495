/**
 * Stopping a service with open connections, on every runtime: requests in progress get their responses, and nothing
 * else delays the exit.
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { startProcess, type ServiceProcess } from "../support/process.ts";
import { programOf, withoutRuntime, type RuntimeName } from "../support/runtimes.ts";
import { ALLOWED, ASKED, FEW_POLICIES } from "../support/service.ts";
import { withTimeout, until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const RUNTIMES: readonly RuntimeName[] = ["node", "deno", "bun"];
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;

/** One connection over a socket: what it received, and whether the service has closed it. */
class Connection {
  received = "";
  ended = false;
  readonly socket: Socket;
  constructor(service: ServiceProcess) {
    const { hostname, port } = new URL(service.url);
    this.socket = connect(Number(port), hostname);
    this.socket.on("data", (chunk: Buffer) => (this.received += chunk.toString()));
    this.socket.on("close", () => (this.ended = true));
    this.socket.on("error", () => undefined);
  }
  ask(method: string, path: string, body = "", sent = body.length): void {
    const type = body === "" ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    const head = `${method} ${path} HTTP/1.1\r\nHost: assent.test\r\nAuthorization: Bearer ${ADMIN}\r\n${type}\r\n`;
    this.socket.write(head + body.slice(0, sent));
  }
  /** Number of complete responses so far. */
  get answers(): number {
    return [...this.received.matchAll(/HTTP\/1\.1 \d{3}/g)].length;
  }
}

const last = ({ received }: Connection): string => received.slice(received.lastIndexOf("HTTP/1.1"));

async function withService(
  runtime: RuntimeName,
  work: (service: ServiceProcess, folder: string) => Promise<void>,
  env: Record<string, string> = {},
): Promise<void> {
  const folder = temporaryFolder("assent-stop-");
  const service = await startProcess(
    { ASSENT_DATA: folder, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN, ...env },
    [],
    runtime,
    programOf(runtime),
  );
  try {
    await work(service, folder);
  } finally {
    service.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const runtime of RUNTIMES) {
  describe(`a stop on ${runtime}`, { skip: withoutRuntime(runtime) }, () => {
    it("reports unready at once, and continues to decide for drain_seconds, with Connection: close", () =>
      withService(
        runtime,
        async (service) => {
          const ready = async (): Promise<number> => (await fetch(`${service.url}/readyz`)).status;
          assert.equal(await ready(), 200);
          service.child.kill("SIGTERM");
          await until("it is unready", async () => (await ready()) === 503);
          const fresh = new Connection(service);
          fresh.ask("POST", "/v1/actions", JSON.stringify(ALLOWED));
          await until("it is answered", () => fresh.received.includes('"status":'));
          assert.match(fresh.received, /^HTTP\/1\.1 200 [^]*connection: close\r\n[^]*"status":"allowed"/i);
          // A second signal ends the drain.
          const exited = new Promise((resolve) => service.child.once("exit", resolve));
          service.child.kill("SIGTERM");
          assert.equal(await exited, 130);
        },
        { ASSENT_DRAIN_SECONDS: "300" },
      ));

    it("closes idle connections, ends waits, and lets an upload finish, each with Connection: close", () =>
      withService(runtime, async (service) => {
        const asked = JSON.stringify(ASKED);
        const [idle, waiting, upload] = [new Connection(service), new Connection(service), new Connection(service)];
        idle.ask("POST", "/v1/actions", asked);
        await until("the idle one is answered", () => idle.received.includes('"id"'));
        const id = /"id":"([^"]+)"/.exec(idle.received)?.[1] ?? "";
        waiting.ask("GET", "/healthz");
        upload.ask("GET", "/healthz");
        await until("they are open", () => waiting.answers === 1 && upload.answers === 1);
        waiting.ask("GET", `/v1/actions/${id}?wait=60`);
        const text = JSON.stringify(ALLOWED);
        upload.ask("POST", "/v1/actions", text, 20);
        // After both requests, so that both have started.
        for (let i = 0; i < 20; i++) await fetch(`${service.url}/healthz`);
        service.child.kill("SIGTERM");
        await until("the idle one is closed", () => idle.ended);
        await until("the wait ends", () => waiting.answers === 2);
        await until("and its connection", () => waiting.ended);
        assert.match(last(waiting), /^HTTP\/1\.1 200[^]*\r\nconnection: close\r\n/i);
        upload.socket.write(text.slice(20));
        await until("the upload is answered, and its connection closed", () => upload.answers === 2 && upload.ended);
        // Deno aborts bodies that are still being received. The response is an error, and nothing was decided.
        const status = runtime === "deno" ? 400 : 200;
        assert.match(last(upload), new RegExp(`^HTTP/1\\.1 ${status}[^]*\\r\\nconnection: close\\r\\n`, "i"));
        assert.equal(await withTimeout("it ends", service.ended), 0);
        assert.doesNotMatch(service.output(), /Uncaught/);
      }));

    it("under load, returns every decision that it records", () =>
      withService(runtime, async (service, folder) => {
        let stopped = false;
        let answered = 0;
        let cut = 0;
        const agent = new Agent({ keepAlive: true, maxSockets: 40 });
        /** Resolves to false once the service no longer accepts connections. */
        const submit = (): Promise<boolean> =>
          new Promise((resolve) => {
            const sent = request(
              `${service.url}/v1/actions`,
              {
                agent,
                method: "POST",
                headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
              },
              (response) => {
                response.resume();
                response.once("end", () => {
                  answered += response.statusCode === 200 ? 1 : 0;
                  resolve(true);
                });
                response.once("error", () => {
                  cut += 1;
                  resolve(true);
                });
              },
            );
            // The connection was closed while it was idle, or the service no longer listens.
            sent.once("error", () => resolve(!stopped));
            sent.end(JSON.stringify(ALLOWED));
          });
        const clients = Array.from({ length: 40 }, async () => {
          while (await submit());
        });
        await until("it is under load", () => answered > 400);
        const ended = withTimeout("it ends", service.ended);
        stopped = true;
        service.child.kill("SIGTERM");
        assert.equal(await ended, 0);
        await Promise.all(clients);
        agent.destroy();
        assert.equal(cut, 0);
        const store = sqliteStorage({ path: join(folder, "assent.db") });
        await store.open({ readOnly: true });
        const recorded = await store.actions({ visibility: { all: true }, limit: 1_000_000 });
        await store.close();
        assert.equal(recorded.length, answered);
      }));
  });
}
