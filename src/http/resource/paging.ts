/** Lists in pages: newest first, an opaque cursor that neither skips nor repeats, `offset` for old clients (design, section 4). */
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../contract/errors.ts";
import { fromBase64Url, toBase64Url, utf8 } from "../../domain/hash.ts";

/** The query parameters of every list. Spread into the route's query schema. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 20,
      description: "Most items of one page; one whose items are large ends before.",
    }),
  ),
  cursor: Type.Optional(Type.String({ maxLength: 256, description: "`next_cursor` of the page before." })),
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: "For old clients; `cursor` does not slow down and does not skip.",
    }),
  ),
};

export interface PageQuery {
  limit?: number;
  cursor?: string;
  offset?: number;
}

export const DEFAULT_LIMIT = 20;

/** @param list names the list, so that a cursor of another one is refused */
export function encodeCursor(list: string, position: string | number): string {
  return toBase64Url(utf8(`${list}:${position}`));
}

/** The position that `encodeCursor` was given, as text. Throws INVALID_CURSOR. */
export function decodeCursor(list: string, cursor: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(fromBase64Url(cursor));
    if (text.startsWith(`${list}:`) && text.length > list.length + 1) return text.slice(list.length + 1);
  } catch {
    // Said below.
  }
  throw badCursor(cursor);
}

/** For positions that are ledger sequences. Throws INVALID_CURSOR. */
export function decodeSeqCursor(list: string, cursor: string): number {
  const position = decodeCursor(list, cursor);
  if (!/^\d{1,16}$/.test(position) || !Number.isSafeInteger(Number(position))) throw badCursor(cursor);
  return Number(position);
}

/** For a position that has another form than the list gives. */
export function badCursor(cursor: string): Refusal {
  return new Refusal("INVALID_CURSOR", `"${cursor}" is not a cursor of this list; take next_cursor as it was given`, {
    errors: [{ parameter: "cursor", detail: "next_cursor of a page of this list" }],
  });
}

/** `Link` to the page after: same filters, the new cursor (RFC 8288). Empty after the last page. */
export function nextLink(path: string, parameters: object, cursor: string | null): Record<string, string> {
  if (cursor === null) return {};
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (name !== "offset" && value !== undefined) query.set(name, String(value));
  query.set("cursor", cursor);
  return { Link: `<${path}?${query.toString()}>; rel="next"` };
}

export interface Page<Row> {
  rows: Row[];
  next_cursor: string | null;
}

/** What a query for `limit + 1` rows gave, cut to a page. */
export function cutPage<Row>(
  list: string,
  result: Row[],
  limit: number,
  position: (row: Row) => string | number,
): Page<Row> {
  const rows = result.slice(0, limit);
  const last = rows.at(-1);
  return { rows, next_cursor: result.length > limit && last !== undefined ? encodeCursor(list, position(last)) : null };
}

/** Rows that are read at once of a page whose bytes are bounded. */
const CHUNK = 64;

export interface BoundedPage<Row> extends Page<Row> {
  /** The page has fewer rows than were asked for because of their size. */
  cut: boolean;
}

/**
 * A page that ends where `limit` rows or `bytes` bytes are full, whichever comes first, with one row at least: what is
 * behind it is never in memory.
 * @param read at most so many rows behind one, or from the beginning
 * @param size of a row, in bytes
 */
export async function readPage<Row>(
  list: string,
  most: { limit: number; bytes: number },
  read: (after: Row | null, limit: number) => Promise<Row[]>,
  size: (row: Row) => number,
  position: (row: Row) => string | number,
): Promise<BoundedPage<Row>> {
  const rows: Row[] = [];
  let bytes = 0;
  for (;;) {
    // One more than fits tells whether there is another page.
    const count = Math.min(CHUNK, most.limit + 1 - rows.length);
    const chunk = await read(rows.at(-1) ?? null, count);
    for (const row of chunk) {
      bytes += size(row);
      const cut = bytes > most.bytes && rows.length > 0;
      if (cut || rows.length === most.limit)
        return { rows, next_cursor: encodeCursor(list, position(rows.at(-1) as Row)), cut: rows.length < most.limit };
      rows.push(row);
    }
    if (chunk.length < count) return { rows, next_cursor: null, cut: false };
  }
}

/** A page of a short list that is in memory: newest first by creation, then by id. */
export function pageOf<Row extends { id: string; created_at: number }>(
  list: string,
  all: readonly Row[],
  query: PageQuery,
): Page<Row> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  let rows = [...all].sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
  if (query.cursor !== undefined) {
    const match = /^(-?\d{1,16})\.(.+)$/s.exec(decodeCursor(list, query.cursor));
    if (match === null) throw badCursor(query.cursor);
    const [at, id] = [Number(match[1]), match[2] as string];
    rows = rows.filter((row) => row.created_at < at || (row.created_at === at && row.id < id));
  }
  const from = query.offset ?? 0;
  return cutPage(list, rows.slice(from, from + limit + 1), limit, (row) => `${row.created_at}.${row.id}`);
}
