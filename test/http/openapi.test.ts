/**
 * Compares the OpenAPI document with the running service: every operation, with success and with each error that can be
 * provoked.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { NotifierError } from "../../src/contract/notifier.ts";
import { makeToken } from "../../src/domain/tokens.ts";
import { createResponseValidator, type Document, type ResponseValidator, type Operation } from "../support/openapi.ts";
import { hasFeature, loadFeatures, needs } from "../support/features.ts";
import { testNotifier } from "../support/notifier.ts";
import { ALLOWED, ASKED, hasAllFeatures, startService, type Service, person } from "../support/service.ts";
import { until } from "../support/wait.ts";

let service: Service;
let document: Document;
let judge: ResponseValidator;
/** Two keys with one scope each: each can do what the other cannot. */
let narrow: string;
let otherwise: string;
before(async () => {
  // This test sends many invalid keys.
  const pigeon = testNotifier();
  pigeon.plans.push(
    ...Array.from(
      { length: 50 },
      () => () => Promise.reject(new NotifierError("no such address", { permanent: true })),
    ),
  );
  service = await startService({
    plugins: [pigeon.plugin],
    change(config) {
      config.rate_limits.bad_keys_per_minute = 0;
      config.server.max_json_values = 1000;
      config.channels = { finance: { notifier: "pigeon", people: [{ owner: person("anna"), to: "anna" }] } };
    },
  });
  document = JSON.parse(JSON.stringify(service.runtime.host.openapi({ description: "", tags: {} })));
  judge = createResponseValidator(document);
  narrow = (
    await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "narrow", scopes: ["metrics:read"] },
    })
  ).body.key as string;
  otherwise = (
    await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "otherwise", scopes: ["replay:run"] },
    })
  ).body.key as string;
});
after(() => service.close());

const seen = new Map<string, Set<string>>();

interface Sent {
  status: number;
  body: any; // eslint-disable-line @typescript-eslint/no-explicit-any
}

const operationOf = (method: string, path: string): Operation => {
  const found = judge.operations.find((operation) => operation.method === method && operation.path === path);
  assert.ok(found !== undefined, `${method} ${path} is not in the document`);
  return found;
};

/** Sends a request to an operation and validates the response against the document. Status 0: its feature is deleted. */
async function send(
  method: string,
  path: string,
  options: {
    at?: Record<string, string>;
    query?: string;
    key?: string | null;
    body?: unknown;
    raw?: string;
    headers?: Record<string, string>;
  } = {},
): Promise<Sent> {
  if (!hasAllFeatures && !judge.operations.some((each) => each.method === method && each.path === path))
    return { status: 0, body: {} };
  const operation = operationOf(method, path);
  const address = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => options.at?.[name] ?? "missing");
  const { key = service.admin, body, raw, headers = {} } = options;
  const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await service.runtime.fetch(
    new Request(`http://assent.test${address}${options.query ?? ""}`, {
      method,
      headers: {
        accept: "application/json",
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(text === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(text === undefined ? {} : { body: text }),
    }),
  );
  const content = await textOf(response);
  assert.deepEqual(
    judge.faults(operation, { status: response.status, headers: response.headers, text: content }),
    [],
    content.slice(0, 500),
  );
  const json = /[/+]json\b/.test(response.headers.get("content-type") ?? "") && content !== "";
  const value = json ? JSON.parse(content) : content;
  const outcomes = seen.get(operation.operationId) ?? new Set<string>();
  outcomes.add(response.status < 400 ? "success" : (value.code as string));
  seen.set(operation.operationId, outcomes);
  return { status: response.status, body: value };
}

/** Returns the body; for a stream, which does not end, its beginning. */
async function textOf(response: Response): Promise<string> {
  if (response.headers.get("content-type") !== "text/event-stream") return response.text();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

const NOWHERE = "019346a0-0000-7000-8000-000000000000";

/** Every key can read its own identity. */
const OF_EVERY_KEY = [
  "GET /v1/devices",
  "POST /v1/devices/confirm",
  "DELETE /v1/devices/{id}",
  "GET /v1/me",
  "GET /v1/api-keys",
  "GET /v1/api-keys/{id}",
];

describe("the document", () => {
  it("every body and every response has an example that its own schema accepts", () => {
    for (const { operationId, spec } of judge.operations) {
      const contents = [
        ["body", spec.requestBody?.content],
        ...Object.entries(spec.responses as Record<string, { content?: object }>).map(([status, response]) => [
          status,
          response.content,
        ]),
      ] as [string, Record<string, { schema: object; example?: unknown; examples?: object }> | undefined][];
      for (const [name, content] of contents) {
        const media = content?.["application/json"];
        if (media === undefined) continue;
        assert.ok(media.example !== undefined, `${operationId} ${name} has no example`);
        assert.deepEqual(
          judge.valueFaults(media.schema, media.example),
          [],
          `${operationId} ${name}: ${JSON.stringify(media.example).slice(0, 300)}`,
        );
      }
    }
    for (const [code, { value }] of Object.entries(
      document.components.examples as Record<string, { value: unknown }>,
    )) {
      assert.deepEqual(judge.valueFaults(document.components.schemas.Problem as object, value), [], code);
    }
  });

  it("every other example is accepted by its schema, and every named example by the schema of its body", async (t) => {
    const plugins = (await loadFeatures(["users"])).map((plugin) => ({
      plugin,
      options: {},
      origin: plugin.name,
      core: true,
    }));
    const withUsers = await startService({ plugins });
    t.after(() => withUsers.close());
    const full = JSON.parse(JSON.stringify(withUsers.runtime.host.openapi({ description: "", tags: {} }))) as Document;
    const judge = createResponseValidator(full);
    const wrong: string[] = [];
    let checked = 0;
    const check = (where: string, schema: object, values: readonly unknown[]): void => {
      for (const value of values) {
        checked++;
        const faults = judge.valueFaults(schema, value);
        if (faults.length > 0)
          wrong.push(`${where}: ${JSON.stringify(value).slice(0, 200)}: ${JSON.stringify(faults)}`);
      }
    };
    const visit = (where: string, node: unknown): void => {
      if (typeof node !== "object" || node === null) return;
      const { schema, example, examples, ...members } = node as Record<string, unknown>;
      if (typeof schema === "object" && schema !== null) {
        // A media type or a parameter.
        const named = Object.values((examples ?? {}) as Record<string, { value?: unknown; $ref?: string }>);
        const values = named.flatMap((each) => ("value" in each ? [each.value] : []));
        check(where, schema, example === undefined ? values : [example, ...values]);
        visit(`${where}/schema`, schema);
      } else if (Array.isArray(examples)) check(where, node, examples);
      else if (example !== undefined && "type" in node) check(where, node, [example]);
      for (const [name, member] of Object.entries(members))
        if (!["const", "default", "enum"].includes(name)) visit(`${where}/${name}`, member);
    };
    visit("", full);
    assert.deepEqual(wrong, []);
    assert.ok(checked > 150, `${checked} examples`);
  });

  it("every route is listed, and each operation has a unique name", () => {
    const served = service.runtime.routes.map(
      ({ method, path }) => `${method} ${path.replaceAll(/:([a-z_]+)\+?/g, "{$1}")}`,
    );
    assert.deepEqual(judge.operations.map(({ method, path }) => `${method} ${path}`).sort(), served.sort());
    assert.equal(new Set(judge.operations.map(({ operationId }) => operationId)).size, judge.operations.length);
  });
});

describe("every operation", () => {
  it("success responses match the document", async () => {
    const allowed = (
      await send("POST", "/v1/actions", { key: service.agent, body: ALLOWED, headers: { "idempotency-key": "walk" } })
    ).body;
    await send("POST", "/v1/actions", { key: service.agent, body: ALLOWED, headers: { "idempotency-key": "walk" } });
    assert.equal(
      (
        await send("POST", "/v1/actions", {
          key: service.agent,
          body: { ...ALLOWED, operation: "x" },
          headers: { "idempotency-key": "walk" },
        })
      ).body.code,
      "IDEMPOTENCY_CONFLICT",
    );
    const joined = await send("POST", "/v1/actions", { key: service.agent, query: "?join=open", body: ALLOWED });
    assert.equal(joined.body.id, allowed.id, "with a header that is documented");
    const at = { id: allowed.id as string };
    await send("GET", "/v1/actions", { query: "?limit=1" });
    await send("GET", "/v1/approvals", { query: "?limit=1" });
    await send("GET", "/v1/actions/{id}", { at });
    await send("GET", "/v1/actions/{id}/events", { at });
    const { permit } = (await send("POST", "/v1/actions/{id}/permit", { at, key: service.agent, body: {} })).body;
    await send("POST", "/v1/actions/{id}/start", { at, key: service.agent, body: { permit } });
    await send("POST", "/v1/actions/{id}/inspect", { at, key: service.agent, body: { output: "sent" } });
    await send("POST", "/v1/actions/{id}/result", {
      at,
      key: service.agent,
      body: { success: true, error: null, meta: { a: 1 } },
    });
    await send("POST", "/v1/gate/decide", { body: ALLOWED });
    await send("POST", "/v1/agent-sessions", { body: { name: "one" } });
    const asked = (await send("POST", "/v1/actions", { key: service.agent, body: ASKED })).body;
    const seenByAdmin = (await send("GET", "/v1/actions/{id}", { at: { id: asked.id } })).body;
    await send("POST", "/v1/actions/{id}/approval", {
      at: { id: asked.id },
      body: { token: seenByAdmin.approval_token, approve: true, reason: "fine" },
    });
    await send("POST", "/v1/actions/{id}/withdraw", { at: { id: asked.id }, body: { reason: "walk" } });
    const withdrawn = (await send("POST", "/v1/actions", { key: service.agent, body: ASKED })).body;
    await send("POST", "/v1/actions/{id}/questions", { at: { id: withdrawn.id }, body: { question: "why?" } });
    await send("POST", "/v1/actions/{id}/answers", {
      at: { id: withdrawn.id },
      key: service.agent,
      body: { answer: "because" },
    });
    await send("POST", "/v1/actions/{id}/cancel", { at: { id: withdrawn.id }, key: service.agent });
    const refused = (await send("POST", "/v1/actions", { key: service.agent, body: ASKED })).body;
    const { approval_token: token } = (await send("GET", "/v1/actions/{id}", { at: { id: refused.id } })).body;
    await send("POST", "/v1/actions/{id}/approval", { at: { id: refused.id }, body: { token, approve: false } });
    await send("POST", "/v1/actions", { key: service.agent, body: ASKED });
    await send("POST", "/v1/actions/{id}/lift-rejection", { at: { id: refused.id }, body: { reason: "walk" } });
    const over = (await send("POST", "/v1/actions", { key: service.agent, body: { ...ALLOWED, tool: "unknown" } }))
      .body;
    await send("POST", "/v1/actions/{id}/erase", { at: { id: over.id }, body: { reason: "walk" } });
    await send("POST", "/v1/actions/{id}/erase", { at: { id: asked.id }, body: { reason: "walk" } });
    await send("POST", "/v1/replay", { body: { action_id: over.id } });
    await send("POST", "/v1/erasures", { body: { value: "nobody" } });
    await send("GET", "/v1/actions/{id}", { at: { id: over.id } });

    const link = {
      action_id: withdrawn.id as string,
      request_hash: withdrawn.request_hash as string,
      approver: person("anna"),
      expires_at: Date.parse(withdrawn.expires_at as string),
    };
    await send("POST", "/v1/approval-link", {
      key: null,
      body: { token: makeToken("link", link, (message) => service.runtime.host.vault.mac("approval-link", message)) },
    });
    const waits = (await send("POST", "/v1/actions", { key: service.agent, body: ASKED })).body;
    const { deliveries } = (await send("GET", "/v1/deliveries", { query: `?action_id=${waits.id as string}` })).body;
    for (const { id } of (deliveries ?? []).slice(0, 1) as { id: string }[]) {
      await send("GET", "/v1/deliveries/{id}", { at: { id } });
      await until("the delivery is given up", async () => (await service.storage.delivery(id))?.state === "dead");
      await send("POST", "/v1/deliveries/{id}/retry", { at: { id } });
    }
    const none = { total: 0, matched: 0, unknown: 0 };
    await send("POST", "/v1/coverage", {
      body: {
        source: "trail",
        format: "aws-cloudtrail",
        from: "2026-01-31T00:00:00.000Z",
        to: "2026-02-01T00:00:00.000Z",
        tolerance_seconds: 300,
        operations: [{ tool: "s3", operation: "put_object" }],
        actors: null,
        files: [{ name: "trail.json", sha256: "ab".repeat(32), bytes: 10, records: 1 }],
        cannot_see: ["Data events."],
        effects: { ...none, unmatched: 0 },
        actions: { ...none, missing: 0 },
        skipped: { duplicates: 0, outside: 0, unmapped: 0, no_effect: 0, other_actors: 0 },
        unmatched: [],
        missing: [],
      },
    });
    await send("GET", "/v1/coverage");
    await send("GET", "/v1/coverage/executions", { query: "?since=2026-01-31T00:00:00Z&until=2026-02-01T00:00:00Z" });
    const open = {
      ...link,
      action_id: waits.id as string,
      request_hash: waits.request_hash as string,
      expires_at: Date.parse(waits.expires_at as string),
    };
    const linkToken = makeToken("link", open, (message) => service.runtime.host.vault.mac("approval-link", message));
    const { shown } = (await send("POST", "/v1/approval-link", { key: null, body: { token: linkToken } })).body;
    const vote = { token: linkToken, shown, approve: true };
    await send("POST", "/v1/approval-link/verdict", { key: null, body: vote });

    for (const path of [
      "/v1/provenance/{hash}",
      "/v1/provenance/{hash}/proof",
      "/v1/provenance/{hash}/proof.tlog-proof",
    ])
      await send("GET", path, { at: { hash: allowed.decision_hash } });
    await send("GET", "/v1/provenance/checkpoint");
    await send("GET", "/v1/provenance/keys");
    await send("GET", "/v1/provenance/consistency", { query: "?first=1&second=3" });
    await send("GET", "/checkpoint");
    await send("GET", "/tile/{level}/{tile}", { at: { level: "0", tile: "000.p/2" } });
    await send("GET", "/tile/entries/{tile}", { at: { tile: "000.p/2" } });
    await send("POST", "/v1/replay", { body: { action_id: allowed.id, policy_set: "current" } });
    await send("POST", "/v1/replay", { body: { policy_set: "current", limit: 100 } });
    await send("POST", "/v1/replay/progress", { body: { policy_set: "current", limit: 100 } });

    const key = (
      await send("POST", "/v1/api-keys", {
        body: { name: "walked", preset: "agent" },
        headers: { "idempotency-key": "k" },
      })
    ).body;
    await send("POST", "/v1/api-keys", {
      body: { name: "walked", preset: "agent" },
      headers: { "idempotency-key": "k" },
    });
    await send("GET", "/v1/api-keys");
    await send("GET", "/v1/api-keys/names", { query: `?ids=${key.id as string}` });
    await send("GET", "/v1/me");
    await send("GET", "/v1/api-keys/{id}", { at: { id: key.id as string } });
    await send("DELETE", "/v1/api-keys/{id}", { at: { id: key.id } });

    await send("POST", "/v1/agents", { body: { id: "walker", allowed_tools: ["x"] } });
    await send("GET", "/v1/agents");
    const agent = { id: "walker" };
    await send("GET", "/v1/agents/{id}", { at: agent });
    await send("PATCH", "/v1/agents/{id}", { at: agent, body: { name: "Walker" } });
    await send("POST", "/v1/agents/{id}/suspend", { at: agent });
    const wish = { agent_id: "walker", tool: "stripe", operation: "refund", reason: "walk" };
    await send("GET", "/v1/authority", { query: "?agent_id=walker" });
    const proposed = { id: (await send("POST", "/v1/authority/proposals", { body: wish })).body.id };
    await send("POST", "/v1/authority/proposals", { body: wish });
    await send("GET", "/v1/authority/proposals");
    await send("POST", "/v1/authority/proposals/{id}/dismiss", { at: proposed, body: { reason: "walk" } });
    const halt = { id: (await send("POST", "/v1/stop", { body: { reason: "drill", agent: "nobody" } })).body.id };
    await send("GET", "/v1/stop");
    await send("GET", "/v1/stop/{id}", { at: halt });
    await send("POST", "/v1/stop/{id}/lift", { at: halt, body: { reason: "over" } });
    const hold = {
      id: (await send("POST", "/v1/holds", { body: { reason: "walk", agent: ALLOWED.agent_id } })).body.id,
    };
    await send("GET", "/v1/holds");
    await send("GET", "/v1/holds/{id}", { at: hold });
    await send("POST", "/v1/holds/{id}/release", { at: hold, body: { reason: "over" } });
    await send("POST", "/v1/agents/{id}/resume", { at: agent });

    const definition = { policy: "walked", rules: [{ name: "r", tool: "walk", effect: "allow" }] };
    const policy = { id: (await send("POST", "/v1/policies", { body: definition })).body.id as string };
    await send("GET", "/v1/policies");
    await send("GET", "/v1/policies/{id}", { at: policy });
    await send("PUT", "/v1/policies/{id}", { at: policy, body: { ...definition, mode: "shadow" } });
    await send("POST", "/v1/policies/{id}/activate", { at: policy, body: { version: 1 } });
    await send("GET", "/v1/policies/{id}/versions", { at: policy });
    await send("GET", "/v1/policies/{id}/diff", { at: policy });
    await send("GET", "/v1/policies/{id}/shadow", { at: policy });
    await send("GET", "/metrics", {});
    await send("POST", "/v1/policies/{id}/deactivate", { at: policy });
    await send("DELETE", "/v1/policies/{id}", { at: policy });
    await send("POST", "/v1/policies/import-yaml", {
      body: { yaml: JSON.stringify({ ...definition, policy: "imported" }) },
    });
    await send("POST", "/v1/policies/dry-run", {
      body: { policy: definition, actions: [{ agent_id: "a", tool: "walk", operation: "x" }] },
    });
    await send("POST", "/v1/policies/check", { body: { yaml: JSON.stringify(definition) } });
    await send("GET", "/v1/policy-vocabulary");

    const rule = {
      name: "r",
      tool: "granted",
      effect: "require_approval",
      approval: { grants: { for: "1h", count: 2 }, editable: ["params.amount"] },
    };
    const granting = (
      await send("POST", "/v1/policies", {
        body: {
          policy: "granting",
          rules: [rule],
          limits: [{ name: "uses", tool: "granted", count: 999, window: "1h" }],
        },
      })
    ).body;
    await send("POST", "/v1/policies/{id}/activate", { at: { id: granting.id as string }, body: { version: 1 } });
    const proposal = { agent_id: "grantee", tool: "granted", operation: "edit", params: { amount: 5 } };
    const toEdit = (await send("POST", "/v1/actions", { key: service.agent, body: proposal })).body.id as string;
    const seen = (await send("GET", "/v1/actions/{id}", { at: { id: toEdit } })).body;
    await send("POST", "/v1/actions/{id}/edit", {
      at: { id: toEdit },
      body: { token: seen.approval_token, changes: { "params.amount": 4 } },
    });
    const listed = { actions: [proposal, proposal], ordered: true };
    const plan = (await send("POST", "/v1/plans", { key: service.agent, body: listed })).body.id as string;
    const { approval_token: planToken } = (await send("GET", "/v1/plans/{id}", { at: { id: plan } })).body;
    await send("POST", "/v1/plans/{id}/approval", { at: { id: plan }, body: { token: planToken, approve: true } });
    await send("GET", "/v1/plans", { query: "?limit=1" });
    await send("POST", "/v1/plans/{id}/cancel", { at: { id: plan }, body: { reason: "walk" } });
    const terms = { agent_id: "grantee", tool: "granted", operation: "x", for: "1h", count: 1 };
    const grant = { id: (await send("POST", "/v1/grants", { body: terms })).body.id as string };
    const doubtful = { id: (await send("POST", "/v1/grants", { body: terms })).body.id as string };
    await send("POST", "/v1/grants/{id}/revoke", { at: grant, body: { reason: "walk" } });
    await send("GET", "/v1/rotas");
    await send("GET", "/v1/groups");
    await send("GET", "/v1/groups/required");
    await send("GET", "/v1/approvals/groups");
    await send("POST", "/v1/evidence", { body: { from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z" } });
    await send("GET", "/v1/break-glass");
    await send("GET", "/v1/grants", { query: "?active=true" });
    await send("GET", "/v1/grants/{id}", { at: grant });
    const request = { agent_id: "grantee", tool: "granted", operation: "x" };
    const use = (await send("POST", "/v1/actions", { key: service.agent, body: request })).body;
    const pending = (await send("POST", "/v1/actions", { key: service.agent, body: request })).body;
    await send("GET", "/v1/actions/{id}/grant-suggestions", { at: { id: pending.id as string } });
    if (hasFeature("grants")) assert.equal(use.grant, doubtful.id);
    const handed = { id: pending.id as string };
    await send("POST", "/v1/actions/{id}/claim", { at: handed, body: {} });
    await send("GET", "/v1/limits");
    await send("GET", "/v1/limits/uses", { query: "?policy=granting&limit=uses" });
    await send("GET", "/v1/claims", { query: "?limit=1" });
    await send("GET", "/v1/devices", { query: "?limit=1" });
    await send("GET", "/v1/actions/{id}/approvers", { at: handed, query: "?name=a" });
    await send("POST", "/v1/actions/{id}/release-claim", { at: handed, body: {} });
    await send("POST", "/v1/grants/{id}/flag", { at: doubtful, body: { action_id: use.id, reason: "walk" } });
    const { agent_id, tool, operation } = terms;
    const work = { agent_id, title: "walk", for: "1h", operations: [{ tool, operation, count: 1 }] };
    const task = { id: (await send("POST", "/v1/tasks", { body: work })).body.id as string };
    await send("GET", "/v1/tasks", { query: "?active=true" });
    await send("POST", "/v1/tasks/{id}/end", { at: task, body: { reason: "walk" } });
    const giver = (await send("POST", "/v1/api-keys", { body: { name: "giver", preset: "agent", agent_id: "giver" } }))
      .body;
    const part = { agent_id: "hand", for: "1h", tools: [tool] };
    const given = (await send("POST", "/v1/authorities", { key: giver.key as string, body: part })).body;
    const authority = { id: given.id as string };
    await send("GET", "/v1/authorities", { query: "?active=true" });
    await send("GET", "/v1/authorities/{id}", { at: authority });
    await send("DELETE", "/v1/authorities/{id}", { at: authority });

    await send("GET", "/v1/events/page", { query: "?limit=1000" });
    await send("GET", "/v1/events", { headers: { accept: "text/event-stream" } });
    for (const path of [
      "/healthz",
      "/readyz",
      "/openapi.json",
      "/.well-known/jwks.json",
      "/.well-known/assent-configuration",
    ])
      await send("GET", path, { key: null });
    for (const analytics of ["/v1/analytics", "/v1/analytics/oversight"])
      if (judge.operations.some(({ path }) => path === analytics)) await send("GET", analytics);
  });

  it("responses to each error that can be provoked match the document", async () => {
    for (const { method, path, spec } of judge.operations) {
      const at = { id: NOWHERE, hash: "0".repeat(64), level: "0", tile: "999" };
      const body = spec.requestBody?.content["application/json"]?.example as unknown;
      const sent = { at, ...(body === undefined ? {} : { body }) };
      const expect = async (code: string, options: Parameters<typeof send>[2]): Promise<void> => {
        const answer = await send(method, path, { ...sent, ...options });
        assert.equal(answer.body.code, code, `${method} ${path}`);
      };
      await expect("VALIDATION_FAILED", { query: "?colour=red" });
      if (spec.security === undefined) {
        await expect("MISSING_CREDENTIAL", { key: null });
        await expect("INVALID_CREDENTIAL", { key: "nobody" });
        if (!OF_EVERY_KEY.includes(`${method} ${path}`))
          await expect("INSUFFICIENT_SCOPE", { key: path === "/metrics" ? otherwise : narrow });
      }
      if (spec.requestBody === undefined) {
        if (method !== "GET") await expect("BAD_REQUEST", { raw: "{}" });
        continue;
      }
      await expect("MALFORMED_JSON", { raw: "{" });
      await expect("DUPLICATE_KEY", { raw: '{"a":1,"a":2}' });
      await expect("LONE_SURROGATE", { raw: '{"a":"\\ud800"}' });
      await expect("UNSAFE_INTEGER", { raw: '{"a":9007199254740993}' });
      await expect("TOO_DEEP", { raw: `${"[".repeat(100)}${"]".repeat(100)}` });
      await expect("TOO_MANY_VALUES", { raw: `[${"0,".repeat(1000)}0]` });
      await expect("UNSUPPORTED_MEDIA_TYPE", { raw: "a", headers: { "content-type": "image/png" } });
      await expect("VALIDATION_FAILED", { body: { unheard_of: true } });
      await expect("BODY_TOO_LARGE", { raw: JSON.stringify({ a: "x".repeat(1_100_000) }) });
    }
  });

  it("responses for missing resources and wrong states match the document", async () => {
    const cases: [string, string, Parameters<typeof send>[2], string][] = [
      ["GET", "/v1/actions/{id}", { at: { id: NOWHERE } }, "ACTION_NOT_FOUND"],
      ["GET", "/v1/actions/{id}", { at: { id: "nonsense" } }, "ACTION_NOT_FOUND"],
      ["GET", "/v1/actions/{id}/events", { at: { id: NOWHERE } }, "ACTION_NOT_FOUND"],
      ["GET", "/v1/actions", { query: "?cursor=zzz" }, "INVALID_CURSOR"],
      ["GET", "/v1/approvals", { query: "?cursor=zzz" }, "INVALID_CURSOR"],
      ["GET", "/v1/agents", { query: "?cursor=zzz" }, "INVALID_CURSOR"],
      ["GET", "/v1/agents/{id}", { at: { id: "nobody" } }, "AGENT_NOT_FOUND"],
      ["GET", "/v1/holds/{id}", { at: { id: NOWHERE } }, "HOLD_NOT_FOUND"],
      ["POST", "/v1/agents", { body: { id: "walker" } }, "AGENT_ID_TAKEN"],
      [
        "PATCH",
        "/v1/agents/{id}",
        { at: { id: "walker" }, body: { name: "n" }, headers: { "if-match": '"0"' } },
        "PRECONDITION_FAILED",
      ],
      ["GET", "/v1/policies/{id}", { at: { id: "nothing" } }, "POLICY_NOT_FOUND"],
      ["GET", "/v1/policies/{id}", { at: { id: "imported" }, query: "?version=9" }, "POLICY_VERSION_NOT_FOUND"],
      [
        "POST",
        "/v1/policies",
        { body: { policy: "imported", rules: [{ name: "r", effect: "allow" }] } },
        "POLICY_NAME_TAKEN",
      ],
      [
        "POST",
        "/v1/policies",
        { body: { policy: "x", rules: [{ name: "r", when: "(", effect: "allow" }] } },
        "POLICY_INVALID",
      ],
      ["DELETE", "/v1/policies/{id}", { at: { id: "payments" } }, "POLICY_MANAGED"],
      ["DELETE", "/v1/api-keys/{id}", { at: { id: NOWHERE } }, "KEY_NOT_FOUND"],
      ["GET", "/v1/api-keys/{id}", { at: { id: NOWHERE } }, "KEY_NOT_FOUND"],
      ["POST", "/v1/api-keys", { body: { name: "narrow", preset: "agent" } }, "KEY_NAME_TAKEN"],
      ["GET", "/v1/provenance/{hash}", { at: { hash: "0".repeat(64) } }, "ENTRY_NOT_FOUND"],
      ["GET", "/v1/provenance/consistency", { query: "?first=1&second=999999" }, "INVALID_RANGE"],
      ["GET", "/tile/{level}/{tile}", { at: { level: "0", tile: "999" } }, "TILE_NOT_FOUND"],
      ["GET", "/v1/events", { query: "?after=999999", headers: { accept: "*/*" } }, "INVALID_RANGE"],
      ["GET", "/v1/events", { headers: { accept: "application/json" } }, "NOT_ACCEPTABLE"],
      ["GET", "/v1/events/page", { query: "?after=999999" }, "INVALID_RANGE"],
      ["POST", "/v1/replay", { body: { action_id: NOWHERE } }, "ACTION_NOT_FOUND"],
      ["POST", "/v1/actions/{id}/start", { at: { id: NOWHERE }, body: { permit: "x" } }, "ACTION_NOT_FOUND"],
    ];
    for (const [method, path, options, code] of cases) {
      const { status, body } = await send(method, path, options);
      if (status !== 0) assert.equal(body.code, code, `${method} ${path} ${code}`);
    }
  });

  it("an unknown outcome can be settled", async () => {
    const { id } = (await send("POST", "/v1/actions", { key: service.agent, body: ALLOWED })).body;
    await send("POST", "/v1/actions/{id}/start", { at: { id }, key: service.agent, body: {} });
    const settle = (): Promise<Sent> =>
      send("POST", "/v1/actions/{id}/settle", { at: { id }, body: { success: true, reason: "it is in the mailbox" } });
    assert.equal((await settle()).body.code, "OUTCOME_NOT_UNKNOWN");
    service.clock.now += 61 * 60_000;
    await service.restart();
    await until("the outcome is unknown", async () => (await service.storage.action(id))?.status === "unknown");
    assert.equal((await settle()).body.status, "succeeded");
  });

  it("policies are suggested from approvals", needs("suggestions"), async () => {
    assert.deepEqual((await send("POST", "/v1/policies/suggest", { body: {} })).body.suggestions, []);
    const early = await send("POST", "/v1/policies/suggest", { body: { since: "2999-01-01T00:00:00Z" } });
    assert.equal(early.body.code, "INVALID_RANGE");
  });

  it("a suggested rule can be flagged and restored", needs("suggestions"), async () => {
    const asked = (await send("POST", "/v1/actions", { key: service.agent, body: ASKED })).body;
    const suggested = {
      policy: "suggested",
      suggested: { in_place_of: { policy: asked.policy, rule: asked.rule } },
      rules: [{ name: "r", tool: ASKED.tool, operation: ASKED.operation, agent: ASKED.agent_id, effect: "allow" }],
    };
    const early = await send("POST", "/v1/policies", { query: "?activate=true", body: suggested });
    assert.equal(early.body.code, "SUGGESTED_RULE_UNTRIED");
    await send("POST", "/v1/policies", { query: "?activate=true", body: { ...suggested, mode: "shadow" } });
    await send("PUT", "/v1/policies/{id}", { at: { id: "suggested" }, query: "?activate=true", body: suggested });
    const { id, decision } = (await send("POST", "/v1/actions", { key: service.agent, body: ASKED })).body;
    assert.equal(decision, "allow");
    await send("POST", "/v1/actions/{id}/flag", { at: { id }, body: { reason: "a drill" } });
    const again = await send("POST", "/v1/actions/{id}/flag", { at: { id }, body: { reason: "a drill" } });
    if (hasFeature("flags")) assert.equal(again.body.code, "ALREADY_FLAGGED");
    const change = (verb: "flag" | "restore", policy: string, body: object): Promise<Sent> =>
      send("POST", `/v1/suggested-rules/{policy}/${verb}`, { at: { policy }, body: { reason: "a drill", ...body } });
    assert.equal((await change("flag", "unknown", { action_id: id })).body.code, "SUGGESTED_RULE_NOT_FOUND");
    assert.equal((await change("flag", "suggested", { action_id: id })).body.status, "reverted");
    assert.equal((await change("flag", "suggested", { action_id: id })).body.code, "SUGGESTED_RULE_REVERTED");
    assert.equal((await send("GET", "/v1/suggested-rules", {})).body.suggested_rules.length, 1);
    assert.equal((await change("restore", "suggested", {})).body.status, "active");
    assert.equal((await change("restore", "suggested", {})).body.code, "SUGGESTED_RULE_NOT_REVERTED");
    await send("POST", "/v1/policies/{id}/deactivate", { at: { id: "suggested" } });
  });

  /** They need the session of a user, as the tests of signed votes, plans, break-glass and devices have. */
  const OF_SESSIONS = [
    "postVotes",
    "postVotesChallenge",
    "postPlansByIdChallenge",
    "postPlansByIdSignedApproval",
    "postBreakGlassByIdReview",
    "postDevices",
    "postDevicesConfirm",
    "postDevicesReport",
    "deleteDevicesById",
  ];

  /** They need a link of a message, or a channel as the other approver. */
  const OF_MESSAGES = ["postApprovalLink", "postApprovalLinkVerdict", "postActionsByIdEdit"];
  const unreachable = hasFeature("deliveries") ? OF_SESSIONS : [...OF_SESSIONS, ...OF_MESSAGES];

  it("every operation was reached with a success", () => {
    assert.deepEqual(
      judge.operations
        .filter(({ operationId }) => !unreachable.includes(operationId) && !seen.get(operationId)?.has("success"))
        .map(({ operationId }) => operationId),
      [],
    );
  });
});
