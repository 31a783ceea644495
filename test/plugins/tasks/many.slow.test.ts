/**
 * A store with more grants, tasks and authorities than the service remembers: the audit and the copy still read all of
 * them.
 * @needs grants, sub-agents, users
 */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { taskState } from "../../../plugins/tasks/state.ts";
import { decodeEntry } from "../../../src/core.ts";
import { RETAINED_ENDED, toRfc3339 } from "../../../src/plugin.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { assentInProcessWithEnv } from "../../support/cli.ts";
import { startPeople } from "../../support/people.ts";
import { makeKey, waitForSignature, type Answer, type Service } from "../../support/service.ts";
import { loadSqlite } from "../../../plugins/storage-sqlite/load-library.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { eventually } from "../../support/wait.ts";

const POLICY = `policy: work
rules:
  - { name: pay, agent: "boss*", tool: bank, effect: allow }
  - { name: worker, agent: "worker*", tool: bank, effect: allow }
  - { name: deploy, tool: ci, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
`;
const PER_ROUND = 256;
const ROUNDS = Math.ceil((2 * RETAINED_ENDED) / PER_ROUND) + 1;

let service: Service;
let alice: string;
const bosses: { name: string; key: string }[] = [];
let worker: { key: string };
let n = 0;
before(async () => {
  service = await startPeople({
    policy: POLICY,
    change(config) {
      config.approvals.trust_key_makers = true;
    },
  });
  alice = (await makeKey(service, { name: "alice", preset: "approver", owner: "alice" })).key;
  for (let i = 0; i < 1; i++) {
    const name = `boss-${i}`;
    bosses.push({ name, ...(await makeKey(service, { name, preset: "agent", agent_id: name, owner: "bob" })) });
  }
  worker = await makeKey(service, { name: "worker", preset: "agent", agent_id: "worker", owner: "bob" });
});
after(() => service.close());

/** Sends the request until the store answers, because a busy disk delays the signatures. */
async function post(path: string, key: string, body: object, idempotency = `n-${++n}`): Promise<Answer["body"]> {
  const headers = { "Idempotency-Key": idempotency };
  const answer = await eventually(
    async () => {
      const { status, body: json } = await service.call("POST", path, { key, body, headers });
      return status === 503 ? undefined : { status, json };
    },
    () => `${path} is not answered`,
  );
  assert.ok(answer.status < 300, JSON.stringify(answer.json));
  return answer.json;
}
/** Lets the time of all grants, tasks and authorities pass. Waits for the signature, which must be newer than 10 s. */
async function pass(): Promise<void> {
  await waitForSignature(service);
  service.clock.now += 120_000;
}
const startTask = (agent: string, idempotency?: string): Promise<Answer["body"]> => {
  const operations = [{ tool: "ci", operation: "deploy", count: 1 }];
  return post("/v1/tasks", alice, { agent_id: agent, title: "release", for: "1m", operations }, idempotency);
};
const give = (boss: { key: string }, idempotency?: string): Promise<Answer["body"]> =>
  post("/v1/authorities", boss.key, { agent_id: "worker", tools: ["bank"], for: "1m" }, idempotency);

/** Records the entries of the first grant, task and authority again, with other ids, as requests would. */
async function repeatFirst(): Promise<void> {
  const { size } = await service.storage.head();
  const stored = await service.storage.entries(0, size);
  const entryOf = (type: string): Answer["body"] =>
    decodeEntry((stored.find((each) => each.type === type) as { bytes: Uint8Array }).bytes);
  const [grant, task, authority] = ["grant", "task", "authority"].map(entryOf);
  const { host } = service.runtime;
  for (let round = 0; round < ROUNDS; round++) {
    await pass();
    await host.ledger.transact((tx) => {
      const [at, until] = [toRfc3339(tx.now), toRfc3339(tx.now + 60_000)];
      for (let i = 0; i < PER_ROUND; i++) {
        const id = host.newId();
        const of = `bot-${i}`;
        tx.record({ ...grant, at, agent_id: of, grant: { ...grant.grant, id, until } });
        tx.record({ ...task, at, agent_id: of, task: { ...task.task, id: host.newId(), grants: [id], until } });
        tx.record({ ...authority, at, authority: { ...authority.authority, id: host.newId(), until } });
      }
      return Promise.resolve();
    });
  }
}

test("the audit and the copy read what the service has forgotten", async () => {
  const first = { task: await startTask("first", "task"), authority: await give(bosses[0] as never, "authority") };
  const grant = { agent_id: "second", tool: "ci", operation: "deploy", count: 1, for: "1m" };
  const { id: grantId } = await post("/v1/grants", alice, grant, "grant");
  const used = await post("/v1/actions", service.agent, {
    agent_id: "first",
    tool: "ci",
    operation: "deploy",
    params: {},
  });
  const under = { agent_id: "worker", tool: "bank", operation: "pay", params: {}, authority: first.authority.id };
  const paid = await post("/v1/actions", worker.key, under);
  assert.deepEqual([used.status, paid.status], ["allowed", "allowed"], JSON.stringify([used, paid]));
  await repeatFirst();
  await pass();
  const { all } = (await service.runtime.host.snapshot()).state(taskState);
  assert.ok(!all.has(first.task.id) && all.size < PER_ROUND * ROUNDS, `the service remembers ${all.size} tasks`);
  const { faults, entries } = await auditStore(service.storage);
  assert.deepEqual(faults, []);
  assert.ok(entries > 3 * PER_ROUND * ROUNDS, String(entries));

  const folder = temporaryFolder("assent-many-");
  cpSync(service.folder, folder, { recursive: true });
  const env = { ASSENT_DATA: folder, ASSENT_POLICIES: join(folder, "policies") };
  const to = temporaryFolder("assent-many-copy-");
  const copied = await assentInProcessWithEnv(env, "copy", "--to", to);
  assert.equal(copied.code, 0, copied.err + copied.out);
  assert.match(copied.out, new RegExp(`^copied ${entries} entries`));
  const { DatabaseSync } = await loadSqlite();
  const audit = (): ReturnType<typeof assentInProcessWithEnv> =>
    assentInProcessWithEnv({ ...env, ASSENT_DATA: to }, "audit");
  const whole = await audit();
  assert.equal(whole.code, 0, whole.err + whole.out);
  // Each damage is to the oldest of its kind, which no process remembers.
  for (const [kind, id] of Object.entries({ task: first.task.id, authority: first.authority.id, grant: grantId })) {
    const db = new DatabaseSync(join(to, "assent.db"));
    const row = `where idempotency_key = '${kind}'`;
    const other = `'00000000-0000-7000-8000-000000000000'`;
    db.exec(`update idempotency set resource_id = ${other} ${row}`);
    db.close();
    const found = await audit();
    assert.equal(found.code, 6, `${kind}: ${found.out}`);
    const again = new DatabaseSync(join(to, "assent.db"));
    again.exec(`update idempotency set resource_id = '${id}' ${row}`);
    again.close();
  }
  assert.equal((await audit()).code, 0);
});
