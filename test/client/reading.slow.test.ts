/** Events, lists and proofs, read by the client from a real service. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setImmediate } from "node:timers";
import type { Assent, AssentOptions, EventQuery, LedgerEvent } from "../../clients/typescript/index.ts";
import { clientOf, breakConnection, createFaultyFetch, json, type Fault } from "../support/assent-client.ts";
import { ALLOWED, ASKED, startService, type Service } from "../support/service.ts";

let service: Service;
let agent: Assent;

before(async () => {
  service = await startService({
    pluginOptions: { events: { heartbeat_seconds: 0.2, retry_milliseconds: 5, max_streams_per_key: 50 } },
  });
  agent = clientOf(service);
});
after(() => service.close());

const admin = (options: AssentOptions = {}) => clientOf(service, { apiKey: service.admin, ...options });

/** Returns the first `n` events. */
async function take(client: Assent, count: number, query: EventQuery = {}): Promise<LedgerEvent[]> {
  const events: LedgerEvent[] = [];
  for await (const event of client.events(query)) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

describe("events", () => {
  test("come from the beginning, in order, of the requested types", async () => {
    const { decision_seq } = { decision_seq: (await service.storage.head()).size };
    const { id } = await agent.submit(ALLOWED);
    const [event] = await take(admin(), 1, { after: decision_seq - 1, type: ["decision", "approval"] });
    assert.equal(event?.action_id, id);
    assert.equal(event?.seq, decision_seq);
    const all = await take(admin(), decision_seq, { after: -1 });
    assert.deepEqual(
      all.map(({ seq }) => seq),
      Array.from({ length: decision_seq }, (_, i) => i),
    );
  });

  test("come from now on", async () => {
    const way = createFaultyFetch(service, []);
    const events = admin({ fetch: way.fetch }).events({ type: "decision" })[Symbol.asyncIterator]();
    const next = events.next();
    const { id } = await agent.submit(ALLOWED);
    assert.equal((await next).value?.action_id, id);
    await events.return?.(undefined as never);
  });

  test("are neither lost nor repeated if connections break at any point", async () => {
    const from = (await service.storage.head()).size;
    const ids: string[] = [];
    for (let i = 0; i < 12; i++) ids.push((await agent.submit(ALLOWED)).id);
    let connections = 0;
    // Each connection sends some characters and breaks, within a line or an event, or ends normally.
    const breaking: Fault = {
      on: /\/v1\/events/,
      after: (answer) => {
        const most = 400 + 333 * connections++;
        let given = 0;
        const cutter = new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            controller.enqueue(chunk.subarray(0, Math.max(0, most - given)));
            given += chunk.length;
            if (given < most) return;
            if (connections % 2 === 0) controller.terminate();
            else controller.error(new TypeError("the connection was cut"));
          },
        });
        return new Response(answer.body?.pipeThrough(cutter) ?? null, { headers: answer.headers });
      },
    };
    const events = await take(admin({ fetch: createFaultyFetch(service, [breaking]).fetch }), 12, { after: from - 1 });
    assert.deepEqual(
      events.map(({ action_id }) => action_id),
      ids,
    );
    assert.ok(connections > 3);
  });

  test("continue from the start if a connection breaks before its first event", async () => {
    let connections = 0;
    const place = (await service.storage.head()).size - 1;
    const ids: string[] = [];
    const breaking: Fault = {
      on: /\/v1\/events/,
      after: async (answer) => {
        if (connections++ > 0) return answer;
        await answer.body?.cancel();
        const block = `id: ${place}\nevent: position\ndata: {"type":"position","seq":${place}}\n\n`;
        ids.push((await agent.submit(ALLOWED)).id);
        return new Response(block, { headers: answer.headers });
      },
    };
    const [event] = await take(admin({ fetch: createFaultyFetch(service, [breaking]).fetch }), 1);
    assert.equal(event?.action_id, ids[0]);
  });

  test("are requested again from an unreachable, full or restarted service", async () => {
    const from = (await service.storage.head()).size;
    const { id } = await agent.submit(ALLOWED);
    const answers = [
      breakConnection,
      () => json({ code: "TOO_MANY_STREAMS" }, 429),
      () => json({ code: "NOT_READY" }, 503),
    ];
    const away: Fault = { on: /\/v1\/events/, before: () => answers.shift()?.() };
    const [event] = await take(admin({ fetch: createFaultyFetch(service, [away]).fetch }), 1, { after: from - 1 });
    assert.equal(event?.action_id, id);
    assert.equal(answers.length, 0);
  });

  test("end with an error that a retry would not fix", async () => {
    await assert.rejects(take(clientOf(service, { apiKey: "none" }), 1), { name: "Unauthorized" });
    await assert.rejects(take(admin(), 1, { type: "no such type" }), { name: "RequestRefused" });
    await assert.rejects(take(admin(), 1, { after: 1_000_000 }), { code: "INVALID_RANGE" });
  });

  test("end with the reason of a signal", async () => {
    const controller = new AbortController();
    const following = take(admin(), 1, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await assert.rejects(following, { message: "enough" });
  });

  test("are parsed as the standard says with other line ends, comments, names and several data lines", async () => {
    const text =
      '\ufeffid: 7\r\n: a comment\r\ndata: {"seq":7,\r\ndata:"type":"a"}\r\n\r\nevent: other\rid: 8\rdata: {}\r\rid:9\ndata: {"seq":9}\n\nid: 9\ndata: {"seq":9}\n\n';
    // One byte at a time, so that every position is a chunk border.
    const reading = new AbortController();
    const stream = (): ReadableStream<Uint8Array> => {
      const bytes = new TextEncoder().encode(text);
      let at = 0;
      return new ReadableStream({
        pull: (controller) => {
          if (at < bytes.length) controller.enqueue(bytes.slice(at, ++at));
          // The client has taken the last byte, and parses it in this turn.
          else setImmediate(() => reading.abort(new Error("enough")));
        },
      });
    };
    const sent: Fault = {
      on: /\/v1\/events/,
      before: () => new Response(stream(), { headers: { "content-type": "text/event-stream" } }),
    };
    const seen: number[] = [];
    await assert.rejects(async () => {
      for await (const { seq } of admin({ fetch: createFaultyFetch(service, [sent]).fetch }).events({
        signal: reading.signal,
      }))
        seen.push(seq);
    }, /enough/);
    assert.deepEqual(seen, [7, 9]);
  });
});

describe("lists", () => {
  test("go through all pages, each action once", async () => {
    for (let i = 0; i < 7; i++) await agent.submit({ ...ALLOWED, params: { amount: i, currency: "USD" } });
    const way = createFaultyFetch(service, []);
    const ids: string[] = [];
    for await (const { id } of admin({ fetch: way.fetch }).actions({ tool: "stripe", limit: 3 })) ids.push(id);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(way.calls.length, Math.ceil(ids.length / 3));
    assert.ok(ids.length >= 7);
  });

  test("stop reading pages when the consumer stops", async () => {
    const way = createFaultyFetch(service, []);
    for await (const _ of admin({ fetch: way.fetch }).actions({ limit: 2 })) break;
    assert.equal(way.calls.length, 1);
  });

  test("include the pending actions", async () => {
    const { id } = await agent.submit(ASKED);
    const ids: string[] = [];
    for await (const action of admin().approvals()) ids.push(action.id);
    assert.ok(ids.includes(id));
  });

  test("end if pages repeat", async () => {
    const circle: Fault = { on: /\/v1\/actions/, before: () => json({ actions: [], next_cursor: "same" }) };
    await assert.rejects(async () => {
      for await (const _ of admin({ fetch: createFaultyFetch(service, [circle]).fetch }).actions()) assert.fail();
    }, /no end/);
  });
});

describe("proofs under a pinned key", () => {
  const logKey = async (): Promise<string> => (await admin().logKeys()).keys[0]?.vkey as string;

  test("a valid proof is returned", async () => {
    const { decision_hash } = await agent.submit(ALLOWED);
    const proof = await admin({ logKey: await logKey() }).proof(decision_hash);
    assert.equal(proof["leaf_hash"], decision_hash);
  });

  test("an altered proof, or one of another entry or log, is rejected", async () => {
    const vkey = await logKey();
    const [first, second] = [await agent.submit(ALLOWED), await agent.submit(ALLOWED)];
    const true_ = await admin().proof(first.decision_hash);
    const other = await admin().proof(second.decision_hash);
    const path = [...(true_["path"] as string[])];
    path[0] = "00".repeat(32);
    const lies: unknown[] = [
      other,
      { ...true_, path },
      { ...true_, index: (true_["index"] as number) + 1 },
      { ...true_, leaf: other["leaf"] },
      { ...true_, checkpoint: (true_["checkpoint"] as string).replace(/\n\d+\n/, "\n1\n") },
      { ...true_, checkpoint: `${(true_["checkpoint"] as string).split("\n\n")[0]}\n\n` },
      { ...true_, checkpoint: 5 },
      {},
      [],
    ];
    for (const lie of lies) {
      const lying: Fault = { on: /\/proof$/, before: () => json(lie) };
      const client = admin({ logKey: vkey, fetch: createFaultyFetch(service, [lying]).fetch });
      await assert.rejects(client.proof(first.decision_hash), { name: "ProofInvalid" }, JSON.stringify(lie));
    }
    const foreign = await startService();
    try {
      const pinned = (await clientOf(foreign, { apiKey: foreign.admin }).logKeys()).keys[0]?.vkey as string;
      await assert.rejects(admin({ logKey: pinned }).proof(first.decision_hash), { name: "ProofInvalid" });
    } finally {
      await foreign.close();
    }
  });
});
