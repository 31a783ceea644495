import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { needs } from "../../support/features.ts";
import { ALLOWED, startService, type Answer, type Service } from "../../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.close());

const admin = (method: string, path: string, options: Parameters<Service["call"]>[2] = {}): Promise<Answer> =>
  service.call(method, path, { key: service.admin, ...options });
const submit = async (agent_id: string, tool = "stripe"): Promise<Answer["body"]> =>
  (await service.call("POST", "/v1/actions", { body: { ...ALLOWED, agent_id, tool } })).body;
const entries = async (from: number): Promise<Record<string, unknown>[]> =>
  (await service.storage.entries(from, from + 100)).map(
    (row) => JSON.parse(new TextDecoder().decode(row.bytes)) as Record<string, unknown>,
  );

describe("a registered agent", () => {
  it("is returned as it was registered, and is recorded", async () => {
    const { size } = await service.storage.head();
    const body = { id: "bot/1 ü", name: "Bot", description: "d", allowed_tools: ["stripe"], metadata: { team: ["x"] } };
    const made = await admin("POST", "/v1/agents", { body });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.equal(made.headers.get("location"), "/v1/agents/bot%2F1%20%C3%BC");
    const got = await admin("GET", made.headers.get("location") as string);
    assert.deepEqual(got.body, made.body);
    const { id, name, description, allowed_tools, metadata, status, version } = got.body;
    assert.deepEqual(
      { id, name, description, allowed_tools, metadata, status, version },
      { ...body, status: "active", version: 1 },
    );
    const [entry] = await entries(size);
    assert.deepEqual(
      [entry?.["type"], entry?.["change"], (entry?.["agent"] as { id: string } | undefined)?.id],
      ["agent", "registered", body.id],
    );
  });

  it("can use its allowed tools and no others, before any policy is evaluated", needs("replay"), async () => {
    await admin("POST", "/v1/agents", { body: { id: "narrow", allowed_tools: ["str*"] } });
    assert.equal((await submit("narrow")).decision, "allow");
    const other = await submit("narrow", "crm");
    assert.deepEqual([other.decision, other.reason_code, other.policy], ["deny", "TOOL_NOT_ALLOWED", null]);
    assert.equal(
      (await service.call("POST", "/v1/gate/decide", { body: { ...ALLOWED, agent_id: "narrow", tool: "crm" } })).body
        .reason_code,
      "TOOL_NOT_ALLOWED",
    );
    await admin("PATCH", "/v1/agents/narrow", { body: { allowed_tools: [] } });
    assert.equal((await submit("narrow")).reason_code, "TOOL_NOT_ALLOWED");
    await admin("PATCH", "/v1/agents/narrow", { body: { allowed_tools: null } });
    assert.equal((await submit("narrow")).decision, "allow");
    assert.equal(
      (await admin("POST", "/v1/replay", { body: { action_id: other.id } })).body.equal,
      true,
      "replay decides with the facts of then",
    );
  });

  it("is one agent, however its name is capitalised", async () => {
    for (const id of ["Caps-Bot", "CAPS-bot", "caps-bot"]) {
      const answer = await admin("POST", "/v1/agents", { body: { id } });
      assert.deepEqual(
        [answer.status, answer.body.code],
        id === "Caps-Bot" ? [201, undefined] : [409, "AGENT_ID_TAKEN"],
      );
    }
    assert.equal((await admin("POST", "/v1/agents/Caps-Bot/suspend")).status, 200);
    for (const spelling of ["Caps-Bot", "caps-bot", "CAPS-BOT", "cAPS-bOT"])
      assert.equal((await submit(spelling)).reason_code, "AGENT_SUSPENDED", spelling);
    await service.restart();
    assert.equal((await submit("caps-BOT")).reason_code, "AGENT_SUSPENDED");
    assert.equal((await admin("POST", "/v1/agents/Caps-Bot/resume")).status, 200);
    assert.equal((await submit("caps-BOT")).decision, "allow");
  });

  it("is denied from the next submission after its suspension, recorded, and can continue when resumed", async () => {
    await admin("POST", "/v1/agents", { body: { id: "risky" } });
    assert.equal((await submit("risky")).decision, "allow");
    const { size } = await service.storage.head();
    const suspended = await admin("POST", "/v1/agents/risky/suspend", { body: { reason: "odd refunds" } });
    assert.deepEqual(
      [suspended.body.status, suspended.body.suspended_reason, suspended.body.version],
      ["suspended", "odd refunds", 2],
    );
    const denied = await submit("risky");
    assert.deepEqual([denied.decision, denied.reason_code], ["deny", "AGENT_SUSPENDED"]);
    assert.equal((await admin("POST", "/v1/agents/risky/suspend", { body: {} })).body.version, 2, "once is enough");
    assert.deepEqual(
      (await entries(size)).map((e) => [e["type"], e["change"] ?? e["status"]]),
      [
        ["agent", "suspended"],
        ["approval", "cancelled"],
        ["decision", "denied"],
      ],
    );
    for (const spelling of ["Risky", "RISKY"])
      assert.equal((await submit(spelling)).reason_code, "AGENT_SUSPENDED", spelling);
    await service.restart();
    assert.equal((await submit("risky")).reason_code, "AGENT_SUSPENDED");
    await admin("POST", "/v1/agents/risky/resume");
    assert.equal((await submit("risky")).decision, "allow");
  });

  it("is suspended for all later submissions of the same batch", needs("events"), async () => {
    await admin("POST", "/v1/agents", { body: { id: "batched" } });
    const early = Array.from({ length: 20 }, () => submit("batched"));
    const suspension = admin("POST", "/v1/agents/batched/suspend");
    const late = Array.from({ length: 20 }, () => submit("batched"));
    await Promise.all([...early, suspension, ...late]);
    const { body } = await admin("GET", "/v1/events/page?type=agent,decision&agent_id=batched&limit=1000");
    const decisions = body.events.map(
      (e: { entry: { decision: { reason_code: string } } }) => e.entry.decision.reason_code,
    );
    const change = (await entries((await service.storage.agent("batched"))?.registered_seq ?? 0)).find(
      (e) => e["change"] === "suspended",
    );
    const after = body.events.filter((e: { seq: number }) => e.seq > (change?.["seq"] as number));
    assert.ok(
      after.length > 0 &&
        after.every(
          (e: { entry: { decision: { reason_code: string } } }) => e.entry.decision.reason_code === "AGENT_SUSPENDED",
        ),
    );
    assert.equal(decisions.length, 40);
  });
});

describe("changes of an agent", () => {
  it("are rejected if another change came first, and leave other members unchanged", async () => {
    const { headers } = await admin("POST", "/v1/agents", {
      body: { id: "shared", description: "d", metadata: { a: 1 } },
    });
    const first = await admin("PATCH", "/v1/agents/shared", {
      body: { name: "n" },
      headers: { "if-match": headers.get("etag") as string },
    });
    assert.deepEqual([first.body.name, first.body.description, first.body.metadata], ["n", "d", { a: 1 }]);
    const late = await admin("PATCH", "/v1/agents/shared", {
      body: { name: "late" },
      headers: { "if-match": headers.get("etag") as string },
    });
    assert.deepEqual([late.status, late.body.code], [412, "PRECONDITION_FAILED"]);
    assert.equal((await admin("GET", "/v1/agents/shared")).body.name, "n");
  });

  it("are forbidden to a key that is bound to an agent, which sees only that agent", async () => {
    await admin("POST", "/v1/agents", { body: { id: "self" } });
    const { key } = (
      await admin("POST", "/v1/api-keys", {
        body: { name: "self", scopes: ["agents:read", "agents:write"], agent_id: "self" },
      })
    ).body;
    assert.deepEqual(
      (await service.call("GET", "/v1/agents", { key })).body.agents.map((a: { id: string }) => a.id),
      ["self"],
    );
    assert.equal((await service.call("GET", "/v1/agents/shared", { key })).status, 404);
    await admin("POST", "/v1/agents/self/suspend");
    const resumed = await service.call("POST", "/v1/agents/self/resume", { key });
    assert.deepEqual([resumed.status, resumed.body.code], [403, "AGENT_MISMATCH"]);
    assert.equal((await admin("GET", "/v1/agents/self")).body.status, "suspended");
  });

  it("reject tools that are too large for a decision's entry, and accept the longest valid list", async () => {
    const tools = (character: string): string[] =>
      Array.from({ length: 100 }, (_, i) => String(i).padEnd(128, character));
    for (const call of [
      () => admin("POST", "/v1/agents", { body: { id: "wide", allowed_tools: tools("漢") } }),
      () => admin("PATCH", "/v1/agents/shared", { body: { allowed_tools: tools("漢") } }),
    ]) {
      const { status, body } = await call();
      assert.deepEqual([status, body.code, body.errors[0].pointer], [422, "VALIDATION_FAILED", "/allowed_tools"]);
    }
    assert.equal((await admin("POST", "/v1/agents", { body: { id: "wide", allowed_tools: tools("x") } })).status, 201);
  });

  it("reject bad input and change nothing", async () => {
    const bad: [object, string][] = [
      [{}, "/id"],
      [{ id: "" }, "/id"],
      [{ id: "a\nb" }, "/id"],
      [{ id: "x".repeat(257) }, "/id"],
      [{ id: "ok", allowed_tools: "stripe" }, "/allowed_tools"],
      [{ id: "ok", allowed_tools: [""] }, "/allowed_tools/0"],
      [{ id: "ok", metadata: { big: "x".repeat(17_000) } }, "/metadata"],
      [{ id: "ok", colour: "red" }, "/colour"],
    ];
    for (const [body, pointer] of bad) {
      const refused = await admin("POST", "/v1/agents", { body });
      assert.deepEqual(
        [refused.status, refused.body.code],
        [422, "VALIDATION_FAILED"],
        JSON.stringify(body).slice(0, 60),
      );
      assert.ok(
        refused.body.errors.some((e: { pointer: string }) => e.pointer.startsWith(pointer)),
        JSON.stringify(refused.body.errors),
      );
    }
    assert.equal((await admin("GET", "/v1/agents/ok")).status, 404);
    assert.equal((await admin("PATCH", "/v1/agents/nobody", { body: { name: "n" } })).body.code, "AGENT_NOT_FOUND");
    assert.equal((await admin("PATCH", "/v1/agents/self", { body: {} })).status, 422);
    assert.equal((await admin("POST", "/v1/agents", { body: { id: "self" } })).body.code, "AGENT_ID_TAKEN");
  });

  it("an agent with every member at its maximum fits a ledger entry", async () => {
    const wide = "\u{10000}".repeat(50);
    const body = {
      id: "😀".repeat(128),
      name: wide,
      description: "€".repeat(2000),
      allowed_tools: Array.from({ length: 100 }, () => "€".repeat(42)),
      metadata: { x: "y".repeat(16_000) },
    };
    const made = await admin("POST", "/v1/agents", { body });
    assert.equal(made.status, 201, JSON.stringify(made.body).slice(0, 300));
    const path = made.headers.get("location") as string;
    assert.equal((await admin("POST", `${path}/suspend`, { body: { reason: "€".repeat(500) } })).status, 200);
  });

  it("an idempotent retry registers once, and pages neither skip nor repeat an agent", async () => {
    const headers = { "idempotency-key": "agent-once" };
    const first = await admin("POST", "/v1/agents", { body: { id: "once" }, headers });
    const retry = await admin("POST", "/v1/agents", { body: { id: "once" }, headers });
    assert.deepEqual([first.status, retry.status, retry.headers.get("idempotency-replayed")], [201, 200, "true"]);
    const all: string[] = [];
    let path: string | null = "/v1/agents?limit=3";
    while (path !== null) {
      const page: Answer = await admin("GET", path);
      all.push(...page.body.agents.map((a: { id: string }) => a.id));
      path = /^<([^>]+)>/.exec(page.headers.get("link") ?? "")?.[1] ?? null;
    }
    assert.deepEqual(
      all,
      (await admin("GET", "/v1/agents?limit=1000")).body.agents.map((a: { id: string }) => a.id),
    );
    assert.equal(all[0], "once");
    assert.deepEqual(
      (await admin("GET", "/v1/agents?status=suspended&limit=1000")).body.agents
        .map((a: { status: string }) => a.status)
        .filter((s: string) => s !== "suspended"),
      [],
    );
  });
});

describe("require_registered_agents", () => {
  it("denies unregistered agents, with its own reason code", needs("replay"), async () => {
    const strict = await startService({ change: (config) => (config.require_registered_agents = true) });
    try {
      const unknown = await strict.call("POST", "/v1/actions", { body: ALLOWED });
      assert.deepEqual([unknown.body.decision, unknown.body.reason_code], ["deny", "AGENT_NOT_REGISTERED"]);
      await strict.call("POST", "/v1/agents", { key: strict.admin, body: { id: ALLOWED.agent_id } });
      assert.equal((await strict.call("POST", "/v1/actions", { body: ALLOWED })).body.decision, "allow");
      assert.equal(
        (await strict.call("POST", "/v1/replay", { key: strict.admin, body: { action_id: unknown.body.id } })).body
          .equal,
        true,
      );
    } finally {
      await strict.close();
    }
  });
});
