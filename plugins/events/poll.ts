/** Reads one page of events, for clients that poll instead of keeping a stream open. */
import type { CoreHost } from "../../src/core.ts";
import { assertContiguous } from "../../src/storage/index.ts";
import { ENTRIES_PER_PAGE } from "./feed.ts";
import { toEvent, type EventFilter } from "./filter.ts";
import type { Event, EventPage, PageQuery } from "./schemas.ts";

/**
 * Maximum number of entries that one poll reads, so that a narrow filter on a long ledger does not delay other
 * requests.
 */
const MAX_SCANNED = 10 * ENTRIES_PER_PAGE;

/** @param size number of ledger entries; greater than `query.after` */
export async function pollEvents(
  host: CoreHost,
  query: PageQuery,
  filter: EventFilter,
  size: number,
  hold: (bytes: number) => void,
): Promise<EventPage> {
  const limit = query.limit ?? 100;
  const events: Event[] = [];
  let bytes = 0;
  let full = false;
  let next = (query.after ?? -1) + 1;
  const end = Math.min(size, next + MAX_SCANNED);
  while (next < end && events.length < limit && !full) {
    await host.waitForReadSlot();
    const to = Math.min(end, next + ENTRIES_PER_PAGE);
    for (const row of assertContiguous(await host.storage.entries(next, to), next, to)) {
      if (events.length === limit) break;
      const passes = await filter.passes(row);
      bytes += passes ? row.bytes.length : 0;
      // Exceed the size limit rather than return no event.
      if (bytes > host.config.server.max_page_bytes && events.length > 0) {
        full = true;
        break;
      }
      if (passes) {
        hold(row.bytes.length);
        events.push(toEvent(row));
      }
      next = row.seq + 1;
    }
  }
  return { events, next_after: next - 1, head: size - 1 };
}
