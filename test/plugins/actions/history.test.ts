/** Histories of policies through the API: what conditions read of past actions, and what an agent cannot change about them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { makeKey, plainVotes, startService, type Service } from "../../support/service.ts";

const POLICY = `policy: mail
history: { per: session, tool: [inbox, odd], window: 24h, max: 50 }
rules:
  - { name: leak, tool: mail, when: 'history.any(h, h.tool == "inbox" && h.may_have_run)', effect: deny, reason: no e-mail after reading the inbox }
  - { name: mail, tool: mail, effect: allow }
  - { name: inbox, tool: inbox, effect: allow }
---
policy: transfers
history: { per: 'tool == "crm" ? params.account : params.to', tool: [crm, bank], window: 1h, max: 5 }
rules:
  - name: known account
    tool: bank
    when: 'history.any(h, h.tool == "crm" && h.operation == "lookup" && h.status == "succeeded")'
    effect: allow
  - { name: lookup, tool: crm, effect: allow }
---
policy: attempts
history: { per: agent, tool: deploy, window: 1h, max: 20 }
rules:
  - { name: too many, tool: deploy, when: 'history.count(h, h.status == "failed" && h.params.host == params.host) >= 2', effect: require_approval }
  - { name: deploy, tool: deploy, effect: allow }
---
policy: spending
history: { per: key, tool: pay, window: 1h, max: 20 }
rules:
  - name: at most 100 an hour, after a pause
    tool: pay
    when: >-
      history.sum(h, h.operation == "out", h.params.amount) + double(params.amount) <= 100.0 &&
      (!history.any(h, h.operation == "out") || now - history.last(h, h.operation == "out").at >= duration("10s"))
    effect: allow
  - { name: more, tool: pay, effect: require_approval, approval: { expires_in: 2h } }
---
policy: ask
rules:
  - { name: ask, tool: asked-inbox, effect: require_approval }
`;

describe("histories", () => {
  let service: Service;
  let host: string;
  before(async () => {
    service = await startService({ policy: POLICY, change: plainVotes });
    host = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "hook", scopes: ["sessions:issue"] },
      })
    ).body.key as string;
  });
  after(() => service.close());

  const submit = async (body: object, session?: string, key = service.agent) =>
    (
      await service.call("POST", "/v1/actions", {
        key,
        body: { agent_id: "a", operation: "x", ...body },
        headers: session === undefined ? {} : { "assent-session": session },
      })
    ).body;

  const run = async (body: object, success: boolean, session?: string): Promise<string> => {
    const { id } = await submit(body, session);
    await service.call("POST", `/v1/actions/${id}/start`, { body: {} });
    await service.call("POST", `/v1/actions/${id}/result`, { body: { success } });
    return id as string;
  };

  const agentKeyId = async (): Promise<string> => (await service.call("GET", "/v1/me")).body.key.id as string;

  const startSession = async (body: object, key = host): Promise<string> => {
    const { body: issued } = await service.call("POST", "/v1/agent-sessions", {
      key,
      body: { key_id: await agentKeyId(), ...body },
    });
    assert.match(issued.token, /^ses1_/, JSON.stringify(issued));
    return issued.token as string;
  };

  test("no e-mail after reading the inbox in this session", async () => {
    const [one, two] = [await startSession({ name: "one" }), await startSession({ name: "two" })];
    assert.equal((await submit({ tool: "mail" }, one)).decision, "allow");
    assert.equal((await submit({ tool: "inbox" }, one)).decision, "allow");
    const denied = await submit({ tool: "mail", operation: "y" }, one);
    assert.deepEqual(
      [denied.decision, denied.rule, denied.reason],
      ["deny", "leak", "no e-mail after reading the inbox"],
    );
    assert.equal((await submit({ tool: "mail" }, two)).decision, "allow", "another session has not read it");
    // A repeated request does not return the allowed action of a session that had not read the inbox.
    const joined = await service.call("POST", "/v1/actions?join=open", {
      body: { agent_id: "a", tool: "mail", operation: "x" },
      headers: { "assent-session": one },
    });
    assert.equal(joined.body.decision, "deny");
  });

  test(
    "an action of a plan is in the history of the next one, and a plan needs the session's token too",
    needs("plans"),
    async () => {
      const plan = async (tools: string[], session?: string) => {
        const { body } = await service.call("POST", "/v1/plans", {
          body: { actions: tools.map((tool) => ({ agent_id: "a", tool, operation: "x" })) },
          headers: session === undefined ? {} : { "assent-session": session },
        });
        return (body.actions as { decision: string; rule: string }[]).map(({ decision, rule }) => [decision, rule]);
      };
      const token = await startSession({ name: "planned" });
      assert.deepEqual(await plan(["mail", "inbox", "mail"], token), [
        ["allow", "mail"],
        ["allow", "inbox"],
        ["deny", "leak"],
      ]);
      assert.equal((await submit({ tool: "mail" }, token)).rule, "leak");
      assert.deepEqual(await plan(["inbox"]), [["deny", "history"]]);
      const forged = await service.call("POST", "/v1/plans", {
        body: { actions: [{ agent_id: "a", tool: "mail", operation: "x" }] },
        headers: { "assent-session": `${token}x` },
      });
      assert.equal(forged.body.code, "INVALID_SESSION_TOKEN");
    },
  );

  test("an agent cannot leave its session by omitting, changing, inventing or requesting a token", async () => {
    const token = await startSession({ name: "kept" });
    const without = await submit({ tool: "inbox" });
    assert.deepEqual([without.decision, without.reason_code, without.rule], ["deny", "CONDITION_ERROR", "history"]);
    assert.match(without.reason, /the request has no session token/);
    assert.equal((await submit({ tool: "mail" })).reason_code, "CONDITION_ERROR");
    const [head, mac] = token.slice(5).split(".") as [string, string];
    const claims = JSON.parse(Buffer.from(head, "base64url").toString()) as unknown[];
    const other = Buffer.from(JSON.stringify(["0".repeat(32), ...claims.slice(1)])).toString("base64url");
    for (const forged of [`ses1_${other}.${mac}`, `ses1_${head}.${mac.slice(0, -2)}AA`, "ses1_", "x", token.slice(5)])
      assert.equal((await submit({ tool: "mail" }, forged)).code, "INVALID_SESSION_TOKEN", forged);
    assert.equal((await submit({ tool: "mail" }, token, service.admin)).code, "INVALID_SESSION_TOKEN");
    const own = await service.call("POST", "/v1/agent-sessions", { key: service.agent, body: {} });
    assert.deepEqual([own.status, own.body.code], [403, "INSUFFICIENT_SCOPE"]);
    const again = await service.call("POST", "/v1/agent-sessions", {
      key: host,
      body: { key_id: await agentKeyId(), name: "kept", expires_in: 60 },
    });
    const { body } = await service.call("POST", "/v1/agent-sessions", {
      key: host,
      body: { key_id: await agentKeyId(), name: "kept" },
    });
    assert.equal(again.body.session_id, body.session_id, "the same name continues the session");
    service.clock.now += 61_000;
    assert.equal((await submit({ tool: "mail" }, again.body.token)).code, "INVALID_SESSION_TOKEN");
    assert.equal((await submit({ tool: "mail" }, token)).decision, "allow");
  });

  test("a key that is bound to an agent starts no session for another agent's key", async () => {
    const bound = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "bound hook", scopes: ["sessions:issue"], agent_id: "other" },
    });
    const answer = await service.call("POST", "/v1/agent-sessions", {
      key: bound.body.key,
      body: { key_id: await agentKeyId() },
    });
    assert.deepEqual([answer.status, answer.body.code], [404, "KEY_NOT_FOUND"]);
  });

  test("a transfer only to an account that was looked up within the hour", async () => {
    const transfer = (to: string) => submit({ tool: "bank", operation: "transfer", params: { to } });
    assert.equal((await transfer("acc-1")).reason_code, "NO_MATCHING_RULE");
    await run({ tool: "crm", operation: "lookup", params: { account: "acc-2" } }, true);
    await run({ tool: "crm", operation: "lookup", params: { account: "acc-1" } }, true);
    assert.equal((await transfer("acc-1")).decision, "allow");
    assert.equal((await transfer("acc-3")).decision, "deny");
    service.clock.now += 3_600_001;
    assert.equal((await transfer("acc-1")).decision, "deny");
  });

  test("a history with more actions than its maximum is unknown, so conditions fail", async () => {
    for (let i = 0; i < 6; i++) await run({ tool: "crm", operation: "lookup", params: { account: "acc-9" } }, true);
    const { reason_code, reason } = await submit({ tool: "bank", params: { to: "acc-9" } });
    assert.equal(reason_code, "CONDITION_ERROR");
    assert.match(reason, /the history has more actions than its max/);
  });

  test("an action whose owner cannot be determined is denied, because its history would forget it", async () => {
    const { reason_code, rule } = await submit({ tool: "crm", operation: "lookup", params: { acount: "acc-1" } });
    assert.deepEqual([reason_code, rule], ["CONDITION_ERROR", "history"]);
  });

  test("the third failed attempt requires approval", needs("replay"), async () => {
    const deploy = { tool: "deploy", params: { host: "web-1", secret: "hidden-value" } };
    for (let i = 0; i < 2; i++) await run(deploy, false);
    assert.equal((await submit({ tool: "deploy", params: { host: "web-2" } })).decision, "allow");
    const third = await submit(deploy);
    assert.deepEqual([third.decision, third.rule], ["require_approval", "too many"]);
    const row = await service.storage.action(third.id);
    // Only the members that conditions read are stored, and the ledger has a commitment.
    assert.match(row?.past ?? "", /web-1/);
    assert.doesNotMatch(row?.past ?? "", /hidden-value/);
    const { body } = await service.call("GET", `/v1/actions/${third.id}/events`, { key: service.admin });
    assert.match(body.events[0].entry.facts.past, /^[0-9a-f]{64}$/);
    assert.doesNotMatch(JSON.stringify(body.events), /web-1|"history"/);
    const { body: replayed } = await service.call("POST", "/v1/replay", {
      key: service.admin,
      body: { action_id: third.id, policy_set: "current" },
    });
    assert.deepEqual([replayed.equal, replayed.now.changed, replayed.histories[0].actions.length], [true, false, 3]);
    assert.equal((await submit({ ...deploy, agent_id: "A" })).rule, "too many", "another spelling of the same agent");
  });

  test("sum and last read numbers and times", async () => {
    const pay = (amount: number) => submit({ tool: "pay", operation: "out", params: { amount } });
    assert.equal((await pay(60)).decision, "allow");
    assert.equal((await pay(1.5)).decision, "require_approval", "within ten seconds of the last one");
    service.clock.now += 11_000;
    assert.equal((await pay(38.5)).decision, "allow");
    service.clock.now += 11_000;
    assert.equal((await pay(0.5)).decision, "require_approval");
  });

  test("a pause counts from the start of the last action", async () => {
    const { key } = await makeKey(service, { name: "pauses", preset: "agent" });
    const pay = () => submit({ tool: "pay", operation: "out", params: { amount: 1 } }, undefined, key);
    const { id } = await pay();
    service.clock.now += 60_000;
    assert.equal((await service.call("POST", `/v1/actions/${id}/start`, { key, body: {} })).status, 200);
    assert.equal((await pay()).decision, "require_approval");
    service.clock.now += 11_000;
    assert.equal((await pay()).decision, "allow");
  });

  test("an agent cannot lower a sum with a negative amount or a string", async () => {
    for (const amount of [-1_000_000, "NaN"]) {
      const { key } = await makeKey(service, { name: `amount ${amount}`, preset: "agent" });
      const pay = (paid: unknown) =>
        submit({ tool: "pay", operation: "out", params: { amount: paid } }, undefined, key);
      await pay(amount);
      service.clock.now += 11_000;
      assert.equal((await pay(1)).reason_code, "CONDITION_ERROR", String(amount));
    }
  });

  test("concurrent actions of one agent are counted one after the other", async () => {
    const body = { agent_id: "crowd", tool: "pay", operation: "out", params: { amount: 60 } };
    const { key } = await makeKey(service, { name: "crowd", preset: "agent" });
    const answers = await Promise.all(Array.from({ length: 10 }, () => submit(body, undefined, key)));
    assert.deepEqual(answers.map(({ decision }) => decision).sort(), ["allow", ...Array(9).fill("require_approval")]);
  });

  test("a permit and a start are decided with the history of that moment", async () => {
    const token = await startSession({ name: "later" });
    const mail = await submit({ tool: "mail", operation: "later" }, token);
    assert.equal(mail.decision, "allow");
    await submit({ tool: "inbox" }, token);
    const started = await service.call("POST", `/v1/actions/${mail.id}/start`, { body: {} });
    assert.deepEqual([started.status, started.body.code], [409, "NO_LONGER_ALLOWED"]);
  });

  test("a preview reads the history and adds nothing to it", async () => {
    const body = { agent_id: "preview", tool: "deploy", operation: "x", params: { host: "h" } };
    for (let i = 0; i < 3; i++)
      assert.equal((await service.call("POST", "/v1/gate/decide", { body })).body.outcome, "EXECUTE");
  });

  test("an action counts from its start, so a window cannot pass while it waits", async () => {
    const read = await submit({ tool: "inbox" }, await startSession({ name: "slow" }));
    service.clock.now += 200_000;
    assert.equal((await service.call("POST", `/v1/actions/${read.id}/start`, { body: {} })).status, 200);
    service.clock.now += 86_400_000 - 100_000;
    assert.equal((await submit({ tool: "mail" }, await startSession({ name: "slow" }))).rule, "leak");
    service.clock.now += 100_001;
    assert.equal((await submit({ tool: "mail" }, await startSession({ name: "slow" }))).rule, "mail");
  });

  test(
    "an erased action is in no condition, and a search finds the copies that later decisions read",
    needs("retention"),
    async () => {
      const lookup = await run({ tool: "crm", operation: "lookup", params: { account: "anna@example.org" } }, true);
      const deploy = { tool: "deploy", params: { host: "anna@example.org" } };
      const first = await run(deploy, false);
      const second = await run(deploy, false);
      const erase = async (body: object) =>
        (
          await service.call("POST", "/v1/erasures", {
            key: service.admin,
            body: { ...body, dry_run: false, reason: "r" },
          })
        ).body;
      // The copy in the later action cannot be removed to evade a legal hold.
      const { past, status, updated_at } = (await service.storage.action(second)) ?? assert.fail();
      const change = (text: string | null) =>
        service.storage.write((tx) => tx.updateAction(second, { status }, { status, updated_at, past: text }));
      await change(null);
      const refused = await service.call("POST", `/v1/actions/${second}/erase`, {
        key: service.admin,
        body: { reason: "r" },
      });
      assert.equal(refused.body.code, "RECORD_ALTERED");
      await change(past);
      const { erased } = await erase({ value: "anna@example.org", pointer: "/params/host" });
      assert.equal(erased, 2);
      assert.equal((await erase({ value: "anna@example.org" })).erased, 1);
      for (const id of [lookup, first, second])
        assert.deepEqual(
          [(await service.storage.action(id))?.past, (await service.storage.action(id))?.request],
          [null, ""],
        );
      // The condition reads a member that is no longer known.
      assert.equal((await submit({ tool: "deploy", params: { host: "h" } })).reason_code, "CONDITION_ERROR");
    },
  );

  test(
    "a backtest takes the recorded history, and says which decisions read another one",
    needs("replay"),
    async () => {
      const backtest = async (policy: object) =>
        (
          await service.call("POST", "/v1/replay", {
            key: service.admin,
            body: { policy, alone: true, since: "2020-01-01T00:00:00Z", limit: 10_000 },
          })
        ).body;
      const attempts = (when: string) => ({
        policy: "attempts",
        history: { per: "agent", tool: "deploy", window: "1h", max: 20 },
        rules: [
          { name: "too many", tool: "deploy", when, effect: "require_approval" },
          { name: "deploy", effect: "allow" },
        ],
      });
      const failed = (n: number) => `history.count(h, h.status == "failed" && h.params.host == params.host) >= ${n}`;
      const same = await backtest(attempts(failed(2)));
      const looser = await backtest(attempts(failed(9)));
      const other = await backtest(attempts('history.any(h, h.params.other == "x")'));
      assert.equal(same.unrecorded, 0);
      const flips = (report: typeof same) =>
        report.flips.filter(({ from }: { from: { rule: string } }) => from.rule === "too many");
      assert.deepEqual(flips(same), []);
      assert.equal(flips(looser)[0].to.effect, "allow");
      assert.ok(other.unrecorded >= 4);
    },
  );
});
