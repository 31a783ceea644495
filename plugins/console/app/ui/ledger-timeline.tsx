/** The timeline of an agent, a person or the system, from the ledger's entries, newest first. */
import { storeActionName } from "../core/action-names.ts";
import type { Event } from "../core/api-types.ts";
import { hasScope } from "../core/me.ts";
import { loadTexts } from "../core/parts.ts";
import { type PastEventFilters, readPastEvents } from "../core/past-events.ts";
import { EmptyState, Loading, ErrorNotice } from "./elements.tsx";
import { toEntryStep } from "./entry-step.tsx";
import { usePaged } from "./paged.ts";
import { RowPages } from "./row-pages.tsx";
import { Timeline } from "./timeline.tsx";

const TEXTS = {
  what: "entries",
  scope: "The timeline needs the scope events:read.",
  none: "Nothing is recorded yet.",
  noneYet: "No entry was found yet. Each search reads up to 10,000 entries.",
  earlier: "Search earlier entries",
} as const;

/** Maximum number of rendered steps. */
const STEPS = 30;

const ALL = (): boolean => true;

/**
 * Renders a timeline that the user can extend into the past. It shows newer entries only when the page is opened again.
 * @param props.isWanted selects events by criteria that the API has no filter for
 */
export function LedgerTimeline({
  label,
  filters,
  isWanted = ALL,
}: {
  label: string;
  filters: PastEventFilters;
  isWanted?: (event: Event) => boolean;
}) {
  return hasScope("events:read") ? (
    <LoadedTimeline key={JSON.stringify(filters)} {...{ label, filters, isWanted }} />
  ) : (
    <p class="quiet">{TEXTS.scope}</p>
  );
}

function LoadedTimeline({
  label,
  filters,
  isWanted,
}: {
  label: string;
  filters: PastEventFilters;
  isWanted(event: Event): boolean;
}) {
  const list = usePaged(async (cursor, signal) => {
    const [page] = await Promise.all([readPastEvents(filters, isWanted, cursor, signal), loadTexts()]);
    for (const { action_id, entry } of page.rows) {
      const { tool, operation } = entry as { tool?: string; operation?: string };
      if (action_id !== null && tool !== undefined) storeActionName(action_id, `${tool} ${operation ?? ""}`);
    }
    return page;
  }, []);
  return (
    <>
      <ErrorNotice error={list.error} onRetry={list.reload} />
      {list.rows === null ? (
        list.error === null ? (
          <Loading what={TEXTS.what} />
        ) : null
      ) : list.rows.length === 0 ? (
        <EmptyState text={list.hasMore ? TEXTS.noneYet : TEXTS.none}>
          {list.hasMore ? (
            <button type="button" disabled={list.isBusy} onClick={list.more}>
              {TEXTS.earlier}
            </button>
          ) : null}
        </EmptyState>
      ) : (
        <RowPages
          rows={list.rows}
          keyOf={({ seq }) => seq}
          what={TEXTS.what}
          size={STEPS}
          hasMore={list.hasMore}
          isBusy={list.isBusy}
          onMore={list.more}
        >
          {(events) => <Timeline label={label} steps={events.map(toEntryStep)} newestFirst />}
        </RowPages>
      )}
    </>
  );
}
