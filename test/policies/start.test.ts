/** Loading policies at startup: completely or not at all, and never a set that breaks decisions. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { needs } from "../support/features.ts";
import { ALLOWED, startService, addPerson } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const allow = (name: string, more = ""): string => `policy: ${name}\n${more}rules:\n  - name: r\n    effect: allow\n`;

function folderOf(files: Record<string, string>): {
  path: string;
  write(name: string, text: string): void;
  remove(): void;
} {
  const path = temporaryFolder("assent-policies-");
  const write = (name: string, text: string): void => writeFileSync(join(path, name), text);
  for (const [name, text] of Object.entries(files)) write(name, text);
  return { path, write, remove: () => rmSync(path, { recursive: true }) };
}

describe("a bad folder", () => {
  test("the service keeps the last valid policies, reports where the fault is, and recovers when it is fixed", async () => {
    const folder = folderOf({ "a.yaml": allow("a") });
    const service = await startService({ policies: folder.path });
    try {
      assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.policy, "a");
      const good = (await service.runtime.host.ledger.head()).policy_set;
      folder.write("b.yaml", "policy: b\nrules:\n  - name: r\n    efect: deny\n");
      await service.restart();
      // Before any request, because clients wait for readiness.
      const ready = await service.call("GET", "/readyz", { key: null });
      assert.deepEqual([ready.status, ready.body.policies.ok, ready.body.policies.policy_set], [200, true, good]);
      assert.ok(ready.body.policies.stale_since !== null);
      const answer = await service.call("POST", "/v1/actions", { body: ALLOWED });
      assert.deepEqual([answer.body.status, answer.body.policy_hash], ["allowed", good]);
      assert.ok(
        service.logged.some((line) => line.includes("policies were rejected") && line.includes("b.yaml:4:5")),
        "the log names file, line and column",
      );
      folder.write("b.yaml", allow("b"));
      await service.restart();
      assert.equal((await service.call("GET", "/readyz", { key: null })).body.policies.stale_since, null);
      assert.notEqual((await service.runtime.host.ledger.head()).policy_set, good);
    } finally {
      await service.close();
      folder.remove();
    }
  });

  test("on the first start denies everything, recorded, and is not ready", needs("replay"), async () => {
    const folder = folderOf({ "a.yaml": "policy: [" });
    const service = await startService({ policies: folder.path });
    try {
      const answer = await service.call("POST", "/v1/actions", { body: ALLOWED });
      assert.deepEqual(
        [answer.status, answer.body.status, answer.body.reason_code, answer.body.policy_hash],
        [200, "denied", "NO_ACTIVE_POLICY", null],
      );
      assert.equal((await service.call("GET", "/readyz", { key: null })).status, 503);
      const replayed = await service.call("POST", "/v1/replay", {
        key: service.admin,
        body: { action_id: answer.body.id },
      });
      assert.equal(replayed.body.equal, true);
    } finally {
      await service.close();
      folder.remove();
    }
  });

  test("on the first start is fixed through the API, and the service is ready immediately", async () => {
    const folder = folderOf({ "a.yaml": "policy: [" });
    const service = await startService({ policies: folder.path });
    try {
      const body = { policy: "b", rules: [{ name: "r", effect: "allow" }] };
      const made = await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      const ready = await service.call("GET", "/readyz", { key: null });
      assert.deepEqual([ready.status, ready.body.policies.active], [200, 1]);
      assert.equal(ready.body.policies.policy_set, (await service.storage.head()).policy_set);
    } finally {
      await service.close();
      folder.remove();
    }
  });

  test("a failing test counts as a fault", async () => {
    const folder = folderOf({
      "a.yaml": allow("a"),
      "a_test.yaml":
        "now: 2026-01-01T00:00:00Z\ncases:\n  - name: c\n    action: { agent_id: a, tool: t, operation: o }\n    expect: { effect: deny }\n",
    });
    const service = await startService({ policies: folder.path });
    try {
      assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.reason_code, "NO_ACTIVE_POLICY");
    } finally {
      await service.close();
      folder.remove();
    }
  });
});

test("a set that could make an entry too large is rejected, and the largest accepted set still decides", async () => {
  const shadows = Array.from({ length: 101 }, (_, i) =>
    allow(`shadow-${String(i).padStart(3, "0")}-${"x".repeat(50)}`, "mode: shadow\n"),
  );
  const long = "é".repeat(1000);
  const channels = Array.from({ length: 20 }, (_, i) => JSON.stringify("ö".repeat(90) + i)).join(", ");
  const asks = Array.from(
    { length: 5 },
    (_, p) =>
      `policy: asks-${p}\nrules:\n  - name: ${"r".repeat(100)}\n    effect: require_approval\n    reason: ${long}\n    approval: { notify: [${channels.replaceAll("ö", String.fromCharCode(0x100 + p))}] }\n`,
  );
  const folder = folderOf({ "s.yaml": shadows.join("---\n"), "a.yaml": asks.join("---\n") });
  const service = await startService({ policies: folder.path });
  try {
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.reason_code, "NO_ACTIVE_POLICY");
    assert.ok(service.logged.some((line) => line.includes("101st policy in shadow mode")));
    folder.write("s.yaml", shadows.slice(1).join("---\n"));
    await service.restart();
    const name = "漢".repeat(256);
    const answer = await service.call("POST", "/v1/actions", { body: { agent_id: name, tool: name, operation: name } });
    assert.equal(answer.status, 202, JSON.stringify(answer.body).slice(0, 300));
    const token = (await service.call("GET", `/v1/actions/${answer.body.id}`, { key: service.admin })).body
      .approval_token as string;
    const vote = await service.call("POST", `/v1/actions/${answer.body.id}/approval`, {
      key: service.admin,
      body: { token, approve: true, reason: "\u0001".repeat(2000) },
    });
    assert.equal(vote.status, 200);
  } finally {
    await service.close();
    folder.remove();
  }
});

test(
  "a decision fits its entry for all names in the set, the request and the agent's registration",
  needs("agents"),
  async () => {
    const wide = "漢".repeat(96);
    const limits = Array.from(
      { length: 50 },
      (_, i) =>
        `  - { name: "${wide}${i}", count: 1, window: 1h, per: params.customer, effect: require_approval, reason: "${"\\u0001".repeat(1000)}", approval: { notify: ["${wide}-${i}"] } }\n`,
    ).join("");
    const shadows = (count: number): string =>
      Array.from(
        { length: count },
        (_, i) =>
          `policy: ${String(i).padEnd(64, "s")}\nmode: shadow\nrules: [{ name: short, effect: allow }, { name: "${wide}", effect: allow }]\n`,
      ).join("---\n");
    const folder = folderOf({
      "a.yaml": `policy: ${"a".repeat(64)}\nrules: [{ name: all, effect: allow }]\nlimits:\n${limits}`,
      "s.yaml": shadows(100),
    });
    const service = await startService({ policies: folder.path });
    try {
      assert.ok(service.logged.some((line) => line.includes("take more than 38000 bytes in the record of a decision")));
      let count = 5;
      for (; ; count--) {
        folder.write("s.yaml", shadows(count));
        await service.restart();
        if ((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.reason_code !== "NO_ACTIVE_POLICY")
          break;
      }
      assert.ok(count < 5, "begin with more: this must be the largest accepted set");
      const name = "漢".repeat(256);
      const tools = ["*", ...Array.from({ length: 99 }, (_, i) => String(i).padEnd(128, "t"))];
      assert.equal(
        (await service.call("POST", "/v1/agents", { key: service.admin, body: { id: name, allowed_tools: tools } }))
          .status,
        201,
      );
      const { key } = (
        await service.call("POST", "/v1/api-keys", {
          key: service.admin,
          body: { name: "漢".repeat(100), preset: "agent", agent_id: name, owner: await addPerson(service, "漢") },
        })
      ).body;
      for (const effect of ["allow", "require_approval", "deny"]) {
        const { status, body } = await service.call("POST", "/v1/actions", {
          key,
          body: { agent_id: name, tool: name, operation: name, params: { customer: name } },
        });
        assert.equal(body.decision, effect, `${status} ${JSON.stringify(body).slice(0, 300)}`);
        if (effect === "deny") assert.equal(body.denied_by, "earlier_rejection");
        if (effect !== "require_approval") continue;
        const approver = { name: "approver", preset: "approver" };
        const { key: decides } = (await service.call("POST", "/v1/api-keys", { key: service.admin, body: approver }))
          .body;
        const { approval_token: token } = (await service.call("GET", `/v1/actions/${body.id}`, { key: decides })).body;
        const rejected = { token, approve: false, reason: "漢".repeat(2000) };
        const vote = await service.call("POST", `/v1/actions/${body.id}/approval`, { key: decides, body: rejected });
        assert.equal(vote.status, 200, JSON.stringify(vote.body));
      }
      const sizes = (await service.storage.entries(0, 1000)).map(({ bytes }) => bytes.length);
      assert.ok(Math.max(...sizes) > 35_000, `it was to be a large one: ${Math.max(...sizes)}`);
    } finally {
      await service.close();
      folder.remove();
    }
  },
);

test("a policy that is removed from the folder stops deciding, and the ledger records when", async () => {
  const folder = folderOf({ "a.yaml": allow("a"), "b.yaml": allow("b").replace("allow", "deny") });
  const service = await startService({ policies: folder.path });
  try {
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.status, "denied");
    rmSync(join(folder.path, "b.yaml"));
    await service.restart();
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.status, "allowed");
    folder.write("b.yaml", allow("b").replace("allow", "deny"));
    await service.restart();
    const again = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body;
    assert.deepEqual([again.status, again.policy_version], ["denied", 1], "unchanged content is the same version");
    const sets = (await service.storage.entries(0, 50))
      .filter(({ type }) => type === "policy_set")
      .map(
        ({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)) as { previous: string | null; policy_set: string },
      );
    assert.equal(sets.length, 3);
    assert.equal(sets[1]?.previous, sets[0]?.policy_set);
    assert.equal(sets[2]?.policy_set, sets[0]?.policy_set, "the same policies are the same set");
  } finally {
    await service.close();
    folder.remove();
  }
});

describe("policies of a source that is no longer configured", () => {
  test("stay active, can be changed through the API, and can be taken over by another source", async () => {
    const folder = folderOf({ "a.yaml": allow("a"), "b.yaml": allow("b") });
    const service = await startService({ policies: folder.path });
    try {
      const policy = async (name: string) =>
        (await service.call("GET", `/v1/policies/${name}`, { key: service.admin })).body;
      assert.equal((await policy("a")).managed_by, "policy-files");
      const { host } = service.runtime;
      // As a service without policy-files sees it: another source offers the same policy `a`.
      const offered = {
        policies: [{ document: JSON.parse(JSON.stringify((await policy("a")).definition)), origin: "a" }],
        source: { kind: "git", commit: "c1" },
      };
      await assert.rejects(host.policies.activate("policy-git", offered, null), /belong to another source/);
      (host.policies.sources as string[]).splice(0, 1, "policy-git");
      assert.equal((await policy("b")).managed_by, null);
      const before = (await host.ledger.head()).policy_set;
      assert.equal(await host.policies.activate("policy-git", offered, null), before);
      assert.deepEqual([(await policy("a")).managed_by, (await policy("b")).status], ["policy-git", "active"]);
      assert.equal((await service.call("POST", "/v1/policies/b/deactivate", { key: service.admin })).status, 200);
      assert.equal(
        (await service.call("POST", "/v1/policies/a/deactivate", { key: service.admin })).body.code,
        "POLICY_MANAGED",
      );
    } finally {
      await service.close();
      folder.remove();
    }
  });
});
