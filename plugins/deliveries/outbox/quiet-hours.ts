import { toInstant, utcOffset } from "../../../src/core.ts";
/**
 * Quiet hours and digests of a channel, which delay notifications that can wait. They depend only on the configuration
 * and the time.
 */

const DAY_MS = 86_400_000;

export interface QuietHours {
  /**
   * Start and end as local times of day, in milliseconds from midnight. If `from` is after `until`, the quiet hours
   * include midnight.
   */
  from: number;
  until: number;
  /** IANA time zone. */
  zone: string;
  /** Risks of actions for which quiet hours do not apply. */
  except: readonly string[];
}

/** A notification about an action. Times are in milliseconds. */
interface Notice {
  /** Time of the notification without a delay. */
  at: number;
  /** Deadline of the approval. */
  expiresAt: number;
  risk: string | null;
}

/**
 * Returns the time of the notification: `at`, or the end of the quiet hours. Does not delay a notice with an excepted
 * risk. Does not delay a notice if the delay would use more than half of the time to vote.
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
 * Returns when the digest with the notice is sent: at the next multiple of `every`. Does not delay a notice with
 * critical risk. Does not delay a notice if the delay would use more than half of the time to vote.
 * @example
 * delayToDigest(900_000, { at: 1_000_000, expiresAt: 9_000_000, risk: null }) // 1_800_000
 */
export function delayToDigest(every: number | null, { at, expiresAt, risk }: Notice): number {
  if (every === null || risk === "critical") return at;
  const next = Math.ceil(at / every) * every;
  return next - at > (expiresAt - at) / 2 ? at : next;
}

/** Returns the end of the quiet hours that contain a time; `at` itself if it is outside quiet hours. */
function endOfQuietHours({ from, until, zone }: QuietHours, at: number): number {
  const local = at + utcOffset(zone, at);
  const midnight = Math.floor(local / DAY_MS) * DAY_MS;
  const time = local - midnight;
  const isQuiet = from < until ? time >= from && time < until : time >= from || time < until;
  if (!isQuiet) return at;
  return Math.max(at, toInstant(zone, midnight + until + (time < until ? 0 : DAY_MS)));
}
