/** Rotas: lists of people who are on call in turn. Who is on call depends only on the rota and the time. */
import { toInstant, utcOffset } from "./time-zone.ts";

/** A rota as the configuration defines it. */
export interface Rota {
  /** References to people (person-reference.ts), in the order of their shifts. */
  members: readonly string[];
  /** Length of a shift in local time, so that shifts change at the same hour in summer and winter. Milliseconds. */
  every_ms: number;
  /** Start of the first shift: the local time, expressed as if it were UTC. Milliseconds. */
  start: number;
  /** IANA time zone. */
  zone: string;
}

/** A member's time on call. `member` is a reference. Times are in milliseconds. */
export interface Shift {
  member: string;
  from: number;
  until: number;
}

/**
 * Returns the shift at a time; null before the first shift.
 * @example
 * shiftAt({ members: ["ada@a.example", "bob@a.example"], every_ms: 86_400_000, start: 0, zone: "UTC" }, 0)?.member // "ada@a.example"
 */
export function shiftAt({ members, every_ms, start, zone }: Rota, at: number): Shift | null {
  const startOf = (shift: number): number => toInstant(zone, start + shift * every_ms);
  let shift = Math.floor((at + utcOffset(zone, at) - start) / every_ms);
  // In the hour that repeats when clocks go back, a local time can belong to two shifts.
  while (startOf(shift) > at) shift--;
  while (startOf(shift + 1) <= at) shift++;
  const member = members[shift % members.length];
  return shift < 0 || member === undefined ? null : { member, from: startOf(shift), until: startOf(shift + 1) };
}

/** Returns the next time at which another member is on call. */
export function nextShiftChange(rota: Rota, at: number): number {
  return shiftAt(rota, at)?.until ?? toInstant(rota.zone, rota.start);
}

/**
 * Returns the shifts that overlap the time from `since` to `until` (milliseconds), at most as many as the rota has
 * members.
 */
export function shiftsBetween(rota: Rota, since: number, until: number): Shift[] {
  const shifts: Shift[] = [];
  let at = shiftAt(rota, since) === null ? toInstant(rota.zone, rota.start) : since;
  while (at < until && shifts.length < rota.members.length) {
    const shift = shiftAt(rota, at);
    if (shift === null) break;
    shifts.push(shift);
    at = shift.until;
  }
  return shifts;
}
