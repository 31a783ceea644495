import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDuration, parseRfc3339, toRfc3339 } from "../../src/domain/time.ts";

test("times are written in UTC with milliseconds, and read back", () => {
  assert.equal(toRfc3339(0), "1970-01-01T00:00:00.000Z");
  assert.equal(toRfc3339(951_782_400_007), "2000-02-29T00:00:00.007Z");
  for (const ms of [0, 1, -1, 951_782_400_007, 1_700_000_000_123, -62_167_219_200_000, 253_402_300_799_999])
    assert.equal(parseRfc3339(toRfc3339(ms)), ms);
});

test("a time outside the years 0000 to 9999 is rejected", () => {
  for (const ms of [-62_167_219_200_001, 253_402_300_800_000, 8.64e15, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => toRfc3339(ms), RangeError, `${ms}`);
  assert.equal(parseRfc3339("9999-12-31T23:59:59.999-00:01"), null);
  assert.equal(parseRfc3339("0000-01-01T00:00:00+00:01"), null);
});

test("offsets, fractions and letters in either case are accepted", () => {
  for (const text of [
    "2026-03-01T12:00:00Z",
    "2026-03-01t12:00:00z",
    "2026-03-01T12:00:00.0Z",
    "2026-03-01T12:00:00.000999999Z",
    "2026-03-01T14:00:00+02:00",
    "2026-03-01T00:30:00-11:30",
    "2026-03-02T02:00:00+14:00",
    "2026-03-01T12:00:00-00:00",
  ]) {
    assert.equal(parseRfc3339(text), Date.UTC(2026, 2, 1, 12), text);
  }
  assert.equal(parseRfc3339("2026-03-01T12:00:00.5Z"), Date.UTC(2026, 2, 1, 12, 0, 0, 500));
  assert.equal(parseRfc3339("2026-03-01T12:00:00.1239Z"), Date.UTC(2026, 2, 1, 12, 0, 0, 123));
});

test("every day of 8 years is accepted, and the day after each month's end is not", () => {
  for (let year = 1996; year < 2004; year++) {
    for (let month = 0; month < 12; month++) {
      const days = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
      const text = (day: number): string =>
        `${year}-${String(month + 1).padStart(2, "0")}-${String(day).padStart(2, "0")}T00:00:00Z`;
      for (let day = 1; day <= days; day++) assert.equal(parseRfc3339(text(day)), Date.UTC(year, month, day));
      assert.equal(parseRfc3339(text(days + 1)), null, text(days + 1));
      assert.equal(parseRfc3339(text(0)), null);
    }
  }
  assert.notEqual(parseRfc3339("2000-02-29T00:00:00Z"), null);
  assert.equal(parseRfc3339("1900-02-29T00:00:00Z"), null);
});

test("a text that is not exactly RFC 3339 with an offset returns null", () => {
  for (const text of [
    "",
    "2026-03-01",
    "2026-03-01T12:00:00",
    "2026-03-01 12:00:00Z",
    "2026-03-01T12:00Z",
    "2026-03-01T12:00:00.Z",
    "2026-03-01T12:00:00,5Z",
    "2026-03-01T24:00:00Z",
    "2026-03-01T12:60:00Z",
    "2026-06-30T23:59:60Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-3-1T00:00:00Z",
    "2026-03-01T12:00:00+24:00",
    "2026-03-01T12:00:00+02:60",
    "2026-03-01T12:00:00+0200",
    "2026-03-01T12:00:00+02",
    "2026-03-01T12:00:00 Z",
    " 2026-03-01T12:00:00Z",
    "2026-03-01T12:00:00Z\n",
    "+002026-03-01T12:00:00Z",
    "２026-03-01T12:00:00Z",
    "2026-03-01T12:00:00.0000000000Z",
    "1772366400000",
  ])
    assert.equal(parseRfc3339(text), null, JSON.stringify(text));
});

test("durations", () => {
  const cases: [string, number][] = [
    ["90s", 90_000],
    ["30m", 1_800_000],
    ["1h", 3_600_000],
    ["7d", 604_800_000],
    ["1h30m", 5_400_000],
    ["500ms", 500],
    ["1m500ms", 60_500],
    ["1d2h3m4s5ms", 93_784_005],
    ["0s", 0],
    ["007s", 7000],
  ];
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text);
});

test("an invalid duration returns null: units in order, once each, whole numbers", () => {
  for (const text of [
    "",
    "1",
    "s",
    "1.5h",
    "-1s",
    "+1s",
    "1 h",
    " 1h",
    "1h ",
    "1h\n",
    "1H",
    "1w",
    "30m1h",
    "1h1h",
    "1hour",
    "1e3s",
    "1h30",
    "PT1H",
    "0x1s",
    "١s",
    "9999999999s",
    "1ms1s",
  ]) {
    assert.equal(parseDuration(text), null, JSON.stringify(text));
  }
  assert.equal(parseDuration("999999999d"), null, "above 2^53 milliseconds");
});
