/**
 * Two processes on one store, with the real handler, plugins and sequencer. After each storage operation, a seeded
 * choice decides which process continues, and connections are lost before, inside and after transactions. In any order,
 * a stop, a revocation, a suspension and an activation take effect from their own response on, limits are exact, an
 * action starts once, the ledger's time never goes back, no caller is answered before the commit, and there is one
 * history.
 * `INTERLEAVE_SEED` repeats one walk, `INTERLEAVE_WALKS` sets their number.
 * @needs agents
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { decodeEntry } from "../../src/domain/entries.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { appendToEdge, rootFromEdge } from "../../src/domain/merkle.ts";
import { equalBytes, toHex } from "../../src/domain/hash.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { hasFeature } from "../support/features.ts";
import { createRandom } from "../support/random.ts";
import { SECRET } from "../support/deployment.ts";
import { interleave } from "../support/interleave.ts";
import { newKey } from "../support/keys.ts";
import { makeKey, startService, type Answer, type Service } from "../support/service.ts";

const WALKS = Number(process.env["INTERLEAVE_WALKS"] ?? 16);
const FIRST = Number(process.env["INTERLEAVE_SEED"] ?? 1);
const MOST = 3;
const POLICY = `policy: base
rules:
  - { name: ask, operation: ask, effect: require_approval, approval: { expires_in: 10m, valid_for: 20m } }
  - { name: go, operation: go, effect: allow }
  - { name: counted, operation: counted, effect: allow }
limits:
  - { name: few, operation: counted, per: agent, count: ${MOST}, window: 24h }
`;

type Containment = "stop" | "suspension" | "revocation" | "activation";
const CONTAINMENTS: readonly Containment[] = [
  ...(hasFeature("stop") ? (["stop"] as const) : []),
  "suspension",
  "revocation",
  "activation",
];
/** The type of the entry that records it. */
const ENTRY_TYPES = { stop: "stop", suspension: "agent", revocation: "api_key", activation: "policy_set" };

/** One request of a walk, with the scheduler's times of its start and end. */
interface Asked {
  what: string;
  invokedAt: number;
  answeredAt: number;
  answer: Answer;
}

describe("two processes on one store, in every order", () => {
  const memory = memoryStorage();
  const walking = interleave(memory);
  let services: Service[];
  let keys: { admin: string; ben: string };
  before(async () => {
    await memory.open();
    const log = newKey();
    const start = (name: string, ahead: number): Promise<Service> =>
      startService({
        ahead,
        policy: POLICY,
        storage: () => walking.process(name),
        change(config) {
          config.secret = SECRET;
          config.ledger.key = log;
          config.ledger.origin = "interleavings.test/log";
          config.approvals.trust_key_makers = true;
          config.approvals.rejection_holds_seconds = 0;
        },
      });
    services = [await start("A", 0), await start("B", 3_000)];
    const admin = services.find((service) => service.admin !== "")?.admin as string;
    const [one] = services as [Service];
    const ben = await one.call("POST", "/v1/api-keys", {
      key: admin,
      body: { name: "ben", preset: "approver" },
    });
    keys = { admin, ben: ben.body.key };
  });
  after(async () => {
    // Each audits the store.
    for (const service of services) await service.close();
    await memory.close();
  });

  async function walk(seed: number): Promise<void> {
    const { random, pick } = createRandom(seed * 7919);
    const kind = CONTAINMENTS[seed % CONTAINMENTS.length] as Containment;
    const [one] = services as [Service];
    const admin = (method: string, path: string, body?: object): Promise<Answer> =>
      one.call(method, path, { key: keys.admin, ...(body === undefined ? {} : { body }) });

    const agent = `bot-${seed}`;
    await admin("POST", "/v1/agents", { id: agent });
    const own = await makeKey(one, { name: agent, preset: "agent", agent_id: agent }, keys.admin);
    const body = (operation: string): object => ({ agent_id: agent, tool: `tool-${seed}`, operation });
    const submitted = async (operation: string): Promise<string> =>
      (await one.call("POST", "/v1/actions", { key: own.key, body: body(operation) })).body.id as string;
    const asked = await submitted("ask");
    const token = (await admin("GET", `/v1/actions/${asked}`)).body.approval_token as string;
    const allowed = [await submitted("go"), await submitted("go")];
    const { size } = await memory.head();

    let now = 0;
    const all: Asked[] = [];
    const request = async (what: string, path: string, key: string, body: object, method = "POST"): Promise<Asked> => {
      await walking.step(`a client: ${what}`);
      const invokedAt = ++now;
      const answer = await pick(services).call(method, path, { key, ...(method === "DELETE" ? {} : { body }) });
      // Before anything else runs: everything that was answered must be committed by now.
      const isRecorded = answer.status < 300 ? await recorded(what, answer, size) : true;
      const entry = { what, invokedAt, answeredAt: ++now, answer };
      all.push(entry);
      assert.ok(isRecorded, `answered ahead of the commit: ${what} ${JSON.stringify(answer.body)}`);
      assert.ok(answer.status < 500 || answer.status === 503, `${what}: ${JSON.stringify(answer.body)}`);
      return entry;
    };
    const contain = {
      stop: () => request("contain", "/v1/stop", keys.admin, { reason: "drill", agent }),
      suspension: () => request("contain", `/v1/agents/${agent}/suspend`, keys.admin, { reason: "drill" }),
      revocation: () => request("contain", `/v1/api-keys/${own.id}`, keys.admin, {}, "DELETE"),
      activation: () =>
        request("contain", "/v1/policies?activate=true", keys.admin, {
          policy: `no-${seed}`,
          rules: [{ name: "no", tool: `tool-${seed}`, effect: "deny" }],
        }),
    };
    const submit = (operation: string): Promise<Asked> => request(operation, "/v1/actions", own.key, body(operation));
    const start = (id: string, attempt: string): Promise<Asked> =>
      request(`start ${id}`, `/v1/actions/${id}/start`, own.key, { attempt: `attempt-${attempt}-0123456789` });
    const vote = (key: string, approve: boolean): Promise<Asked> =>
      request(approve ? "approve" : "reject", `/v1/actions/${asked}/approval`, key, { token, approve });

    try {
      await walking.run(seed, () =>
        Promise.all([
          contain[kind](),
          ...Array.from({ length: 4 }, () => submit("go")),
          ...Array.from({ length: MOST + 2 }, () => submit("counted")),
          ...allowed.flatMap((id) => [start(id, "one"), start(id, "two")]),
          vote(keys.admin, true),
          vote(keys.admin, true),
          vote(keys.ben, random(2) === 0),
        ]),
      );
      verifyAnswers(kind, all);
      await verifyOnce(agent, size, all);
      await verifyLedger(kind, agent, size, walking.faults);
    } catch (error) {
      throw new Error(
        `${(error as Error).message}\nINTERLEAVE_SEED=${seed} INTERLEAVE_WALKS=1 repeats it; its last steps:\n${walking.trace.slice(-60).join("\n")}`,
        { cause: error },
      );
    }
  }

  /** Returns whether the store contains what this response says. */
  async function recorded(what: string, { body }: Answer, size: number): Promise<boolean> {
    const entries = (await memory.entries(size, (await memory.head()).size)).map(({ bytes }) =>
      decodeEntry<JsonObject>(bytes),
    );
    if (what === "contain") return entries.some(({ type }) => Object.values(ENTRY_TYPES).includes(type as string));
    const row = await memory.action(String(body.id));
    if (row === null) return false;
    return !what.startsWith("start") || entries.some((entry) => entry["action_id"] === body.id);
  }

  /** The responses that callers received, in the order of real time. */
  function verifyAnswers(kind: Containment, all: readonly Asked[]): void {
    const containment = all.find(({ what }) => what === "contain") as Asked;
    assert.ok([200, 201, 204, 503].includes(containment.answer.status), JSON.stringify(containment.answer.body));
    for (const { what, invokedAt, answer } of all) {
      if (what === "contain" || containment.answer.status >= 300 || invokedAt < containment.answeredAt) continue;
      const letsGo = answer.body.status === "allowed" || answer.body.status === "approved";
      const started = what.startsWith("start") && answer.status === 200;
      assert.ok(!letsGo && !started, `${what} after the answer of the ${kind}: ${JSON.stringify(answer.body)}`);
    }
    const counted = all.filter(({ what, answer }) => what === "counted" && answer.body.status === "allowed");
    assert.ok(counted.length <= MOST, `${counted.length} of ${MOST}`);
    const starts = all.filter(({ what, answer }) => what.startsWith("start") && answer.status === 200);
    const ids = starts.map(({ what }) => what);
    assert.equal(new Set(ids).size, ids.length, "an action was started twice");
    const votes = all.filter(({ what }) => what === "approve" || what === "reject");
    const decided = votes.filter(({ answer }) => answer.status === 200).map(({ answer }) => answer.body.status);
    assert.ok(!(decided.includes("approved") && decided.includes("denied")), `votes: ${decided.join(", ")}`);
  }

  /** Nothing is recorded twice, even if a response was lost. */
  async function verifyOnce(agent: string, from: number, all: readonly Asked[]): Promise<void> {
    const entries = (await memory.entries(from, (await memory.head()).size))
      .map(({ bytes }) => decodeEntry<JsonObject>(bytes))
      .filter((entry) => entry["agent_id"] === agent);
    const submissions = all.filter(({ what }) => what === "go" || what === "counted");
    const answered = new Set(submissions.map(({ answer }) => answer.body.id as unknown));
    const unanswered = entries.filter(({ type, action_id }) => type === "decision" && !answered.has(action_id));
    const lost = submissions.filter(({ answer }) => answer.status === 503);
    assert.ok(unanswered.length <= lost.length, `${unanswered.length} decisions for ${lost.length} lost answers`);

    const starts = entries.filter(({ type, phase }) => type === "execution" && phase === "start");
    assert.equal(new Set(starts.map((entry) => entry["action_id"])).size, starts.length, "a start is recorded twice");

    const votes = entries.filter(
      ({ type, verdict }) => type === "approval" && ["approve", "deny"].includes(verdict as string),
    );
    const people = votes.map(({ by }) => (by as JsonObject)["principal"]);
    assert.equal(new Set(people).size, people.length, "a person's vote is recorded twice");
    const decided = votes.findIndex(({ status }) => status !== "pending_approval");
    assert.ok(decided < 0 || decided === votes.length - 1, "a vote is recorded after the last one that was needed");
  }

  /** The entries of the ledger, in its own order. */
  async function verifyLedger(kind: Containment, agent: string, from: number, faults: number): Promise<void> {
    const head = await memory.head();
    const rows = await memory.entries(0, head.size);
    let edge: Uint8Array[] = [];
    let at = -Infinity;
    for (const [i, row] of rows.entries()) {
      assert.equal(row.seq, i);
      assert.ok(row.created_at >= at, `the ledger's time goes back at entry ${i}`);
      at = row.created_at;
      edge = appendToEdge(edge, i, row.leaf_hash);
    }
    assert.equal(toHex(rootFromEdge(edge)), toHex(head.root), "the head is that of the entries");
    for (const { runtime } of services) {
      const signed = await runtime.host.ledger.checkpoint();
      assert.ok(equalBytes(await runtime.host.ledger.rootAt(signed.size), signed.root), "one history");
    }
    for (const [i, service] of services.entries()) {
      const { status } = await service.call("POST", "/v1/agents", { key: keys.admin, body: { id: `${agent}-${i}` } });
      assert.equal(status, 201, "each process goes on");
    }
    const entries = rows.slice(from).map(({ bytes }) => decodeEntry<JsonObject>(bytes));
    const end = entries.findIndex(({ type, change }) => type === ENTRY_TYPES[kind] && change !== "created");
    assert.ok(end >= 0 || faults > 0, "the containment is recorded");
    for (const entry of end < 0 ? [] : entries.slice(end + 1)) {
      if (entry["agent_id"] !== agent) continue;
      const status = entry["status"] as string;
      assert.ok(!["allowed", "approved", "executing"].includes(status), `${entry.type as string} ${status}`);
    }
    const uses = entries.filter(
      (entry) =>
        entry.type === "decision" &&
        entry["status"] === "allowed" &&
        entry["operation"] === "counted" &&
        entry["agent_id"] === agent,
    ).length;
    assert.ok(uses <= MOST, `${uses} of ${MOST} are in the ledger`);
    if (end < 0 && faults === 0) assert.equal(uses, MOST);
  }

  for (let seed = FIRST; seed < FIRST + WALKS; seed++) it(`walk ${seed}`, () => walk(seed));
});
