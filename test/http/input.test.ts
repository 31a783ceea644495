/** Every refusal has a code, a location and no internals; no input causes a 500. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { ERRORS, type ErrorCode } from "../../src/contract/errors.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { ALLOWED, ASKED, startService, type Service } from "../support/service.ts";
import { pause, until } from "../support/wait.ts";

let service: Service;
before(async () => {
  service = await startService({
    change(config) {
      config.server.max_body_bytes = 4096;
      // A test below waits for a request's log line.
      config.log.level = "debug";
    },
  });
});
after(() => service.close());

const good = JSON.stringify(ALLOWED);
const body = (raw: string, headers: Record<string, string> = {}) =>
  service.call("POST", "/v1/actions", { raw, headers });

describe("bodies", () => {
  const cases: [string, string, ErrorCode, string | null][] = [
    ["nothing", "", "MALFORMED_JSON", null],
    ["no JSON", "{", "MALFORMED_JSON", null],
    ["a trailing comma", '{"a":1,}', "MALFORMED_JSON", null],
    ["two values", `${good}${good}`, "MALFORMED_JSON", null],
    ["NaN", good.replace("50", "NaN"), "MALFORMED_JSON", null],
    ["a byte order mark", `\ufeff${good}`, "MALFORMED_JSON", null],
    ["a key twice", good.replace('"amount":50', '"amount":50,"amount":5000'), "DUPLICATE_KEY", "/params/amount"],
    [
      "a key twice, once escaped",
      good.replace('"amount":50', '"amount":50,"\\u0061mount":5000'),
      "DUPLICATE_KEY",
      "/params/amount",
    ],
    ["a top-level key twice", good.replace('"tool"', '"tool":"x","tool"'), "DUPLICATE_KEY", "/tool"],
    ["half of a surrogate pair", good.replace("USD", "\\ud83d"), "LONE_SURROGATE", "/params/currency"],
    ["an integer beyond 2^53", good.replace("50", "9007199254740993"), "UNSAFE_INTEGER", "/params/amount"],
    ["a number beyond all", good.replace("50", "1e999"), "UNSAFE_INTEGER", "/params/amount"],
    ["65 levels", good.replace("50", `${"[".repeat(65)}${"]".repeat(65)}`), "TOO_DEEP", null],
    ["1,900 levels", good.replace("50", `${"[".repeat(1900)}${"]".repeat(1900)}`), "TOO_DEEP", null],
    ["too many bytes", good.replace("USD", "x".repeat(5000)), "BODY_TOO_LARGE", null],
    ["an array", "[]", "VALIDATION_FAILED", ""],
    ["a missing member", '{"agent_id":"a","tool":"t"}', "VALIDATION_FAILED", "/operation"],
    ["an unknown member", good.replace('"tool"', '"tol"'), "VALIDATION_FAILED", "/tol"],
    ["a number for a name", good.replace('"stripe"', "7"), "VALIDATION_FAILED", "/tool"],
    ["an empty name", good.replace('"stripe"', '""'), "VALIDATION_FAILED", "/tool"],
    ["a name with a newline", good.replace('"stripe"', '"a\\nb"'), "VALIDATION_FAILED", "/tool"],
    ["a long name", good.replace("stripe", "x".repeat(257)), "VALIDATION_FAILED", "/tool"],
    ["params that are a list", good.replace(/"params":\{[^}]*\}/, '"params":[]'), "VALIDATION_FAILED", "/params"],
    ["context that is null", good.replace(/\}$/, ',"context":null}'), "VALIDATION_FAILED", "/context"],
  ];
  for (const [what, raw, code, pointer] of cases) {
    test(what, async () => {
      const answer = await body(raw);
      assert.deepEqual([answer.status, answer.body.code], [ERRORS[code][0], code], JSON.stringify(answer.body));
      assert.equal(answer.headers.get("content-type"), "application/problem+json");
      for (const member of ["type", "title", "status", "detail", "code", "request_id"])
        assert.ok(member in answer.body, member);
      if (pointer !== null)
        assert.ok(
          answer.body.errors.some((e: { pointer: string }) => e.pointer === pointer),
          JSON.stringify(answer.body.errors),
        );
    });
  }

  test("a body that is not valid UTF-8 is rejected", async () => {
    const bytes = new Uint8Array([...new TextEncoder().encode(good.slice(0, -2)), 0xff, 0x22, 0x7d]);
    const response = await service.runtime.fetch(
      new Request("http://a/v1/actions", {
        method: "POST",
        body: bytes,
        headers: { authorization: `Bearer ${service.agent}`, "content-type": "application/json" },
      }),
    );
    assert.equal(((await response.json()) as { code: string }).code, "INVALID_UTF8");
  });

  test("other content types are rejected", async () => {
    for (const [type, status] of [
      ["text/plain", 415],
      ["application/xml", 415],
      ["application/json; charset=latin1", 415],
      ["", 415],
      ["application/json; charset=utf-8", 200],
      ["Application/JSON", 200],
    ] as const) {
      assert.equal((await body(good, { "content-type": type })).status, status, type);
    }
    assert.equal((await body(good, { "content-encoding": "gzip" })).body.code, "UNSUPPORTED_MEDIA_TYPE");
  });

  test("an unknown member is reported with a suggestion", async () => {
    const answer = await body(good.replace('"operation"', '"operaton"'));
    assert.ok(answer.body.errors.some((e: { detail: string }) => e.detail.includes('did you mean "operation"')));
  });
});

describe("credentials", () => {
  test("keys that are missing, malformed, mistyped, unknown or lack the scope are rejected", async () => {
    const list = (headers: Record<string, string>) => service.call("GET", "/v1/actions", { key: null, headers });
    const none = await list({});
    assert.deepEqual(
      [none.status, none.body.code, none.headers.get("www-authenticate")],
      [401, "MISSING_CREDENTIAL", "Bearer"],
    );
    for (const value of [
      service.agent,
      `Basic ${service.agent}`,
      "Bearer",
      "Bearer a b",
      `Bearer ${service.agent},${service.admin}`,
      `Bearer ${"x".repeat(10_000)}`,
      "Bearer assent_x",
      `Bearer ${service.agent.slice(0, -1)}`,
    ]) {
      const answer = await list({ authorization: value });
      assert.deepEqual([answer.status, answer.body.code], [401, "INVALID_CREDENTIAL"], value.slice(0, 40));
      assert.ok(!JSON.stringify(answer.body).includes(service.agent.slice(10)), "the answer repeats a key");
    }
    assert.equal((await list({ authorization: `bEaReR ${service.agent}` })).status, 200);
    const narrow = await service.call("POST", "/v1/api-keys", { body: { name: "x" } });
    assert.deepEqual([narrow.status, narrow.body.code], [403, "INSUFFICIENT_SCOPE"]);
    assert.match(narrow.body.detail, /keys:manage/);
    const first = await service.call("POST", "/v1/actions", { key: null, raw: "{" });
    assert.equal(first.status, 401, "a stranger's body is not looked at");
  });

  test("a key is rejected from the first request after its revocation or expiry", async () => {
    const made = (
      await service.call("POST", "/v1/api-keys", { key: service.admin, body: { name: "short", preset: "agent" } })
    ).body;
    assert.equal((await service.call("POST", "/v1/actions", { key: made.key, body: ALLOWED })).status, 200);
    assert.equal((await service.call("DELETE", `/v1/api-keys/${made.id}`, { key: service.admin })).status, 200);
    for (const [method, path] of [
      ["POST", "/v1/actions"],
      ["GET", "/v1/actions"],
    ] as const) {
      assert.equal(
        (await service.call(method, path, { key: made.key, ...(method === "POST" ? { body: ALLOWED } : {}) })).body
          .code,
        "INVALID_CREDENTIAL",
      );
    }
    const soon = new Date(Date.now() + 60_000).toISOString();
    const timed = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "timed", preset: "agent", expires_at: soon },
      })
    ).body;
    assert.equal((await service.call("GET", "/v1/actions", { key: timed.key })).status, 200);
    service.clock.now += 61_000;
    assert.equal((await service.call("GET", "/v1/actions", { key: timed.key })).body.code, "INVALID_CREDENTIAL");
    service.clock.now = 0;
  });

  test("keys grant only their own scopes, and the last admin key cannot be revoked", async () => {
    const manager = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "manager", scopes: ["keys:manage", "actions:read"] },
      })
    ).body;
    const more = await service.call("POST", "/v1/api-keys", {
      key: manager.key,
      body: { name: "x", preset: "admin" },
    });
    assert.deepEqual([more.status, more.body.code], [403, "SCOPE_ESCALATION"]);
    const keys = (await service.call("GET", "/v1/api-keys", { key: service.admin })).body.api_keys as {
      id: string;
      name: string;
      scopes: string[];
    }[];
    const admin = keys.find(({ name }) => name === "admin");
    assert.equal(
      (await service.call("DELETE", `/v1/api-keys/${admin?.id}`, { key: manager.key })).body.code,
      "SCOPE_ESCALATION",
    );
    const last = await service.call("DELETE", `/v1/api-keys/${admin?.id}`, { key: service.admin });
    assert.deepEqual([last.status, last.body.code], [409, "LAST_ADMIN_KEY"]);
    assert.equal(
      (await service.call("POST", "/v1/api-keys", { key: service.admin, body: { name: "manager", preset: "agent" } }))
        .body.code,
      "KEY_NAME_TAKEN",
    );
    assert.ok(!JSON.stringify(keys).includes(service.admin));
  });
});

describe("addresses", () => {
  test("unknown paths, wrong methods, HEAD and OPTIONS get the right responses", async () => {
    for (const path of [
      "/v1",
      "/v1/action",
      "/v1/actions/",
      "//v1/actions",
      "/V1/actions",
      "/v1/actions/x/y/z",
      "/%2e%2e/etc/passwd",
    ]) {
      assert.equal((await service.call("GET", path)).body.code, "NOT_FOUND", path);
    }
    const wrong = await service.call("DELETE", "/v1/actions");
    assert.deepEqual(
      [wrong.status, wrong.body.code, wrong.headers.get("allow")],
      [405, "METHOD_NOT_ALLOWED", "GET, HEAD, OPTIONS, POST"],
    );
    const head = await service.call("HEAD", "/v1/actions");
    assert.deepEqual([head.status, head.body], [200, ""]);
    const options = await service.call("OPTIONS", "/v1/actions", { key: null });
    assert.deepEqual([options.status, options.headers.get("allow")], [204, "GET, HEAD, OPTIONS, POST"]);
    assert.equal((await service.call("GET", "/v1/actions/%zz")).body.code, "BAD_REQUEST");
    const id = await service.call("GET", "/v1/actions/nope");
    assert.deepEqual([id.status, id.body.code], [404, "ACTION_NOT_FOUND"]);
    assert.equal(
      (await service.call("GET", "/v1/actions", { headers: { "content-length": "2" } })).body.code,
      "BAD_REQUEST",
    );
  });

  test("request ids are the service's own, whatever id the client sends", async () => {
    for (const given of ["trace-1.2_3", "a b"]) {
      const { headers } = await service.call("GET", "/healthz", { key: null, headers: { "x-request-id": given } });
      assert.match(headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
    }
  });
});

test("3,000 hostile requests cause no 5xx and leave the ledger valid", async () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  let state = seed;
  const next = (n: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state % n;
  };
  const pick = <T>(list: readonly T[]): T => list[next(list.length)] as T;
  const paths = [
    "/v1/actions",
    "/v1/gate/decide",
    "/v1/actions/019346a0-0000-7000-8000-000000000000/approval",
    "/v1/actions/x/start",
    "/v1/replay",
    "/v1/api-keys",
    "/v1/provenance/consistency?first=1&second=2",
    "/v1/provenance/checkpoint",
    "/v1/actions?limit=5",
    "/readyz",
  ];
  const atoms = [
    "null",
    "true",
    "-0",
    "1e308",
    "1e999",
    "9007199254740993",
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\u202e😀"',
    "[]",
    "{}",
    '{"__proto__":1}',
    '"' + "a".repeat(300) + '"',
    "[[[[1]]]]",
    "nul",
    "'x'",
    '{"a":1,"a":2}',
  ];
  const keys = [
    "agent_id",
    "tool",
    "operation",
    "params",
    "context",
    "token",
    "approve",
    "permit",
    "hash",
    "action_id",
    "policy",
    "policy_set",
    "name",
    "preset",
    "scopes",
    "__proto__",
    "constructor",
    "x",
  ];
  for (let i = 0; i < 3000; i++) {
    const members = Array.from({ length: next(6) }, () => `${JSON.stringify(pick(keys))}:${pick(atoms)}`);
    const raw =
      next(10) === 0
        ? good.slice(0, next(good.length)) + pick(atoms) + good.slice(next(good.length))
        : `{${members.join(",")}}`;
    const method = pick(["GET", "POST", "POST", "POST", "DELETE", "PUT"]);
    const answer = await service.call(method, pick(paths), {
      key: pick([service.agent, service.admin]),
      ...(method === "GET" ? {} : { raw }),
      headers: next(8) === 0 ? { "idempotency-key": String(next(5)), prefer: pick(["wait=0", "wait=x", ";;"]) } : {},
    });
    assert.ok(
      answer.status < 500,
      `SEED=${seed}: ${method} gave ${answer.status} for ${raw}: ${JSON.stringify(answer.body)}`,
    );
  }
});

describe("over a socket", () => {
  let server: RunningServer;
  before(async () => {
    server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  });
  after(() => server.stop(500));

  /** Sends raw bytes, and returns the response once the connection is idle or closed. */
  function raw(text: string, quietMs = 300): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(server.port, "127.0.0.1", () => socket.write(text));
      let seen = "";
      let timer = setTimeout(() => socket.destroy(), 3000);
      socket.on("data", (chunk) => {
        seen += chunk.toString();
        clearTimeout(timer);
        timer = setTimeout(() => socket.destroy(), quietMs);
      });
      socket.on("error", reject);
      socket.on("close", () => {
        clearTimeout(timer);
        resolve(seen);
      });
    });
  }
  const head = (more: string): string =>
    `POST /v1/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.agent}\r\nContent-Type: application/json\r\n${more}\r\n`;

  test("a body above the limit gets a 413, streamed or not", async () => {
    assert.match(
      await raw(`${head("Content-Length: 5000\r\n")}${"x".repeat(100)}`),
      /^HTTP\/1\.1 413 [\s\S]*BODY_TOO_LARGE/,
    );
    const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
    assert.match(
      await raw(`${head("Transfer-Encoding: chunked\r\n")}${chunk.repeat(6)}`),
      /^HTTP\/1\.1 413 [\s\S]*BODY_TOO_LARGE/,
    );
  });

  test("a chunked body is accepted, and the connection continues after a refusal", async () => {
    const chunks = `${good.length.toString(16)}\r\n${good}\r\n0\r\n\r\n`;
    const seen = await raw(`${head("Content-Length: 1\r\n")}{${head("Transfer-Encoding: chunked\r\n")}${chunks}`);
    assert.deepEqual(
      [...seen.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1]),
      ["400", "200"],
    );
  });

  test("a client that disconnects in the middle of a body affects no other request", async () => {
    const before = service.logged.length;
    await new Promise<void>((resolve) => {
      const socket = connect(server.port, "127.0.0.1", () =>
        socket.write(`${head("Content-Length: 200\r\n")}{"agent`, () => socket.destroy()),
      );
      socket.on("close", () => resolve());
    });
    await pause(50);
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
    assert.ok(
      !service.logged.slice(before).some((line) => line.includes('"level":"error"')),
      "a broken connection is no fault of ours",
    );
  });

  test("a client that disconnects ends its wait", async () => {
    const id = (await service.call("POST", "/v1/actions", { body: ASKED })).body.id as string;
    const gone = new AbortController();
    const wait = fetch(`${server.url}/v1/actions/${id}?wait=30`, {
      headers: { authorization: `Bearer ${service.agent}` },
      signal: gone.signal,
    });
    await pause(100);
    gone.abort();
    await assert.rejects(wait);
    await until("the request that waited has ended", () =>
      service.logged.some((line) => line.includes('"route":"/v1/actions/:id"') && line.includes('"status":200')),
    );
  });

  test("a request with too many header lines gets a 431, however short they are", async () => {
    const request = (lines: number): string =>
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${"a:b\r\n".repeat(lines)}X-Last: 1\r\nConnection: close\r\n\r\n`;
    assert.match(await raw(request(60)), /^HTTP\/1\.1 200 /);
    // Deno itself returns 400.
    for (const lines of [300, 2100, 3900]) assert.match(await raw(request(lines)), /^HTTP\/1\.1 4(?:31|00) /);
  });

  test("headers cannot be injected through echoed values", async () => {
    const seen = await raw(`GET /v1/nope HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\n b\r\nConnection: close\r\n\r\n`);
    assert.ok(!/^ b/m.test(seen));
  });
});

test("an internal error is a 500 without internals, and its stack is in the log", async () => {
  const broken = await startService({
    plugins: [
      {
        plugin: {
          name: "broken",
          setup: () => ({
            routes: [
              {
                method: "GET",
                path: "/broken",
                tag: "x",
                summary: "x",
                scope: null,
                responses: {},
                errors: [],
                handle: () => {
                  throw new Error("postgres://user:hunter2@db");
                },
              },
            ],
          }),
        },
        options: {},
        origin: "test",
      },
    ],
  });
  try {
    const answer = await broken.call("GET", "/broken", { key: null });
    assert.deepEqual([answer.status, answer.body.code], [500, "INTERNAL"]);
    assert.ok(!JSON.stringify(answer.body).includes("hunter2") && !JSON.stringify(answer.body).includes(".ts"));
    assert.ok(
      broken.logged.some((line) => line.includes("hunter2") && line.includes(answer.body.request_id as string)),
    );
  } finally {
    await broken.close();
  }
});
