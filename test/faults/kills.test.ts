/**
 * Two processes and one Postgres, killed at random while it gives up every sixth commit for another's sake (SQLSTATE
 * 40001): limits are never exceeded, an action is started by one attempt alone, and what was answered is there once.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { DecisionEntry, EntryBody, ExecutionEntry } from "../../src/domain/entries.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { bounded, pause, until } from "../support/wait.ts";

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const pem = (): string => generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;
const KILLS = Number(process.env["KILLS"] ?? 4);
const AGENTS = ["a", "b", "c"];
const MOST = 60;
const POLICY = `policy: spending
rules:
  - { name: pay, tool: pay, effect: allow }
limits:
  - { name: few, tool: pay, per: agent, count: ${MOST}, window: 1h }
`;

/** Not in a batch: what `nextval` gives is not taken back with the transaction. */
const CONFLICTS = `create sequence conflicts;
  create function conflict() returns trigger language plpgsql as $$ begin
    if nextval('conflicts') % 6 = 0 then raise exception using errcode = '40001', message = 'restart transaction'; end if;
    return null; end $$;
  create constraint trigger in_the_way after update on ledger_head deferrable initially deferred
    for each row execute function conflict()`;

interface Answer {
  status: number;
  body: { id: string; decision_hash: string; status: string };
}

describe("two processes that are killed at random", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let folder: string;
  before(async () => {
    server = await startPostgres();
    folder = mkdtempSync(join(tmpdir(), "assent-kills-"));
    mkdirSync(join(folder, "policies"));
    writeFileSync(join(folder, "policies/spending.yaml"), POLICY);
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("exceed no limit, start nothing twice and lose nothing that they answered", async () => {
    const url = await server.database();
    const shared = {
      DATABASE_URL: url,
      ASSENT_SECRET: "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU",
      ASSENT_LOG_KEY: pem(),
      ASSENT_PERMIT_KEY: pem(),
      ASSENT_LOG_ORIGIN: "kills.test/log",
      ASSENT_POLICIES: join(folder, "policies"),
      ASSENT_ADMIN_KEY: ADMIN,
    };
    const start = (i: number): Promise<ServiceProcess> =>
      startProcess({ ...shared, ASSENT_DATA: join(folder, String(i)) });
    const processes = [await start(0), await start(1)];
    await server.run(url, (sql) => sql.unsafe(CONFLICTS));
    const store = postgresStorage({ url });
    let loading = true;
    let unanswered = 0;
    const decided = new Map<string, Answer["body"]>();
    /** By action, the attempts that were told that they have started it. */
    const started = new Map<string, Set<string>>();
    const denied = new Set<string>();

    async function ask(at: number, path: string, body: object, key: string): Promise<Answer | null> {
      const answer = await fetch(`${(processes[at % 2] as ServiceProcess).url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json", "idempotency-key": key },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(15_000),
      })
        .then(async (response) => ({ status: response.status, body: (await response.json()) as Answer["body"] }))
        .catch(() => null);
      if (answer !== null && answer.status < 500) return answer;
      unanswered += 1;
      return null;
    }

    /** At one process after the other, until one answers. */
    async function insist(at: number, path: string, body: object, key: string): Promise<Answer | null> {
      for (let i = at; loading; i++) {
        const answer = await ask(i, path, body, key);
        if (answer !== null) return answer;
        await pause(20);
      }
      return null;
    }

    async function client(number: number): Promise<void> {
      for (let n = 0; loading; n++) {
        const agent_id = AGENTS[(number + n) % AGENTS.length] as string;
        const key = `${number}-${n}`;
        const answer = await insist(number + n, "/v1/actions", { agent_id, tool: "pay", operation: "refund" }, key);
        if (answer === null) return;
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        decided.set(key, answer.body);
        if (answer.body.status === "denied") {
          denied.add(agent_id);
          await pause(20);
          continue;
        }
        const { id } = answer.body;
        const attempts = ["one", "two"].map((name) => `attempt-${name}-of-action-${key}`);
        await Promise.all(
          attempts.map(async (attempt, at) => {
            const begun = await insist(at, `/v1/actions/${id}/start`, { attempt }, `start ${attempt}`);
            if (begun?.status === 200) started.set(id, (started.get(id) ?? new Set()).add(attempt));
            else if (begun !== null) assert.equal(begun.status, 409, JSON.stringify(begun.body));
          }),
        );
      }
    }

    try {
      const clients = Promise.all(Array.from({ length: 5 }, (_, i) => client(i)));
      clients.catch(() => (loading = false));
      try {
        for (let n = 0; n < KILLS && loading; n++) {
          await pause(Math.random() * 700);
          const victim = Math.random() < 0.5 ? 0 : 1;
          const { child, ended } = processes[victim] as ServiceProcess;
          child.kill("SIGKILL");
          await ended;
          processes[victim] = await start(victim);
        }
        await until("every limit is reached", () => denied.size === AGENTS.length || !loading);
      } finally {
        loading = false;
        await bounded("the clients are answered", clients);
      }
      assert.ok(unanswered > 0, "nobody was killed on the way");
      await store.open({ readOnly: true });
      assert.deepEqual((await auditStore(store, (await store.meta("log_vkey")) ?? "")).faults, []);

      const { size } = await store.head();
      const decisions = new Map<string, DecisionEntry>();
      const starts = new Map<string, ExecutionEntry>();
      for (const { bytes } of await store.entries(0, size)) {
        const entry = JSON.parse(new TextDecoder().decode(bytes)) as EntryBody;
        if (entry.type === "decision") decisions.set((entry as DecisionEntry).action_id, entry as DecisionEntry);
        if (entry.type !== "execution") continue;
        const execution = entry as ExecutionEntry;
        assert.ok(!starts.has(execution.action_id), "an action was started twice");
        starts.set(execution.action_id, execution);
      }
      for (const agent of AGENTS) {
        const allowed = [...decisions.values()].filter((it) => it.agent_id === agent && it.status === "allowed");
        assert.equal(allowed.length, MOST, `of ${agent}`);
      }
      assert.equal(new Set([...decided.values()].map(({ id }) => id)).size, decided.size);
      for (const { id, status } of decided.values()) assert.equal(decisions.get(id)?.status, status);
      for (const [id, attempts] of started) {
        assert.equal(attempts.size, 1, `${id} was started by ${[...attempts].join(" and ")}`);
        assert.equal(starts.get(id)?.attempt, sha256Hex(utf8([...attempts][0] as string)));
      }
      assert.ok(started.size > MOST, `${started.size} starts`);
    } finally {
      await bounded("the processes stop", Promise.all(processes.map((one) => stopProcess(one))));
      await store.close();
    }
  });
});
