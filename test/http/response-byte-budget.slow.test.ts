/** Response bytes in one process are bounded for each key and in total, whether or not clients read them. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import {
  createResponseByteBudget,
  SMALL_RESPONSE_BYTES,
  streamReservedResponse,
} from "../../src/http/response-byte-budget.ts";
import { readPage } from "../../src/http/resource/paging.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, makeKey, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const MIB = 1_048_576;

describe("response bytes", () => {
  let service: Service;
  let server: RunningServer;
  const keys: string[] = [];
  const open: Socket[] = [];
  let most = 0;
  let observer: ReturnType<typeof setInterval>;
  const held = () => service.runtime.host.load.responseBytes();

  before(async () => {
    service = await startService({
      change({ server }) {
        server.max_response_bytes = 20 * MIB;
        server.max_response_bytes_per_key = 9 * MIB;
      },
    });
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    for (let i = 0; i < 75; i++)
      await service.call("POST", "/v1/actions", { body: { ...ALLOWED, context: { pad: "x".repeat(60_000) } } });
    for (let i = 0; i < 4; i++)
      keys.push((await makeKey(service, { name: `reader ${i}`, scopes: ["actions:read", "actions:submit"] })).key);
    observer = setInterval(() => (most = Math.max(most, held())), 1);
  });
  after(async () => {
    clearInterval(observer);
    for (const socket of open) socket.destroy();
    await server.stop(500);
    await service.close();
  });

  /** Requests a page, and reads only the head of the response. */
  function ask(key: string, path = "/v1/actions?limit=1000"): { head: () => string; socket: Socket } {
    const socket = connect(server.port, "127.0.0.1");
    open.push(socket);
    let head = "";
    socket.on("data", (chunk: Buffer) => {
      head += chunk.toString().slice(0, 2000);
      socket.pause();
    });
    socket.on("error", () => undefined);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    return { socket, head: () => head };
  }

  it("of one key are bounded: 429 with Retry-After, and other keys and small responses are served", async () => {
    const lists = Array.from({ length: 30 }, () => ask(keys[0] as string));
    await until("all are answered", () => lists.every(({ head }) => head() !== ""));
    const heads = lists.map(({ head }) => head());
    const [full, refused] = [
      /^HTTP\/1\.1 200 /,
      /^HTTP\/1\.1 429 [\s\S]*retry-after: 1\r\n[\s\S]*"code":"TOO_MANY_BYTES"/i,
    ];
    assert.ok(
      heads.every((head) => full.test(head) || refused.test(head)),
      heads.join("\n\n"),
    );
    assert.ok(heads.some((head) => full.test(head)) && heads.some((head) => refused.test(head)), heads.join("\n\n"));
    assert.ok(most > 4 * MIB && most <= 9 * MIB, `${most} bytes`);
    const small = await service.call("GET", "/v1/actions/019346a0-0000-7000-8000-000000000000", {
      key: keys[0] as string,
    });
    assert.equal(small.status, 404);
    const other = await service.call("GET", "/v1/actions?limit=1000", { key: keys[1] as string });
    assert.deepEqual([other.status, other.body.actions.length > 20], [200, true]);
    const decided = await service.call("POST", "/v1/actions", { key: keys[0] as string, body: ALLOWED });
    assert.equal(decided.status, 200);
    for (const { socket } of lists) socket.destroy();
    await until("they are given back", () => held() === 0);
  });

  it("of all keys are bounded: 503 with Retry-After", needs("metrics"), async () => {
    const lists = keys.flatMap((key) => Array.from({ length: 6 }, () => ask(key)));
    await until("all are answered", () => lists.every(({ head }) => head() !== ""));
    const codes = lists.map(({ head }) => /"code":"(\w+)"/.exec(head())?.[1] ?? head().slice(9, 12));
    assert.ok(codes.includes("OVERLOADED") && codes.includes("200"), codes.join());
    assert.ok(most <= 20 * MIB, `${most} bytes`);
    const metrics = await service.call("GET", "/metrics", { key: service.admin });
    // The first is possible too: the kernel's buffers can hold all of the unread responses.
    assert.match(String(metrics.body), /^assent_http_response_bytes \d+$/m);
    for (const { socket } of lists) socket.destroy();
    await until("they are given back", () => held() === 0);
  });

  it("are released once they are read, and complete", needs("events"), async () => {
    const response = await fetch(`${server.url}/v1/events/page?limit=1000`, {
      headers: { authorization: `Bearer ${service.admin}` },
    });
    const text = await response.text();
    // Bun sends every stream in chunks, without a length.
    if (process.versions.bun === undefined)
      assert.equal(response.headers.get("content-length"), String(Buffer.byteLength(text)));
    assert.ok(JSON.parse(text).events.length > 0);
    await until("they are given back", () => held() === 0);
  });
});

describe("a share of responses", () => {
  it("refuses a page before it waits and its rows are read, if the limit is reached", async () => {
    const all = createResponseByteBudget({ total: 300_000, perKey: 200_000 });
    const [first, second] = [all.share("a"), all.share("a")];
    let [reads, turns] = [0, 0];
    const source = {
      read: () => Promise.resolve(Array.from({ length: ++reads }, () => 1)),
      size: () => 1,
      position: () => "1",
      render: () => ({}),
      turn: () => Promise.resolve(void turns++),
      hold: (bytes: number) => second.hold(bytes),
    };
    const page = (limit: number) => readPage("refunds", { limit, bytes: MIB }, source);
    first.hold(190_000);
    await assert.rejects(page(1000), { code: "TOO_MANY_BYTES" });
    assert.deepEqual([reads, turns], [0, 0]);
    assert.equal((await page(10)).items.length, 1);
    second.release();
    first.release();
    assert.equal((await page(1000)).items.length, 2);
  });

  it("rejects bytes above the limit of its key or of all, and never the only response or a small one", () => {
    const all = createResponseByteBudget({ total: 300_000, perKey: 200_000 });
    const first = all.share("a");
    first.hold(250_000);
    assert.throws(() => all.share("a").hold(20_000), { code: "TOO_MANY_BYTES" });
    all.share("a").hold(SMALL_RESPONSE_BYTES);
    assert.throws(() => all.share("b").hold(60_000), { code: "OVERLOADED" });
    assert.equal(all.bytes, 250_000 + SMALL_RESPONSE_BYTES);
    first.release();
    first.release();
    assert.equal(all.bytes, SMALL_RESPONSE_BYTES);
    const parts = all.share("b");
    parts.hold(150_000);
    parts.hold(50_000);
    assert.equal(all.bytes, 200_000 + SMALL_RESPONSE_BYTES);
  });

  it("is released if a client reads nothing", async () => {
    const all = createResponseByteBudget({ total: 300_000, perKey: 300_000 });
    const share = all.share("a");
    share.hold(200_000);
    const reader = streamReservedResponse(new Uint8Array(200_000), share, 1).getReader();
    assert.equal((await reader.read()).value?.length, 65_536);
    await until("it is given back", () => all.bytes === 0);
    await assert.rejects(reader.read(), /stopped reading/);
  });
});

it(
  "metrics are always served to a key that can read them, and report that invalid keys are slowed down",
  needs("metrics"),
  async () => {
    const service = await startService({
      change({ rate_limits }) {
        rate_limits.per_key = { requests: 2, seconds: 60 };
        rate_limits.per_address = { requests: 2, seconds: 60 };
      },
    });
    try {
      const answers = [];
      for (let i = 0; i < 5; i++) answers.push(await service.call("GET", "/metrics", { key: service.admin }));
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 200],
      );
      for (let i = 0; i < 3; i++) answers.push(await service.call("GET", "/metrics", { key: "wrong" }));
      assert.equal(answers.at(-1)?.status, 429);
      const { paths } = service.runtime.host.openapi({ description: "", tags: {} }) as {
        paths: Record<string, { get: { responses: object } }>;
      };
      assert.ok("429" in (paths["/metrics"]?.get.responses ?? {}));
    } finally {
      await service.close();
    }
  },
);
