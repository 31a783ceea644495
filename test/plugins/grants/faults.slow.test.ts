/**
 * Four processes on one Postgres count the uses of a grant exactly, and a revocation takes effect in all of them at
 * once. Changing a request and voting on a plan conflict with concurrent operations of other processes.
 * @needs edits
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../../src/testing/ledger-audit.ts";
import { needs } from "../../support/features.ts";
import { ADMIN, sharedEnvironment } from "../../support/deployment.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../../support/process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const PROCESSES = 4;
const SHARED = sharedEnvironment("grants.test/log");
const POLICY = `policy: work
rules:
  - { name: pay, tool: bank, operation: pay, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: edit, tool: bank, operation: edit, effect: require_approval, approval: { editable: { params.n: { min: 0, max: 9 } } } }
  - { name: plan, tool: bank, operation: plan, effect: require_approval }
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
    // One admin makes both approvers, and the changes of one are approved by the other.
    const config = join(folder, "assent.yaml");
    writeFileSync(config, "approvals: { trust_key_makers: true }\n");
    const started = await Promise.allSettled(
      Array.from({ length: PROCESSES }, (_, i) =>
        startProcess({
          ...SHARED,
          DATABASE_URL: url,
          ASSENT_POLICIES: policies,
          ASSENT_CONFIG: config,
          ASSENT_DATA: join(folder, String(i)),
        }),
      ),
    );
    processes = started.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
    assert.equal(processes.length, PROCESSES, JSON.stringify(started));
    approver = await createKey({ name: "ann", preset: "approver" });
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

  it("allow exactly as many uses as the caps on count and sum permit", async () => {
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

  it("allow nothing after a revocation has been acknowledged", async () => {
    for (let i = 0; i < PROCESSES; i++) {
      const agent = `revoked-${i}`;
      const id = await grant(i, agent, { count: 50 });
      assert.equal(await submit(i + 1, agent, 0), "allowed");
      assert.equal((await send(i + 2, approver, `/v1/grants/${id}/revoke`, {})).status, 200);
      const statuses = await Promise.all(Array.from({ length: 8 }, (_, n) => submit(n, agent, n + 1)));
      assert.equal(count(statuses, "pending_approval"), 8);
    }
  });

  it("allow nothing of a task after another process ended it", needs("tasks"), async () => {
    const operations = [{ tool: "bank", operation: "pay", count: 50 }];
    const task = { agent_id: "tasked", title: "pay", for: "1h", operations };
    const { body: started } = await send(0, approver, "/v1/tasks", task);
    assert.equal(await submit(1, "tasked", 0), "allowed");
    assert.equal((await send(2, approver, `/v1/tasks/${String(started["id"])}/end`, {})).status, 200);
    const statuses = await Promise.all(Array.from({ length: 8 }, (_, n) => submit(n, "tasked", n + 1)));
    assert.equal(count(statuses, "pending_approval"), 8);
  });

  describe("two people act in different processes at once", () => {
    let other: string;
    before(async () => {
      other = await createKey({ name: "ben", preset: "approver" });
    });
    let run = 0;
    const body = (operation: string) => ({ agent_id: "racer", tool: "bank", operation, params: { n: 5, run: ++run } });
    const read = async (at: number, key: string, path: string): Promise<any> =>
      (
        await fetch(`${processes[at % PROCESSES]?.url ?? ""}${path}`, { headers: { authorization: `Bearer ${key}` } })
      ).json();
    /** Changes a new action while `rival` operates on it. */
    async function race(at: number, rival: (path: string, token: string) => ReturnType<typeof send>) {
      const path = `/v1/actions/${String((await send(at, submitter, "/v1/actions", body("edit"))).body["id"])}`;
      const { approval_token: token } = await read(at, approver, path);
      const { approval_token: theirs } = await read(at + 1, other, path);
      const [edited, rivalled] = await Promise.all([
        send(at, approver, `${path}/edit`, { token, changes: { "params.n": 2 } }),
        rival(path, theirs as string),
      ]);
      const outcome = [edited, rivalled].map(({ status, body: answer }) => (status < 300 ? "done" : answer["code"]));
      return { path, outcome, action: await read(at + 2, ADMIN, path) };
    }

    it(
      "a change and a vote, another change, a cancellation or a stop: the second is rejected or is based on the first",
      needs("stop"),
      async () => {
        for (let i = 0; i < 6; i++) {
          const voted = await race(i, (path, token) =>
            send(i + 1, other, `${path}/approval`, { token, approve: true }),
          );
          if (voted.outcome[0] === "done") {
            assert.deepEqual([voted.outcome[1], voted.action.status], ["TOKEN_INVALID", "pending_approval"]);
            const started = await send(i + 3, submitter, `${voted.path}/start`, {});
            assert.equal(started.body["code"], "ACTION_NOT_STARTABLE");
          } else {
            assert.deepEqual([voted.outcome, voted.action.proposed], [["ACTION_NOT_PENDING", "done"], null]);
            const started = await send(i + 3, submitter, `${voted.path}/start`, {});
            assert.equal(started.body["status"], "executing");
          }
          const twice = await race(i, (path, token) =>
            send(i + 1, other, `${path}/edit`, { token, changes: { "params.n": 3 } }),
          );
          assert.deepEqual(twice.outcome.filter((each) => each === "done").length, 1, JSON.stringify(twice.outcome));
          assert.equal(twice.action.params.n, twice.outcome[0] === "done" ? 2 : 3);
          const cancelled = await race(i, (path) => send(i + 1, submitter, `${path}/cancel`, {}));
          assert.deepEqual([cancelled.outcome[1], cancelled.action.status], ["done", "cancelled"]);
          const halt = { agent: "racer", reason: "race" };
          let stop = "";
          const stopped = await race(i, async () => {
            const answer = await send(i + 1, ADMIN, "/v1/stop", halt);
            stop = String(answer.body["id"]);
            return answer;
          });
          assert.equal(stopped.outcome[1], "done");
          assert.ok(["done", "STOPPED"].includes(String(stopped.outcome[0])), String(stopped.outcome[0]));
          await send(i, ADMIN, `/v1/stop/${stop}/lift`, { reason: "over" });
        }
      },
    );

    it("a start and a change: an approved action is not changed", async () => {
      const path = `/v1/actions/${String((await send(0, submitter, "/v1/actions", body("edit"))).body["id"])}`;
      const { approval_token: token } = await read(0, approver, path);
      const { approval_token: theirs } = await read(1, other, path);
      await send(1, other, `${path}/approval`, { token: theirs, approve: true });
      const [edited, started] = await Promise.all([
        send(2, approver, `${path}/edit`, { token, changes: { "params.n": 2 } }),
        send(3, submitter, `${path}/start`, {}),
      ]);
      assert.deepEqual([edited.body["code"], started.body["status"]], ["ACTION_NOT_PENDING", "executing"]);
    });

    it("two votes on a plan that remove different actions: one counts", needs("plans"), async () => {
      for (let i = 0; i < 4; i++) {
        const actions = [body("plan"), body("plan"), body("plan")];
        const path = `/v1/plans/${String((await send(i, submitter, "/v1/plans", { actions })).body["id"])}`;
        const votes = await Promise.all(
          [approver, other].map(async (key, n) => {
            const { approval_token: token } = await read(i + n, key, path);
            return { key, token: token as string, strikes: [{ position: n + 1 }] };
          }),
        );
        const answers = await Promise.all(
          votes.map(({ key, ...vote }, n) => send(i + n, key, `${path}/approval`, { ...vote, approve: true })),
        );
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403], JSON.stringify(answers));
        const { actions: after } = await read(i + 2, ADMIN, path);
        const expected = ["approved", "approved", "approved"];
        expected[answers.findIndex(({ status }) => status === 200)] = "denied";
        assert.deepEqual(
          after.map(({ status }: { status: string }) => status),
          expected,
        );
      }
    });
  });

  it("leave a record that passes the audit", async () => {
    const store = postgresStorage({ url });
    await store.open();
    const { faults } = await auditStore(store);
    await store.close();
    assert.deepEqual(faults, []);
  });
});
