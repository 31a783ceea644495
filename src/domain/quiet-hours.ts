/**
 * Quiet hours and digests of a channel: when people are not notified of what can wait. Depends on the configuration and the
 * time only.
 */
import { toInstant, utcOffset } from "./time-zone.ts";

const DAY_MS = 86_400_000;

export interface QuietHours {
  /** Local time of day. Milliseconds from midnight. The hours go over midnight if `from` is after `until`. */
  from: number;
  until: number;
  /** IANA time zone. */
  zone: string;
  /** Risks of actions that are notified of at any time. */
  except: readonly string[];
}

/** An action that people are notified of. Times are in milliseconds. */
interface Notice {
  /** When they would be notified. */
  at: number;
  /** Deadline of the approval. */
  expiresAt: number;
  risk: string | null;
}

/**
 * Returns when people are notified: at once, or when the quiet hours end. A notice does not wait if its risk is excepted, or
 * if less than half of the time to vote would be left afterwards.
 * @example
 * const quiet = { from: 22 * 3_600_000, until: 7 * 3_600_000, zone: "UTC", except: ["critical"] };
 * delayNotice(quiet, { at: 23 * 3_600_000, expiresAt: 72 * 3_600_000, risk: null }) // 31 * 3_600_000
 */
export function delayNotice(quiet: QuietHours | null, { at, expiresAt, risk }: Notice): number {
  if (quiet === null || (risk !== null && quiet.except.includes(risk))) return at;
  const end = endOfQuietHours(quiet, at);
  return end - at > (expiresAt - at) / 2 ? at : end;
}

/**
 * Returns when a notice is sent in a digest: at the next multiple of `every`. It does not wait if its risk is critical, or if
 * less than half of the time to vote would be left afterwards.
 * @example
 * delayToDigest(900_000, { at: 1_000_000, expiresAt: 9_000_000, risk: null }) // 1_800_000
 */
export function delayToDigest(every: number | null, { at, expiresAt, risk }: Notice): number {
  if (every === null || risk === "critical") return at;
  const next = Math.ceil(at / every) * every;
  return next - at > (expiresAt - at) / 2 ? at : next;
}

/** Returns when the quiet hours around a time end; the time itself if it is in none. */
function endOfQuietHours({ from, until, zone }: QuietHours, at: number): number {
  const local = at + utcOffset(zone, at);
  const midnight = Math.floor(local / DAY_MS) * DAY_MS;
  const time = local - midnight;
  const isQuiet = from < until ? time >= from && time < until : time >= from || time < until;
  if (!isQuiet) return at;
  return Math.max(at, toInstant(zone, midnight + until + (time < until ? 0 : DAY_MS)));
}
