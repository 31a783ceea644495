/** Quiet hours end at the same local time in summer and winter, and never cost a vote. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { delayNotice, delayToDigest, type QuietHours } from "../../../plugins/deliveries/outbox/quiet-hours.ts";

const HOUR = 3_600_000;
const BERLIN: QuietHours = { from: 22 * HOUR, until: 7 * HOUR, zone: "Europe/Berlin", except: ["critical"] };
const delayed = (quiet: QuietHours, at: string, risk: string | null = null): string => {
  const ms = Date.parse(at);
  return new Date(delayNotice(quiet, { at: ms, expiresAt: ms + 72 * HOUR, risk })).toISOString();
};

test("they go over midnight, and end in local time", () => {
  assert.equal(delayed(BERLIN, "2026-01-10T21:00:00.000Z"), "2026-01-11T06:00:00.000Z");
  assert.equal(delayed(BERLIN, "2026-01-11T05:59:59.999Z"), "2026-01-11T06:00:00.000Z");
  assert.equal(delayed(BERLIN, "2026-01-11T06:00:00.000Z"), "2026-01-11T06:00:00.000Z");
  assert.equal(delayed(BERLIN, "2026-07-10T20:00:00.000Z"), "2026-07-11T05:00:00.000Z");
});

test("the nights of the clock changes end in the new local time", () => {
  assert.equal(delayed(BERLIN, "2026-03-28T23:00:00.000Z"), "2026-03-29T05:00:00.000Z");
  assert.equal(delayed(BERLIN, "2026-10-24T22:00:00.000Z"), "2026-10-25T06:00:00.000Z");
});

test("quiet hours that end at a time that the clocks skip end after the gap, east and west of Greenwich", () => {
  const end = 2.5 * HOUR;
  const newYork = { ...BERLIN, until: end, zone: "America/New_York" };
  assert.equal(delayed({ ...BERLIN, until: end }, "2026-03-29T00:30:00.000Z"), "2026-03-29T01:30:00.000Z");
  assert.equal(delayed(newYork, "2026-03-08T06:00:00.000Z"), "2026-03-08T07:30:00.000Z");
  assert.equal(delayed(newYork, "2026-03-08T06:45:00.000Z"), "2026-03-08T07:30:00.000Z");
  assert.equal(delayed(newYork, "2026-03-09T06:00:00.000Z"), "2026-03-09T06:30:00.000Z");
});

test("hours within one day end on that day", () => {
  const noon = { ...BERLIN, from: 12 * HOUR, until: 13 * HOUR, zone: "UTC" };
  assert.equal(delayed(noon, "2026-01-10T12:30:00.000Z"), "2026-01-10T13:00:00.000Z");
  assert.equal(delayed(noon, "2026-01-10T13:00:00.000Z"), "2026-01-10T13:00:00.000Z");
});

test("an excepted risk does not wait, nor does a channel without quiet hours", () => {
  assert.equal(delayed(BERLIN, "2026-01-10T23:00:00.000Z", "critical"), "2026-01-10T23:00:00.000Z");
  assert.equal(delayed(BERLIN, "2026-01-10T23:00:00.000Z", "high"), "2026-01-11T06:00:00.000Z");
  assert.equal(delayNotice(null, { at: 5, expiresAt: 9, risk: null }), 5);
});

test("a request waits for the next digest, unless it is critical or would lose half of its time", () => {
  const notice = { at: 1_000_000, expiresAt: 9_000_000, risk: null };
  assert.equal(delayToDigest(900_000, notice), 1_800_000);
  assert.equal(delayToDigest(900_000, { ...notice, at: 1_800_000 }), 1_800_000);
  assert.equal(delayToDigest(900_000, { ...notice, risk: "critical" }), 1_000_000);
  assert.equal(delayToDigest(900_000, { ...notice, expiresAt: 2_599_999 }), 1_000_000);
  assert.equal(delayToDigest(900_000, { ...notice, expiresAt: 2_600_000 }), 1_800_000);
  assert.equal(delayToDigest(null, notice), 1_000_000);
});
