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
  throw invalidCursor(cursor);
}

/** For positions that are ledger sequences. Throws INVALID_CURSOR. */
export function decodeSeqCursor(list: string, cursor: string): number {
  const position = decodeCursor(list, cursor);
  if (!/^\d{1,16}$/.test(position) || !Number.isSafeInteger(Number(position))) throw invalidCursor(cursor);
  return Number(position);
}

/** For a position that has another form than the list gives. */
export function invalidCursor(cursor: string): Refusal {
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

/** The first read of a page, in rows: as many as most pages have. */
const FIRST_READ = DEFAULT_LIMIT + 1;
/** The bounds of each further read. Bytes are estimated by the rows so far. */
const [READ_ROWS, READ_BYTES] = [64, 262_144];
/** Bytes of a rendered row besides those that `size` counts, about. */
const OVERHEAD = 1024;

export interface BoundedPage {
  /** The rows of the page as JSON. */
  items: string[];
  next_cursor: string | null;
}

/** How the rows of a page are read and shown. */
export interface PageSource<Row> {
  /** Reads up to `limit` rows after a row, or from the beginning. */
  read(after: Row | null, limit: number): Promise<Row[]>;
  /** Bytes of a row, for the bound of the page. */
  size(row: Row): number;
  position(row: Row): string | number;
  /** The row as the API shows it. */
  render(row: Row): Promise<object> | object;
  /** `host.waitForReadSlot`: a slice of the page is read and rendered in one turn of the event loop. */
  turn(): Promise<void>;
  /** `context.reserveResponseBytes`. */
  hold(bytes: number): void;
}

/**
 * Reads a page that ends at `limit` rows or at `bytes` bytes, whichever comes first, with one row at least. At any
 * moment the rows of one slice are in memory, and of those before it only their JSON; both are held.
 * Throws VALIDATION_FAILED for a page that its bytes would cut and that was asked for by offset: the next offset would
 * skip what did not fit.
 * @param list names the list, so that a cursor of another one is refused
 */
export async function readPage<Row>(
  list: string,
  most: { limit: number; bytes: number; offset?: number | undefined },
  { read, size, position, render, turn, hold }: PageSource<Row>,
): Promise<BoundedPage> {
  const items: string[] = [];
  let last: Row | null = null;
  let [bytes, seen] = [0, 0];
  let slice = FIRST_READ;
  for (;;) {
    await turn();
    // One more than fits tells whether there is another page.
    const count = Math.min(slice, most.limit + 1 - items.length);
    const rows = await read(last, count);
    hold(rows.reduce((sum, row) => sum + size(row) + OVERHEAD, 0));
    let since = bytes;
    for (const row of rows) {
      // The first read may have brought large rows.
      if (bytes - since > READ_BYTES) {
        await turn();
        since = bytes;
      }
      bytes += size(row);
      const cut = bytes > most.bytes && items.length > 0;
      if (cut && most.offset !== undefined && items.length < most.limit)
        throw cutByOffset(list, items.length, most.bytes);
      if (cut || items.length === most.limit) return { items, next_cursor: encodeCursor(list, position(last as Row)) };
      items.push(JSON.stringify(await render(row)));
      last = row;
    }
    if (rows.length < count) return { items, next_cursor: null };
    seen += rows.length;
    slice = Math.max(1, Math.min(READ_ROWS, Math.floor(READ_BYTES / Math.max(1, bytes / seen))));
  }
}

function cutByOffset(list: string, fitting: number, bytes: number): Refusal {
  const detail = `only ${fitting} of these ${list} fit into a page of ${bytes} bytes; ask for fewer, or go on by next_cursor instead of offset`;
  return new Refusal("VALIDATION_FAILED", `the query parameter limit cannot be used: ${detail}`, {
    errors: [{ parameter: "limit", detail }],
  });
}

/** The reply of a list whose items are JSON already. */
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

/** A page of a short list that is in memory: newest first by creation, then by id. */
export function slicePage<Row extends { id: string; created_at: number }>(
  list: string,
  all: readonly Row[],
  query: PageQuery,
): Page<Row> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  let rows = [...all].sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
  if (query.cursor !== undefined) {
    const match = /^(-?\d{1,16})\.(.+)$/s.exec(decodeCursor(list, query.cursor));
    if (match === null) throw invalidCursor(query.cursor);
    const [at, id] = [Number(match[1]), match[2] as string];
    rows = rows.filter((row) => row.created_at < at || (row.created_at === at && row.id < id));
  }
  const from = query.offset ?? 0;
  return cutPage(list, rows.slice(from, from + limit + 1), limit, (row) => `${row.created_at}.${row.id}`);
}
