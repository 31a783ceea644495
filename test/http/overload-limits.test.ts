/** Limits of one process: bytes of bodies over all requests, and values of one body. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { createCollector } from "../../src/http/collector.ts";
import { createRequestQueue, createRequestByteBudget } from "../../src/http/overload-limits.ts";
import { BodyTooLarge } from "../../src/http/request-info.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

/** The maximum size of a policy. */
const LARGE = 524_288;

describe("request bodies", () => {
  let service: Service;
  let server: RunningServer;
  const open: Socket[] = [];
  before(async () => {
    service = await startService({ change: ({ server }) => (server.max_bytes_in_flight = 8 * LARGE) });
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    await server.stop(500);
    await service.close();
  });

  /** Announces a body, sends a part of it, and keeps the connection open. */
  function send(path: string, length: number, part: string): { socket: Socket; received: () => string } {
    const socket = connect(server.port, "127.0.0.1");
    open.push(socket);
    let received = "";
    socket.on("data", (chunk: Buffer) => (received += chunk.toString()));
    socket.on("error", () => undefined);
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.admin}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${part}`,
    );
    return { socket, received: () => received };
  }
  const held = () => service.runtime.host.load.bodyBytes();

  it(
    "bodies of slow senders have a total limit: another large body is rejected before it is read, a small one is accepted",
    needs("metrics"),
    async () => {
      const slow = [1, 2, 3, 4].map(() => send("/v1/policies", LARGE, "x".repeat(LARGE - 1)));
      await until("they are held", () => held() === 4 * LARGE);
      const refused = send("/v1/policies", LARGE, "");
      await until("it is refused", () => refused.received().includes("OVERLOADED"));
      assert.match(refused.received(), /^HTTP\/1\.1 503 /);
      for (const header of ["retry-after: 1", "connection: close"])
        assert.ok(refused.received().toLowerCase().includes(`\r\n${header}\r\n`), header);
      const small = await fetch(`${server.url}/v1/actions`, {
        method: "POST",
        headers: { authorization: `Bearer ${service.agent}`, "content-type": "application/json" },
        body: JSON.stringify(ALLOWED),
      });
      assert.equal(small.status, 200);
      const metrics = await service.call("GET", "/metrics", { key: service.admin });
      assert.match(String(metrics.body), /^assent_http_body_bytes \d{7}$/m);
      for (const { socket } of slow) socket.destroy();
      await until("they are let go", () => held() === 0);
      const again = send("/v1/policies", LARGE, "x".repeat(LARGE));
      await until("there is room again", () => again.received().includes("MALFORMED_JSON"));
    },
  );

  it("bodies without an announced length are counted as they arrive", async () => {
    const socket = connect(server.port, "127.0.0.1");
    open.push(socket);
    socket.on("error", () => undefined);
    const slow = [1, 2, 3, 4].map(() => send("/v1/policies", LARGE, "x".repeat(LARGE - 1)));
    await until("they are held", () => held() === 4 * LARGE);
    let received = "";
    socket.on("data", (chunk: Buffer) => (received += chunk.toString()));
    socket.write(
      `POST /v1/policies HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.admin}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    socket.write(`${(200_000).toString(16)}\r\n${"x".repeat(200_000)}\r\n`);
    await until("it is refused", () => received.includes('"code":"OVERLOADED"'));
    for (const { socket: one } of slow) one.destroy();
    await until("they are let go", () => held() === 0);
  });

  it("tokens, votes and permits have a lower limit of their own", async () => {
    const id = "019346a0-0000-7000-8000-000000000000";
    for (const [path, most] of [
      ["/v1/approval-link", 4096],
      [`/v1/actions/${id}/approval`, 32_768],
      [`/v1/actions/${id}/start`, 16_384],
      ["/v1/actions", 65_536],
    ] as const) {
      const ask = (size: number) =>
        service.call("POST", path, { key: service.admin, raw: JSON.stringify({ a: "x".repeat(size - 8) }) });
      assert.equal((await ask(most)).body.code, "VALIDATION_FAILED", path);
      assert.equal((await ask(most + 1)).body.code, "BODY_TOO_LARGE", path);
    }
  });

  it("a body with too many values is rejected", async () => {
    const body = (items: number): string =>
      JSON.stringify({ policy: "p", rules: [{ name: "r", effect: "allow" }], metadata: { a: Array(items).fill(0) } });
    const answer = await service.call("POST", "/v1/policies", { key: service.admin, raw: body(100_000) });
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.errors[0].pointer],
      [400, "TOO_MANY_VALUES", "/metadata/a/99992"],
    );
    assert.notEqual(
      (await service.call("POST", "/v1/policies", { key: service.admin, raw: body(99_000) })).body.code,
      "TOO_MANY_VALUES",
    );
  });
});

describe("a share", () => {
  it("releases its bytes once", () => {
    const all = createRequestByteBudget(1_000_000);
    const [one, two] = [all.share(), all.share()];
    one.take(60_000);
    two.take(60_000);
    assert.equal(all.bytes, 120_000);
    one.release();
    one.release();
    assert.equal(all.bytes, 60_000);
  });

  it("of a large body can use half of the budget, of a small one all of it", () => {
    const all = createRequestByteBudget(1_000_000);
    all.share().take(450_000);
    assert.throws(() => all.share().expect(100_000), { code: "OVERLOADED" });
    for (let i = 0; i < 9; i++) all.share().take(60_000);
    assert.throws(() => all.share().take(60_000), { code: "OVERLOADED" });
  });
});

describe("a collector", () => {
  it("buffers little more than the received bytes, in any number of chunks, and reserves them first", () => {
    let told = 0;
    const body = createCollector(100_000, (bytes) => (told += bytes));
    for (let i = 0; i < 70_000; i++) body.add(Uint8Array.of(i % 256));
    const whole = body.bytes();
    assert.equal(whole.length, 70_000);
    assert.ok(whole.every((byte, i) => byte === i % 256));
    assert.ok(told >= 70_000 && told <= 100_000, String(told));
    assert.throws(() => body.add(new Uint8Array(30_001)), BodyTooLarge);
  });

  it("buffers nothing that it did not receive", () => {
    const body = createCollector(1000, () => {
      throw new Error("no room");
    });
    assert.throws(() => body.add(new Uint8Array(1)), /no room/);
    assert.equal(body.bytes().length, 0);
  });
});

describe("a slot of the queue", () => {
  it("is free while its request waits for another system, and is taken again once", async () => {
    const queue = createRequestQueue(1);
    const slot = queue.enter();
    const ends: (() => void)[] = [];
    const waits = [1, 2].map(() => slot.without(() => new Promise<void>((resolve) => ends.push(resolve))));
    assert.equal(queue.length, 0);
    const other = queue.enter();
    ends[0]?.();
    await waits[0];
    assert.equal(queue.length, 1, "the second work still runs");
    ends[1]?.();
    await assert.rejects(waits[1] as Promise<void>, { code: "OVERLOADED" });
    other.leave();
    assert.equal(await slot.without(() => Promise.resolve(7)), 7);
    assert.equal(queue.length, 1);
    slot.leave();
    await slot.without(() => Promise.resolve());
    assert.equal(queue.length, 0, "a request that has ended takes no slot");
  });
});
