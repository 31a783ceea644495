/** Four processes on one Postgres count the uses of a grant exactly, and an end holds in each of them at once. */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PROCESSES = 4;
const SHARED = sharedEnvironment("grants.test/log");
const POLICY = `policy: work
rules:
  - { name: pay, tool: bank, operation: pay, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
`;

describe("four processes on one Postgres", { skip: withoutPostgres }, () => {
  const folder = temporaryFolder("assent-grants-");
  let server: PostgresServer;
  let url: string;
  let processes: ServiceProcess[] = [];
  let approver: string;
  let submitter: string;
  before(async () => {
    const policies = join(folder, "policies");
    mkdirSync(policies);
    writeFileSync(join(policies, "policy.yaml"), POLICY);
    server = await startPostgres();
    url = await server.database();
    const started = await Promise.allSettled(
      Array.from({ length: PROCESSES }, (_, i) =>
        startProcess({
          ...SHARED,
          DATABASE_URL: url,
          ASSENT_POLICIES: policies,
          ASSENT_DATA: join(folder, String(i)),
        }),
      ),
    );
    processes = started.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
    assert.equal(processes.length, PROCESSES, JSON.stringify(started));
    approver = await createKey({ name: "ann", preset: "approver", owner: "ann" });
    submitter = await createKey({ name: "agents", preset: "agent" });
  });
  after(async () => {
    await Promise.all(processes.map((process) => stopProcess(process)));
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function send(at: number, key: string, path: string, body: object, headers = {}) {
    const response = await fetch(`${processes[at % PROCESSES]?.url ?? ""}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
  async function createKey(body: object): Promise<string> {
    const { body: created } = await send(0, ADMIN, "/v1/api-keys", body);
    return String(created["key"]);
  }
  async function grant(at: number, agent_id: string, more: object): Promise<string> {
    const body = { agent_id, tool: "bank", operation: "pay", for: "1h", ...more };
    const answer = await send(at, approver, "/v1/grants", body);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return String(answer.body["id"]);
  }
  const submit = async (at: number, agent_id: string, n: number, headers = {}): Promise<unknown> =>
    (await send(at, submitter, "/v1/actions", { agent_id, tool: "bank", operation: "pay", params: { n } }, headers))
      .body["status"];
  const count = (statuses: unknown[], status: string): number => statuses.filter((each) => each === status).length;

  it("allow no use more and none less than the caps on count and sum", async () => {
    await grant(0, "counted", { count: 13 });
    await grant(1, "summed", { count: 50, sum: { of: "0.3", at_most: 3 } });
    const statuses = await Promise.all(
      Array.from({ length: 40 }, (_, i) => Promise.all([submit(i, "counted", i), submit(i + 1, "summed", i)])),
    );
    const [counted, summed] = [statuses.map(([each]) => each), statuses.map(([, each]) => each)];
    assert.deepEqual([count(counted, "allowed"), count(counted, "pending_approval")], [13, 27]);
    assert.deepEqual([count(summed, "allowed"), count(summed, "pending_approval")], [10, 30]);
  });

  it("count a submission once that is sent to each of them with one idempotency key", async () => {
    const id = await grant(2, "repeated", { count: 2 });
    const headers = { "idempotency-key": "once" };
    const statuses = await Promise.all(Array.from({ length: 12 }, (_, i) => submit(i, "repeated", 0, headers)));
    assert.equal(count(statuses, "allowed"), 12);
    const response = await fetch(`${processes[3]?.url ?? ""}/v1/grants/${id}`, {
      headers: { authorization: `Bearer ${approver}` },
    });
    assert.deepEqual(((await response.json()) as { used: object }).used, { count: 1, sum: null });
  });

  it("cover nothing from the answer to a revocation on", async () => {
    for (let i = 0; i < PROCESSES; i++) {
      const agent = `revoked-${i}`;
      const id = await grant(i, agent, { count: 50 });
      assert.equal(await submit(i + 1, agent, 0), "allowed");
      assert.equal((await send(i + 2, approver, `/v1/grants/${id}/revoke`, {})).status, 200);
      const statuses = await Promise.all(Array.from({ length: 8 }, (_, n) => submit(n, agent, n + 1)));
      assert.equal(count(statuses, "pending_approval"), 8);
    }
  });

  it("leave a record that passes the audit", async () => {
    const store = postgresStorage({ url });
    await store.open();
    const { faults } = await auditStore(store);
    await store.close();
    assert.deepEqual(faults, []);
  });
});
