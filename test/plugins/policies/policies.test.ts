/** Policies over the API, through the real handler and a real store. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { EntryBody } from "../../../src/domain/entries.ts";
import { needs } from "../../support/features.ts";
import { ALLOWED, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const folder = temporaryFolder("assent-policies-");
writeFileSync(join(folder, "files.yaml"), "policy: files\nrules:\n  - { name: all mail, tool: mail, effect: allow }\n");

let service: Service;
before(async () => {
  service = await startService({ policies: folder });
});
after(() => service.close());

const admin = (method: string, path: string, options: Parameters<Service["call"]>[2] = {}): Promise<Answer> =>
  service.call(method, path, { key: service.admin, ...options });

let counter = 0;
const named = (over: object = {}): { policy: string; rules: object[] } => {
  counter += 1;
  return { policy: `p${counter}`, rules: [{ name: "refunds", tool: `tool${counter}`, effect: "allow" }], ...over };
};

async function keyWith(...scopes: string[]): Promise<string> {
  counter += 1;
  return (await admin("POST", "/v1/api-keys", { body: { name: `key ${counter}`, scopes } })).body.key as string;
}

const decided = async (tool: string): Promise<string> =>
  (await service.call("POST", "/v1/actions", { body: { ...ALLOWED, tool } })).body.decision as string;

describe("a policy over the API", () => {
  it("decides nothing before it is active, and everything from then on", async () => {
    const body = named();
    const tool = `tool${counter}`;
    const created = await admin("POST", "/v1/policies", { body });
    assert.equal(created.status, 201, JSON.stringify(created.body));
    assert.deepEqual(
      [created.body.status, created.body.latest_version, created.body.active_version],
      ["inactive", 1, null],
    );
    assert.equal(created.headers.get("location"), `/v1/policies/${created.body.id}`);
    assert.equal(await decided(tool), "deny");
    const active = await admin("POST", `/v1/policies/${created.body.id}/activate`);
    assert.deepEqual([active.status, active.body.status, active.body.active_version], [200, "active", 1]);
    assert.equal(await decided(tool), "allow");
    const off = await admin("POST", `/v1/policies/${body.policy}/deactivate`);
    assert.deepEqual([off.body.status, off.body.active_version], ["inactive", null]);
    assert.equal(await decided(tool), "deny");
  });

  it("keeps every version unchanged, and rolls back to an older one", async () => {
    const body = named();
    const tool = `tool${counter}`;
    await admin("POST", "/v1/policies?activate=true", { body });
    const second = { ...body, rules: [{ name: "refunds", tool, effect: "deny" }] };
    const updated = await admin("PUT", `/v1/policies/${body.policy}?activate=true`, { body: second });
    assert.deepEqual([updated.status, updated.body.latest_version, updated.body.active_version], [200, 2, 2]);
    assert.equal(await decided(tool), "deny");
    await admin("POST", `/v1/policies/${body.policy}/activate`, { body: { version: 1 } });
    assert.equal(await decided(tool), "allow");
    const versions = (await admin("GET", `/v1/policies/${body.policy}/versions`)).body.versions;
    assert.deepEqual(
      versions.map((v: { version: number; active: boolean; definition: object }) => [
        v.version,
        v.active,
        v.definition,
      ]),
      [
        [2, false, second],
        [1, true, body],
      ],
    );
    assert.deepEqual((await admin("GET", `/v1/policies/${body.policy}?version=1`)).body.definition, body);
    assert.equal((await admin("GET", `/v1/policies/${body.policy}?version=3`)).body.code, "POLICY_VERSION_NOT_FOUND");
    const again = await admin("PUT", `/v1/policies/${body.policy}`, { body: second });
    assert.equal(again.body.latest_version, 2, "the same definition makes no version");
  });

  it("records each change of the active set in the ledger, with both digests and the author", async () => {
    const before = (await service.runtime.host.policies.current()).digest;
    const body = named();
    await admin("POST", "/v1/policies", { body });
    const size = (await service.storage.head()).size;
    await admin("POST", `/v1/policies/${body.policy}/activate`);
    const [row] = await service.storage.entries(size, size + 1);
    const entry = JSON.parse(new TextDecoder().decode(row?.bytes));
    assert.deepEqual(
      [entry.type, entry.previous, entry.source],
      ["policy_set", before, { kind: "api", change: "activate", policy: body.policy }],
    );
    assert.equal(entry.policy_set, (await service.runtime.host.policies.current()).digest);
    assert.match(entry.by.principal, /^key:/);
    await admin("POST", `/v1/policies/${body.policy}/activate`);
    assert.equal((await service.storage.head()).size, size + 1, "activating the active version changes nothing");
  });

  it("is evaluated as the old set or the new one, never a mixture, while it is switched under load", async () => {
    const body = named();
    const tool = `tool${counter}`;
    await admin("POST", "/v1/policies?activate=true", { body });
    await admin("PUT", `/v1/policies/${body.policy}`, {
      body: { ...body, rules: [{ name: "refunds", tool, effect: "deny" }] },
    });
    const effects: string[] = [];
    let done = false;
    const load = Array.from({ length: 8 }, async () => {
      while (!done) {
        const { body: action } = await service.call("POST", "/v1/actions", { body: { ...ALLOWED, tool } });
        effects.push(`${action.policy_version} ${action.decision}`);
      }
    });
    const from = (await service.storage.head()).size;
    // Each twice, because clients that alternate with the switches would only see one version.
    for (let i = 0; i < 60; i++) {
      await admin("POST", `/v1/policies/${body.policy}/activate`, { body: { version: 1 + (Math.floor(i / 2) % 2) } });
      const seen = effects.length;
      await until("another decision is made", () => effects.length > seen, 1);
    }
    done = true;
    await Promise.all(load);
    assert.deepEqual([...new Set(effects)].sort(), ["1 allow", "2 deny"]);

    // According to the ledger, every decision is that of the active set at that entry.
    let set: { policy_set: string | null; version: number | undefined } | null = null;
    let checked = 0;
    for (const { bytes } of await service.storage.entries(from, (await service.storage.head()).size)) {
      const entry = JSON.parse(new TextDecoder().decode(bytes)) as EntryBody;
      if (entry.type === "policy_set")
        set = {
          policy_set: entry.policy_set,
          version: entry.policies?.find(({ policy }) => policy === body.policy)?.version,
        };
      if (entry.type !== "decision" || set === null) continue;
      assert.deepEqual({ policy_set: entry.policy_set, version: entry.decision.policy_version }, set);
      checked++;
    }
    assert.ok(checked > 20, `${checked} decisions were checked`);
  });

  it(
    "is no longer active after its deletion, keeps its versions for replay and continues their numbers",
    needs("replay"),
    async () => {
      const body = named();
      const tool = `tool${counter}`;
      await admin("POST", "/v1/policies?activate=true", { body });
      const action = (await service.call("POST", "/v1/actions", { body: { ...ALLOWED, tool } })).body;
      assert.equal((await admin("DELETE", `/v1/policies/${body.policy}`)).status, 200);
      assert.equal(await decided(tool), "deny");
      assert.equal((await admin("GET", `/v1/policies/${body.policy}`)).status, 404);
      assert.equal((await admin("DELETE", `/v1/policies/${body.policy}`)).status, 404);
      assert.equal((await admin("GET", `/v1/policies?name=${body.policy}`)).body.policies.length, 0);
      assert.equal((await admin("POST", "/v1/replay", { body: { action_id: action.id } })).body.equal, true);
      const back = await admin("POST", "/v1/policies", { body: { ...body, description: "again" } });
      assert.deepEqual([back.status, back.body.latest_version], [201, 2]);
    },
  );

  it("is unchanged after a restart", async () => {
    const body = named();
    await admin("POST", "/v1/policies?activate=true", { body });
    await service.restart();
    assert.equal((await admin("GET", `/v1/policies/${body.policy}`)).body.active_version, 1);
    assert.equal(await decided(`tool${counter}`), "allow");
  });
});

describe("the check of a policy text", () => {
  const text = (effect: string): string =>
    `policy: texts\nlet: { most: 100 }\nrules:\n  - { name: a, tool: wiki, operation: edit, when: params.n < most, effect: ${effect} }\n`;
  const check = async (body: object) => (await admin("POST", "/v1/policies/check", { body })).body;

  it("reports a fault at its line, and stores nothing", async () => {
    const { faults, policies } = await check({ yaml: text("alow") });
    assert.deepEqual([faults.length, faults[0].line, policies], [1, 4, []]);
    assert.ok(faults[0].column > 1);
    assert.match(faults[0].detail, /allow/);
    const twice = await check({ yaml: `${text("allow")}---\n${text("allow")}` });
    assert.match(twice.faults[0].detail, /appears twice/);
    assert.equal((await admin("GET", "/v1/policies/texts")).status, 404);
  });

  it("reports what changes, what tests find, and which names the text declares", async () => {
    await admin("POST", "/v1/policies?activate=true", {
      raw: text("deny"),
      headers: { "content-type": "application/yaml" },
    });
    const tests = ["allow", "deny"]
      .map(
        (effect) =>
          `  - { name: ${effect}, action: { agent_id: a, tool: wiki, operation: edit, params: { n: 1 } }, expect: { effect: ${effect} } }\n`,
      )
      .join("");
    const checked = await check({ yaml: text("allow"), tests: `now: 2026-01-31T12:00:00Z\ncases:\n${tests}` });
    assert.deepEqual([checked.faults, checked.policies[0].compared_with], [[], 1]);
    assert.match(checked.policies[0].changes[0].summary, /is allow; it was deny/);
    assert.deepEqual([checked.tests.passed, checked.tests.failed], [1, 1]);
    const [passed, failed] = checked.tests.results;
    assert.deepEqual([passed.failure, failed.line, failed.effect], [null, 4, "allow"]);
    assert.match(failed.failure, /effect is allow, expected deny/);
    assert.deepEqual(checked.variables, [{ name: "most", type: "an int" }]);
    assert.deepEqual(checked.tools, [{ tool: "wiki", operation: "edit", params: [] }]);
    const faulty = await check({ yaml: text("allow"), tests: "now: soon\ncases: []\n" });
    assert.ok(faulty.tests.faults.length > 0 && faulty.tests.passed === 0);
  });

  it("lists what a policy can contain", async () => {
    const { schema, variables, functions, tools } = (await admin("GET", "/v1/policy-vocabulary")).body;
    assert.ok("rules" in schema.properties);
    assert.ok(variables.some(({ name }: { name: string }) => name === "principal.owner"));
    assert.ok(functions.some(({ name, method }: { name: string; method: boolean }) => name === "startsWith" && method));
    assert.ok(tools.some(({ tool }: { tool: string }) => tool === "mail"));
  });
});

describe("conditions of a change", () => {
  it("If-Match rejects a change if another came first, and loses nothing", async () => {
    const body = named();
    const { headers } = await admin("POST", "/v1/policies", { body });
    const etag = headers.get("etag") as string;
    const mine = await admin("PUT", `/v1/policies/${body.policy}`, {
      body: { ...body, description: "mine" },
      headers: { "if-match": etag },
    });
    assert.equal(mine.status, 200);
    const late = await admin("PUT", `/v1/policies/${body.policy}`, {
      body: { ...body, description: "late" },
      headers: { "if-match": etag },
    });
    assert.deepEqual(
      [late.status, late.body.code, late.headers.get("etag")],
      [412, "PRECONDITION_FAILED", mine.headers.get("etag")],
    );
    for (const [method, path] of [
      ["DELETE", ""],
      ["POST", "/activate"],
      ["POST", "/deactivate"],
    ] as const) {
      assert.equal(
        (await admin(method, `/v1/policies/${body.policy}${path}`, { headers: { "if-match": etag } })).status,
        412,
      );
    }
    assert.equal((await admin("GET", `/v1/policies/${body.policy}`)).body.definition.description, "mine");
    assert.equal(
      (
        await admin("PUT", `/v1/policies/${body.policy}`, {
          body: { ...body, description: "any" },
          headers: { "if-match": "*" },
        })
      ).body.latest_version,
      3,
    );
  });

  it("a name is unique, and an idempotent retry returns the same policy", async () => {
    const body = named();
    const headers = { "idempotency-key": `create-${body.policy}` };
    const first = await admin("POST", "/v1/policies", { body, headers });
    const retry = await admin("POST", "/v1/policies", { body, headers });
    assert.deepEqual(
      [retry.status, retry.body.id, retry.headers.get("idempotency-replayed")],
      [200, first.body.id, "true"],
    );
    assert.equal(
      (await admin("POST", "/v1/policies", { body: { ...body, description: "x" }, headers })).body.code,
      "IDEMPOTENCY_CONFLICT",
    );
    assert.equal((await admin("POST", "/v1/policies", { body })).body.code, "POLICY_NAME_TAKEN");
  });

  it("is neither found nor created again by a repeated request after its deletion", async () => {
    const body = named();
    const headers = { "idempotency-key": `gone-${body.policy}` };
    await admin("POST", "/v1/policies", { body, headers });
    await admin("DELETE", `/v1/policies/${body.policy}`);
    const again = await admin("POST", "/v1/policies", { body, headers });
    assert.deepEqual([again.status, again.body.code], [404, "POLICY_NOT_FOUND"]);
    assert.match(again.body.detail, /was deleted; send a new key/);
    assert.equal((await admin("GET", `/v1/policies/${body.policy}`)).status, 404);
  });

  it("is returned as stored, although deleted in the same batch", async (t) => {
    const body = named();
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { ledger } = service.runtime.host;
    const held = ledger.transact(() => gate);
    const { mock: queued } = t.mock.method(ledger, "transact");
    const answers: Promise<Answer>[] = [];
    for (const request of [
      () => admin("POST", "/v1/policies", { body }),
      () => admin("PUT", `/v1/policies/${body.policy}`, { body: { ...body, description: "second" } }),
      () => admin("DELETE", `/v1/policies/${body.policy}`),
    ]) {
      answers.push(request());
      await until("it is queued behind the batch that is held", () => queued.callCount() === answers.length, 1);
    }
    open();
    await held;
    assert.deepEqual(
      (await Promise.all(answers)).map(({ status, body: record }) => [status, record.latest_version]),
      [
        [201, 1],
        [200, 2],
        [200, 2],
      ],
    );
  });

  it("a policy from files is read-only until its file is deleted", async () => {
    assert.equal((await admin("GET", "/v1/policies/files")).body.managed_by, "policy-files");
    const body = { policy: "files", rules: [{ name: "r", tool: "mail", effect: "deny" }] };
    const calls: [string, string, object?][] = [
      ["POST", "", body],
      ["PUT", "/files", body],
      ["DELETE", "/files"],
      ["POST", "/files/deactivate"],
      ["POST", "/files/activate"],
    ];
    for (const [method, path, sent] of calls) {
      const refused = await admin(method, `/v1/policies${path}`, sent === undefined ? {} : { body: sent });
      assert.deepEqual([refused.status, refused.body.code], [409, "POLICY_MANAGED"], `${method} ${path}`);
      assert.match(refused.body.detail, /policy-files/);
    }
    assert.equal(await decided("mail"), "allow");
  });

  it("activation needs its own scope, on every route", async () => {
    const writer = await keyWith("policies:write", "policies:read");
    const body = named();
    assert.equal((await service.call("POST", "/v1/policies", { key: writer, body })).status, 201);
    for (const [method, path] of [
      ["POST", `/v1/policies?activate=true`],
      ["PUT", `/v1/policies/${body.policy}?activate=true`],
      ["POST", "/v1/policies/import-yaml?activate=true"],
      ["POST", `/v1/policies/${body.policy}/activate`],
    ] as const) {
      const sent = path.includes("import")
        ? { yaml: JSON.stringify(named()) }
        : path.endsWith("/activate")
          ? {}
          : method === "PUT"
            ? body
            : named();
      assert.equal(
        (await service.call(method, path, { key: writer, body: sent })).body.code,
        "INSUFFICIENT_SCOPE",
        path,
      );
    }
    await admin("POST", `/v1/policies/${body.policy}/activate`);
    assert.equal(
      (await service.call("DELETE", `/v1/policies/${body.policy}`, { key: writer })).body.code,
      "INSUFFICIENT_SCOPE",
    );
    assert.equal((await admin("GET", `/v1/policies/${body.policy}`)).body.status, "active");
    assert.equal((await service.call("GET", "/v1/policies", { key: service.agent })).body.code, "INSUFFICIENT_SCOPE");
  });
});

describe("a policy that does not compile", () => {
  const bad = { policy: "bad", rules: [{ name: "r", tool: "t", when: "params.amount >", effect: "allow" }] };

  it("is rejected by every route", async () => {
    for (const [method, path, body] of [
      ["POST", "/v1/policies", bad],
      ["POST", "/v1/policies/import-yaml", { yaml: JSON.stringify(bad) }],
      ["PUT", "/v1/policies/p1", { ...bad, policy: "p1" }],
      ["POST", "/v1/policies/dry-run", { policy: bad, actions: [ALLOWED] }],
    ] as const) {
      const refused = await admin(method, path, { body });
      assert.deepEqual([refused.status, refused.body.code], [422, "POLICY_INVALID"], path);
    }
    assert.equal((await admin("GET", "/v1/policies/bad")).status, 404);
  });

  it("has a location: a pointer in JSON, line and column in YAML", async () => {
    const json = await admin("POST", "/v1/policies", { body: bad });
    assert.equal(json.body.errors[0].pointer, "/rules/0/when");
    const yaml = "policy: bad\nrules:\n  - name: r\n    tool: t\n    effekt: allow\n";
    const text = await admin("POST", "/v1/policies", { raw: yaml, headers: { "content-type": "application/yaml" } });
    assert.deepEqual([text.status, text.body.errors[0].line, text.body.errors[0].column], [422, 5, 5]);
    assert.ok(
      text.body.errors.some(
        (e: { line: number; column: number; detail: string }) =>
          e.line === 5 && e.column === 5 && e.detail.includes('"effekt"'),
      ),
      JSON.stringify(text.body.errors),
    );
    const form = await admin("POST", "/v1/policies", { body: { policy: "bad", rules: "none" } });
    assert.deepEqual([form.status, form.body.code], [422, "VALIDATION_FAILED"]);
  });

  it("rejects a whole import", async () => {
    const good = named();
    const yaml = `${JSON.stringify(good)}\n---\n${JSON.stringify(bad)}\n`;
    const refused = await admin("POST", "/v1/policies/import-yaml?activate=true", {
      raw: yaml,
      headers: { "content-type": "application/yaml" },
    });
    assert.deepEqual([refused.status, refused.body.code], [422, "POLICY_INVALID"]);
    assert.equal((await admin("GET", `/v1/policies/${good.policy}`)).status, 404);
    const twice = await admin("POST", "/v1/policies/import-yaml", {
      body: { yaml: `${JSON.stringify(good)}\n---\n${JSON.stringify(good)}\n` },
    });
    assert.match(twice.body.errors[0].detail, /appears twice/);
    const managed = await admin("POST", "/v1/policies/import-yaml", {
      body: { yaml: `${JSON.stringify(good)}\n---\n${JSON.stringify({ ...good, policy: "files" })}\n` },
    });
    assert.equal(managed.body.code, "POLICY_MANAGED");
    assert.equal((await admin("GET", `/v1/policies/${good.policy}`)).status, 404);
  });
});

describe("imports, differences and dry runs", () => {
  it("an import reports each policy's change, and a repetition changes nothing", async () => {
    const [a, b] = [named(), named()];
    const yaml = `# two\n${JSON.stringify(a)}\n---\n${JSON.stringify(b)}\n`;
    const send = (): Promise<Answer> =>
      admin("POST", "/v1/policies/import-yaml?activate=true", {
        raw: yaml,
        headers: { "content-type": "application/yaml; charset=utf-8" },
      });
    const first = await send();
    assert.deepEqual(
      first.body.policies.map((p: { name: string; version: number; outcome: string; active: boolean }) => [
        p.name,
        p.version,
        p.outcome,
        p.active,
      ]),
      [
        [a.policy, 1, "created", true],
        [b.policy, 1, "created", true],
      ],
    );
    assert.equal(first.body.policy_set, (await service.runtime.host.policies.current()).digest);
    const size = (await service.storage.head()).size;
    const second = await send();
    assert.deepEqual(
      second.body.policies.map((p: { outcome: string }) => p.outcome),
      ["unchanged", "unchanged"],
    );
    assert.equal((await service.storage.head()).size, size);
  });

  it("a diff names rules", async () => {
    const body = named();
    const rule = body.rules[0] as object;
    await admin("POST", "/v1/policies?activate=true", { body });
    await admin("PUT", `/v1/policies/${body.policy}`, {
      body: {
        ...body,
        rules: [
          { name: "new", tool: "x", effect: "deny" },
          { ...rule, effect: "deny" },
        ],
      },
    });
    const diff = (await admin("GET", `/v1/policies/${body.policy}/diff`)).body;
    assert.deepEqual([diff.from, diff.to], [1, 2]);
    assert.deepEqual(
      diff.changes.map((c: { kind: string; rule: string; fields: object[] }) => [c.kind, c.rule, c.fields]),
      [
        ["rule_added", "new", []],
        ["rule_changed", "refunds", [{ field: "effect", before: "allow", after: "deny" }]],
      ],
    );
    assert.equal((await admin("GET", `/v1/policies/${body.policy}/diff?from=2&to=1`)).body.changes.length, 2);
    assert.deepEqual((await admin("GET", `/v1/policies/${body.policy}/diff?from=1&to=1`)).body.changes, []);
    assert.equal(
      (await admin("GET", `/v1/policies/${body.policy}/diff?from=1&to=9`)).body.code,
      "POLICY_VERSION_NOT_FOUND",
    );
  });

  it("a dry run shows what a candidate would change, and records nothing", async () => {
    const body = named();
    const tool = `tool${counter}`;
    await admin("POST", "/v1/policies?activate=true", { body });
    const size = (await service.storage.head()).size;
    const candidate = { ...body, rules: [{ name: "refunds", tool, when: "params.amount < 10", effect: "allow" }] };
    const actions = [5, 50].map((amount) => ({ agent_id: "a", tool, operation: "x", params: { amount } }));
    const run = await admin("POST", "/v1/policies/dry-run", { body: { policy: candidate, actions } });
    assert.deepEqual(
      run.body.results.map((r: { current: { effect: string }; candidate: { effect: string }; changed: boolean }) => [
        r.current.effect,
        r.candidate.effect,
        r.changed,
      ]),
      [
        ["allow", "allow", false],
        ["allow", "deny", true],
      ],
    );
    const alone = await admin("POST", "/v1/policies/dry-run", {
      body: { yaml: JSON.stringify(candidate), alone: true, actions: [{ ...actions[0], tool: "mail" }] },
    });
    assert.deepEqual(
      [alone.body.results[0].current.effect, alone.body.results[0].candidate.reason_code],
      ["allow", "NO_MATCHING_RULE"],
    );
    const shadowed = { policy: "x", mode: "shadow", rules: [{ name: "none", tool, effect: "deny" }] };
    for (const [enforce, effect] of [
      [true, "deny"],
      [false, "allow"],
    ]) {
      const tried = await admin("POST", "/v1/policies/dry-run", { body: { policy: shadowed, enforce, actions } });
      assert.equal(tried.body.results[0].candidate.effect, effect);
    }
    assert.equal((await service.storage.head()).size, size);
    assert.equal((await admin("POST", "/v1/policies/dry-run", { body: { actions } })).status, 422);
  });

  it("lists have pages that neither skip nor repeat", async () => {
    const all: string[] = [];
    let path = "/v1/policies?limit=3";
    for (;;) {
      const page = await admin("GET", path);
      all.push(...page.body.policies.map((p: { name: string }) => p.name));
      const link = /^<([^>]+)>; rel="next"$/.exec(page.headers.get("link") ?? "");
      assert.equal(link === null, page.body.next_cursor === null);
      if (link === null) break;
      path = link[1] as string;
    }
    const whole = (await admin("GET", "/v1/policies?limit=1000")).body.policies.map((p: { name: string }) => p.name);
    assert.deepEqual(all, whole);
    assert.equal(new Set(all).size, all.length);
    assert.deepEqual(
      (await admin("GET", "/v1/policies?limit=2&offset=1")).body.policies.map((p: { name: string }) => p.name),
      whole.slice(1, 3),
    );
    assert.equal((await admin("GET", "/v1/policies?cursor=YTE")).body.code, "INVALID_CURSOR");
    assert.ok(
      (await admin("GET", "/v1/policies?status=inactive&limit=1000")).body.policies.every(
        (p: { status: string }) => p.status === "inactive",
      ),
    );
  });
});
