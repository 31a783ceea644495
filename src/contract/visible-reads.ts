/** Reads that also accept the visibility of a group member, which a store cannot use as a filter. */
import type { Visibility } from "../domain/visibility.ts";
import type {
  ActionCounts,
  ActionFilter,
  ActionRow,
  AnalyticsQuery,
  ContainedText,
  DecisionFilter,
  DecisionInput,
  PendingCursor,
} from "./storage.ts";

/** A filter that must state the visibility of the caller; a storage filter may omit it. */
export type VisibleFilter<Filter> = Omit<Filter, "visibility"> & { visibility: Visibility };

/**
 * Declare the members as properties instead of methods. TypeScript then rejects a store's reads as a substitute,
 * because they do not accept every visibility.
 */
export interface VisibleReads {
  readonly actions: (filter: VisibleFilter<ActionFilter>) => Promise<ActionRow[]>;
  readonly pendingActions: (
    visibility: Visibility,
    after: PendingCursor,
    limit: number,
    contains?: ContainedText,
  ) => Promise<ActionRow[]>;
  readonly pendingCount: (visibility: Visibility, now: number) => Promise<number>;
  readonly analytics: (query: VisibleFilter<AnalyticsQuery>) => Promise<ActionCounts>;
  readonly decisions: (filter: VisibleFilter<DecisionFilter>) => Promise<DecisionInput[]>;
}
