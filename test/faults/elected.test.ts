/**
 * Three processes and one Postgres, one of which decides for all, while it is killed at each moment of the others'
 * messages, suspended past its lease and woken again beside its successor, and cut off from the others. What was answered
 * is there once, no limit is exceeded, and nothing is started or reported twice. The database's clock times the lease and nothing
 * else: what one who leads writes is right by the ledger's lock, whoever else thinks that he leads.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { sharedEnvironment } from "../support/deployment.ts";
import { insist } from "../support/insisting.ts";
import { peerProxy, type Moment, type PeerProxy } from "../support/peer-proxy.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { bounded, eventually, pause, until } from "../support/wait.ts";

const PROCESSES = 3;
const AGENTS = ["a", "b", "c"];
const MOST = 40;
const POLICY = `policy: spending
rules:
  - { name: pay, tool: pay, effect: allow }
  - { name: look, tool: look, effect: allow }
limits:
  - { name: few, tool: pay, per: agent, count: ${MOST}, window: 1h }
`;
const MOMENTS: readonly Moment[] = ["before-send", "after-send", "after-commit", "half"];

interface Member {
  process: ServiceProcess;
  proxy: PeerProxy;
}

describe("a process that decides for all", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let folder: string;
  before(async () => {
    server = await startPostgres();
    folder = mkdtempSync(join(tmpdir(), "assent-elected-"));
    mkdirSync(join(folder, "policies"));
    writeFileSync(join(folder, "policies/spending.yaml"), POLICY);
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is killed, suspended and cut off, and each answer holds, each limit too, and each start and result is one", async () => {
    const url = await server.database();
    const shared = {
      ...sharedEnvironment("elected.test/log"),
      DATABASE_URL: url,
      ASSENT_POLICIES: join(folder, "policies"),
    };
    const members: Member[] = [];
    async function start(at: number, proxy: PeerProxy): Promise<ServiceProcess> {
      const process = await startProcess({
        ...shared,
        ASSENT_DATA: join(folder, String(at)),
        ASSENT_PEER_URL: proxy.url,
      });
      proxy.to(Number(new URL(process.url).port));
      return process;
    }
    for (let i = 0; i < PROCESSES; i++) {
      const proxy = await peerProxy();
      members.push({ proxy, process: await start(i, proxy) });
    }
    const store = postgresStorage({ url });
    const load = insist({
      clients: 6,
      urlOf: (at) => (members[at % PROCESSES] as Member).process.url,
      submission: (client, n) => ({
        agent_id: AGENTS[(client + n) % AGENTS.length] as string,
        tool: n % 4 === 0 ? "pay" : "look",
        operation: "x",
      }),
      async answered({ status }) {
        await pause(15);
        return status !== "denied";
      },
    });

    const wayOf = async ({ process }: Member): Promise<string | null> =>
      fetch(`${process.url}/readyz`, { signal: AbortSignal.timeout(1_000) })
        .then(async (response) => ((await response.json()) as { sequencer: { way: string } }).sequencer.way)
        .catch(() => null);

    /** The one that leads, once the others in their turn send it what they are asked. */
    const leader = (among: readonly Member[] = members): Promise<number> =>
      eventually(
        async () => {
          const ways = await Promise.all(among.map(wayOf));
          const at = ways.indexOf("leads");
          return at >= 0 && ways.filter((way) => way === "sends").length === among.length - 1
            ? members.indexOf(among[at] as Member)
            : undefined;
        },
        () => "one leads and the others send",
        50,
      );

    try {
      try {
        for (const moment of MOMENTS) {
          const at = await leader();
          const { proxy, process } = members[at] as Member;
          await bounded(
            moment,
            proxy.arm(moment, () => void process.child.kill("SIGKILL")),
          );
          await process.ended;
          (members[at] as Member).process = await start(at, proxy);
        }
        // Two that both think that they lead, with what was sent to the first one still on its desk.
        const suspended = await leader();
        const { child } = (members[suspended] as Member).process;
        child.kill("SIGSTOP");
        try {
          await leader(members.filter((_, i) => i !== suspended));
        } finally {
          child.kill("SIGCONT");
        }
        const cut = await leader();
        (members[cut] as Member).proxy.block(true);
        const fronts = members.filter((_, i) => i !== cut);
        await until("the others do without it", async () =>
          (await Promise.all(fronts.map(wayOf))).every((way) => way === "own"),
        );
        (members[cut] as Member).proxy.block(false);
        await leader();
        const paid = load.decided.size;
        await until("more is decided", () => load.decided.size > paid + 30 || !load.loading());
      } finally {
        await load.stop();
      }
      assert.ok(load.unanswered() > 0, "nobody was killed on the way");
      await store.open({ readOnly: true });
      assert.deepEqual((await auditStore(store, (await store.meta("log_vkey")) ?? "")).faults, []);

      const decisions = await load.holdAgainst(store);
      for (const agent of AGENTS) {
        const paid = [...decisions.values()].filter(
          (it) => it.agent_id === agent && it.tool === "pay" && it.status === "allowed",
        );
        assert.ok(paid.length <= MOST, `${paid.length} of ${agent}`);
      }
      // Every submission had an idempotency key, and nobody gave one up: there is one decision for each, and no other.
      assert.ok(
        decisions.size - load.decided.size <= 6,
        `${decisions.size} decisions for ${load.decided.size} answers`,
      );
      assert.ok(load.reported.size > 0);
    } finally {
      await bounded("the processes stop", Promise.all(members.map(({ process }) => stopProcess(process))));
      await Promise.all(members.map(({ proxy }) => proxy.stop()));
      await store.close();
    }
  });
});
