/** Cards, the sections of a page. A card that loads its own data also displays the errors of loading. */
import type { ComponentChildren } from "preact";
import { Loading, ErrorNotice } from "./elements.tsx";
import type { LoadState } from "./hooks.ts";

/**
 * Renders a card with a heading.
 * @param props.id unique on the page
 */
export function Card({
  id,
  title,
  side,
  children,
}: {
  id: string;
  title: string;
  /** Content to the right of the title. */
  side?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <section class="card" aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{title}</h2>
        {side}
      </div>
      {children}
    </section>
  );
}

/**
 * Renders a card once its data is loaded.
 *
 *   const loaded = useLoad((signal) => request("GET /v1/actions", { query: { agent_id: id }, signal }), [id]);
 *   return (
 *     <LoadedCard id="actions" title={TEXTS.actions} what="actions" loaded={loaded}>
 *       {({ actions }) => <List actions={actions} />}
 *     </LoadedCard>
 *   );
 */
export function LoadedCard<T>({
  what,
  loaded: { data, error, reload },
  children,
  ...card
}: {
  id: string;
  title: string;
  side?: ComponentChildren;
  /** Name of the data, for "Loading …". */
  what: string;
  loaded: Pick<LoadState<T>, "data" | "error" | "reload">;
  children(data: T): ComponentChildren;
}) {
  return (
    <Card {...card}>
      <ErrorNotice error={error} onRetry={reload} />
      {data === null ? error === null ? <Loading what={what} /> : null : children(data)}
    </Card>
  );
}
