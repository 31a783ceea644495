/** Two processes on one Postgres, one of which decides for both: over real HTTP, with messages lost, late, forged and aimed at others. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { PEER_PATH } from "../../src/cluster/sequencing/frames.ts";
import { boundTo, createSeals, HEADER } from "../../src/cluster/sequencing/seal.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { formatKey } from "../../src/domain/api-key.ts";
import { openVault } from "../../src/identity/vault.ts";
import { createLogger } from "../../src/serve/log.ts";
import { SECRET } from "../support/deployment.ts";
import { elect, LOSSES, startNode, stopNodes, type Node } from "../support/elected.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { rawPostgres, type RawRow } from "../support/raw-store.ts";
import { approve, makeKey, type Service } from "../support/service.ts";
import { bounded, pause, until } from "../support/wait.ts";

/** A process that is none. */
const STRANGER = "00000000-0000-7000-8000-000000000000";

const POLICY = `policy: desk
rules:
  - { name: go, tool: pay, effect: allow }
  - { name: ask, tool: wire, effect: require_approval }
`;
const ALLOWED = { agent_id: "desk-bot", tool: "pay", operation: "refund", params: { amount: 1 } };
const ASKED = { ...ALLOWED, tool: "wire", params: { of: "front", amount: 5 } };

describe("one of two processes decides for both", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let leader: Node;
  let front: Node;
  let url: string;
  let admin: string;
  let agent: string;
  before(async () => {
    server = await startPostgres();
    url = await server.database();
    const nodes = [await startNode(url, POLICY), await startNode(url, POLICY)];
    const first = nodes.find(({ service }) => service.admin !== "") as Node;
    ({ admin, agent } = first.service);
    [leader, front] = (await elect(nodes)) as [Node, Node];
  });
  after(async () => {
    await stopNodes([leader, front]);
    await server.stop();
  });

  const submit = (at: Node, body: object, headers: Record<string, string> = {}, path = "/v1/actions", key = agent) =>
    at.service.call("POST", path, { key, body, headers });
  const asAdmin = (node: Node): Service => ({ ...node.service, admin });
  const countOf = async (what: string, i: number): Promise<number> =>
    (await front.service.storage.actions({ visibility: { all: true }, limit: 500 })).filter(({ request }) => {
      const { params } = JSON.parse(request) as { params: { what?: string; i?: number } };
      return params.what === what && params.i === i;
    }).length;
  const vaultOf = (secret: string) => openVault({ ...leader.config, secret }, createLogger("silent"));
  const boundVault = async (secret: string) =>
    boundTo((await leader.service.storage.meta("log_vkey")) ?? "", vaultOf(secret));
  const leading = async (): Promise<string> =>
    (await leader.service.storage.leases(30_000))
      .find(({ name }) => name === "sequencer")
      ?.holder.split(" ")[0] as string;
  const sends = (): Promise<void> =>
    until(
      "it sends again",
      async () => {
        await submit(front, ALLOWED);
        return front.state().way === "sends";
      },
      200,
    );

  it("answers what any process is asked as if it had decided it itself", async () => {
    const before = front.state().counts;
    const params = { amount: 7, currency: "USD", note: 'ä😀\\"\u0000' };
    const body = { ...ALLOWED, params, meta: { session: "s-1" } };
    const allowed = await submit(front, body, { prefer: "permit", "idempotency-key": "a" });
    assert.equal(allowed.status, 200, JSON.stringify(allowed.body));
    assert.equal(allowed.body.status, "allowed");
    assert.deepEqual(allowed.body.params, params);
    assert.equal(typeof allowed.body.permit, "string");
    for (const at of [leader, front]) {
      const again = await submit(at, body, { "idempotency-key": "a" });
      assert.equal(again.headers.get("idempotency-replayed"), "true");
      assert.equal(again.body.id, allowed.body.id);
      const { permit: _, permit_expires_at: __, ...record } = allowed.body;
      const { body: read } = await at.service.call("GET", `/v1/actions/${allowed.body.id}`, { key: agent });
      const { permit: _p, permit_expires_at: __p, ...stored } = read;
      assert.deepEqual(stored, record);
      const other = await submit(at, { ...body, params: {} }, { "idempotency-key": "a" });
      assert.equal(other.body.code, "IDEMPOTENCY_CONFLICT");
    }
    const asked = await submit(front, ASKED);
    assert.equal(asked.status, 202);
    const row = await leader.service.storage.action(asked.body.id);
    const { agent_id, tool, operation } = ASKED;
    assert.equal(row?.request, JSON.stringify({ agent_id, tool, operation, params: ASKED.params, context: {} }));
    const joined = await submit(front, ASKED, {}, "/v1/actions?join=open");
    assert.equal(joined.headers.get("action-joined"), "true");
    assert.equal(joined.body.id, asked.body.id);
    const waiting = submit(front, { ...ASKED, params: { of: "wait" } }, { prefer: "wait=30" });
    const pending = async (): Promise<string | undefined> =>
      (await leader.service.storage.actions({ visibility: { all: true }, status: "pending_approval", limit: 9 })).find(
        ({ request }) => request.includes('"of":"wait"'),
      )?.id;
    await until("it waits", async () => (await pending()) !== undefined);
    await approve(asAdmin(leader), (await pending()) as string);
    assert.equal((await waiting).body.status, "approved");
    const denied = await submit(front, { ...ALLOWED, tool: "unknown" });
    assert.equal(denied.body.status, "denied");
    const { counts } = front.state();
    assert.equal(counts.sent - before.sent, 7);
    assert.deepEqual([counts.own, counts.recovered], [before.own, before.recovered]);
  });

  it("takes many at once, each with its own answer", async () => {
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, i) => submit(front, { ...ALLOWED, params: { i } })),
    );
    answers.forEach(({ status, body }, i) => {
      assert.equal(status, 200);
      assert.equal(body.params.i, i);
    });
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 300);
    assert.equal(new Set(answers.map(({ body }) => body.decision_hash)).size, 300);
  });

  it("confirms keys and agents for itself: what the other process still knows of them is not believed", async () => {
    const made = await makeKey(asAdmin(leader), {
      name: "short",
      preset: "agent",
      agent_id: "bot",
    });
    const body = { ...ALLOWED, agent_id: "bot" };
    assert.equal((await submit(front, body, {}, "/v1/actions", made.key)).status, 200);
    await leader.service.call("POST", "/v1/agents", { key: admin, body: { id: "bot" } });
    await leader.service.call("POST", "/v1/agents/bot/suspend", { key: admin });
    assert.equal((await submit(front, body, {}, "/v1/actions", made.key)).body.reason_code, "AGENT_SUSPENDED");
    const { body: refused } = await submit(front, { ...ALLOWED, agent_id: "another" }, {}, "/v1/actions", made.key);
    assert.equal(refused.code, "AGENT_MISMATCH");
    await leader.service.call("DELETE", `/v1/api-keys/${made.id}`, { key: admin });
    const { status, body: gone } = await submit(front, body, {}, "/v1/actions", made.key);
    assert.deepEqual([status, gone.code], [401, "INVALID_CREDENTIAL"]);
  });

  for (const [what, meddle] of Object.entries(LOSSES))
    it(`decides once where ${what}`, async () => {
      await sends();
      const before = front.state().counts;
      const through: Promise<unknown>[] = [];
      leader.meddle = (request, enter) => {
        const response = meddle(request, enter);
        through.push(response);
        return response;
      };
      try {
        const all = Array.from({ length: 5 }, (_, i) => ({
          ...ALLOWED,
          params: { what, i },
        }));
        const answers = await Promise.all(all.map((body) => submit(front, body)));
        await bounded("the messages end", Promise.all(through));
        for (const [i, { status, body }] of answers.entries()) {
          assert.deepEqual([status, body.status, body.params.i], [200, "allowed", i]);
          assert.equal(await countOf(what, i), 1);
          assert.equal((await front.service.storage.entriesOfAction(body.id)).length, 1);
        }
        assert.equal(front.state().counts.recovered - before.recovered, 5);
        assert.equal(front.state().counts.sent, before.sent);
        assert.equal(front.state().way, "own");
      } finally {
        leader.meddle = null;
      }
    });

  it("gives nobody else an answer, and says nothing of itself to who has not the secret", async () => {
    const vault = await boundVault(SECRET);
    const other = await boundVault("another-secret-9vQe7RtBnM2xLs8ZpDf4GhJc6VaU");
    const otherLog = boundTo("sequencing.test/another+00000000+AA", vaultOf(SECRET));
    const to = await leading();
    const now = (): number => Math.floor(performance.now());
    const body = utf8('{"likeness":"","commands":[{"name":"x","key":"y","row":"","payload":{}}]}');
    const post = async (
      header: string | null,
      sent = body,
      path = PEER_PATH,
    ): Promise<[number, string, string | null]> => {
      const response = await fetch(`${leader.listening.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(header === null ? {} : { [HEADER]: header }) },
        body: sent as Uint8Array<ArrayBuffer>,
      });
      const { detail, request_id: _, ...problem } = (await response.json()) as { detail: string; request_id: string };
      return [response.status, `${JSON.stringify(problem)} ${detail?.replace(path, "")}`, response.headers.get(HEADER)];
    };
    const nowhere = await post(null, body, "/_assent/nothing");
    assert.equal(nowhere[0], 404);
    const sealsOf = (of: typeof vault, instance = STRANGER) => createSeals({ vault: of, instance, steady: now });
    const good = sealsOf(vault).ask(to, body, now());
    const refused: Record<string, Awaited<ReturnType<typeof post>>> = {
      none: await post(null),
      nonsense: await post("1;2;3"),
      "another secret": await post(sealsOf(other).ask(to, body, now()).header),
      "another log": await post(sealsOf(otherLog).ask(to, body, now()).header),
      "another process": await post(sealsOf(vault).ask("11111111-1111-7111-8111-111111111111", body, now()).header),
      itself: await post(sealsOf(vault, to).ask(to, body, now()).header),
      "another time": await post(good.header.replace(`;${good.question.sent};`, `;${good.question.sent + 1};`)),
      "another body": await post(
        good.header,
        utf8('{"likeness":"","commands":[{"name":"x","key":"z","row":"","payload":{}}]}'),
      ),
      "another nonce": await post(good.header.replace(good.question.nonce, "0".repeat(32))),
    };
    for (const [why, answer] of Object.entries(refused)) assert.deepEqual(answer, nowhere, why);
    const seals = sealsOf(vault);
    const send = async ({ header, question }: typeof good): Promise<[string, number | null]> => {
      const answer = await fetch(`${leader.listening.url}${PEER_PATH}`, {
        method: "POST",
        headers: { "content-type": "application/json", [HEADER]: header },
        body: body as Uint8Array<ArrayBuffer>,
      });
      const bytes = new Uint8Array(await answer.arrayBuffer());
      const sealed = answer.headers.get(HEADER);
      assert.equal(seals.openAnswer({ ...question, nonce: "0".repeat(32) }, sealed, bytes), null);
      assert.equal(seals.openAnswer(question, sealed, utf8(`${new TextDecoder().decode(bytes)} `)), null);
      assert.equal(seals.openAnswer(question, sealed?.replace(/;\d+;/, ";1;") ?? null, bytes), null);
      assert.equal(seals.openAnswer(question, sha256Hex(bytes), bytes), null);
      return [new TextDecoder().decode(bytes), seals.openAnswer(question, sealed, bytes)];
    };
    const before = now();
    const [text, clock] = await send(good);
    assert.equal(text, '{"declined":"it has another version or configuration"}');
    assert.ok(clock !== null && clock >= before && clock <= now(), String(clock));
    assert.deepEqual(await post(good.header), nowhere, "again");
    for (const sent of [0, now() - 1_600, now() + 60_000])
      assert.equal((await send(seals.ask(to, body, sent)))[0], '{"declined":"it was too long on the way"}');
  });

  it("goes by no key that was altered in the store, also where the one that leads knows the good one", async () => {
    await sends();
    const made = await makeKey(asAdmin(leader), { name: "altered", scopes: ["actions:submit"], agent_id: "good" });
    const body = { ...ALLOWED, agent_id: "good" };
    assert.equal((await submit(front, body, {}, "/v1/actions", made.key)).status, 200);
    const before = { front: front.state(), leader: leader.state() };
    assert.equal(before.front.way, "sends");
    const raw = await rawPostgres(url);
    try {
      const keys = raw.tables.find(({ name }) => name === "api_keys") as (typeof raw.tables)[number];
      const row = async (): Promise<RawRow> => (await raw.rows(keys)).find(({ id }) => id === made.id) as RawRow;
      const good = await row();
      const forged = [{}, { scopes: '["actions:submit","actions:execute"]' }];
      for (const more of forged) {
        const own = formatKey(randomBytes(32));
        for (const [column, value] of Object.entries({ hash: sha256Hex(utf8(own)), ...more }))
          await raw.set(keys, await row(), column, value);
        for (const headers of [{}, { prefer: "permit" }]) {
          const refused = await submit(front, body, headers, "/v1/actions", own);
          assert.deepEqual([refused.status, refused.body.code], [409, "KEY_ALTERED"], JSON.stringify(refused.body));
        }
      }
      for (const column of ["hash", "scopes"]) await raw.set(keys, await row(), column, good[column] ?? null);
      assert.equal(leader.state().counts.served, before.leader.counts.served);
      const { agent_id } = body;
      const all = await front.service.storage.actions({ visibility: { agent_id }, limit: 9 });
      assert.equal(all.length, 1);
      assert.equal((await submit(front, body, {}, "/v1/actions", made.key)).status, 200);
    } finally {
      await raw.close();
    }
  });

  interface Passed {
    url: string;
    header: string;
    text: string;
  }
  /** What `act` makes of the first message; the front is told nothing. */
  async function intercept<T>(body: object, act: (message: Passed) => Promise<T>): Promise<T> {
    await sends();
    let acted: Promise<T> | null = null;
    leader.meddle = async (request) => {
      const text = await request.text();
      acted ??= act({ url: request.url, header: request.headers.get(HEADER) ?? "", text });
      await Promise.allSettled([acted]);
      return new Response(null, { status: 502 });
    };
    try {
      await submit(front, body);
    } finally {
      leader.meddle = null;
    }
    return (acted as Promise<T> | null) ?? assert.fail("nothing was sent");
  }
  const enter = ({ url: to, header, text }: Passed, body: BodyInit = text): Promise<Response> =>
    leader.service.runtime.fetch(
      new Request(to, {
        method: "POST",
        headers: { "content-type": "application/json", [HEADER]: header },
        body,
        duplex: "half",
      } as RequestInit),
    );
  const outcomesOf = async (response: Response): Promise<unknown[]> =>
    ((await response.json()) as { outcomes: unknown[] }).outcomes;

  it("leaves a command to its sender where that went by another row of the key", async () => {
    const seals = createSeals({ vault: await boundVault(SECRET), instance: STRANGER, steady: () => performance.now() });
    const to = await leading();
    const outcomes = await intercept({ ...ALLOWED, params: { what: "row", i: 0 } }, (message) => {
      const text = message.text.replace(/"row":"[0-9a-f]{64}"/, `"row":"${"0".repeat(64)}"`);
      assert.notEqual(text, message.text);
      const { header } = seals.ask(to, utf8(text), Math.floor(performance.now()));
      return enter({ ...message, header, text }).then(outcomesOf);
    });
    assert.deepEqual(outcomes, [{}]);
    assert.equal(await countOf("row", 0), 1);
  });

  it("takes a message once, and none whose last byte was held back", async () => {
    const [first, again] = await intercept({ ...ALLOWED, params: { what: "again", i: 0 } }, async (message) => [
      await outcomesOf(await enter(message)),
      (await enter(message)).status,
    ]);
    assert.equal((first as unknown[]).length, 1);
    assert.equal(again, 404);
    assert.equal(await countOf("again", 0), 1);
    const held = await intercept({ ...ALLOWED, params: { what: "held", i: 0 } }, async (message) => {
      const bytes = utf8(message.text);
      const slow = new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(bytes.subarray(0, -1));
          await pause(1_700);
          controller.enqueue(bytes.subarray(-1));
          controller.close();
        },
      });
      return (await enter(message, slow)).json();
    });
    assert.deepEqual(held, { declined: "it was too long on the way" });
    assert.equal(await countOf("held", 0), 1);
  });

  it("rests from a leader that answers and does nothing", async () => {
    await sends();
    const seals = createSeals({
      vault: await boundVault(SECRET),
      instance: await leading(),
      steady: () => performance.now(),
    });
    const before = front.state().counts;
    leader.meddle = async (request) => {
      const question = seals.open(request.headers.get(HEADER)) ?? assert.fail("it is no message");
      const { commands } = (await request.json()) as { commands: unknown[] };
      const text = JSON.stringify({ outcomes: commands.map(() => ({})) });
      return new Response(text, { headers: { [HEADER]: seals.answer(question, utf8(text)) } });
    };
    try {
      assert.equal((await submit(front, { ...ALLOWED, params: { what: "idle", i: 0 } })).status, 200);
      assert.equal(await countOf("idle", 0), 1);
      assert.equal(front.state().way, "own");
      assert.equal(front.state().counts.recovered - before.recovered, 1);
      const warned = front.service.logged.findLast((line) => line.includes("takes its turn instead"));
      assert.match(warned ?? "", /it does little of what it is sent/);
    } finally {
      leader.meddle = null;
    }
  });

  it("is left by the one that decides for both when it stops, and taken over", async () => {
    await sends();
    leader.service.runtime.beginStop();
    await until("the other decides for itself", () => front.state().way === "leads" || front.state().way === "own");
    assert.equal((await submit(front, ALLOWED)).status, 200);
  });
});
