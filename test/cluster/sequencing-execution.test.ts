/** Starts and results through the process that decides for both: with messages lost, late, forged, and what forbids them on the way. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import postgres from "postgres";
import { PEER_PATH } from "../../src/cluster/sequencing/frames.ts";
import { boundTo, createSeals, HEADER } from "../../src/cluster/sequencing/seal.ts";
import { utf8 } from "../../src/domain/hash.ts";
import { LONGEST_PERMIT } from "../../src/domain/permit.ts";
import { openVault } from "../../src/identity/vault.ts";
import { createLogger } from "../../src/serve/log.ts";
import { SECRET } from "../support/deployment.ts";
import { elect, LOSSES, startNode, stopNodes, type Meddle, type Node } from "../support/elected.ts";
import { newKey } from "../support/keys.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { makeKey, type Answer, type Service } from "../support/service.ts";
import { bounded, until } from "../support/wait.ts";

const POLICY = `policy: desk
rules:
  - { name: go, tool: pay, effect: allow }
  - { name: turned, tool: turned, effect: allow }
`;
const ALLOWED = { agent_id: "desk-bot", tool: "pay", operation: "refund", params: { amount: 1 } };
const DONE = { success: true, meta: { took: 1.5, 10: 1, 9: 2, ["__proto__"]: { a: 1 }, note: 'ä😀\\"\u0000' } };

let last = 0;
const newAttempt = (): string => `attempt-of-a-test-${++last}`;

describe("starts and results in one of two processes", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let leader: Node;
  let front: Node;
  let url: string;
  let admin: string;
  let agent: string;
  let instance: string;
  before(async () => {
    server = await startPostgres();
    url = await server.database();
    const nodes = [await startNode(url, POLICY), await startNode(url, POLICY)];
    const first = nodes.find(({ service }) => service.admin !== "") as Node;
    ({ admin, agent } = first.service);
    [leader, front] = (await elect(nodes)) as [Node, Node];
    const leases = await leader.service.storage.leases(30_000);
    instance = leases.find(({ name }) => name === "sequencer")?.holder.split(" ")[0] as string;
  });
  after(async () => {
    await stopNodes([leader, front]);
    await server.stop();
  });

  const post = (at: Node, path: string, body: object, key = agent, headers: Record<string, string> = {}) =>
    at.service.call("POST", path, { key, body, headers });
  const submit = async (body: object = ALLOWED, key = agent): Promise<Answer["body"]> =>
    (await post(leader, "/v1/actions", body, key, { prefer: "permit" })).body;
  const start = (at: Node, id: string, attempt: string, key = agent, permit?: string) =>
    post(at, `/v1/actions/${id}/start`, { attempt, permit }, key);
  const report = (at: Node, id: string, attempt: string, result: object = DONE, key = agent) =>
    post(at, `/v1/actions/${id}/result`, { ...result, attempt }, key);
  const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];
  const isReplay = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true";
  const asAdmin = (): Service => ({ ...leader.service, admin });
  async function entriesOf(id: string): Promise<string[]> {
    const rows = await leader.service.storage.entriesOfAction(id);
    return rows.map(({ bytes }) => {
      const { type, phase } = JSON.parse(new TextDecoder().decode(bytes)) as { type: string; phase?: string };
      return phase ?? type;
    });
  }
  const sends = (): Promise<void> =>
    until(
      "it sends again",
      async () => {
        await post(front, "/v1/actions", ALLOWED);
        return front.state().way === "sends";
      },
      200,
    );
  const sealsOf = async (as: string) => {
    const vault = openVault({ ...leader.config, secret: SECRET }, createLogger("silent"));
    const log = (await leader.service.storage.meta("log_vkey")) ?? "";
    return createSeals({ vault: boundTo(log, vault), instance: as, steady: () => performance.now() });
  };
  /** While `work` runs; what was begun of it has ended then. */
  async function meddled<T>(meddle: Meddle, work: () => Promise<T>): Promise<T> {
    await sends();
    const through: Promise<unknown>[] = [];
    leader.meddle = (request, enter) => {
      const response = meddle(request, enter);
      through.push(response);
      return response;
    };
    try {
      const value = await work();
      await bounded("the messages end", Promise.allSettled(through));
      return value;
    } finally {
      leader.meddle = null;
    }
  }
  /** The leader's answers, changed and sealed as its own. */
  async function lying(
    change: (answer: { row: Record<string, unknown>; repeated: unknown; attempt: string }) => void,
  ): Promise<Meddle> {
    const seals = await sealsOf(instance);
    return async (request, enter) => {
      const question = seals.open(request.headers.get(HEADER)) ?? assert.fail("it is no message");
      const answer = (await (await enter()).json()) as { outcomes?: { done: Parameters<typeof change>[0] }[] };
      for (const { done } of answer.outcomes ?? []) change(done);
      const text = JSON.stringify(answer);
      return new Response(text, { headers: { [HEADER]: seals.answer(question, utf8(text)) } });
    };
  }

  it("are answered as if the process that is asked had recorded them", async () => {
    const tool = await makeKey(asAdmin(), { name: "tool", scopes: ["actions:execute"] });
    const params = { text: "x".repeat(40_000), note: 'ä😀\\"\u0000' };
    const cases = [
      { action: await submit(), key: agent },
      { action: await submit({ ...ALLOWED, params }), key: agent },
      { action: await submit(), key: tool.key },
    ];
    await sends();
    const before = front.state().counts;
    for (const { action, key } of cases) {
      const { id } = action;
      const permit = key === agent ? undefined : (action.permit as string);
      const attempt = newAttempt();
      const read = async () => (await leader.service.call("GET", `/v1/actions/${id}`, { key: agent })).body;
      assert.deepEqual(said(await report(front, id, attempt, DONE, agent)), [409, "ACTION_NOT_STARTED"]);
      assert.deepEqual(said(await start(front, id, attempt, agent, "no permit")), [403, "PERMIT_INVALID"]);
      if (permit !== undefined) {
        assert.deepEqual(said(await start(front, id, attempt, key)), [404, "ACTION_NOT_FOUND"]);
        const other = cases[0]?.action.permit as string;
        assert.deepEqual(said(await start(front, id, attempt, key, other)), [404, "ACTION_NOT_FOUND"]);
      }
      const started = await start(front, id, attempt, key, permit);
      assert.deepEqual([said(started), isReplay(started)], [[200, "executing"], false]);
      assert.deepEqual(started.body, await read());
      assert.deepEqual(started.body.params, action.params);
      for (const at of [leader, front]) {
        const again = await start(at, id, attempt, key, permit);
        assert.deepEqual([again.body, isReplay(again)], [started.body, true]);
        const other = await start(at, id, newAttempt(), key, permit);
        assert.deepEqual(said(other), [409, "ACTION_NOT_STARTABLE"]);
        const stranger = await report(at, id, newAttempt(), DONE, key);
        assert.deepEqual(said(stranger), [403, "NOT_THE_EXECUTOR"]);
      }
      const reported = await report(front, id, attempt, DONE, key);
      assert.deepEqual([said(reported), isReplay(reported)], [[200, "succeeded"], false]);
      assert.deepEqual(reported.body.result, { error: null, ...DONE });
      assert.deepEqual(reported.body, await read());
      for (const at of [leader, front]) {
        const again = await report(at, id, attempt, { ...DONE, error: null }, key);
        assert.deepEqual([again.status, again.body, isReplay(again)], [200, reported.body, true]);
        for (const result of [{ success: true }, { ...DONE, success: false }, { ...DONE, error: "x" }])
          assert.deepEqual(said(await report(at, id, attempt, result, key)), [409, "ACTION_NOT_STARTED"]);
        assert.deepEqual(said(await report(at, id, newAttempt(), DONE, key)), [409, "ACTION_NOT_STARTED"]);
        const unnamed = await post(at, `/v1/actions/${id}/result`, DONE, key);
        assert.deepEqual(said(unnamed), [409, "ACTION_NOT_STARTED"]);
      }
      assert.deepEqual(await entriesOf(id), ["decision", "start", "result"]);
    }
    for (const id of ["nothing", "%00", "%F0%9F%98%80", "'", "x".repeat(2_000), "019346a0-0000-7000-8000-000000000000"])
      assert.deepEqual(said(await start(front, id, newAttempt())), [404, "ACTION_NOT_FOUND"]);
    const { counts, way } = front.state();
    assert.deepEqual([way, counts.own, counts.recovered], ["sends", before.own, before.recovered]);
    assert.ok(counts.sent > before.sent);
  });

  it("stay in the process that is asked where they name no attempt", async () => {
    await sends();
    const { id } = await submit();
    const before = front.state().counts;
    assert.deepEqual(said(await post(front, `/v1/actions/${id}/start`, {})), [200, "executing"]);
    assert.deepEqual(said(await post(front, `/v1/actions/${id}/result`, DONE)), [200, "succeeded"]);
    assert.deepEqual(front.state().counts, before);
  });

  it("are of the key as the ledger has it under the lock", async () => {
    const made = await makeKey(asAdmin(), { name: "short", preset: "agent", agent_id: "bot" });
    const body = { ...ALLOWED, agent_id: "bot" };
    const [one, two] = [await submit(body, made.key), await submit(body, made.key)];
    const attempt = newAttempt();
    await sends();
    assert.deepEqual(said(await start(front, one.id, attempt, made.key)), [200, "executing"]);
    await leader.service.call("POST", "/v1/agents", { key: admin, body: { id: "bot" } });
    await leader.service.call("POST", "/v1/agents/bot/suspend", { key: admin });
    assert.equal((await start(front, two.id, newAttempt(), made.key)).status, 409);
    await leader.service.call("DELETE", `/v1/api-keys/${made.id}`, { key: admin });
    assert.deepEqual(said(await report(front, one.id, attempt, DONE, made.key)), [401, "INVALID_CREDENTIAL"]);
    assert.deepEqual(await entriesOf(one.id), ["decision", "start"]);
  });

  for (const [what, meddle] of Object.entries(LOSSES))
    it(`are recorded once where ${what}`, async () => {
      const ids = await Promise.all(Array.from({ length: 4 }, async () => (await submit()).id as string));
      const before = front.state().counts;
      const attempts = ids.map(newAttempt);
      const each = (work: (id: string, attempt: string) => Promise<Answer>) => () =>
        Promise.all(ids.map((id, i) => work(id, attempts[i] as string)));
      const started = await meddled(
        meddle,
        each((id, attempt) => start(front, id, attempt)),
      );
      for (const answer of started) assert.deepEqual(said(answer), [200, "executing"]);
      const reported = await meddled(
        meddle,
        each((id, attempt) => report(front, id, attempt)),
      );
      for (const answer of reported) assert.deepEqual(said(answer), [200, "succeeded"]);
      for (const id of ids) assert.deepEqual(await entriesOf(id), ["decision", "start", "result"]);
      assert.equal(front.state().counts.recovered - before.recovered, 8);
    });

  it("tell the same of an action that was decided again where the answer is lost", async () => {
    const lost = LOSSES["the answer is lost"] as Meddle;
    for (const [effect, code, status] of [
      ["deny", "NO_LONGER_ALLOWED", "denied"],
      ["require_approval", "MORE_APPROVALS_NEEDED", "pending_approval"],
    ] as const) {
      const ids = [
        (await submit({ ...ALLOWED, tool: "turned" })).id,
        (await submit({ ...ALLOWED, tool: "turned" })).id,
      ];
      const yaml = `policy: now\nrules:\n  - { name: now, tool: turned, effect: ${effect} }\n`;
      const made = await post(leader, "/v1/policies/import-yaml?activate=true", { yaml }, admin);
      await sends();
      assert.deepEqual(said(await start(front, ids[0], newAttempt())), [409, code]);
      assert.deepEqual(said(await meddled(lost, () => start(front, ids[1], newAttempt()))), [409, code]);
      for (const id of ids) {
        assert.deepEqual(await entriesOf(id), ["decision", "redecision"]);
        assert.equal((await leader.service.storage.action(id))?.status, status);
      }
      await leader.service.call("DELETE", `/v1/policies/${made.body.policies[0].id}`, { key: admin });
    }
  });

  it("are not begun by a leader that comes to it late, when the agent was told that all is stopped", async () => {
    await sends();
    const { id } = await submit();
    const attempt = newAttempt();
    const before = front.state().counts;
    const other = postgres(url, { max: 1 });
    try {
      const waiting = await other.begin(async (tx) => {
        // All wait for the lock: the leader with the start that it was sent, here the stop, and behind that the same start.
        await tx`select 1 from ledger_head for update`;
        const starting = start(front, id, attempt);
        const stopping = post(front, "/v1/stop", { reason: "look" }, admin);
        await until("it is done here", () => front.state().counts.recovered > before.recovered);
        return { starting, stopping };
      });
      const stop = (await waiting.stopping).body;
      assert.deepEqual(said(await waiting.starting), [409, "STOPPED"]);
      assert.equal((await leader.service.storage.action(id))?.status, "allowed");
      assert.deepEqual(await entriesOf(id), ["decision"]);
      await post(front, `/v1/stop/${stop.id}/lift`, {}, admin);
      assert.deepEqual(said(await start(front, id, attempt)), [200, "executing"]);
      assert.deepEqual(await entriesOf(id), ["decision", "start"]);
    } finally {
      await other.end();
    }
  });

  it("are asked of the ledger where the answer does not fit", async () => {
    const other = await submit();
    const lies: [string, (answer: Parameters<Parameters<typeof lying>[0]>[0]) => void][] = [
      ["another action", ({ row }) => (row["id"] = other.id)],
      ["another key", ({ row }) => (row["started_by"] = "019346a0-0000-7000-8000-000000000000")],
      ["a status that is not its end", ({ row }) => (row["status"] = "allowed")],
      ["a row without a member", ({ row }) => delete row["request"]],
      ["an erased row", ({ row }) => (row["erased_at"] = 1)],
      ["another attempt", (answer) => (answer.attempt = "0".repeat(64))],
      ["no word of a repetition", (answer) => (answer.repeated = null)],
    ];
    for (const [what, change] of lies) {
      const { id } = await submit();
      const attempt = newAttempt();
      const lie = await lying(change);
      const before = front.state().counts.recovered;
      const started = await meddled(lie, () => start(front, id, attempt));
      assert.deepEqual([said(started), started.body.id], [[200, "executing"], id], what);
      const reported = await meddled(lie, () => report(front, id, attempt));
      assert.deepEqual([said(reported), reported.body.id], [[200, "succeeded"], id], what);
      assert.equal(front.state().counts.recovered - before, 2, what);
    }
    const more: typeof lies = [
      ["another end", ({ row }) => (row["status"] = "failed")],
      ["another result", ({ row }) => (row["result"] = '{"error":null,"meta":{},"success":true}')],
    ];
    for (const [what, change] of more) {
      const { id } = await submit();
      const attempt = newAttempt();
      await start(leader, id, attempt);
      const reported = await meddled(await lying(change), () => report(front, id, attempt));
      assert.deepEqual([said(reported), reported.body.result.meta], [[200, "succeeded"], DONE.meta], what);
    }
  });

  it("are left to their sender where the leader cannot vouch for what they say", async () => {
    const { id } = await submit();
    const attempt = newAttempt();
    assert.equal((await start(leader, id, attempt)).status, 200);
    const key = await leader.service.runtime.host.keys.authenticate(agent);
    let text = "";
    const noted: Meddle = async (request) => {
      text = await request.text();
      return new Response(null, { status: 502 });
    };
    const pending = await submit();
    await meddled(noted, () => start(front, pending.id, newAttempt()));
    const { likeness, commands } = JSON.parse(text) as {
      likeness: string;
      commands: { row: string; payload: { attempt: string } }[];
    };
    assert.equal(text.includes("attempt-of-a-test"), false, "what an attempt is named by stays in the process");
    const [command] = commands as [(typeof commands)[number]];
    const seals = await sealsOf("00000000-0000-7000-8000-000000000000");
    const ask = async (name: string, payload: object, by = { key: key?.key.id, row: command.row }) => {
      const frame = utf8(JSON.stringify({ likeness, commands: [{ name, ...by, payload }] }));
      const { header } = seals.ask(instance, frame, Math.floor(performance.now()));
      const response = await fetch(`${leader.listening.url}${PEER_PATH}`, {
        method: "POST",
        headers: { "content-type": "application/json", [HEADER]: header },
        body: frame as Uint8Array<ArrayBuffer>,
      });
      return ((await response.json()) as { outcomes: unknown[] }).outcomes[0];
    };
    const good = { id, attempt: "0".repeat(64), result: '{"error":null,"meta":{},"success":true}' };
    assert.match(JSON.stringify(await ask("actions.result", good)), /NOT_THE_EXECUTOR/, "it takes what is right");
    for (const result of [
      '{"meta":{},"error":null,"success":true}',
      '{"error":null,"meta":{},"success":true} ',
      '{"error":null,"meta":{},"success":1}',
      '{"error":null,"meta":{},"more":1,"success":true}',
      '{"error":null,"meta":{"a":1,"a":1},"success":true}',
      `{"error":"${"x".repeat(10_001)}","meta":{},"success":true}`,
      '{"error":null,"success":true}',
      '{"error":null,"meta":{"a":1e400},"success":true}',
      '{"error":null,"meta":{"a":1e20},"success":true}',
      "null",
      "{",
    ])
      assert.deepEqual(await ask("actions.result", { ...good, result }), {}, result.slice(0, 60));
    assert.deepEqual(await ask("actions.result", { ...good, attempt: null }), {});
    const begin = { id, attempt: "0".repeat(64), permit: null };
    assert.match(JSON.stringify(await ask("actions.start", begin)), /ACTION_NOT_STARTABLE/, "it takes what is right");
    for (const more of [{ attempt }, { attempt: null }, { permit: 1 }, { id: 1 }, { more: 1 }])
      assert.deepEqual(await ask("actions.start", { ...begin, ...more }), {}, JSON.stringify(more));
    assert.deepEqual(await entriesOf(id), ["decision", "start"]);
  });

  it("are done by the leader whatever numbers they hold", async () => {
    for (const number of ["1e20", "9.007199254740992e15", "12345678901234567.0", "5e-324", "-0"]) {
      const { id } = await submit();
      const attempt = newAttempt();
      await start(leader, id, attempt);
      await sends();
      const before = front.state().counts;
      const response = await fetch(`${front.listening.url}/v1/actions/${id}/result`, {
        method: "POST",
        headers: { authorization: `Bearer ${agent}`, "content-type": "application/json" },
        // As other languages write it; JSON.stringify would write every digit, and that is refused.
        body: `{"success":true,"meta":{"number":${number}},"attempt":"${attempt}"}`,
      });
      assert.equal(response.status, 200, await response.text());
      const { counts, way, ok } = front.state();
      assert.deepEqual([counts.sent - before.sent, counts.recovered - before.recovered], [1, 0], number);
      assert.deepEqual([way, ok], ["sends", true]);
      const stored = (await leader.service.storage.action(id))?.result ?? "";
      assert.deepEqual(JSON.parse(stored), { error: null, meta: { number: Number(number) + 0 }, success: true });
    }
  });

  it("say nothing of a request that was changed after the leader held it against the ledger", async () => {
    const { id } = await submit({ ...ALLOWED, params: { amount: 1, text: "x".repeat(20_000) } });
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    const attempt = newAttempt();
    await sends();
    try {
      await sql.unsafe(`create function change() returns trigger language plpgsql as $$ begin
          new.request := replace(new.request, '"amount":1', '"amount":9');
          return new;
        end $$;
        create trigger change before update on actions for each row when (new.id = '${id}') execute function change()`);
      assert.deepEqual(said(await start(front, id, attempt)), [409, "RECORD_ALTERED"]);
      await sql.unsafe(`set session_replication_role = replica; drop trigger change on actions;
        update actions set request = replace(request, '"amount":9', '"amount":1') where id = '${id}'`);
      const again = await start(front, id, attempt);
      assert.deepEqual([said(again), again.body.params.amount], [[200, "executing"], 1]);
    } finally {
      await sql.end();
    }
  });

  it("take the permits of every key that the ledger has under the lock", async () => {
    const tool = await makeKey(asAdmin(), { name: "another tool", scopes: ["actions:execute"] });
    const [second, third] = [newKey(), newKey()];
    await front.service.runtime.rotatePermitKey({ key: second, overlap: LONGEST_PERMIT });
    const signer = await startNode(url, POLICY, second);
    try {
      const signed = async (): Promise<{ id: string; permit: string }> =>
        (await post(signer, "/v1/actions", ALLOWED, agent, { prefer: "permit" })).body;
      const [one, two] = [await signed(), await signed()];
      await sends();
      const before = front.state().counts;
      assert.deepEqual(said(await start(front, one.id, newAttempt(), tool.key, one.permit)), [200, "executing"]);
      await front.service.runtime.rotatePermitKey({ key: third, overlap: 0 });
      // The proof is none any more: to this key there is no such action.
      assert.deepEqual(said(await start(front, two.id, newAttempt(), tool.key, two.permit)), [404, "ACTION_NOT_FOUND"]);
      assert.deepEqual(said(await start(front, two.id, newAttempt(), agent, two.permit)), [403, "PERMIT_INVALID"]);
      const { counts } = front.state();
      assert.deepEqual([counts.sent - before.sent, counts.own, counts.recovered], [3, before.own, before.recovered]);
    } finally {
      await stopNodes([signer]);
    }
  });
});
