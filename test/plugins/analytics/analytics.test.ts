import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { intervalBoundaries, findTimeZone, type Interval } from "../../../plugins/analytics/calendar.ts";
import { ALLOWED, ASKED, DENIED, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

describe("the calendar", () => {
  const between = (since: string, until: string, interval: Interval, zone: string): string[] =>
    (intervalBoundaries(Date.parse(since), Date.parse(until), interval, findTimeZone(zone)!, 1000) ?? []).map((at) =>
      new Date(at).toISOString().replace(".000Z", "Z"),
    );

  it("starts days at local midnight, and handles days of 23 and 25 hours", () => {
    assert.deepEqual(between("2026-03-07T05:00:00Z", "2026-03-10T04:00:00Z", "day", "America/New_York"), [
      "2026-03-07T05:00:00Z",
      "2026-03-08T05:00:00Z",
      "2026-03-09T04:00:00Z",
      "2026-03-10T04:00:00Z",
    ]);
    assert.deepEqual(between("2026-11-01T04:00:00Z", "2026-11-03T05:00:00Z", "day", "America/New_York"), [
      "2026-11-01T04:00:00Z",
      "2026-11-02T05:00:00Z",
      "2026-11-03T05:00:00Z",
    ]);
    assert.deepEqual(between("2026-01-01T00:00:00Z", "2026-01-02T20:00:00Z", "day", "Asia/Kolkata"), [
      "2026-01-01T00:00:00Z",
      "2026-01-01T18:30:00Z",
      "2026-01-02T18:30:00Z",
      "2026-01-02T20:00:00Z",
    ]);
    assert.deepEqual(between("2026-06-01T00:00:00Z", "2026-06-01T13:00:00Z", "day", "Pacific/Chatham"), [
      "2026-06-01T00:00:00Z",
      "2026-06-01T11:15:00Z",
      "2026-06-01T13:00:00Z",
    ]);
  });

  it("starts a day without a midnight at its first local time", () => {
    // Beirut skips from 24:00 to 01:00 on 2026-03-29.
    assert.deepEqual(between("2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z", "day", "Asia/Beirut"), [
      "2026-03-28T00:00:00Z",
      "2026-03-28T22:00:00Z",
      "2026-03-29T21:00:00Z",
      "2026-03-30T12:00:00Z",
    ]);
  });

  it("skips a day that does not exist", () => {
    // Samoa skips from the end of 2011-12-29 to the start of 2011-12-31.
    assert.deepEqual(between("2011-12-29T10:00:00Z", "2012-01-01T10:00:00Z", "day", "Pacific/Apia"), [
      "2011-12-29T10:00:00Z",
      "2011-12-30T10:00:00Z",
      "2011-12-31T10:00:00Z",
      "2012-01-01T10:00:00Z",
    ]);
  });

  it("starts weeks on Monday, months on the first, and hours on the local hour", () => {
    assert.deepEqual(between("2026-01-01T00:00:00Z", "2026-01-20T00:00:00Z", "week", "UTC"), [
      "2026-01-01T00:00:00Z",
      "2026-01-05T00:00:00Z",
      "2026-01-12T00:00:00Z",
      "2026-01-19T00:00:00Z",
      "2026-01-20T00:00:00Z",
    ]);
    assert.deepEqual(between("2026-01-15T00:00:00Z", "2026-03-15T00:00:00Z", "month", "Europe/Berlin"), [
      "2026-01-15T00:00:00Z",
      "2026-01-31T23:00:00Z",
      "2026-02-28T23:00:00Z",
      "2026-03-15T00:00:00Z",
    ]);
    assert.deepEqual(between("2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z", "hour", "Asia/Kolkata"), [
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:30:00Z",
      "2026-01-01T01:30:00Z",
      "2026-01-01T02:00:00Z",
    ]);
    assert.deepEqual(between("2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z", "week", "UTC"), [
      "2026-01-05T00:00:00Z",
      "2026-01-12T00:00:00Z",
    ]);
  });

  it("covers any range in any zone without gaps, in order", () => {
    for (const zone of [
      "UTC",
      "America/New_York",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
      "America/Santiago",
      "Africa/Casablanca",
    ]) {
      const days = intervalBoundaries(Date.UTC(2026, 0, 1), Date.UTC(2027, 0, 1), "day", findTimeZone(zone)!, 1000)!;
      for (let i = 1; i < days.length; i++) {
        const hours = ((days[i] as number) - (days[i - 1] as number)) / 3_600_000;
        assert.ok(hours > 0 && hours <= 25, `${zone}: a day of ${hours} hours`);
        assert.ok(i === 1 || i === days.length - 1 || hours >= 23, `${zone}: a day of ${hours} hours`);
      }
      assert.ok(days.length === 366 || days.length === 367, `${zone}: ${days.length - 1} days`);
    }
  });
});

describe("analytics", () => {
  let service: Service;
  let bound: string;
  let own: string;
  before(async () => {
    service = await startService();
    const make = async (body: object): Promise<string> =>
      (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body.key as string;
    bound = await make({ name: "bound", scopes: ["actions:submit", "analytics:read"], agent_id: "other-bot" });
    own = await make({ name: "own", scopes: ["actions:submit", "analytics:read"] });
    for (let i = 0; i < 3; i++) await service.call("POST", "/v1/actions", { body: ALLOWED });
    await service.call("POST", "/v1/actions", { body: DENIED });
    await service.call("POST", "/v1/actions", { key: bound, body: { ...ALLOWED, agent_id: "other-bot" } });
    await service.call("POST", "/v1/actions", { key: own, body: ALLOWED });
  });
  after(() => service.close());
  const read = (query = "", key = service.admin): Promise<Answer> =>
    service.call("GET", `/v1/analytics${query}`, { key });

  it("counts decisions in every dimension, and the parts add up", async () => {
    const { status, body } = await read();
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      [body.total, body.by_decision, body.interval, body.time_zone],
      [6, { allow: 5, deny: 1, require_approval: 0 }, "hour", "UTC"],
    );
    assert.deepEqual(body.by_tool, [
      { tool: "stripe", count: 5 },
      { tool: "crm", count: 1 },
    ]);
    assert.deepEqual(body.by_agent, [
      { agent_id: "support-bot", count: 5 },
      { agent_id: "other-bot", count: 1 },
    ]);
    const add = (items: { count: number }[]): number => items.reduce((sum, { count }) => sum + count, 0);
    assert.equal(add(body.by_rule), 6);
    assert.equal(
      body.series.reduce((sum: number, { total }: { total: number }) => sum + total, 0),
      6,
    );
    assert.equal(
      Object.values(body.by_status as Record<string, number>).reduce((a, b) => a + b, 0),
      6,
    );
    assert.equal(body.series[0].start, body.since);
    assert.equal(body.series.at(-1).end, body.until);
  });

  it("counts for each key only what it can see", async () => {
    assert.deepEqual((await read("", bound)).body.by_agent, [{ agent_id: "other-bot", count: 1 }]);
    assert.equal((await read("", own)).body.total, 1);
    assert.equal((await read("", service.agent)).status, 403);
  });

  it("counts one agent, for keys that see all of its actions", async () => {
    const { body } = await read("?agent_id=other-bot");
    assert.deepEqual([body.total, body.by_agent], [1, [{ agent_id: "other-bot", count: 1 }]]);
    assert.equal((await read("?agent_id=other-bot", bound)).body.total, 1);
    assert.equal((await read("?agent_id=unknown")).body.total, 0);
    assert.equal((await read("?agent_id=support-bot", bound)).body.code, "AGENT_MISMATCH");
    assert.equal((await read("?agent_id=support-bot", own)).body.code, "VALIDATION_FAILED");
  });

  it("counts approvals and reports how long approvers took", async () => {
    const asked = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
    const expiring = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
    assert.equal((await read()).body.by_status.pending_approval, 2);
    service.clock.now += 90_000;
    const { approval_token: token } = (await service.call("GET", `/v1/actions/${asked.id}`, { key: service.admin }))
      .body;
    await service.call("POST", `/v1/actions/${asked.id}/approval`, {
      key: service.admin,
      body: { token, approve: true },
    });
    const { by_status, approvals } = (await read()).body;
    assert.deepEqual([by_status.approved, by_status.pending_approval], [1, 1]);
    assert.deepEqual([approvals.decided, approvals.approved, approvals.rejected], [1, 1, 0]);
    assert.ok(
      approvals.p50_ms >= 90_000 && approvals.p50_ms < 120_000 && approvals.p95_ms === approvals.p50_ms,
      JSON.stringify(approvals),
    );
    service.clock.now += 25 * 3_600_000;
    // Actions that were approved and not started also expire. Reading the pending one starts the sweep that expires both.
    for (const { id } of [expiring, asked])
      await until("the end of the time is written", async () => {
        await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
        return (await service.storage.action(id as string))?.status === "expired";
      });
    const later = (await read(`?since=${new Date(Date.now() - 3_600_000).toISOString()}`)).body;
    assert.deepEqual([later.by_status.expired, later.approvals.decided], [2, 1], "nobody decided what expired");
  });

  it("folds in the background, and counts the same afterwards", async () => {
    const query = `?since=2026-01-01T00:00:00Z&until=2027-01-01T00:00:00Z&interval=month`;
    const before = (await read(query)).body;
    await service.storage.upkeep?.(3);
    assert.deepEqual((await read(query)).body, before);
    await service.storage.upkeep?.(1000);
    assert.deepEqual((await read(query)).body, before);
    await service.restart();
    assert.deepEqual((await read(query)).body, before);
  });

  it("returns the name of the time zone as requested", async () => {
    assert.equal((await read("?time_zone=Asia/Kolkata")).body.time_zone, "Asia/Kolkata");
  });

  it("rejects an invalid range, zone or interval", async () => {
    const bad: [string, string][] = [
      ["?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "INVALID_RANGE"],
      ["?since=2026-01-01T00:00:00Z&until=2026-01-01T00:00:00Z", "INVALID_RANGE"],
      ["?since=2020-01-01T00:00:00Z&until=2026-01-01T00:00:00Z&interval=hour", "INVALID_RANGE"],
      ["?since=0001-01-01T00:00:00Z&interval=month", "INVALID_RANGE"],
      ["?time_zone=Mars/Olympus", "VALIDATION_FAILED"],
      ["?since=yesterday", "VALIDATION_FAILED"],
      ["?interval=minute", "VALIDATION_FAILED"],
      ["?tool=stripe", "VALIDATION_FAILED"],
    ];
    for (const [query, code] of bad) {
      const refused = await read(query);
      assert.deepEqual([refused.status, refused.body.code], [422, code], query);
      assert.ok(refused.body.errors.length > 0);
    }
  });
});
