/**
 * Authorization requests of Envoy, nginx, Traefik and Caddy, in their formats.
 * @needs ext-authz, forward-auth
 */
import assert from "node:assert/strict";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import extAuthz from "../../../plugins/ext-authz/index.ts";
import forwardAuth from "../../../plugins/forward-auth/index.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { needs } from "../../support/features.ts";
import { approve, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `
policy: http
rules:
  - name: reads of documents
    tool: http
    operation: get
    effect: allow
    when: params.path.startsWith("/docs/") && size(params.query) == 0
  - name: small payments
    tool: http
    operation: post
    effect: allow
    when: params.path == "/pay" && params.body.amount <= 10
  - name: larger ones by a person
    tool: http
    operation: post
    effect: require_approval
    when: params.path == "/pay" && params.body.amount > 10
`;

describe("an authorization request of a gateway", () => {
  let service: Service;
  let listening: RunningServer;
  let envoy: (method: string, path: string, options?: Question) => Promise<Answer>;
  let forward: (method: string, uri: string, options?: Question) => Promise<Answer>;
  interface Question {
    body?: string;
    headers?: Record<string, string>;
  }
  before(async () => {
    service = await startService({
      policy: POLICY,
      plugins: [
        { plugin: extAuthz, options: { enabled: true }, origin: "ext-authz" },
        { plugin: forwardAuth, options: { enabled: true, passes_body: true }, origin: "forward-auth" },
      ],
    });
    const gateway = { "assent-key": service.agent, host: "api.example", authorization: "the-clients-own-credential" };
    listening = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
    envoy = (method, path, { body, headers } = {}) =>
      sent(listening.port, method, `/ext-authz${path}`, body, {
        ...gateway,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        "x-envoy-auth-partial-body": "false",
        ...headers,
      });
    forward = (method, uri, { body, headers } = {}) =>
      service.call(body === undefined ? "GET" : "POST", "/forward-auth", {
        key: "the-clients-own-credential",
        ...(body === undefined ? {} : { raw: body }),
        headers: {
          ...gateway,
          "x-forwarded-method": method,
          "x-forwarded-host": "api.example",
          "x-forwarded-uri": uri,
          ...headers,
        },
      });
  });
  after(async () => {
    await listening.stop(0);
    await service.close();
  });

  it("passes only requests that policy allows, after their start is recorded", needs("docs"), async () => {
    for (const ask of [envoy, forward]) {
      const allowed = await ask("GET", "/docs/a%20b");
      assert.equal(allowed.status, 200, JSON.stringify(allowed.body));
      const id = allowed.headers.get("assent-action-id");
      const { body: action } = await service.call("GET", `/v1/actions/${id}`);
      assert.deepEqual(
        [action.status, action.operation, action.params],
        ["executing", "get", { host: "api.example", path: "/docs/a b", query: {} }],
      );
      assert.equal((await ask("GET", "/docs/a?x=1")).status, 403);
      assert.equal((await ask("DELETE", "/docs/a", { body: "{}" })).status, 403);
      assert.equal((await ask("POST", "/pay", { body: '{"amount":10}' })).status, 200);
    }
  });

  it("requires approval, and passes the same request once after it", async () => {
    for (const ask of [envoy, forward]) {
      const pay = (): Promise<Answer> => ask("POST", "/pay", { body: '{"amount":11}' });
      const waits = await pay();
      assert.deepEqual(
        [waits.status, waits.body.code, waits.headers.get("retry-after")],
        [403, "APPROVAL_REQUIRED", "5"],
      );
      assert.equal((await pay()).body.action_id, waits.body.action_id);
      await approve(service, waits.body.action_id);
      assert.equal(
        (await ask("POST", "/pay", { body: '{"amount":12}' })).status,
        403,
        "another amount is another wish",
      );
      const passed = await pay();
      assert.equal(passed.status, 200, JSON.stringify(passed.body));
      assert.equal((await pay()).status, 403, "an approval is good for one");
    }
  });

  it("is refused if two servers could parse the request differently", needs("docs"), async () => {
    for (const path of [
      "/docs//a",
      "/docs/%2e%2e/pay",
      "/docs/a%2fb",
      "/docs/a%252e",
      "/docs/a;b",
      "/docs/%00",
      "/docs/%0a",
      "/docs/%ff",
      "/docs/a\\b",
    ])
      assert.equal((await forward("GET", path)).body.code, "REQUEST_UNREADABLE", path);
    for (const uri of ["/docs/a#b", "/docs/a?#b", "/docs/\u00e9", "/docs/a b", "/docs/a, /docs/b", "/docs/a?b=1;c=2"])
      assert.equal((await forward("GET", uri)).body.code, "REQUEST_UNREADABLE", uri);
    for (const host of ["api.example.", "api..example", "api.example, other", "api.example:", "a/ext-authz/docs"])
      for (const ask of [envoy, forward])
        assert.equal(
          (await ask("GET", "/docs/a", { headers: { host, "x-forwarded-host": host } })).body.code,
          "REQUEST_UNREADABLE",
          host,
        );
    assert.equal((await forward("GET", "docs/a")).status, 403);
    for (const body of ['{"amount":1,"amount":1000}', '{"amount":9007199254740993}', '{"amount":'])
      for (const ask of [envoy, forward])
        assert.equal((await ask("POST", "/pay", { body })).body.code, "REQUEST_UNREADABLE", body);
    for (const ask of [envoy, forward])
      assert.equal(
        (
          await ask("POST", "/pay", {
            body: '{"amount":1}',
            headers: { "content-type": "application/json; charset=utf-7" },
          })
        ).body.code,
        "REQUEST_UNREADABLE",
      );
  });

  it("is refused if a header changes the request's meaning, or the connection stays open", needs("docs"), async () => {
    for (const [name, value] of [
      ["x-http-method-override", "DELETE"],
      ["x-method-override", "DELETE"],
      ["x-http-method", "DELETE"],
      ["x-original-url", "/pay"],
      ["x-rewrite-url", "/pay"],
      ["x-original-uri", "/pay"],
      ["x-original-method", "DELETE"],
      ["x-override-url", "/pay"],
      ["x-forwarded-path", "/pay"],
      ["x-http-path-override", "/pay"],
      ["x-forwarded-prefix", "/pay"],
      ["x-http-destinationurl", "/pay"],
      ["x-waws-unencoded-url", "/pay"],
      ["x-middleware-rewrite", "/pay"],
      ["script_name", "/pay"],
      ["path-info", "/pay"],
      ["request-uri", "/pay"],
      ["upgrade", "websocket"],
      ["x-forwarded-upgrade", "h2c"],
      ["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="],
      ["http2-settings", "AAMAAABkAAQAAP__"],
      // WSGI and CGI map both to the same name.
      ["x_http_method_override", "DELETE"],
      ["X_Original-Url", "/pay"],
      ["sec_websocket_key", "dGhlIHNhbXBsZSBub25jZQ=="],
    ] as const)
      for (const ask of [envoy, forward])
        assert.equal(
          (await ask("GET", "/docs/a", { headers: { [name]: value } })).body.code,
          "REQUEST_UNREADABLE",
          name,
        );
    for (const method of ["CONNECT", "get", "Get", "GET, DELETE"])
      assert.equal((await forward(method, "/docs/a")).body.code, "REQUEST_UNREADABLE", method);
  });

  it("is refused if the body would be parsed differently from how it was decided", async () => {
    const body = '{"amount":1}';
    for (const headers of [
      { "content-encoding": "gzip" },
      { "content-encoding": "deflate", "content-type": "text/plain" },
      { "content-type": "text/plain, application/json" },
      { "content-type": "application/json, text/plain" },
    ])
      for (const ask of [envoy, forward])
        assert.equal(
          (await ask("POST", "/pay", { body, headers })).body.code,
          "REQUEST_UNREADABLE",
          JSON.stringify(headers),
        );
    for (const ask of [envoy, forward])
      assert.equal((await ask("POST", "/pay", { body, headers: { "content-encoding": "identity" } })).status, 200);
  });

  it("reads the path after the host, whatever the host is called", needs("docs"), async () => {
    for (const host of ["ext-authz", "ext-authz.example"]) {
      const { status } = await envoy("GET", "/docs/named", { headers: { host } });
      const { body } = await service.call("GET", "/v1/actions?tool=http&limit=1");
      assert.deepEqual([status, body.actions[0].params], [200, { host, path: "/docs/named", query: {} }]);
    }
  });

  it("decides on the path as sent, not on its normalised form", needs("docs"), async () => {
    for (const path of [
      "/admin/../docs/a",
      "/admin\\..\\docs/a",
      "/./docs/a",
      "/docs/a/.",
      "/%2e%2e/ext-authz/docs/a",
      "/docs/.%2E/docs/a",
      "/../ext-authz/docs/a",
      "/docs/a\\b",
      "/docs//a",
      "/docs/a%2fb",
      // Fullwidth full stops.
      "/docs/%EF%BC%8E%EF%BC%8E/pay",
    ]) {
      const answer = await envoy("GET", path);
      assert.deepEqual([answer.status, answer.body.code], [403, "REQUEST_UNREADABLE"], path);
    }
    assert.equal((await envoy("GET", "/docs/a'b!")).status, 200);
  });

  it("is refused if the server only knows a rewritten path", async () => {
    const { status, body } = await service.call("GET", "/ext-authz/docs/a", {
      key: null,
      headers: { "assent-key": service.agent, host: "api.example", "x-envoy-auth-partial-body": "false" },
    });
    assert.deepEqual([status, body.code], [403, "REQUEST_UNREADABLE"]);
    assert.match(body.detail as string, /does not report the path/);
  });

  it("is refused if the request has more header lines than the service reads", needs("docs"), async () => {
    const lines = Object.fromEntries(Array.from({ length: 2100 }, (_, i) => [`a${i}`, ""]));
    const headers = { ...lines, "x-http-method-override": "DELETE" };
    assert.equal((await envoy("GET", "/docs/a", { headers })).status, 431);
  });

  it("passes each of several concurrent allowed requests as its own action", needs("docs"), async () => {
    for (const ask of [envoy, forward]) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask("GET", "/docs/same")));
      assert.deepEqual(
        answers.map(({ status }) => status),
        Array<number>(8).fill(200),
      );
      assert.equal(new Set(answers.map(({ headers }) => headers.get("assent-action-id"))).size, 8);
      const pay = (): Promise<Answer> => ask("POST", "/pay", { body: '{"amount":99}' });
      await approve(service, (await pay()).body.action_id);
      const paid = await Promise.all(Array.from({ length: 8 }, pay));
      assert.equal(paid.filter(({ status }) => status === 200).length, 1, "an approval is good for one of them");
    }
  });

  it("passes nothing after a stop, not even requests approved before it", needs("docs", "stop"), async () => {
    for (const [ask, amount] of [
      [envoy, 77],
      [forward, 78],
    ] as const) {
      const pay = (): Promise<Answer> => ask("POST", "/pay", { body: JSON.stringify({ amount }) });
      await approve(service, (await pay()).body.action_id);
      const stop = await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "incident" } });
      assert.equal(stop.status, 201, JSON.stringify(stop.body));
      try {
        assert.equal((await pay()).body.code, "STOPPED");
        assert.equal((await ask("GET", "/docs/a")).body.code, "STOPPED");
      } finally {
        await service.call("POST", `/v1/stop/${stop.body.id}/lift`, { key: service.admin, body: { reason: "over" } });
      }
    }
  });

  it("starts nothing for a gateway that disconnected, so that the request can be repeated", needs("docs"), async () => {
    const headers = {
      "assent-key": service.agent,
      "x-forwarded-method": "GET",
      "x-forwarded-host": "api.example",
      "x-forwarded-uri": "/docs/left",
    };
    const gone = new Request("http://assent.test/forward-auth", { headers, signal: AbortSignal.abort() });
    assert.equal((await service.runtime.fetch(gone)).status, 503);
    const { body } = await service.call("GET", "/v1/actions?tool=http&limit=1");
    assert.deepEqual([body.actions[0].params.path, body.actions[0].status], ["/docs/left", "allowed"]);
    assert.equal((await forward("GET", "/docs/left")).headers.get("assent-action-id"), body.actions[0].id);
  });

  it("is refused if the body is incomplete", needs("docs"), async () => {
    const partial = { headers: { "x-envoy-auth-partial-body": "true" } };
    assert.equal((await envoy("POST", "/pay", { body: '{"amount":1}', ...partial })).body.code, "REQUEST_UNREADABLE");
    assert.equal((await envoy("GET", "/docs/a", partial)).status, 403);
    const unbuffered = { "x-envoy-auth-partial-body": "" };
    assert.equal((await envoy("POST", "/pay", { headers: unbuffered })).status, 403);
    const longer = { headers: { "x-forwarded-content-length": "40" } };
    assert.equal((await forward("POST", "/pay", { body: '{"amount":1}', ...longer })).body.code, "REQUEST_UNREADABLE");
    assert.equal((await forward("GET", "/docs/a", longer)).status, 403);
  });

  it("is refused if the gateway sends too little, and fails for an invalid key", needs("docs"), async () => {
    for (const name of ["x-forwarded-method", "x-forwarded-host", "x-forwarded-uri"])
      assert.equal((await forward("GET", "/docs/a", { headers: { [name]: "" } })).status, 403, name);
    for (const ask of [envoy, forward])
      assert.equal((await ask("GET", "/docs/a", { headers: { "assent-key": "wrong" } })).status, 503);
  });

  it("is refused if dot segments leave the prefix", async () => {
    for (const path of ["/../healthz", "/../readyz", "/../openapi.json", "/%2e%2e/healthz"])
      assert.notEqual((await envoy("GET", path)).status, 200, path);
  });
});

/** Sends one request over a socket with its path unchanged: `fetch` would normalise it. */
function sent(
  port: number,
  method: string,
  path: string,
  body: string | undefined,
  headers: Record<string, string>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    request({ port, method, path, headers: { ...length, ...headers }, agent: false }, (response) => {
      text(response).then((content) => {
        const isJson = response.headers["content-type"]?.includes("json") === true && content !== "";
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers(response.headers as Record<string, string>),
          body: isJson ? JSON.parse(content) : content,
        });
      }, reject);
    })
      .on("error", reject)
      .end(body);
  });
}

describe("a permit presented to a gateway", () => {
  let service: Service;
  const open = async (options: object): Promise<void> => {
    service = await startService({
      policy: POLICY,
      plugins: [
        { plugin: forwardAuth, options: { enabled: true, mode: "permit", ...options }, origin: "forward-auth" },
      ],
    });
  };
  const permitFor = async (params: object, operation = "get"): Promise<string> => {
    const { body } = await service.call("POST", "/v1/actions", {
      body: { agent_id: "support-bot", tool: "http", operation, params },
      headers: { prefer: "permit" },
    });
    return body.permit;
  };
  const show = (permit: string, uri: string, method = "GET", headers: Record<string, string> = {}): Promise<Answer> =>
    service.call("GET", "/forward-auth", {
      key: null,
      headers: {
        "assent-key": service.agent,
        "assent-permit": permit,
        "x-forwarded-method": method,
        "x-forwarded-host": "api.example",
        "x-forwarded-uri": uri,
        ...headers,
      },
    });
  const DOCS = { host: "api.example", path: "/docs/a", query: {} };

  it("passes the request that it names, once", needs("docs"), async () => {
    await open({});
    try {
      const permit = await permitFor(DOCS);
      for (const [uri, method] of [
        ["/docs/b", "GET"],
        ["/docs/a?x=1", "GET"],
        ["/docs/a", "HEAD"],
      ] as const)
        assert.equal((await show(permit, uri, method)).body.code, "PERMIT_INVALID");
      const forged = permit.replace(/\.[^.]+$/, `.${"A".repeat(86)}`);
      assert.equal((await show(forged, "/docs/a")).body.code, "PERMIT_INVALID");
      for (const none of ["", "x", "a.b.c", `${permit}x`]) assert.equal((await show(none, "/docs/a")).status, 403);
      assert.equal((await show(permit, "/docs/a")).status, 200);
      assert.equal((await show(permit, "/docs/a")).status, 403);
    } finally {
      await service.close();
    }
  });

  it("is valid only for the gateway's own tool, even if the tool compares the request", needs("docs"), async () => {
    await open({ covers: "tool", tool: "other" });
    try {
      assert.equal((await show(await permitFor(DOCS), "/docs/a")).body.code, "PERMIT_INVALID");
    } finally {
      await service.close();
    }
  });

  it("opens no connection for another protocol, even if only the tool is compared", needs("docs"), async () => {
    await open({ covers: "tool" });
    try {
      const permit = await permitFor(DOCS);
      for (const headers of [{ upgrade: "websocket" }, { "x-forwarded-method": "CONNECT" }, { x_original_url: "/pay" }])
        assert.equal((await show(permit, "/docs/b", "GET", headers)).body.code, "REQUEST_UNREADABLE");
      assert.equal((await show(permit, "/docs/b")).status, 200, "what runs is compared behind it");
    } finally {
      await service.close();
    }
  });
});
