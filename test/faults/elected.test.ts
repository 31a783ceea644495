/**
 * Three processes and one Postgres, one of which decides for all, while it is killed at each moment of the others'
 * messages, suspended past its lease and woken again beside its successor, and cut off from the others. What was answered
 * is there once, no limit is exceeded, and nothing is started twice. The database's clock times the lease and nothing
 * else: what one who leads writes is right by the ledger's lock, whoever else thinks that he leads.
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
import { peerProxy, type Moment, type PeerProxy } from "../support/peer-proxy.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { bounded, eventually, pause, until } from "../support/wait.ts";

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const pem = (): string => generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;
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

interface Answer {
  status: number;
  body: { id: string; status: string };
}

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

  it("is killed, suspended and cut off, and each answer holds, each limit too, and each start is one", async () => {
    const url = await server.database();
    const shared = {
      DATABASE_URL: url,
      ASSENT_SECRET: "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU",
      ASSENT_LOG_KEY: pem(),
      ASSENT_PERMIT_KEY: pem(),
      ASSENT_LOG_ORIGIN: "elected.test/log",
      ASSENT_POLICIES: join(folder, "policies"),
      ASSENT_ADMIN_KEY: ADMIN,
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
    let loading = true;
    let unanswered = 0;
    const decided = new Map<string, Answer["body"]>();
    /** By action, the attempts that were told that they have started it. */
    const started = new Map<string, Set<string>>();

    async function ask(at: number, path: string, body: object, key: string): Promise<Answer | null> {
      const answer = await fetch(`${members[at % PROCESSES]?.process.url}${path}`, {
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
        const tool = n % 4 === 0 ? "pay" : "look";
        const answer = await insist(number + n, "/v1/actions", { agent_id, tool, operation: "x" }, key);
        if (answer === null) return;
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        decided.set(key, answer.body);
        await pause(15);
        if (tool === "look" || answer.body.status === "denied") continue;
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
      const clients = Promise.all(Array.from({ length: 6 }, (_, i) => client(i)));
      clients.catch(() => (loading = false));
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
        const paid = decided.size;
        await until("more is decided", () => decided.size > paid + 30 || !loading);
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
        if (entry.type === "decision") {
          const decision = entry as DecisionEntry;
          assert.ok(!decisions.has(decision.action_id), "an action was decided twice");
          decisions.set(decision.action_id, decision);
        }
        if (entry.type !== "execution") continue;
        const execution = entry as ExecutionEntry;
        assert.ok(!starts.has(execution.action_id), "an action was started twice");
        starts.set(execution.action_id, execution);
      }
      for (const agent of AGENTS) {
        const paid = [...decisions.values()].filter(
          (it) => it.agent_id === agent && it.tool === "pay" && it.status === "allowed",
        );
        assert.ok(paid.length <= MOST, `${paid.length} of ${agent}`);
      }
      // Every submission had an idempotency key, and nobody gave one up: there is one decision for each, and no other.
      assert.equal(new Set([...decided.values()].map(({ id }) => id)).size, decided.size);
      assert.ok(decisions.size - decided.size <= 6, `${decisions.size} decisions for ${decided.size} answers`);
      for (const { id, status } of decided.values()) assert.equal(decisions.get(id)?.status, status);
      for (const [id, attempts] of started) {
        assert.equal(attempts.size, 1, `${id} was started by ${[...attempts].join(" and ")}`);
        assert.equal(starts.get(id)?.attempt, sha256Hex(utf8([...attempts][0] as string)));
      }
      assert.ok(started.size > 0);
    } finally {
      await bounded("the processes stop", Promise.all(members.map(({ process }) => stopProcess(process))));
      await Promise.all(members.map(({ proxy }) => proxy.stop()));
      await store.close();
    }
  });
});
