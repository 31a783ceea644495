/** A row that was altered in the store has no effect: votes, starts and permits compare it with the ledger. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { toHex, utf8 } from "../../../src/domain/hash.ts";
import { hashLeaf } from "../../../src/domain/merkle.ts";
import { rawSqlite, type RawStore, type RawValue } from "../../support/raw-store.ts";
import {
  plainVotes,
  ALLOWED,
  ASKED,
  ASKED_TWO,
  DENIED,
  startService,
  type Answer,
  type Service,
  person,
  addPerson,
} from "../../support/service.ts";

let service: Service;
let raw: RawStore;
let approvers: string[] = [];

before(async () => {
  let path = "";
  service = await startService({
    broken: true,
    change: plainVotes,
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path });
    },
  });
  raw = await rawSqlite(path);
  for (const name of ["Anna", "Ben"]) {
    const body = { name, preset: "approver", owner: await addPerson(service, name) };
    approvers.push((await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body.key as string);
  }
});
after(async () => {
  await raw.close();
  await service.close();
});

const submit = async (body: object): Promise<Answer["body"]> =>
  (await service.call("POST", "/v1/actions", { body, headers: { prefer: "permit" } })).body;

async function vote(id: string, key: string | undefined, approve = true): Promise<Answer> {
  const token = (await service.call("GET", `/v1/actions/${id}`, { key: key ?? service.admin })).body.approval_token;
  return service.call("POST", `/v1/actions/${id}/approval`, { key: key ?? service.admin, body: { token, approve } });
}

/** Sets columns of the rows of one action, by raw SQL. */
async function alter(table: string, id: string, values: Record<string, RawValue>): Promise<void> {
  const found = raw.tables.find(({ name }) => name === table);
  assert.ok(found !== undefined);
  for (const row of await raw.rows(found)) {
    if (row["id"] !== id && row["action_id"] !== id) continue;
    for (const [column, value] of Object.entries(values)) await raw.set(found, row, column, value);
  }
}

const said = ({ status, body }: Answer): unknown[] => [status, body.code];
const ALTERED = [409, "RECORD_ALTERED"];

test("a quorum that was lowered in the store is not met by one vote", async () => {
  const { id } = await submit(ASKED_TWO);
  await alter("actions", id, { quorum: 1 });
  assert.deepEqual(said(await vote(id, approvers[0])), ALTERED);
  await alter("actions", id, { quorum: 2 });
  assert.equal((await vote(id, approvers[0])).body.status, "pending_approval");
  assert.equal((await vote(id, approvers[1])).body.status, "approved");
});

test("a vote that was added or inverted in the store does not count", async () => {
  const { id } = await submit(ASKED_TWO);
  assert.equal((await vote(id, approvers[0])).status, 200);
  for (const values of [{ principal: person("carla") }, { key_id: "another" }, { approve: 0 }, { reason: "yes" }]) {
    const [was] = await service.storage.approvals(id);
    await alter("approvals", id, values);
    assert.deepEqual(said(await vote(id, approvers[1])), ALTERED, JSON.stringify(values));
    const table = raw.tables.find(({ name }) => name === "approvals");
    assert.ok(table !== undefined && was !== undefined);
    for (const row of (await raw.rows(table)).filter((one) => one["action_id"] === id)) {
      await raw.remove(table, row);
      await raw.insert(table, { ...row, principal: was.principal, key_id: was.key_id, approve: 1, reason: was.reason });
    }
  }
  assert.equal((await vote(id, approvers[1])).body.status, "approved");
});

test("the submitter and the displayed request cannot be changed in the store", async () => {
  for (const values of [
    { submitted_owner: person("Carla") },
    { submitted_by: "another" },
    { submitted_agent: "another" },
    { agent_id: "another" },
    { tool: "another" },
    { expires_at: 9_000_000_000_000 },
    { request: JSON.stringify({ ...ASKED, params: { amount: 1 }, context: {} }) },
  ]) {
    const { id } = await submit(ASKED);
    await alter("actions", id, values);
    assert.deepEqual(said(await vote(id, approvers[0])), ALTERED, JSON.stringify(values));
  }
});

test("an action is not decided by another entry that its row was changed to name", async () => {
  const other = await submit(ALLOWED);
  const { decision_seq } = (await service.storage.action(other.id)) ?? assert.fail();
  // The sequence number of its own vote, of no entry, and of another action's decision.
  for (const number of ["vote", 1_000_000, decision_seq] as const) {
    const { id } = await submit(ASKED);
    assert.equal((await vote(id, approvers[0])).body.status, "approved");
    const seqs = (await service.storage.entriesOfAction(id)).map(({ seq }) => seq);
    if (number === decision_seq) await alter("actions", other.id, { decision_seq: 2_000_000 });
    await alter("actions", id, { decision_seq: number === "vote" ? (seqs[1] as number) : number });
    for (const verb of ["permit", "start"])
      assert.deepEqual(said(await service.call("POST", `/v1/actions/${id}/${verb}`, { body: {} })), ALTERED, verb);
    assert.deepEqual(
      (await service.storage.entriesOfAction(id)).map(({ seq }) => seq),
      seqs.slice(1),
    );
  }
});

test("an entry inserted after the ledger's head has no effect", async () => {
  const allowed = (await service.storage.action((await submit(ALLOWED)).id)) ?? assert.fail();
  const denied = await submit(DENIED);
  const [table, actions] = ["entries", "actions"].map((name) => raw.tables.find((it) => it.name === name));
  assert.ok(table !== undefined && actions !== undefined);
  const seq = (await service.storage.head()).size + 1000;
  const stored = (await raw.rows(table)).find((row) => row["action_id"] === allowed.id) ?? assert.fail();
  const text = new TextDecoder().decode(stored["bytes"] as Uint8Array);
  const forged = utf8(text.replaceAll(allowed.id, denied.id).replace(`"seq":${allowed.decision_seq}`, `"seq":${seq}`));
  const leaf_hash = hashLeaf(forged);
  await raw.insert(table, { ...stored, seq, bytes: forged, leaf_hash, action_id: denied.id });
  for (const row of await raw.rows(actions)) {
    if (row["id"] !== allowed.id) continue;
    // The row's key comes last.
    const { id: _id, decision_seq: _seq, ...values } = row;
    await alter("actions", denied.id, { ...values, decision_hash: toHex(leaf_hash), decision_seq: seq });
  }
  assert.equal((await service.storage.entriesOfAction(denied.id)).at(0)?.seq, seq, "it stands where it was put");
  for (const verb of ["permit", "start"])
    assert.deepEqual(said(await service.call("POST", `/v1/actions/${denied.id}/${verb}`, { body: {} })), ALTERED, verb);
});

test("changing the store cannot make a denied action pending or start a pending action", async () => {
  const denied = await submit(ASKED);
  assert.equal((await vote(denied.id, approvers[0], false)).body.status, "denied");
  await alter("actions", denied.id, { status: "pending_approval", waited_ms: null });
  assert.deepEqual(said(await vote(denied.id, approvers[1])), ALTERED);

  const now = Math.floor(Date.now() / 1000) * 1000;
  for (const body of [ASKED, DENIED]) {
    const { id } = await submit(body);
    await alter("actions", id, { status: "allowed", approved_until: now + 300_000 });
    for (const verb of ["permit", "start"])
      assert.deepEqual(said(await service.call("POST", `/v1/actions/${id}/${verb}`, { body: {} })), ALTERED, verb);
  }
});

test("an action starts at most once and not after the time in its entry", async () => {
  const { id, permit } = await submit(ALLOWED);
  const row = await service.storage.action(id);
  await alter("actions", id, { approved_until: (row?.approved_until ?? 0) + 3_600_000 });
  assert.deepEqual(said(await service.call("POST", `/v1/actions/${id}/permit`, { body: {} })), ALTERED);
  await alter("actions", id, { approved_until: row?.approved_until ?? null });
  assert.equal((await service.call("POST", `/v1/actions/${id}/start`, { body: { permit } })).status, 200);
  await alter("actions", id, { status: "allowed", started_at: null, started_by: null });
  assert.deepEqual(said(await service.call("POST", `/v1/actions/${id}/start`, { body: { permit } })), ALTERED);
  await alter("actions", id, { status: "executing" });
  const result = await service.call("POST", `/v1/actions/${id}/result`, {
    key: service.admin,
    body: { success: true },
  });
  assert.notEqual(result.status, 200);
});

test("votes in one batch see each other's entries", async () => {
  for (let i = 0; i < 5; i++) {
    const { id } = await submit(ASKED_TWO);
    const answers = await Promise.all(approvers.map((key) => vote(id, key)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    );
    assert.equal((await service.storage.action(id))?.status, "approved");
  }
  assert.match(service.logged.join("\n"), /an action in the store differs from the ledger/);
});

test("a result that was inserted in the store is not displayed", async () => {
  const { id } = await submit(ALLOWED);
  await alter("actions", id, { result: '{"error":null,"meta":{"refund":"re_9"},"success":true}' });
  const shown = (await service.call("GET", `/v1/actions/${id}`)).body;
  assert.deepEqual([shown.status, shown.result], ["allowed", null]);
  const { actions } = (await service.call("GET", "/v1/actions", { key: service.admin })).body;
  assert.equal(actions.find((action: { id: string }) => action.id === id).result, null);
});
