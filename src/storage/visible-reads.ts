/**
 * Reads for credentials that are limited to agents and tools by their groups. The store cannot filter by patterns, so
 * these reads fetch pages of all actions and return the visible actions.
 */
import type {
  ActionCounts,
  ActionFilter,
  ActionRow,
  AnalyticsQuery,
  ContainedText,
  DecisionFilter,
  DecisionInput,
  PendingCursor,
  StorageReader,
} from "../contract/storage.ts";
import type { VisibleFilter, VisibleReads } from "../contract/visible-reads.ts";
import { decodeEntry, type DecisionEntry } from "../domain/entries.ts";
import type { GroupLimits } from "../domain/groups.ts";
import { canSee, type StoredVisibility, type Visibility } from "../domain/visibility.ts";
import { countActions } from "./log/count-actions.ts";

const PAGE_SIZE = 200;
const ALL: StoredVisibility = { all: true };

/** Returns the narrowest filter of the store that includes everything within the limits. */
function storedVisibility({ within: [first, ...others] }: { within: readonly GroupLimits[] }): StoredVisibility {
  const submitter = first?.submitted_by;
  const isOnly = submitter !== undefined && others.every(({ submitted_by }) => submitted_by === submitter);
  return isOnly ? { key_id: submitter } : ALL;
}

type Reader = Pick<StorageReader, "actions" | "pendingActions" | "pendingCount" | "analytics" | "decisions">;

/** @param yieldTurn a function that is called between two pages, so that decisions run during a long read */
export function createVisibleReads(reader: Reader, yieldTurn: () => Promise<void>): VisibleReads {
  /** Reads pages until `limit` rows match the filter, or there are no more rows. */
  async function collect<Row>(
    limit: number,
    read: (last: Row | null, limit: number) => Promise<Row[]>,
    isVisible: (row: Row) => boolean,
  ): Promise<Row[]> {
    const rows: Row[] = [];
    for (let last: Row | null = null; ;) {
      const page: Row[] = await read(last, PAGE_SIZE);
      for (const row of page) {
        if (isVisible(row)) rows.push(row);
        if (rows.length >= limit) return rows;
      }
      if (page.length < PAGE_SIZE) return rows;
      last = page.at(-1) as Row;
      await yieldTurn();
    }
  }

  async function actions(filter: VisibleFilter<ActionFilter>): Promise<ActionRow[]> {
    const { visibility, offset = 0 } = filter;
    if (!("within" in visibility)) return reader.actions({ ...filter, visibility });
    const { offset: _, ...rest } = filter;
    const rows = await collect<ActionRow>(
      offset + filter.limit,
      (last, limit) =>
        reader.actions({
          ...rest,
          visibility: storedVisibility(visibility),
          limit,
          ...(last === null ? {} : { before_seq: last.decision_seq }),
        }),
      (row) => canSee(visibility, row),
    );
    return rows.slice(offset);
  }

  async function pendingActions(
    visibility: Visibility,
    after: PendingCursor,
    limit: number,
    contains?: ContainedText,
  ): Promise<ActionRow[]> {
    if (!("within" in visibility)) return reader.pendingActions(visibility, after, limit, contains);
    return collect<ActionRow>(
      limit,
      (last, size) =>
        reader.pendingActions(
          storedVisibility(visibility),
          last === null ? after : { expires_at: last.expires_at ?? 0, decision_seq: last.decision_seq },
          size,
          contains,
        ),
      (row) => canSee(visibility, row),
    );
  }

  async function pendingCount(visibility: Visibility, now: number): Promise<number> {
    if (!("within" in visibility)) return reader.pendingCount(visibility, now);
    const after = { expires_at: now, decision_seq: Number.MAX_SAFE_INTEGER };
    return (await pendingActions(visibility, after, Infinity)).length;
  }

  async function analytics(query: VisibleFilter<AnalyticsQuery>): Promise<ActionCounts> {
    const { visibility, boundaries } = query;
    if (!("within" in visibility)) return reader.analytics({ ...query, visibility });
    const [since, until] = [boundaries[0] as number, boundaries.at(-1) as number];
    const rows = await actions({ visibility, since, until, limit: Infinity });
    return countActions(rows, { visibility: ALL, boundaries });
  }

  async function decisions(filter: VisibleFilter<DecisionFilter>): Promise<DecisionInput[]> {
    const { visibility } = filter;
    if (!("within" in visibility)) return reader.decisions({ ...filter, visibility });
    return collect<DecisionInput>(
      filter.limit,
      (last, limit) =>
        reader.decisions({ ...filter, visibility: ALL, limit, ...(last === null ? {} : { before_seq: last.seq }) }),
      ({ bytes }) => {
        const { agent_id, tool } = decodeEntry<DecisionEntry>(bytes);
        return canSee(visibility, { agent_id, tool, submitted_by: null });
      },
    );
  }

  return { actions, pendingActions, pendingCount, analytics, decisions };
}
