/** HTTP on threads of its own: the same answers, and what becomes of a request whose thread is lost. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { after, before, describe, it, test } from "node:test";
import { Worker } from "node:worker_threads";
import type { FetchHandler } from "../../src/http/handler.ts";
import { createLogger } from "../../src/index.ts";
import type { Listening } from "../../src/serve/index.ts";
import { responseFor, serveWith, startFront } from "../../src/serve/threads/index.ts";
import { eventually, until } from "../support/wait.ts";

const Answer = responseFor(2);
const logged: string[] = [];
const log = createLogger("warn", (line) => logged.push(line));

function dial({ url }: Listening): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on("error", () => undefined);
}

/** All that comes until the connection ends. */
function received(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return new Promise((resolve) => socket.on("close", () => resolve(text)));
}

/** Deno and Bun hide a GET's body, and end connections by their own rules. */
const otherServer = "deno" in process.versions || "bun" in process.versions ? "another HTTP server than Node's" : false;

describe("two threads", () => {
  let listening: Listening;
  let front: Worker;
  let handle: FetchHandler;
  before(async () => {
    listening = await serveWith((request, info) => handle(request, info), {
      host: "127.0.0.1",
      port: 0,
      threads: 2,
      log,
      startFront: (at) => (front = startFront(at)),
    });
  });
  after(() => listening.stop(0));

  it("pass on method, address, headers, body and the client's address", async () => {
    handle = async (request, info) => {
      const body = Buffer.from((await info?.readBody?.(1_000_000, () => undefined)) ?? []).toString();
      const { method, url } = request;
      const seen = { method, url, custom: request.headers.get("X-Custom"), body, ip: info?.ip?.() };
      return new Answer(JSON.stringify(seen), { status: 201, headers: { "X-Answer": "1", "Content-Type": "a/b" } });
    };
    for (const size of [0, 10, 16_384, 16_385, 500_000]) {
      const body = "ä".repeat(size / 2);
      const response = await fetch(`${listening.url}/a/b?c=%20d`, {
        method: "POST",
        body,
        headers: { "x-custom": "one" },
      });
      assert.deepEqual(
        [
          response.status,
          response.headers.get("x-answer"),
          response.headers.get("content-type"),
          await response.json(),
        ],
        [201, "1", "a/b", { method: "POST", url: `${listening.url}/a/b?c=%20d`, custom: "one", body, ip: "127.0.0.1" }],
        `a body of ${size} bytes`,
      );
    }
  });

  it("give a plugin whatever else the web's Request and Response have", async () => {
    handle = async (request) => {
      const whole = new Answer(await request.clone().text(), { headers: { a: "b" } });
      whole.headers.set("c", "d");
      assert.ok(request instanceof Request && whole instanceof Response && whole.ok);
      return new Answer(await whole.text(), { headers: whole.headers });
    };
    const response = await fetch(listening.url, { method: "POST", body: "x".repeat(20_000) });
    assert.deepEqual([response.headers.get("a"), response.headers.get("c")], ["b", "d"]);
    assert.equal((await response.text()).length, 20_000);
  });

  it("answer with bytes, with nothing and in pieces, and say where an answer breaks off", async () => {
    const bytes = new Uint8Array(300_000).map((_, i) => i);
    handle = async (request) => {
      if (request.url.endsWith("/bytes")) return new Answer(bytes.subarray(7), { headers: {} });
      if (request.url.endsWith("/none")) return new Answer(null, { status: 204 });
      let left = 3;
      return new Response(
        new ReadableStream<Uint8Array>({
          pull(stream) {
            if (left-- > 0) return stream.enqueue(bytes.subarray(0, 1000));
            if (request.url.endsWith("/broken")) throw new Error("broken");
            stream.close();
          },
        }),
      );
    };
    const get = (path: string): Promise<Response> => fetch(listening.url + path);
    const whole = await get("/bytes");
    assert.equal(whole.headers.get("content-length"), String(bytes.length - 7));
    assert.deepEqual(new Uint8Array(await whole.arrayBuffer()), bytes.subarray(7));
    assert.equal((await get("/none")).status, 204);
    assert.equal((await (await get("/pieces")).arrayBuffer()).byteLength, 3000);
    await assert.rejects(
      get("/broken").then((response) => response.arrayBuffer()),
      "a part is not taken for the whole",
    );
  });

  it("tell the handler that a client has left, while it waits and while it streams", async () => {
    const left: string[] = [];
    let waits = false;
    handle = async (request) => {
      if (request.url.endsWith("/wait")) {
        waits = true;
        await once(request.signal, "abort");
        left.push("wait");
        return new Answer("late", {});
      }
      const start = (stream: ReadableStreamDefaultController<Uint8Array>): void => stream.enqueue(new Uint8Array(3));
      return new Answer(new ReadableStream({ start, cancel: () => void left.push("stream") }), {});
    };
    for (const path of ["/wait", "/stream"]) {
      const socket = dial(listening);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      if (path === "/stream") await once(socket, "data");
      else await until("the handler waits", () => waits);
      socket.destroy();
    }
    await until("both were told", () => left.length === 2);
  });

  it("pass on a GET's body, so that it can be refused", { skip: otherServer }, async () => {
    handle = async (_, info) => {
      const body = await info?.readBody?.(100, () => undefined);
      return new Answer(Buffer.from(body ?? []).toString(), { headers: {} });
    };
    const socket = dial(listening);
    socket.write(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    assert.match(await received(socket), /\r\n\r\nabc$/);
  });

  it(
    "let a client that has stopped sending see the answer to a body that nobody wants, whole",
    { skip: otherServer },
    async () => {
      handle = () =>
        Promise.resolve(new Answer("n".repeat(8_000_000), { status: 413, headers: { Connection: "close" } }));
      const socket = dial(listening);
      socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n${"x".repeat(100_000)}`);
      const answer = await received(socket);
      assert.match(answer, /^HTTP\/1.1 413 /);
      assert.equal(answer.length - answer.indexOf("\r\n\r\n") - 4, 8_000_000);
    },
  );

  it(
    "cut a connection on which requests come without end while they wait for their answers",
    { skip: otherServer },
    async () => {
      let handled = 0;
      handle = async (request) => {
        handled += 1;
        await once(request.signal, "abort");
        return new Answer("late", {});
      };
      const socket = dial(listening);
      const sent = 100_000;
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(sent));
      assert.equal(await received(socket), "");
      await until("some came", () => handled >= 128);
      // What had come with the one too many is read.
      assert.ok(handled < sent / 10, `${handled} were handled`);
    },
  );

  it("cut an answer with a piece that is no bytes, and tell the one who made it", async () => {
    let told = false;
    handle = () => {
      const start = (stream: ReadableStreamDefaultController<unknown>): void => stream.enqueue(1);
      return Promise.resolve(new Answer(new ReadableStream({ start, cancel: () => void (told = true) }), {}));
    };
    await assert.rejects(fetch(listening.url).then((response) => response.text()));
    await until("it was told", () => told);
  });

  it("answer 500 where the handler fails, and never what it did not say", async () => {
    handle = () => Promise.reject(new Error("a fault"));
    const response = await fetch(listening.url);
    assert.deepEqual([response.status, await response.text()], [500, "Internal Server Error\n"]);
  });

  it("cut the connections of a thread that is lost, unanswered, and begin another at the same port", async () => {
    let gone = false;
    let waits = false;
    handle = async (request) => {
      if (request.url.endsWith("/held")) {
        waits = true;
        request.signal.addEventListener("abort", () => (gone = true));
        await once(request.signal, "abort");
      }
      return new Answer("here", {});
    };
    const held = new Promise<string>((resolve) => {
      const request = httpRequest(`${listening.url}/held`, (response) =>
        resolve(`answered with ${response.statusCode}`),
      );
      request.on("error", () => resolve("cut"));
      request.end();
    });
    await until("the handler waits", () => waits);
    const lost = front;
    await lost.terminate();
    assert.equal(await held, "cut");
    await until("the handler knows", () => gone);
    const answer = await eventually(
      () =>
        fetch(listening.url)
          .then((response) => response.text())
          .catch(() => undefined),
      () => `no other thread was begun: ${logged.join("")}`,
    );
    assert.equal(answer, "here");
    assert.notEqual(front, lost);
    assert.match(logged.join(""), /a thread that speaks HTTP ended/);
  });
});

test("a thread that hangs is ended, and another one begun", async () => {
  const hangs = `const { parentPort } = require("node:worker_threads");
    parentPort.postMessage({ state: "listening", url: "http://hangs.invalid" });
    for (;;);`;
  let begun = 0;
  const listening = await serveWith(() => Promise.resolve(new Answer("here", {})), {
    host: "127.0.0.1",
    port: 0,
    threads: 2,
    log,
    pingMs: 100,
    startFront: (at) => (begun++ === 0 ? new Worker(hangs, { eval: true }) : startFront(at)),
  });
  try {
    const url = `http://127.0.0.1:${listening.port}/`;
    const answer = await eventually(
      () =>
        fetch(url).then(
          (response) => response.text(),
          () => undefined,
        ),
      () => "nothing took the place of the thread that hangs",
    );
    assert.equal(answer, "here");
    assert.match(logged.join(""), /it did not answer/);
  } finally {
    await listening.stop(0);
  }
});

describe("a port", () => {
  it("that is taken is said, and no thread is left", async () => {
    const taken = await serveWith(() => Promise.resolve(new Answer("", {})), {
      host: "127.0.0.1",
      port: 0,
      threads: 2,
      log,
    });
    try {
      await assert.rejects(
        serveWith(() => Promise.resolve(new Answer("", {})), { host: "127.0.0.1", port: taken.port, threads: 2, log }),
        { message: `port ${taken.port} on 127.0.0.1 is taken by another process` },
      );
    } finally {
      await taken.stop(0);
    }
    await assert.rejects(fetch(taken.url), "nothing listens any more");
  });
});
