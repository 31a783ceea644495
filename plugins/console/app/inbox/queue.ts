/**
 * The groups of pending requests, which the service counts, and the requests of the open group, page by page. The
 * ledger's events update both without moving a row: a settled request stays in its row and shows its outcome, and a new
 * request or group that belongs further up is held back until the person clicks a button.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { request, watchReachability } from "../core/api.ts";
import { isOwnVote } from "./vote-availability.ts";
import { followQueue } from "./follow-queue.ts";
import {
  changeItem,
  EMPTY_QUEUE,
  findGroup,
  type Group,
  isSameQuery,
  removeRows,
  type QueueItem,
  listItems,
  listMissingIds,
  listSettledIds,
  type ListQuery,
  storeAction,
  storeFirstPage,
  storeGroups,
  storeNextPage,
  storeFetchedAction,
  type QueueState,
  showHeldRows,
} from "./queue-state.ts";

const PAGE = 50;
const MAX_PAGE = 1000;
export interface Queue extends QueueState {
  live: { state: string; why: string };
  /** The open group: the one in the query, that of the open request, or the only one. */
  group: Group | null;
  /** The open request; null if none is open or it is not loaded. */
  openItem: QueueItem | null;
  /** The requests of the open group. */
  rows: readonly QueueItem[];
  heldRows: readonly QueueItem[];
  more(): Promise<void>;
  reload(): void;
  /** Updates a request after it was settled or a vote was recorded. */
  update(id: string, more: Partial<QueueItem>): void;
  showHeld(): void;
}

/**
 * Functions that read the list and single requests. At each call, they use the latest query and the latest open
 * request.
 */
interface QueueReads {
  reread(id: string, signal?: AbortSignal): Promise<void>;
  load(signal?: AbortSignal, isQuiet?: boolean): Promise<void>;
  /** Reads what the list lacks for a changed query. Opening a group does not count all groups again. */
  loadQuery(): Promise<void>;
  readNext(): Promise<void>;
}

/** The values of the latest rendering, for asynchronous work that continues after a later rendering. */
interface Newest {
  state: QueueState;
  /** The query with the open group. */
  query: ListQuery;
  open: string | null;
}

function createQueueReads(
  newest: () => Newest,
  setState: (change: (old: QueueState) => QueueState) => void,
): QueueReads {
  let isLoadingMore = false;

  async function reread(id: string, signal?: AbortSignal): Promise<void> {
    try {
      const action = await request("GET /v1/actions/{id}", { path: [id], signal });
      setState((old) => storeFetchedAction(old, action, newest().open));
    } catch (error) {
      if (signal?.aborted) return;
      const missing = newest().open === id ? { id, error } : null;
      setState((old) =>
        old.items.has(id) ? changeItem(old, id, { error }) : missing === null ? old : { ...old, missing },
      );
    }
  }

  async function load(signal?: AbortSignal, isQuiet = false): Promise<void> {
    try {
      await Promise.all([loadGroups(signal), loadPage(signal)]);
    } catch (error) {
      if (!signal?.aborted && !isQuiet) setState((old) => ({ ...old, loading: false, error }));
    }
  }

  async function loadQuery(): Promise<void> {
    const { state, query } = newest();
    const { group: _, ...view } = query;
    if (state.groupsQuery === null || !isSameQuery(state.groupsQuery, view)) return load();
    try {
      await loadPage();
    } catch (error) {
      setState((old) => ({ ...old, error }));
    }
  }

  async function loadGroups(signal?: AbortSignal): Promise<void> {
    const { group: _, ...asked } = newest().query;
    const counted = await request("GET /v1/approvals/groups", { query: asked, signal });
    const { group, ...latest } = newest().query;
    // The person changed the query during the read. A separate read loads the groups for the new query.
    if (isSameQuery(latest, asked)) setState((old) => storeGroups(old, asked, counted, group ?? null, isOwnVote));
  }

  async function loadPage(signal?: AbortSignal): Promise<void> {
    const { state, query: asked } = newest();
    if (asked.group === undefined) return;
    const isSame = isSameQuery(state.query, asked);
    const limit = isSame ? Math.min(MAX_PAGE, Math.max(PAGE, state.order.length)) : PAGE;
    const page = await request("GET /v1/approvals", { query: { ...asked, limit }, signal });
    if (!isSameQuery(newest().query, asked)) return;
    setState((old) => storeFirstPage(old, asked, page));
    if (isSame) for (const id of listMissingIds(page, newest().state)) void reread(id, signal);
  }

  async function readNext(): Promise<void> {
    const { cursor, query: shown } = newest().state;
    if (cursor === null || isLoadingMore) return;
    isLoadingMore = true;
    try {
      const page = await request("GET /v1/approvals", { query: { ...shown, limit: PAGE, cursor } });
      if (isSameQuery(shown, newest().state.query)) setState((old) => storeNextPage(old, page));
    } catch (error) {
      setState((old) => ({ ...old, error }));
    } finally {
      isLoadingMore = false;
    }
  }

  return { reread, load, loadQuery, readNext };
}

/** @param open id of the open request, whose token and votes are also read */
export function useQueue(open: string | null, asked: ListQuery): Queue {
  const [state, setState] = useState(EMPTY_QUEUE);
  const [live, setLive] = useState({ state: "starting", why: "" });
  const openItem = open === null ? null : (state.items.get(open) ?? null);
  // Stays open when another group arrives, because the person may be voting on it.
  const onlyGroup = useRef<string | null>(null);
  const group =
    state.groups.find(({ id }) => id === asked.group) ??
    findGroup(state.groups, openItem?.action) ??
    (asked.group === undefined
      ? state.groups.find(({ id }, _, { length }) => length === 1 || id === onlyGroup.current)
      : undefined) ??
    null;
  onlyGroup.current = asked.group === undefined && open === null ? (group?.id ?? null) : null;
  const { group: _, ...view } = asked;
  const query: ListQuery = group === null ? view : { ...view, group: group.id };
  const newest = useRef<Newest>({ state, query, open });
  newest.current = { state, query, open };
  const { reread, load, loadQuery, readNext } = useMemo(() => createQueueReads(() => newest.current, setState), []);

  // Not after painting, so that the list is requested as early as possible.
  useLayoutEffect(
    () =>
      followQueue({
        load,
        reread,
        setLive,
        setState,
        isOpen: (id) => newest.current.open === id,
      }),
    [],
  );
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) void loadQuery();
    isFirst.current = false;
  }, [JSON.stringify(query)]);
  // Removes a settled request the second time that the person opens another request. Until then its row shows the
  // outcome, and no row moves while the person reads or points.
  const settledBefore = useRef<Set<string>>(new Set());
  useEffect(() => {
    const left = new Set([...settledBefore.current].filter((id) => id !== open));
    settledBefore.current = listSettledIds(newest.current.state, isOwnVote);
    if (left.size > 0) setState((old) => removeRows(old, left));
  }, [open]);
  useEffect(() => {
    if (open === null || state.loading) return undefined;
    const over = new AbortController();
    void reread(open, over.signal);
    return () => over.abort();
  }, [open, state.loading]);

  // Reads that failed while the service was unreachable.
  useEffect(() => {
    let wasDown = false;
    return watchReachability((downSince) => {
      const { open: opened } = newest.current;
      if (wasDown && downSince === null) {
        void load();
        if (opened !== null) void reread(opened);
      }
      wasDown = downSince !== null;
    });
  }, []);

  const isShown = group !== null && isSameQuery(state.query, query);
  const isRead = isShown && state.order.length === 0 && state.error === null;
  // All requests of the group were settled and have left it, so load the next pending requests.
  useEffect(() => {
    if (isRead && (group?.count ?? 0) > 0) void load();
  }, [isRead]);

  return {
    ...state,
    live,
    group,
    openItem,
    cursor: isShown ? state.cursor : null,
    rows: isShown ? listItems(state, state.order) : [],
    heldRows: isShown
      ? listItems(
          state,
          state.held.filter((id) => id !== open),
        )
      : [],
    more: readNext,
    reload: () => void load(),
    update: (id, more) =>
      setState((old) => changeItem(more.action === undefined ? old : storeAction(old, more.action), id, more)),
    showHeld: () => setState(showHeldRows),
  };
}
