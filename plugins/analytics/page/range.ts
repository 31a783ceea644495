/** The time range of the sums, and the links to the actions behind each number. */
import { buildUrl, request, serviceNow, toLocalInput } from "../../console/app/kit.ts";
import type { Analytics } from "./api-types.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
export const INTERVALS = ["hour", "day", "week", "month"] as const;
export type Interval = (typeof INTERVALS)[number];
export const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Ranges that the page offers, each with its interval. */
export const RANGES = {
  "24 hours": { length: DAY, interval: "hour" },
  "7 days": { length: 7 * DAY, interval: "day" },
  "30 days": { length: 30 * DAY, interval: "day" },
  "90 days": { length: 90 * DAY, interval: "day" },
  "12 months": { length: 365 * DAY, interval: "week" },
} as const satisfies Record<string, { length: number; interval: Interval }>;
export type RangeName = keyof typeof RANGES;

/** If the first action is younger than this, sums are per hour, because one or two daily values do not make a line. */
const FIRST_DAYS = 2 * DAY;

type Interim = Analytics["series"][number];

/** Sums without the empty time before the first action. */
export interface RangeSums extends Analytics {
  /** Whether the time before `since` was left out because it had no actions. */
  isShortened: boolean;
  /** Intervals that are over. */
  whole: readonly Interim[];
  /** The current interval. It is incomplete, so the line does not include it. */
  current: Interim | null;
}

/**
 * Returns the local start of the hour, day, week or month that contains `time`, so that the first interval is complete.
 */
function startOfInterval(time: number, interval: Interval): number {
  const date = new Date(time);
  if (interval === "hour") date.setMinutes(0, 0, 0);
  else date.setHours(0, 0, 0, 0);
  // Weeks begin on Monday (ISO 8601), as in the API.
  if (interval === "week") date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  if (interval === "month") date.setDate(1);
  return date.getTime();
}

interface Given {
  range: RangeName;
  /** Null for the default interval of the range. */
  interval: Interval | null;
  agent_id?: string;
}

/**
 * Loads the sums of a range. If the first action is younger than two days, the sums begin with it and are per hour,
 * unless an interval is chosen.
 */
export async function loadRangeSums({ range, interval, agent_id }: Given, signal: AbortSignal): Promise<RangeSums> {
  const { length, interval: suitable } = RANGES[range];
  const read = (since: number, by: Interval): Promise<Analytics> =>
    request("GET /v1/analytics", {
      query: { since: new Date(since).toISOString(), interval: by, time_zone: TIME_ZONE, agent_id },
      signal,
    });
  const by = interval ?? suitable;
  const sums = await read(startOfInterval(serviceNow() - length, by), by);
  const first = firstStart(sums);
  const isNew = first !== null && serviceNow() - first < FIRST_DAYS;
  if (interval !== null || by === "hour" || !isNew) return omitEmptyStart(sums, false);
  return omitEmptyStart(await read(first, "hour"), true);
}

function firstStart({ series }: Analytics): number | null {
  const first = series.find(({ total }) => total > 0);
  return first === undefined ? null : Date.parse(first.start);
}

/**
 * Removes the intervals before the first action, and separates the current interval from the complete intervals.
 * @param isCut whether earlier time has already been removed
 */
function omitEmptyStart(sums: Analytics, isCut: boolean): RangeSums {
  const empty = sums.series.findIndex(({ total }) => total > 0);
  const series = empty <= 0 ? sums.series : sums.series.slice(empty);
  return {
    ...sums,
    since: series[0]?.start ?? sums.since,
    series,
    isShortened: isCut || empty > 0,
    whole: series.slice(0, -1),
    current: series.at(-1) ?? null,
  };
}

type FilterName = "status" | "decision" | "agent_id" | "tool" | "policy" | "rule" | "has_rule" | "answer" | "until";
type Filters = Partial<Record<FilterName, string | null>>;

/** Returns the filters that select the actions that a rule decided, or that no rule decided if `rule` is null. */
export function ruleFilters(policy: string | null, rule: string | null): Filters {
  return rule === null ? { policy, has_rule: "false" } : { policy, rule };
}

/** Returns the address of the list of actions that were created in a range. Without `until`, the range ends now. */
export function actionsAddress(since: string, filters: Filters = {}): string {
  const { until, ...rest } = filters;
  return buildUrl("#/actions", {
    ...rest,
    since: toLocalInput(Date.parse(since)),
    until: until === undefined || until === null ? "" : toLocalInput(Date.parse(until)),
  });
}
