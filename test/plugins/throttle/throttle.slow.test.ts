/** An agent that requests approval far more often than usual is throttled: exactly, once an hour, and in every process. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hasFeature } from "../../support/features.ts";
import { decodeEntry, encodeEntry } from "../../../src/domain/entries.ts";
import type { EntryBody } from "../../../src/domain/entries.ts";
import type { AuditStates } from "../../../src/contract/audit.ts";
import { throttleAuditor } from "../../../plugins/throttle/audit.ts";
import type { ThrottleEntry } from "../../../plugins/throttle/entry.ts";
import { throttlePeriod } from "../../../plugins/throttle/rate.ts";
import type { Config } from "../../../src/config/index.ts";
import { memoryStorage } from "../../../src/testing/memory-storage.ts";
import { SECRET } from "../../support/deployment.ts";
import { interleave } from "../../support/interleave.ts";
import { newKey } from "../../support/keys.ts";
import { makeKey, setSection, startService, type Answer, type Service } from "../../support/service.ts";

const HOUR = 3_600_000;
const POLICY = `policy: work
rules:
  - { name: go, operation: go, effect: allow }
  - { name: no, operation: no, effect: deny }
  - { name: ask, operation: ask, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
`;
const throttle = (config: Config): void => {
  setSection(config, "throttle", { times: 2, minimum: 3 });
  config.approvals.trust_key_makers = true;
};

let n = 0;
const submit = (
  service: Service,
  key: string,
  body: object = {},
  { path = "/v1/actions", headers = {} } = {},
): Promise<Answer> =>
  service.call("POST", path, {
    key,
    headers,
    body: { agent_id: "bot", tool: "t", operation: "ask", params: { n: ++n }, ...body },
  });
/** Moves to the beginning of the next hour. */
function nextHour({ clock }: Service): void {
  const now = Date.now() + clock.now;
  clock.now += HOUR - (now % HOUR) + 1000;
}
/** Two requests in each of three hours, and the beginning of a fourth: twice the usual hour is four. */
async function usualHours(service: Service, key: string): Promise<void> {
  for (const _ of [1, 2, 3]) {
    nextHour(service);
    for (const _ of [1, 2]) assert.equal((await submit(service, key)).status, 202);
  }
  nextHour(service);
}
async function throttlings({ storage }: Pick<Service, "storage">): Promise<(ThrottleEntry & { seq: number })[]> {
  const { size } = await storage.head();
  const rows = await storage.entries(0, size);
  return rows.filter(({ type }) => type === "throttle").map(({ bytes }) => decodeEntry<ThrottleEntry>(bytes));
}
const statuses = (answers: readonly Answer[]): (number | string)[] =>
  answers.map(({ status, body }) => (status === 429 ? (body.code as string) : status)).sort();

describe("one process", () => {
  let service: Service;
  before(async () => {
    service = await startService({ policy: POLICY, change: throttle });
  });
  // The service audits the store, and so recomputes each throttling.
  after(() => service.close());

  test("of concurrent requests exactly the limit is accepted, one entry is recorded, and the next hour starts again", async () => {
    const { key, id } = await makeKey(service, { name: "many", preset: "agent" });
    await usualHours(service, key);
    const answers = await Promise.all(Array.from({ length: 9 }, () => submit(service, key)));
    assert.deepEqual(statuses(answers), [202, 202, 202, 202, ...Array.from({ length: 5 }, () => "AGENT_THROTTLED")]);
    const refused = answers.find(({ status }) => status === 429) as Answer;
    const wait = Number(refused.headers.get("retry-after"));
    assert.ok(wait > 0 && wait <= 3600, String(wait));
    assert.match(
      refused.body.detail,
      /made 4 requests for approval in this hour; it usually makes 2 per hour\. Wait until 20/,
    );
    const [entry, ...more] = (await throttlings(service)).filter(({ submitted_by }) => submitted_by.key_id === id);
    assert.deepEqual(
      [entry?.requests, entry?.usual, entry?.times, entry?.minimum, more],
      [4, { requests: 6, hours: 3 }, 2, 3, []],
    );
    const last = await service.call("GET", `/v1/actions/${entry?.related_action}`, { key: service.admin });
    assert.equal(last.body.status, "pending_approval");
    nextHour(service);
    assert.equal((await submit(service, key)).status, 202);
  });

  test("only what would ask a person is throttled, and only for this key", async () => {
    const { key } = await makeKey(service, { name: "mixed", preset: "agent" });
    const other = await makeKey(service, { name: "other", preset: "agent" });
    const ben = await makeKey(service, { name: "ben", preset: "approver", owner: "ben" });
    await usualHours(service, key);
    const first = await submit(service, key, { params: { same: 1 } }, { headers: { "idempotency-key": "first" } });
    for (const _ of [1, 2, 3]) assert.equal((await submit(service, key)).status, 202);
    const { size } = await service.storage.head();
    assert.equal((await submit(service, key)).body.code, "AGENT_THROTTLED");
    assert.equal((await service.storage.head()).size, size, "a refused request leaves no entry");
    assert.equal((await submit(service, key, { operation: "go" })).body.status, "allowed");
    assert.equal((await submit(service, key, { operation: "no" })).body.status, "denied");
    assert.equal((await submit(service, other.key)).status, 202);
    const again = { params: { same: 1 } };
    const joined = await submit(service, key, again, { path: "/v1/actions?join=open" });
    const replayed = await submit(service, key, again, { headers: { "idempotency-key": "first" } });
    assert.deepEqual([joined.body.id, replayed.body.id], [first.body.id, first.body.id]);
    if (!hasFeature("grants")) return;
    const grant = { agent_id: "bot", tool: "t", operation: "ask", for: "1h", count: 1 };
    assert.equal((await service.call("POST", "/v1/grants", { key: ben.key, body: grant })).status, 201);
    assert.deepEqual(
      [(await submit(service, key)).body.reason_code, (await submit(service, key)).body.code],
      ["GRANTED", "AGENT_THROTTLED"],
    );
  });

  test("without three hours of requests there is no usual rate, and below the minimum nothing is throttled", async () => {
    const { key } = await makeKey(service, { name: "new", preset: "agent" });
    for (const requests of [1, 1]) {
      nextHour(service);
      for (let i = 0; i < requests; i++) await submit(service, key);
    }
    nextHour(service);
    for (let i = 0; i < 8; i++) assert.equal((await submit(service, key)).status, 202, "two hours are too few");
    const slow = await makeKey(service, { name: "slow", preset: "agent" });
    for (const _ of [1, 2, 3]) {
      nextHour(service);
      await submit(service, slow.key);
    }
    nextHour(service);
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push(await submit(service, slow.key));
    assert.deepEqual(statuses(answers), [202, 202, 202, "AGENT_THROTTLED"], "the minimum, not twice one");
    for (let i = 0; i < 7 * 24; i++) nextHour(service);
    for (let i = 0; i < 5; i++) assert.equal((await submit(service, slow.key)).status, 202, "after a week it is new");
  });

  test("the audit refuses a throttling that no requests explain", async () => {
    const { size } = await service.storage.head();
    const rows = await service.storage.entries(0, size);
    const bodies = rows.map(({ bytes }) => decodeEntry(bytes) as Record<string, unknown>);
    const audit = (all: readonly Record<string, unknown>[]): void => {
      const auditor = throttleAuditor();
      for (const body of all) auditor.check?.(body as unknown as EntryBody & { seq: number }, {} as AuditStates);
    };
    audit(bodies);
    const at = bodies.findIndex(({ type }) => type === "throttle");
    const forged = (change: object): Record<string, unknown>[] =>
      bodies.map((body, i) => (i === at ? { ...body, ...change } : body));
    const { usual, requests } = bodies[at] as unknown as ThrottleEntry;
    for (const change of [
      { requests: requests + 1 },
      { usual: { ...usual, requests: usual.requests + 1 } },
      { usual: { ...usual, hours: usual.hours + 1 } },
      { times: 3 },
      { minimum: 9 },
      { until: "2099-01-01T00:00:00.000Z" },
      { related_action: "another" },
    ])
      assert.throws(() => audit(forged(change)), RangeError, JSON.stringify(change));
    assert.throws(() => audit([...bodies.slice(0, at), ...bodies.slice(at, at + 1), bodies[at] as never]), RangeError);
    assert.ok(encodeEntry(bodies[at] as never, 0).bytes.length < 1000);
  });
});

test("two processes on one store accept exactly the limit together, in every order", async () => {
  const memory = memoryStorage();
  const walking = interleave(memory);
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
        config.ledger.origin = "throttle.test/log";
        throttle(config);
      },
    });
  const services = [await start("A", 0), await start("B", 0)];
  const [one, two] = services as [Service, Service];
  try {
    const admin = services.find((service) => service.admin !== "")?.admin as string;
    let full = 0;
    for (const seed of [1, 2, 3, 4]) {
      const { key, id } = await makeKey(one, { name: `two ${seed}`, preset: "agent" }, admin);
      await usualHours(one, key);
      two.clock.now = one.clock.now;
      const before = (await throttlings({ storage: memory })).length;
      const answers: Answer[] = [];
      await walking.run(seed, () =>
        Promise.all(
          Array.from({ length: 7 }, async (_, i) => {
            await walking.step(`a client ${i}`);
            answers.push(await submit(i % 2 === 0 ? one : two, key));
          }),
        ),
      );
      const { hour } = throttlePeriod(Date.now() + one.clock.now);
      const { requests } = await memory.approvalRequests(id, hour, hour + HOUR, 99);
      const told = JSON.stringify([requests, statuses(answers)]);
      const accepted = answers.filter(({ status }) => status === 202).length;
      // A connection that is cut hides whether the request was recorded.
      assert.ok(requests <= 4 && accepted <= requests, told);
      if (answers.some(({ body }) => body.code === "AGENT_THROTTLED")) assert.equal(requests, 4, told);
      assert.equal((await throttlings({ storage: memory })).length - before, requests === 4 ? 1 : 0, told);
      full += requests === 4 ? 1 : 0;
    }
    assert.ok(full > 0, "some order reaches the limit");
  } finally {
    for (const service of services) await service.close();
    await memory.close();
  }
});
