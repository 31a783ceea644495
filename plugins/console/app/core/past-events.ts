/** Reads the ledger's events backwards, a bounded number of entries at a time. */
import type { Event } from "./api-types.ts";
import { request } from "./api.ts";

/** Maximum number of entries that one step reads. The service reads at most 2,560 for one request. */
const STEP = 2500;
/** Maximum number of steps of one call, which then returns the events that it has found so far. */
const MAX_STEPS = 4;
/** A call starts no further step once it has found this number of events. */
const ENOUGH = 30;
const PAGE = 1000;

export interface PastEventFilters {
  /** Entry types, separated by commas. */
  type?: string;
  agent_id?: string;
}

interface PastEvents {
  /** Newest first. */
  rows: readonly Event[];
  /** Cursor for the events before this page; null at the beginning of the ledger. */
  next_cursor: string | null;
}

/**
 * Returns events before `cursor`, newest first; without a cursor, the newest events. An empty result with a cursor
 * means that the 10,000 entries before `cursor` contain no matching event; the caller decides whether to continue.
 * @param isWanted selects events by criteria that the API has no filter for
 */
export async function readPastEvents(
  filters: PastEventFilters,
  isWanted: (event: Event) => boolean,
  cursor: string | undefined,
  signal?: AbortSignal,
): Promise<PastEvents> {
  let end = cursor === undefined ? (await readHead(signal)) + 1 : Number(cursor);
  const rows: Event[] = [];
  for (let step = 0; step < MAX_STEPS && end > 0 && rows.length < ENOUGH; step++) {
    const start = Math.max(0, end - STEP);
    rows.push(...(await readSpan(filters, start, end, signal)).filter(isWanted).reverse());
    end = start;
  }
  return { rows, next_cursor: end > 0 ? String(end) : null };
}

/** Returns the sequence number of the newest event; -1 if there is none. */
async function readHead(signal: AbortSignal | undefined): Promise<number> {
  return (await request("GET /v1/events/page", { query: { after: -1, limit: 1 }, signal })).head;
}

/** Returns the events from `start` up to but not including `end`, oldest first. */
async function readSpan(
  filters: PastEventFilters,
  start: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<Event[]> {
  const events: Event[] = [];
  for (let after = start - 1; after < end - 1;) {
    const page = await request("GET /v1/events/page", { query: { ...filters, after, limit: PAGE }, signal });
    events.push(...page.events.filter(({ seq }: Event) => seq < end));
    if (page.next_after <= after) break;
    after = page.next_after;
  }
  return events;
}
