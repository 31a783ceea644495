/** The ledger's clock: jumps of the time of day never make the history run backwards. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type PermitClaims, verifyPermit } from "../../clients/typescript/index.ts";
import { createLedgerClock } from "../../src/ledger/commit/clock.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, approve, ASKED, startService, type Service, type ServiceOptions } from "../support/service.ts";
import { until } from "../support/wait.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;

async function withService(work: (service: Service) => Promise<void>, options: ServiceOptions = {}): Promise<void> {
  const service = await startService(options);
  try {
    await work(service);
  } finally {
    await service.close();
  }
}

async function timesOf(service: Service): Promise<number[]> {
  const { size } = await service.storage.head();
  return (await service.storage.entries(0, size)).map(({ created_at }) => created_at);
}

async function ahead(service: Service): Promise<number> {
  const { body } = await service.call("GET", "/metrics", { key: service.admin });
  return Number(/^assent_ledger_clock_ahead_seconds (\S+)$/m.exec(body as string)?.[1]);
}

describe("the clock", () => {
  const played = () => {
    const at = { day: 1_000_000, steady: 0 };
    const told: string[] = [];
    const clock = createLedgerClock(
      () => at.day,
      { warn: (message) => void told.push(message) },
      () => at.steady,
    );
    return { at, told, clock };
  };

  it("follows the system time, even when it is set back, while no entry is ahead", needs("metrics"), () => {
    const { at, clock } = played();
    assert.equal(clock.now(), 1_000_000);
    clock.observeEntryTime(1_000_000);
    at.day += DAY;
    at.steady += 5;
    assert.equal(clock.now(), 1_000_000 + DAY);
    at.day = 1_000_010;
    assert.deepEqual([clock.now(), clock.ahead()], [1_000_010, 0]);
  });

  it("continues from the last entry, slightly slower, until the time of day has caught up", needs("metrics"), () => {
    const { at, told, clock } = played();
    clock.observeEntryTime(1_000_000 + HOUR);
    assert.deepEqual([clock.now(), clock.ahead(), told.length], [1_000_000 + HOUR, HOUR, 1]);
    at.day += 1000;
    at.steady += 1000;
    assert.deepEqual([clock.now(), clock.ahead()], [1_000_900 + HOUR, HOUR - 100]);
    // Entries that it writes in the meantime do not move the clock further ahead.
    clock.observeEntryTime(clock.now());
    at.day += 9 * HOUR;
    at.steady += 9 * HOUR;
    assert.ok(clock.now() > at.day);
    clock.observeEntryTime(clock.now());
    at.day += HOUR;
    at.steady += HOUR;
    assert.deepEqual([clock.now(), clock.ahead()], [at.day, 0]);
    clock.observeEntryTime(clock.now());
    assert.equal(told.length, 1, "said once");
  });

  it("ignores entries that are older than another", () => {
    const { clock } = played();
    clock.observeEntryTime(1_000_000 + HOUR);
    clock.observeEntryTime(1_000_000);
    assert.equal(clock.now(), 1_000_000 + HOUR);
  });
});

describe("a service whose clock jumps a day ahead and back", () => {
  const submit = async (service: Service, body: object = ALLOWED) =>
    (await service.call("POST", "/v1/actions", { body })).body as {
      id: string;
      created_at: string;
      expires_at: string;
    };

  it(
    "times and ids never go back, even after a restart, and the lead over the system time is reported",
    needs("metrics"),
    () =>
      withService(async (service) => {
        const ids = [(await submit(service)).id];
        assert.equal(await ahead(service), 0);
        service.clock.now += DAY;
        ids.push((await submit(service)).id);
        service.clock.now -= DAY;
        ids.push((await submit(service)).id);
        const seconds = await ahead(service);
        assert.ok(seconds > 86_000 && seconds <= 86_400, String(seconds));
        await service.restart();
        ids.push((await submit(service)).id);
        const times = await timesOf(service);
        assert.deepEqual(
          times,
          [...times].sort((a, b) => a - b),
        );
        assert.deepEqual(ids, [...ids].sort());
        assert.ok(service.logged.some((line) => line.includes("is later than this machine's clock")));
      }),
  );

  it("expires pending actions on time", () =>
    withService(
      async (service) => {
        service.clock.now += DAY;
        await submit(service);
        service.clock.now -= DAY;
        const { id } = await submit(service, ASKED);
        const row = await service.storage.action(id);
        assert.equal((row?.expires_at ?? 0) - (row?.created_at ?? 0), 1000);
        await until("it expires", async () => (await service.storage.action(id))?.status === "expired");
      },
      {
        policy:
          "policy: p\nrules:\n  - { name: r, tool: stripe, when: 'params.amount >= 500', effect: require_approval, approval: { expires_in: 1s } }\n  - { name: s, tool: '*', effect: allow }\n",
      },
    ));

  it("does not accept an expired key again, even if another process has the earlier time", () =>
    withService(async (service) => {
      const expires_at = new Date(Date.now() + HOUR).toISOString();
      const { key } = (
        await service.call("POST", "/v1/api-keys", {
          key: service.admin,
          body: { name: "k", preset: "agent", agent_id: "support-bot", expires_at },
        })
      ).body;
      const use = async () => (await service.call("GET", "/v1/actions", { key })).status;
      assert.equal(await use(), 200);
      service.clock.now += DAY;
      await submit(service);
      service.clock.now -= DAY;
      await service.restart();
      assert.equal(await use(), 401);
    }));

  it("signs permits that verifiers with the right time accept, no longer than they should", needs("well-known"), () =>
    withService(
      async (service) => {
        const { valid_seconds } = service.runtime.host.config.permits;
        const { body: jwks } = await service.call("GET", "/.well-known/jwks.json", { key: null });
        const verify = (permit: string, now: number): Promise<PermitClaims> =>
          verifyPermit(ALLOWED, permit, { jwks, audience: ALLOWED.tool, clockTolerance: 0, now: () => now });
        service.clock.now += DAY;
        await submit(service);
        service.clock.now -= DAY;
        await service.restart();
        const first = (await service.call("POST", "/v1/actions", { body: ALLOWED, headers: { prefer: "permit" } }))
          .body;
        const later = (await service.call("POST", `/v1/actions/${first.id}/permit`, { body: {} })).body;
        for (const { permit, permit_expires_at } of [first, later]) {
          const { iat, exp } = await verify(permit, Date.now());
          // Each is rounded down to a second.
          assert.ok([valid_seconds - 1, valid_seconds].includes(exp - iat), `${exp} - ${iat}`);
          assert.equal(exp * 1000, Date.parse(permit_expires_at));
          await assert.rejects(verify(permit, Date.now() + valid_seconds * 1000), { reason: "expired" });
        }
        const start = (permit: string) => service.call("POST", `/v1/actions/${first.id}/start`, { body: { permit } });
        assert.equal((await start(later.permit)).body.status, "executing");
        const { id } = await submit(service, ASKED);
        await approve(service, id);
        const { body } = await service.call("POST", `/v1/actions/${id}/permit`, { body: {} });
        // The ledger's clock follows an entry that is later by more than the validity.
        service.clock.now += DAY + valid_seconds * 1000;
        await submit(service);
        service.clock.now -= DAY + valid_seconds * 1000;
        const late = await service.call("POST", `/v1/actions/${id}/start`, { body: { permit: body.permit } });
        assert.equal(late.body.code, "PERMIT_EXPIRED");
      },
      { change: (config) => (config.permits.valid_seconds = 60) },
    ),
  );
});
