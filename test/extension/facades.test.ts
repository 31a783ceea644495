/** A plugin's facade: an endpoint for another protocol, which calls `/v1` as the same client. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { definePlugin, type Facade } from "../../src/plugin.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";

const facade = (over: Partial<Facade> = {}): Facade => ({
  path: "/door",
  includesSubpaths: true,
  title: "A door",
  methods: "any",
  bodyLimit: 2000,
  async serve(call) {
    const rest = call.request.url.split("/door/")[1];
    if (rest === "throws") throw new Error("a fault of its own");
    const text = new TextDecoder().decode(call.body);
    const [method, path] = text === "" ? ["GET", "/v1/me"] : ["POST", "/v1/actions"];
    const answer = await call.callApi(method, path, text === "" ? {} : { json: JSON.parse(text) });
    return { status: 200, json: { asked: answer.status, rest, answer: answer.json } };
  },
  fault: ({ status, code }) => ({ status: 403, text: `no: ${status} ${code}` }),
  ...over,
});
const plugin = (facades: Facade[]) => ({
  plugin: definePlugin({ name: "door", setup: () => ({ facades }) }),
  options: {},
  origin: "test",
});

describe("a facade", () => {
  let service: Service;
  before(async () => {
    service = await startService({
      plugins: [plugin([facade(), facade({ path: "/own", methods: ["POST"], keyHeader: "Door-Key" })])],
      change: (config) => (config.rate_limits.per_key = { requests: 20, seconds: 60 }),
    });
  });
  after(() => service.close());

  it("calls the API as its caller, with any method and any path below its prefix", async () => {
    for (const method of ["GET", "PUT", "DELETE", "PROPFIND", "OPTIONS"]) {
      const { status, body } = await service.call(method, "/door/a//b%2/?x=1");
      assert.deepEqual([method, status, body.asked, body.rest], [method, 200, 200, "a//b%2/?x=1"]);
      assert.equal(body.answer.key.name, "agent");
    }
    const { body } = await service.call("POST", "/door/x", { raw: JSON.stringify(ALLOWED) });
    assert.deepEqual([body.asked, body.answer.status], [200, "allowed"]);
  });

  it("counts once against the key's limit", async () => {
    const left = async (path: string): Promise<number> =>
      Number(/r=(\d+)/.exec((await service.call("GET", path)).headers.get("ratelimit") ?? "")?.[1]);
    assert.equal((await left("/v1/me")) - (await left("/door/a")), 1);
  });

  it("takes the key from the header that it names, and forwards no other header", async () => {
    const own = (headers: Record<string, string>) =>
      service.call("POST", "/own", { key: null, raw: JSON.stringify(ALLOWED), headers });
    for (const value of [service.agent, `Bearer ${service.agent}`])
      assert.equal((await own({ "door-key": value, prefer: "wait=1", "idempotency-key": "k" })).body.asked, 200);
    assert.equal((await own({ authorization: `Bearer ${service.agent}` })).body, "no: 401 MISSING_CREDENTIAL");
  });

  it("builds its own error responses", async () => {
    assert.equal((await service.call("GET", "/door/a", { key: null })).body, "no: 401 MISSING_CREDENTIAL");
    assert.equal((await service.call("GET", "/door/a", { key: "wrong" })).body, "no: 401 INVALID_CREDENTIAL");
    assert.equal((await service.call("GET", "/door/throws")).body, "no: 500 INTERNAL");
    assert.equal((await service.call("POST", "/door/a", { raw: "x".repeat(2001) })).body, "no: 413 BODY_TOO_LARGE");
  });

  it("rejects a path that leaves its prefix, so that another route's 200 cannot look like an allow", async () => {
    for (const path of ["/own/../healthz", "/healthz", "/door/a", "/v1/me"]) {
      const { status } = await service.call("GET", path, { headers: { "door-key": service.agent } });
      assert.equal(status, 400, path);
    }
  });

  it("returns 405 for a method that it does not accept", async () => {
    const { status, headers } = await service.call("GET", "/own");
    assert.deepEqual([status, headers.get("allow")], [405, "OPTIONS, POST"]);
  });

  it("cannot overlap a route or another facade", async () => {
    for (const [facades, words] of [
      [[facade({ path: "/v1/actions" })], /conflicts with a route or page/],
      [[facade({ path: "/v1/actions/:other" })], /conflicts with a route or page/],
      [[facade(), facade({ path: "/door" })], /used by plugin "door"/],
    ] as const)
      await assert.rejects(startService({ plugins: [plugin([...facades])] }), words);
  });
});
