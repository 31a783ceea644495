/**
 * Two services on one Postgres behind haproxy, configured as in deploy/proxy/haproxy.cfg. Clients that never retry get
 * no failed request while the services restart one by one. An upgrade without a schema change works the same way.
 */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { freePort, startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { findProgram, listens, withoutProxy } from "../support/proxy.ts";
import { ROOT } from "../support/runtimes.ts";
import { ALLOWED, FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { withTimeout, until } from "../support/wait.ts";

const CLIENTS = 6;
/** Much longer than three health checks of haproxy, even on a busy machine. */
const DRAIN_SECONDS = "15";

/** Clients that send one action after the other through the proxy, each once. */
function load(url: string): { decided(): number; stop(): Promise<{ failures: string[]; ids: string[] }> } {
  const [failures, ids]: [string[], string[]] = [[], []];
  let isStopping = false;
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!isStopping) {
      try {
        const answer = await fetch(`${url}/v1/actions`, {
          method: "POST",
          headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
          body: JSON.stringify(ALLOWED),
        });
        const text = await answer.text();
        if (answer.status === 200) ids.push((JSON.parse(text) as { id: string }).id);
        else failures.push(`${new Date().toISOString()} ${answer.status} ${text}`);
      } catch (error) {
        failures.push(`no answer: ${String((error as Error).cause ?? error)}`);
      }
    }
  });
  return {
    decided: () => ids.length,
    async stop() {
      isStopping = true;
      await withTimeout("the clients end", Promise.all(clients));
      return { failures, ids };
    },
  };
}

describe("two services behind haproxy", { skip: withoutPostgres || withoutProxy }, () => {
  let server: PostgresServer;
  let folder: string;
  before(async () => {
    server = await startPostgres();
    folder = temporaryFolder("assent-rolling-");
  });
  after(async () => {
    await server.stop();
  });

  async function startHaproxy(
    ports: readonly number[],
  ): Promise<{ url: string; child: ChildProcess; output(): string }> {
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(findProgram("haproxy") as string, ["-db", "-f", join(ROOT, "deploy/proxy/haproxy.cfg")], {
      env: { ASSENT_LISTEN: address, ASSENT_1: `127.0.0.1:${ports[0]}`, ASSENT_2: `127.0.0.1:${ports[1]}` },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let output = "";
    child.stderr.on("data", (chunk: Buffer) => (output += `${new Date().toISOString()} ${chunk.toString()}`));
    await until("haproxy listens", () => listens(Number(address.split(":")[1])));
    await until("a process is up", async () => (await fetch(`http://${address}/healthz`)).status === 200);
    return { url: `http://${address}`, child, output: () => output };
  }

  it("fail no request while they are restarted one by one", async () => {
    const url = await server.database();
    const ports = [await freePort(), await freePort()];
    const shared = {
      ...sharedEnvironment("rolling.test/log"),
      DATABASE_URL: url,
      ASSENT_POLICIES: FEW_POLICIES,
      ASSENT_DRAIN_SECONDS: DRAIN_SECONDS,
    };
    const envs = ports.map((port, i) => ({
      ...shared,
      ASSENT_PORT: String(port),
      ASSENT_DATA: join(folder, String(i)),
    }));
    const services: ServiceProcess[] = [];
    for (const env of envs) services.push(await startProcess(env));
    const proxy = await startHaproxy(ports);
    const started: { output(): string }[] = [proxy, ...services];
    const logs = (): string => started.map((one) => one.output()).join("\n");
    const clients = load(proxy.url);
    const store = postgresStorage({ url });
    try {
      for (const [i, env] of envs.entries()) {
        const before = clients.decided();
        await until("the load runs", () => clients.decided() > before + 100);
        assert.equal(await stopProcess(services[i] as ServiceProcess), 0);
        started.push((services[i] = await startProcess(env)));
        await until("haproxy sends it requests", () => hasDecided(services[i] as ServiceProcess));
      }
      const { failures, ids } = await clients.stop();
      assert.deepEqual(failures, [], logs());
      assert.equal(new Set(ids).size, ids.length);
      await store.open({ readOnly: true });
      for (const id of ids) assert.ok((await store.action(id)) !== null);
      assert.deepEqual((await auditStore(store, (await store.meta("log_vkey")) ?? "")).faults, []);
    } finally {
      await clients.stop();
      proxy.child.kill("SIGKILL");
      await withTimeout("the services stop", Promise.all(services.map((one) => stopProcess(one, "SIGKILL"))));
      await store.close();
    }
  });
});

/** True once the service has decided something. */
async function hasDecided({ url }: ServiceProcess): Promise<boolean> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${ADMIN}` } });
  return /^assent_decisions_total\{[^}]*\} [1-9]/m.test(await answer.text());
}
