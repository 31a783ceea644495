/**
 * Agents work while a process is killed (SIGKILL) in every step of their work: decision, vote, start, result, inspection,
 * usage, plan, task, authority and effect. What was acknowledged holds after each kill, and what was not acknowledged
 * happens at most once when the client repeats it. SEED repeats the times of the kills.
 * @needs grants, plans, results, sub-agents, tasks
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { startPostgres, withoutPostgres } from "../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { randomFrom } from "../support/random.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { pause, until } from "../support/wait.ts";

const SEED = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const COPIES = 4;
const CONFIG = `approvals: { trust_key_makers: true }
policies: ./policies
agents: any
`;
const POLICY = `policy: work
rules:
  - { name: pay, tool: pay, effect: allow, effect_key: { key: "pay/{params.invoice}", within: 24h } }
  - { name: deploy, tool: ci, operation: deploy, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: mail after outside content, tool: mail, when: '"outside" in session.labels', effect: require_approval }
  - { name: forbidden, operation: never, effect: deny }
  - { name: others, effect: allow }
limits:
  - { name: cost, tool: model, per: agent, sum: usage.cost_usd, reserve: 2, at_most: 10, window: 24h }
results: [{ name: outside, tool: web, effect: allow, labels: [outside] }]
`;
/** Makes the clock of a process two hours ahead, after which the outcome of a started action is unknown. */
const AHEAD = "--import=data:text/javascript,{const%20now=Date.now;Date.now=()=>now()+72e5}";

interface Answer {
  status: number;
  // The stories read bodies of every type without casts.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

/** Sends requests until a process answers, whichever process is killed meanwhile. */
interface Client {
  read(path: string, key?: string): Promise<Answer["body"]>;
  /** Sends a request with one idempotency key, so that a repetition creates nothing. */
  create(path: string, body: object, key?: string): Promise<Answer["body"]>;
  post(path: string, body: object, key?: string): Promise<Answer>;
  /** The number of requests that no process answered. */
  unanswered(): number;
  /** Makes all further requests fail, so that a failed story does not leave the others running. */
  stop(): void;
}

interface Keys {
  approver: string;
  boss: string;
  worker: string;
}

/** Work of one agent. It yields after each step, and a process is killed in each step. */
type Story = (client: Client, agent: string, keys: Keys) => AsyncGenerator<void>;

const submit = (client: Client, agent_id: string, tool: string, more: object = {}, key?: string) =>
  client.create("/v1/actions", { agent_id, tool, operation: "run", ...more }, key);

/** Starts an action with one attempt, however often the start is sent. Another attempt is refused. */
async function start(client: Client, id: string, key?: string, inspects = false): Promise<void> {
  const attempt = `attempt-of-${id.slice(-20)}`;
  const { status, body } = await client.post(`/v1/actions/${id}/start`, { attempt, inspects }, key);
  assert.equal(status, 200, JSON.stringify(body));
}
async function assertStarted(client: Client, id: string, key?: string): Promise<void> {
  const again = await client.post(`/v1/actions/${id}/start`, { attempt: "another-attempt-of-it" }, key);
  assert.equal(again.status, 409, JSON.stringify(again.body));
}
async function report(client: Client, id: string, more: object = {}): Promise<void> {
  const body = { success: true, attempt: `attempt-of-${id.slice(-20)}`, ...more };
  const answer = await client.post(`/v1/actions/${id}/result`, body);
  assert.deepEqual([answer.status, answer.body.status], [200, "succeeded"], JSON.stringify(answer.body));
}

const STORIES: Readonly<Record<string, Story>> = {
  async *run(client, agent) {
    const { id, status } = await submit(client, agent, "shop");
    assert.equal(status, "allowed");
    yield;
    await start(client, id);
    yield;
    await assertStarted(client, id);
    await report(client, id);
    yield;
    assert.equal((await client.read(`/v1/actions/${id}`)).status, "succeeded");
    await assertStarted(client, id);
  },
  async *vote(client, agent, { approver }) {
    const { id, status } = await submit(client, agent, "ci", { operation: "deploy", params: { agent } });
    assert.equal(status, "pending_approval");
    yield;
    const { approval_token: token } = await client.read(`/v1/actions/${id}`, approver);
    const vote = await client.post(`/v1/actions/${id}/approval`, { token, approve: true }, approver);
    assert.ok([200, 409].includes(vote.status), JSON.stringify(vote.body));
    yield;
    assert.equal((await client.read(`/v1/actions/${id}`)).status, "approved", "the vote counts");
    await start(client, id);
    yield;
    await assertStarted(client, id);
    await report(client, id);
  },
  async *task(client, agent, { approver }) {
    const deploy = (repo: string) => ({ tool: "ci", operation: "deploy", params: { repo, agent } });
    const actions = ["web", "api"].map((repo) => ({ agent_id: agent, ...deploy(repo) }));
    const plan = await client.create("/v1/plans", { actions });
    yield;
    const { digest } = await client.read(`/v1/plans/${plan.id}`, approver);
    yield;
    const terms = { agent_id: agent, title: "release", for: "1h", plan: { id: plan.id, digest } };
    const task = await client.create("/v1/tasks", terms, approver);
    yield;
    const ids = [];
    for (const repo of ["web", "api"]) {
      const { id, status } = await submit(client, agent, "ci", deploy(repo));
      assert.equal(status, "allowed", `${repo} is part of the task`);
      ids.push(id);
    }
    yield;
    for (const id of ids) await start(client, id);
    yield;
    const { tasks } = await client.read(`/v1/tasks?agent_id=${agent}`, approver);
    const { grants } = await client.read(`/v1/grants?agent_id=${agent}`, approver);
    assert.deepEqual([tasks.length, tasks[0]?.id, grants.length], [1, task.id, 2]);
    // The task covers each action once.
    assert.equal((await submit(client, agent, "ci", deploy("web"))).status, "pending_approval");
  },
  async *label(client, agent) {
    const { id } = await submit(client, agent, "web");
    yield;
    await start(client, id, ADMIN, true);
    yield;
    const answer = await client.post(`/v1/actions/${id}/inspect`, { output: "a page" });
    assert.deepEqual([answer.status, answer.body.labels], [200, ["outside"]], JSON.stringify(answer.body));
    yield;
    assert.equal((await submit(client, agent, "mail")).status, "pending_approval");
    await report(client, id);
    yield;
    assert.equal((await submit(client, agent, "mail")).status, "pending_approval");
  },
  async *uninspected(client, agent) {
    const { id } = await submit(client, agent, "web");
    await start(client, id);
    yield;
    assert.equal((await submit(client, agent, "mail")).status, "pending_approval");
    await report(client, id);
    yield;
    assert.equal((await submit(client, agent, "mail")).status, "pending_approval");
  },
  async *budget(client, agent) {
    const { id } = await submit(client, agent, "model");
    await start(client, id);
    yield;
    await report(client, id, { usage: { cost_usd: 8.5 } });
    yield;
    const next = await submit(client, agent, "model");
    assert.deepEqual([next.status, next.reason_code], ["denied", "LIMIT_EXCEEDED"]);
    await report(client, id, { usage: { cost_usd: 8.5 } });
    const other = { success: true, attempt: `attempt-of-${id.slice(-20)}`, usage: { cost_usd: 0 } };
    assert.equal((await client.post(`/v1/actions/${id}/result`, other)).status, 409);
  },
  async *authority(client, agent, { boss, worker }) {
    const terms = { agent_id: "worker", for: "2h", tools: [`tool-of-${agent}`], limits: { count: 1 } };
    const { id: authority } = await client.create("/v1/authorities", terms, boss);
    yield;
    const mine = await submit(client, "worker", `tool-of-${agent}`, { authority }, worker);
    assert.equal(mine.status, "allowed");
    yield;
    await start(client, mine.id, worker);
    yield;
    const { reason_code } = await submit(client, "worker", `tool-of-${agent}`, { authority }, worker);
    assert.equal(reason_code, "AUTHORITY_EXCEEDED");
  },
  async *effect(client, agent) {
    const pay = (agent_id: string) => submit(client, agent_id, "pay", { params: { invoice: agent } });
    const { id, status } = await pay(agent);
    assert.equal(status, "allowed");
    yield;
    assert.equal((await pay(`${agent}-other`)).reason_code, "EFFECT_REPEATED");
    await start(client, id);
    yield;
    assert.equal((await pay(`${agent}-other`)).reason_code, "EFFECT_REPEATED");
  },
};

/** The effect of the story after its outcome has become unknown, until a person settles it. */
async function* settle(client: Client, agent: string): AsyncGenerator<void> {
  const { actions } = await client.read(`/v1/actions?agent_id=${agent}`);
  const [{ id }] = actions.filter(({ tool, status }: Answer["body"]) => tool === "pay" && status !== "denied");
  const pay = () => submit(client, `${agent}-other`, "pay", { params: { invoice: agent } });
  await until("the outcome is unknown", async () => (await client.read(`/v1/actions/${id}`)).status === "unknown");
  yield;
  assert.equal((await pay()).reason_code, "EFFECT_REPEATED", "an unknown outcome blocks");
  const settled = await client.post(`/v1/actions/${id}/settle`, { success: false, reason: "the bank has no payment" });
  assert.ok([200, 409].includes(settled.status), JSON.stringify(settled.body));
  yield;
  assert.equal((await client.read(`/v1/actions/${id}`)).status, "failed");
  assert.equal((await pay()).status, "allowed");
  yield;
  assert.equal((await pay()).reason_code, "EFFECT_REPEATED");
}

/** @param random decides which responses are lost on their way, so that the client repeats the request */
function createClient(urlOf: () => string, random: () => number): Client {
  let isStopped = false;
  let unanswered = 0;
  let creations = 0;
  async function send(method: string, path: string, key: string, body?: object, idempotency?: string) {
    let isLost = method === "POST" && random() < 0.3;
    for (;;) {
      if (isStopped) throw new Error("another story has failed");
      const response = await fetch(urlOf() + path, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(idempotency === undefined ? {} : { "idempotency-key": idempotency }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
        .then(async (answer) => ({ status: answer.status, body: JSON.parse(await answer.text()) }))
        .catch(() => null);
      if (response !== null && response.status < 500) {
        if (!isLost) return response;
        isLost = false;
        continue;
      }
      unanswered += 1;
      await pause(20);
    }
  }
  return {
    unanswered: () => unanswered,
    stop: () => (isStopped = true),
    async read(path, key = ADMIN) {
      const { status, body } = await send("GET", path, key);
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    async create(path, body, key = ADMIN) {
      const answer = await send("POST", path, key, body, `creation-${path}-${++creations}`);
      assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    },
    post: (path, body, key = ADMIN) => send("POST", path, key, body),
  };
}

/**
 * Runs the stories on `count` processes that share a store. In each step of the stories, one process is killed.
 * @param env environment of the n-th process
 */
async function live(count: number, env: (n: number) => Record<string, string>, random: () => number): Promise<void> {
  const processes: ServiceProcess[] = [];
  let ahead: Record<string, string> = {};
  const begin = async (n: number): Promise<void> => {
    processes[n] = await startProcess({ ...env(n), ...ahead });
  };
  let killing = Promise.resolve();
  const kill = (n: number): Promise<void> =>
    (killing = stopProcess(processes[n] as ServiceProcess, "SIGKILL").then(() => begin(n)));
  let at = 0;
  const urlOf = (): string => (processes[at++ % count] as ServiceProcess).url;
  const client = createClient(urlOf, random);
  /** Advances each story by one step, and kills a process meanwhile, until all stories have ended. */
  async function finish(stories: AsyncGenerator<void>[]): Promise<void> {
    for (let running = stories; running.length > 0;) {
      const step = Promise.all(
        running.map(async (story) => {
          await pause(random() * 40);
          return (await story.next()).done === true ? [] : [story];
        }),
      );
      // A failed step must not leave a kill behind that starts a further process.
      const killed = pause(random() * 50).then(() => kill(Math.floor(random() * count)));
      running = (await Promise.all([step, killed]))[0].flat();
    }
  }
  try {
    for (let n = 0; n < count; n++) await begin(n);
    // The response to a repeated creation of a key does not contain the key.
    const reliable = createClient(urlOf, () => 1);
    const makeKey = async (body: object): Promise<string> => (await reliable.create("/v1/api-keys", body)).key;
    const keys = {
      approver: await makeKey({ name: "approver", preset: "approver" }),
      boss: await makeKey({ name: "boss", preset: "agent", agent_id: "boss" }),
      worker: await makeKey({ name: "worker", preset: "agent", agent_id: "worker" }),
    };
    const copies = Object.entries(STORIES).flatMap(([name, story]) =>
      Array.from({ length: COPIES }, (_, i) => story(client, `${name}-${i}`, keys)),
    );
    await finish(copies);
    assert.ok(client.unanswered() > 0, "no request was on its way when a process was killed");
    ahead = { NODE_OPTIONS: AHEAD };
    for (let n = 0; n < count; n++) await kill(n);
    await finish(Array.from({ length: COPIES }, (_, i) => settle(client, `effect-${i}`)));
  } finally {
    client.stop();
    // A story can fail while a process starts.
    await killing.catch(() => {});
    await Promise.all(processes.map((one) => stopProcess(one, "SIGKILL")));
  }
}

/** Checks that the ledger contains each step once, and that the audit finds no fault. */
async function check(storage: Storage): Promise<void> {
  await storage.open({ readOnly: true });
  try {
    assert.deepEqual((await auditStore(storage, (await storage.meta("log_vkey")) ?? "")).faults, []);
    const { size } = await storage.head();
    const counts = new Map<string, number>();
    for (const { bytes } of await storage.entries(0, size)) {
      const { type, action_id, phase, change } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, string>;
      const steps = [`${type} ${phase ?? change ?? ""}`];
      if (type === "decision" || type === "execution") steps.push(`${type} ${phase ?? ""} of ${action_id}`);
      for (const step of steps) counts.set(step, (counts.get(step) ?? 0) + 1);
    }
    for (const [step, count] of counts) if (step.includes(" of ")) assert.equal(count, 1, step);
    const [tasks, authorities] = [counts.get("task started"), counts.get("authority created")];
    assert.deepEqual([tasks, counts.get("grant granted"), authorities], [COPIES, 2 * COPIES, COPIES]);
  } finally {
    await storage.close();
  }
}

describe("agents whose service is killed in each step of their work lose nothing, and nothing runs twice", () => {
  async function run(count: number, env: Record<string, string>, storage: (folder: string) => Storage): Promise<void> {
    const folder = temporaryFolder("assent-work-kills-");
    try {
      mkdirSync(join(folder, "policies"));
      writeFileSync(join(folder, "policies/work.yaml"), POLICY);
      writeFileSync(join(folder, "assent.yaml"), CONFIG);
      const shared = {
        ...sharedEnvironment("work-kills.test/log"),
        ASSENT_CONFIG: join(folder, "assent.yaml"),
        ...env,
      };
      await live(count, (n) => ({ ...shared, ASSENT_DATA: join(folder, String(n)) }), randomFrom(SEED));
      await check(storage(join(folder, "0")));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  it("on one process with SQLite", async (t) => {
    t.diagnostic(`SEED=${SEED}`);
    await run(1, {}, (folder) => sqliteStorage({ path: join(folder, "assent.db") }));
  });

  it("on two processes with one Postgres", { skip: withoutPostgres }, async (t) => {
    t.diagnostic(`SEED=${SEED}`);
    const server = await startPostgres();
    try {
      const url = await server.database();
      await run(2, { DATABASE_URL: url }, () => postgresStorage({ url }));
    } finally {
      await server.stop();
    }
  });
});
