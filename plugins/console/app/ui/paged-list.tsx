import type { ComponentChildren } from "preact";
import { Loading, ErrorNotice } from "./elements.tsx";
import type { PagedRows } from "./paged.ts";
import { RowPages } from "./row-pages.tsx";

/**
 * Renders a list that is loaded page by page: its error, its loading and empty states, and the buttons that turn pages.
 * @param props.what name of the rows, such as "users"
 * @param props.empty shown if the list has no rows
 */
export function PagedList<T extends { id: string }>({
  list,
  what,
  empty,
  children,
}: {
  list: PagedRows<T>;
  what: string;
  empty: ComponentChildren;
  children: (rows: readonly T[]) => ComponentChildren;
}) {
  const { rows, error, hasMore, isBusy, more, reload } = list;
  return (
    <>
      <ErrorNotice error={error} onRetry={reload} />
      {rows === null ? (
        error === null ? (
          <Loading what={what} />
        ) : null
      ) : rows.length === 0 && !hasMore ? (
        empty
      ) : (
        <RowPages rows={rows} keyOf={({ id }) => id} what={what} hasMore={hasMore} isBusy={isBusy} onMore={more}>
          {children}
        </RowPages>
      )}
    </>
  );
}
