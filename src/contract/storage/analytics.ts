/** Counts over actions. */
import type { ActionStatus } from "../../domain/actions.ts";
import type { Effect } from "../../domain/policy/policy-types.ts";
import type { StoredVisibility } from "../../domain/visibility.ts";

/** Selects the actions to count, by their creation time. */
export interface AnalyticsQuery {
  visibility: StoredVisibility;
  /**
   * At least two times in ascending order. The first is inclusive and the last exclusive. Each pair of neighbouring
   * times delimits a segment of the series.
   */
  boundaries: readonly number[];
}

/** Counts of one segment, keyed by value; values that do not occur are absent. */
export interface SeriesCounts {
  status: Partial<Record<ActionStatus, number>>;
  decision: Partial<Record<Effect, number>>;
}

/** Counts greater than zero for each value, in any order. All are read from one snapshot. */
export interface ActionCounts {
  status: { value: string; count: number }[];
  decision: { value: string; count: number }[];
  tool: { value: string; count: number }[];
  agent: { value: string; count: number }[];
  /** `policy` and `rule` are both null if no policy decided the action. */
  rule: { policy: string | null; rule: string | null; count: number }[];
  /** One item for each segment. */
  series: SeriesCounts[];
  /**
   * The actions whose `waited_ms` is not null: their number, how many of them have an `approved_until`, and percentiles
   * of `waited_ms` (nearest rank; null if there are no values).
   */
  waits: { count: number; approved: number; p50: number | null; p95: number | null };
}

export interface AnalyticsReads {
  analytics(query: AnalyticsQuery): Promise<ActionCounts>;
}
