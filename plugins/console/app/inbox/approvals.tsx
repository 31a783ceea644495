/** The inbox: the groups of pending requests on the left, the open request or group on the right. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { encodeSegment, request, serviceNow } from "../core/api.ts";
import { useShortcuts } from "../core/shortcuts.ts";
import { StreamStatus, Loading, Notice, ErrorNotice } from "../ui/elements.tsx";
import { formatDuration } from "../ui/format.ts";
import { useLoad, useNow } from "../ui/hooks.ts";
import { ActionTitle } from "../ui/request-view.tsx";
import { FirstSteps } from "./lazy-parts.tsx";
import { queueAddress, Filters, readQueueQuery } from "./filters.tsx";
import { HeldTray } from "./held-tray.tsx";
import { findHeldVote, heldVotes, MAX_HELD, reportVotes, undoVotes, type HeldVote } from "./held-votes.ts";
import { type Line, RequestList } from "./list.tsx";
import { countHeld, GroupPane } from "./overview.tsx";
import { RequestPane } from "./request-pane.tsx";
import { useQueue, type Queue } from "./queue.ts";
import { findGroup, type Group, hasFilter, isNarrowed, type ListQuery, type QueueItem } from "./queue-state.ts";
import { findVoteAvailability } from "./vote-availability.ts";
import { TEXTS } from "./strings.ts";
import type { VoteResult } from "./vote.ts";
import type { VoteBarHandle } from "./vote-bar.tsx";

/** Loads more requests of the open group if fewer of them can be voted on. */
const MIN_LEFT = 5;
/** Number of undecided requests of the open group that the list shows at first, so that other groups stay in view. */
const FIRST_ROWS = 12;

export function Approvals({ id, query: search }: { id: string | null; query: URLSearchParams }) {
  const query = readQueueQuery(search);
  const queue = useQueue(id, query);
  // An expired request has no event at its deadline, so redraw regularly. The countdowns in the rows redraw themselves.
  useNow(5000);
  const [status, setStatus] = useState("");
  const voteBar = useRef<VoteBarHandle>(null);
  const groupBar = useRef<VoteBarHandle>(null);
  const searchField = useRef<HTMLInputElement>(null);
  const { group, rows } = queue;
  const item = queue.openItem;
  // The list shows more rows if the person asks for them, always the row after the open request, and decided rows.
  const [shown, setShown] = useState(FIRST_ROWS);
  useEffect(() => setShown(FIRST_ROWS), [group?.id]);
  const openPlace = rows.findIndex(({ action }) => action.id === id);
  const undecided = rows.flatMap((each, i) => (isUndecided(each) ? [i] : []));
  const lines = listLines(queue, item, Math.max(undecided[shown] ?? rows.length, openPlace + 2));
  const selection = useSelection(rows, group?.id);
  const choice = useChoice(groupBar);
  // In the layout with one column, the pane of a group would cover its requests, so a button opens it.
  const [isPaneOpen, setPaneOpen] = useState(false);
  useEffect(() => setPaneOpen(false), [id, group?.id]);
  const total = queue.total ?? 0;
  useEffect(() => {
    document.title = `${total === 0 ? "" : `(${total}) `}${TEXTS.title} · Assent`;
  }, [total]);
  const open = (next: string | null, of: string | undefined): void => {
    location.hash = queueAddress(next, { ...query, group: of } as ListQuery);
  };
  const openGroup = (next: Group): void => {
    // Display a group of one request as that request, unless the group is open and also lists settled requests.
    if (next.count === 1 && (next.id !== group?.id || rows.length === 0)) return openFirst(next);
    const isClosing = next.id === query.group && id === null;
    open(null, isClosing ? undefined : next.id);
  };
  const openFirst = ({ id: of, first }: Group): void => open(findHeldVote(first) === null ? first : null, of);
  const showMore = (): void => {
    setShown(Math.max(shown, rows.length) + (queue.cursor === null ? 0 : MAX_HELD));
    void queue.more();
  };
  const openLine = (line: Line | undefined): void => {
    if (line?.kind === "request") open(line.item.action.id, line.group);
    else if (line?.kind === "group") openFirst(line.group);
    else if (line?.kind === "more") showMore();
  };
  const goOn = (voted: QueueItem): void => {
    leaveReason();
    openLine(nextOpen(lines, voted.action.id, group?.id));
  };
  // Load more requests of the group before the last one is decided, also if others decide them.
  const left = undecided.length;
  useEffect(() => {
    if (left < MIN_LEFT && queue.cursor !== null) void queue.more();
  }, [left, queue.cursor]);
  const finish = (voted: string, result: VoteResult): void => {
    queue.update(voted, changeOf(result));
    if (result.kind !== "settled" && result.kind !== "recorded") return setStatus("Not recorded.");
    setStatus(result.kind === "recorded" ? "Approved; more approvals are needed." : (result.outcome.text ?? ""));
  };
  const latestFinish = useRef(finish);
  latestFinish.current = finish;
  useEffect(() => reportVotes((voted, result) => latestFinish.current(voted, result)), []);
  const reopen = (votes: readonly HeldVote[]): void => {
    const action = votes[0]?.action;
    if (action !== undefined) open(votes.length > 1 ? null : action.id, findGroup(queue.groups, action)?.id);
  };
  const undo = (voted?: string): void => {
    reopen(undoVotes(voted));
  };
  const canVote = item !== null && findVoteAvailability(item) === "open";
  const step = (by: 1 | -1) => (): void => {
    const steps = lines.filter((line) => line.kind !== "group" || !line.isOpen);
    const place = steps.findIndex((line) => line.kind === "request" && line.item.action.id === id);
    if (place < 0) openLine(nextOpen(lines, "", group?.id));
    else if (steps[place + by] !== undefined) openLine(steps[place + by]);
  };
  const showCovered = (): void => {
    setPaneOpen(true);
    if (id !== null) open(null, group?.id);
  };
  const choose = (approve: boolean) => (): void => {
    // While the open request is being loaded, the keys must not act on its group.
    if (selection.chosen.length === 0 && id !== null) return canVote ? voteBar.current?.choose(approve) : undefined;
    if (group === null || group.count < 2) return;
    choice.set(approve);
    showCovered();
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
  const isViewEmpty = !isNarrowed(query) && total === 0 && lines.length === 0 && isIdle;
  const others = useOtherRequests(isViewEmpty && hasFilter(query));
  const isEmpty = isViewEmpty && (!hasFilter(query) || others === 0);
  // If nothing is open, the list has the whole width, so that it shows whole sentences.
  const hasPane = !isEmpty && (id !== null || (group !== null && (group.count > 1 || rows.length > 1)));
  const covered = (selection.chosen.length > 0 ? selection.chosen : rows)
    .filter((each) => findVoteAvailability(each) === "open")
    .slice(0, MAX_HELD);
  return (
    <div class={`inbox ${hasPane ? "" : "is-list"} ${hasPane && (id !== null || isPaneOpen) ? "showing" : ""}`}>
      {heldVotes.value.length === 0 ? null : <HeldTray onUndone={reopen} />}
      <section class="inbox-list" aria-label="Pending requests">
        <header>
          <ListTitle queue={queue} isFiltered={isNarrowed(query)} />
          {/* Changing a filter adds no entry to the browser's history. */}
          <Filters query={query} onChange={(next) => location.replace(queueAddress(id, next))} field={searchField} />
          <div class="visually-hidden" role="status">
            {status}
          </div>
          {covered.length < 2 && selection.chosen.length === 0 ? null : (
            <button type="button" class="held to-pane" onClick={showCovered}>
              {selection.chosen.length > 0
                ? TEXTS.showSelected(selection.chosen.length)
                : TEXTS.voteOnGroup(covered.length)}
            </button>
          )}
          <ErrorNotice error={queue.error} onRetry={queue.reload} />
        </header>
        {queue.loading && queue.error === null ? <Loading what="requests" /> : null}
        {isEmpty ? <FirstSteps text={TEXTS.empty} /> : null}
        {lines.length > 0 || isEmpty || !isIdle ? null : isViewEmpty ? (
          <p class="quiet none">
            {query.view === "mine" ? TEXTS.noneForYou : TEXTS.noMatch}{" "}
            {others === null ? null : <a href={queueAddress(null, {})}>{TEXTS.showOthers(others)}</a>}
          </p>
        ) : (
          <p class="quiet none">{TEXTS.noMatch}</p>
        )}
        {lines.length === 0 ? null : (
          <RequestList
            lines={lines}
            open={id}
            selected={selection.ids}
            onOpen={openLine}
            onOpenGroup={openGroup}
            onSelect={selection.toggle}
            onMore={showMore}
          />
        )}
        {queue.isComplete ? null : <p class="quiet none">{TEXTS.incomplete}</p>}
        <Held queue={queue} />
      </section>
      {!hasPane ? null : id === null && group !== null ? (
        <GroupPane
          key={group.id}
          group={group}
          items={covered}
          isSelection={selection.chosen.length > 0}
          elsewhere={rows.filter((each) => findVoteAvailability(each) === "elsewhere").length}
          handle={groupBar}
          addressOf={(of) => queueAddress(of, { ...query, group: group.id } as ListQuery)}
          onClear={selection.clear}
          onBack={() => setPaneOpen(false)}
          onVoted={() => {
            leaveReason();
            selection.clear();
            setPaneOpen(false);
          }}
        />
      ) : (
        <Detail
          {...{ id, item, queue, selection }}
          list={queueAddress(null, { ...query, group: group?.id } as ListQuery)}
          handle={voteBar}
          onVoted={(voted, result) => {
            finish(voted.action.id, result);
            // An emergency approval stays open: on a phone, which does not show the list, its outcome would not be seen.
            if (result.kind === "recorded" || (result.kind === "settled" && !result.isEmergency)) goOn(voted);
          }}
          onHeld={goOn}
          onUndo={undo}
          onShowSelected={showCovered}
        />
      )}
    </div>
  );
}

/** Moves the focus out of the reason after a vote, so that the shortcuts work. */
function leaveReason(): void {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

const isUndecided = (item: QueueItem): boolean => !["settled", "expired", "held"].includes(findVoteAvailability(item));

/** Returns the lines of the list: the groups, with the first requests of the open one below its own line. */
function listLines(
  { loading, groups, group, rows, items, cursor }: Queue,
  open: QueueItem | null,
  shown: number,
): Line[] {
  const lines = groups.flatMap((each): Line[] => {
    const isOpen = each.id === group?.id;
    if (isOpen && rows.length > 0) {
      const isInGroup = rows.length > 1 || each.count > 1;
      const header: Line[] = isInGroup ? [{ kind: "group", group: each, isOpen }] : [];
      const visible = rows.slice(0, shown);
      const left = Math.max(1, each.count - visible.length);
      const more: Line[] = cursor === null && visible.length === rows.length ? [] : [{ kind: "more", left }];
      return [
        ...header,
        ...visible.map((item) => ({ kind: "request", item, group: each.id, isInGroup }) as const),
        ...more,
      ];
    }
    if (each.count === 0) return [];
    const only = each.count === 1 ? items.get(each.first) : undefined;
    if (only !== undefined) return [{ kind: "request", item: only, group: each.id, isInGroup: false }];
    return [{ kind: "group", group: each, isOpen }];
  });
  const isListed = lines.some((line) => line.kind === "request" && line.item.action.id === open?.action.id);
  // Until the list is read, nobody knows whether the open request is in it.
  const isRead = !loading && (group === null || rows.length > 0 || group.count === 0);
  if (open === null || open.isPast === true || isListed || !isRead) return lines;
  return [{ kind: "request", item: open, group: group?.id, isInGroup: false }, ...lines];
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

/** Passes a vote that was chosen with a key to the vote bar of a group, once the pane with the bar is rendered. */
function useChoice(bar: RefObject<VoteBarHandle | null>) {
  const [choice, set] = useState<boolean | null>(null);
  useEffect(() => {
    if (choice === null || bar.current === null) return;
    bar.current.choose(choice);
    set(null);
  });
  return { set };
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

interface DetailProps {
  id: string | null;
  item: QueueItem | null;
  queue: Queue;
  selection: Selection;
  /** Address of the list. */
  list: string;
  handle: RefObject<VoteBarHandle | null>;
  onVoted(item: QueueItem, result: VoteResult): void;
  onHeld(item: QueueItem): void;
  onUndo(id: string): void;
  onShowSelected(): void;
}

/** Renders the open request, or why it cannot be shown. */
function Detail({ id, item, queue, selection, list, handle, onVoted, onHeld, onUndo, onShowSelected }: DetailProps) {
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
        list={list}
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
    <div class="pane">
      <Loading what="the request" />
    </div>
  );
}

/** Returns the number of requests as text, as far as it is known. */
function countText({ total }: Queue, isFiltered: boolean): string {
  if (total === null) return "";
  return isFiltered ? TEXTS.matching(total) : TEXTS.pending(total);
}

/**
 * Searches the lines below the request `id`, and then those above it, for a line that leads to a request on which the
 * person can vote. Searches the open group first. Returns undefined if there is no such line.
 */
function nextOpen(lines: readonly Line[], id: string, group: string | undefined): Line | undefined {
  const place = lines.findIndex((line) => line.kind === "request" && line.item.action.id === id);
  const others = [...lines.slice(place + 1), ...lines.slice(0, Math.max(place, 0))];
  const isOpen = (line: Line): boolean => {
    if (line.kind === "request") return findVoteAvailability(line.item) === "open";
    if (line.kind === "more") return false;
    // An open group leads to its first request until its requests are read.
    if (lines.some((each) => each.kind === "request" && each.group === line.group.id)) return false;
    return line.group.count > countHeld(line.group);
  };
  const isInGroup = (line: Line): boolean =>
    group !== undefined && group === (line.kind === "request" ? line.group : line.kind === "group" && line.group.id);
  return others.find((line) => isInGroup(line) && isOpen(line)) ?? others.find(isOpen);
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
  toggle(id: string, isRange: boolean): void;
  set(ids: readonly string[], isSelected: boolean): void;
  clear(): void;
}

/** @param group the open group. When it changes, the selection becomes empty */
function useSelection(rows: readonly QueueItem[], group: string | undefined): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const anchor = useRef<string | null>(null);
  useEffect(() => setIds(new Set()), [group]);
  const set = (changed: readonly string[], isSelected: boolean): void => {
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
  };
}

/**
 * Renders a button with the number of new requests that belong above the last row. The button covers the end of the
 * list, so that the rows do not move.
 */
function Held({ queue: { heldRows, heldGroups, showHeld } }: { queue: Queue }) {
  if (heldRows.length + heldGroups.length === 0) return null;
  const deadlines = [...heldRows.map(({ action }) => action.expires_at), ...heldGroups.map((each) => each.expires_at)];
  const soonest = Math.min(...deadlines.map((at) => Date.parse(at ?? "")));
  const count = heldRows.length + heldGroups.reduce((sum, each) => sum + each.count, 0);
  return (
    <p class="held-place">
      <button type="button" class="held" onClick={showHeld}>
        {TEXTS.held(count, formatDuration(soonest - serviceNow()))}
      </button>
    </p>
  );
}
