/** Who is on call: shifts in order, in local time, without gaps or overlaps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readRotas } from "../../src/config/rota-schema.ts";
import { shiftAt, shiftsBetween, type Rota } from "../../src/domain/rota.ts";

const HOUR = 3_600_000;
const at = (text: string): number => Date.parse(text);
const rota = (over: object = {}): Rota => {
  const given = {
    members: ["ada@example.com", "https://login.example.com#bob", "user:1"],
    every: "7d",
    start: "2026-01-05T09:00",
    time_zone: "UTC",
    ...over,
  };
  const { rotas, faults } = readRotas({ oncall: given }, {});
  assert.deepEqual(faults, []);
  return rotas.get("oncall") as Rota;
};

test("members take turns from the start on, and no one is on call before", () => {
  const weekly = rota();
  const onCall = (text: string) => shiftAt(weekly, at(text))?.member ?? null;
  assert.equal(onCall("2026-01-05T08:59:59.999Z"), null);
  assert.equal(onCall("2026-01-05T09:00:00Z"), "ada@example.com");
  assert.equal(onCall("2026-01-12T08:59:59.999Z"), "ada@example.com");
  assert.equal(onCall("2026-01-12T09:00:00Z"), "https://login.example.com#bob");
  assert.equal(onCall("2026-01-19T09:00:00Z"), "user:1");
  assert.equal(onCall("2026-01-26T09:00:00Z"), "ada@example.com");
});

test("shifts change at the same local time in summer and winter", () => {
  const berlin = rota({ every: "1d", time_zone: "Europe/Berlin" });
  // 09:00 in Berlin is 08:00 UTC in winter, and 07:00 UTC in summer.
  for (const [before, change] of [
    ["2026-03-28T07:59:59Z", "2026-03-28T08:00:00Z"],
    ["2026-03-29T06:59:59Z", "2026-03-29T07:00:00Z"],
    ["2026-10-25T07:59:59Z", "2026-10-25T08:00:00Z"],
  ] as const)
    assert.equal(shiftAt(berlin, at(before))?.until, at(change));
});

test("every instant is in exactly one shift, even while the clocks change", () => {
  const changes = {
    "Europe/Berlin": ["2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z"],
    "America/New_York": ["2026-03-08T05:00:00Z", "2026-11-01T04:00:00Z"],
  };
  for (const [time_zone, days] of Object.entries(changes))
    for (const every of ["1h", "2h", "1d"]) {
      const short = rota({ every, start: "2026-01-05T02:00", time_zone });
      for (const day of days)
        for (let time = at(day) - 3 * HOUR; time < at(day) + 27 * HOUR; time += HOUR / 4) {
          const shift = shiftAt(short, time);
          assert.ok(
            shift !== null && shift.from <= time && time < shift.until,
            `${time_zone} ${every} ${new Date(time).toISOString()}`,
          );
          assert.equal(shiftAt(short, shift.until)?.from, shift.until);
        }
    }
});

test("shifts between two times name each member once, in order", () => {
  const daily = rota({ every: "1d" });
  const between = (since: string, until: string) =>
    shiftsBetween(daily, at(since), at(until)).map(({ member }) => member);
  assert.deepEqual(between("2026-01-05T10:00:00Z", "2026-01-05T12:00:00Z"), ["ada@example.com"]);
  assert.deepEqual(between("2026-01-05T10:00:00Z", "2026-01-06T12:00:00Z"), [
    "ada@example.com",
    "https://login.example.com#bob",
  ]);
  assert.deepEqual(between("2026-01-06T10:00:00Z", "2026-02-06T12:00:00Z"), [
    "https://login.example.com#bob",
    "user:1",
    "ada@example.com",
  ]);
  assert.deepEqual(between("2026-01-01T00:00:00Z", "2026-01-05T12:00:00Z"), ["ada@example.com"]);
  assert.deepEqual(between("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), []);
});

test("faults of a rota are named with their place", () => {
  const valid = { members: ["user:1"], every: "7d", start: "2026-01-05T09:00", time_zone: "UTC" };
  const faults = (change: object, groups = {}) => {
    const found = readRotas({ r: { ...valid, ...change } }, groups).faults;
    return found.map(({ pointer, message }) => `${pointer} ${message}`).join();
  };
  assert.match(faults({ every: "30m" }), /^\/rota\/r\/every "30m" is not a duration from 1h to 366d/);
  assert.match(faults({ start: "2026-02-30T09:00" }), /^\/rota\/r\/start "2026-02-30T09:00" is not a local time/);
  assert.match(faults({ time_zone: "Berlin" }), /^\/rota\/r\/time_zone "Berlin" is not a time zone/);
  assert.match(faults({}, { r: {} }), /^\/rota\/r a group has the same name/);
  assert.match(
    faults({ members: ["user:1", "Ada"] }),
    /^\/rota\/r\/members\/1 "Ada" identifies no one; give `user:<id>`/,
  );
});
