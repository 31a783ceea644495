/** A page that loads its data. Handles the title, the loading state, the error state and a failed refresh. */
import type { ComponentChildren } from "preact";
import { type BackLink, Loading, Page, ErrorNotice } from "./elements.tsx";
import type { LoadState } from "./hooks.ts";

interface Props<T> {
  title: string;
  /** The title as content, in which values can be highlighted. Default: `title`. */
  heading?: ComponentChildren;
  /** Name of the data, for "Loading …". */
  what: string;
  loaded: LoadState<T>;
  /** Before the title. */
  back?: BackLink;
  /** Right of the title. */
  side?: ComponentChildren;
  children(data: T): ComponentChildren;
}

/**
 * Renders the page once its data is loaded. If a later refresh fails, shows the error above the data of the last
 * successful load.
 *
 *   const loaded = useLoad((signal) => request("GET /v1/agents", { signal }), []);
 *   return (
 *     <LoadedPage title={TEXTS.title} what="agents" loaded={loaded}>
 *       {({ agents }) => (agents.length === 0 ? <EmptyState text={TEXTS.empty} /> : <List agents={agents} />)}
 *     </LoadedPage>
 *   );
 */
export function LoadedPage<T>({ what, loaded: { data, error, reload }, children, ...page }: Props<T>) {
  return (
    <Page {...page}>
      <ErrorNotice error={error} onRetry={reload} />
      {data === null ? error === null ? <Loading what={what} /> : null : children(data)}
    </Page>
  );
}
