/** The HTTP server in front of the handler: clients that disconnect, flood or send partial requests. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import type { FetchHandler } from "../../src/http/handler.ts";
import { serve, ServerResponse, type RunningServer } from "../../src/serve/index.ts";
import { withTimeout, BOUND_MS, until } from "../support/wait.ts";

function dial({ url }: RunningServer): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on("error", () => undefined);
}

/** Resolves to everything received until the connection is closed. */
function receiveAll(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return new Promise((resolve) => socket.on("close", () => resolve(text)));
}

/** Deno and Bun hide the body of a GET, and close connections by different rules. */
const otherServer = "deno" in process.versions || "bun" in process.versions ? "not Node's HTTP server" : false;

describe("the HTTP server", () => {
  let listening: RunningServer;
  let handle: FetchHandler;
  before(async () => {
    listening = await serve((request, info) => handle(request, info), { host: "127.0.0.1", port: 0 });
  });
  after(() => listening.stop(0));

  it("notifies the handler that a client disconnected, while it waits and while it streams", async () => {
    const left: string[] = [];
    let isWaiting = false;
    handle = async (request) => {
      if (request.url.endsWith("/wait")) {
        isWaiting = true;
        await once(request.signal, "abort");
        left.push("wait");
        return new ServerResponse("late", {});
      }
      const start = (stream: ReadableStreamDefaultController<Uint8Array>): void => stream.enqueue(new Uint8Array(3));
      return new ServerResponse(new ReadableStream({ start, cancel: () => void left.push("stream") }), {});
    };
    for (const path of ["/wait", "/stream"]) {
      const socket = dial(listening);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      if (path === "/stream") await once(socket, "data");
      else await until("the handler waits", () => isWaiting);
      socket.destroy();
    }
    await until("the handler was notified twice", () => left.length === 2);
  });

  it("passes on the body of a GET, so that it can be rejected", { skip: otherServer }, async () => {
    handle = async (_, info) => {
      const body = await info?.readBody?.(100, () => undefined);
      return new ServerResponse(Buffer.from(body ?? []).toString(), { headers: {} });
    };
    const socket = dial(listening);
    socket.write(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    assert.match(await receiveAll(socket), /\r\n\r\nabc$/);
  });

  it("closes a connection that pipelines requests without limit", { skip: otherServer }, async () => {
    let handled = 0;
    handle = async (request) => {
      handled += 1;
      await once(request.signal, "abort");
      return new ServerResponse("late", {});
    };
    const socket = dial(listening);
    const sent = 100_000;
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(sent));
    assert.equal(await receiveAll(socket), "");
    await until("the handler got some of them", () => handled >= 128);
    // The chunk that contains the first request over the limit is still parsed.
    assert.ok(handled < sent / 10, `${handled} were handled`);
  });

  it("returns 500 without details when the handler throws", async () => {
    handle = () => Promise.reject(new Error("a fault"));
    const response = await fetch(listening.url);
    assert.deepEqual([response.status, await response.text()], [500, "Internal Server Error\n"]);
  });

  it("names a port that another process uses", async () => {
    await assert.rejects(serve(handle, { host: "127.0.0.1", port: listening.port }), {
      message: `port ${listening.port} on 127.0.0.1 is in use by another process`,
    });
  });

  it("refuses a port that another program has on the other loopback address, and releases its own", async () => {
    for (const [taken, own] of [
      ["::1", "127.0.0.1"],
      ["127.0.0.1", "::1"],
    ] as const) {
      const other = createServer().listen(0, taken);
      await once(other, "listening");
      const { port } = other.address() as AddressInfo;
      await assert.rejects(serve(handle, { host: own, port }), {
        message: `port ${port} on ${taken} is in use by another process, which would receive requests of browsers on this machine`,
      });
      other.close();
      const later = await serve(handle, { host: own, port });
      await later.stop(0);
    }
  });

  it(
    "stops without waiting for connections that never sent a byte, or only half of a header",
    { skip: otherServer },
    async () => {
      handle = async () => new ServerResponse("done", {});
      const other = await serve((request, info) => handle(request, info), { host: "127.0.0.1", port: 0 });
      const silent = dial(other);
      await once(silent, "connect");
      const half = dial(other);
      half.write("GET / HTTP/1.1\r\nHost: ");
      const used = dial(other);
      used.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await once(used, "data");
      const closed = [silent, half].map((socket) => once(socket, "close"));
      const received = receiveAll(silent);
      half.resume();
      await withTimeout("the server stops", other.stop(10 * BOUND_MS));
      await Promise.all(closed);
      assert.equal(await received, "");
      used.destroy();
    },
  );
});
