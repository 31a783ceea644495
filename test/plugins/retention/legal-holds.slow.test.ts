/** A legal hold keeps actions from being erased, by whatever way, and only those who may release it can. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { memoryStorage } from "../../../src/testing/index.ts";
import {
  setSection,
  startService,
  type Answer,
  type Service,
  type ServiceOptions,
  addPerson,
} from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const DAY = 86_400_000;
const MARY = "mary@example.org";

const refused = ({ status, body }: Answer): [number, string] => [status, body.code];

function clientOf(service: Service) {
  const admin = (method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> =>
    service.call(method, path, { key: service.admin, headers, ...(body === undefined ? {} : { body }) });
  return {
    admin,
    hold: (scope: object, headers = {}) => admin("POST", "/v1/holds", { reason: "case 7", ...scope }, headers),
    release: (id: string) => admin("POST", `/v1/holds/${id}/release`, { reason: "settled" }),
    erase: (id: string) => admin("POST", `/v1/actions/${id}/erase`, { reason: "r" }),
    search: (body: object) => admin("POST", "/v1/erasures", { reason: "r", dry_run: false, ...body }),
    async submit(more: object = {}): Promise<string> {
      const body = { agent_id: "bot", tool: "none", operation: "x", ...more };
      return (await service.call("POST", "/v1/actions", { body })).body.id as string;
    },
    isErased: async (id: string): Promise<boolean> => (await service.storage.action(id))?.erased_at !== null,
    async keyWith(name: string, more: object): Promise<string> {
      return (await admin("POST", "/v1/api-keys", { name, ...more })).body.key as string;
    },
  };
}

describe("a legal hold", () => {
  let service: Service;
  let client: ReturnType<typeof clientOf>;
  before(async () => {
    service = await startService({ policy: "policy: p\nrules: []\n" });
    client = clientOf(service);
  });
  after(() => service.close());

  test("on an action refuses its erasure with the id of the hold until it is released", async () => {
    const [id, other] = [await client.submit(), await client.submit()];
    const placed = await client.hold({ action: id });
    assert.deepEqual([placed.status, placed.body.status, placed.body.scope], [201, "active", "action"]);
    const answer = await client.erase(id);
    assert.deepEqual(refused(answer), [409, "ACTION_HELD"]);
    assert.ok(answer.body.detail.includes(placed.body.id), answer.body.detail);
    assert.equal((await client.erase(other)).status, 200);
    const counted = (await client.search({ agent_id: "bot", dry_run: true })).body;
    assert.deepEqual([counted.matched, counted.held, counted.holds], [1, 1, [placed.body.id]]);
    const searched = (await client.search({ agent_id: "bot" })).body;
    assert.deepEqual([searched.erased, searched.held, searched.holds], [0, 1, [placed.body.id]]);

    assert.equal((await client.release(placed.body.id)).body.status, "released");
    assert.deepEqual(refused(await client.release(placed.body.id)), [409, "HOLD_RELEASED"]);
    assert.equal((await client.erase(id)).status, 200);
    assert.deepEqual(refused(await client.hold({ action: id })), [410, "ACTION_ERASED"]);
  });

  test("on an agent covers its actions in any spelling, and later ones", async () => {
    const id = await client.submit({ agent_id: "Keeper" });
    const { body } = await client.hold({ agent: "Keeper" });
    const later = await client.submit({ agent_id: "keeper" });
    for (const held of [id, later]) assert.deepEqual(refused(await client.erase(held)), [409, "ACTION_HELD"]);
    await client.release(body.id);
    for (const free of [id, later]) assert.equal((await client.erase(free)).status, 200);
    assert.deepEqual(refused(await client.hold({ agent: "nobody" })), [404, "AGENT_NOT_FOUND"]);
  });

  test("on a person covers everything that mentions them; the identifier is not in the ledger, and is deleted after the release", async () => {
    const held = await client.submit({ params: { to: `Write to ${MARY.toUpperCase()} today` } });
    const free = await client.submit({ params: { to: "rosemary@example.org" } });
    const headers = { "Idempotency-Key": "hold-mary" };
    const { body } = await client.hold({ subject: MARY }, headers);
    assert.deepEqual([body.scope, body.subject], ["subject", MARY]);
    const again = await client.hold({ subject: MARY }, headers);
    assert.deepEqual([again.status, again.body.id], [200, body.id]);
    assert.deepEqual(refused(await client.hold({ subject: "joe@example.org" }, headers)), [
      409,
      "IDEMPOTENCY_CONFLICT",
    ]);

    const counts = (await client.search({ agent_id: "bot" })).body;
    assert.deepEqual([counts.erased, counts.held, counts.holds], [1, 1, [body.id]]);
    assert.deepEqual([await client.isErased(held), await client.isErased(free)], [false, true]);
    const entries = await service.storage.entries(0, 1000);
    assert.ok(entries.every(({ bytes }) => !new TextDecoder().decode(bytes).includes(MARY)));
    assert.equal((await service.storage.documents({ plugin: "retention", prefix: "hold/", limit: 9 })).length, 1);
    await client.release(body.id);
    assert.deepEqual(await service.storage.documents({ plugin: "retention", prefix: "hold/", limit: 9 }), []);
    assert.equal((await client.erase(held)).status, 200);
  });

  test("is placed and released with its own scope only, by a key that is bound to no agent", async () => {
    const id = await client.submit();
    const eraser = await client.keyWith("eraser", { scopes: ["actions:erase", "actions:read"] });
    const bound = await client.keyWith("bound holder", { scopes: ["holds:write"], agent_id: "bot" });
    const keeper = await client.keyWith("keeper", { scopes: ["holds:write", "actions:read"] });
    const place = (key: string): Promise<Answer> =>
      service.call("POST", "/v1/holds", { key, body: { reason: "case 7", action: id } });
    assert.deepEqual(refused(await place(eraser)), [403, "INSUFFICIENT_SCOPE"]);
    assert.deepEqual(refused(await place(bound)), [403, "AGENT_MISMATCH"]);
    const { body } = await place(keeper);
    const path = `/v1/holds/${body.id as string}`;
    const release = await service.call("POST", `${path}/release`, { key: eraser, body: { reason: "r" } });
    assert.deepEqual(refused(release), [403, "INSUFFICIENT_SCOPE"]);
    const erasure = await service.call("POST", `/v1/actions/${id}/erase`, { key: keeper, body: { reason: "r" } });
    assert.deepEqual(refused(erasure), [403, "INSUFFICIENT_SCOPE"]);
    assert.equal((await service.call("GET", path, { key: eraser })).body.reason, "case 7");
    assert.deepEqual(refused(await service.call("GET", path, { key: service.agent })), [403, "INSUFFICIENT_SCOPE"]);
    await client.release(body.id as string);
  });

  test("is refused without exactly one scope, and for what does not exist", async () => {
    for (const [scope, code] of [
      [{}, "VALIDATION_FAILED"],
      [{ agent: "bot", subject: MARY }, "VALIDATION_FAILED"],
      [{ subject: "me" }, "VALIDATION_FAILED"],
      [{ agent: "bot", reason: "" }, "VALIDATION_FAILED"],
      [{ action: "019346a0-0000-7000-8000-000000000000" }, "ACTION_NOT_FOUND"],
    ] as const)
      assert.equal((await client.hold(scope)).body.code, code, JSON.stringify(scope));
    assert.deepEqual(refused(await client.release("none")), [404, "HOLD_NOT_FOUND"]);
    assert.deepEqual((await client.admin("GET", "/v1/holds")).body, { holds: [] });
  });
});

async function withService(options: ServiceOptions, work: (service: Service) => Promise<void>): Promise<void> {
  const service = await startService({ policy: "policy: p\nrules: []\n", ...options });
  try {
    await work(service);
  } finally {
    // Audits the store, too.
    await service.close();
  }
}

test("a hold that is placed while an erasure runs protects what was not erased yet", async () => {
  const storage = memoryStorage();
  const actions = storage.actions.bind(storage);
  let afterRead: (page: number) => Promise<void> = () => Promise.resolve();
  let pages = 0;
  storage.actions = async (filter) => {
    const rows = await actions(filter);
    // The erasure has read and matched these rows.
    await afterRead(++pages);
    return rows;
  };
  await withService({ storage: () => storage }, async (service) => {
    const client = clientOf(service);
    for (let i = 0; i < 60; i++) await client.submit({ params: { i } });
    pages = 0;
    afterRead = async (page) => {
      if (page !== 2) return;
      afterRead = () => Promise.resolve();
      assert.equal((await client.hold({ agent: "bot" })).status, 201);
    };
    const { erased, held } = (await client.search({ agent_id: "bot" })).body;
    assert.deepEqual([erased, held], [50, 10]);
  });
});

test("the retention period passes held actions, and erases them after the release", () =>
  withService({ change: (config) => setSection(config, "retention", { request_days: 10 }) }, async (service) => {
    const client = clientOf(service);
    const [held, free] = [await client.submit(), await client.submit()];
    const { body } = await client.hold({ action: held });
    service.clock.now += 11 * DAY;
    await service.restart();
    await until("the other action is erased", () => client.isErased(free));
    const position = (): Promise<unknown> =>
      service.storage.document("retention", "retention/request").then((row) => JSON.parse(row?.value ?? "{}").passed);
    await until("the sweep has ended", async () => Number(await position()) > 0);
    assert.equal(await client.isErased(held), false);
    await client.release(body.id as string);
    assert.equal(await position(), 0);
    await service.restart();
    await until("the action that was held is erased", () => client.isErased(held));
  }));

test("with release_approvals: 2, one person cannot release a hold", () =>
  withService({ change: (config) => setSection(config, "retention", { release_approvals: 2 }) }, async (service) => {
    const client = clientOf(service);
    const id = await client.submit();
    const { body } = await client.hold({ action: id });
    const scopes = { scopes: ["holds:write"] };
    const ann = await client.keyWith("ann", { ...scopes, owner: await addPerson(service, "ann") });
    const path = `/v1/holds/${body.id as string}/release`;
    const as = (key: string): Promise<Answer> => service.call("POST", path, { key, body: { reason: "settled" } });
    const first = await as(ann);
    assert.deepEqual([first.status, first.body.status, first.body.release.needed], [202, "active", 2]);
    assert.deepEqual(refused(await as(ann)), [409, "ALREADY_VOTED"]);
    assert.deepEqual(refused(await client.erase(id)), [409, "ACTION_HELD"]);
  }));

test("nothing is erased while the identifier of a held person was removed or changed in the store, and the audit reports it", async () => {
  const service = await startService({
    policy: "policy: p\nrules: []\n",
    change: (config) => setSection(config, "retention", { request_days: 10 }),
  });
  const client = clientOf(service);
  const id = await client.submit({ params: { to: "nobody in particular" } });
  const { body } = await client.hold({ subject: MARY });
  const key = `hold/${body.id as string}`;
  const row = await service.storage.document("retention", key);
  await service.storage.write(async (tx) => {
    const value = JSON.stringify({ ...JSON.parse(row?.value ?? ""), subject: "joe@example.org" });
    await tx.putDocument({ plugin: "retention", key, value, seal: row?.seal ?? "" }, row?.version ?? null);
  });
  assert.deepEqual(refused(await client.erase(id)), [409, "ACTION_HELD"]);
  // The retention period does not pass the action either, because restoring the identifier starts no new scan.
  service.clock.now += 11 * DAY;
  await service.restart();
  await until("the sweep has ended", () => service.logged.some((line) => line.includes("under legal hold")));
  const place = await service.storage.document("retention", "retention/request");
  const { decision_seq } = (await service.storage.action(id)) ?? assert.fail();
  assert.ok(JSON.parse(place?.value ?? '{"passed":0}').passed <= decision_seq, place?.value);
  await assert.rejects(service.close(), /identifier of the legal hold .* does not match its commitment/);
});
