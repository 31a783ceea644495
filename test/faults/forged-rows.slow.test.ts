/**
 * What someone can do who can write every byte of the database, but does not have the service's secret. Each forgery
 * changes the database of a running service and expects that the service refuses, and that the audit reports it.
 * @needs retention, users
 */
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { encodeEntry, type EntryBody } from "../../src/domain/entries.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { appendToEdge, hashLeaf, rootFromEdge } from "../../src/domain/merkle.ts";
import { terminalChallenge } from "../../plugins/actions/cli/watch/terminal-code.ts";
import { eraseActionParts } from "../../plugins/retention/erase.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { needs } from "../support/features.ts";
import { ENGINES, stopEngines, tableOf, type Engine } from "../support/engines.ts";
import { testNotifier, type TestNotifier } from "../support/notifier.ts";
import { invite, PAGE, startPeople, type Person } from "../support/people.ts";
import type { RawRow, RawStore } from "../support/raw-store.ts";
import { type Answer, makeKey, person, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const POLICY = `policy: ask
rules:
  - { name: pay, tool: pay, effect: allow }
  - { name: ask, tool: ask, effect: require_approval, approval: { expires_in: 1h, notify: [people] } }
---
policy: counted
limits:
  - { name: one an hour, tool: limited, per: agent, count: 1, window: 1h }
  - { name: sum an hour, tool: summed, per: agent, sum: params.amount, at_most: 1, window: 1h }
history: { per: agent, tool: once, window: 1h, max: 100 }
rules:
  - { name: again, tool: once, when: 'history.any(h, h.tool == "once")', effect: deny }
  - { name: repeated, tool: effect, effect: allow, effect_key: "effect/{params.amount}" }
  - { name: other, tool: [limited, summed, once], effect: allow }
`;

/** Rules that allow after an earlier action. */
const ALLOWING = [
  {
    policy: "release",
    history: { per: "agent", tool: "tested", window: "1h", max: 100 },
    rules: [
      {
        name: "tested",
        tool: "deploy",
        when: 'history.any(h, h.params.amount == 1 && h.status == "allowed")',
        effect: "allow",
      },
      { name: "test", tool: "tested", effect: "allow" },
    ],
  },
  {
    policy: "release-of-item",
    history: { per: "params.item", tool: "checked", window: "1h", max: 100 },
    rules: [
      { name: "checked", tool: "ship", when: 'history.any(h, h.agent == "bot")', effect: "allow" },
      { name: "check", tool: "checked", effect: "allow" },
    ],
  },
  {
    policy: "refund-of-customer",
    history: { per: "agent", tool: "lookup", window: "1h", max: 100, keep: ["result.id"] },
    rules: [
      {
        name: "found",
        tool: "refund",
        when: 'history.any(h, h.status == "succeeded" && has(h.result.id) && h.result.id == "c-2")',
        effect: "allow",
      },
      { name: "lookup", tool: "lookup", effect: "allow" },
    ],
  },
];

async function activateAllowing({ call, admin }: Service): Promise<void> {
  for (const body of ALLOWING) {
    const answer = await call("POST", "/v1/policies?activate=true", { key: admin, body });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
  }
}

interface Forged {
  service: Service;
  raw: RawStore;
  pigeon: TestNotifier;
  /** Returns the rows of a table that pass `test`. */
  rows(table: string, test?: (row: RawRow) => boolean): Promise<RawRow[]>;
  set(table: string, row: RawRow, values: RawRow): Promise<void>;
  insert(table: string, row: RawRow): Promise<void>;
  remove(table: string, row: RawRow): Promise<void>;
  /** Returns the faults that the audit finds. */
  faults(): Promise<string[]>;
  submit(tool: string, headers?: Record<string, string>, request?: object): Promise<Answer>;
}

async function withForged(engine: Engine, run: (forged: Forged) => Promise<void>): Promise<void> {
  const database = await engine.createDatabase();
  const pigeon = testNotifier();
  const service = await startPeople({
    broken: true,
    policy: POLICY,
    storage: () => database.storage(),
    plugins: [pigeon.plugin],
    change(config) {
      config.approvals.max_pending_per_key = 1;
      config.channels = { people: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] } };
    },
  });
  const raw = await database.raw();
  try {
    await run({
      service,
      raw,
      pigeon,
      rows: async (table, wanted = () => true) => (await raw.rows(tableOf(raw, table))).filter(wanted),
      async set(table, row, values) {
        for (const [column, value] of Object.entries(values)) await raw.set(tableOf(raw, table), row, column, value);
      },
      insert: (table, row) => raw.insert(tableOf(raw, table), row),
      remove: (table, row) => raw.remove(tableOf(raw, table), row),
      async faults() {
        const { ledger, vault } = service.runtime.host;
        return (await auditStore(service.storage, ledger.vkey, vault)).faults;
      },
      submit: (tool, headers = {}, request = {}) =>
        service.call("POST", "/v1/actions", {
          body: { agent_id: "bot", tool, operation: "do", params: { amount: 1 }, ...request },
          headers,
        }),
    });
  } finally {
    await raw.close();
    await service.close();
  }
}

/** Appends a copy of the newest entry, with the leaf hash, the tree and the head that the service would write. */
async function appendForgedEntry({ rows, set, insert }: Forged): Promise<void> {
  const entry = (await rows("entries")).at(-1) as RawRow;
  const [head] = (await rows("ledger_head")) as [RawRow];
  const size = Number(head["size"]);
  const { seq: _, ...body } = JSON.parse(new TextDecoder().decode(entry["bytes"] as Uint8Array)) as { seq: number };
  const { bytes, leafHash } = encodeEntry(body as EntryBody, size);
  const stored = new Uint8Array(head["edge"] as Uint8Array);
  const hashes = Array.from({ length: stored.length / 32 }, (_, i) => stored.slice(i * 32, i * 32 + 32));
  const edge = appendToEdge(hashes, size, leafHash);
  await insert("entries", { ...entry, seq: size, bytes, leaf_hash: leafHash });
  await set("ledger_head", head, {
    size: size + 1,
    epoch: Number(head["epoch"]) + 1,
    root: rootFromEdge(edge),
    edge: new Uint8Array(Buffer.concat(edge)),
  });
}

const sessionOf = ({ session: { cookie } }: Person): string => cookie.split("=")[1]?.split(".")[1] ?? "";

after(stopEngines);

for (const engine of ENGINES)
  describe(engine.name, { skip: engine.skip }, () => {
    const forging = (run: (forged: Forged) => Promise<void>) => () => withForged(engine, run);

    test(
      "a consistent entry that was appended while the service was stopped is neither accepted nor signed",
      forging(async (forged) => {
        const { service, rows, set, submit } = forged;
        await submit("pay");
        await service.runtime.stop();
        const [head, checkpoint] = [(await rows("ledger_head"))[0], (await rows("checkpoint"))[0]] as [RawRow, RawRow];
        const faults = /the ledger's head \(size \d+\) was not written by this service/;
        for (const [column, value] of Object.entries({ policy_set: null, epoch: 0, seal: "" })) {
          await set("ledger_head", head, head);
          await set("ledger_head", head, { [column]: value });
          await assert.rejects(service.restart(), faults, column);
        }
        await set("ledger_head", head, head);
        await appendForgedEntry(forged);
        await assert.rejects(service.restart(), faults);
        assert.deepEqual((await rows("checkpoint"))[0], checkpoint);
        // A seal of an earlier head does not match another head.
        await set("ledger_head", (await rows("ledger_head"))[0] as RawRow, { seal: String(head["seal"]) });
        await assert.rejects(service.restart(), faults);
      }),
    );

    test(
      "a consistent entry that was appended while the service runs is neither accepted nor signed",
      needs("provenance"),
      forging(async (forged) => {
        const { service, faults, submit } = forged;
        await submit("pay");
        await appendForgedEntry(forged);
        assert.equal((await submit("pay")).status, 503);
        const { status } = await service.call("GET", "/v1/provenance/checkpoint", { key: service.admin });
        assert.equal(status, 503);
        assert.ok(service.logged.some((line) => line.includes("does not continue what this process committed")));
        assert.match((await faults()).join("\n"), /the ledger's head \(size \d+\) was not written by this service/);
      }),
    );

    test(
      "a service does not start on a store in which an entry about a stop or a key was hidden, changed or added",
      needs("stop"),
      forging(async (forged) => {
        const { service, rows, set, submit } = forged;
        await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "drill", tool: "pay" } });
        assert.equal((await submit("pay")).body.status, "denied");
        await service.runtime.stop();
        const entries = await rows("entries");
        const stop = entries.find(({ type }) => type === "stop") as RawRow;
        const decision = entries.find(({ type }) => type === "decision") as RawRow;
        const text = new TextDecoder().decode(stop["bytes"] as Uint8Array).replace('"pay"', '"say"');
        const bytes = new TextEncoder().encode(text);
        const changes: [RawRow, RawRow][] = [
          [stop, { followed: 0 }],
          [stop, { bytes, leaf_hash: hashLeaf(bytes) }],
          [decision, { followed: 1 }],
        ];
        for (const [row, change] of changes) {
          await set("entries", row, change);
          await assert.rejects(service.restart(), /are not those that the head \(size \d+\) states/);
          await set("entries", row, row);
        }
        await service.restart();
        assert.equal((await submit("pay")).body.status, "denied");
      }),
    );

    test(
      "the row of an agent that was changed, removed or put back decides nothing",
      needs("agents"),
      forging(async (forged) => {
        const { service, rows, set, insert, remove, submit } = forged;
        const admin = (method: string, path: string, body: object): Promise<Answer> =>
          service.call(method, path, { key: service.admin, body });
        await admin("POST", "/v1/agents", { id: "bot", metadata: { tier: "low" } });
        const [early] = (await rows("agents")) as [RawRow];
        assert.equal((await submit("pay")).body.status, "allowed");
        await admin("PATCH", "/v1/agents/bot", { allowed_tools: ["ask"] });
        await admin("POST", "/v1/agents/bot/suspend", {});
        const [row] = (await rows("agents")) as [RawRow];
        const forgeries: (() => Promise<void>)[] = [
          () => set("agents", row, { suspended_at: null }),
          () => set("agents", row, { allowed_tools: null, suspended_at: null }),
          () => set("agents", row, { ...early }),
          () => set("agents", row, { metadata: '{"tier":"high"}' }),
          () => remove("agents", row),
        ];
        for (const forge of forgeries) {
          await forge();
          await service.restart();
          const { status, body } = await submit("pay");
          assert.ok(status === 409 ? body.code === "STORE_ALTERED" : body.status === "denied", JSON.stringify(body));
          const patch = await admin("PATCH", "/v1/agents/bot", { description: "changed" });
          assert.ok(["STORE_ALTERED", "AGENT_NOT_FOUND"].includes(patch.body.code), JSON.stringify(patch.body));
          const again = await admin("POST", "/v1/agents", { id: "bot" });
          assert.equal(again.body.code, "AGENT_ID_TAKEN");
          await remove("agents", row);
          await insert("agents", row);
        }
        await service.restart();
        assert.match((await submit("pay")).body.reason, /suspended/);
      }),
    );

    test(
      "a key whose row was changed, and a key that no entry created, read nothing",
      forging(async ({ service, rows, insert, remove }) => {
        const { key } = await makeKey(service, { name: "reader", scopes: ["actions:read"] });
        const row = (await rows("api_keys", ({ name }) => name === "reader"))[0] as RawRow;
        const read = async (): Promise<string> => (await service.call("GET", "/v1/api-keys", { key })).body.code;
        assert.equal(await read(), undefined);
        const admin = (await rows("api_keys", ({ name }) => name !== "reader"))[0] as RawRow;
        const { hash, id } = row as { hash: string; id: string };
        const forgeries: RawRow[] = [
          { ...row, scopes: '["keys:manage"]' },
          { ...row, created_by: null },
          { ...admin, id, hash },
          { ...admin, id: `${id.slice(0, -1)}x`, hash },
        ];
        let stored = row;
        for (const forged of forgeries) {
          await remove("api_keys", stored);
          await insert("api_keys", forged);
          stored = forged;
          await service.restart();
          assert.equal(await read(), "KEY_ALTERED");
        }
        const revoked = await service.call("DELETE", `/v1/api-keys/${String(stored["id"])}`, { key: service.admin });
        assert.equal(revoked.body.code, "KEY_ALTERED");
      }),
    );

    test(
      "a stored policy that was changed, hidden or added does not become active",
      forging(async ({ service, rows, set, insert, remove }) => {
        const admin = async (method: string, path: string, body: object): Promise<Answer["body"]> =>
          (await service.call(method, path, { key: service.admin, body })).body;
        const policy = (effect: string) => ({ policy: "extra", rules: [{ name: "x", tool: "danger", effect }] });
        await admin("POST", "/v1/policies", policy("deny"));
        await admin("PUT", "/v1/policies/extra", policy("require_approval"));
        const [stored] = (await rows("policies", ({ name }) => name === "extra")) as [RawRow];
        const [first] = (await rows("policy_versions", (row) => row["policy_id"] === stored["id"])) as [RawRow];
        const definition = String(first["definition"]).replace('"deny"', '"allow"');
        const digest = sha256Hex(utf8(definition));
        const other = (await rows("policies", ({ name }) => name !== "extra"))[0] as RawRow;
        const forgeries: [() => Promise<void>, () => Promise<void>][] = [
          [
            () => set("policy_versions", first, { definition, digest }),
            () => set("policy_versions", first, { definition: first["definition"], digest: first["digest"] } as RawRow),
          ],
          [() => set("policies", other, { managed_by: null }), () => set("policies", other, other)],
          [
            () => insert("policies", { ...stored, id: "forged", name: "forged" }),
            () => remove("policies", { ...stored, id: "forged" }),
          ],
        ];
        for (const [forge, mend] of forgeries) {
          await forge();
          assert.equal((await admin("POST", "/v1/policies/extra/activate", { version: 1 })).code, "STORE_ALTERED");
          await mend();
        }
        assert.equal((await admin("POST", "/v1/policies/extra/activate", { version: 1 })).active_version, 1);
      }),
    );

    test(
      "a use of a limit, a past action or a rejection that was removed or changed is missed by the decision, and restored at the next start",
      forging(async (forged) => {
        const { service, rows, set, insert, remove, submit, faults } = forged;
        const outcome = async (tool: string): Promise<string> => {
          const { status, body } = await submit(tool);
          return status === 409 ? body.code : body.status;
        };
        const refuse = async (tool: string, forge: () => Promise<void>, mend: () => Promise<void>): Promise<void> => {
          await forge();
          assert.equal(await outcome(tool), "STORE_ALTERED", tool);
          assert.notDeepEqual(await faults(), [], tool);
          await mend();
          assert.equal(await outcome(tool), "denied", tool);
          await forge();
          await service.restart();
          assert.equal(await outcome(tool), "denied", tool);
          // The rows from before the start are remembered, too.
          await forge();
          assert.equal(await outcome(tool), "STORE_ALTERED", tool);
          await mend();
        };
        for (const tool of ["limited", "summed"]) {
          assert.equal(await outcome(tool), "allowed");
          assert.equal(await outcome(tool), "denied");
          const [use] = (await rows(
            "limit_uses",
            ({ limit_name }) => limit_name === (tool === "limited" ? "one an hour" : "sum an hour"),
          )) as [RawRow];
          const moved = { ...use, at: Number(use["at"]) - 3_600_000 };
          await refuse(
            tool,
            () => remove("limit_uses", use),
            () => insert("limit_uses", use),
          );
          await refuse(
            tool,
            () => set("limit_uses", use, { at: moved.at }),
            () => set("limit_uses", moved, { at: use["at"] as number }),
          );
        }
        for (const name of ["once", "effect"]) {
          assert.equal(await outcome(name), "allowed");
          assert.equal(await outcome(name), "denied");
          const [first] = (await rows("actions", ({ tool }) => tool === name)) as [RawRow];
          const places = await rows("past_actions", ({ action_id }) => action_id === first["id"]);
          assert.notEqual(places.length, 0, name);
          for (const place of places)
            await refuse(
              name,
              () => remove("past_actions", place),
              () => insert("past_actions", place),
            );
        }
        const { body } = await submit("ask");
        const { key } = await makeKey(service, { name: "voter", preset: "approver", owner: person("Anna") });
        const { approval_token: token } = (await service.call("GET", `/v1/actions/${body.id}`, { key })).body;
        const vote = { token, approve: false, reason: "no" };
        assert.equal((await service.call("POST", `/v1/actions/${body.id}/approval`, { key, body: vote })).status, 200);
        assert.equal(await outcome("ask"), "denied");
        const [rejected] = (await rows("actions", ({ id }) => id === body.id)) as [RawRow];
        await refuse(
          "ask",
          () => set("actions", rejected, { rejection_until: null }),
          () => set("actions", rejected, { rejection_until: rejected["rejection_until"] as number }),
        );
      }),
    );

    test(
      "a past action that was added to a history, moved to another one, or changed before the start allows nothing",
      forging(async (forged) => {
        const { service, rows, set, insert, remove, submit, faults } = forged;
        await activateAllowing(service);
        const outcome = async (agent_id: string): Promise<string> => {
          const { status, body } = await submit("deploy", {}, { agent_id });
          return status === 409 ? body.code : body.status;
        };
        const { id } = (await submit("tested", {}, { agent_id: "tester" })).body as { id: string };
        // An action without a place in any history, and one whose owner is in another history.
        const paid = (await submit("pay")).body as { id: string };
        await submit("tested", {}, { params: { amount: 2 } });
        assert.equal(await outcome("tester"), "allowed");
        assert.equal(await outcome("bot"), "denied");
        const [place] = (await rows("past_actions", ({ action_id }) => action_id === id)) as [RawRow];
        const [own] = (await rows("past_actions", ({ action_id }) => action_id !== id)) as [RawRow];
        const [action] = (await rows("actions", ({ tool, agent_id }) => tool === "tested" && agent_id === "bot")) as [
          RawRow,
        ];
        const params = { request: String(action["request"]).replace('"amount":2', '"amount":1') };
        assert.notEqual(params.request, action["request"]);
        const added = { ...place, subject: own["subject"] } as RawRow;
        const early = { ...place, at: Number(place["at"]) - 1000 } as RawRow;
        const other = { ...added, action_id: paid.id } as RawRow;
        const forgeries: [string, string, () => Promise<void>, () => Promise<void>][] = [
          ["bot", "added", () => insert("past_actions", added), () => remove("past_actions", added)],
          ["bot", "other action", () => insert("past_actions", other), () => remove("past_actions", other)],
          [
            "bot",
            "moved",
            async () => {
              await remove("past_actions", place);
              await insert("past_actions", added);
            },
            // The start has moved it back.
            () => Promise.resolve(),
          ],
          ["tester", "repeated", () => insert("past_actions", early), () => remove("past_actions", early)],
          ["bot", "changed", () => set("actions", action, params), () => set("actions", action, action)],
        ];
        for (const [agent, name, forge, mend] of forgeries) {
          const expected = agent === "bot" ? "denied" : "allowed";
          await forge();
          assert.equal(await outcome(agent), "STORE_ALTERED", name);
          assert.notDeepEqual(await faults(), [], name);
          await service.restart();
          const restored = name === "moved" ? "denied" : "STORE_ALTERED";
          assert.equal(await outcome(agent), restored, `${name}, after a restart`);
          await mend();
          await service.restart();
          assert.equal(await outcome(agent), expected, `${name}, mended`);
        }
        assert.deepEqual(await faults(), []);
      }),
    );

    test(
      "a status or result that was changed before the start allows nothing, also after the result was erased",
      needs("retention"),
      forging(async ({ service, rows, set, submit, faults }) => {
        await activateAllowing(service);
        const refund = async (): Promise<string> => {
          const { status, body } = await submit("refund");
          return status === 409 ? body.code : body.status;
        };
        const { id } = (await submit("lookup")).body as { id: string };
        const row = async (): Promise<RawRow> => (await rows("actions", (one) => one["id"] === id))[0] as RawRow;
        const step = async (name: string, body: object): Promise<void> =>
          assert.equal((await service.call("POST", `/v1/actions/${id}/${name}`, { body })).status, 200);
        const forged = async (values: RawRow): Promise<void> => {
          const before = await row();
          await set("actions", before, values);
          await service.restart();
          assert.equal(await refund(), "STORE_ALTERED");
          assert.notDeepEqual(await faults(), []);
          await set("actions", await row(), before);
          await service.restart();
          assert.equal(await refund(), "denied");
        };
        await step("start", {});
        await forged({ status: "succeeded" });
        await step("result", { success: true, meta: { id: "c-1" } });
        const result = String((await row())["result"]).replace("c-1", "c-2");
        await forged({ result });
        const { host } = service.runtime;
        await host.ledger.transact((tx) => eraseActionParts(host, tx, [id], "result", "30 days"));
        await forged({ result });
        assert.deepEqual(await faults(), []);
      }),
    );

    test(
      "an erased action cannot be placed in a history to which its tool does not belong",
      needs("retention"),
      forging(async ({ service, rows, insert, submit }) => {
        await activateAllowing(service);
        const ship = async (): Promise<string> => {
          const { status, body } = await submit("ship", {}, { params: { item: "a" } });
          return status === 409 ? body.code : body.status;
        };
        const { id } = (await submit("pay")).body as { id: string };
        for (const [step, body, key] of [
          ["start", {}, service.agent],
          ["result", { success: true }, service.agent],
          ["erase", { reason: "asked" }, service.admin],
        ] as const)
          assert.equal((await service.call("POST", `/v1/actions/${id}/${step}`, { key, body })).status, 200);
        await submit("checked", {}, { agent_id: "checker", params: { item: "a" } });
        assert.equal(await ship(), "denied");
        const [place] = (await rows("past_actions")) as [RawRow];
        const [{ started_at: at = null } = {}] = await rows("actions", (row) => row["id"] === id);
        await insert("past_actions", { ...place, action_id: id, at });
        assert.equal(await ship(), "STORE_ALTERED");
      }),
    );

    test(
      "a place of an erased action counts in its own history only",
      needs("retention"),
      forging(async ({ service, rows, insert, remove, submit, faults }) => {
        await activateAllowing(service);
        const outcome = async (tool: string, request: object): Promise<string> => {
          const { status, body } = await submit(tool, {}, request);
          return status === 409 ? body.code : body.status;
        };
        const { id } = (await submit("checked", {}, { params: { item: "a" } })).body as { id: string };
        const tested = (await submit("tested", {}, { agent_id: "tester" })).body as { id: string };
        for (const path of [id, tested.id].map((erased) => `/v1/actions/${erased}`))
          for (const [step, body, key] of [
            ["start", {}, service.agent],
            ["result", { success: true }, service.agent],
            ["erase", { reason: "asked" }, service.admin],
          ] as const) {
            const answer = await service.call("POST", `${path}/${step}`, { key, body });
            assert.equal(answer.status, 200, JSON.stringify(answer.body));
          }
        await submit("tested", {}, { params: { amount: 2 } });
        const [place] = (await rows("past_actions", ({ action_id }) => action_id === tested.id)) as [RawRow];
        const [own] = (await rows("past_actions", (row) => row["policy"] === "release" && row !== place)).filter(
          ({ action_id }) => action_id !== tested.id,
        ) as [RawRow];
        for (const isRestarted of [false, true]) {
          if (isRestarted) await service.restart();
          assert.equal(await outcome("ship", { params: { item: "a" } }), "allowed");
          assert.equal(await outcome("ship", { params: { item: "b" } }), "denied");
          // What the condition reads was erased.
          assert.equal(await outcome("deploy", { agent_id: "tester" }), "denied");
          assert.equal(await outcome("deploy", {}), "denied");
          const added = { ...place, subject: own["subject"] } as RawRow;
          await insert("past_actions", added);
          assert.equal(await outcome("deploy", {}), "STORE_ALTERED");
          await remove("past_actions", added);
        }
        assert.deepEqual(await faults(), []);
      }),
    );

    test(
      "hidden pending actions count against the cap of their key",
      forging(async ({ rows, set, submit }) => {
        const { body } = await submit("ask");
        const [pending] = (await rows("actions", ({ id }) => id === body.id)) as [RawRow];
        for (const change of [{ status: "expired" }, { submitted_by: "01a00000-0000-7000-8000-000000000000" }]) {
          await set("actions", pending, change);
          assert.equal((await submit("ask")).body.code, "TOO_MANY_PENDING");
          await set("actions", pending, pending);
        }
      }),
    );

    test(
      "a forged confirmation signs in no terminal",
      forging(async ({ service, rows, insert, faults }) => {
        const ada = await invite(service, { name: "Ada", roles: ["admin"] });
        assert.deepEqual(await faults(), []);
        const verifier = "v".repeat(43);
        const [session] = await rows("documents", ({ key }) => key === `session/${ada.id}/${sessionOf(ada)}`);
        assert.ok(session !== undefined);
        const confirmation = { user_id: ada.id, session_id: sessionOf(ada), expires_at: Date.now() + 60_000 };
        await insert("documents", {
          ...session,
          key: `terminal/${terminalChallenge(verifier)}`,
          value: JSON.stringify(confirmation),
        });
        const { status, body } = await service.call("POST", "/v1/session/terminal", {
          key: null,
          body: { verifier },
          headers: PAGE,
        });
        assert.deepEqual([status, body.code], [409, "STORE_ALTERED"]);
        assert.match(body.detail, /users terminal\/.* was changed in the store outside the service/);
        assert.ok(service.logged.some((line) => line.includes("terminal/") && line.includes("run assent audit")));
        assert.match((await faults()).join("\n"), /"users terminal\/.*" of documents was changed outside the service/);
      }),
    );

    test(
      "a session row that was changed admits no one",
      forging(async ({ service, rows, set, faults }) => {
        const ada = await invite(service, { name: "Ada", roles: ["viewer"] });
        const [session] = await rows("documents", ({ key }) => key === `session/${ada.id}/${sessionOf(ada)}`);
        assert.ok(session !== undefined);
        const value = JSON.stringify({ ...JSON.parse(String(session["value"])), seen_at: Date.now() + 86_400_000 });
        await set("documents", session, { value });
        const { status, body } = await ada.call("GET", "/v1/session");
        assert.deepEqual([status, body.code], [409, "STORE_ALTERED"]);
        assert.match((await faults()).join("\n"), /"users session\/.*" of documents was changed/);
      }),
    );

    test(
      "a message whose recipient was changed is not sent",
      needs("deliveries"),
      forging(async (forged) => {
        const { service, pigeon, rows, set, faults, submit } = forged;
        pigeon.plans.push(() => Promise.reject(new Error("not now")));
        const { id } = (await submit("ask")).body as { id: string };
        const waiting = async (): Promise<RawRow | undefined> =>
          (await rows("deliveries", ({ action_id, attempts }) => action_id === id && attempts === 1))[0];
        await until("the first attempt has failed", async () => (await waiting()) !== undefined);
        for (const changed of [{ recipient: "mallory", destination: "pigeon mallory" }, { person: "Mallory" }]) {
          const row = (await waiting()) as RawRow;
          await set("deliveries", row, changed);
          assert.match((await faults()).join("\n"), /of deliveries was changed outside the service/);
          const path = `/v1/deliveries/${String(row["id"])}`;
          await service.call("POST", `${path}/retry`, { key: service.admin });
          const read = async (): Promise<Answer["body"]> =>
            (await service.call("GET", path, { key: service.admin })).body;
          await until("the delivery is given up", async () => (await read()).state === "dead");
          assert.match((await read()).last_error, /changed in the store outside the service/);
          await set("deliveries", row, row);
        }
        assert.equal(pigeon.messages.length, 1);
      }),
    );

    test(
      "an idempotency key that names another action is refused",
      forging(async (forged) => {
        const { rows, set, faults, submit } = forged;
        const headers = { "Idempotency-Key": "once" };
        await submit("pay", headers);
        const other = (await submit("pay")).body as { id: string };
        const [row] = await rows("idempotency");
        assert.ok(row !== undefined);
        await set("idempotency", row, { resource_id: other.id });
        const { status, body } = await submit("pay", headers);
        assert.deepEqual([status, body.code], [409, "STORE_ALTERED"]);
        assert.match((await faults()).join("\n"), /of idempotency was changed outside the service/);
      }),
    );
  });
