/**
 * Two processes on one Postgres are killed at random while Postgres aborts every sixth commit with a serialization
 * failure (SQLSTATE 40001). Limits are never exceeded, only one attempt starts each action, and every acknowledged
 * action is recorded once.
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { sharedEnvironment } from "../support/deployment.ts";
import { startRetryingClients } from "../support/retrying-clients.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { withTimeout, pause, until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const KILLS = Number(process.env["KILLS"] ?? 4);
const AGENTS = ["a", "b", "c"];
const MOST = 60;
const POLICY = `policy: spending
rules:
  - { name: pay, tool: pay, effect: allow }
limits:
  - { name: few, tool: pay, per: agent, count: ${MOST}, window: 1h }
`;

/** `nextval` is not rolled back with the transaction, so the counter advances on each attempt. */
const CONFLICTS = `create sequence conflicts;
  create function conflict() returns trigger language plpgsql as $$ begin
    if nextval('conflicts') % 6 = 0 then raise exception using errcode = '40001', message = 'restart transaction'; end if;
    return null; end $$;
  create constraint trigger in_the_way after update on ledger_head deferrable initially deferred
    for each row execute function conflict()`;

describe("two processes that are killed at random", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let folder: string;
  before(async () => {
    server = await startPostgres();
    folder = temporaryFolder("assent-kills-");
    mkdirSync(join(folder, "policies"));
    writeFileSync(join(folder, "policies/spending.yaml"), POLICY);
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("exceed no limit, start no action twice and lose no acknowledged action", async () => {
    const url = await server.database();
    const shared = {
      ...sharedEnvironment("kills.test/log"),
      DATABASE_URL: url,
      ASSENT_POLICIES: join(folder, "policies"),
    };
    const start = (i: number): Promise<ServiceProcess> =>
      startProcess({ ...shared, ASSENT_DATA: join(folder, String(i)) });
    const processes = [await start(0), await start(1)];
    await server.run(url, (sql) => sql.unsafe(CONFLICTS));
    const store = postgresStorage({ url });
    const denied = new Set<string>();
    const load = startRetryingClients({
      clients: 5,
      urlOf: (at) => (processes[at % 2] as ServiceProcess).url,
      submission: (client, n) => ({
        agent_id: AGENTS[(client + n) % AGENTS.length] as string,
        tool: "pay",
        operation: "refund",
      }),
      async handleResponse({ status }, { agent_id }) {
        if (status !== "denied") return true;
        denied.add(agent_id);
        await pause(20);
        return false;
      },
    });

    try {
      try {
        for (let n = 0; n < KILLS && load.isRunning(); n++) {
          await pause(Math.random() * 700);
          const victim = Math.random() < 0.5 ? 0 : 1;
          const { child, ended } = processes[victim] as ServiceProcess;
          child.kill("SIGKILL");
          await ended;
          processes[victim] = await start(victim);
        }
        await until("every limit is reached", () => denied.size === AGENTS.length || !load.isRunning());
      } finally {
        await load.stop();
      }
      assert.ok(load.unanswered() > 0, "nobody was killed on the way");
      // The audit compares the schema with that of the migrations.
      await server.run(url, (sql) => sql.unsafe("drop trigger in_the_way on ledger_head; drop function conflict()"));
      await store.open({ readOnly: true });
      assert.deepEqual((await auditStore(store, (await store.meta("log_vkey")) ?? "")).faults, []);

      const decisions = await load.verifyAgainst(store);
      for (const agent of AGENTS) {
        const allowed = [...decisions.values()].filter((it) => it.agent_id === agent && it.status === "allowed");
        assert.equal(allowed.length, MOST, `of ${agent}`);
      }
      assert.ok(load.started.size > MOST, `${load.started.size} starts`);
    } finally {
      await withTimeout("the processes stop", Promise.all(processes.map((one) => stopProcess(one))));
      await store.close();
    }
  });
});
