/**
 * Fills a store with a row of every kind: everything that a feature writes, and every state of an action.
 * @needs agents, authority, grants, plans, questions, reviewers, retention, stop, sub-agents, suggestions, tasks, users
 */
import { ok } from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Vault } from "../../src/contract/core-host.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { eraseActionParts } from "../../plugins/retention/erase.ts";
import users from "../../plugins/users/index.ts";
import { definePlugin, type Plugin } from "../../src/plugin.ts";
import { testNotifier } from "./notifier.ts";
import { addPerson, person, waitForSignature, startService, type Answer, type Service } from "./service.ts";
import { until } from "./wait.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const POLICY = `policy: spending
history: { per: agent, window: 30d, max: 200 }
rules:
  - { name: many, tool: pay, when: 'history.any(h, has(h.params) && has(h.params.amount) && h.params.amount > 1000000)', effect: deny }
  - { name: pay, tool: pay, effect: allow }
  - { name: ask, tool: ask, effect: require_approval, approval: { expires_in: 1h, notify: [people] } }
  - { name: two, tool: two, effect: require_approval, approval: { quorum: 2, expires_in: 2h } }
  - { name: granted, tool: granted, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: reviewed, tool: reviewed, effect: require_approval, approval: { reviewers: [{ name: guard, may_approve: true }] } }
limits:
  - { name: often, tool: pay, per: agent, count: 1000, window: 30d }
  - { name: sum, tool: ask, sum: params.amount, per: params.customer, at_most: 100000, window: 7d }
`;

/**
 * Fills a store, calls `keep` while nothing writes to the store, then audits and closes it. Returns the log's
 * verification key, and the service's vault, which seals rows.
 */
export async function fillStore(
  storage: (folder: string) => Storage,
  keep: (service: Service) => Promise<void> = () => Promise.resolve(),
): Promise<{ vkey: string; vault: Pick<Vault, "mac"> }> {
  const policies = temporaryFolder("assent-every-row-");
  writeFileSync(join(policies, "spending.yaml"), POLICY);
  const pigeon = testNotifier();
  const keeper = definePlugin({
    name: "keeper",
    setup: (host) => ({
      start: async () => {
        await host.transact(null, async (tx) => void (await tx.documents.put("a", {}, null)));
      },
    }),
  });
  const guard = definePlugin({
    name: "guard",
    setup: () => ({
      reviewers: [
        {
          name: "guard",
          version: "1",
          review: ({ action }) =>
            Promise.resolve({
              answer: action.params["bad"] === true ? ("deny" as const) : ("approve" as const),
              reason: "seen",
            }),
        },
      ],
    }),
  });
  const service = await startService({
    storage,
    policies,
    plugins: [
      pigeon.plugin,
      { plugin: guard as Plugin, options: {}, origin: "guard" },
      { plugin: keeper as Plugin, options: {}, origin: "keeper" },
      { plugin: users as Plugin, options: {}, origin: "users", core: true },
    ],
    change(config) {
      config.approvals.trust_key_makers = true;
      config.channels = {
        people: {
          notifier: "pigeon",
          people: [{ owner: person("Anna"), to: "anna" }],
          places: [{ to: "room" }],
          remind_before: "10m",
        },
      } as never;
    },
  });
  let name = 0;
  const call = async (
    method: string,
    path: string,
    body: object | undefined,
    { key = service.admin, headers = {} }: { key?: string; headers?: Record<string, string> } = {},
  ): Promise<Answer["body"]> => {
    const answer = await service.call(method, path, { key, headers, ...(body === undefined ? {} : { body }) });
    ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const once = (): Record<string, string> => ({ "Idempotency-Key": `once-${++name}` });
  const approver = async (name: string): Promise<string> => {
    const owner = await addPerson(service, name);
    const body = { name, preset: "approver", owner, expires_at: "2999-01-01T00:00:00Z" };
    return (await call("POST", "/v1/api-keys", body)).key as string;
  };
  const submit = (tool: string, more: object = {}, headers: Record<string, string> = {}): Promise<Answer["body"]> =>
    call(
      "POST",
      "/v1/actions",
      { agent_id: "bot", tool, operation: "do", params: { amount: 1.5, customer: `c${++name}` }, ...more },
      { key: service.agent, headers },
    );
  const vote = async (id: string, key: string, approve: boolean): Promise<void> => {
    const token = (await call("GET", `/v1/actions/${id}`, undefined, { key })).approval_token as string;
    await call("POST", `/v1/actions/${id}/approval`, { token, approve, reason: "seen" }, { key });
  };
  const ask = async (id: string, key: string): Promise<void> => {
    await call("POST", `/v1/actions/${id}/questions`, { question: "why?" }, { key });
    await call("POST", `/v1/actions/${id}/answers`, { answer: "because" }, { key: service.agent });
  };
  const run = async (id: string, success: boolean | null): Promise<void> => {
    const key = service.agent;
    await call("POST", `/v1/actions/${id}/start`, {}, { key });
    if (success === null) return;
    const report = success ? { success, meta: { note: "done" } } : { success, error: "it broke" };
    await call("POST", `/v1/actions/${id}/result`, report, { key });
  };

  try {
    const [anna, ben] = [await approver("Anna"), await approver("Ben")];
    await call("POST", "/v1/api-keys", { name: "bound", preset: "agent", agent_id: "bot" }, { headers: once() });
    const gone = await call("POST", "/v1/api-keys", { name: "gone", scopes: ["actions:read", "metrics:read"] });
    await call("DELETE", `/v1/api-keys/${gone.id as string}`, undefined);

    const bot = { id: "bot", description: "does things", allowed_tools: ["*"], metadata: { team: "a" } };
    await call("POST", "/v1/agents", bot, { headers: once() });
    await call("PATCH", "/v1/agents/bot", { name: "Bot", metadata: { team: "b" } });
    await call("POST", "/v1/agents", { id: "idle" });
    await call("POST", "/v1/agents/idle/suspend", { reason: "not needed" });
    await call("POST", "/v1/agents", { id: "back" });
    await call("POST", "/v1/agents/back/suspend", { reason: "by mistake" });
    await call("POST", "/v1/agents/back/resume", undefined);

    const halt = { reason: "drill", agent: "nobody", until: "2999-01-01T00:00:00Z" };
    const stopped = (await call("POST", "/v1/stop", halt, { headers: once() })).id as string;
    await call("POST", `/v1/stop/${stopped}/lift`, { reason: "over" });

    await call("POST", "/v1/authority/proposals", { agent_id: "bot", tool: "t", operation: "o", reason: "often" });

    const named = (policy: string, tool = "none") => ({ policy, rules: [{ name: "r", tool, effect: "deny" }] });
    await call("POST", "/v1/policies", named("stored"), { headers: once() });
    await call("PUT", "/v1/policies/stored", named("stored", "other"));
    await call("POST", "/v1/policies?activate=true", named("active"), { headers: once() });
    await call("PUT", "/v1/policies/active?activate=true", named("active", "other"));
    await call("POST", "/v1/policies/active/activate", { version: 1 });
    for (const policy of ["off", "deleted", "again", "unused"])
      await call("POST", `/v1/policies${policy === "unused" ? "" : "?activate=true"}`, named(policy));
    await call("POST", "/v1/policies/off/deactivate", undefined);
    for (const policy of ["deleted", "again", "unused"]) await call("DELETE", `/v1/policies/${policy}`, undefined);
    await call("POST", "/v1/policies", named("again"));
    await call("POST", "/v1/policies/import-yaml", {
      yaml: "policy: imported\nrules: [{ name: r, effect: deny, tool: x }]\n",
    });

    const terms = { agent_id: "bot", tool: "granted", operation: "do", for: "8h", count: 5 };
    const sum = { of: "params.amount", at_most: 50 };
    await call("POST", "/v1/grants", { ...terms, scope: "params.amount < 9", sum }, { key: anna, headers: once() });
    for (let i = 0; i < 3; i++) await run((await submit("granted")).id as string, true);
    const brief = (await call("POST", "/v1/grants", { ...terms, operation: "other" }, { key: anna })).id as string;
    await call("POST", `/v1/grants/${brief}/revoke`, { reason: "too wide" }, { key: ben });
    const operations = [{ tool: "granted", operation: "release", count: 2, scope: "params.amount < 9" }];
    const release = { agent_id: "bot", title: "release", for: "1h", operations };
    const task = (await call("POST", "/v1/tasks", release, { key: anna, headers: once() })).id as string;
    await call("POST", `/v1/tasks/${task}/end`, { reason: "released" }, { key: ben });

    const boss = await call("POST", "/v1/api-keys", { name: "boss", preset: "agent", agent_id: "boss" });
    const part = { agent_id: "bot", for: "1h", tools: ["pay", "ask"], limits: { count: 9 } };
    const asBoss = { key: boss.key as string, headers: once() };
    const authority = (await call("POST", "/v1/authorities", part, asBoss)).id as string;
    await submit("pay", { authority });
    await submit("ask", { authority });
    const over = (await call("POST", "/v1/authorities", part, { key: boss.key as string })).id as string;
    await submit("ask", { authority: over });
    await call("DELETE", `/v1/authorities/${over}`, undefined);

    const rule = {
      name: "small",
      tool: "ask",
      operation: "do",
      agent: "learner",
      when: "params.amount < 2",
      effect: "allow",
    };
    const suggested = {
      policy: "suggested",
      suggested: { in_place_of: { policy: "spending", rule: "ask" } },
      rules: [rule],
    };
    await call("POST", "/v1/policies?activate=true", { ...suggested, mode: "shadow" });
    await call("PUT", "/v1/policies/suggested?activate=true", suggested);
    const use = (await submit("ask", { agent_id: "learner" })).id as string;
    await run(use, true);
    await call("POST", "/v1/suggested-rules/suggested/flag", { action_id: use, reason: "not this" }, { key: anna });
    await call("POST", "/v1/suggested-rules/suggested/restore", { reason: "it was right" });
    await run((await submit("ask", { agent_id: "learner" })).id as string, false);
    await call("POST", "/v1/stop", { reason: "drill", agent: "learner", until: "2999-01-01T00:00:00Z" });

    const step = (tool: string) => ({ agent_id: "bot", tool, operation: "do", params: { amount: 1, customer: "p" } });
    const listed = { actions: [step("pay"), step("ask"), step("two")], ordered: true };
    const plan = await call("POST", "/v1/plans", listed, { key: service.agent, headers: once() });
    const { approval_token: token } = await call("GET", `/v1/plans/${plan.id as string}`, undefined, { key: anna });
    const answer = { token, approve: true, strikes: [{ position: 2, reason: "no" }] };
    await call("POST", `/v1/plans/${plan.id as string}/approval`, answer, { key: anna });

    await submit("pay", {}, once());
    await submit("unknown", {}, once());
    await run((await submit("pay")).id as string, null);
    await run((await submit("pay", { context: { b: 1, a: [2, "ü"] }, meta: { session: "s1" } })).id as string, true);
    await submit("ask", {}, once());
    const cancelled = await submit("ask");
    await call("POST", `/v1/actions/${cancelled.id as string}/cancel`, { reason: "no need" }, { key: service.agent });
    await vote((await submit("ask")).id as string, anna, false);
    await vote((await submit("ask")).id as string, anna, true);
    const failed = await submit("two", { params: { z: 1, a: 2 } });
    await ask(failed.id as string, anna);
    await vote(failed.id as string, anna, true);
    await vote(failed.id as string, ben, true);
    await run(failed.id as string, false);
    await vote((await submit("two")).id as string, ben, true);
    for (const [bad, status] of [
      [false, "approved"],
      [true, "denied"],
    ] as const) {
      const { id } = await submit("reviewed", { params: { bad } });
      await until(
        "the reviewer has voted",
        async () => (await call("GET", `/v1/actions/${id as string}`, undefined)).status === status,
      );
    }
    const expired = await submit("ask");
    service.clock.now += 3_600_000 + 60_000;
    await until("the expiry is recorded", async () => {
      ok((await call("GET", `/v1/actions/${expired.id as string}`, undefined)).status === "expired");
      return (await service.storage.action(expired.id as string))?.status === "expired";
    });
    const erase = (id: string): Promise<unknown> => call("POST", `/v1/actions/${id}/erase`, { reason: "ticket 7" });
    const done = (await submit("pay", { meta: { host: "h" } }, once())).id as string;
    await run(done, true);
    await erase(done);
    await erase(cancelled.id as string);
    const trimmed = (await submit("pay", { meta: { host: "h" } })).id as string;
    await run(trimmed, true);
    await service.runtime.host.ledger.transact((tx) =>
      eraseActionParts(service.runtime.host, tx, [trimmed], "result", "the configuration keeps results for 1 days"),
    );
    const hold = async (scope: object): Promise<string> =>
      (await call("POST", "/v1/holds", { reason: "case 7", ...scope }, { headers: once() })).id as string;
    await hold({ agent: "idle" });
    await hold({ subject: "anna@example.org" });
    const settled = await hold({ action: failed.id as string });
    await call("POST", `/v1/holds/${settled}/release`, { reason: "settled" });
    // Submitted after the expiries above, so that an action is still pending at the end.
    await submit("ask");
    await vote((await submit("two")).id as string, anna, true);
    await waitForSignature(service);
    // Adds what a witness and a repair write.
    const { note } = await service.runtime.host.ledger.checkpoint();
    await service.storage.write(async (tx) => {
      await tx.putMeta("cosigned_checkpoint", note);
      await tx.putMeta("repairs", "[]");
    });
    await keep(service);
    return { vkey: service.runtime.host.ledger.vkey, vault: service.runtime.host.vault };
  } finally {
    await service.close();
    rmSync(policies, { recursive: true });
  }
}
