import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { serve } from "../../../src/serve/index.ts";
import { needs } from "../../support/features.ts";
import { startService } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

test(
  "a client that does not read is disconnected, has little buffered for it, and can resume",
  needs("agents"),
  async (t) => {
    const service = await startService({
      pluginOptions: { events: { stall_seconds: 0.5, max_streams_per_key: 3 } },
    });
    const server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
    t.after(async () => {
      service.runtime.beginStop();
      await server.stop(1000);
      await service.close();
    });
    const { size } = await service.storage.head();
    // Its entry has 15 KB.
    const allowed_tools = Array.from({ length: 100 }, (_, i) => `${i}-`.padEnd(128, "x"));
    const description = "x".repeat(2000);
    const open = (): Promise<Response> =>
      fetch(`${server.url}/v1/events`, { headers: { authorization: `Bearer ${service.admin}` } });
    const socket = connect(server.port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.pause();
    socket.write(`GET /v1/events?after=-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.admin}\r\n\r\n`);
    // More than the kernel buffers of both sides hold.
    for (let i = 0; i < 900; i += 30)
      await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          service.call("POST", "/v1/agents", {
            key: service.admin,
            body: { id: `agent-${i + n}`, description, allowed_tools },
          }),
        ),
      );
    const newest = (await service.storage.head()).size - 1;
    // The key may have three streams.
    const others = [await open(), await open()];
    await until("its stream is closed", async () => {
      const another = await open();
      await another.body?.cancel();
      return another.status === 200;
    });
    for (const other of others) await other.body?.cancel();
    let received = "";
    socket.on("data", (chunk) => (received += chunk.toString("latin1")));
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.resume();
    await closed;
    assert.ok(received.includes("id: 0\n") && !received.includes(`id: ${newest}\n`), "it was cut off on the way");
    const page = await service.call("GET", `/v1/events/page?after=${size - 1}&limit=100`, { key: service.admin });
    assert.equal(page.body.events.length, 100, "what it missed is there");
  },
);
