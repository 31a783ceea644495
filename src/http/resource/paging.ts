/**
 * Pages of lists: newest first, with an opaque cursor that neither skips nor repeats items, and `offset` for old
 * clients.
 */
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../contract/errors.ts";
import { SMALL_RESPONSE_BYTES } from "../response-byte-budget.ts";
import { fromBase64Url, toBase64Url, utf8 } from "../../domain/hash.ts";

/** The query parameters of every list. Spread them into the route's query schema. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 20,
      description: "Maximum number of items on a page; a page with large items can have fewer.",
    }),
  ),
  cursor: Type.Optional(Type.String({ maxLength: 256, description: "`next_cursor` of the previous page." })),
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: "For old clients. Use `cursor` instead, which stays fast and does not skip items.",
    }),
  ),
};

interface PageQuery {
  limit?: number;
  cursor?: string;
  offset?: number;
}

export const DEFAULT_LIMIT = 20;

/**
 * Returns the cursor of a position.
 * @param list the name of the list, so that a cursor of a different list is rejected
 */
export function encodeCursor(list: string, position: string | number): string {
  return toBase64Url(utf8(`${list}:${position}`));
}

/**
 * Returns the position in the cursor as a string. Throws INVALID_CURSOR for a cursor of another list. Anyone can write a
 * cursor, so check the form of the position.
 * @example
 * const position = decodeCursor("refunds", "cmVmdW5kczoxNw"); // "17"
 */
export function decodeCursor(list: string, cursor: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(fromBase64Url(cursor));
    if (text.startsWith(`${list}:`) && text.length > list.length + 1) return text.slice(list.length + 1);
  } catch {
    // The statement below throws the error.
  }
  throw invalidCursorRefusal(cursor);
}

/** Returns the position in the cursor as a ledger sequence number. Throws INVALID_CURSOR. */
export function decodeSeqCursor(list: string, cursor: string): number {
  const position = decodeCursor(list, cursor);
  if (!/^\d{1,16}$/.test(position) || !Number.isSafeInteger(Number(position))) throw invalidCursorRefusal(cursor);
  return Number(position);
}

/** Returns the error for a cursor whose position does not have the form that the list uses. */
export function invalidCursorRefusal(cursor: string): Refusal {
  return new Refusal("INVALID_CURSOR", `"${cursor}" is not a cursor of this list; use next_cursor unchanged`, {
    errors: [{ parameter: "cursor", detail: "next_cursor of a page of this list" }],
  });
}

/**
 * Returns the header `Link` (RFC 8288) to the next page, with the same filters. Returns no header for the last page.
 * @example
 * return { status: 200, json: { refunds: page.rows }, headers: nextLink("/v1/refunds", query, page.next_cursor) };
 */
export function nextLink(path: string, parameters: object, cursor: string | null): Record<string, string> {
  if (cursor === null) return {};
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (name !== "offset" && value !== undefined) query.set(name, String(value));
  query.set("cursor", cursor);
  return { Link: `<${path}?${query.toString()}>; rel="next"` };
}

interface Page<Row> {
  rows: Row[];
  next_cursor: string | null;
}

/**
 * Returns a page from the result of a query for `limit + 1` rows.
 * @example
 * const rows = await host.actions(credential).list({ limit: limit + 1 });
 * const page = cutPage("refunds", rows, limit, ({ decision_seq }) => decision_seq);
 */
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

/**
 * Returns a page of a list in memory, newest first. `seq` is the sequence number of the entry that created an item.
 * Throws INVALID_CURSOR.
 * @example
 * const { rows, next_cursor } = slicePageBySeq("grants", grants.filter(isVisible), query);
 */
export function slicePageBySeq<Row extends { seq: number }>(
  list: string,
  all: readonly Row[],
  query: PageQuery,
): Page<Row> {
  const before = query.cursor === undefined ? Infinity : decodeSeqCursor(list, query.cursor);
  const rows = all.filter(({ seq }) => seq < before).sort((a, b) => b.seq - a.seq);
  return cutPage(list, rows, query.limit ?? DEFAULT_LIMIT, ({ seq }) => seq);
}

/** Number of rows to read first, which is enough for most pages. */
const FIRST_READ = DEFAULT_LIMIT + 1;
/** Maximum number of rows and bytes of each later read. The bytes are estimated from the rows so far. */
const [READ_ROWS, READ_BYTES] = [64, 262_144];
/** Approximate bytes of a rendered row, not including `size`. */
const ROW_OVERHEAD_BYTES = 1024;

/** Bytes of a row, as measured on the last slice of each list. */
const measuredRowBytes = new Map<string, number>();

interface BoundedPage {
  /** The rows of the page as JSON. */
  items: string[];
  next_cursor: string | null;
}

/** Reads and renders the rows of a page. */
interface PageSource<Row> {
  /** Reads up to `limit` rows after a row, or from the start of the list. */
  read(after: Row | null, limit: number): Promise<Row[]>;
  /** Returns the bytes of a row that count towards the page's limit. */
  size(row: Row): number;
  position(row: Row): string | number;
  /** Returns the row as the API represents it. */
  render(row: Row): Promise<object> | object;
  /** Waits for a read slot; see `host.waitForReadSlot`. Called before each slice of the page is read and rendered. */
  turn(): Promise<void>;
  /** Reserves memory; see `context.reserveResponseBytes`. */
  hold(bytes: number): void;
}

/**
 * Reads a page of at least one row, and at most `limit` rows and `bytes` bytes. Keeps only the rows of one slice and
 * the JSON of earlier rows in memory, and reserves the bytes of both with `hold`. Throws VALIDATION_FAILED if `bytes`
 * would shorten a page that was requested by offset, because the next offset would skip the omitted rows.
 * @param list the name of the list, so that a cursor of a different list is rejected
 */
export async function readPage<Row>(
  list: string,
  max: { limit: number; bytes: number; offset?: number | undefined },
  { read, size, position, render, turn, hold }: PageSource<Row>,
): Promise<BoundedPage> {
  const items: string[] = [];
  let last: Row | null = null;
  let [bytes, seen] = [0, 0];
  let slice = FIRST_READ;
  for (;;) {
    // Read one row more than fits, to determine whether there is another page.
    const count = Math.min(slice, max.limit + 1 - items.length);
    // Reserve bytes first, so that a request at the limit is refused before it waits and reads. Few rows can be a small
    // response, which is always admitted.
    const expected = count * (measuredRowBytes.get(list) ?? ROW_OVERHEAD_BYTES);
    const reserved = expected > SMALL_RESPONSE_BYTES ? expected : 0;
    hold(reserved);
    await turn();
    const rows = await read(last, count);
    const needed = rows.reduce((sum, row) => sum + size(row) + ROW_OVERHEAD_BYTES, 0);
    hold(needed - reserved);
    if (rows.length > 0) measuredRowBytes.set(list, needed / rows.length);
    let since = bytes;
    for (const row of rows) {
      // Wait for another slot after every `READ_BYTES` bytes. The first read can exceed this, because the size of its
      // rows was unknown.
      if (bytes - since > READ_BYTES) {
        await turn();
        since = bytes;
      }
      bytes += size(row);
      const cut = bytes > max.bytes && items.length > 0;
      if (cut && max.offset !== undefined && items.length < max.limit)
        throw offsetPageTooLargeRefusal(list, items.length, max.bytes);
      if (cut || items.length === max.limit) return { items, next_cursor: encodeCursor(list, position(last as Row)) };
      items.push(JSON.stringify(await render(row)));
      last = row;
    }
    if (rows.length < count) return { items, next_cursor: null };
    seen += rows.length;
    slice = Math.max(1, Math.min(READ_ROWS, Math.floor(READ_BYTES / Math.max(1, bytes / seen))));
  }
}

function offsetPageTooLargeRefusal(list: string, fitting: number, bytes: number): Refusal {
  const detail = `only ${fitting} of these ${list} fit into a page of ${bytes} bytes; request fewer, or use next_cursor instead of offset`;
  return new Refusal("VALIDATION_FAILED", `the query parameter limit cannot be used: ${detail}`, {
    errors: [{ parameter: "limit", detail }],
  });
}

/** Returns the reply for a list whose items are already JSON. */
export function listReply(
  name: string,
  items: readonly string[],
  rest: object,
  headers: Record<string, string>,
): { status: number; text: string; headers: Record<string, string> } {
  const members = JSON.stringify(rest).slice(1);
  return {
    status: 200,
    text: `{${JSON.stringify(name)}:[${items.join(",")}]${members === "}" ? "" : ","}${members}`,
    headers: { "Content-Type": "application/json", ...headers },
  };
}

/**
 * Returns a page of a short list in memory, sorted by creation time (newest first) and then by id.
 * @example
 * const { rows, next_cursor } = slicePage("notes", notes, query);
 */
export function slicePage<Row extends { id: string; created_at: number }>(
  list: string,
  all: readonly Row[],
  query: PageQuery,
): Page<Row> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  let rows = [...all].sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
  if (query.cursor !== undefined) {
    const match = /^(-?\d{1,16})\.(.+)$/s.exec(decodeCursor(list, query.cursor));
    if (match === null) throw invalidCursorRefusal(query.cursor);
    const [at, id] = [Number(match[1]), match[2] as string];
    rows = rows.filter((row) => row.created_at < at || (row.created_at === at && row.id < id));
  }
  const from = query.offset ?? 0;
  return cutPage(list, rows.slice(from, from + limit + 1), limit, (row) => `${row.created_at}.${row.id}`);
}
