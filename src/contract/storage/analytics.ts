/** Counts over actions. */
import type { ActionStatus } from "../../domain/actions.ts";
import type { Effect } from "../../domain/policy/policy-types.ts";
import type { StoredVisibility } from "../../domain/visibility.ts";

/** Selects the actions to count, by their creation time. */
export interface AnalyticsQuery {
  visibility: StoredVisibility;
  /** At least two ascending instants: the first is inclusive, the last exclusive, and between them lie the segments of the series. */
  boundaries: readonly number[];
}

/** Counts of one segment by value; values that do not occur are absent. */
export interface SeriesCounts {
  status: Partial<Record<ActionStatus, number>>;
  decision: Partial<Record<Effect, number>>;
}

/** Counts by value, in no order, none of them zero. All of one moment. */
export interface ActionCounts {
  status: { value: string; count: number }[];
  decision: { value: string; count: number }[];
  tool: { value: string; count: number }[];
  agent: { value: string; count: number }[];
  /** Null and null: decided by no policy. */
  rule: { policy: string | null; rule: string | null; count: number }[];
  /** One for each segment. */
  series: SeriesCounts[];
  /** Of `waited_ms`, by nearest rank; null where there is none. */
  waits: { count: number; p50: number | null; p95: number | null };
}

export interface AnalyticsReads {
  analytics(query: AnalyticsQuery): Promise<ActionCounts>;
}
