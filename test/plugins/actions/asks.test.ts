/** How people see whether a client waits for an action, and when the action was last requested. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { memoryDisk, memoryStorage } from "../../../src/testing/memory-storage.ts";
import { ASKED, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

describe("an action that a client waits for", () => {
  let service: Service;
  let n = 0;
  before(async () => {
    service = await startService();
  });
  after(() => service.close());

  const call = (method: string, path: string, body?: unknown, key = service.agent): Promise<Answer> =>
    service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
  const wish = (): object => ({ ...ASKED, params: { ...ASKED.params, n: ++n } });
  const read = async (id: string): Promise<Answer["body"]> => (await call("GET", `/v1/actions/${id}`)).body;
  const waited = (id: string, waiting = true): Promise<void> =>
    until(`waiting is ${waiting}`, async () => (await read(id)).waiting === waiting);
  function leaving(method: string, path: string, key = service.agent, body?: object) {
    const gone = new AbortController();
    const request = new Request(`http://test${path}`, {
      method,
      signal: gone.signal,
      headers: {
        authorization: `Bearer ${key}`,
        prefer: "wait=60",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = service.runtime.fetch(request);
    return async () => {
      gone.abort();
      await answer;
    };
  }

  test("is listed as waited for until the client disconnects, for each way of waiting, without ledger entries", async () => {
    const { id, waiting, asked_at, created_at } = (await call("POST", "/v1/actions", wish())).body;
    assert.deepEqual([waiting, asked_at], [false, created_at]);
    const { size } = await service.storage.head();
    const leave = leaving("GET", `/v1/actions/${id}?wait=60`);
    await waited(id);
    const listed = (await call("GET", "/v1/approvals", undefined, service.admin)).body.actions;
    assert.equal(listed.find((action: { id: string }) => action.id === id).waiting, true);
    await leave();
    await waited(id, false);
    const body = wish();
    const leaveSubmission = leaving("POST", "/v1/actions", service.agent, body);
    let submitted = "";
    await until("it is submitted", async () => {
      const [first] = (await call("GET", "/v1/actions?limit=1")).body.actions;
      submitted = first.id as string;
      return first.params.n === n;
    });
    await waited(submitted);
    await leaveSubmission();
    await waited(submitted, false);
    assert.equal((await service.storage.head()).size, size + 1, "one decision");
  });

  test("is listed as waited for while any client waits, and at the latest until the vote", async () => {
    const { id } = (await call("POST", "/v1/actions", wish())).body;
    const [one, two] = [leaving("GET", `/v1/actions/${id}?wait=60`), leaving("GET", `/v1/actions/${id}?wait=30`)];
    await waited(id);
    await until("both are written", async () => {
      const waits = Object.values(JSON.parse((await service.storage.action(id))?.waits ?? "{}")) as number[];
      return waits.length === 1 && (waits[0] as number) > service.runtime.host.clock() + 50_000;
    });
    await one();
    await until("the other's end is what is left", async () => {
      const waits = Object.values(JSON.parse((await service.storage.action(id))?.waits ?? "{}")) as number[];
      return waits.length === 1 && (waits[0] as number) < service.runtime.host.clock() + 50_000;
    });
    assert.equal((await read(id)).waiting, true);
    await call("POST", `/v1/actions/${id}/cancel`, {});
    await two();
    assert.equal((await read(id)).waiting, false);
  });

  test("is not listed as waited for because of the approver's own request, or a request with wait=0", async () => {
    const { id } = (await call("POST", "/v1/actions", wish())).body;
    const leave = leaving("GET", `/v1/actions/${id}?wait=60`, service.admin);
    await call("GET", `/v1/actions/${id}?wait=0`);
    // Background writes go through the ledger in order, so this wait is recorded after the others.
    const { id: other } = (await call("POST", "/v1/actions", wish())).body;
    const leaveOther = leaving("GET", `/v1/actions/${other}?wait=60`);
    await waited(other);
    const record = await read(id);
    assert.deepEqual([record.waiting, record.asked_at], [false, record.created_at]);
    await leave();
    await leaveOther();
  });

  test("is listed as waited for when a key bound to its agent waits", async () => {
    const { id } = (await call("POST", "/v1/actions", wish())).body;
    const made = await call(
      "POST",
      "/v1/api-keys",
      { name: "bound", preset: "agent", agent_id: ASKED.agent_id },
      service.admin,
    );
    const leave = leaving("GET", `/v1/actions/${id}?wait=60`, made.body.key as string);
    await waited(id);
    await leave();
    await waited(id, false);
  });

  test("was last requested when it was joined or waited for", async () => {
    const body = wish();
    const { id, created_at } = (await call("POST", "/v1/actions", body)).body;
    service.clock.now += 60_000;
    const joined = (await call("POST", "/v1/actions?join=open", body)).body;
    assert.equal(joined.id, id);
    assert.ok(Date.parse(joined.asked_at) >= Date.parse(created_at) + 60_000);
    assert.equal((await read(id)).asked_at, joined.asked_at);
    service.clock.now += 60_000;
    const leave = leaving("GET", `/v1/actions/${id}?wait=60`);
    await waited(id);
    const { asked_at } = await read(id);
    assert.ok(Date.parse(asked_at) >= Date.parse(joined.asked_at) + 60_000);
    await leave();
  });

  test("has no such record after a submission without waiting", async () => {
    for (const join of ["", "?join=open"]) {
      const { id } = (await call("POST", `/v1/actions${join}`, wish())).body;
      const row = await service.storage.action(id);
      assert.deepEqual([row?.asked_at, row?.waits], [null, null]);
    }
  });
});

test("stays listed as waited for until the timeout if the process crashed; a process that stops removes its waits", async () => {
  const disk = memoryDisk();
  const service = await startService({ storage: () => memoryStorage(disk) });
  try {
    const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
    const row = await service.storage.action(id);
    const ends = service.runtime.host.clock() + 60_000;
    await service.storage.write((tx) => tx.noteAsked(id, row?.created_at ?? 0, JSON.stringify({ dead: ends })));
    const waiting = async (): Promise<unknown> => (await service.call("GET", `/v1/actions/${id}`)).body.waiting;
    assert.equal(await waiting(), true);
    const wait = service.call("GET", `/v1/actions/${id}?wait=60`);
    await until("two processes wait", async () => {
      const { waits } = (await service.storage.action(id)) ?? {};
      return Object.keys(JSON.parse(waits ?? "{}")).length === 2;
    });
    await service.restart();
    assert.equal((await wait).status, 200);
    const left = JSON.parse((await service.storage.action(id))?.waits ?? "{}");
    assert.deepEqual(left, { dead: ends });
    service.clock.now += 61_000;
    assert.equal(await waiting(), false);
    for (const waits of ["{", "null", "[]", '{"x":"y"}']) {
      await service.storage.write((tx) => tx.noteAsked(id, row?.created_at ?? 0, waits));
      assert.equal(await waiting(), false, waits);
    }
  } finally {
    await service.close();
  }
});
