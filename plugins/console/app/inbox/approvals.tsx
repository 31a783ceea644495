/** The inbox: the list of pending requests on the left, the open request or the selection on the right. */
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { encodeSegment, request, serviceNow } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { useShortcuts } from "../core/shortcuts.ts";
import { StreamStatus, Loading, Notice, ErrorNotice } from "../ui/elements.tsx";
import { formatDuration } from "../ui/format.ts";
import { useLoad, useNow } from "../ui/hooks.ts";
import { ActionTitle } from "../ui/request-view.tsx";
import { FirstSteps } from "./lazy-parts.tsx";
import { queueAddress, Filters, readQueueQuery } from "./filters.tsx";
import { HeldTray } from "./held-tray.tsx";
import { KindFilter } from "./kind-filter.tsx";
import { heldVotes, reportVotes, undoVote, type HeldVote } from "./held-votes.ts";
import { oneColumn, RequestList } from "./list.tsx";
import { SelectedRequests, QueueOverview } from "./overview.tsx";
import { RequestPane } from "./request-pane.tsx";
import { useQueue, type Queue } from "./queue.ts";
import { hasFilter, isNarrowed, type QueueItem } from "./queue-state.ts";
import { findVoteAvailability } from "./vote-availability.ts";
import { TEXTS } from "./strings.ts";
import type { VoteResult } from "./vote.ts";
import type { VoteBarHandle } from "./vote-bar.tsx";

export function Approvals({ id, query: search }: { id: string | null; query: URLSearchParams }) {
  const query = readQueueQuery(search);
  const queue = useQueue(id, query);
  // An expired request has no event at its deadline, so redraw regularly. The countdowns in the rows redraw themselves.
  useNow(5000);
  const [status, setStatus] = useState("");
  const voteBar = useRef<VoteBarHandle>(null);
  const batchBar = useRef<VoteBarHandle>(null);
  const searchField = useRef<HTMLInputElement>(null);
  const rows = queue.apart === null || queue.apart.isPast ? queue.rows : [queue.apart, ...queue.rows];
  const selection = useSelection(rows);
  const batch = useBatch(id, selection, batchBar);
  const item = rows.find(({ action }) => action.id === id) ?? (queue.apart?.action.id === id ? queue.apart : null);
  const total = queue.total ?? 0;
  useEffect(() => {
    document.title = `${total === 0 ? "" : `(${total}) `}${TEXTS.title} · Assent`;
  }, [total]);
  const open = (next: string | null): void => {
    location.hash = queueAddress(next, query);
  };
  const goOn = (voted: QueueItem): void => {
    const next = nextOpen(rows, voted.action.id);
    // Move the focus out of the reason, so that the shortcuts work on the next request.
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    if (next !== null) open(next);
  };
  const finish = (id: string, result: VoteResult): void => {
    queue.update(id, changeOf(result));
    if (result.kind !== "settled" && result.kind !== "recorded") return setStatus("Not recorded.");
    setStatus(result.kind === "recorded" ? "Approved; more approvals are needed." : (result.outcome.text ?? ""));
  };
  const latestFinish = useRef(finish);
  latestFinish.current = finish;
  useEffect(() => reportVotes((voted, result) => latestFinish.current(voted, result)), []);
  const reopen = ({ action }: HeldVote): void => open(action.id);
  const undo = (voted?: string): void => {
    const vote = undoVote(voted);
    if (vote !== null) reopen(vote);
  };
  const canVote = item !== null && findVoteAvailability(item) === "open";
  const step = (by: 1 | -1) => (): void => {
    const place = rows.findIndex(({ action }) => action.id === id);
    const target = place < 0 ? nextOpen(rows, "") : rows[Math.min(Math.max(place + by, 0), rows.length - 1)]?.action.id;
    if (target !== undefined && target !== null && target !== id) open(target);
  };
  const choose = (approve: boolean) => (): void => {
    if (selection.chosen.length > 0) batch.choose(approve);
    else if (canVote) voteBar.current?.choose(approve);
  };
  const select = (): void => {
    if (canVote) selection.toggle(item.action.id, false);
  };
  const { keys } = TEXTS;
  useShortcuts("page", [
    { keys: "j / k", text: keys.step, on: { j: step(1), k: step(-1) } },
    { keys: "a / d", text: keys.choose, on: { a: choose(true), d: choose(false) } },
    { keys: "u", text: keys.undo, on: { u: () => undo() } },
    { keys: "Ctrl + Enter", text: keys.confirm },
    { keys: "Esc", text: keys.leave },
    { keys: "x", text: keys.select, on: { x: select } },
    { keys: "Shift + click", text: keys.range },
    { keys: "/", text: keys.search, on: { "/": () => searchField.current?.focus() } },
  ]);
  const isIdle = !queue.loading && queue.error === null;
  const isViewEmpty = !isNarrowed(query) && total === 0 && rows.length === 0 && isIdle;
  const others = useOtherRequests(isViewEmpty && hasFilter(query));
  const isEmpty = isViewEmpty && (!hasFilter(query) || others === 0);
  return (
    <div class={`inbox ${isEmpty ? "is-empty" : id === null && !batch.isShown ? "" : "showing"}`}>
      {heldVotes.value.length === 0 ? null : <HeldTray onUndone={reopen} />}
      <section class="inbox-list" aria-label="Pending requests">
        <header>
          <ListTitle queue={queue} isFiltered={isNarrowed(query)} />
          {/* Changing a filter adds no entry to the browser's history. */}
          <Filters query={query} onChange={(next) => location.replace(queueAddress(id, next))} field={searchField} />
          <Toolbar queue={queue} rows={rows} selection={selection}>
            <KindFilter
              query={query}
              total={queue.total}
              onChange={(next) => location.replace(queueAddress(id, next))}
            />
            {selection.chosen.length > 0 && !batch.isShown ? (
              <button type="button" class="small held" onClick={batch.show}>
                {TEXTS.showSelected(selection.chosen.length)}
              </button>
            ) : null}
          </Toolbar>
          <div class="visually-hidden" role="status">
            {status}
          </div>
          {selection.summary === "" ? null : <Notice>{selection.summary}</Notice>}
          <ErrorNotice error={queue.error} onRetry={queue.reload} />
        </header>
        {queue.loading && queue.error === null ? <Loading what="requests" /> : null}
        {isEmpty ? <FirstSteps text={TEXTS.empty} /> : null}
        {rows.length > 0 || isEmpty || !isIdle ? null : isViewEmpty ? (
          <p class="quiet none">
            {query.view === "mine" ? TEXTS.noneForYou : TEXTS.noMatch}{" "}
            {others === null ? null : <a href={queueAddress(null, {})}>{TEXTS.showOthers(others)}</a>}
          </p>
        ) : (
          <p class="quiet none">{TEXTS.noMatch}</p>
        )}
        {rows.length === 0 ? null : (
          <RequestList
            rows={rows}
            open={id}
            selected={selection.ids}
            onOpen={open}
            onSelect={selection.toggle}
            onEnd={() => void queue.more()}
          />
        )}
        <Held queue={queue} />
        <LoadMore queue={queue} />
      </section>
      {isEmpty ? null : batch.isShown ? (
        <SelectedRequests
          items={selection.chosen}
          handle={batchBar}
          onSelect={selection.set}
          onClear={selection.clear}
          onBack={batch.hide}
          onVoted={(voted, result) => queue.update(voted, changeOf(result))}
          onDone={selection.finish}
        />
      ) : (
        <Detail
          {...{ id, item, queue, rows, selection }}
          handle={voteBar}
          onVoted={(voted, result) => {
            finish(voted.action.id, result);
            if (result.kind === "settled" || result.kind === "recorded") goOn(voted);
          }}
          onHeld={goOn}
          onUndo={undo}
          onShowSelected={batch.show}
        />
      )}
    </div>
  );
}

/** Returns the number of all pending requests, if the view has none; null while it is unknown. */
function useOtherRequests(isViewEmpty: boolean): number | null {
  const { data } = useLoad(
    async (signal) =>
      isViewEmpty ? (await request("GET /v1/approvals", { query: { limit: 1 }, signal })).total : null,
    [isViewEmpty],
  );
  return isViewEmpty ? data : null;
}

/**
 * Shows the batch pane when the selection changes, and the single-request pane when a request is opened. In the
 * one-column layout, the batch pane would cover the list as soon as one request is selected, so a button opens it.
 */
function useBatch(id: string | null, { ids, chosen }: Selection, bar: RefObject<VoteBarHandle | null>) {
  const [isBatch, setBatch] = useState(false);
  // A vote that was chosen with a key, until the pane with its vote bar is rendered.
  const [choice, setChoice] = useState<boolean | null>(null);
  useEffect(() => {
    if (choice === null || bar.current === null) return;
    bar.current.choose(choice);
    setChoice(null);
  });
  useEffect(() => setBatch(false), [id]);
  useEffect(() => {
    if (ids.size === 0) setBatch(false);
    else if (!oneColumn.matches) setBatch(true);
  }, [ids]);
  return {
    isShown: isBatch && chosen.length > 0,
    show: () => setBatch(true),
    hide: () => setBatch(false),
    choose(approve: boolean) {
      setBatch(true);
      setChoice(approve);
    },
  };
}

function ListTitle({ queue, isFiltered }: { queue: Queue; isFiltered: boolean }) {
  return (
    <div class="inbox-title">
      <h1 tabIndex={-1}>{TEXTS.title}</h1>
      <span class="count" role="status">
        {countText(queue, isFiltered)}
      </span>
      <StreamStatus {...queue.live} />
    </div>
  );
}

function LoadMore({ queue }: { queue: Queue }) {
  if (queue.cursor === null) return null;
  return (
    <footer class="quiet">
      {TEXTS.shown(queue.rows.length, queue.total)}{" "}
      <button type="button" class="small" onClick={() => void queue.more()}>
        Load more
      </button>
    </footer>
  );
}

interface DetailProps {
  id: string | null;
  item: QueueItem | null;
  queue: Queue;
  rows: readonly QueueItem[];
  selection: Selection;
  handle: RefObject<VoteBarHandle | null>;
  onVoted(item: QueueItem, result: VoteResult): void;
  onHeld(item: QueueItem): void;
  onUndo(id: string): void;
  onShowSelected(): void;
}

/** Renders the right side: the open request, why it cannot be shown, or the overview of all requests. */
function Detail({ id, item, queue, rows, selection, handle, onVoted, onHeld, onUndo, onShowSelected }: DetailProps) {
  if (item !== null && item.isPast)
    return (
      <div class="pane">
        <div class="pane-scroll">
          <Notice>
            This request is settled: <ActionTitle action={item.action} /> is {item.action.status.replace("_", " ")}.{" "}
            <a href={`#/actions/${encodeSegment(item.action.id)}`}>Show the action</a>
          </Notice>
        </div>
      </div>
    );
  if (item !== null)
    return (
      <RequestPane
        key={item.action.id}
        item={item}
        handle={handle}
        others={
          selection.chosen.length === 0
            ? null
            : { count: selection.chosen.length, onShow: onShowSelected, onClear: selection.clear }
        }
        onVoted={(result) => onVoted(item, result)}
        onHeld={() => onHeld(item)}
        onUndo={() => onUndo(item.action.id)}
        onAsked={(action) => queue.update(action.id, { action })}
        onRecalled={(action, text) =>
          queue.update(action.id, { action, outcome: { kind: "busy", text, isMine: true } })
        }
        onLeave={() => document.querySelector<HTMLElement>(`[data-id="${item.action.id}"]`)?.focus()}
      />
    );
  if (id !== null && queue.missing?.id === id)
    return (
      <div class="pane">
        <div class="pane-scroll">
          <ErrorNotice error={queue.missing.error} />
        </div>
      </div>
    );
  return (
    <QueueOverview
      rows={rows}
      selected={selection.ids}
      onSelect={selection.set}
      canSelect={hasScope("approvals:decide")}
    />
  );
}

/** Returns the number of requests in the list as text, as far as it is known. */
function countText({ total, loading, rows, cursor }: Queue, isFiltered: boolean): string {
  if (total !== null) return isFiltered ? TEXTS.matching(total) : TEXTS.pending(total);
  return loading || cursor === null ? "" : TEXTS.many(rows.length);
}

/**
 * Returns the next request after `id` that can be voted on. Continues at the start of the list; null if there is none.
 */
function nextOpen(rows: readonly QueueItem[], id: string): string | null {
  const place = rows.findIndex(({ action }) => action.id === id);
  const others = [...rows.slice(place + 1), ...rows.slice(0, Math.max(place, 0))];
  return others.find((item) => findVoteAvailability(item) === "open")?.action.id ?? null;
}

function changeOf(result: VoteResult): Partial<QueueItem> {
  switch (result.kind) {
    case "settled":
      return { action: result.action, outcome: result.outcome, error: null };
    case "recorded":
      return { action: result.action, error: null };
    case "late":
      return { ...(result.action === null ? {} : { action: result.action }), outcome: result.outcome, error: null };
    case "failed":
      return { error: result.error };
  }
}

interface Selection {
  ids: ReadonlySet<string>;
  /** Selected requests that can still be voted on. */
  chosen: readonly QueueItem[];
  /** Results of the last votes. */
  summary: string;
  toggle(id: string, isRange: boolean): void;
  set(ids: readonly string[], isSelected: boolean): void;
  clear(): void;
  finish(summary: string): void;
}

function useSelection(rows: readonly QueueItem[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [summary, setSummary] = useState("");
  const anchor = useRef<string | null>(null);
  const set = (changed: readonly string[], isSelected: boolean): void => {
    setSummary("");
    setIds((old) => {
      const next = new Set(old);
      for (const id of changed) {
        if (isSelected) next.add(id);
        else next.delete(id);
      }
      return next;
    });
  };
  return {
    ids,
    chosen: rows.filter((item) => ids.has(item.action.id) && findVoteAvailability(item) === "open"),
    summary,
    set,
    toggle(id, isRange) {
      const [from, to] = [anchor.current, id].map((end) => rows.findIndex(({ action }) => action.id === end));
      anchor.current = id;
      if (!isRange || from === undefined || to === undefined || from < 0 || to < 0) return set([id], !ids.has(id));
      const range = rows.slice(Math.min(from, to), Math.max(from, to) + 1);
      set(
        range.filter((item) => findVoteAvailability(item) === "open").map(({ action }) => action.id),
        true,
      );
    },
    clear: () => setIds(new Set()),
    finish(text) {
      setIds(new Set());
      setSummary(text);
    },
  };
}

/**
 * Renders a button with the number of new requests that belong above the last row. The button covers the end of the
 * list, so that the rows do not move.
 */
function Held({ queue: { heldRows, showHeld } }: { queue: Queue }) {
  if (heldRows.length === 0) return null;
  const soonest = Math.min(...heldRows.map(({ action }) => Date.parse(action.expires_at ?? "")));
  return (
    <p class="held-place">
      <button type="button" class="held" onClick={showHeld}>
        {TEXTS.held(heldRows.length, formatDuration(soonest - serviceNow()))}
      </button>
    </p>
  );
}

interface ToolbarProps {
  queue: Queue;
  rows: readonly QueueItem[];
  selection: Selection;
  children: ComponentChildren;
}

function Toolbar({ queue, rows, selection, children }: ToolbarProps) {
  const [isLoading, setLoading] = useState(false);
  /**
   * Selects every request of the list. First loads the requests that are not loaded yet, because only loaded requests
   * can be voted on.
   */
  const selectAll = async (): Promise<void> => {
    setLoading(true);
    const all = await queue.loadAll();
    setLoading(false);
    if (all === null) return;
    const openIds = all.filter((item) => findVoteAvailability(item) === "open").map(({ action }) => action.id);
    selection.set(openIds, true);
  };
  const open = rows.filter((item) => findVoteAvailability(item) === "open").map(({ action }) => action.id);
  return (
    <div class="toolbar">
      {hasScope("approvals:decide") && open.length > 0 ? (
        <label class="check">
          <input
            type="checkbox"
            checked={selection.chosen.length > 0 && selection.chosen.length === open.length}
            onChange={() => selection.set(open, selection.chosen.length !== open.length)}
          />{" "}
          Select {open.length === 1 ? "it" : `all ${open.length} loaded`}
        </label>
      ) : null}
      {queue.cursor !== null &&
      hasScope("approvals:decide") &&
      selection.chosen.length === open.length &&
      open.length > 0 ? (
        <button type="button" class="small" disabled={isLoading} onClick={() => void selectAll()}>
          {isLoading ? TEXTS.selecting(queue.rows.length) : TEXTS.selectAll(queue.total)}
        </button>
      ) : null}
      {children}
    </div>
  );
}
