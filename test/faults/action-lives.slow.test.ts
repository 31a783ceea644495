/**
 * Submits, votes, starts, stops and changes policies concurrently on one or two processes whose clocks jump. Afterwards
 * the ledger must contain one consistent history of each action, and every response must agree with it.
 * @needs agents, replay, retention, stop
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { Config } from "../../src/config/index.ts";
import { createRandom } from "../support/random.ts";
import { newKey } from "../support/keys.ts";
import { startPostgres, withoutPostgres } from "../support/postgres.ts";
import { startService, type Answer, type Service } from "../support/service.ts";

const MINUTE = 60_000;
const MOST = 12;
const POLICY = `policy: base
rules:
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2, expires_in: 10m, valid_for: 30m } }
  - { name: ask, operation: ask, effect: require_approval, approval: { expires_in: 10m, valid_for: 20m } }
  - { name: go, operation: go, effect: allow }
limits:
  - { name: few, tool: t, per: agent, count: ${MOST}, window: 24h }
`;
const MOODS = [
  "rules:\n  - { name: mood, operation: go, effect: require_approval, approval: { expires_in: 5m } }",
  "rules:\n  - { name: mood, operation: ask, effect: require_approval, approval: { quorum: 2 } }",
  "rules:\n  - { name: mood, operation: '*', effect: deny }",
  "rules: []\nlimits:\n  - { name: fewer, tool: t, per: agent, count: 9, window: 24h }",
  "rules: []\nlimits:\n  - { name: asks, tool: t, per: agent, count: 2, window: 24h, effect: require_approval }",
].map((rest) => `policy: mood\n${rest}\n`);

type Json = Answer["body"];
interface Told {
  agent: string;
  /** Ids of attempts (or null) whose start request succeeded. */
  starts: { key: string; attempt: string | null }[];
  permits: string[];
}

const shared = (config: Config): void => {
  config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
  config.ledger.key = KEY;
  config.ledger.origin = "lives.test/log";
  config.approvals.trust_key_makers = true;
  config.permits.valid_seconds = 600;
};
const KEY = newKey();

async function live(services: readonly Service[], seed: number, bursts: number): Promise<void> {
  const { random, pick } = createRandom(seed);
  const [one] = services as [Service];
  const { admin } = one;
  const clock = one.clock;
  for (const service of services.slice(1)) service.clock = clock;
  const say = async (key: string, method: string, path: string, body?: object, headers = {}): Promise<Answer> => {
    const answer = await pick(services).call(method, path, { key, ...(body === undefined ? {} : { body }), headers });
    assert.ok(answer.status < 500, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer;
  };
  const makeKey = async (body: object): Promise<{ id: string; key: string }> => {
    const made = await one.call("POST", "/v1/api-keys", { key: admin, body });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    return made.body;
  };
  const agents = ["a", "b", "c", "d", "e"].map((letter) => `bot-${seed}-${letter}`);
  for (const id of agents) await one.call("POST", "/v1/agents", { key: admin, body: { id } });
  const keys: { agent: string; id: string; key: string; revoked: boolean }[] = [];
  for (const [i, agent] of [...agents, ...agents].entries())
    keys.push({
      agent,
      revoked: false,
      ...(await makeKey({ name: `${agent}-${i}`, preset: "agent", agent_id: agent })),
    });
  const tool = await makeKey({ name: `tool-${seed}`, scopes: ["actions:execute"] });
  const approvers = await Promise.all(
    ["ada", "ben", "cleo"].map((name) => makeKey({ name: `${name}-${seed}`, preset: "approver" })),
  );
  const told = new Map<string, Told>();
  const ids: string[] = [];
  const stops: string[] = [];
  const active: { mood: string | null } = { mood: null };

  const know = (id: string, agent: string): Told => {
    if (!told.has(id)) ids.push(id);
    const known = told.get(id) ?? { agent, starts: [], permits: [] };
    told.set(id, known);
    return known;
  };
  const attempt = (): string => `attempt-${seed}-${random(4)}-0123456789`;

  async function submit(): Promise<void> {
    const { key, agent } = pick(keys);
    const headers: Record<string, string> = {};
    if (random(2) === 0) headers["prefer"] = "permit";
    if (random(4) === 0) headers["idempotency-key"] = `i-${random(6)}`;
    const body = { agent_id: agent, tool: "t", operation: pick(["go", "ask", "two"]), params: { n: random(2) } };
    const path = random(3) === 0 ? "/v1/actions" : "/v1/actions?join=open";
    const answer = await say(key, "POST", path, body, headers);
    if (answer.status >= 300) return;
    const known = know(answer.body.id, agent);
    if (answer.body.permit !== null) known.permits.push(answer.body.permit);
  }
  async function start(): Promise<void> {
    const id = pick(ids);
    const known = told.get(id);
    if (known === undefined) return;
    const own = pick(keys.filter(({ agent }) => agent === known.agent));
    const by = random(3) === 0 ? tool : own;
    const permit = random(2) === 0 || by === tool ? pick(known.permits) : undefined;
    const named = random(2) === 0 ? attempt() : null;
    const body = { ...(permit === undefined ? {} : { permit }), ...(named === null ? {} : { attempt: named }) };
    const answer = await say(by.key, "POST", `/v1/actions/${id}/start`, body);
    if (answer.status === 200) known.starts.push({ key: by.id, attempt: named });
  }
  async function permit(): Promise<void> {
    const id = pick(ids);
    const known = told.get(id);
    if (known === undefined) return;
    const { key } = pick(keys.filter(({ agent }) => agent === known.agent));
    const answer = await say(key, "POST", `/v1/actions/${id}/permit`, {});
    if (answer.status === 200) known.permits.push(answer.body.permit);
  }
  async function vote(): Promise<void> {
    const open = await say(admin, "GET", "/v1/approvals?limit=50");
    const waiting = (open.body.actions ?? []) as Json[];
    if (waiting.length === 0) return;
    const { id } = pick(waiting);
    const { key } = pick(approvers);
    const { approval_token: token } = (await say(key, "GET", `/v1/actions/${id}`)).body;
    if (token === undefined) return;
    await say(key, "POST", `/v1/actions/${id}/approval`, { token, approve: random(6) > 0 });
  }
  async function cancel(): Promise<void> {
    const id = pick(ids);
    if (id === undefined) return;
    const known = told.get(id) as Told;
    const by = random(4) === 0 ? admin : pick(keys.filter(({ agent }) => agent === known.agent)).key;
    await say(by, "POST", `/v1/actions/${id}/cancel`, {});
  }
  async function result(): Promise<void> {
    const id = pick(ids);
    const known = told.get(id);
    if (known === undefined) return;
    const { key } = random(3) === 0 ? tool : pick(keys.filter(({ agent }) => agent === known.agent));
    const named = random(2) === 0 ? { attempt: attempt() } : {};
    await say(key, "POST", `/v1/actions/${id}/result`, { success: random(2) === 0, ...named });
  }
  async function policies(): Promise<void> {
    if (active.mood !== null && random(2) === 0) {
      await say(admin, "POST", `/v1/policies/${active.mood}/deactivate`, {});
      return;
    }
    const made = await say(admin, "POST", "/v1/policies/import-yaml?activate=true", { yaml: pick(MOODS) });
    if (made.status < 300) active.mood = made.body.policies[0].id;
  }
  async function stop(): Promise<void> {
    const selectors = [{}, { agent: pick(agents) }, { tool: "t" }, { policy: "base" }];
    if (stops.length > 0 && random(4) > 0) {
      const id = stops.pop() as string;
      await say(admin, "POST", `/v1/stop/${id}/lift`, {});
      return;
    }
    const until = random(2) === 0 ? { until: new Date(Date.now() + clock.now + 2 * MINUTE).toISOString() } : {};
    const placed = await say(admin, "POST", "/v1/stop", { reason: "drill", ...pick(selectors), ...until });
    if (placed.status === 201) stops.push(placed.body.id);
  }
  async function contain(): Promise<void> {
    const agent = pick(agents);
    await say(admin, "POST", `/v1/agents/${agent}/suspend`, { reason: "drill" });
    await say(admin, "POST", `/v1/agents/${agent}/resume`);
  }
  async function renew(): Promise<void> {
    const old = pick(keys);
    await say(admin, "DELETE", `/v1/api-keys/${old.id}`);
    const name = `${old.agent}-${random(1_000_000)}`;
    Object.assign(old, await makeKey({ name, preset: "agent", agent_id: old.agent }));
  }
  async function erase(): Promise<void> {
    const id = pick(ids);
    if (id === undefined) return;
    await say(admin, "POST", `/v1/actions/${id}/erase`, { reason: "drill" });
  }

  const common = [submit, submit, submit, start, start, start, start, permit, permit, vote, vote, vote, cancel, result];
  const rare = [policies, policies, policies, policies, stop, contain, renew, erase];
  for (let burst = 0; burst < bursts; burst++) {
    const many = 3 + random(10);
    await Promise.all(Array.from({ length: many }, () => (random(9) === 0 ? pick(rare) : pick(common))()));
    // Without this, the policies deny most actions, and nothing else happens to them.
    if (random(2) === 0 && active.mood !== null) await say(admin, "POST", `/v1/policies/${active.mood}/deactivate`, {});
    if (random(2) === 0) for (const id of stops.splice(0)) await say(admin, "POST", `/v1/stop/${id}/lift`, {});
    const jump = random(12);
    if (jump === 0) clock.now += (1 + random(12)) * MINUTE;
    if (jump === 1) clock.now -= random(5) * MINUTE;
    if (jump === 2 && services.length === 1) await one.restart();
  }
  for (const id of stops) await say(admin, "POST", `/v1/stop/${id}/lift`, {});
  await check(one, told);
}

/** Verifies the history of each action entry by entry, without using the service's own rules. */
async function check(service: Service, told: ReadonlyMap<string, Told>): Promise<void> {
  const { size } = await service.storage.head();
  const lives = new Map<string, Json[]>();
  for (const { bytes } of await service.storage.entries(0, size)) {
    const entry = JSON.parse(new TextDecoder().decode(bytes)) as Json;
    if (entry.action_id !== undefined) lives.set(entry.action_id, [...(lives.get(entry.action_id) ?? []), entry]);
  }
  const granted = new Map<string, number>();
  for (const [id, { agent, starts, permits }] of told) {
    const entries = lives.get(id) as Json[];
    const begun = entries.filter(({ phase }) => phase === "start");
    assert.ok(begun.length <= 1, `${id} started twice`);
    const [start] = begun;
    if (starts.length > 0) {
      assert.ok(start !== undefined, `${id} was said to start`);
      assert.ok(
        starts.every(({ key }) => key === start.by.key_id),
        `${id}: two keys were told that they started it`,
      );
      assert.equal(new Set(starts.map(({ attempt }) => attempt)).size, 1, `${id}: two attempts were told so`);
      assert.ok(starts.length === 1 || starts[0]?.attempt !== null, `${id}: the same start without a name`);
    }
    if (start !== undefined) {
      const before = entries.slice(0, entries.indexOf(start));
      const state = before.findLast(({ status }) => status !== undefined);
      assert.ok(["allowed", "approved"].includes(state.status), `${id} started as ${state.status}`);
      const until = before.findLast(({ approved_until }) => typeof approved_until === "string").approved_until;
      assert.ok(start.at < until, `${id} started at ${start.at}, until ${until}`);
      const last = entries.filter(({ type }) => type !== "erasure").at(-1);
      assert.equal(last.type, "execution", `${id} went on with ${last.type} after its start`);
    }
    // An operator can cancel an action that may start, knowing that a start could come first.
    const ended = entries.some(
      ({ verdict }, i) =>
        verdict === "cancelled" &&
        ["allowed", "approved"].includes(entries.slice(0, i).findLast(({ status }) => status !== undefined).status),
    );
    if ((permits.length > 0 || starts.length > 0) && !ended) granted.set(agent, (granted.get(agent) ?? 0) + 1);
    const replayed = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } });
    if (replayed.body.code === "ACTION_ERASED") continue;
    assert.equal(replayed.body.equal, true, `${id} is replayed otherwise: ${JSON.stringify(replayed.body.fields)}`);
    for (const { equal, fields } of replayed.body.redecisions) assert.ok(equal, JSON.stringify(fields));
  }
  for (const [agent, count] of granted) assert.ok(count <= MOST, `${agent} was given leave for ${count} actions`);
}

const SEEDS = [6, 7];
const BURSTS = 60;

describe("histories of actions under concurrent changes", () => {
  for (const seed of SEEDS)
    it(`on one process that is restarted and whose clock jumps (${seed})`, async () => {
      const service = await startService({ policy: POLICY, change: shared });
      try {
        await live([service], seed, BURSTS);
      } finally {
        await service.close();
      }
    });

  it("on two processes and one Postgres", { skip: withoutPostgres }, async () => {
    const server = await startPostgres();
    const url = await server.database();
    const services: Service[] = [];
    try {
      for (let i = 0; i < 2; i++)
        services.push(
          await startService({
            policy: POLICY,
            storage: () => postgresStorage({ url, poolSize: 3 }),
            change: shared,
          }),
        );
      for (const seed of SEEDS) await live(services, seed + 1000, BURSTS);
    } finally {
      for (const service of services) await service.close();
      await server.stop();
    }
  });
});
