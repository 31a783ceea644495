/** The event stream over real sockets, with a real EventSource to test reconnection. */
import assert from "node:assert/strict";
import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { EventSource } from "eventsource";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { needs } from "../../support/features.ts";
import { ALLOWED, ASKED, DENIED, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

let service: Service;
let server: RunningServer;
before(async () => {
  service = await startService({
    pluginOptions: {
      events: { heartbeat_seconds: 0.2, retry_milliseconds: 5, stall_seconds: 0.5, max_streams_per_key: 3 },
    },
  });
  server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
});
after(async () => {
  service.runtime.beginStop();
  await server.stop(1000);
  await service.close();
});

const admin = (method: string, path: string, options: Parameters<Service["call"]>[2] = {}): Promise<Answer> =>
  service.call(method, path, { key: service.admin, ...options });
const poll = (query: string, key = service.admin): Promise<Answer> =>
  service.call("GET", `/v1/events/page${query}`, { key });
const submit = (body: object = ALLOWED): Promise<Answer> => service.call("POST", "/v1/actions", { body });

interface Message {
  id: number;
  data: { seq: number; type: string; action_id: string | null; entry: Record<string, unknown> };
}

function follow(url: string, key: string, onMessage: (message: Message) => void): EventSource {
  const source = new EventSource(url, {
    fetch: (input, init) =>
      fetch(input, {
        ...init,
        headers: { ...(init.headers as Record<string, string>), authorization: `Bearer ${key}` },
      }),
  });
  source.addEventListener("message", (event) =>
    onMessage({ id: Number(event.lastEventId), data: JSON.parse(event.data as string) as Message["data"] }),
  );
  return source;
}

/** Reads raw text until `enough` returns true or the stream ends. */
async function read(
  query: string,
  options: { key?: string; headers?: Record<string, string>; enough?: (text: string) => boolean } = {},
): Promise<{ text: string; ended: boolean }> {
  const response = await fetch(`${server.url}/v1/events${query}`, {
    headers: { authorization: `Bearer ${options.key ?? service.admin}`, ...options.headers },
  });
  assert.equal(response.status, 200, await (response.ok ? "" : response.text()));
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  let text = "";
  const decoder = new TextDecoder();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text, ended: true };
    text += decoder.decode(value, { stream: true });
    if (options.enough?.(text) === true) {
      await reader.cancel();
      return { text, ended: false };
    }
  }
}

/** The block that contains the position of the stream. */
const positionOf = (seq: number): string => `id: ${seq}\nevent: position\ndata: {"type":"position","seq":${seq}}\n\n`;
const idsIn = (text: string): number[] => [...text.matchAll(/^id: (\d+)\ndata: /gm)].map(([, id]) => Number(id));

/** Data that a client dispatches if it dispatches every block: sseclient before 2023, fetch-event-source. */
function blocksOf(text: string): string[] {
  const blocks = text.split("\n\n").slice(0, -1);
  return blocks.map((block) => /^data: (.*)$/m.exec(block)?.[1] ?? "");
}

/** Data that a client dispatches if it dispatches at each empty line after an id: httpx-sse. */
function linesOf(text: string): string[] {
  const dispatched: string[] = [];
  let data = "";
  let holds = false;
  for (const line of text.split("\n").slice(0, -1)) {
    if (line === "") {
      if (holds) dispatched.push(data);
      data = "";
    } else if (!line.startsWith(":")) holds = true;
    if (line.startsWith("data: ")) data = line.slice(6);
  }
  return dispatched;
}

/** A proxy that can cut its connections at any byte. */
async function cuttable(
  port: number,
): Promise<{ port: number; cut(): number; refuse(all: boolean): void; close(): void; server: Server }> {
  const pairs = new Set<Socket>();
  let refused = false;
  const proxy = createServer((client) => {
    if (refused) return void client.destroy();
    const upstream = connect(port, "127.0.0.1");
    pairs.add(client);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
    client.on("close", () => pairs.delete(client));
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    server: proxy,
    port: (proxy.address() as AddressInfo).port,
    cut() {
      const count = pairs.size;
      for (const socket of pairs) socket.destroy();
      return count;
    },
    refuse: (all) => void (refused = all),
    close() {
      for (const socket of pairs) socket.destroy();
      proxy.close();
    },
  };
}

describe("the event stream", () => {
  it("loses and repeats nothing although its connection is cut 15 times under load", async () => {
    const proxy = await cuttable(server.port);
    const got: Message[] = [];
    const { size: start } = await service.storage.head();
    const source = follow(`http://127.0.0.1:${proxy.port}/v1/events?after=${start - 1}`, service.admin, (message) =>
      got.push(message),
    );
    let cuts = 0;
    while (cuts < 15) {
      const seen = got.length;
      const load = Array.from({ length: 8 }, () => submit());
      await until("the stream goes on after a cut", () => got.length > seen, 1);
      if (proxy.cut() > 0) cuts += 1;
      await Promise.all(load);
    }
    const { size } = await service.storage.head();
    await until("the last event arrives", () => got.at(-1)?.id === size - 1);
    source.close();
    proxy.close();
    assert.deepEqual(
      got.map(({ id }) => id),
      Array.from({ length: size - start }, (_, i) => start + i),
    );
    assert.ok(got.every(({ id, data }) => data.seq === id && data.entry["seq"] === id));
    assert.ok(got.every(({ data }) => data.action_id === (data.entry["action_id"] ?? null)));
    assert.ok(got.some(({ data }) => data.action_id !== null));
    assert.ok(cuts >= 15);
  });

  it("resumes from any sequence number, including the first", async () => {
    // More than one page of entries.
    await Promise.all(Array.from({ length: 260 }, () => submit()));
    const { size } = await service.storage.head();
    for (const from of [-1, 0, 1, 255, 256, size - 2]) {
      const { text } = await read(`?after=${from}`, { enough: (t) => idsIn(t).at(-1) === size - 1 });
      assert.deepEqual(
        idsIn(text),
        Array.from({ length: size - 1 - from }, (_, i) => from + 1 + i),
      );
    }
    const { text } = await read("?after=0", {
      headers: { "last-event-id": String(size - 3) },
      enough: (t) => idsIn(t).at(-1) === size - 1,
    });
    assert.deepEqual(idsIn(text), [size - 2, size - 1], "Last-Event-ID wins: it is what a reconnecting client knows");
  });

  it("loses nothing although its connection is cut before the first event", async () => {
    const proxy = await cuttable(server.port);
    const got: number[] = [];
    const { size: start } = await service.storage.head();
    const source = follow(`http://127.0.0.1:${proxy.port}/v1/events`, service.admin, ({ id }) => got.push(id));
    await new Promise((resolve) => source.addEventListener("position", resolve, { once: true }));
    assert.deepEqual(got, [], "a stream begins now");
    // Refuse connections until events have been missed.
    proxy.refuse(true);
    proxy.cut();
    for (let i = 0; i < 20; i++) await submit();
    proxy.refuse(false);
    const { size } = await service.storage.head();
    await until("the stream has caught up", () => got.at(-1) === size - 1);
    source.close();
    proxy.close();
    assert.deepEqual(
      got,
      Array.from({ length: size - start }, (_, i) => start + i),
    );
  });

  it("starts with its position, also at -1, which a client can send back", async () => {
    for (const [query, headers, seq] of [
      ["?after=-1", {}, -1],
      ["", { "last-event-id": "-1" }, -1],
      ["?after=-1", { "last-event-id": "3" }, 3],
      ["", {}, (await service.storage.head()).size - 1],
    ] as const) {
      const { text } = await read(query, { headers, enough: (t) => t.includes("\n\n") });
      assert.ok(text.startsWith(`retry: 5\n${positionOf(seq)}`), text.slice(0, 200));
    }
  });

  it("gives no client an empty event, even with lenient parsers", async () => {
    const { size } = await service.storage.head();
    await submit();
    const { text } = await read(`?after=${size - 3}&type=decision`, {
      enough: (t) => t.split(": heartbeat\n").length > 3,
    });
    await submit();
    for (const [client, dispatched] of [
      ["a block is all up to an empty line, a comment too", blocksOf(text)],
      ["an empty line hands out whatever is there, and an id stays there", linesOf(text)],
    ] as const) {
      assert.ok(dispatched.length > 1, client);
      for (const data of dispatched) assert.equal(typeof (JSON.parse(data) as { seq: unknown }).seq, "number", client);
    }
  });

  it("filters by type, agent, tool and action, in the stream and in polls", needs("agents"), async () => {
    const { size } = await service.storage.head();
    const asked = (await submit(ASKED)).body;
    const { approval_token: token } = (await admin("GET", `/v1/actions/${asked.id}`)).body;
    await submit(DENIED);
    await submit({ ...ALLOWED, agent_id: "other-bot" });
    await admin("POST", `/v1/actions/${asked.id}/approval`, { body: { token, approve: true } });
    await admin("POST", "/v1/agents", { body: { id: "registered" } });
    const after = `after=${size - 1}`;
    const cases: [string, string[]][] = [
      ["", ["decision", "decision", "decision", "approval", "agent"]],
      ["&type=approval", ["approval"]],
      ["&type=approval,agent", ["approval", "agent"]],
      ["&tool=stripe", ["decision", "decision", "approval"]],
      ["&tool=crm", ["decision"]],
      ["&agent_id=other-bot", ["decision"]],
      ["&agent=other-bot&type=approval", []],
      [`&action_id=${asked.id}`, ["decision", "approval"]],
    ];
    for (const [filter, types] of cases) {
      const page = await poll(`?${after}${filter}`);
      assert.deepEqual(
        page.body.events.map((e: { type: string }) => e.type),
        types,
        filter,
      );
      assert.equal(page.body.next_after, page.body.head, filter);
      const { text } = await read(`?${after}${filter}`, { enough: (t) => t.includes(": heartbeat") });
      assert.deepEqual(
        [...text.matchAll(/"type":"([a-z_]+)","at"/g)].map(([, type]) => type),
        types,
        filter,
      );
    }
  });

  it("keeps an idle connection open, and advances the position of a filtered client", async () => {
    const { size } = await service.storage.head();
    const { text } = await read(`?after=${size - 3}&agent_id=nobody`, {
      enough: (t) => t.split(": heartbeat\n").length > 2,
    });
    assert.equal(
      text,
      `retry: 5\n${positionOf(size - 3)}${positionOf(size - 1)}: heartbeat\n: heartbeat\n`,
      "its place once, then comments that end no block",
    );
  });

  it("shows a bound key only its agent's events, and no one an approval token", async () => {
    const { key } = (
      await admin("POST", "/v1/api-keys", { body: { name: "bound", preset: "agent", agent_id: "other-bot" } })
    ).body;
    const page = await poll("?after=-1&limit=1000", key);
    assert.ok(page.body.events.length > 0);
    assert.ok(page.body.events.every((e: { entry: { agent_id?: string } }) => e.entry.agent_id === "other-bot"));
    const everything = JSON.stringify((await poll("?after=-1&limit=1000")).body);
    assert.ok(!everything.includes("apt1_"));
    const { text } = await read("?after=-1", { key, enough: (t) => t.includes(": heartbeat") });
    assert.deepEqual(
      [...text.matchAll(/"agent_id":"([^"]+)"/g)].filter(([, agent]) => agent !== "other-bot"),
      [],
    );
  });

  it("an event stream ends when its key is revoked, and reports the reason", async () => {
    const made = (
      await admin("POST", "/v1/api-keys", { body: { name: "short-lived", scopes: ["events:read", "actions:read"] } })
    ).body;
    let received = "";
    const reading = read("", { key: made.key, enough: (text) => ((received = text), false) });
    await until("the stream is open", () => received !== "");
    await admin("DELETE", `/v1/api-keys/${made.id}`);
    await submit();
    const { text, ended } = await reading;
    assert.ok(ended);
    assert.match(text, /\n: the key "short-lived" was revoked[^\n]*\n$/);
    assert.ok(!text.includes('"type":"decision"'), "nothing after the revocation");
  });

  it("is rejected above a key's limit; a closed stream makes room, and HEAD requests do not count", async () => {
    const { key } = (await admin("POST", "/v1/api-keys", { body: { name: "greedy", scopes: ["events:read"] } })).body;
    const open = (): Promise<Response> =>
      fetch(`${server.url}/v1/events`, { headers: { authorization: `Bearer ${key}` } });
    const held = [await open(), await open(), await open()];
    const refused = await open();
    const { code, detail } = (await refused.json()) as { code: string; detail: string };
    assert.deepEqual([refused.status, code, refused.headers.get("retry-after")], [429, "TOO_MANY_STREAMS", "5"]);
    assert.match(detail, /poll GET \/v1\/events\/page$/);
    await held[0]?.body?.cancel();
    await until("a place is free", async () => {
      const again = await open();
      await again.body?.cancel();
      return again.status === 200;
    });
    for (const response of held.slice(1)) await response.body?.cancel();
    await until(
      "HEAD answers without a stream",
      async () =>
        (await fetch(`${server.url}/v1/events`, { method: "HEAD", headers: { authorization: `Bearer ${key}` } }))
          .status === 200,
    );
    for (let i = 0; i < 10; i++)
      assert.equal(
        (await fetch(`${server.url}/v1/events`, { method: "HEAD", headers: { authorization: `Bearer ${key}` } }))
          .status,
        200,
        "HEAD holds no place",
      );
  });
});

describe("polling", () => {
  it("returns every event once, in pages of any size", async () => {
    const { size } = await service.storage.head();
    for (const limit of [7, 256, 1000]) {
      const seqs: number[] = [];
      for (let after = Math.max(-1, size - 2000); after < size - 1;) {
        const { body } = await poll(`?after=${after}&limit=${limit}`);
        seqs.push(...body.events.map((e: { seq: number }) => e.seq));
        after = body.next_after;
      }
      assert.deepEqual(
        seqs,
        Array.from({ length: seqs.length }, (_, i) => Math.max(-1, size - 2000) + 1 + i),
      );
      assert.equal(seqs.at(-1), size - 1);
    }
  });

  it("rejects invalid parameters", async () => {
    const { size } = await service.storage.head();
    const bad: [string, Record<string, string>, number, string][] = [
      [`/page?after=${size + 5}`, {}, 422, "INVALID_RANGE"],
      ["/page?after=-2", {}, 422, "VALIDATION_FAILED"],
      ["/page?after=x", {}, 422, "VALIDATION_FAILED"],
      ["/page?type=decisions", {}, 422, "VALIDATION_FAILED"],
      ["/page?agent=a&agent_id=b", {}, 422, "VALIDATION_FAILED"],
      ["?agent=a&agent_id=b", {}, 422, "VALIDATION_FAILED"],
      [`?after=${size + 5}`, {}, 422, "INVALID_RANGE"],
      ["", { "last-event-id": "abc" }, 422, "VALIDATION_FAILED"],
      ["", { "last-event-id": "-2" }, 422, "VALIDATION_FAILED"],
      ["", { "last-event-id": "99999999999" }, 422, "INVALID_RANGE"],
      ["", { accept: "application/json" }, 406, "NOT_ACCEPTABLE"],
      ["?limit=3", {}, 422, "VALIDATION_FAILED"],
    ];
    for (const [query, headers, status, code] of bad) {
      const refused = await admin("GET", `/v1/events${query}`, { headers });
      assert.deepEqual([refused.status, refused.body.code], [status, code], `${query} ${JSON.stringify(headers)}`);
    }
    assert.equal((await service.call("GET", "/v1/events", { key: null })).status, 401);
  });
});

describe("shutdown", () => {
  it("ends every stream with a message, and a client continues by sequence number after the restart", async () => {
    const own = await startService({ pluginOptions: { events: { retry_milliseconds: 5 } } });
    let listening = await serve(own.runtime.fetch, { host: "127.0.0.1", port: 0 });
    const { port } = listening;
    const got: number[] = [];
    const source = follow(`http://127.0.0.1:${port}/v1/events?after=-1`, own.admin, ({ id }) => got.push(id));
    const plain = fetch(`${listening.url}/v1/events`, { headers: { authorization: `Bearer ${own.admin}` } }).then((r) =>
      r.text(),
    );
    await own.call("POST", "/v1/actions", { body: ALLOWED });
    await until("the stream is there", async () => got.at(-1) === (await own.storage.head()).size - 1);
    own.runtime.beginStop();
    await listening.stop(5000);
    assert.match(await plain, /: the service is stopping; connect again\n$/);
    await own.restart();
    listening = await serve(own.runtime.fetch, { host: "127.0.0.1", port });
    await own.call("POST", "/v1/actions", { body: ALLOWED });
    const { size } = await own.storage.head();
    // EventSource gives up on an HTTP error, but not on a refused connection.
    await until("the stream has continued", () => got.at(-1) === size - 1);
    assert.deepEqual(
      got,
      Array.from({ length: size }, (_, i) => i),
    );
    source.close();
    own.runtime.beginStop();
    await listening.stop(1000);
    await own.close();
  });
});
