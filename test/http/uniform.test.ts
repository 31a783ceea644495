/** Behaviour that all routes share, through the real handler. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { serve } from "../../src/serve/index.ts";
import { clientAddress } from "../../src/http/client-address.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

async function withService(
  options: Parameters<typeof startService>[0],
  work: (service: Service) => Promise<void>,
): Promise<void> {
  const service = await startService(options);
  try {
    await work(service);
  } finally {
    await service.close();
  }
}

describe("entity tags", () => {
  it("avoid sending an unchanged response, and HEAD returns the same headers without a body", () =>
    withService({}, async (service) => {
      const { body: action } = await service.call("POST", "/v1/actions", { body: ALLOWED });
      for (const path of ["/v1/actions", `/v1/actions/${action.id}`]) {
        const first = await service.call("GET", path);
        const etag = first.headers.get("etag") as string;
        assert.match(etag, /^"[0-9a-f]{32}"$/);
        const same = await service.call("GET", path, { headers: { "if-none-match": `"other", W/${etag}` } });
        assert.deepEqual([same.status, same.body, same.headers.get("etag")], [304, "", etag]);
        const head = await service.call("HEAD", path);
        assert.deepEqual(
          [head.status, head.body, head.headers.get("etag"), head.headers.get("content-type")],
          [200, "", etag, "application/json"],
        );
      }
      const before = (await service.call("GET", "/v1/actions")).headers.get("etag") as string;
      await service.call("POST", "/v1/actions", { body: ALLOWED });
      assert.equal((await service.call("GET", "/v1/actions", { headers: { "if-none-match": before } })).status, 200);
      assert.equal(
        (await service.call("GET", "/v1/actions/none", { headers: { "if-none-match": "*" } })).status,
        404,
        "errors have no tag",
      );
    }));
});

describe("security headers", () => {
  it("security headers are in every response, including errors and preflights", () =>
    withService({ change: (config) => (config.server.public_url = "https://assent.example") }, async (service) => {
      const answers = [
        await service.call("GET", "/healthz"),
        await service.call("GET", "/nowhere"),
        await service.call("OPTIONS", "/v1/actions"),
        await service.call("POST", "/v1/actions", { body: {} }),
        await service.call("POST", "/v1/actions", { body: ALLOWED }),
        await service.call("DELETE", "/v1/actions"),
      ];
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 404, 204, 422, 200, 405],
      );
      for (const { headers } of answers) {
        assert.equal(headers.get("x-content-type-options"), "nosniff");
        assert.equal(headers.get("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
        assert.equal(headers.get("referrer-policy"), "no-referrer");
        assert.equal(headers.get("x-frame-options"), "DENY");
        assert.equal(headers.get("strict-transport-security"), "max-age=31536000");
        assert.match(headers.get("x-request-id") ?? "", /./);
        assert.equal(headers.get("access-control-allow-origin"), null, "CORS is off");
      }
      assert.equal(answers[5]?.headers.get("allow"), "GET, HEAD, OPTIONS, POST");
    }));
});

describe("CORS", () => {
  const preflight = {
    origin: "https://console.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
  };

  it("CORS allows the listed origins, and no others", () =>
    withService({ change: (config) => (config.server.cors_origins = ["https://console.example"]) }, async (service) => {
      const asked = await service.call("OPTIONS", "/v1/actions", { key: null, headers: preflight });
      assert.equal(asked.status, 204);
      assert.equal(asked.headers.get("access-control-allow-origin"), "https://console.example");
      assert.equal(asked.headers.get("access-control-allow-methods"), "GET, HEAD, OPTIONS, POST");
      assert.match(asked.headers.get("access-control-allow-headers") ?? "", /Authorization.*Idempotency-Key/);
      assert.equal(asked.headers.get("access-control-allow-credentials"), null);
      const real = await service.call("POST", "/v1/actions", {
        body: ALLOWED,
        headers: { origin: "https://console.example" },
      });
      assert.deepEqual(
        [real.headers.get("access-control-allow-origin"), real.headers.get("vary")],
        ["https://console.example", "Origin"],
      );
      assert.match(real.headers.get("access-control-expose-headers") ?? "", /X-Request-Id/);
      const refused = await service.call("GET", "/v1/actions", {
        key: null,
        headers: { origin: "https://console.example" },
      });
      assert.equal(
        refused.headers.get("access-control-allow-origin"),
        "https://console.example",
        "a page may read its error",
      );
      for (const origin of [
        "https://evil.example",
        "https://console.example.evil.example",
        "http://console.example",
        "null",
      ]) {
        const other = await service.call("OPTIONS", "/v1/actions", { key: null, headers: { ...preflight, origin } });
        assert.deepEqual(
          [other.headers.get("access-control-allow-origin"), other.headers.get("access-control-allow-methods")],
          [null, null],
          origin,
        );
        assert.equal(other.headers.get("vary"), "Origin");
      }
    }));

  it("allows every origin for `*`", () =>
    withService({ change: (config) => (config.server.cors_origins = ["*"]) }, async (service) => {
      assert.equal(
        (await service.call("OPTIONS", "/v1/actions", { key: null, headers: preflight })).headers.get(
          "access-control-allow-origin",
        ),
        "*",
      );
    }));
});

describe("rate limits", () => {
  it("count by key, report the remaining requests, and do not affect other keys", () =>
    withService(
      { change: (config) => (config.rate_limits.per_key = { requests: 3, seconds: 60 }) },
      async (service) => {
        for (const left of [2, 1, 0]) {
          const { status, headers } = await service.call("GET", "/v1/actions");
          assert.deepEqual([status, headers.get("ratelimit-policy")], [200, '"key";q=3;w=60']);
          assert.match(headers.get("ratelimit") ?? "", new RegExp(`^"key";r=${left};t=\\d+$`));
        }
        const over = await service.call("POST", "/v1/actions", { body: ALLOWED });
        assert.deepEqual([over.status, over.body.code], [429, "RATE_LIMITED"]);
        assert.ok(Number(over.headers.get("retry-after")) >= 1 && Number(over.headers.get("retry-after")) <= 60);
        assert.match(over.headers.get("ratelimit") ?? "", /^"key";r=0;t=\d+$/);
        assert.equal((await service.call("GET", "/v1/actions", { key: service.admin })).status, 200);
        assert.equal((await service.storage.head()).size, 3, "what was refused left no trace in the ledger");
      },
    ));

  it("count calls without a key by address, and never the probes", () =>
    withService(
      { change: (config) => (config.rate_limits.per_address = { requests: 2, seconds: 60 }) },
      async (service) => {
        const from = (ip: string, path: string, headers: Record<string, string> = {}): Promise<Response> =>
          service.runtime.fetch(new Request(`http://assent.test${path}`, { headers }), { ip: () => ip });
        assert.deepEqual(
          [
            (await from("10.0.0.1", "/v1/actions")).status,
            (await from("10.0.0.1", "/v1/actions")).status,
            (await from("10.0.0.1", "/v1/actions")).status,
          ],
          [401, 401, 429],
        );
        assert.equal((await from("10.0.0.2", "/v1/actions")).status, 401);
        for (let i = 0; i < 5; i++) assert.equal((await from("10.0.0.1", "/healthz")).status, 200);
        assert.equal(
          (await from("10.0.0.1", "/v1/actions", { authorization: `Bearer ${service.agent}` })).status,
          200,
          "a right key is not held up",
        );
        // An IPv6 customer has 2^64 addresses.
        assert.deepEqual(
          [
            (await from("2001:db8:1:2::1", "/v1/actions")).status,
            (await from("2001:db8:1:2:ffff::9", "/v1/actions")).status,
            (await from("2001:db8:1:2:a:b:c:d", "/v1/actions")).status,
            (await from("2001:db8:1:3::1", "/v1/actions")).status,
          ],
          [401, 401, 429, 401],
        );
      },
    ));

  it("repeated invalid keys are delayed more and more, and a valid key is accepted", () =>
    withService({ change: (config) => (config.rate_limits.bad_keys_per_minute = 3) }, async (service) => {
      const trying = async (key: string): Promise<Response> =>
        service.runtime.fetch(
          new Request("http://assent.test/v1/actions", { headers: { authorization: `Bearer ${key}` } }),
          { ip: () => "10.0.0.1" },
        );
      const waits: (string | null)[] = [];
      for (let i = 0; i < 7; i++) waits.push((await trying(`wrong-${i}`)).headers.get("retry-after"));
      assert.deepEqual(waits, [null, null, null, "1", "2", "4", "8"]);
      assert.equal((await trying("wrong")).status, 429);
      assert.equal((await trying(service.agent)).status, 200);
    }));

  it("are off unless they are configured", () =>
    withService({}, async (service) => {
      for (let i = 0; i < 30; i++) {
        const { status, headers } = await service.call("GET", "/v1/actions");
        assert.deepEqual([status, headers.get("ratelimit"), headers.get("ratelimit-policy")], [200, null, null]);
      }
    }));
});

describe("a client's address", () => {
  const address = (ip: string, proxies = 0, forwarded?: string): string =>
    clientAddress(
      new Request("http://x/", { headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded } }),
      { ip: () => ip },
      proxies,
    );

  it("is the connection's address, or with trusted proxies the one that the outermost proxy saw", () => {
    assert.equal(address("10.0.0.9", 0, "1.1.1.1"), "10.0.0.9");
    assert.equal(address("10.0.0.9", 1, "6.6.6.6, 1.1.1.1"), "1.1.1.1", "what stands before is the client's own word");
    assert.equal(address("10.0.0.9", 2, "6.6.6.6, 1.1.1.1, 10.0.0.8"), "1.1.1.1");
    assert.equal(address("10.0.0.9", 2), "10.0.0.9");
  });

  it("is a /64 for IPv6, and an IPv4 address in any notation", () => {
    assert.equal(address("::ffff:10.1.2.3"), "10.1.2.3");
    assert.equal(address("::1"), "0:0:0:0::/64");
    assert.equal(address("fe80::1%eth0"), "fe80:0:0:0::/64");
    assert.equal(address("2001:0DB8::7"), "2001:db8:0:0::/64");
    assert.equal(address(""), "unknown");
  });
});

describe("the access log", () => {
  it("is empty at the default level, so that messages to the operator stay visible", () =>
    withService({}, async (service) => {
      await service.call("POST", "/v1/actions", { body: ALLOWED });
      assert.deepEqual(
        service.logged.filter((line) => line.includes('"request"')),
        [],
      );
    }));

  it(
    "the access log contains the route, the key and the request, and neither parameters nor secrets",
    needs("agents"),
    () =>
      withService({ change: (config) => (config.log.level = "debug") }, async (service) => {
        const secret = "4111-1111-1111-1111";
        const body = { ...ALLOWED, params: { amount: 1, currency: "USD", note: secret } };
        await service.call("POST", "/v1/actions", { body, headers: { "x-request-id": "mine-1" } });
        await service.call("GET", `/v1/actions?agent=${secret}`);
        await service.call("GET", `/v1/agents/${secret}`, { key: service.admin });
        await service.call("GET", `/${secret}`);
        await service.call("GET", "/v1/actions", { key: `assent_${secret}` });
        // The lines of one turn of the event loop are written together.
        await until("all lines are out", () => service.logged.filter((line) => line.includes('"request"')).length >= 5);
        const lines = service.logged
          .filter((line) => line.includes('"request"'))
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        assert.deepEqual(
          lines.map(({ method, route, status }) => [method, route, status]),
          [
            ["POST", "/v1/actions", 200],
            ["GET", "/v1/actions", 200],
            ["GET", "/v1/agents/:id", 404],
            ["GET", null, 404],
            ["GET", "/v1/actions", 401],
          ],
        );
        assert.equal(lines[0]?.["client_request_id"], "mine-1");
        assert.match(String(lines[0]?.["request_id"]), /^[0-9a-f-]{36}$/);
        assert.ok(!("client_request_id" in (lines[1] ?? {})));
        assert.match(String(lines[0]?.["key_id"]), /^[0-9a-f-]{36}$/);
        const all = service.logged.join("\n");
        for (const word of [secret, service.agent, service.admin])
          assert.ok(!all.includes(word), `the log holds ${word.slice(0, 12)}`);
      }),
  );
});

describe("a graceful stop", () => {
  it("answers every accepted request, and every response is in the ledger", () =>
    withService({}, async (service) => {
      const server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
      const headers = { authorization: `Bearer ${service.agent}`, "content-type": "application/json" };
      let stopping = false;
      const answered: string[] = [];
      let cutOff = 0;
      const clients = Array.from({ length: 16 }, async () => {
        while (!stopping) {
          const sent = fetch(`${server.url}/v1/actions`, { method: "POST", headers, body: JSON.stringify(ALLOWED) });
          const result = await sent
            .then(async (response) => (await response.json()) as { decision_hash?: string })
            .catch(() => null);
          if (result?.decision_hash !== undefined) answered.push(result.decision_hash);
          else if (!stopping) cutOff += 1;
        }
      });
      await until("the clients are answered", () => answered.length > 64, 1);
      stopping = true;
      service.runtime.beginStop();
      await server.stop(5000);
      await Promise.all(clients);
      assert.equal(cutOff, 0);
      for (const hash of answered)
        assert.ok((await service.storage.entryByHash(Uint8Array.from(Buffer.from(hash, "hex")))) !== null, hash);
    }));
});
