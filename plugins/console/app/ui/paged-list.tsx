import type { ComponentChildren } from "preact";
import { Loading, ErrorNotice } from "./elements.tsx";
import type { PagedRows } from "./paged.ts";

/**
 * Renders a list that is loaded page by page: its error, its loading and empty states, and the button for more.
 * @param props.what name of the rows, such as "users"
 * @param props.empty shown if the list has no rows
 */
export function PagedList<T>({
  list,
  what,
  empty,
  moreLabel = "Load more",
  children,
}: {
  list: PagedRows<T>;
  what: string;
  empty: ComponentChildren;
  moreLabel?: string;
  children: (rows: readonly T[]) => ComponentChildren;
}) {
  const { rows, error, hasMore, isBusy, more, reload } = list;
  return (
    <>
      <ErrorNotice error={error} again={reload} />
      {rows === null ? error === null ? <Loading what={what} /> : null : rows.length === 0 ? empty : children(rows)}
      {hasMore ? (
        <button type="button" disabled={isBusy} onClick={more}>
          {moreLabel}
        </button>
      ) : null}
    </>
  );
}
