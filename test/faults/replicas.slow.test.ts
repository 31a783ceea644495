/** Several processes on one Postgres. A change in one process takes effect in all others from the next request on. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { LeaderLease } from "../../src/contract/core-host.ts";
import { readAcceptedBundle } from "../../src/policies/baseline.ts";
import type { Plugin } from "../../src/plugin.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { SECRET } from "../support/deployment.ts";
import { loadFeatures, needs } from "../support/features.ts";
import { makeRepository } from "../support/git-server.ts";
import { newKey } from "../support/keys.ts";
import { testNotifier, type TestNotifier } from "../support/notifier.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import {
  setSection,
  ALLOWED,
  ASKED,
  startService,
  type Answer,
  type Service,
  type ServiceOptions,
  person,
} from "../support/service.ts";
import { eventually, until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const LOG_KEY = newKey();

const post = (
  service: Service,
  key: string,
  headers: Record<string, string> = {},
  body: object = ALLOWED,
): Promise<Answer> => service.call("POST", "/v1/actions", { key, body, headers });

describe("replicas on one Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  async function withReplicas(
    count: number,
    work: (services: Service[], keys: { admin: string; agent: string }, url: string) => Promise<void>,
    more: (index: number) => Partial<ServiceOptions> = () => ({}),
  ): Promise<void> {
    const url = await server.database();
    const services = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        startService({
          ...more(index),
          // All services share one store. Only the first, which is closed last, audits it.
          ...(index > 0 ? { broken: true } : {}),
          storage: () => postgresStorage({ url, poolSize: 3 }),
          change(config) {
            config.secret = SECRET;
            config.ledger.key = LOG_KEY;
            config.ledger.origin = "replicas.test/log";
            more(index).change?.(config);
          },
        }),
      ),
    );
    try {
      const first = services.filter(({ admin }) => admin !== "");
      assert.equal(first.length, 1, "the first keys are made by one of them");
      const { admin, agent } = first[0] as Service;
      await work(services, { admin, agent }, url);
    } finally {
      await Promise.all(services.slice(1).map((service) => service.close()));
      await services[0]?.close();
    }
  }

  it("ten processes that start at once on an empty database agree on one log and one pair of keys", () =>
    withReplicas(10, async (services, { agent }) => {
      const answers = await Promise.all(services.map((service) => post(service, agent)));
      assert.deepEqual(
        answers.map(({ status }) => status),
        services.map(() => 200),
      );
      assert.equal(new Set(answers.map(({ body }) => body.policy_hash)).size, 1);
    }));

  it("the same request, sent to several processes at once, creates one action with one entry", () =>
    withReplicas(3, async (services, { agent, admin }) => {
      for (let round = 0; round < 5; round++) {
        const body = { ...ASKED, params: { ...ASKED.params, round } };
        const answers = await Promise.all(
          Array.from({ length: 12 }, (_, i) =>
            (services[i % 3] as Service).call("POST", "/v1/actions?join=open", { key: agent, body }),
          ),
        );
        assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202]);
        const ids = new Set(answers.map((answer) => answer.body.id as string));
        assert.equal(ids.size, 1);
        assert.equal(answers.filter(({ headers }) => headers.get("action-joined") !== "true").length, 1);
        const [id] = ids;
        const { body: list } = await (services[0] as Service).call(
          "GET",
          `/v1/actions?request_hash=${answers[0]?.body.request_hash as string}`,
          { key: admin },
        );
        assert.deepEqual(
          list.actions.map((action: { id: string }) => action.id),
          [id],
        );
        assert.equal((await (services[1] as Service).storage.entriesOfAction(id as string)).length, 1);
      }
    }));

  it("a change of a key, agent or policy in one process applies to the next request in another", needs("agents"), () =>
    withReplicas(2, async ([a, b], { admin, agent }) => {
      const [one, two] = [a as Service, b as Service];
      for (let i = 0; i < 10; i++) {
        const made = (await one.call("POST", "/v1/api-keys", { key: admin, body: { name: `k${i}`, preset: "agent" } }))
          .body;
        assert.equal((await post(two, made.key)).status, 200);
        await one.call("DELETE", `/v1/api-keys/${made.id}`, { key: admin });
        assert.equal((await post(two, made.key)).status, 401);

        const id = `bot-${i}`;
        await two.call("POST", "/v1/agents", { key: admin, body: { id } });
        assert.equal((await post(one, agent, {}, { ...ALLOWED, agent_id: id })).body.decision, "allow");
        await two.call("POST", `/v1/agents/${id}/suspend`, { key: admin });
        assert.equal((await post(one, agent, {}, { ...ALLOWED, agent_id: id })).body.reason_code, "AGENT_SUSPENDED");

        const policy = {
          policy: "switched",
          rules: [{ name: "r", tool: "switch", effect: i % 2 === 0 ? "allow" : "deny" }],
        };
        await one.call(i === 0 ? "POST" : "PUT", `/v1/policies${i === 0 ? "" : "/switched"}?activate=true`, {
          key: admin,
          body: policy,
        });
        assert.equal(
          (await two.call("GET", "/readyz", { key: null })).body.policies.policy_set,
          (await one.storage.head()).policy_set,
        );
        assert.equal(
          (await post(two, agent, {}, { ...ALLOWED, tool: "switch" })).body.decision,
          policy.rules[0]?.effect,
        );
      }
    }),
  );

  it("write one tree under load, and each process serves the proofs and events of all", needs("provenance"), () =>
    withReplicas(3, async (services, { admin, agent }, url) => {
      const seqs = services.map(() => [] as number[]);
      const start = (await (services[0] as Service).storage.head()).size;
      const stops = services.map((service, i) =>
        service.runtime.host.ledger.subscribe((entries) =>
          (seqs[i] as number[]).push(...entries.map(({ seq }) => seq)),
        ),
      );
      const answers = (
        await Promise.all(services.flatMap((service) => Array.from({ length: 100 }, () => post(service, agent))))
      ).map(({ body }) => body);
      const { size } = await (services[0] as Service).storage.head();
      assert.equal(size, start + 300);
      await until("each is told of all", () => seqs.every((own) => own.at(-1) === size - 1));
      // A subscriber starts at or before the load. From there on, it misses no entry and receives none twice.
      for (const own of seqs)
        assert.deepEqual(
          own.filter((seq) => seq >= start),
          Array.from({ length: 300 }, (_, i) => start + i),
        );
      for (const stop of stops) stop();
      for (const [i, { decision_hash }] of answers.entries()) {
        const other = services[(i + 1) % services.length] as Service;
        if (i % 10 === 0)
          assert.equal((await other.call("GET", `/v1/provenance/${decision_hash}/proof`, { key: admin })).status, 200);
      }
      const store = postgresStorage({ url });
      await store.open();
      assert.deepEqual((await auditStore(store, (services[0] as Service).runtime.host.ledger.vkey)).faults, []);
      await store.close();
    }),
  );

  it("sign checkpoints while all of them write", needs("provenance"), () =>
    withReplicas(2, async (services, { admin, agent }) => {
      let writing = true;
      const readers = services.map(async (service) => {
        const statuses = new Set<number>();
        while (writing) statuses.add((await service.call("GET", "/v1/provenance/checkpoint", { key: admin })).status);
        return [...statuses];
      });
      const writers = services.flatMap((service) =>
        Array.from({ length: 3 }, async () => {
          const statuses = new Set<number>();
          for (let i = 0; i < 30; i++) statuses.add((await post(service, agent)).status);
          return [...statuses];
        }),
      );
      const written = await Promise.all(writers).finally(() => (writing = false));
      assert.deepEqual([written, await Promise.all(readers)], [writers.map(() => [200]), readers.map(() => [200])]);
    }),
  );

  it("a vote in one process ends a wait in another, and a retry in another process finds the action", () =>
    withReplicas(2, async ([a, b], { admin, agent }) => {
      const [one, two] = [a as Service, b as Service];
      const waiting = post(one, agent, { prefer: "wait=20", "idempotency-key": "once" }, ASKED);
      let pending: Answer["body"];
      for (;;) {
        [pending] = (await two.call("GET", "/v1/actions?status=pending_approval", { key: admin })).body.actions;
        if (pending !== undefined) break;
      }
      const { approval_token: token } = (await two.call("GET", `/v1/actions/${pending.id}`, { key: admin })).body;
      assert.equal(
        (await two.call("POST", `/v1/actions/${pending.id}/approval`, { key: admin, body: { token, approve: true } }))
          .status,
        200,
      );
      const answer = await waiting;
      assert.deepEqual([answer.body.id, answer.body.status], [pending.id, "approved"]);
      assert.equal((await post(two, agent, { "idempotency-key": "once" }, ASKED)).body.id, pending.id);
    }));

  it("a rejection in one process denies the same request in another, until it is lifted", () =>
    withReplicas(2, async ([a, b], { admin, agent }) => {
      const [one, two] = [a as Service, b as Service];
      const { body: asked } = await post(one, agent, {}, ASKED);
      const { approval_token: token } = (await one.call("GET", `/v1/actions/${asked.id}`, { key: admin })).body;
      const rejection = { token, approve: false, reason: "not this customer" };
      const path = `/v1/actions/${asked.id}`;
      assert.equal((await one.call("POST", `${path}/approval`, { key: admin, body: rejection })).status, 200);

      const { body: refused } = await post(two, agent, {}, ASKED);
      assert.deepEqual([refused.status, refused.denied_by], ["denied", "earlier_rejection"]);
      assert.deepEqual([refused.rejection.action_id, refused.rejection.reason], [asked.id, "not this customer"]);

      assert.equal((await one.call("POST", `${path}/lift-rejection`, { key: admin, body: {} })).status, 200);
      const { body: again } = await post(two, agent, {}, ASKED);
      assert.deepEqual([again.status, again.denied_by], ["pending_approval", null]);
      assert.notEqual(again.id, asked.id);
    }));

  it("processes run a shared job one at a time, and take it over if its process ends", () =>
    withReplicas(3, async (services, { agent }) => {
      const [one, two, three] = services.map(({ runtime }) => runtime.host.leaderLease("test")) as [
        LeaderLease,
        LeaderLease,
        LeaderLease,
      ];
      assert.deepEqual([await one.isLeader(), await two.isLeader(), await three.isLeader()], [true, false, false]);
      assert.deepEqual([await one.isLeader(), await two.isLeader()], [true, false]);
      await one.release();
      assert.deepEqual([await two.isLeader(), await three.isLeader(), await one.isLeader()], [true, false, false]);
      // It does not release its lease, so the lease must expire.
      await until("the lease has ended", () => three.isLeader());

      // The expiry job marks an approval that no one gave exactly once, whichever process runs the job.
      const { body } = await post(services[0] as Service, agent, {}, ASKED);
      const expiry = Date.parse(body.expires_at as string);
      for (const service of services) service.clock.now = expiry + 60_000;
      const entries = await eventually(
        async () => {
          const found = (await services[1]?.storage.entriesOfAction(body.id as string)) ?? [];
          return found.length < 2 ? undefined : found;
        },
        () => "nobody marked it expired",
      );
      assert.deepEqual(
        entries.map(({ type }) => type),
        ["decision", "approval"],
      );
      assert.equal((await services[2]?.storage.action(body.id as string))?.status, "expired");
    }));

  it("list each other, and detect that one has left", () =>
    withReplicas(
      3,
      async (services) => {
        const seen = async (service: Service) =>
          (await service.call("GET", "/readyz", { key: null })).body.replicas as {
            ok: boolean;
            detail: string;
            processes: number;
          };
        for (const service of services) assert.equal((await seen(service)).processes, 3);
        const busy = (await Promise.all(services.map(seen))).filter(({ detail }) => detail.startsWith("this one does"));
        assert.ok(busy.length >= 1, "the shared jobs are somebody's");
        await (services[2] as Service).runtime.stop();
        assert.equal((await seen(services[0] as Service)).processes, 2);
      },
      () => ({ broken: true }),
    ));

  it("limits are exact, whichever process makes the decision", () =>
    withReplicas(3, async (services, { admin, agent }) => {
      const policy = {
        policy: "seven",
        rules: [{ name: "r", tool: "seven", effect: "allow" }],
        limits: [{ name: "seven", tool: "seven", count: 7, window: "1h" }],
      };
      await services[0]?.call("POST", "/v1/policies?activate=true", { key: admin, body: policy });
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          post(services[i % 3] as Service, agent, {}, { ...ALLOWED, tool: "seven" }),
        ),
      );
      assert.equal(answers.filter(({ body }) => body.decision === "allow").length, 7);
      assert.equal(answers.filter(({ body }) => body.reason_code === "LIMIT_EXCEEDED").length, 23);
    }));

  it("histories are exact, whichever process makes the decision", () =>
    withReplicas(3, async (services, { admin, agent }) => {
      const policy = {
        policy: "past",
        history: { per: "agent", tool: "past", window: "1h", max: 100 },
        rules: [
          { name: "seven", tool: "past", when: "history.count(h, h.may_have_run) < 7", effect: "allow" },
          { name: "more", tool: "past", effect: "deny" },
        ],
      };
      await services[0]?.call("POST", "/v1/policies?activate=true", { key: admin, body: policy });
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, i) => post(services[i % 3] as Service, agent, {}, { ...ALLOWED, tool: "past" })),
      );
      assert.equal(answers.filter(({ body }) => body.decision === "allow").length, 7);
      assert.equal(answers.filter(({ body }) => body.rule === "more").length, 23);
    }));

  it("an effect happens once, whichever process makes the decision", () =>
    withReplicas(3, async (services, { admin, agent }) => {
      const rule = { name: "r", tool: "once", effect: "allow", effect_key: "once/{params.payment}" };
      const policy = { policy: "once", rules: [rule] };
      await services[0]?.call("POST", "/v1/policies?activate=true", { key: admin, body: policy });
      const submit = (i: number) =>
        post(services[i % 3] as Service, agent, {}, { ...ALLOWED, tool: "once", params: { payment: i % 2, i } });
      const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => submit(i)));
      assert.equal(answers.filter(({ body }) => body.decision === "allow").length, 2);
      assert.equal(answers.filter(({ body }) => body.reason_code === "EFFECT_REPEATED").length, 28);
    }));

  it(
    "processes erase each action once, both on request and at the end of the retention period",
    needs("retention"),
    () =>
      withReplicas(
        2,
        async (services, { admin, agent }) => {
          const [one] = services as [Service, Service];
          const submit = async (value: string): Promise<void> => {
            for (let i = 0; i < 20; i++) {
              const body = { agent_id: "a", tool: "unknown", operation: "x", params: { value } };
              assert.equal((await post(one, agent, {}, body)).status, 200);
            }
          };
          await submit("by hand");
          const body = { value: "by hand", reason: "r", dry_run: false };
          const counts = await Promise.all(
            services.map(
              async (service) => (await service.call("POST", "/v1/erasures", { key: admin, body })).body.erased,
            ),
          );
          assert.equal(counts[0] + counts[1], 20);
          await submit("by time");
          for (const { clock } of services) clock.now += 2 * 86_400_000;
          await Promise.all(services.map((service) => service.restart()));
          const actions = () => one.storage.actions({ visibility: { all: true }, limit: 100 });
          await until("all are erased", async () => (await actions()).every(({ request }) => request === ""));
          const { size } = await one.storage.head();
          const erasures = (await one.storage.entries(0, size)).filter(({ type }) => type === "erasure");
          assert.deepEqual([erasures.length, new Set(erasures.map(({ action_id }) => action_id)).size], [40, 40]);
        },
        () => ({
          change(config) {
            setSection(config, "retention", { request_days: 1 });
          },
        }),
      ),
  );

  it("one process delivers each message, and another continues if it crashes", async () => {
    const pigeons = [testNotifier(), testNotifier()];
    await withReplicas(
      2,
      async (services, { agent }) => {
        const ids: string[] = [];
        for (let i = 0; i < 10; i++)
          ids.push((await post(services[i % 2] as Service, agent, {}, ASKED)).body.id as string);
        const told = (): string[] =>
          pigeons
            .flatMap(({ messages }) => messages)
            .flatMap((message) => (message.kind === "approval_requested" ? [message.action.id] : []));
        await until("ten are delivered", () => told().length >= 10);
        assert.deepEqual(told().sort(), ids.sort());
        const courier = pigeons.findIndex(({ messages }) => messages.length > 0);
        assert.equal(pigeons[1 - courier]?.messages.length, 0, "one of them delivers");
        await (services[courier] as Service).runtime.stop();
        const last = (await post(services[1 - courier] as Service, agent, {}, ASKED)).body.id as string;
        await until(
          "the other delivers",
          () =>
            pigeons[1 - courier]?.messages.some(
              (message) => message.kind === "approval_requested" && message.action.id === last,
            ) === true,
        );
      },
      (index) => ({
        broken: true,
        plugins: [(pigeons[index] as TestNotifier).plugin],
        change: (config) =>
          (config.channels = { finance: { notifier: "pigeon", people: [{ owner: person("anna"), to: "anna" }] } }),
      }),
    );
  });

  it(
    "all processes use the newest commit of a repository, and a slow process does not restore an older one",
    needs("policy-git"),
    async () => {
      const [policyGit] = await loadFeatures(["policy-git"]);
      const folder = temporaryFolder("assent-replicas-");
      try {
        const repository = makeRepository(folder);
        writeFileSync(
          join(folder, "base.yaml"),
          "policy: base\nrules:\n  - { name: nothing, tool: nothing, effect: deny }\n",
        );
        const commit = (effect: string): string =>
          repository.commit({ "p.yaml": `policy: git-rules\nrules:\n  - { name: r, tool: t, effect: ${effect} }\n` });
        commit("allow");
        await withReplicas(
          3,
          async (services, { admin, agent }) => {
            for (const effect of ["deny", "allow", "require_approval"]) {
              const id = commit(effect);
              await until(
                `the commit that says ${effect} is served`,
                async () =>
                  (await post(services[0] as Service, agent, {}, { ...ALLOWED, tool: "t" })).body.decision === effect,
              );
              const answers = await Promise.all(
                services.map((service) => post(service, agent, {}, { ...ALLOWED, tool: "t" })),
              );
              assert.deepEqual(new Set(answers.map(({ body }) => body.decision)), new Set([effect]));
              assert.equal(new Set(answers.map(({ body }) => body.policy_hash)).size, 1);
              const { body } = await (services[1] as Service).call(
                "GET",
                `/v1/actions/${answers[1]?.body.id as string}/events`,
                { key: admin },
              );
              assert.equal(body.events[0].entry.facts.policy_commit, id);
            }
            const { host } = (services[2] as Service).runtime;
            const basis = await readAcceptedBundle(host.storage, "policy-git");
            const old = {
              policies: [
                {
                  document: { policy: "git-rules", rules: [{ name: "r", tool: "t", effect: "allow" as const }] },
                  origin: "p.yaml",
                },
              ],
              source: { kind: "git", commit: "old" },
            };
            commit("deny");
            await until(
              "the last commit is served",
              async () =>
                (await post(services[0] as Service, agent, {}, { ...ALLOWED, tool: "t" })).body.decision === "deny",
            );
            assert.equal(await host.policies.activate("policy-git", old, null, { value: basis }), null);
            assert.equal(
              (await post(services[2] as Service, agent, {}, { ...ALLOWED, tool: "t" })).body.decision,
              "deny",
            );
          },
          () => ({
            policies: folder,
            plugins: [
              {
                plugin: policyGit as Plugin,
                options: { url: `file://${repository.bare}`, interval_seconds: 1 },
                origin: "policy-git",
                core: true,
              },
            ],
          }),
        );
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
