/**
 * Timestamps and durations: their arithmetic, and calendar fields of a timestamp. The library's calendar fields use the
 * process's time zone, so two servers could decide differently in the hour that daylight saving skips. See the CEL
 * language definition, "Timezones".
 */
import { celFunc, objectType } from "@bufbuild/cel";
import { create } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { utcOffset } from "../../time-zone.ts";
import type { CelFunction } from "./cel-meter.ts";

// The type annotation keeps the name of a bundled package out of the generated declarations.
export const TIMESTAMP: ReturnType<typeof objectType> = objectType(TimestampSchema);
export const DURATION: ReturnType<typeof objectType> = objectType(DurationSchema);

const SECOND = 1_000_000_000n;
const MAX_DURATION = 2n ** 63n - 1n;
/** The first second of year 0001; MAX_SECONDS is the last second of year 9999. */
const MIN_SECONDS = -62_135_596_800n;
const MAX_SECONDS = 253_402_300_799n;

/** Returns a timestamp. Throws outside of the years 0001 to 9999. */
export function createTimestamp(seconds: bigint, nanos = 0): object {
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) throw new Error("it is outside the years 0001 to 9999");
  return reflect(TimestampSchema, create(TimestampSchema, { seconds, nanos }));
}

/** Returns a duration. Throws if its nanoseconds do not fit 64 bits. */
export function createDuration(nanos: bigint): object {
  if (nanos < -MAX_DURATION - 1n || nanos > MAX_DURATION) throw new Error("the duration is too long");
  const parts = { seconds: nanos / SECOND, nanos: Number(nanos % SECOND) };
  return reflect(DurationSchema, create(DurationSchema, parts));
}

type Time = Pick<ReflectMessage, "message">;

/** Returns the nanoseconds of a duration, or the nanoseconds from the epoch to a timestamp. */
export function nanosOf({ message }: Time): bigint {
  const { seconds, nanos } = message as unknown as { seconds: bigint; nanos: number };
  return seconds * SECOND + BigInt(nanos);
}

function timestampAt(nanos: bigint): object {
  const rest = ((nanos % SECOND) + SECOND) % SECOND;
  return createTimestamp((nanos - rest) / SECOND, Number(rest));
}

/**
 * Addition and subtraction of times and durations. The library's own functions work only in the library's own
 * evaluator.
 */
export const TIME_ARITHMETIC = [
  celFunc("_+_", [DURATION, DURATION], DURATION, (a, b) => createDuration(nanosOf(a) + nanosOf(b)) as never),
  celFunc("_+_", [TIMESTAMP, DURATION], TIMESTAMP, (a, b) => timestampAt(nanosOf(a) + nanosOf(b)) as never),
  celFunc("_+_", [DURATION, TIMESTAMP], TIMESTAMP, (a, b) => timestampAt(nanosOf(a) + nanosOf(b)) as never),
  celFunc("_-_", [DURATION, DURATION], DURATION, (a, b) => createDuration(nanosOf(a) - nanosOf(b)) as never),
  celFunc("_-_", [TIMESTAMP, TIMESTAMP], DURATION, (a, b) => createDuration(nanosOf(a) - nanosOf(b)) as never),
  celFunc("_-_", [TIMESTAMP, DURATION], TIMESTAMP, (a, b) => timestampAt(nanosOf(a) - nanosOf(b)) as never),
] as unknown as CelFunction[];

/** Returns the local wall-clock time in the fields of a UTC date. Throws RangeError for an unknown zone. */
export function wallClock(ms: number, zone: string | undefined): Date {
  if (zone === undefined || zone === "UTC") return new Date(ms);
  const fixed = /^([+-]?)([01]\d|2[0-3]):([0-5]\d)$/.exec(zone);
  if (fixed === null) return new Date(ms + utcOffset(zone, ms));
  const offset = (Number(fixed[2]) * 60 + Number(fixed[3])) * 60_000;
  return new Date(fixed[1] === "-" ? ms - offset : ms + offset);
}

export const CALENDAR_METHODS: Readonly<Record<string, (date: Date) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
};
