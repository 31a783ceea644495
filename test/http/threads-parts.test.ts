/** What a thread that speaks HTTP and the one that decides say to each other, where no socket shows it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createBehind } from "../../src/serve/threads/behind.ts";
import { createFront } from "../../src/serve/threads/front.ts";
import { packCalls, unpackCalls, type Call, type Upward } from "../../src/serve/threads/messages.ts";
import { CarriedResponse, partsOf } from "../../src/serve/threads/carried.ts";

const CALL: Call = { id: 1, method: "POST", url: "http://a/", headers: [], ip: "::1", body: new Uint8Array([1, 2]) };

const passedOn = async (
  request: Request,
  info?: Parameters<ReturnType<typeof createFront>["fetch"]>[1],
): Promise<Call> => {
  const posted = await new Promise<Upward>((resolve) => void createFront(resolve, Response).fetch(request, info));
  return unpackCalls(posted)[0] as Call;
};

describe("a call", () => {
  it("has the address that its client had before it left", async () => {
    let here = true;
    const request = new Request("http://a/", { method: "POST", body: "x", headers: { "Content-Length": "1" } });
    const call = await passedOn(request, {
      ip: () => (here ? "1.2.3.4" : undefined),
      readBody: () => Promise.resolve(new Uint8Array(1)).finally(() => (here = false)),
    });
    assert.equal(call.ip, "1.2.3.4");
  });

  it("with a body that no header announces, as over HTTP/2, is one whose body is asked for, and is told so", async () => {
    const body = new Blob(["abc"]).stream();
    const call = await passedOn(new Request("http://a/", { method: "POST", body, duplex: "half" } as RequestInit));
    assert.equal(call.body, null);
    assert.deepEqual(call.headers, ["Transfer-Encoding", "chunked"]);
  });

  it("holds its own body alone, and not those that travelled with it", () => {
    const [first] = unpackCalls(packCalls([CALL, { ...CALL, id: 2, body: new Uint8Array(1000) }]));
    assert.equal(first?.body?.buffer.byteLength, 2);
  });

  it("whose front was lost has a client that has left, though nobody asked before", async () => {
    let signal: AbortSignal | null = null;
    const behind = createBehind(
      async (request) => {
        await Promise.resolve();
        ({ signal } = request);
        return new CarriedResponse("late", {});
      },
      () => assert.fail("nothing is said to a front that is lost"),
    );
    behind.heard({ ...packCalls([CALL]), words: [] });
    behind.lost();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal((signal as AbortSignal | null)?.aborted, true);
  });
});

describe("an answer", () => {
  it("has the type of a body that brings one", () => {
    const { headers } = partsOf(new CarriedResponse(new URLSearchParams({ a: "b" }), { headers: {} }));
    assert.deepEqual(headers, [["content-type", "application/x-www-form-urlencoded;charset=UTF-8"]]);
  });
});
