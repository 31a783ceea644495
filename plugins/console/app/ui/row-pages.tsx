/** Renders a long list one page at a time, so that no list makes its page exceed 2,000 nodes. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Loading } from "./elements.tsx";

/** Maximum number of rendered rows of a table. A row has up to 35 nodes. */
const ROWS = 50;

const TEXTS = {
  byTime: ["Newer", "Older"],
  inOrder: ["Previous", "Next"],
  none: (what: string) => `No other ${what} found.`,
  shown: (first: number, last: number) => `${first.toLocaleString("en")} – ${last.toLocaleString("en")}`,
  of: (count: number) => ` of ${count.toLocaleString("en")}`,
} as const;

interface Props<T> {
  /** All loaded rows. */
  rows: readonly T[];
  /** Returns a value that identifies the row. */
  keyOf(row: T): string | number;
  /** Name of the rows, such as "actions". */
  what: string;
  size?: number;
  /** Names of the buttons: "Newer" and "Older", or "Previous" and "Next". */
  order?: "byTime" | "inOrder";
  /** Whether the service has more rows, which `onMore` appends to `rows`. */
  hasMore?: boolean;
  isBusy?: boolean;
  onMore?(): void;
  children(shown: readonly T[]): ComponentChildren;
}

/**
 * Renders one page of rows, at first the first page, and buttons that turn pages. New rows at the start of the list do
 * not shift a later page, because a page begins after the last row of the previous page.
 *
 *   <RowPages rows={agents} keyOf={({ id }) => id} what="agents">
 *     {(shown) => <AgentTable agents={shown} />}
 *   </RowPages>
 */
export function RowPages<T>({
  rows,
  keyOf,
  what,
  size = ROWS,
  order = "byTime",
  hasMore = false,
  isBusy = false,
  onMore,
  children,
}: Props<T>) {
  // Key of the last row of the previous page; null on the first page.
  const [after, setAfter] = useState<string | number | null>(null);
  const top = useRef<HTMLDivElement>(null);
  // If that row is no longer loaded, show the first page.
  const start = after === null ? 0 : rows.findIndex((row) => keyOf(row) === after) + 1;
  const shown = rows.slice(start, start + size);
  const end = start + shown.length;
  const hasNext = hasMore || end < rows.length;
  const isTurned = useRef(false);
  useEffect(() => {
    if (isTurned.current) top.current?.scrollIntoView({ block: "start" });
    isTurned.current = false;
  }, [after]);
  const showAfter = (index: number): void => {
    const row = rows[index - 1];
    isTurned.current = true;
    setAfter(row === undefined ? null : keyOf(row));
  };
  // Go to the first page if fewer than `size` rows would precede the previous page. Otherwise, new rows would form a
  // short page at the start of the list.
  const previous = (): void => showAfter(start < 2 * size ? 0 : start - size);
  const next = (): void => {
    if (isBusy || !hasNext) return;
    // A search can return fewer rows than a page has. More rows then belong to the same page.
    const nextStart = shown.length === size ? end : start;
    if (nextStart > start) showAfter(nextStart);
    if (hasMore && nextStart + size > rows.length) onMore?.();
  };
  const [backLabel, nextLabel] = TEXTS[order];
  return (
    <div class="row-pages" ref={top}>
      {shown.length > 0 ? children(shown) : isBusy ? <Loading what={what} /> : <p class="quiet">{TEXTS.none(what)}</p>}
      {start === 0 && !hasNext ? null : (
        <div class="row pager">
          {/* Disabled buttons keep the focus, so that a person can turn pages by keyboard. */}
          <button type="button" aria-disabled={start === 0} onClick={() => start > 0 && previous()}>
            {backLabel}
          </button>
          <button type="button" aria-disabled={!hasNext} onClick={next}>
            {nextLabel}
          </button>
          <span class="quiet" role="status">
            {shown.length === 0 ? null : TEXTS.shown(start + 1, end)}
            {hasMore || shown.length === 0 ? null : TEXTS.of(rows.length)}
          </span>
        </div>
      )}
    </div>
  );
}
